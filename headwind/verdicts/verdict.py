"""From intervals to verdicts: faster, slower, tie, or not enough data; who completes more often comes first.

"New" is the candidate and "base" what it is compared with: h3 against h2 has base h2. All of it is pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from headwind.metric import Better
from headwind.observed import Observed
from headwind.verdicts.stats import (
    Interval,
    interval_rank,
    log_e_of_count,
    log_e_tie,
    log_e_value,
    paired_bounds,
    ratio_interval,
)

FUTURES = 400  # simulated continuations behind a forecast, in 10 ms: chance moves their median by some 10 %
LONGEST_FORECAST_BLOCKS = 300  # five times the usual maximum; beyond it a forecast is guesswork


class Verdict(StrEnum):
    """What the data say about the candidate. Undecided means go on; inconclusive means that the budget ended first."""

    COMPLETES_MORE = "completes more often"
    COMPLETES_LESS = "completes less often"
    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    SLIGHTLY_FASTER = "slightly faster"
    SLIGHTLY_SLOWER = "slightly slower"
    INCONCLUSIVE = "inconclusive"
    UNDECIDED = "undecided"

    @property
    def opposite(self) -> Verdict:
        """The same finding with candidate and baseline exchanged."""
        return _OPPOSITES.get(self, self)

    @property
    def favours(self) -> int:
        """+1 the candidate, -1 the baseline, 0 neither."""
        if self in (Verdict.COMPLETES_MORE, Verdict.FASTER, Verdict.SLIGHTLY_FASTER):
            return 1
        return 0 if self.opposite is self else -1

    @property
    def says_something(self) -> bool:
        """True for a tie and for every difference, a slight one too."""
        return self is Verdict.TIE or self.favours != 0

    @property
    def is_completion(self) -> bool:
        """True when it is about who finishes, and not about speed."""
        return self in (Verdict.COMPLETES_MORE, Verdict.COMPLETES_LESS)

    @property
    def is_clear(self) -> bool:
        """True when one side is better by more than the margin, or completes more often."""
        return self.favours != 0 and not self.is_slight

    @property
    def is_slight(self) -> bool:
        """True for a difference that may be within the margin."""
        return self in (Verdict.SLIGHTLY_FASTER, Verdict.SLIGHTLY_SLOWER)


_PAIRS = (
    (Verdict.COMPLETES_MORE, Verdict.COMPLETES_LESS),
    (Verdict.FASTER, Verdict.SLOWER),
    (Verdict.SLIGHTLY_FASTER, Verdict.SLIGHTLY_SLOWER),
)
_OPPOSITES = {**dict(_PAIRS), **{worse: better for better, worse in _PAIRS}}


@dataclass(frozen=True, slots=True)
class Rule:
    """What counts as a difference, and how sure to be. Declared before the first block."""

    confidence: float = 0.95
    margin_ratio: float = 0.05  # times closer than this factor (1.05) are a tie
    anytime: bool = True  # False only when the number of blocks was fixed before the first
    stall_ratio: float = 0.05  # share of blocks a protocol may stall in, beyond the other, and still be called fast

    def __post_init__(self) -> None:
        if not (0 < self.confidence < 1 and self.margin_ratio > 0 and 0 <= self.stall_ratio < 1):
            raise ValueError(f"impossible {self}: confidence in (0, 1), margin above 0, stall share in [0, 1)")

    @property
    def margin(self) -> float:
        """The margin in ln units; the same distance in both directions."""
        return math.log1p(self.margin_ratio)


def judge(interval: Interval, margin: float, exhausted: bool) -> Verdict:
    """The verdict that an interval carries; margin in ln units, exhausted when no more blocks will come.

    An interval wholly outside the margin is a difference, wholly inside a tie (interval inclusion for equivalence:
    Westlake 1972; Schuirmann 1987). Words for an interval that only excludes 1 are kept for the end of the budget.
    """
    if interval.low > margin:
        return Verdict.FASTER
    if interval.high < -margin:
        return Verdict.SLOWER
    if -margin < interval.low and interval.high < margin:
        return Verdict.TIE
    if not exhausted:
        return Verdict.UNDECIDED
    if interval.low > 0:
        return Verdict.SLIGHTLY_FASTER
    return Verdict.SLIGHTLY_SLOWER if interval.high < 0 else Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Completion:
    """How often both protocols finished, over n blocks. Only blocks in which one of the two did carry evidence."""

    n: int
    base_finished: int
    new_finished: int
    only_base: int  # blocks that the baseline alone finished
    only_new: int
    verdict: Verdict  # COMPLETES_MORE, COMPLETES_LESS, or UNDECIDED: no difference shown

    @property
    def log_e_value(self) -> float:
        """ln of the anytime-valid evidence against "both finish equally often"."""
        return log_e_of_count(self.only_base + self.only_new, self.only_base)

    def stalls_too_often(self, favours: int, stall_ratio: float) -> bool:
        """True when the favoured side (0: either) stalled in more than stall_ratio of the blocks beyond the other."""
        excess = (self.only_base - self.only_new) * favours if favours else abs(self.only_base - self.only_new)
        return excess > stall_ratio * self.n


def completion(base_finished: Sequence[bool], new_finished: Sequence[bool], rule: Rule) -> Completion:
    """Which of two protocols finishes more often: the sign test on the blocks where exactly one finished.

    Inputs: one value per block, in the same order. Source: McNemar, Psychometrika 12, 1947, in its exact form; with
    rule.anytime the same counts against the martingale of stats.log_e_of_count.
    """
    pairs = list(zip(base_finished, new_finished, strict=True))
    only_base, only_new = pairs.count((True, False)), pairs.count((False, True))
    verdict = Verdict.UNDECIDED
    if min(only_base, only_new) < interval_rank(only_base + only_new, rule.confidence, rule.anytime):
        verdict = Verdict.COMPLETES_MORE if only_new > only_base else Verdict.COMPLETES_LESS
    return Completion(len(pairs), sum(base_finished), sum(new_finished), only_base, only_new, verdict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against one baseline in one condition: the verdict and everything that it rests on."""

    verdict: Verdict
    interval: Interval
    completion: Completion
    log_e_value: float  # ln of the evidence for the verdict; what e_bh takes. -inf: there is none, or a slight one
    withheld: Verdict | None = None  # the verdict on speed that stalls held back


