"""From samples to intervals and evidence: the mathematics of every verdict. Pure; it does not depend on the lab.

The unit of analysis is the block: every difference is ln(time of the baseline / time of the candidate) inside one
block, or of another metric, inverted if more is better. So 0 is "equal", above 0 the candidate is ahead, and exp() of
it is the ratio that people read. No shape of the noise is assumed: everything uses signs and ranks, so it relies on one
fact: blocks fall above the median as often as below.

There are two kinds of certainty. `anytime=True` holds at any stopping time (adaptive repetition); `anytime=False` is
narrower and holds once, for a number of blocks that was fixed before the first of them.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaln

from headwind.metric import Better
from headwind.observed import Observed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LARGEST_LOG_E = 600.0  # e to this can still be summed without overflow


@dataclass(frozen=True, slots=True)
class Interval:
    """Interval of the median difference, in ln units (paired_bounds); exp() gives ratios. Open sides are infinite."""

    low: float
    high: float
    estimate: float | None  # median difference; None if unfinished trials leave it open, or without blocks
    n: int  # blocks

    @property
    def has_estimate(self) -> bool:
        """True if there is an estimate, and it is finite."""
        return self.estimate is not None and math.isfinite(self.estimate)

    @property
    def ratios(self) -> tuple[float | None, float, float]:
        """Estimate, low and high as ratios of times: 1.23, 1.18, 1.29 means 1.23 times as fast."""
        high = math.inf if self.high == math.inf else math.exp(self.high)
        return None if self.estimate is None else math.exp(self.estimate), math.exp(self.low), high


def paired_bounds(
    base: Sequence[Observed], new: Sequence[Observed], better: Better = Better.LESS
) -> tuple[Floats, Floats]:
    """Lowest and highest possible ln ratio of each block: two arrays of shape (blocks,), equal if both finished.

    The ratio is base / new, or new / base if more is better: above 0 the candidate is ahead. A protocol that did not
    finish moves the bounds against itself or to infinity, never in its own favour. Two zeros are equal, and zero is
    further from any other value than any margin: infinitely ahead, or behind. No constant is added to avoid that,
    because all later steps count signs and ranks, for which an infinite difference is a large one.
    Both inputs are in block order. Raises ValueError if their lengths differ.
    """
    ends = [(b.low, b.high, c.low, c.high) for b, c in zip(base, new, strict=True)]
    base_low, base_high, new_low, new_high = np.array(ends, dtype=np.float64).reshape(-1, 4).T
    if better is Better.MORE:
        return _ln_ratio(new_low, base_high), _ln_ratio(new_high, base_low)
    return _ln_ratio(base_low, new_high), _ln_ratio(base_high, new_low)


def _ln_ratio(over: Floats, under: Floats) -> Floats:
    """ln(over / under), with 0 / 0 = 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(over == under, 0.0, np.log(over) - np.log(under))


def log_e_of_count(n: int, k: int) -> float:
    """ln of the evidence against a fair coin when k of n blocks fell on one side: ln(2^n / ((n + 1) * binomial(n, k))).

    The mean over all coins p, uniform on [0, 1], of the likelihood ratio of p against 1/2: a test martingale, so that
    by Ville's inequality it ever reaches 1/alpha with probability at most alpha (Ville 1939; Robbins, Ann. Math.
    Statist. 41, 1970; the two-sided beta-binomial mixture of Howard and Ramdas, Bernoulli 28, 2022). The uniform
    mixture closes an interval from 8 blocks on, and up to 60 blocks no Beta(a, a) gets more than one rank further.
    """
    return float(betaln(k + 1, n - k + 1)) + n * math.log(2)


