"""Limits of the values that a kernel can keep: whatever it would clip, round to zero or ignore is refused."""

from __future__ import annotations

import math

SMALLEST_RATIO = 1 / (2**32 - 1)  # netem keeps probabilities as fractions of 2^32 - 1 (net/sched/sch_netem.c)
LARGEST_COUNT = 2**31 - 1
FRAME_BYTES = 1514  # largest Ethernet frame of the testbed: 1500 bytes of MTU and 14 of header


class ImpossibleImpairment(ValueError):
    """A value that netem cannot apply as written. `where` names the field, `hint` a possible value."""

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.where, self.hint = where, hint


def check_ratio(where: str, ratio: float) -> None:
    """Raise ImpossibleImpairment for a share that is none, or that netem would round to zero."""
    if not 0 <= ratio <= 1:
        raise ImpossibleImpairment(where, f"{ratio:.10g} is not a ratio between 0 % and 100 %")
    if 0 < ratio < SMALLEST_RATIO:
        raise ImpossibleImpairment(where, f"{ratio:.3g} is below netem's resolution of {SMALLEST_RATIO:.3g}")


def check_time(where: str, seconds: float) -> None:
    """Raise ImpossibleImpairment for a time that netem cannot keep, or would round to zero."""
    if not (math.isfinite(seconds) and 0 <= seconds < 2**31):
        raise ImpossibleImpairment(where, f"{seconds!r} s is not a time that netem can keep (0 s to 2^31 s)")
    if 0 < seconds < 1e-9:
        raise ImpossibleImpairment(where, f"{seconds:.3g} s is below netem's resolution of 1 ns")


def check_count(where: str, count: int, lowest: int, largest: int = LARGEST_COUNT) -> None:
    """Raise ImpossibleImpairment for a number out of range."""
    if not lowest <= count <= largest:
        raise ImpossibleImpairment(where, f"{count} is not a whole number from {lowest} to {largest}")
