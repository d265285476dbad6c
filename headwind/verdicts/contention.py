"""Reports both ratios if the blocks in which CPUs were short change a ratio. Pure.

No trial is dropped for contention (headwind/proof/processors.py, lacked_cpus). Whole blocks of both arms are left out
here, only to see whether the ratio depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headwind.model import Result
from headwind.proof.processors import lacked_cpus
from headwind.verdicts.assumptions import ComparisonWarning, WarningKind
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Rule, interval_of

FEWEST_CALM = 3  # blocks without contention that a ratio needs


def contention(
    blocks: Sequence[Sequence[Result]], bounds: tuple[Sequence[float], Sequence[float]], every: Interval, rule: Rule
) -> Iterator[ComparisonWarning]:
    """A warning if the ratio without those blocks lies outside the interval of all, or if too few blocks are left.

    `blocks` has the trials of both arms, `bounds` the lowest and highest ln ratio of the same blocks, `every` the
    interval of all.
    """
    calm = [number for number, trials in enumerate(blocks) if not any(map(lacked_cpus, trials))]
    short = len(blocks) - len(calm)
    if not short:
        return
    found = f"CPU contention in {short} of {len(blocks)} blocks, which still count"
    if len(calm) < FEWEST_CALM:
        yield ComparisonWarning(WarningKind.CONTENTION, f"{found}; too few blocks without contention to see its effect")
        return
    lows, highs = ([side[number] for number in calm] for side in bounds)
    without = interval_of(lows, highs, rule)
    if without.estimate is not None and not every.low <= without.estimate <= every.high:
        text = f"{found}: the ratio is {_text(every)} with them and {_text(without)} without"
        yield ComparisonWarning(WarningKind.CONTENTION, text)


def _text(interval: Interval) -> str:
    """Text such as `1.23x [1.18, 1.29]`; without a ratio if unfinished trials leave it open."""
    ratio, low, high = interval.ratios
    if ratio is not None and not low and math.isinf(high):
        return f"{ratio:.2f}x (too few for an interval)"
    ends = f"[{low:.2f}, {high:.2f}]".replace("inf", "\N{INFINITY}")
    return ends if ratio is None else f"{ratio:.2f}x {ends}"
