"""Data classes of the network: the impairments of each direction of the path.

Everything is a frozen dataclass in SI units (seconds, bit/s, ratios from 0 to 1). A value that netem would clip, round
to zero or ignore is refused when the object is made, so a `Link` that exists can be applied as written. Standard
library only: this file also runs inside the router and inside the user-mode kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from impair.distribution import DISTRIBUTION_REACH, clipping

FRAME_BYTES = 1514  # largest Ethernet frame of the testbed: 1500 bytes of MTU and 14 of header
SMALLEST_RATIO = 1 / (2**32 - 1)  # netem keeps probabilities as fractions of 2^32 - 1 (net/sched/sch_netem.c)
LARGEST_COUNT = 2**31 - 1
LARGEST_JITTER_S = (2**31 - 1) / 1e9  # netem caps a jitter, which it keeps in 32 bits of ns, silently
HEADER_BYTES = 14 + 20 + 8  # Ethernet, IPv4 and UDP around a payload
SMALLEST_FRAME_BYTES = HEADER_BYTES  # also an ARP frame: no frame of the testbed is shorter
LARGEST_OVERHEAD_BYTES = 65535
DEFAULT_LIMIT_PACKETS = 100_000  # without a rate: the delay line must never drop
DEFAULT_QUEUE_S = 0.1  # with a rate: a queue of 100 ms ...
SMALLEST_QUEUE_PACKETS = 20  # ... and never less than this


class Direction(StrEnum):
    """The direction of traffic: uplink is client to server, downlink is server to client."""

    UPLINK = "uplink"
    DOWNLINK = "downlink"

    @property
    def sender(self) -> str:
        """The end that sends: "client" or "server"."""
        return "client" if self is Direction.UPLINK else "server"

    @property
    def receiver(self) -> str:
        """The end that receives; the direction's netem is on the router's port towards it."""
        return "server" if self is Direction.UPLINK else "client"


class ImpossibleImpairment(ValueError):
    """A value that netem cannot apply as written. `where` names the field, `hint` a possible value."""

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.where, self.hint = where, hint


def _check_ratio(where: str, ratio: float) -> None:
    if not 0 <= ratio <= 1:
        raise ImpossibleImpairment(where, f"{ratio:.10g} is not a ratio between 0 % and 100 %")
    if 0 < ratio < SMALLEST_RATIO:
        raise ImpossibleImpairment(where, f"{ratio:.3g} is below netem's resolution of {SMALLEST_RATIO:.3g}")


def _check_time(where: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and 0 <= seconds < 2**31):
        raise ImpossibleImpairment(where, f"{seconds!r} s is not a time that netem can keep (0 s to 2^31 s)")
    if 0 < seconds < 1e-9:
        raise ImpossibleImpairment(where, f"{seconds:.3g} s is below netem's resolution of 1 ns")


def _check_count(where: str, count: int, lowest: int) -> None:
    if not lowest <= count <= LARGEST_COUNT:
        raise ImpossibleImpairment(where, f"{count} is not a whole number from {lowest} to {LARGEST_COUNT}")


@dataclass(frozen=True, slots=True)
class Delay:
    """Every packet is held for delay_s, give or take jitter_s (reorders packets unless there is a rate)."""

    delay_s: float
    jitter_s: float = 0.0
    distribution: str = "uniform"

    def __post_init__(self) -> None:
        _check_time("delay", self.delay_s)
        _check_time("jitter", self.jitter_s)
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
        _check_ratio("loss", self.ratio)


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Bursty loss: a good and a bad state (Gilbert 1960, Elliott 1963), entered with p and left with r per packet."""

    p: float  # good -> bad
    r: float  # bad -> good
    bad_loss: float = 1.0  # loss ratio in the bad state (tc's 1-h)
    good_loss: float = 0.0  # loss ratio in the good state (tc's 1-k)

    def __post_init__(self) -> None:
        for item in fields(self):
            _check_ratio(f"loss.gemodel.{item.name}", getattr(self, item.name))
        if self.p == 0:
            raise ImpossibleImpairment("loss.gemodel.p", "0 % never enters the bad state")
        if self.r == 0:
            raise ImpossibleImpairment("loss.gemodel.r", "0 % never leaves the bad state")
        if self.bad_loss == 0 and self.good_loss == 0:
            raise ImpossibleImpairment("loss.gemodel.bad_loss", "with 0 % in both states no packet is ever lost")


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
            _check_ratio(f"loss.state.{item.name}", getattr(self, item.name))
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
        _check_ratio("duplicate", self.ratio)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A random bit of a packet is flipped with probability `ratio`."""

    ratio: float

    def __post_init__(self) -> None:
        _check_ratio("corrupt", self.ratio)


@dataclass(frozen=True, slots=True)
class Reorder:
    """After gap - 1 delayed packets, the next one skips the delay with probability `ratio`."""

    ratio: float
    gap: int = 1

    def __post_init__(self) -> None:
        _check_ratio("reorder", self.ratio)
        _check_count("reorder.gap", self.gap, 1)


@dataclass(frozen=True, slots=True)
class Rate:
    """Packets leave one after another at rate_bps; netem's own link model with per-packet and per-cell overhead."""

    rate_bps: int
    packet_overhead: int = 0  # bytes added to each packet; may be negative
    cell_size: int = 0  # bytes of one link-layer cell; 0 is no cells
    cell_overhead: int = 0  # bytes added to each cell; may be negative

    def __post_init__(self) -> None:
        if self.rate_bps < 8 or self.rate_bps % 8 or self.rate_bps >= 2**66:
            raise ImpossibleImpairment("rate", f"{self.rate_bps} bit/s is not a whole number of bytes/s above zero")
        if not -SMALLEST_FRAME_BYTES <= self.packet_overhead <= LARGEST_OVERHEAD_BYTES:  # below: a length wraps round
            between = f"between {-SMALLEST_FRAME_BYTES} and {LARGEST_OVERHEAD_BYTES}"
            raise ImpossibleImpairment("rate.packet_overhead", f"{self.packet_overhead} bytes is not {between}")
        _check_count("rate.cell_size", self.cell_size, 0)
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
        _check_time("slot.min_delay", self.min_delay_s)
        _check_time("slot.max_delay", self.max_delay_s)
        if self.max_delay_s < self.min_delay_s or self.max_delay_s == 0:
            raise ImpossibleImpairment("slot.max_delay", "must be above zero and not below min_delay")
        if self.max_delay_s - self.min_delay_s > LARGEST_JITTER_S:  # kernels before 7 multiply it by 2^32 in 64 bits
            raise ImpossibleImpairment("slot.max_delay", f"more than {LARGEST_JITTER_S:.3f} s above min_delay")
        _check_count("slot.max_packets", self.max_packets, 0)
        _check_count("slot.max_bytes", self.max_bytes, 0)


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

    def __post_init__(self) -> None:
        if self.reorder and self.reorder.ratio and (not self.delay or self.delay.delay_s == 0):
            raise ImpossibleImpairment("reorder", "reordering needs a delay: netem sends packets ahead of delayed ones")
        if self.ecn and not self.loss:
            raise ImpossibleImpairment("ecn", "ecn marks packets that loss would drop: it needs a loss")
        if self.limit_packets is not None:
            _check_count("limit", self.limit_packets, 1)
            if self.queue_packets is not None:
                raise ImpossibleImpairment("queue", "give queue or limit, not both: limit is delay line plus queue")
        if self.queue_packets is not None:
            _check_count("queue", self.queue_packets, 1)
            if not self.rate:
                raise ImpossibleImpairment("queue", "a queue needs a rate: without one no packet waits")
        if self.limit > LARGEST_COUNT:
            held = f"rate and delay together hold {self.limit} packets, netem {LARGEST_COUNT}"
            raise ImpossibleImpairment("limit", held)

    @property
    def limit(self) -> int:
        """Packets that netem may hold, delay line and queue together (sch_netem counts both against `limit`)."""
        if self.limit_packets is not None:
            return self.limit_packets
        if self.rate is None:
            return DEFAULT_LIMIT_PACKETS
        packets_per_s = self.rate.rate_bps / 8 / FRAME_BYTES
        held_s = self.delay.delay_s + self.delay.jitter_s if self.delay else 0.0
        queue = self.queue_packets or max(SMALLEST_QUEUE_PACKETS, math.ceil(DEFAULT_QUEUE_S * packets_per_s))
        return math.ceil(held_s * packets_per_s) + queue

    @property
    def reorders(self) -> bool:
        """True if packets can overtake each other: jitter without a rate, or `reorder`."""
        jitters = self.delay is not None and self.delay.jitter_s > 0 and self.rate is None
        return jitters or bool(self.reorder and self.reorder.ratio)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal Link; absent impairments are left out."""
        data = {key: value for key, value in asdict(self).items() if value not in (None, False)}
        if self.loss is not None:
            model = next(name for name, kind in _LOSS_MODELS.items() if type(self.loss) is kind)
            data["loss"] = {"model": model, **asdict(self.loss)}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Link:
        """Raises TypeError or KeyError for an unknown field, ImpossibleImpairment for an impossible value."""
        values = {key: _PARTS[key](**value) if key in _PARTS else value for key, value in data.items()}
        if "loss" in values:
            parameters = dict(values["loss"])
            values["loss"] = _LOSS_MODELS[parameters.pop("model")](**parameters)
        return cls(**values)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> dict[str, Any]:
        """The pydantic schema of a Link on the host: its own JSON form."""
        function = {"type": "no-info", "function": cls.from_json}
        return {"type": "function-plain", "function": function,
                "serialization": {"type": "function-plain", "function": cls.to_json}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of impairments for both directions; `clean` is an ordinary one."""

    name: str
    uplink: Link = field(default_factory=Link)
    downlink: Link = field(default_factory=Link)

    def link(self, direction: Direction) -> Link:
        """The Link of one direction."""
        return self.uplink if direction is Direction.UPLINK else self.downlink

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal Profile."""
        return {"name": self.name, "uplink": self.uplink.to_json(), "downlink": self.downlink.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """Raises as `Link.from_json` does."""
        return cls(data["name"], Link.from_json(data["uplink"]), Link.from_json(data["downlink"]))
