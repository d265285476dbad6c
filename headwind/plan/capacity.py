"""Refuses a run whose unimpaired path is too slow for it. Pure.

The figures are those of headwind/trial/calibration.py, one set for each direction. What is refused here is refused
before the first trial: nothing was measured, and no run folder is made.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from headwind.errors import HeadwindError
from headwind.format import as_written
from headwind.matrix.reader import profiles_refused
from headwind.model import Matrix
from impair.profile import Direction, Profile

FLOORS = {"rate_bps": 50e6, "small_frames_per_s": 4000.0}  # a tenth of what two slow cores carry: something is wrong
FAR_BELOW = 1 / 4  # of what this host gave before; other work beside the lab takes at most about a half
WORDS = {"rate_bps": "full frames", "small_frames_per_s": "small frames"}

Ceiling = Mapping[str, Mapping[str, float]]  # {direction: calibration.Capacity as JSON}


class PathTooSlow(HeadwindError):
    """The bare path carries so little that something must be wrong with it."""


def profiles_of(matrix: Matrix) -> tuple[Profile, ...]:
    """The networks of all conditions, each once."""
    return tuple({condition.profile.name: condition.profile for condition in matrix.conditions}.values())


def check_capacity(matrix: Matrix, ceiling: Ceiling, earlier: Sequence[Ceiling]) -> None:
    """Raises PathTooSlow, or MatrixError where the path is sound but a profile asks for more than it can show."""
    wrong = [*_below_floor(ceiling), *_below_earlier(ceiling, earlier)]
    if wrong:
        raise PathTooSlow(
            f"the path between client and server is too slow even without an impairment: {'; '.join(wrong)}. Nothing "
            "was measured. See whether something else keeps the processors busy, and whether anything shapes or drops "
            "the containers' traffic (`tc qdisc show`, `iptables -L`); then try again"
        )
    refused = {
        profile.name: reasons for profile in profiles_of(matrix) if (reasons := "; ".join(_too_fast(profile, ceiling)))
    }
    if refused:
        raise profiles_refused(matrix, refused, "ask for less, or run this on a faster host")


def _below_floor(ceiling: Ceiling) -> Iterator[str]:
    for direction, name, value in _figures(ceiling):
        if value < FLOORS[name]:
            yield f"{direction} it carries {_told(name, value)}, and the least is {_told(name, FLOORS[name])}"


def _below_earlier(ceiling: Ceiling, earlier: Sequence[Ceiling]) -> Iterator[str]:
    for direction, name, value in _figures(ceiling):
        before = statistics.median(each[direction][name] for each in earlier) if earlier else 0.0
        if value < FAR_BELOW * before:
            runs = "the run" if len(earlier) == 1 else f"{len(earlier)} runs"
            yield f"{direction} it carries {_told(name, value)}, and carried {_told(name, before)} in {runs} before"


def _figures(ceiling: Ceiling) -> Iterator[tuple[str, str, float]]:
    for direction, measured in ceiling.items():
        yield from ((direction, name, measured[name]) for name in FLOORS)


def _told(name: str, value: float) -> str:
    if name.endswith("_bps"):
        return f"{value / 1e6:.0f} Mbit/s of {WORDS[name]}"
    return f"{value:.0f} {WORDS[name]} a second"


def _too_fast(profile: Profile, ceiling: Ceiling) -> Iterator[str]:
    for direction in Direction:
        rate, measured = profile.link(direction).rate, ceiling.get(direction)
        if rate and measured and rate.rate_bps > measured["shown_bps"]:
            yield (
                f"{direction}: a rate of {as_written('rate_bps', rate.rate_bps)} cannot be had here: the bare path "
                f"carries {measured['rate_bps'] / 1e6:.0f} Mbit/s and the lab can prove rates up to "
                f"{measured['shown_bps'] / 1e6:.0f} Mbit/s"
            )
