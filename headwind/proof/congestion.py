"""Checks that the TCP connections of a trial used the congestion control that its arm asked for. Pure.

The routes of both ends carry it, and are read back when it is set and again after the client ran (the fingerprint's
topic "congestion"). Here is what established sockets had while it ran: others may not have taken the route's yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwind.model import Check
from headwind.proof.evidence import TcpSockets
from impair.profile import Direction


def check_congestion(sockets: TcpSockets | None) -> Iterator[Check]:
    """No socket had another one than was asked for; over QUIC there are none to look at.

    The check stands with the downlink, as does all that concerns both directions. A connection that was too short to
    be seen proves nothing, and is no fault.
    """
    if sockets is None:
        return
    seen = sockets.seen()
    others = [name for names in seen.values() for name in names if name != sockets.asked]
    said = ", ".join(f"{side} {' and '.join(names)}" for side, names in seen.items()) or "no connection was seen"
    measured = float(len(others)) if seen else None
    note = f"sockets of TCP: {said}; asked {sockets.asked}"
    yield Check(Direction.DOWNLINK, "other_congestion", 0.0, None, measured, 0.0, not others, note)
