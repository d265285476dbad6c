"""Compares a percentile of one arm's trials with the same percentile of another's. Pure.

The verdicts of a run are about the median difference of two arms inside a block. Articles print percentiles over their
runs as well, and tails can differ in the other direction. So here each arm's percentile has its own interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import betaln

from headwind.metric import Better
from headwind.observed import Observed, from_best, quantile
from headwind.verdicts.stats import Interval


@lru_cache(maxsize=4096)
def percentile_ranks(n: int, share: float, confidence: float) -> tuple[int, int]:
    """Ranks (from 1) of n sorted values between which the percentile lies; 0 and n + 1: that side is still open.

    A value lies at or below the percentile with probability `share`, so the number that do is refuted if the likelihood
    ratio of the mean over all coins, uniform on [0, 1], against that coin reaches 1 / (1 - confidence): a test
    martingale, valid at any stopping time (stats.log_e_of_count is the same for a share of 1/2; Howard and Ramdas,
    Bernoulli 28, 2022).
    """
    k = np.arange(n + 1)
    log_e = betaln(k + 1, n - k + 1) - k * math.log(share) - (n - k) * math.log1p(-share)
    kept = np.flatnonzero(log_e < -math.log1p(-confidence))
    return int(kept[0]), int(kept[-1]) + 1


def percentile_interval(
    base: Sequence[Observed], new: Sequence[Observed], share: float, confidence: float, better: Better = Better.LESS
) -> Interval:
    """ln of the ratio of two percentiles, with an interval that holds at any stopping time; above 0 `new` is ahead.

    Each side's percentile has half of the error, so the interval assumes nothing about the dependence of the two. There
    is one value for each trial; unfinished ones are bounds and widen it. Raises ValueError if the two have different
    lengths.
    """
    if len(base) != len(new):
        raise ValueError("both arms have a value in every block")
    if not base:
        return Interval(-math.inf, math.inf, None, 0)
    ends = [_ends(side, share, (1 + confidence) / 2) for side in (base, new)]
    middles = [quantile(from_best(side, Better.LESS), share) for side in (base, new)]
    (over, under) = (0, 1) if better is Better.LESS else (1, 0)
    estimate = None
    if all(each.is_finished and each.low for each in middles):
        estimate = math.log(middles[over].low / middles[under].low)
    return Interval(
        _log(ends[over][0]) - _log(ends[under][1]), _log(ends[over][1]) - _log(ends[under][0]), estimate, len(base)
    )


def _ends(values: Sequence[Observed], share: float, confidence: float) -> tuple[float, float]:
    """Lowest and highest possible value of the percentile."""
    low, high = percentile_ranks(len(values), share, confidence)
    lows, highs = sorted(value.low for value in values), sorted(value.high for value in values)
    return lows[low - 1] if low else 0.0, highs[high - 1] if high <= len(values) else math.inf


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf
