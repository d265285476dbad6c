"""No condition is refused in which a trial could finish: the shortest time is one that no trial can beat."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.matrix.shortest import probing, shortest
from headwind.model import Condition
from headwind.plan.doubts import kept_in_order, notes_of, warnings_of
from headwind.proof.probed_decisions import probe_interval_s, probes_for
from headwind.servers import SERVERS
from headwind.settings import UNLIMITED, Settings, Windows
from headwind.trial.probes import _bulk_packets
from headwind.workloads.h2load import H2load
from headwind.workloads.objects import Objects
from headwind.workloads.ttfb import Ttfb
from impair.profile import FRAME_BYTES, Delay, Duplicate, Link, Loss, Profile, Rate, Reorder, Steps
from tests.matrix_files import MINIMAL, load, refusal

ONE = H2load("one", 1, 1, 1)
FAR = Link(delay=Delay(1.0))
SLOW = Link(rate=Rate(8000))


def least_s(workload: H2load | Objects | Ttfb, uplink: Link, downlink: Link, arm: object = H2) -> float:
    return shortest(Condition(Profile("p", uplink, downlink), workload), arm).seconds  # type: ignore[arg-type]


def test_the_first_answer_takes_three_round_trips_over_tcp_and_two_over_quic() -> None:
    assert [least_s(ONE, FAR, FAR, arm) for arm in (H1, H2, H3)] == [6.0, 6.0, 4.0]
    assert least_s(Ttfb("t", "/", "early"), FAR, FAR, H3) == 4.0  # two connections, each asks at once
    assert least_s(ONE, Link(), Link()) == 0.0


def test_the_default_window_of_nginx_takes_a_round_trip_each_time_that_it_is_full() -> None:
    """A matrix with 4 MB, 600 ms and `server: as-shipped` was planned within 20 s; its HTTP/3 took 38.6 s."""
    shipped, four = Settings(server=Windows.AS_SHIPPED), Objects("file", 1, 0, 0, path="/bytes/4000000")
    profile = Profile("p", Link(delay=Delay(0.3)), Link(delay=Delay(0.3)))

    def seconds(workload: Objects, arm: Arm, settings: Settings) -> float:
        return shortest(Condition(profile, workload), arm, settings).seconds

    windows = math.ceil(4_000_000 / 65536)
    assert seconds(four, H3, shipped) == pytest.approx(2 * 0.6 + (windows - 1) * 0.6)
    assert seconds(four, H3, UNLIMITED) == seconds(four, H3, Settings(client=Windows.AS_SHIPPED)) == pytest.approx(1.2)
    assert seconds(four, H2, shipped) == seconds(four, H2, UNLIMITED)
    assert seconds(four, replace(H3, server=SERVERS["caddy"]), shipped) == pytest.approx(1.2)
    assert shortest(Condition(profile, four), H3, shipped).window
    assert not shortest(Condition(profile, replace(four, path="/bytes/1000")), H3, shipped).window, "it fits into one"
    at_once = Objects("files", 8, 0, 0, path="/bytes/500000")
    assert seconds(at_once, H3, shipped) == pytest.approx(2 * 0.6 + (math.ceil(4_000_000 / 65536 / 8) - 1) * 0.6)


def test_a_window_that_leaves_too_little_time_is_named_before_the_run(tmp_path: Path) -> None:
    text = """protocols: [{0}]
