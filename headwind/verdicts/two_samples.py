"""Compares two samples that share no blocks: the difference of their medians, and whether a share changed. Pure.

A sample is given by its bounds: the lowest and the highest value that each of its members can have, in ln units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, logsumexp, xlogy

from headwind.metric import Better
from headwind.observed import Observed
from headwind.verdicts.stats import Floats, Interval, middle

Sample = tuple[ArrayLike, ArrayLike]
Ints = NDArray[np.int_]
Count = tuple[int, int | Ints]
_WEIGHTS = (0.5, 0.12, 0.12, 0.13, 0.13)  # of the terms in log_e_of_pair
_MANY = 100_000  # blocks: more than any run has


def speeds(sample: Sequence[Observed], better: Better = Better.LESS) -> Sample:
    """ln of 1 / time of each, or of another metric, inverted if less is better: more is always better."""
    with np.errstate(divide="ignore"):
        low, high = np.log([each.low for each in sample]), np.log([each.high for each in sample])
    return (low, high) if better is Better.MORE else (-high, -low)


def gain(base: Sample, new: Sample, confidence: float, margin: float = 0.0) -> tuple[Interval, float]:
    """Median of `new` less median of `base`, and ln of the evidence against a difference within +-margin (ln units).

    Each sample tests all values of its median, and log_e_of_pair combines both into one e-value, which holds at
    any stopping time of each run. A difference is refuted if no pair of medians with that difference has an e-value
    below 1 / (1 - confidence). The two shapes may differ. Both inputs are in any order; n of the interval is the
    smaller sample's. The interval is infinite if it is still open, as it is below fewest_in_each.
    """
    over, under = (_sorted(sample) for sample in (new, base))
    counts = [np.arange(len(lows) // 2 + 1) for lows, _ in (over, under)]
    log_e = log_e_of_pair((len(over[0]), counts[0][:, None]), (len(under[0]), counts[1]))
    (new_low, new_high), (base_low, base_high) = (
        _medians(*each, k) for each, k in zip((over, under), counts, strict=True)
    )
    low, high = _apart(new_low[:, None], base_high), _apart(new_high[:, None], base_low)
    allowed = log_e < -math.log1p(-confidence)
    evidence = np.min(log_e, where=(low <= margin) & (high >= -margin), initial=math.inf)
    medians = middle(*over), middle(*under)
    estimate = None if medians[0] is None or medians[1] is None else float(_apart(medians[0], medians[1]))
    n = min(len(over[0]), len(under[0]))
    return Interval(float(low[allowed].min()), float(high[allowed].max()), estimate, n), float(evidence)


def log_e_of_pair(first: Count, second: Count) -> Floats:
    """ln of the evidence against a pair of medians: k of n blocks of each sample lie on the rarer side.

    The mean, by _WEIGHTS, of e-values for the pair: the product of both samples' (log_e_of_count), each of them alone,
    and of each alone 2^(n - 1) if all blocks lie on one side, which is the likelihood ratio of "all always do".
    Products of e-values of independent samples are e-values, and so are means of any (Vovk and Wang, Ann. Statist. 49,
    2021). The product finds most in two large samples, but needs 9 blocks in each, and 12 if the other sample has 200,
    because a median in the middle of that one supports the pair. With the other terms 8 blocks suffice for any size of
    the other.
    """
    values = [betaln(k + 1, n - k + 1) + n * math.log(2) for n, k in (first, second)]
    sided = [np.where(np.equal(k, 0), (n - 1) * math.log(2), -math.inf) for n, k in (first, second)]
    terms = np.broadcast_arrays(values[0] + values[1], *values, *sided)
    return np.asarray(logsumexp(np.stack(terms), axis=0, b=np.reshape(_WEIGHTS, (-1, *[1] * terms[0].ndim))))


@lru_cache(maxsize=16)
def fewest_in_each(confidence: float) -> int:
    """Blocks of each sample that close the interval between them, whatever the size of the other: 8 at 95 %."""
    n = 1
    while min(log_e_of_pair((n, 0), (other, other // 2)) for other in (n, _MANY)) < -math.log1p(-confidence):
        n += 1
    return n


def share_changed(counts: Sequence[int], trials: Sequence[int]) -> float:
    """ln of the evidence against "both have the same share": `counts` of `trials` in each sample.

    The product of two beta-binomial mixtures against a common share p, at the maximum-likelihood p, so that it is an
    e-value for any p (the split-free form of universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020),
    at any stopping time of each run.
    """
    mixture = sum(float(betaln(k + 1, n - k + 1)) for k, n in zip(counts, trials, strict=True))
    successes, failures = sum(counts), sum(trials) - sum(counts)
    likelihood = float(xlogy(successes, successes) + xlogy(failures, failures) - xlogy(sum(trials), sum(trials)))
    return mixture - likelihood


def _medians(lows: Floats, highs: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Lowest and highest median with at least `counts` blocks on its rarer side, for each of the counts (from 0)."""
    return np.concatenate([[-math.inf], lows])[counts], np.concatenate([highs, [math.inf]])[len(lows) - counts]


def _sorted(sample: Sample) -> tuple[Floats, Floats]:
    low, high = (np.sort(np.asarray(side, dtype=np.float64)) for side in sample)
    return low, high


def _apart(one: ArrayLike, other: ArrayLike) -> Floats:
    """The difference of logarithms; two equal infinities, such as two zeros, are equal."""
    with np.errstate(invalid="ignore"):
        return np.where(np.equal(one, other), 0.0, np.subtract(one, other))
