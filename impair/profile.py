"""Data classes of the network: the impairments of each direction of the path.

Everything is a frozen dataclass in SI units (seconds, bit/s, ratios from 0 to 1). A value that netem would clip, round
to zero or ignore is refused when the object is made, so a `Link` that exists can be applied as written. Standard
library only: this file also runs inside the router and inside the user-mode kernel.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from itertools import count, pairwise
from typing import Any

from impair import bounds
from impair.bounds import LARGEST_COUNT, SMALLEST_RATIO, ImpossibleImpairment, check_count, check_ratio, check_time
from impair.distribution import DISTRIBUTION_REACH, clipping
from impair.queues import KINDS, Cake, Queue, Red, kind_of
from impair.trace import Trace

FRAME_BYTES = bounds.FRAME_BYTES
LARGEST_JITTER_S = (2**31 - 1) / 1e9  # netem caps a jitter, which it keeps in 32 bits of ns, silently
HEADER_BYTES = 14 + 20 + 8  # Ethernet, IPv4 and UDP around a payload
SMALLEST_FRAME_BYTES = HEADER_BYTES  # also an ARP frame: no frame of the testbed is shorter
LARGEST_OVERHEAD_BYTES = 65535
DEFAULT_LIMIT_PACKETS = 100_000  # without a rate: the delay line must never drop
DEFAULT_QUEUE_S = 0.1  # with a rate: a queue of 100 ms ...
SMALLEST_QUEUE_PACKETS = 20  # ... and never less than this
# Ephemeral ports are 32768 to 60999 (net.ipv4.ip_local_port_range): those after a rebinding lack the highest bit, so
# that no new port is an old one of another connection, and the way back is the same.
PORT_BIT = 0x8000
SHORTEST_SPAN_S = 0.01  # between two changes of a direction: a busy router is up to 2 ms late with each
SHORTEST_MEAN_S = 4 * SHORTEST_SPAN_S  # of good and bad spells, so that nearly all of their spread is left
BURSTS_BY_PACKETS = "counted in packets: loss: {gemodel: {p: 1%, r: 20%}}, in which 1/r packets are a burst"
SLOWEST_RED_BPS = 900_000  # below, the idle times that the kernel's RED forgets in do not fit into its table
NO_RATE = "a queue needs a rate: without one no packet waits"


class Direction(StrEnum):
    """The direction of traffic: uplink is client to server, downlink is server to client."""

    UPLINK = "uplink"
    DOWNLINK = "downlink"

    @property
    def other(self) -> Direction:
        """The opposite direction."""
        return Direction.DOWNLINK if self is Direction.UPLINK else Direction.UPLINK

    @property
    def sender(self) -> str:
        """The end that sends: "client" or "server"."""
        return "client" if self is Direction.UPLINK else "server"

    @property
    def receiver(self) -> str:
        """The end that receives; the direction's netem is on the router's port towards it."""
        return "server" if self is Direction.UPLINK else "client"


@dataclass(frozen=True, slots=True)
class Delay:
    """Every packet is held for delay_s, give or take jitter_s (reorders packets, unless netem itself has a rate)."""

    delay_s: float
    jitter_s: float = 0.0
    distribution: str = "uniform"

    def __post_init__(self) -> None:
        check_time("delay", self.delay_s)
        check_time("jitter", self.jitter_s)
        if self.jitter_s > LARGEST_JITTER_S:
            raise ImpossibleImpairment("jitter", f"{self.jitter_s:g} s is above {LARGEST_JITTER_S:.3f} s, the largest")
        if self.distribution not in DISTRIBUTION_REACH:
            raise ImpossibleImpairment("distribution", f"{self.distribution!r} is none of {[*DISTRIBUTION_REACH]}")
        if self.jitter_s == 0 and self.distribution != "uniform":
            raise ImpossibleImpairment("distribution", "a distribution without jitter does nothing")
        if clipped := clipping(self.distribution, self.jitter_s, self.delay_s):
            raise ImpossibleImpairment("jitter", *clipped)


@dataclass(frozen=True, slots=True)
class Loss:
    """Every packet is dropped with probability `ratio`, independently."""

    ratio: float

    def __post_init__(self) -> None:
        check_ratio("loss", self.ratio)


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Bursty loss: a good and a bad state (Gilbert 1960, Elliott 1963), entered with p and left with r per packet."""

    p: float  # good -> bad
    r: float  # bad -> good
    bad_loss: float = 1.0  # loss ratio in the bad state (tc's 1-h)
    good_loss: float = 0.0  # loss ratio in the good state (tc's 1-k)

    def __post_init__(self) -> None:
        for item in fields(self):
            check_ratio(f"loss.gemodel.{item.name}", getattr(self, item.name))
        if self.p == 0:
            raise ImpossibleImpairment("loss.gemodel.p", "0 % never enters the bad state")
        if self.r == 0:
            raise ImpossibleImpairment("loss.gemodel.r", "0 % never leaves the bad state")
        if self.bad_loss == 0 and self.good_loss == 0:
            raise ImpossibleImpairment("loss.gemodel.bad_loss", "with 0 % in both states no packet is ever lost")