timeout: 20s
settings: {{server: as-shipped}}
profiles: {{far: {{both: {{delay: 300ms}}}}}}
workloads: {{file: {{kind: transfer, size: 4MB}}}}
"""
    (warning,) = warnings_of(load(text.format("h2, h3"), tmp_path))
    assert (
        "no trial of HTTP/3 can finish in `far/file` within `timeout: 20s`: it takes at least 37 s, because" in warning
    )
    refused = str(refusal(text.format("h3"), tmp_path))
    assert "because nginx's window as shipped allows 64 KB per round trip and stream" in refused
    assert "write `settings: {server: unlimited}`, lower the delay" in refused


def test_requests_that_wait_for_each_other_take_a_round_trip_each() -> None:
    page = Objects("page", 13, 0, 0, path="/bytes/1")
    assert least_s(page, FAR, FAR, H1) == (2 + 2) * 2.0  # at least two on each of six connections
    assert least_s(page, FAR, FAR, H2) == (2 + 1) * 2.0
    assert least_s(replace(page, server_delay_s=1.0), FAR, FAR, H1) == (2 + 2) * 2.0 + 2 * 1.0


def test_a_trial_outlasts_a_blackout_that_it_cannot_avoid_and_no_other() -> None:
    dark, queued = replace(SLOW, loss=Loss(1.0), limit_packets=1), replace(SLOW, limit_packets=1)
    page = Objects("page", 10, 0, 0, path="/bytes/1000")

    def with_dark(*moments_s: float, period_s: float | None = None) -> float:
        steps = Steps(moments_s, tuple([dark, queued][: len(moments_s)]), period_s)
        profile = Profile("p", Link(), queued, downlink_changes=steps)
        return shortest(Condition(profile, page), H2).seconds

    one_frame_s = FRAME_BYTES * 8 / 8000
    assert with_dark(1.0, 31.0) == pytest.approx(10.0 + 30.0 - one_frame_s)
    assert with_dark(9.0, 31.0) == with_dark(1.0, 2.0) == 10.0  # what waits for the rate may pass
    assert with_dark(1.0, 4.0, period_s=6.0) == pytest.approx(10.0 + 2 * (3.0 - one_frame_s))
    assert with_dark(1.0) > 86_400


def test_bodies_take_their_time_at_the_rate_of_the_downlink() -> None:
    page = Objects("page", 10, 0, 0, path="/bytes/1000")
    assert least_s(page, Link(), SLOW) == 10.0
    assert least_s(page, FAR, SLOW) == 10.0 + 3.0  # behind the handshakes and the first request
    assert least_s(page, SLOW, Link(), H3) == pytest.approx(1.342)  # the first datagram, ten requests


@pytest.mark.parametrize(
    ("link", "arm"),
    [
        (replace(FAR, reorder=Reorder(0.01)), H1),
        (replace(SLOW, delay=Delay(1.0), reorder=Reorder(0.01)), H3),
        (Link(delay=Delay(1.0, 1.0)), H2),
        (Link(rate=Rate(8000, packet_overhead=-42)), H2),
        (Link(rate=Rate(8000, cell_size=48, cell_overhead=-40)), H2),
        (Link(loss=Loss(1.0), duplicate=Duplicate(1.0)), H2),
    ],
)
def test_what_some_packets_escape_bounds_nothing(link: Link, arm: object) -> None:
    assert least_s(Objects("page", 10, 0, 0, path="/bytes/1000"), link, link, arm) == 0.0


def test_a_network_that_loses_every_packet_is_refused(tmp_path: Path) -> None:
    lost = MINIMAL.replace("clean: {}", "cut: {uplink: {loss: 100%}}")
    (complaint,) = refusal(lost, tmp_path).complaints
    assert (complaint.message, complaint.hint) == (
        "no trial over `cut` can finish: every packet is lost",
        "lower the loss",
    )
    assert lost.splitlines()[complaint.line - 1][complaint.column - 1 :].startswith("loss: 100%")
    assert load(lost.replace("100%", "99%"), tmp_path).conditions


def test_a_network_is_refused_once_and_only_if_no_arm_can_finish(tmp_path: Path) -> None:
    far = MINIMAL.replace("clean: {}", "far: {both: {delay: 1.2s}}")
    (complaint,) = refusal(f"timeout: 14s{far}", tmp_path).complaints
    assert complaint.source[complaint.column - 1 :] == "14s"
    assert "within `timeout: 14s`: `page` takes at least 14 s" in complaint.message
    assert complaint.hint == "lower the delay or wait longer, such as `timeout: 29s`"
    (complaint,) = refusal(
        f"timeout: 100ms{MINIMAL.replace('clean: {}', 'far: {both: {delay: 40ms}}')}", tmp_path
    ).complaints
    assert "takes at least 480 ms" in complaint.message
    (warning,) = warnings_of(load(f"timeout: 15s{far}", tmp_path))  # HTTP/3 can
    assert "matrix.yaml:3:25: no trial of HTTP/1.1 can finish in `far/page` within `timeout: 15s`" in warning


def test_a_self_check_that_its_slower_network_keeps_from_finishing_is_warned_of(tmp_path: Path) -> None:
    """All of its trials timed out, without a word in advance."""
    far = MINIMAL.replace("clean: {}", "far: {both: {delay: 1.2s}}")
    check = "selfcheck: {protocol: h3, slower: [far]}"
    said = [warning for warning in warnings_of(load(f"timeout: 15s{far}\n{check}\n", tmp_path)) if "slower" in warning]
    assert "no trial of HTTP/3 (slower) can finish in `far/page` within `timeout: 15s`: over this" in said[0]
    assert not any("(slower) can" in each for each in warnings_of(load(f"timeout: 40s{far}\n{check}\n", tmp_path)))


def test_a_rate_of_a_library_network_is_refused_where_the_network_is_named(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "old: {preset: wpt-dial}").replace("requests: 10", "requests: 9, path: /10m")
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.source[complaint.column - 1 :].startswith("old")


def test_each_value_of_a_sweep_is_judged_by_itself(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "far: {both: {delay: [1s, 2s, 90s]}}")
    (complaint,) = refusal(text, tmp_path).complaints
    assert "no trial over `far 90s`" in complaint.message


@pytest.mark.parametrize(
    ("network", "place", "message", "hint"),
    [
        ("{both: {delay: 3s}}", "delay", "`clean` delays each packet by 3 s one way", "did you mean `3ms`?"),
        ("{uplink: {loss: {gemodel: {p: 30%, r: 1%}}}}", "loss", "`clean` loses 96.8 % of all packets on average",
         "are `p` and `r` swapped? {p: 1%, r: 30%} loses 3.23 %"),
        ("{at: {90s: {both: {loss: 100%}}, 91s: {}}}", "at", "nothing changes in `clean`: its first moment is 90s",
         "write an earlier moment, or a longer `timeout`"),
        ("{at: {300s: {rebind: port}}}", "at", "its first moment is 300s, and a trial is stopped after `timeout: 60s`",
         "write an earlier moment"),
        ("{downlink: {loss: 95%}}", "loss", "`clean` loses 95.0 % of all packets on average", "few trials will"),
    ],
)  # fmt: skip
def test_what_is_hardly_meant_is_a_warning_with_its_place(
    network: str, place: str, message: str, hint: str, tmp_path: Path
) -> None:
    text = MINIMAL.replace("{}", network, 1).replace("[h1, h3]", "[h3]")
    (warning,) = warnings_of(load(text, tmp_path))
    lines = warning.splitlines()
    assert message in lines[0]
    assert hint in lines[-1]
    assert lines[1][lines[2].index("^") :].startswith(place)


def test_a_usual_network_has_no_warning(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{both: {delay: 300ms, loss: {gemodel: {p: 1%, r: 25%}}}}", 1)
    assert warnings_of(load(text, tmp_path)) == []
    assert kept_in_order(load(text, tmp_path)) == ""


def test_a_jitter_beside_a_rate_has_a_note(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{both: {delay: 15ms, jitter: 5ms}, downlink: {rate: 10mbit}}", 1)
    note = kept_in_order(load(text, tmp_path))
    assert "keeps packets in order" in note
    assert note.endswith(": clean (downlink)")


def test_a_jitter_behind_a_bottleneck_reorders_packets_and_has_no_such_note(tmp_path: Path) -> None:
    network = "{both: {delay: 15ms, jitter: 5ms}, downlink: {rate: 10mbit, queue: {kind: fifo, packets: 50}}}"
    matrix = load(MINIMAL.replace("{}", network, 1), tmp_path)
    assert kept_in_order(matrix) == ""
    assert any(note.startswith("note: network `clean`: jitter reorders") for note in notes_of(matrix))


@pytest.mark.parametrize("direction", ["uplink", "downlink"])
def test_a_network_is_refused_if_its_probes_take_longer_than_the_timeout(direction: str, tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", f"{{{direction}: {{rate: 800bit}}}}", 1).replace("10,", "2,").replace("s: 2", "s: 1")
    (complaint,) = refusal(f"timeout: 30s{text}", tmp_path).complaints
    assert complaint.source[complaint.column - 1 :].startswith("rate")
    assert "the probes before each trial over `clean` take 3 min 11 s or more, above `timeout: 30s`" in (
        complaint.message
    )
    assert complaint.hint == "did you mean `800kbit`? else raise the rate, such as `6kbit`"
    assert load(f"timeout: 30s{text.replace('800bit', '6kbit')}", tmp_path).timeout_s == 30


def test_a_short_timeout_alone_refuses_no_network(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{both: {rate: 50kbit}}", 1)
    assert load(f"timeout: 2s{text}", tmp_path).timeout_s == 2


@pytest.mark.parametrize("link", [SLOW, Link(rate=Rate(8000), limit_packets=5), Link(), Link(rate=Rate(10_000_000))])
def test_probes_take_no_less_than_their_bound(link: Link) -> None:
    assert link.rate is None or _bulk_packets(link) >= 2
    train_s = _bulk_packets(link) * FRAME_BYTES * 8 / link.rate.rate_bps if link.rate else 0.0
    probes_s = (probes_for(link, counted=True) - 1) * probe_interval_s(link)
    assert 0 <= probing(Profile("p", Link(), link)).seconds <= probes_s + train_s


def test_requests_take_their_time_at_the_rate_of_the_uplink() -> None:
    many = H2load("many", 1000, 1, 1000)
    assert all(least_s(many, SLOW, Link(), arm) > 10.0 for arm in (H1, H2, H3))


@pytest.mark.parametrize(
    ("network", "is_warned_of"),
    [
        ("both: {delay: 8ms, jitter: 2ms}", True),
        ("downlink: {delay: 8ms, jitter: 2ms, reorder: 1%}", True),
        ("both: {delay: 8ms, jitter: 2ms, rate: 50mbit}", False),
        ("uplink: {delay: 8ms, jitter: 2ms}", False),
    ],
)
def test_a_jitter_that_reorders_responses_of_http3_is_a_warning(
    network: str, is_warned_of: bool, tmp_path: Path
) -> None:
    text = MINIMAL.replace("{}", f"{{{network}}}", 1)
    begin = "note: network `clean`: jitter reorders"
    found = [each for each in notes_of(load(text, tmp_path)) if each.startswith(begin)]
    assert bool(found) is is_warned_of
    assert warnings_of(load(text.replace("h1, h3", "h1, h2"), tmp_path)) == []


@pytest.mark.parametrize(("server_only", "kind", "count"), [(False, "ttfb", 1), (True, "ttfb", 0), (False, "", 0)])
def test_client_settings_that_do_nothing_are_a_warning(
    server_only: bool, kind: str, count: int, tmp_path: Path
) -> None:
    settings = "{server: as-shipped}" if server_only else "as-shipped"
    text = MINIMAL.replace("profiles", f"arms: {{h3-old: {{protocol: h3, settings: {settings}}}}}\nprofiles")
    text = text.replace("{requests: 10, connections: 2}", "{kind: ttfb}") if kind else text
    found = warnings_of(load(text, tmp_path))
    assert len(found) == count
    assert all("client's `settings` of `h3-old` have no effect in `page`" in each.splitlines()[0] for each in found)
    assert all(each.splitlines()[2].index("^") == each.splitlines()[1].index("settings") for each in found)
