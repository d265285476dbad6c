"""Repeat visits, HTTP/3 by Alt-Svc and browsers of a single trial, on real containers."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from headwind.arm import H2, H3, PLAIN, Arm
from headwind.browsers import BROWSERS, CHROMIUM, FIREFOX
from headwind.model import Outcome
from headwind.testbed import testbed as testbeds
from headwind.workloads.discovery import SHARE
from headwind.workloads.page import FIRST, QUIC_BEGUN, TCP_BEGUN
from tests.net.page_trials import PAGE, RTT_S, SIGNAL, in_browser, page_over

BROWSER = pytest.mark.parametrize("browser", BROWSERS)
pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images
REMOTE = {CHROMIUM: "--remote-debugging-pipe", FIREFOX: "--remote-debugging-port"}  # of the browser's own process
DISCOVERING = replace(PAGE, discovery="alt-svc")


@BROWSER
@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_repeat_visit_has_new_connections_resumed_sessions_and_no_cache(
    page_bed: testbeds.Testbed, arm: Arm, browser: str
) -> None:
    result = page_over(page_bed.path(), arm, replace(PAGE, browser=browser, visit="repeat"))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    answer = result.samples
    assert answer["served"]["resumed"] >= 1, "nginx logs no session of a connection that was never closed"
    assert answer["served"]["count"] == 31, "the log begins after the first visit"
    assert set(answer["samples"]["request_protocol"]) == {arm.protocol.alpn}
    assert (result.metrics["bytes_body"], result.metrics["from_cache"]) == (30 * 5_000, 0)
    assert result.metrics[FIRST.key] >= (1 if arm == H3 else 2) * RTT_S, "TCP's handshake, and the answer"


def test_a_first_visit_shorter_than_firefox_needs_to_keep_a_session_lasts_until_it_has(
    page_bed: testbeds.Testbed,
) -> None:
    """The page ends after some four round trips, and a session of HTTP/3 is kept after nine."""
    for _ in range(3):
        short = replace(PAGE, name="short", resources=1, browser=FIREFOX, visit="repeat")
        result = page_over(page_bed.path(), H3, short)
        assert (result.outcome, result.reason) == (Outcome.OK, "")


@BROWSER
def test_a_first_visit_begins_over_tcp_and_a_repeat_visit_uses_http3(page_bed: testbeds.Testbed, browser: str) -> None:
    first = page_over(page_bed.path(), H3, replace(DISCOVERING, browser=browser))
    assert (first.outcome, first.reason) == (Outcome.OK, "")
    protocols = dict(zip(first.samples["samples"]["request_initiator"], first.samples["samples"]["request_protocol"],
                         strict=True))  # fmt: skip
    assert protocols["navigation"] == "h2"
    assert min(first.metrics[TCP_BEGUN.key], first.metrics[QUIC_BEGUN.key]) >= 1, "the browser tries the offer"
    repeat = page_over(page_bed.path(), H3, replace(DISCOVERING, browser=browser, visit="repeat"))
    assert (repeat.outcome, repeat.reason) == (Outcome.OK, "")
    assert repeat.metrics[SHARE.key] == 1.0
    assert repeat.metrics[FIRST.key] < first.metrics[FIRST.key] - RTT_S / 2, "without TCP's handshake"


@BROWSER
def test_without_an_offer_nothing_is_discovered(page_bed: testbeds.Testbed, browser: str) -> None:
    """On the port that all other arms use."""
    path, page = page_bed.path(), page_bed.path().browsers[browser]
    for name in PAGE.object_paths():
        path.server.call("provide", 30.0, path=name)
    there = {"protocol": "h3", "host": path.server_ip, "port": 443, "path": PAGE.object_paths()[0], "discovers": True}
    page.call("prepare", 60.0, **there)
    page.call("visit", 20.0, timeout_s=10.0, **there)
    answer = page.call("run", 20.0, timeout_s=10.0, **there)
    assert answer["negotiated"] == {"alpn": "h2"}
    assert answer["metrics"][QUIC_BEGUN.key] == 0


@BROWSER
def test_a_browser_of_a_single_trial_ends_with_it(page_bed: testbeds.Testbed, browser: str) -> None:
    def processes(number: int = 0) -> int:
        return in_browser(page_bed, SIGNAL, browser, REMOTE[browser], number, browser=browser)

    page_over(page_bed.path(), H2, replace(PAGE, browser=browser))
    assert processes(int(signal.SIGKILL)) > 0
    result = page_over(page_bed.path(), H2, replace(PAGE, browser=browser, isolation="browser"))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert processes() == 0


def test_a_repeat_visit_uses_http3_if_nginx_offered_it_on_the_first(page_bed: testbeds.Testbed) -> None:
    """The network's round trip is 60 ms."""
    page = replace(DISCOVERING, visit="repeat")
    shares = {}
    for condition in ("rtt >= 30ms", "rtt >= 200ms", "rtt < 30ms"):
        result = page_over(page_bed.path(), H3, replace(page, offer_if=condition))
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        shares[condition] = result.metrics[SHARE.key]
    assert shares == {"rtt >= 30ms": 1.0, "rtt >= 200ms": 0.0, "rtt < 30ms": 0.0}
