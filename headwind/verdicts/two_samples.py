"""Two samples that share no blocks: how far their medians lie apart, and whether a share changed. Pure.

A sample is given by its bounds: the lowest and the highest value that each of its members can have, in ln units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, xlogy

from headwind.metric import Better
from headwind.observed import Observed
from headwind.verdicts.stats import Floats, Interval, log_e_of_count, middle

Sample = tuple[ArrayLike, ArrayLike]


def speeds(sample: Sequence[Observed], better: Better = Better.LESS) -> Sample:
    """ln of 1 / time of each, or of whatever else is measured, turned so that more is better."""
    with np.errstate(divide="ignore"):
        low, high = np.log([each.low for each in sample]), np.log([each.high for each in sample])
    return (low, high) if better is Better.MORE else (-high, -low)


def gain(base: Sample, new: Sample, confidence: float, margin: float = 0.0) -> tuple[Interval, float]:
    """Median of `new` less median of `base`, and ln of the evidence against a difference within +-margin (ln units).

    Each sample tests every possible median of its own with log_e_of_count. The product of the two e-values is an
    e-value for the pair of medians (Vovk and Wang, Ann. Statist. 49, 2021), whenever each run stopped; differences that
    no pair of medians with a product below 1 / (1 - confidence) has are refuted. Nothing assumes that the two shapes
    are alike. Both inputs are in any order; n of the interval is the smaller sample's. Infinite where it is still open.
    """
    log_limit = -math.log1p(-confidence)
    over, under = (_sorted(sample) for sample in (new, base))
    first, second = _levels(*over), _levels(*under)
    pairs = [
        (one + other, _apart(low, upper), _apart(high, lower))
        for one, low, high in first
        for other, lower, upper in second
    ]
    allowed = [(low, high) for log_e, low, high in pairs if log_e < log_limit]
    evidence = min((log_e for log_e, low, high in pairs if low <= margin and high >= -margin), default=math.inf)
    medians = middle(*over), middle(*under)
    estimate = None if medians[0] is None or medians[1] is None else _apart(medians[0], medians[1])
    n = min(len(over[0]), len(under[0]))
    return Interval(min(low for low, _ in allowed), max(high for _, high in allowed), estimate, n), evidence


def share_changed(counts: Sequence[int], trials: Sequence[int]) -> float:
    """ln of the evidence against "both have the same share": `counts` of so many `trials` in each sample.

    The product of two beta-binomial mixtures against a common share p, at the p that the data like best, so that it is
    an e-value whatever p is (the split-free form of universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 117,
    2020), whenever each run stopped.
    """
    mixture = sum(float(betaln(k + 1, n - k + 1)) for k, n in zip(counts, trials, strict=True))
    successes, failures = sum(counts), sum(trials) - sum(counts)
    likelihood = float(xlogy(successes, successes) + xlogy(failures, failures) - xlogy(sum(trials), sum(trials)))
    return mixture - likelihood


def _levels(lows: Floats, highs: Floats) -> list[tuple[float, float, float]]:
    """For every count k of a sample: (ln e-value, low, high) of the medians that it would count for."""
    n = len(lows)
    inner = [(log_e_of_count(n, k), float(lows[k - 1]), float(highs[n - k])) for k in range(1, n // 2 + 1)]
    return [(log_e_of_count(n, 0), -math.inf, math.inf), *inner]


def _sorted(sample: Sample) -> tuple[Floats, Floats]:
    low, high = (np.sort(np.asarray(side, dtype=np.float64)) for side in sample)
    return low, high


def _apart(one: float, other: float) -> float:
    """The difference of two logarithms; two equal infinities, such as two zeros, are equal."""
    return 0.0 if one == other else one - other