# Loses the next packet and no other: the chain begins good, turns bad with that packet, and stays so without a loss.
NEXT_PACKET = GilbertElliott(p=1.0, r=SMALLEST_RATIO, bad_loss=0.0, good_loss=1.0)


@dataclass(frozen=True, slots=True)
class FourState:
    """tc's 4-state Markov loss (S1 good, S2 good within a burst, S3 burst loss, S4 isolated loss)."""

    p13: float
    p31: float
    p32: float = 0.0
    p23: float = 1.0
    p14: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            check_ratio(f"loss.state.{item.name}", getattr(self, item.name))
        for first, second in (("p13", "p14"), ("p31", "p32")):
            total = getattr(self, first) + getattr(self, second)
            if total > 1:
                raise ImpossibleImpairment(f"loss.state.{first}", f"{first} + {second} = {total:.4g} is above 100 %")
        if self.p13 == 0 and self.p14 == 0:
            raise ImpossibleImpairment("loss.state.p13", "with p13 and p14 at 0 % no packet is ever lost")
        if self.p13 > 0 and self.p31 == 0:  # the only way out: S2 leads back to S3 and nowhere else
            raise ImpossibleImpairment("loss.state.p31", "0 % never leaves the burst")
        if self.p13 > 0 and self.p32 > 0 and self.p23 == 0:
            raise ImpossibleImpairment("loss.state.p23", "0 % stays in S2 for ever: no loss after one burst")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Every packet is sent a second time with probability `ratio`."""

    ratio: float

    def __post_init__(self) -> None:
        check_ratio("duplicate", self.ratio)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A random bit of a packet is flipped with probability `ratio`."""

    ratio: float

    def __post_init__(self) -> None:
        check_ratio("corrupt", self.ratio)


@dataclass(frozen=True, slots=True)
class Reorder:
    """After gap - 1 delayed packets, the next one skips the delay with probability `ratio`."""

    ratio: float
    gap: int = 1

    def __post_init__(self) -> None:
        check_ratio("reorder", self.ratio)
        check_count("reorder.gap", self.gap, 1)


