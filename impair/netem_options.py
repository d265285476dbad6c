"""netem's parameters in the kernel's own units, and the way between them and a `Link`. Standard library only.

`Options` is both what is asked of the kernel and what is read back, so that "equal" means equal in every bit.
Units and structures are those of include/uapi/linux/pkt_sched.h, arithmetic is that of net/sched/sch_netem.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from impair.profile import (
    Corrupt,
    Delay,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    LossModel,
    Rate,
    Reorder,
    Slot,
)

ALL = 2**32 - 1  # probability 1: netem keeps chances as fractions of 2^32 - 1
TABLE_PLACES = ("/usr/lib/tc", "/usr/lib/*/tc", "/usr/share/tc", "/usr/local/lib/tc")  # of iproute2 in distributions


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of netem: times in ns, rate in bytes/s, probabilities as fractions of 2^32 - 1."""

    limit: int
    latency: int = 0
    jitter: int = 0
    loss: int = 0
    gilbert_elliott: tuple[int, ...] | None = None  # p, r, h (1 - loss in the bad state), k1 (loss in the good state)
    four_state: tuple[int, ...] | None = None  # p13, p31, p32, p14, p23
    duplicate: int = 0
    corrupt: int = 0
    reorder: int = 0
    gap: int = 0
    rate: int = 0
    packet_overhead: int = 0
    cell_size: int = 0
    cell_overhead: int = 0
    slot: tuple[int, ...] | None = None  # min_delay, max_delay, max_packets, max_bytes, dist_delay, dist_jitter
    ecn: int = 0
    correlations: tuple[int, ...] = (0, 0, 0, 0, 0)  # of delay, loss, duplicate, reorder, corrupt: never requested
    seed: int | None = None

    @classmethod
    def of(cls, link: Link, seed: int | None) -> Options:
        """The options for `link` and the seed of netem's random numbers (None: the kernel's choice).

        Raises ValueError for a seed that is not a number of 64 bits.
        """
        if seed is not None and not 0 <= seed < 2**64:
            raise ValueError(f"netem's seed is a number from 0 to 2^64 - 1, not {seed}")
        delay, rate = link.delay, None if link.queue else link.rate  # a separate bottleneck has the rate
        reorder = link.reorder if link.reorder and link.reorder.ratio else None  # for netem a gap alone means 100 %
        loss = link.loss
        return cls(
            limit=link.limit,
            latency=_ns(delay.delay_s) if delay else 0,
            jitter=_ns(delay.jitter_s) if delay else 0,
            loss=_chance(loss.ratio) if isinstance(loss, Loss) else 0,
            gilbert_elliott=_gilbert_elliott(loss) if isinstance(loss, GilbertElliott) else None,
            four_state=_four_state(loss) if isinstance(loss, FourState) else None,
            duplicate=_chance(link.duplicate.ratio) if link.duplicate else 0,
            corrupt=_chance(link.corrupt.ratio) if link.corrupt else 0,
            reorder=_chance(reorder.ratio) if reorder else 0,
            gap=reorder.gap if reorder else 0,
            rate=rate.rate_bps // 8 if rate else 0,
            packet_overhead=rate.packet_overhead if rate else 0,
            cell_size=rate.cell_size if rate else 0,
            cell_overhead=rate.cell_overhead if rate else 0,
            slot=_slot(link.slot) if link.slot else None,
            ecn=int(link.ecn),
            seed=seed,
        )

    def link(self, distribution: str = "uniform") -> Link:
        """The Link of these options. The kernel does not report the distribution: the caller passes it."""
        slot = self.slot
        return Link(
            delay=Delay(self.latency / 1e9, self.jitter / 1e9, distribution) if self.latency or self.jitter else None,
            loss=self._loss(),
            duplicate=Duplicate(self.duplicate / ALL) if self.duplicate else None,
            corrupt=Corrupt(self.corrupt / ALL) if self.corrupt else None,
            reorder=Reorder(self.reorder / ALL, self.gap) if self.reorder else None,
            rate=Rate(self.rate * 8, self.packet_overhead, self.cell_size, self.cell_overhead) if self.rate else None,
            slot=Slot(slot[0] / 1e9, slot[1] / 1e9, slot[2], slot[3]) if slot else None,
            ecn=bool(self.ecn),
            limit_packets=self.limit,
        )

    def _loss(self) -> LossModel | None:
        if self.gilbert_elliott:
            p, r, h, k1 = self.gilbert_elliott
            return GilbertElliott(p / ALL, r / ALL, bad_loss=(ALL - h) / ALL, good_loss=k1 / ALL)
        if self.four_state:
            p13, p31, p32, p14, p23 = (part / ALL for part in self.four_state)
            return FourState(p13, p31, p32, p23, p14)
        return Loss(self.loss / ALL) if self.loss or self.ecn else None  # (ecn without a loss is no Link)


def _chance(ratio: float) -> int:
    return round(ratio * ALL)  # half to even, like the rint() of tc


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _gilbert_elliott(model: GilbertElliott) -> tuple[int, ...]:
    return _chance(model.p), _chance(model.r), _chance(1 - model.bad_loss), _chance(model.good_loss)


def _four_state(model: FourState) -> tuple[int, ...]:
    """The chances of leaving one state are added in 32 bits, where 50 % + 50 % rounded up would wrap round to 0."""
    p13, p31 = _chance(model.p13), _chance(model.p31)
    return p13, p31, min(_chance(model.p32), ALL - p31), min(_chance(model.p14), ALL - p13), _chance(model.p23)


def _slot(slot: Slot) -> tuple[int, ...]:
    return _ns(slot.min_delay_s), _ns(slot.max_delay_s), slot.max_packets, slot.max_bytes, 0, 0


@cache
def distribution_table(name: str) -> bytes:
    """iproute2's table of a delay distribution, as TCA_NETEM_DELAY_DIST takes it; empty for netem's own `uniform`.

    Raises FileNotFoundError when iproute2 has no such table here.
    """
    if name == "uniform":
        return b""
    root = Path("/")
    for place in TABLE_PLACES:
        for path in sorted(root.glob(f"{place[1:]}/{name}.dist")):
            entries = [int(word) for line in path.read_text().splitlines() for word in line.partition("#")[0].split()]
            return struct.pack(f"{len(entries)}h", *entries)
    raise FileNotFoundError(f"no {name}.dist in {', '.join(TABLE_PLACES)}: iproute2 is missing from the router's image")
