"""Checks and counts of both ends: congestion control of each socket, the server's log, frames and retransmissions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwind.metric import PACKET_GAP, RETRANSMITS, RTOS, SYN_RETRANSMITS, WIRE_BYTES, WIRE_PACKETS
from headwind.model import Check
from headwind.proof.ends import LATE_S, check_congestion, check_served, wire
from headwind.proof.evidence import Evidence, TcpSockets
from headwind.workloads.transfer import Transfer
from impair.messages import Answers
from impair.profile import Direction, Link
from tests import quiet


@pytest.mark.parametrize(
    ("sockets", "passed", "measured", "word"),
    [
        (TcpSockets("bbr", ["bbr"], ["bbr", "bbr"]), True, 0.0, "client bbr, server bbr; requested bbr"),
        (TcpSockets("bbr", ["bbr"], ["bbr", "cubic"]), False, 1.0, "server bbr and cubic; requested bbr"),
        (TcpSockets("cubic", ["bbr"], ["bbr"]), False, 2.0, "requested cubic"),
        (TcpSockets("bbr", [], ["bbr"]), True, 0.0, "TCP sockets: server bbr"),
        (TcpSockets("bbr", [], []), True, None, "no connection sampled"),
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


SLOW = Transfer("slow", 1, 1, 1, path="/bytes/1000", server_delay_s=0.03)
WAITED = Answers(60, 0, 0, 0, 60, 0.030, 0.031, 0.050)


def checked(served: Answers, succeeded: int = 60, busy_s: float = 0.0) -> Check:
    (check,) = check_served(SLOW, served, succeeded, 1, busy_s)
    return check


def test_answers_that_all_waited_pass() -> None:
    check = checked(WAITED)
    assert check.passed
    assert (check.quantity, check.requested, check.measured) == ("server_delay_s", 0.03, 0.031)
    assert check.note == "60 of 60 answers waited, 30 to 50 ms, by the server's log; the client counted 60"
    assert checked(replace(WAITED, shortest_wait_s=0.029)).passed, "a millisecond is what nginx's clock can show"
    assert checked(WAITED, succeeded=58).passed, "two were lost on the way"


@pytest.mark.parametrize(
    "served",
    [
        replace(WAITED, shortest_wait_s=0.028),
        replace(WAITED, median_wait_s=0.031 + LATE_S),
        replace(WAITED, waited=59),
        replace(WAITED, count=59, waited=59),
        Answers(60, 0, 0, 0, 0),
        Answers(0, 0, 0, 0, 0),
    ],
)
def test_one_that_did_not_or_that_nobody_logged_fails(served: Answers) -> None:
    assert not checked(served).passed


def test_requests_that_come_at_once_wait_for_the_servers_work_and_for_no_more() -> None:
    crowded = replace(WAITED, median_wait_s=0.060, longest_wait_s=0.080)
    assert not checked(crowded).passed
    assert checked(crowded, busy_s=0.021).passed
    assert not checked(crowded, busy_s=0.019).passed
    assert not checked(replace(crowded, shortest_wait_s=0.028), busy_s=0.021).passed


def test_without_an_answer_there_is_nothing_to_check() -> None:
    check = checked(Answers(0, 3, 0, 0, 0), succeeded=0)
    assert check.passed
    assert check.measured is None


def test_without_a_delay_nothing_is_checked() -> None:
    assert list(check_served(replace(SLOW, server_delay_s=0.0), WAITED, 60, 1)) == []


def test_the_server_has_the_workers_that_were_asked_for() -> None:
    two = replace(SLOW, server_delay_s=0.0, workers=2)
    for asked, seen, passed in ((two, 2, True), (two, 1, False), (replace(two, workers=1), 2, False)):
        (check,) = check_served(asked, None, 60, seen)
        assert (check.quantity, check.requested, check.measured) == ("workers", asked.workers, seen)
        assert check.passed == passed
    assert list(check_served(replace(two, workers=1), None, 60, 1)) == [], "what is usual is no line of the proof"


TCP = {
    "rtos": 3,
    "fast_retransmits": 5,
    "loss_probes": 2,
    "syn_retransmits": 1,
    "spurious_rtos": 1,
    "spurious_retransmits": 4,
}


def evidence(**changes: dict[str, Any]) -> Evidence:
    """Counters that stood at 100 and then grew by what is named, by side."""
    before, after = ({side: quiet.endpoint() for side in ("client", "server")} for _ in range(2))
    for side, grown in changes.items():
        for name, more in grown.items():
            before[side][name] = dict.fromkeys(more, 100) if isinstance(more, dict) else 100
            after[side][name] = (
                {key: 100 + each for key, each in more.items()} if isinstance(more, dict) else 100 + more
            )
    states = {direction: quiet.netem(Link()) for direction in Direction}
    moments = [{**ends, "router": quiet.router(states)} for ends in (before, after)]
    return Evidence.from_json({"configured": states, "before": moments[0], "after": moments[1]})


def test_both_ends_are_added_up_over_the_clients_run() -> None:
    found = wire(
        evidence(
            client={"tx_frames": 10, "tx_bytes": 1000, "tcp_retrans_segs": 2, "tcp": TCP},
            server={"tx_frames": 20, "tx_bytes": 30_000, "tcp_retrans_segs": 7, "tcp": TCP},
        ),
        0.25,
        over_tcp=True,
    )
    assert [found[metric.key] for metric in (WIRE_PACKETS, WIRE_BYTES, RETRANSMITS, PACKET_GAP)] == [
        30,
        31_000,
        9,
        0.25,
    ]
    assert (found[RTOS.key], found[SYN_RETRANSMITS.key]) == (6, 2)
    assert {key: value for key, value in found.items() if key.startswith("tcp_")}.keys() == {
        "tcp_retransmits", "tcp_rtos", "tcp_fast_retransmits", "tcp_loss_probes", "tcp_syn_retransmits",
        "tcp_spurious_rtos", "tcp_spurious_retransmits",
    }  # fmt: skip


def test_over_quic_tcp_counted_nothing_so_nothing_is_said_of_it() -> None:
    found = wire(evidence(client={"tx_frames": 10, "tcp": TCP}), 0.1, over_tcp=False)
    assert not [key for key in found if key.startswith("tcp_")]
    assert found[WIRE_PACKETS.key] == 10


def test_what_a_kernel_does_not_tell_is_absent_and_not_zero() -> None:
    told = evidence(client={"tx_frames": 10}).to_json()
    for moment in ("before", "after"):
        del told[moment]["server"]["tcp"]
    found = wire(Evidence.from_json(told), 0.1, over_tcp=True)
    assert RTOS.key not in found
    assert found[RETRANSMITS.key] == 0