def log_e_against(blocks: ArrayLike, against: ArrayLike) -> Floats:
    """ln of the anytime-valid evidence for a claim that `against` of `blocks` blocks may contradict; any shape.

    "The median lies above a margin" is contradicted by every block that may lie at or below it. If half of the blocks
    or more contradict it, there is no evidence for it, however much there may be for the opposite. Source:
    log_e_of_count, at the count most favourable to the null hypothesis among those that the bounds allow.
    """
    n = np.asarray(blocks, dtype=np.float64)
    k = np.minimum(against, n // 2)
    return np.asarray(betaln(k + 1, n - k + 1) + n * math.log(2), dtype=np.float64)


def e_bh(
    log_e_values: Sequence[float], rate: float = 0.10, held: Sequence[float] = (), silent: int = 0
) -> tuple[bool, ...]:
    """Which of many cells survive if at most `rate` of the survivors may be false (False Discovery Rate).

    Takes ln e-values of cells in any dependence, and returns one answer for each. `held` are those of cells that
    survived before and stay; `silent` counts the cells without evidence. Together they are m cells.

    The largest set R of r survivors is taken (`held` and the largest others) in which the a smallest e-values have a
    mean of at least (m - r + a) / (rate * r), for every a from 1 to r. Then, whichever cells are null, the mean of
    their e-values (those outside R taken as 0) is at least the false share of R over `rate`; and its expectation is at
    most 1. So this is the closed form of e-BH (Xu, Solari, Fischer, de Heide, Ramdas and Goeman, "Bringing closure to
    FDR control", 2025) that requires nothing of the cells outside R: their later evidence removes no survivor. Plain
    e-BH requires m / (rate * r) of every survivor (Wang and Ramdas, JRSS B 84, 2022).

    Cells with the same e-value join R together or not at all, since their order carries no information.
    """
    values, kept = _e_values(log_e_values), np.sort(_e_values(held))
    best, m = np.sort(values)[::-1], len(values) + len(kept) + silent
    enough = np.flatnonzero(kept.sum() + np.cumsum(best) >= m / rate)  # the condition for a = r
    for joining in enough[::-1] + 1:
        if joining < len(best) and best[joining] == best[joining - 1]:
            continue  # it would separate equal ones
        survivors = np.sort(np.concatenate([kept, best[:joining]]))
        r = len(survivors)
        smallest = np.arange(1, r + 1)
        if np.all(np.cumsum(survivors) >= smallest * (m - r + smallest) / (rate * r)):
            return tuple(bool(value >= best[joining - 1]) for value in values)
    return (False,) * len(values)


def _e_values(log_e_values: Sequence[float]) -> Floats:
    return np.exp(np.minimum(np.asarray(log_e_values, dtype=np.float64), LARGEST_LOG_E))


@lru_cache(maxsize=8192)
def interval_rank(n: int, confidence: float, anytime: bool) -> int:
    """The interval of n blocks runs from the rank-th smallest to the rank-th largest difference; 0: it is still open.

    Fixed n: the sign test inverted, P(Binomial(n, 1/2) < rank) <= (1 - confidence) / 2 (Thompson 1936; Conover,
    Practical Nonparametric Statistics, 3rd ed. 1999, section 3.2).
    Anytime: the medians that log_e_of_count has not yet refuted (Darling and Robbins 1967; Howard and Ramdas 2022).
    Raises ValueError for a confidence outside (0, 1).
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, not {confidence}")
    k = np.arange(n // 2 + 1)
    if anytime:
        refuted = betaln(k + 1, n - k + 1) + n * math.log(2) >= -math.log1p(-confidence)
    else:
        refuted = bdtr(k.astype(np.float64), n, 0.5) <= (1 - confidence) / 2
    return int(np.count_nonzero(refuted))


def fewest_blocks(confidence: float, anytime: bool) -> int:
    """The smallest number of blocks that gives a finite interval: 6 (fixed) or 8 (anytime) at 95 %."""
    n = 1
    while interval_rank(n, confidence, anytime) == 0:
        n += 1
    return n


def ratio_interval(lows: ArrayLike, highs: ArrayLike, confidence: float, anytime: bool) -> Interval:
    """Median difference and its interval from the bounds of paired_bounds, each of shape (blocks,).

    Order statistics of the lower bounds give the low end and of the upper bounds the high end, so an unfinished trial
    widens the interval and never narrows it. Source of the ranks: interval_rank. The interval needs no symmetry, no
    variance and no normal noise. The estimate is the plain median; after adaptive stopping it is slightly extreme.
    """
    low, high = (np.sort(side) for side in _checked(lows, highs))
    n = len(low)
    if n == 0:
        return Interval(-math.inf, math.inf, None, 0)
    estimate = middle(low, high)
    rank = interval_rank(n, confidence, anytime)
    if rank == 0:
        return Interval(-math.inf, math.inf, estimate, n)
    return Interval(float(low[rank - 1]), float(high[n - rank]), estimate, n)


def narrowed(lows: Sequence[float], highs: Sequence[float], confidence: float) -> Iterator[tuple[float, float]]:
    """Ends of the anytime-valid interval after each block, each within all earlier ones.

    With the stated confidence the interval of no block misses the median, so a value that any of them excludes is
    excluded for good (the running intersection of a confidence sequence: Darling and Robbins, PNAS 57, 1967). An
    interval disjoint from the earlier ones means that the median moved, or is the rare error; it changes nothing.
    """
    below: list[float] = []
    above: list[float] = []
    low, high = -math.inf, math.inf
    for n, (least, most) in enumerate(zip(lows, highs, strict=True), 1):
        insort(below, least)
        insort(above, most)
        if rank := interval_rank(n, confidence, True):
            ends = max(low, below[rank - 1]), min(high, above[n - rank])
            low, high = ends if ends[0] <= ends[1] else (low, high)
        yield low, high


def running_interval(lows: Sequence[float], highs: Sequence[float], confidence: float) -> Interval:
    """Median difference of all blocks, and its interval `narrowed` to the last. Inputs as in ratio_interval."""
    *_, ends = [(-math.inf, math.inf), *narrowed(lows, highs, confidence)]
    return _within(ratio_interval(lows, highs, confidence, anytime=True), *ends)


def interval_steps(lows: Sequence[float], highs: Sequence[float], confidence: float) -> list[Interval]:
    """The running_interval after each block."""
    return [
        _within(ratio_interval(lows[:n], highs[:n], confidence, anytime=True), *ends)
        for n, ends in enumerate(narrowed(lows, highs, confidence), 1)
    ]


def _within(interval: Interval, low: float, high: float) -> Interval:
    """The interval with other ends; an estimate that they exclude is moved to the nearer one."""
    estimate = None if interval.estimate is None else min(max(interval.estimate, low), high)
    return Interval(low, high, estimate, interval.n)


def fewest_samples(quantile: float, confidence: float = 0.95) -> int:
    """Samples that a two-sided interval of a percentile needs: 6 for p50, 72 for p95, 368 for p99 at 95 %.

    The rarer side must hold a sample: max(q, 1 - q)^n <= (1 - confidence) / 2. Source: David and Nagaraja, Order
    Statistics, 3rd ed. 2003, section 7.1. Raises ValueError for a quantile outside (0, 1).
    """
    if not 0 < quantile < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not {quantile}")
    return math.ceil(math.log((1 - confidence) / 2) / math.log(max(quantile, 1 - quantile)))


def _checked(lows: ArrayLike, highs: ArrayLike) -> tuple[Floats, Floats]:
    """Both bounds as float arrays. Raises ValueError unless both have shape (blocks,) and low <= high everywhere."""
    low, high = np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)
    if low.ndim != 1 or low.shape != high.shape or not np.all(low <= high):
        raise ValueError("bounds are two sequences of equal length with low <= high in every block")
    return low, high


def middle(lows: Floats, highs: Floats) -> float | None:
    """The median of values between sorted bounds; None without values, and if it is open.

    Unfinished trials leave it open, and so does a middle between two opposite infinities.
    """
    near, far = (len(lows) - 1) // 2, len(lows) // 2
    if not len(lows) or lows[near] != highs[near] or lows[far] != highs[far] or lows[near] == -lows[far] == -math.inf:
        return None
    return float((lows[near] + lows[far]) / 2)