@dataclass(frozen=True, slots=True)
class Rate:
    """Packets leave one after another at rate_bps; netem's own link model with per-packet and per-cell overhead."""

    rate_bps: int
    packet_overhead: int = 0  # bytes added to each packet; may be negative
    cell_size: int = 0  # bytes of one link-layer cell; 0 is no cells
    cell_overhead: int = 0  # bytes added to each cell; may be negative

    def __post_init__(self) -> None:
        if self.rate_bps < 8 or self.rate_bps % 8 or self.rate_bps >= 2**66:
            raise ImpossibleImpairment(
                "rate", f"{self.rate_bps} bit/s is not a whole number of bytes/s above zero",
                "" if self.rate_bps else "for a link without a limit remove the key, for an outage write `loss: 100%`",
            )  # fmt: skip
        if not -SMALLEST_FRAME_BYTES <= self.packet_overhead <= LARGEST_OVERHEAD_BYTES:  # below: a length wraps round
            between = f"between {-SMALLEST_FRAME_BYTES} and {LARGEST_OVERHEAD_BYTES}"
            raise ImpossibleImpairment("rate.packet_overhead", f"{self.packet_overhead} bytes is not {between}")
        check_count("rate.cell_size", self.cell_size, 0)
        if self.cell_overhead and not self.cell_size:
            raise ImpossibleImpairment("rate.cell_overhead", "a cell overhead needs a cell_size")
        if self.cell_overhead > LARGEST_OVERHEAD_BYTES:
            raise ImpossibleImpairment("rate.cell_overhead", f"{self.cell_overhead} is above {LARGEST_OVERHEAD_BYTES}")
        if self.cell_size and self.cell_size + self.cell_overhead <= 0:
            raise ImpossibleImpairment("rate.cell_overhead", "a cell cannot be smaller than its overhead")


@dataclass(frozen=True, slots=True)
class Slot:
    """Packets are collected and leave together in slots that are min_delay_s to max_delay_s apart."""

    min_delay_s: float
    max_delay_s: float
    max_packets: int = 0  # 0: no bound
    max_bytes: int = 0

    def __post_init__(self) -> None:
        check_time("slot.min_delay", self.min_delay_s)
        check_time("slot.max_delay", self.max_delay_s)
        if self.max_delay_s < self.min_delay_s or self.max_delay_s == 0:
            raise ImpossibleImpairment("slot.max_delay", "must be above zero and not below min_delay")
        if self.max_delay_s - self.min_delay_s > LARGEST_JITTER_S:  # kernels before 7 multiply it by 2^32 in 64 bits
            raise ImpossibleImpairment("slot.max_delay", f"more than {LARGEST_JITTER_S:.3f} s above min_delay")
        check_count("slot.max_packets", self.max_packets, 0)
        check_count("slot.max_bytes", self.max_bytes, 0)


LossModel = Loss | GilbertElliott | FourState
_PARTS: dict[str, Any] = {"delay": Delay, "duplicate": Duplicate, "corrupt": Corrupt, "reorder": Reorder, "rate": Rate,
          "slot": Slot}  # fmt: skip
_LOSS_MODELS: dict[str, type[LossModel]] = {"random": Loss, "gemodel": GilbertElliott, "state": FourState}


