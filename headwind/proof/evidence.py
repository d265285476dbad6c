"""Measurements of one trial's network, as stored with the proof. Pure data.

Stored as JSON with every trial: a field without a default needs a new SCHEMA_VERSION of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from impair.messages import (
    ContainerCounters,
    EndpointCounters,
    NetemState,
    Processors,
    RouterCounters,
    TrainSeen,
    gained,
)
from impair.profile import Direction

OUTSIDE = "router's container"  # the container around a router that runs its own kernel
Fingerprint = dict[str, str]  # topic -> text (impair/fingerprint.py)
WindowSizes = dict[str, int | None]  # limits of a program, in bytes


@dataclass(frozen=True, slots=True)
class Train(TrainSeen):
    """Arrivals of a train, and the number of datagrams sent; for a bulk train also the rates of every train sent."""

    sent: int = 0
    rates_bps: list[float | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Trains:
    """Trains that a direction's receiver saw before the client started: probes and, if there is a rate, bulk."""

    probe: Train
    bulk: Train | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Probes that were repeated because they did not match the request."""

    why: list[str]
    trains: dict[Direction, Trains]


@dataclass(frozen=True, slots=True)
class Moment:
    """Counters of all hosts, read in this order: sent frames, the router's, received frames."""

    client: EndpointCounters
    server: EndpointCounters
    router: RouterCounters
    outside: Annotated[ContainerCounters | None, Field(alias=OUTSIDE)] = None
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)  # of the hosts; only after the client's run

    def endpoint(self, side: str) -> EndpointCounters:
        """Counters of "client" or "server"."""
        return self.client if side == "client" else self.server

    def gaps_s(self) -> dict[str, float]:
        """The longest time in which each host did not run, by host."""
        return {
            "client": self.client.largest_gap_s, "server": self.server.largest_gap_s,
            "router": self.router.largest_gap_s,
        }  # fmt: skip

    def with_gaps_of(self, earlier: Moment) -> Moment:
        """Copy with the longer gap of both moments for each host."""
        gaps = {host: max(gap_s, earlier.gaps_s()[host]) for host, gap_s in self.gaps_s().items()}
        return replace(
            self,
            client=replace(self.client, largest_gap_s=gaps["client"]),
            server=replace(self.server, largest_gap_s=gaps["server"]),
            router=replace(self.router, largest_gap_s=gaps["router"]),
        )

    def processors(self) -> dict[str, Processors]:
        """CPU times by host."""
        found = {"client": self.client.processors, "server": self.server.processors, "router": self.router.processors}
        return {**found, **({OUTSIDE: self.outside.processors} if self.outside else {})}


@dataclass(frozen=True, slots=True)
class TcpSockets:
    """The congestion control requested for TCP, and that of both ends' sockets while the client ran."""

    asked: str
    client: list[str]
    server: list[str]

    def seen(self) -> dict[str, list[str]]:
        """Congestion controls by side, each once; a side without sampled connections is absent."""
        return {side: sorted({*names}) for side, names in (("client", self.client), ("server", self.server)) if names}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All data behind a proof: netem's read-back, counters before and after the client's run, and the trains.

    `joined` are the hosts' fingerprints at the start, `windows` those that "server" and "client" had.
    """

    configured: dict[Direction, NetemState]
    before: Moment
    after: Moment
    trains: dict[Direction, Trains] = field(default_factory=dict)
    joined: dict[str, Fingerprint] = field(default_factory=dict)
    windows: dict[str, WindowSizes] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)
    congestion: TcpSockets | None = None  # of the trial's connections; None over QUIC

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """Inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        return _EVIDENCE.validate_python(data)

    def to_json(self) -> dict[str, Any]:
        """JSON data to store with the proof; None is left out."""
        written: dict[str, Any] = _EVIDENCE.dump_python(self, mode="json", by_alias=True, exclude_none=True)
        return written

    def sent(self, direction: Direction) -> int:
        """Frames that left the sending end while the client ran."""
        before, after = (moment.endpoint(direction.sender) for moment in (self.before, self.after))
        return after.tx_frames - before.tx_frames

    def entered(self, direction: Direction) -> int:
        """Frames that entered the router while the client ran."""
        before, after = (moment.router.ports[direction.sender] for moment in (self.before, self.after))
        return after.rx_frames - before.rx_frames

    def left(self, direction: Direction) -> int:
        """Frames that left the router while the client ran."""
        before, after = (moment.router.ports[direction.receiver] for moment in (self.before, self.after))
        return after.tx_frames - before.tx_frames

    def arrived(self, direction: Direction) -> EndpointCounters:
        """Growth of the receiving end's counters while the client ran."""
        return self.grown(direction.receiver)

    def grown(self, side: str) -> EndpointCounters:
        """Growth of the counters of "client" or "server" while the client ran."""
        return gained(self.before.endpoint(side), self.after.endpoint(side))


_EVIDENCE = TypeAdapter(Evidence)