CLAIMS = 3  # that a comparison can make: a difference in speed, a tie, a difference in completion


def compare(
    base: Sequence[Observed], new: Sequence[Observed], rule: Rule, exhausted: bool, better: Better = Better.LESS
) -> Comparison:
    """Judge a candidate against a baseline from their times in the same blocks, in block order.

    Or from any other metric, of which `better` says whether less or more of it is wanted.

    Completion comes first. While it is open, a protocol that stalled in more than rule.stall_ratio of the blocks beyond
    the other gets no verdict that favours it, and no tie: undecided, and inconclusive once exhausted.

    The e-value is that for the claim which is made, over CLAIMS. Whatever the claim, its expectation while the claim is
    false is at most 1, and that is all that e-BH needs (Wang and Ramdas, JRSS B 84, 2022, theorem 2): so at most the
    given share of the surviving claims is false as worded, differences "by more than the margin" among them.
    """
    finishing = completion([time.is_finished for time in base], [time.is_finished for time in new], rule)
    return judge_bounds(*paired_bounds(base, new, better), finishing, rule, exhausted)


def judge_bounds(lows: ArrayLike, highs: ArrayLike, finishing: Completion, rule: Rule, exhausted: bool) -> Comparison:
    """As `compare`, from the bounds of paired_bounds and from who finished how often."""
    interval = ratio_interval(lows, highs, rule.confidence, rule.anytime)
    if finishing.verdict is not Verdict.UNDECIDED:
        return Comparison(finishing.verdict, interval, finishing, finishing.log_e_value - math.log(CLAIMS))
    speed = judge(interval, rule.margin, exhausted)
    if speed.says_something and finishing.stalls_too_often(speed.favours, rule.stall_ratio):
        verdict = Verdict.INCONCLUSIVE if exhausted else Verdict.UNDECIDED
        return Comparison(verdict, interval, finishing, -math.inf, withheld=speed)
    if speed is Verdict.TIE:
        return Comparison(speed, interval, finishing, log_e_tie(lows, highs, rule.margin) - math.log(CLAIMS))
    log_e = log_e_value(lows, highs, rule.margin) - math.log(CLAIMS) if speed.is_clear else -math.inf
    return Comparison(speed, interval, finishing, log_e)


