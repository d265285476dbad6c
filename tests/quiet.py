"""What agents answer while nothing happens, as JSON: every count is 0 and nothing is odd. For tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from impair.messages import DecisionCounters, EndpointCounters, NetemCounters, PortFrames, TcpCounters
from impair.profile import Direction, Link

ALL_QUIET: dict[str, Any] = {"processors": {"clock_s": 0.0}, "largest_gap_s": 0.0}
COUNTS = tuple(item.name for item in fields(EndpointCounters) if item.name not in (*ALL_QUIET, "tcp"))
NETEM = tuple(item.name for item in fields(DecisionCounters))
NEW_IN_7_2 = NETEM[len(fields(NetemCounters)) :]


def endpoint(**counts: Any) -> dict[str, Any]:
    """An EndpointCounters."""
    tcp = dict.fromkeys((item.name for item in fields(TcpCounters)), 0)
    return {**dict.fromkeys(COUNTS, 0), **ALL_QUIET, "tcp": tcp, **counts}


def netem(link: Link | Mapping[str, Any], seed: int | None = 1, **counts: int) -> dict[str, Any]:
    """A NetemState of kernel 7.2 or later."""
    read = link.to_json() if isinstance(link, Link) else dict(link)
    return {"link": read, "limit": 1000, "seed": seed, "counters": {**dict.fromkeys(NETEM, 0), **counts}}


def router(states: Mapping[Direction, Mapping[str, Any]]) -> dict[str, Any]:
    """A RouterCounters with these NetemStates."""
    ports = {side: dict.fromkeys((item.name for item in fields(PortFrames)), 0) for side in ("client", "server")}
    return {**{direction.value: dict(state) for direction, state in states.items()}, **ALL_QUIET, "ports": ports,
            "rx_while_read": {"client": 0, "server": 0}}  # fmt: skip


def moment(states: Mapping[Direction, Mapping[str, Any]]) -> dict[str, Any]:
    """A Moment with these NetemStates."""
    return {"client": endpoint(), "server": endpoint(), "router": router(states)}


def train(sent: int, delays_s: Sequence[float] = (), rate_bps: float | None = None, **seen: Any) -> dict[str, Any]:
    """A Train of which as many datagrams arrived as there are delays, unless `seen` says otherwise; a steady one."""
    rate = {"rate_bps": rate_bps, "pairs": 50, "agreeing": 50 if rate_bps else 0}
    usual = {
        "sent": sent, "received": len(delays_s), "unique": len(delays_s), "inversions": 0, "sequences": [],
        "sources": [], "delays_s": list(delays_s), "arrivals_s": [], "rate": rate,
    }  # fmt: skip
    return {**usual, **seen}
