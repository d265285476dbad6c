"""How many more blocks a verdict probably takes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwind.verdicts.stats import Bools, interval_rank
from headwind.verdicts.verdict import Rule

FUTURES = 200  # simulated continuations behind a forecast: chance moves their median by some 15 %
LONGEST_FORECAST_BLOCKS = 300  # five times the usual maximum; beyond it a forecast is guesswork


@dataclass(frozen=True, slots=True)
class Outlook:
    """How many more blocks a verdict on speed probably takes; None means more than LONGEST_FORECAST_BLOCKS."""

    blocks: int | None  # as likely fewer as more
    low: int | None  # with probability 10 % fewer
    high: int | None  # with probability 10 % more
    rate: float = 0.0  # verdicts per block that going on promises at best


def blocks_needed(lows: ArrayLike, highs: ArrayLike, rule: Rule) -> Outlook:
    """Predict how many more blocks bring a verdict on speed, from blocks whose bounds have shape (blocks,).

    Only the side of each margin on which a block falls matters to judge(), so the future is drawn from those shares,
    with their own uncertainty: Dirichlet posterior, one imaginary block spread over slower, tie and faster (Perks 1947;
    predictive probability of stopping: Spiegelhalter et al. 1986). Seeded: the same blocks give the same forecast.

    The rate is the largest, over all horizons k, of the chance of a verdict within k blocks over the blocks that this
    takes on average (the index of Gittins, JRSS B 41, 1979, for a job of unknown length). So what may well be decided
    soon is tried before what surely takes longer, also where few blocks say little about either.
    """
    low, high = np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)
    m = rule.margin
    # what a block speaks against: faster, slower, tie from below, tie from above; as the four digits of a number
    kinds = (low <= m) * 8 + (high >= -m) * 4 + (low <= -m) * 2 + (high >= m)
    return _forecast(tuple(np.bincount(kinds, minlength=16).tolist()), rule.confidence, rule.anytime)


@lru_cache(maxsize=4096)  # conditions often have the same counts, and one without new blocks always has
def _forecast(counts: tuple[int, ...], confidence: float, anytime: bool) -> Outlook:
    """The forecast for so many blocks of each of the 16 kinds."""
    imagined = np.isin(np.arange(16), (0b1010, 0b1100, 0b0101)) / 3
    there = np.flatnonzero(counts + imagined)
    flags = (there[:, None] & [8, 4, 2, 1]) > 0  # of each kind, what it speaks against
    seen, n = np.array(counts)[there], sum(counts)
    shares = np.cumsum(np.random.default_rng(n).dirichlet(seen + imagined[there], size=FUTURES), axis=1)
    drawn = np.zeros((FUTURES, LONGEST_FORECAST_BLOCKS), dtype=np.int8)
    for share in shares.T[:-1]:
        drawn += _chances() > share[:, None]
    totals = range(n + 1, n + LONGEST_FORECAST_BLOCKS + 1)
    most = np.array([interval_rank(total, confidence, anytime) for total in totals]) - 1
    first = _first_decided(drawn, flags, most[:, None] - flags.T @ seen)
    reached = np.searchsorted(np.sort(first), np.arange(1, LONGEST_FORECAST_BLOCKS + 1), side="right") / FUTURES
    spent = np.cumsum(np.append(1.0, 1.0 - reached[:-1]))  # expected blocks up to each horizon
    rate = float(np.max(reached / spent))
    median, least, most_ = (int(np.ceil(np.quantile(first, share))) for share in (0.5, 0.1, 0.9))
    middle, fewest, longest = (None if each > LONGEST_FORECAST_BLOCKS else each for each in (median, least, most_))
    return Outlook(middle, fewest, longest, rate)


def _first_decided(drawn: NDArray[np.int8], flags: Bools, most: NDArray[np.int64]) -> NDArray[np.intp]:
    """After how many more blocks each future is decided; one more than LONGEST_FORECAST_BLOCKS: in none of them.

    drawn: the kind of every future block, shape (futures, blocks); flags: what each kind speaks against; most: how many
    more blocks may speak against each of the four when so many blocks are over, shape (blocks, 4). The four counts run
    side by side in the 16-bit fields of one number: the highest bit of a field says that it is not used up.
    """
    fields = np.uint64(16) * np.arange(4, dtype=np.uint64)
    steps = (flags.astype(np.uint64) << fields).sum(axis=1)
    left = ((most + 0x8000).astype(np.uint64) << fields).sum(axis=1)
    fits = (left - steps[drawn].cumsum(axis=1, dtype=np.uint64)) >> np.uint64(15)
    tie = (fits >> np.uint64(32)) & (fits >> np.uint64(48))
    decided = (fits | (fits >> np.uint64(16)) | tie) & np.uint64(1)
    first = decided.argmax(axis=1)
    return np.where(decided[np.arange(FUTURES), first] > 0, first + 1, LONGEST_FORECAST_BLOCKS + 1)


@lru_cache(maxsize=1)
def _chances() -> NDArray[np.float32]:
    """Of each future block, which kind it will be: the same for all forecasts, which saves a third of their time."""
    return np.random.default_rng(1).random((FUTURES, LONGEST_FORECAST_BLOCKS), dtype=np.float32)


def forget_forecasts() -> None:
    """Let the next forecasts be made anew; for measurements of how long that takes."""
    _forecast.cache_clear()
