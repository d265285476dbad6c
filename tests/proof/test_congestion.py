"""Whose sockets had another congestion control than the arm asked for has no proof."""

from __future__ import annotations

import pytest

from headwind.proof.congestion import check_congestion
from headwind.proof.evidence import TcpSockets


@pytest.mark.parametrize(
    ("sockets", "passed", "measured", "word"),
    [
        (TcpSockets("bbr", ["bbr"], ["bbr", "bbr"]), True, 0.0, "client bbr, server bbr; asked bbr"),
        (TcpSockets("bbr", ["bbr"], ["bbr", "cubic"]), False, 1.0, "server bbr and cubic; asked bbr"),
        (TcpSockets("cubic", ["bbr"], ["bbr"]), False, 2.0, "asked cubic"),
        (TcpSockets("bbr", [], ["bbr"]), True, 0.0, "sockets of TCP: server bbr"),
        (TcpSockets("bbr", [], []), True, None, "no connection was seen"),
    ],
)
def test_every_socket_that_was_seen_counts(
    sockets: TcpSockets, passed: bool, measured: float | None, word: str
) -> None:
    (check,) = check_congestion(sockets)
    assert (check.passed, check.measured) == (passed, measured)
    assert word in check.note


def test_over_quic_there_is_nothing_to_check() -> None:
    assert list(check_congestion(None)) == []