def ended(comparison: Comparison, rule: Rule) -> Comparison:
    """What a comparison that was judged while more blocks could come says once none will: `exhausted` of `compare`."""
    if comparison.verdict is not Verdict.UNDECIDED:
        return comparison
    speed = judge(comparison.interval, rule.margin, exhausted=True)
    if speed.says_something and comparison.completion.stalls_too_often(speed.favours, rule.stall_ratio):
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, withheld=speed)
    return replace(comparison, verdict=speed)


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
    kinds = (there[:, None] & [8, 4, 2, 1]) > 0  # four flags of each
    seen, n = np.array(counts)[there], sum(counts)
    weights = seen + imagined[there]
    random = np.random.default_rng(n)
    shares = np.cumsum(random.dirichlet(weights, size=FUTURES), axis=1)
    chance = random.random((FUTURES, LONGEST_FORECAST_BLOCKS))
    drawn = np.zeros(chance.shape, dtype=np.int8)
    for share in shares.T[:-1]:
        drawn += chance > share[:, None]
    totals = range(n + 1, n + LONGEST_FORECAST_BLOCKS + 1)
    most = np.array([interval_rank(total, confidence, anytime) for total in totals], dtype=np.int16)
    fits = [flags[drawn].cumsum(axis=1, dtype=np.int16) < most - int(flags @ seen) for flags in kinds.T]
    decided = fits[0] | fits[1] | (fits[2] & fits[3])
    first = np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, LONGEST_FORECAST_BLOCKS + 1)
    reached = np.searchsorted(np.sort(first), np.arange(1, LONGEST_FORECAST_BLOCKS + 1), side="right") / FUTURES
    spent = np.cumsum(np.append(1.0, 1.0 - reached[:-1]))  # expected blocks up to each horizon
    rate = float(np.max(reached / spent))
    median, least, most_ = (int(np.ceil(np.quantile(first, share))) for share in (0.5, 0.1, 0.9))
    middle, fewest, longest = (None if each > LONGEST_FORECAST_BLOCKS else each for each in (median, least, most_))
    return Outlook(middle, fewest, longest, rate)


def forget_forecasts() -> None:
    """Let the next forecasts be made anew; for measurements of how long that takes."""
    _forecast.cache_clear()


class Standing(StrEnum):
    """How clear the top of a condition is."""

    WINNER = "winner"
    TIE = "tie at the top"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Top:
    """The protocols that nobody clearly beats, in the order given, and how clear that is."""

    protocols: tuple[str, ...]
    standing: Standing


def winner(protocols: Iterable[str], verdicts: Mapping[tuple[str, str], Verdict]) -> Top:
    """Who is best in one condition, from the verdict of every pair, keyed (base, new) in either order.

    A winner clearly beats every other protocol, so also the runner-up, whichever that is. A false winner needs one of
    the k - 1 intervals against the truly best to err on one side: at most 5 % for three protocols at 95 %.
    A pair without a verdict, because nobody compared it, is not decided.
    """
    names = tuple(protocols)

    def verdict_for(new: str, base: str) -> Verdict:
        return verdicts.get((base, new), verdicts.get((new, base), Verdict.UNDECIDED).opposite)

    def beats(one: str, other: str) -> bool:
        verdict = verdict_for(one, other)
        return verdict.is_clear and verdict.favours > 0

    for name in names:
        if all(beats(name, other) for other in names if other != name):
            return Top((name,), Standing.WINNER)
    unbeaten = tuple(name for name in names if not any(beats(other, name) for other in names if other != name))
    top = unbeaten or names  # medians can form a circle
    pairs = [(one, other) for i, one in enumerate(top) for other in top[i + 1 :]]
    tied = bool(pairs) and all(verdict_for(one, other) is Verdict.TIE for one, other in pairs)
    return Top(top, Standing.TIE if tied else Standing.OPEN)