@dataclass(frozen=True, slots=True)
class Link:
    """All impairments of one direction. An empty Link is a clean one; `None` is an impairment that is not there."""

    delay: Delay | None = None
    loss: LossModel | None = None
    duplicate: Duplicate | None = None
    corrupt: Corrupt | None = None
    reorder: Reorder | None = None
    rate: Rate | None = None
    slot: Slot | None = None
    ecn: bool = False  # mark instead of drop, for packets that allow it
    limit_packets: int | None = None  # delay line and queue together; None: `limit` computes it
    queue_packets: int | None = None  # with a rate: how many packets may wait for it
    queue: Queue | None = None  # with a rate: a separate bottleneck before netem, which then has no rate

    def __post_init__(self) -> None:
        if self.reorder and self.reorder.ratio and (not self.delay or self.delay.delay_s == 0):
            raise ImpossibleImpairment("reorder", "reordering needs a delay: netem sends packets ahead of delayed ones")
        if self.ecn and not self.loss:
            raise ImpossibleImpairment("ecn", "ecn marks packets that loss would drop: it needs a loss")
        if self.limit_packets is not None:
            check_count("limit", self.limit_packets, 1)
            if self.queue_packets is not None:
                raise ImpossibleImpairment("queue", "give queue or limit, not both: limit is delay line plus queue")
        if self.queue_packets is not None:
            check_count("queue", self.queue_packets, 1)
            if not self.rate:
                raise ImpossibleImpairment("queue", NO_RATE)
        if self.queue:
            self._check_bottleneck()
        if self.limit > LARGEST_COUNT:
            held = f"rate and delay together hold {self.limit} packets, netem {LARGEST_COUNT}"
            raise ImpossibleImpairment("limit", held)

    def _check_bottleneck(self) -> None:
        if not self.rate:
            raise ImpossibleImpairment("queue", NO_RATE)
        if self.limit_packets is not None or self.queue_packets is not None:
            raise ImpossibleImpairment("queue", "a queue with a kind has its own length: give no other one")
        if self.rate.packet_overhead or self.rate.cell_size:
            raise ImpossibleImpairment("queue", "a queue with a kind takes a plain rate, without overheads of a link")
        if isinstance(self.queue, Red) and self.rate.rate_bps < SLOWEST_RED_BPS:
            raise ImpossibleImpairment("queue.kind", f"red needs a rate of {SLOWEST_RED_BPS // 1000} kbit/s or more")

    @property
    def limit(self) -> int:
        """Packets that netem may hold, delay line and queue together (sch_netem counts both against `limit`).

        With a separate bottleneck before netem, only the delay line, which must never drop.
        """
        if self.limit_packets is not None:
            return self.limit_packets
        if self.rate is None:
            return DEFAULT_LIMIT_PACKETS
        packets_per_s = self.rate.rate_bps / 8 / FRAME_BYTES
        held_s = self.delay.delay_s + self.delay.jitter_s if self.delay else 0.0
        queue = self.queue_packets or max(SMALLEST_QUEUE_PACKETS, math.ceil(DEFAULT_QUEUE_S * packets_per_s))
        return math.ceil(held_s * packets_per_s) + (DEFAULT_LIMIT_PACKETS if self.queue else queue)

    @property
    def room(self) -> int:
        """Full frames that may wait for the rate, before the first is dropped because there are too many."""
        return self.queue.packets if self.queue else self.limit

    @property
    def jitters(self) -> bool:
        """True if the delay varies."""
        return self.delay is not None and self.delay.jitter_s > 0

    @property
    def jitters_in_order(self) -> bool:
        """True if it has a jitter that does not reorder packets, because netem itself has the rate.

        Then netem sends no packet before its predecessor (`time_to_send` of the last packet in the queue,
        netem_enqueue in net/sched/sch_netem.c): delays of packets that come close together are a running maximum. A
        separate bottleneck before netem has no such effect.
        """
        return self.jitters and self.rate is not None and self.queue is None

    @property
    def reorders(self) -> bool:
        """True if packets can be reordered: by jitter unless netem itself has the rate, or by `reorder`."""
        return (self.jitters and not self.jitters_in_order) or bool(self.reorder and self.reorder.ratio)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal Link; absent impairments are left out."""
        data = {key: value for key, value in asdict(self).items() if value not in (None, False)}
        if self.loss is not None:
            model = next(name for name, kind in _LOSS_MODELS.items() if type(self.loss) is kind)
            data["loss"] = {"model": model, **asdict(self.loss)}
        if self.queue is not None:
            data["queue"] = {"kind": kind_of(self.queue), **asdict(self.queue)}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Link:
        """Raises TypeError or KeyError for an unknown field, ImpossibleImpairment for an impossible value."""
        values = {key: _PARTS[key](**value) if key in _PARTS else value for key, value in data.items()}
        if "loss" in values:
            parameters = dict(values["loss"])
            values["loss"] = _LOSS_MODELS[parameters.pop("model")](**parameters)
        if "queue" in values:
            parameters = dict(values["queue"])
            values["queue"] = KINDS[parameters.pop("kind")](**parameters)
        return cls(**values)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> dict[str, Any]:
        """The pydantic schema of a Link on the host: its own JSON form."""
        function = {"type": "no-info", "function": cls.from_json}
        return {"type": "function-plain", "function": function,
                "serialization": {"type": "function-plain", "function": cls.to_json}}  # fmt: skip


def _rebinding_from_json(data: Mapping[str, Any] | None) -> Rebinding | None:
    return Rebinding(data["at_s"], Rebind(data["kind"])) if data else None


class Clock(StrEnum):
    """The start of the clock by which a network changes."""

    PACKET = "packet"  # the client's first packet
    TRIAL = "trial"  # just before the client's program starts


@dataclass(frozen=True, slots=True)
class Steps:
    """Changes of a direction: each of `links` begins at its moment; after `period_s` all begins again."""

    moments_s: tuple[float, ...]
    links: tuple[Link, ...]
    period_s: float | None = None

    def __post_init__(self) -> None:
        if not self.links or len(self.links) != len(self.moments_s):
            raise ImpossibleImpairment("at", "each moment needs a network, and each network a moment")
        for before, after in pairwise((0.0, *self.moments_s)):
            if not after - before > SHORTEST_SPAN_S - 1e-9:
                raise ImpossibleImpairment(
                    "at", f"{before:g} s and {after:g} s are closer together than {SHORTEST_SPAN_S * 1000:g} ms",
                    "a change that soon after another one would not be on time",
                )  # fmt: skip

        last_s, period_s = self.moments_s[-1], self.period_s
        if period_s is not None and not period_s - last_s > SHORTEST_SPAN_S - 1e-9:
            raise ImpossibleImpairment(
                "every", f"the changes start over after {period_s:g} s, and the last one is at {last_s:g} s",
                f"longer than the last moment, such as `every: {2 * last_s:g}s`",
            )  # fmt: skip

    def moments(self, seed: int) -> Iterator[float]:
        """The moments of all changes in s, without end if they repeat; they are the same for every seed."""
        del seed
        cycle_s = (*self.moments_s, *(() if self.period_s is None else (self.period_s,)))
        for cycle in count() if self.period_s is not None else range(1):
            yield from (cycle * (self.period_s or 0.0) + moment_s for moment_s in cycle_s)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `Profile.from_json` understands."""
        links = [link.to_json() for link in self.links]
        return {"moments_s": [*self.moments_s], "links": links, "period_s": self.period_s}


