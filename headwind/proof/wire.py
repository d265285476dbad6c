"""Counts what a trial took of the network, and what TCP sent again in it. Pure: counters in, metrics out."""

from __future__ import annotations

from headwind.metric import (
    FAST_RESENT,
    LOSS_PROBES,
    NEEDLESS,
    RESENT,
    SILENCE,
    SPURIOUS,
    SYN_RESENT,
    TIMEOUTS,
    WIRE_BYTES,
    WIRE_DOWN_BYTES,
    WIRE_PACKETS,
)
from headwind.proof.evidence import Evidence

_TCP = {
    TIMEOUTS: "timeouts", FAST_RESENT: "fast_resent", LOSS_PROBES: "loss_probes", SYN_RESENT: "syn_resent",
    SPURIOUS: "spurious_timeouts", NEEDLESS: "needless",
}  # fmt: skip


def wire(evidence: Evidence, silence_s: float, *, over_tcp: bool) -> dict[str, float]:
    """What both ends sent while the client ran, by metric; `silence_s` is the client's longest time without a frame.

    TCP's counts only of a trial over TCP: over QUIC they are 0 whatever was lost. Those that a kernel does not tell
    are absent.
    """
    ends = [evidence.grown(side) for side in ("client", "server")]
    found: dict[str, float] = {
        WIRE_PACKETS.key: sum(end.tx_frames for end in ends),
        WIRE_BYTES.key: sum(end.tx_bytes for end in ends),
        WIRE_DOWN_BYTES.key: ends[1].tx_bytes,
        SILENCE.key: round(silence_s, 6),
    }
    if over_tcp:
        found[RESENT.key] = sum(end.tcp_retrans_segs for end in ends)
        told = [end.tcp for end in ends if end.tcp]
        if len(told) == len(ends):
            found |= {metric.key: sum(getattr(tcp, name) for tcp in told) for metric, name in _TCP.items()}
    return found
