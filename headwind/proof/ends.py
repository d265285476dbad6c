"""Checks and counts of both ends of a trial: congestion control, server, frames and TCP's retransmissions. Pure.

A check of both directions is listed with the downlink.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwind.metric import (
    FAST_RETRANSMITS,
    LOSS_PROBES,
    PACKET_GAP,
    RETRANSMITS,
    RTOS,
    SPURIOUS_RETRANSMITS,
    SPURIOUS_RTOS,
    SYN_RETRANSMITS,
    WIRE_BYTES,
    WIRE_DOWN_BYTES,
    WIRE_PACKETS,
    Workload,
)
from headwind.model import Check
from headwind.proof.evidence import Evidence, TcpSockets
from impair.messages import Answers
from impair.profile import Direction


def check_congestion(sockets: TcpSockets | None) -> Iterator[Check]:
    """Check that no TCP socket had another congestion control than its arm requested; over QUIC there is none.

    The routes of both ends carry it, and are read back when it is set and again after the client ran (the fingerprint's
    topic "congestion"). `sockets` are those established while it ran: others may not have taken the route's yet. A
    connection that was too short to be sampled proves nothing, and is not a fault.
    """
    if sockets is None:
        return
    seen = sockets.seen()
    others = [name for names in seen.values() for name in names if name != sockets.asked]
    names_seen = ", ".join(f"{side} {' and '.join(names)}" for side, names in seen.items()) or "no connection sampled"
    measured = float(len(others)) if seen else None
    note = f"TCP sockets: {names_seen}; requested {sockets.asked}"
    yield Check(Direction.DOWNLINK, "other_congestion", 0.0, None, measured, 0.0, not others, note)


CLOCK_S = 0.001  # nginx's clock has whole milliseconds: a wait may appear one shorter
LATE_S = 0.010  # what a busy machine may add, in the median


def check_served(
    workload: Workload, served: Answers | None, answered: int, workers: int, busy_s: float = 0.0
) -> Iterator[Check]:
    """Check the server's processes, and the delay of each answer by its log, against the workload's request.

    `busy_s` is the CPU time in seconds that the server used in the trial: simultaneous requests wait for it too. One
    worker is the default: it is only listed if the number differs.
    """
    if workload.workers != 1 or workers != 1:
        wanted, seen = float(workload.workers), float(workers)
        note = "processes of nginx when the client started"
        yield Check(Direction.DOWNLINK, "workers", wanted, None, seen, 0.0, wanted == seen, note)
    if workload.server_delay_s and served:
        yield _check_delay(workload.server_delay_s, served, answered, LATE_S + busy_s)


def _check_delay(wanted_s: float, served: Answers, answered: int, late_s: float) -> Check:
    """Check that every answer waited, none for less than requested, and half of them for at most `late_s` more.

    `answered` are those that the client counted: the log has at least as many. Without any, there is nothing to check.
    """
    shortest_s, median_s, longest_s = served.shortest_wait_s, served.median_wait_s, served.longest_wait_s
    if shortest_s is None or median_s is None or longest_s is None:
        all_waited, note = answered == served.count == 0, f"no answer waited; the client counted {answered}"
    else:
        all_waited = served.waited == served.count >= answered and shortest_s > wanted_s - CLOCK_S - 1e-6
        all_waited = all_waited and median_s <= wanted_s + late_s
        note = (
            f"{served.waited} of {served.count} answers waited, {shortest_s * 1000:.0f} to {longest_s * 1000:.0f} ms, "
            f"by the server's log; the client counted {answered}"
        )
    return Check(Direction.DOWNLINK, "server_delay_s", wanted_s, None, median_s, late_s, all_waited, note)


_TCP = {
    RTOS: "rtos", FAST_RETRANSMITS: "fast_retransmits", LOSS_PROBES: "loss_probes", SYN_RETRANSMITS: "syn_retransmits",
    SPURIOUS_RTOS: "spurious_rtos", SPURIOUS_RETRANSMITS: "spurious_retransmits",
}  # fmt: skip


def wire(evidence: Evidence, packet_gap_max_s: float, *, over_tcp: bool) -> dict[str, float]:
    """Frames and bytes that both ends sent while the client ran, by metric; `packet_gap_max_s` is that of the client.

    TCP's counts are only included for a trial over TCP: over QUIC they are 0 for any loss. Counts that a kernel does
    not report are absent.
    """
    ends = [evidence.grown(side) for side in ("client", "server")]
    found: dict[str, float] = {
        WIRE_PACKETS.key: sum(end.tx_frames for end in ends),
        WIRE_BYTES.key: sum(end.tx_bytes for end in ends),
        WIRE_DOWN_BYTES.key: ends[1].tx_bytes,
        PACKET_GAP.key: round(packet_gap_max_s, 6),
    }
    if over_tcp:
        found[RETRANSMITS.key] = sum(end.tcp_retrans_segs for end in ends)
        counts = [end.tcp for end in ends if end.tcp]
        if len(counts) == len(ends):
            found |= {metric.key: sum(getattr(tcp, name) for tcp in counts) for metric, name in _TCP.items()}
    return found