@dataclass(frozen=True, slots=True)
class Spells:
    """Good and bad spells of a direction in turn, of random length with these means; it begins with a good one.

    A length is SHORTEST_SPAN_S plus an exponential time: nearly memoryless, as in the models of Gilbert and Elliott,
    but clocked by time. The seed of the block determines all of them.
    """

    good_s: float
    bad_s: float
    bad: Link

    def __post_init__(self) -> None:
        for name in ("good", "bad"):
            mean_s: float = getattr(self, f"{name}_s")
            check_time(f"spells.{name}", mean_s)
            if mean_s < SHORTEST_MEAN_S:
                least = f"at least {SHORTEST_MEAN_S * 1000:g} ms on average; shorter bursts are {BURSTS_BY_PACKETS}"
                raise ImpossibleImpairment(f"spells.{name}", f"{mean_s * 1000:g} ms is too short for a spell", least)

    @property
    def links(self) -> tuple[Link, ...]:
        """The link of a bad spell."""
        return (self.bad,)

    def moments(self, seed: int) -> Iterator[float]:
        """The moments in s at which a spell ends, without end."""
        drawn, now_s = random.Random(seed), 0.0
        for turn in count():
            mean_s = self.bad_s if turn % 2 else self.good_s
            now_s += SHORTEST_SPAN_S + drawn.expovariate(1 / (mean_s - SHORTEST_SPAN_S))
            yield now_s

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `Profile.from_json` understands."""
        return {"good_s": self.good_s, "bad_s": self.bad_s, "bad": self.bad.to_json()}


Changes = Steps | Spells | Trace


def _changes_from_json(data: Mapping[str, Any]) -> Changes:
    if "frames" in data:
        return Trace.from_json(data)
    if "bad" in data:
        return Spells(data["good_s"], data["bad_s"], Link.from_json(data["bad"]))
    return Steps(tuple(data["moments_s"]), tuple(map(Link.from_json, data["links"])), data["period_s"])


class Rebind(StrEnum):
    """Part of a client's address that a rebinding changes, as the server sees it."""

    PORT = "port"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Rebinding:
    """A NAT that gives the client another address or port from a moment on; its packets to the old one are lost."""

    at_s: float
    kind: Rebind

    def __post_init__(self) -> None:
        check_time("at", self.at_s)


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of impairments for both directions; `clean` is an ordinary one.

    `uplink` and `downlink` are what it begins with, and all there is unless a direction has changes.
    """

    name: str
    uplink: Link = field(default_factory=Link)
    downlink: Link = field(default_factory=Link)
    uplink_changes: Changes | None = field(default=None, kw_only=True)
    downlink_changes: Changes | None = field(default=None, kw_only=True)
    clock: Clock = field(default=Clock.PACKET, kw_only=True)
    rebinding: Rebinding | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for direction in Direction:
            shapes = {link.delay.distribution for link in self.links(direction) if link.delay and link.delay.jitter_s}
            if len(shapes) > 1:
                message = f"the jitter of a direction cannot change its distribution ({' and '.join(sorted(shapes))})"
                raise ImpossibleImpairment("distribution", message, "netem cannot give a table back")
            self._check_queues(direction)

    def _check_queues(self, direction: Direction) -> None:
        """Refuse changes of a bottleneck that cannot be made in place: only tbf's rate can."""
        links = self.links(direction)
        if len({link.queue for link in links}) > 1:
            message = "a change cannot replace the queue of a bottleneck: its packets would be lost"
            raise ImpossibleImpairment("queue", message, "give all networks of the direction the same one")
        queue = links[0].queue
        if isinstance(queue, Cake | Red) and len({link.rate for link in links}) > 1:
            raise ImpossibleImpairment("queue.kind", f"{kind_of(queue)} depends on the rate, which changes here",
                                       "use fifo, fq_codel or pie")  # fmt: skip

    def link(self, direction: Direction) -> Link:
        """The Link with which one direction begins."""
        return self.uplink if direction is Direction.UPLINK else self.downlink

    def changes(self, direction: Direction) -> Changes | None:
        """The changes of one direction."""
        return self.uplink_changes if direction is Direction.UPLINK else self.downlink_changes

    def links(self, direction: Direction) -> tuple[Link, ...]:
        """The Links of one direction, in turn; of a trace the one before it starts, and that of its fastest step."""
        first, changes = self.link(direction), self.changes(direction)
        if isinstance(changes, Trace):
            return first, replace(first, rate=Rate(changes.peak_bps))
        return (first, *(changes.links if changes else ()))

    def trace(self, direction: Direction) -> Trace | None:
        """The rate trace of one direction."""
        changes = self.changes(direction)
        return changes if isinstance(changes, Trace) else None

    @property
    def is_steady(self) -> bool:
        """True if nothing changes during a trial."""
        return self.uplink_changes is None and self.downlink_changes is None and self.rebinding is None

    def after(self, direction: Direction, changes: int) -> Link:
        """The Link of one direction after a number of changes."""
        links = self.links(direction)
        return links[changes % len(links)]

    def moments(self, direction: Direction, seed: int) -> Iterator[float]:
        """The moments of a direction's changes in s since the clock's start."""
        changes = self.changes(direction)
        return changes.moments(seed) if changes else iter(())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal Profile."""
        steady = {"name": self.name, "uplink": self.uplink.to_json(), "downlink": self.downlink.to_json()}
        found = {direction.value: each.to_json() for direction in Direction if (each := self.changes(direction))}
        clock = {} if self.clock is Clock.PACKET else {"clock": self.clock.value}
        rebound = {"rebinding": {"at_s": self.rebinding.at_s, "kind": self.rebinding.kind}} if self.rebinding else {}
        return steady | ({"changes": found} if found else {}) | clock | rebound

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """Raises as `Link.from_json` does."""
        up, down = (Link.from_json(data[direction.value]) for direction in Direction)
        found = {key: _changes_from_json(each) for key, each in data.get("changes", {}).items()}
        return cls(
            data["name"], up, down, uplink_changes=found.get("uplink"), downlink_changes=found.get("downlink"),
            clock=Clock(data.get("clock", Clock.PACKET)), rebinding=_rebinding_from_json(data.get("rebinding")),
        )  # fmt: skip
