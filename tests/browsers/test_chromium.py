"""Chromium's command line: the protocol that is forced, and the one that is discovered."""

from __future__ import annotations

import pytest

from browsers.browser import Place
from browsers.chromium.agent import command
from browsers.watch import tcp_opens

FORCED = "--origin-to-force-quic-on="


def switches(place: Place) -> list[str]:
    return [word for word in command(place, "hash", "profile") if "quic" in word or "http2" in word]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("h1", "10.77.2.10", 443), ["--disable-quic", "--disable-http2"]),
        (Place("h2", "10.77.2.10", 443), ["--disable-quic"]),
        (Place("h3", "10.77.2.10", 8443), ["--enable-quic", f"{FORCED}server:8443"]),
        (Place("h3", "10.77.2.10", 445, discovers=True), ["--enable-quic", f"{FORCED}server:1"]),
    ],
    ids=str,
)
def test_only_a_discovered_http3_is_not_forced_on_the_server_s_port(place: Place, expected: list[str]) -> None:
    assert switches(place) == expected


def test_no_proxy_of_docker_s_configuration_is_used() -> None:
    """Compose passes `proxies` of ~/.docker/config.json on to containers, and Chromium reached no server."""
    assert "--no-proxy-server" in command(Place("h2", "10.77.2.10", 443), "hash", "profile")


def test_connections_over_tcp_are_counted_from_the_kernel_s_text() -> None:
    text = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens PassiveOpens\nTcp: 1 7 3\nUdp: InDatagrams\nUdp: 5\n"
    assert tcp_opens(text) == 7
