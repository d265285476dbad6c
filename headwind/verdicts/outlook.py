"""Forecasts how many more blocks a verdict needs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwind.metric import Metric
from headwind.verdicts.stats import Bools, interval_rank
from headwind.verdicts.verdict import Rule

FUTURES = 200  # simulated continuations per forecast: their median varies by about 15 %
LONGEST_FORECAST_BLOCKS = 300  # five times the usual maximum; longer forecasts are guesswork


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of the blocks until a verdict on speed; None means more than LONGEST_FORECAST_BLOCKS."""

    blocks: int | None  # median
    low: int | None  # 10 % quantile
    high: int | None  # 90 % quantile
    rate: float = 0.0  # verdicts per block from continuing, at best
    metric: Metric | None = None  # the one that then has a verdict, if it is known


def blocks_needed(lows: ArrayLike, highs: ArrayLike, rule: Rule) -> Outlook:
    """Predict how many more blocks bring a verdict on speed, from blocks whose bounds have shape (blocks,).

    Only the side of each margin on which a block falls matters to judge(), so the future is drawn from those shares,
    with their own uncertainty: Dirichlet posterior, one imaginary block spread over slower, tie and faster (Perks 1947;
    predictive probability of stopping: Spiegelhalter et al. 1986). Seeded: the same blocks give the same forecast.

    The rate is the largest, over all horizons k, of the chance of a verdict within k blocks over the blocks that this
    takes on average (the index of Gittins, JRSS B 41, 1979, for a job of unknown length). So a comparison that may be
    decided soon is tried before one that surely takes longer, also if few blocks are known of either.
    """
    low, high = np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)
    m = rule.margin
    # claims that a block contradicts: faster, slower, tie from below, tie from above; as the four digits of a number
    kinds = (low <= m) * 8 + (high >= -m) * 4 + (low <= -m) * 2 + (high >= m)
    return forecast(tuple(np.bincount(kinds, minlength=16).tolist()), rule.confidence, rule.anytime)


@lru_cache(maxsize=4096)  # conditions often have the same counts, and one without new blocks always has
def forecast(counts: tuple[int, ...], confidence: float, anytime: bool) -> Outlook:
    """The forecast from the numbers of blocks of each of the 16 kinds."""
    imagined = np.isin(np.arange(16), (0b1010, 0b1100, 0b0101)) / 3
    present = np.flatnonzero(counts + imagined)
    flags = (present[:, None] & [8, 4, 2, 1]) > 0  # the claims that each kind contradicts
    observed, n = np.array(counts)[present], sum(counts)
    shares = np.cumsum(np.random.default_rng(n).dirichlet(observed + imagined[present], size=FUTURES), axis=1)
    drawn = np.zeros((FUTURES, LONGEST_FORECAST_BLOCKS), dtype=np.int8)
    for share in shares.T[:-1]:
        drawn += _chances() > share[:, None]
    totals = range(n + 1, n + LONGEST_FORECAST_BLOCKS + 1)
    most = np.array([interval_rank(total, confidence, anytime) for total in totals]) - 1
    first = _first_decided(drawn, flags, most[:, None] - flags.T @ observed)
    reached = np.searchsorted(np.sort(first), np.arange(1, LONGEST_FORECAST_BLOCKS + 1), side="right") / FUTURES
    spent = np.cumsum(np.append(1.0, 1.0 - reached[:-1]))  # expected blocks up to each horizon
    rate = float(np.max(reached / spent))
    median, least, most_ = (int(np.ceil(np.quantile(first, share))) for share in (0.5, 0.1, 0.9))
    middle, fewest, longest = (None if each > LONGEST_FORECAST_BLOCKS else each for each in (median, least, most_))
    return Outlook(middle, fewest, longest, rate)


def _first_decided(drawn: NDArray[np.int8], flags: Bools, most: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number of blocks after which each future is decided; LONGEST_FORECAST_BLOCKS + 1 if it never is.

    drawn: the kind of every future block, shape (futures, blocks); flags: the claims that each kind contradicts; most:
    how many more blocks may contradict each of the four claims by then, shape (blocks, 4).
    """
    faster, slower, tie_below, tie_above = (
        np.cumsum(against[drawn], axis=1, dtype=np.int16) <= allowed
        for against, allowed in zip(flags.T, most.T, strict=True)
    )
    decided = faster | slower | (tie_below & tie_above)
    return np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, LONGEST_FORECAST_BLOCKS + 1)


@lru_cache(maxsize=1)
def _chances() -> NDArray[np.float32]:
    """Random numbers for the kind of each future block. All forecasts share them, which saves a third of their time."""
    return np.random.default_rng(1).random((FUTURES, LONGEST_FORECAST_BLOCKS), dtype=np.float32)
