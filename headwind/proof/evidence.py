"""Measurements of one trial's network, as stored with the proof. Pure data.

Stored as JSON with every trial: a field without a default needs a new SCHEMA_VERSION of the journal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from impair.messages import (
    Carried,
    Competed,
    ContainerCounters,
    Course,
    EndpointCounters,
    NetemState,
    Processors,
    QueueCounters,
    RouterCounters,
    RouterReading,
    Traced,
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
    """Probes that did not match the request, and were then sent again."""

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


CHANGE = "change"  # the kind of a schedule's action that changes the network of a direction
REBIND = "rebind"  # the one that gives the client another address or port


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a trial, by the router's counters at its ends.

    `arrived`: growth of the receiving ends' counters meanwhile, by side; only known of a whole trial.
    """

    before: RouterReading
    after: RouterReading
    arrived: Mapping[str, EndpointCounters] = field(default_factory=dict)

    def entered(self, direction: Direction) -> int:
        """Frames that entered the router."""
        return self.after.ports[direction.sender].rx_frames - self.before.ports[direction.sender].rx_frames

    def admitted(self, direction: Direction) -> int:
        """Frames that entered the router, and that a rebinding did not drop before netem."""
        rebound = getattr(self.after, "rebound", None) if direction is Direction.DOWNLINK else None
        return self.entered(direction) - (rebound.dropped if rebound else 0)

    def queued(self, direction: Direction) -> QueueCounters | None:
        """Growth of the counters of a direction's bottleneck; None without a separate one."""
        before, after = self.before.netem(direction), self.after.netem(direction)
        if not (before and after and before.queue and after.queue):
            return None
        return gained(before.queue.counters, after.queue.counters)

    def offered(self, direction: Direction) -> int:
        """Frames that reached netem: that entered the router, or left its bottleneck."""
        queued = self.queued(direction)
        return queued.packets if queued else self.admitted(direction)

    def left(self, direction: Direction) -> int:
        """Frames that left the router."""
        return self.after.ports[direction.receiver].tx_frames - self.before.ports[direction.receiver].tx_frames


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch in which the network of a direction did not change; times in s since the start of the schedule's clock.

    `changes`: the number of changes before it. `configured`: its read-back. `until_s`: infinite for the only one.
    """

    changes: int
    from_s: float
    until_s: float
    configured: NetemState
    stretch: Stretch


@dataclass(frozen=True, slots=True)
class Evidence:
    """All data behind a proof: netem's read-back, counters before and after the client's run, and the trains.

    `joined` are the hosts' fingerprints at the start, `windows` those that "server" and "client" had. `course` is that
    of the schedule, if the network was to change, and `due` are the moments at which it was to, until the client ended.
    """

    configured: dict[Direction, NetemState]
    before: Moment
    after: Moment
    trains: dict[Direction, Trains] = field(default_factory=dict)
    joined: dict[str, Fingerprint] = field(default_factory=dict)
    windows: dict[str, WindowSizes] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)
    congestion: TcpSockets | None = None  # of the trial's connections; None over QUIC
    course: Course | None = None  # None: the network was not to change
    due: dict[Direction, list[float]] | None = None
    rebound: int | None = None  # packets from the new address or port that reached the server; None: no rebinding

    competed: Competed | None = None  # the competing downloads, if there were any

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

    @property
    def whole(self) -> Stretch:
        """The whole trial, while the client ran."""
        return Stretch(self.before.router, self.after.router, {side: self.grown(side) for side in ("client", "server")})

    def changes(self, direction: Direction) -> list[Carried]:
        """The changes of one direction, in their order; without one that failed."""
        carried = self.course.carried if self.course else []
        return [each for each in carried if each.kind == CHANGE and each.direction is direction and not each.error]

    def traced(self, direction: Direction) -> Traced | None:
        """The rate trace of one direction as it was replayed; None if there was none, or its clock did not start."""
        return next((each for each in (self.course.traced if self.course else []) if each.direction is direction), None)

    def spans(self, direction: Direction) -> list[Span]:
        """The spans of one direction: one, unless its network changed.

        The moment of a change lies in none: the packets that passed between the readings just before and just after it
        may have met either network.
        """
        changes = self.changes(direction)
        until_s = self.course.stopped_s if self.course and self.course.stopped_s is not None else math.inf
        begins: list[tuple[float, NetemState, RouterReading]] = []
        if direction in self.configured:
            begins.append((0.0, self.configured[direction], self.before.router))
        for each in changes:
            state = each.after.netem(direction)
            begins += [(each.done_s, state, each.after)] if state else []
        ends: list[tuple[float, RouterReading]] = [(each.began_s, each.before) for each in changes]
        ends.append((until_s, self.after.router))
        return [
            Span(number, from_s, end_s, state, Stretch(before, after))
            for number, ((from_s, state, before), (end_s, after)) in enumerate(zip(begins, ends, strict=False))
        ]

    def arrived(self, direction: Direction) -> EndpointCounters:
        """Growth of the receiving end's counters while the client ran."""
        return self.grown(direction.receiver)

    def grown(self, side: str) -> EndpointCounters:
        """Growth of the counters of "client" or "server" while the client ran."""
        return gained(self.before.endpoint(side), self.after.endpoint(side))


_EVIDENCE = TypeAdapter(Evidence)
