"""Refuses a run whose unimpaired path is too slow for it. Pure.

The figures are those of headwind/trial/calibration.py, one set for each direction. The refusal comes before the first
trial: nothing is measured, and no run folder is made.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwind.errors import HeadwindError
from headwind.format import as_written, counted
from headwind.matrix.refused import profiles_refused
from headwind.model import Matrix
from impair.profile import Direction, Profile

FLOORS = {
    "rate_bps": 50e6,
    "small_frames_per_s": 4000.0,
}  # a tenth of what two slow cores carry
FAR_BELOW = 1 / 4  # of this host's earlier value; other work on the machine takes about half at most
WORDS = {"rate_bps": "full frames", "small_frames_per_s": "small frames"}

Ceiling = Mapping[str, Mapping[str, float]]  # {direction: calibration.Capacity as JSON}


class PathTooSlow(HeadwindError):
    """The unimpaired path carries so little that it must have a fault."""


def profiles_of(matrix: Matrix) -> tuple[Profile, ...]:
    """The networks of all conditions, each once."""
    return tuple({condition.profile.name: condition.profile for condition in matrix.conditions}.values())


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a machine: the load average of the last minute, and its CPUs."""

    average: float
    processors: int

    @classmethod
    def here(cls) -> Load:
        """The load of this machine now."""
        return cls(os.getloadavg()[0], os.cpu_count() or 1)

    def __str__(self) -> str:
        return f"load average {self.average:.1f} on {counted(self.processors, 'CPU')}"


def check_capacity(matrix: Matrix, ceiling: Ceiling, earlier: Sequence[Ceiling], load: Load | None = None) -> None:
    """Raise PathTooSlow, or MatrixError if the path is sound but a profile requests more than it can verify.

    `load` is that of the machine when the path was measured, if it is known.
    """
    wrong = [*_below_floor(ceiling), *_below_earlier(ceiling, earlier)]
    if wrong:
        raise PathTooSlow(
            f"the path between client and server is too slow even without an impairment: {'; '.join(wrong)}. Nothing "
            f"was measured. {_likely_cause(load)}"
        )
    refused = {
        profile.name: reasons for profile in profiles_of(matrix) if (reasons := "; ".join(_too_fast(profile, ceiling)))
    }
    if refused:
        raise profiles_refused(matrix, refused, "reduce the rate, or use a faster host")


def _likely_cause(load: Load | None) -> str:
    """Sentence on the likely cause (other programs if the load exceeds the CPUs, else the network) and what to do."""
    network = "whether anything shapes or drops the containers' traffic (`tc qdisc show`, `iptables -L`)"
    again = "then run the same command again"
    if load is None:
        return f"Check whether other programs keep the CPUs busy (`uptime`), and {network}; {again}"
    if load.average > load.processors:
        return (
            f"Likely cause: other programs keep the CPUs busy ({load}). Wait until `uptime` shows a load average "
            f"below {load.processors}, {again}"
        )
    return f"The CPUs are not the cause ({load}). Check {network}; {again}"


def _below_floor(ceiling: Ceiling) -> Iterator[str]:
    for direction, name, value in _figures(ceiling):
        if value < FLOORS[name]:
            yield f"{direction} it carries {_text(name, value)}, and the minimum is {_text(name, FLOORS[name])}"


def _below_earlier(ceiling: Ceiling, earlier: Sequence[Ceiling]) -> Iterator[str]:
    for direction, name, value in _figures(ceiling):
        before = statistics.median(each[direction][name] for each in earlier) if earlier else 0.0
        if value < FAR_BELOW * before:
            runs = "in the run" if len(earlier) == 1 else f"as the median in {len(earlier)} runs"
            yield f"{direction} it carries {_text(name, value)}, and carried {_text(name, before)} {runs} before"


def _figures(ceiling: Ceiling) -> Iterator[tuple[str, str, float]]:
    for direction, measured in ceiling.items():
        yield from ((direction, name, measured[name]) for name in FLOORS)


def _text(name: str, value: float) -> str:
    if name.endswith("_bps"):
        return f"{value / 1e6:.0f} Mbit/s of {WORDS[name]}"
    return f"{value:.0f} {WORDS[name]} a second"


def _too_fast(profile: Profile, ceiling: Ceiling) -> Iterator[str]:
    for direction in Direction:
        rates, measured = [link.rate for link in profile.links(direction) if link.rate], ceiling.get(direction)
        rate = max(rates, key=lambda each: each.rate_bps, default=None)
        if rate and measured and rate.rate_bps > measured["shown_bps"]:
            yield (
                f"{direction}: a rate of {as_written('rate_bps', rate.rate_bps)} is not possible here: the unimpaired "
                f"path carries {measured['rate_bps'] / 1e6:.0f} Mbit/s and the lab can verify rates up to "
                f"{measured['shown_bps'] / 1e6:.0f} Mbit/s"
            )
