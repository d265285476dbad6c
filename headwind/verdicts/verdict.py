"""From intervals to verdicts: faster, slower, tie, or not enough data; completing more often comes first.

"New" is the candidate and "base" the baseline: h3 against h2 has base h2. All of it is pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from headwind.metric import Better
from headwind.observed import Observed
from headwind.verdicts.stats import (
    Bools,
    Floats,
    Interval,
    fewest_blocks,
    interval_rank,
    log_e_against,
    narrowed,
    paired_bounds,
    ratio_interval,
    running_interval,
)

FEWEST_STALLS = 2  # beyond the other's: a single one is not enough to estimate how often a protocol stalls


class Verdict(StrEnum):
    """The verdict about the candidate. Undecided: more blocks can decide. Inconclusive: the budget ended first."""

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
        """True for a tie and for every difference, including a slight one."""
        return self is Verdict.TIE or self.favours != 0

    @property
    def is_completion(self) -> bool:
        """True if it is about completion, and not about speed."""
        return self in (Verdict.COMPLETES_MORE, Verdict.COMPLETES_LESS)

    @property
    def is_clear(self) -> bool:
        """True if one side is better by more than the margin, or completes more often."""
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
    """The definition of a difference, and the confidence. Declared before the first block."""

    confidence: float = 0.95
    margin_ratio: float = 0.05  # times closer than this factor (1.05) are a tie
    anytime: bool = True  # False only if the number of blocks was fixed before the first
    stall_ratio: float = 0.05  # share of blocks a protocol may stall in, beyond the other, and still be called fast
    fixed: bool = False  # the number of blocks, also while the run is not complete

    def __post_init__(self) -> None:
        if not (0 < self.confidence < 1 and self.margin_ratio > 0 and 0 <= self.stall_ratio < 1):
            raise ValueError(f"impossible {self}: confidence in (0, 1), margin above 0, stall share in [0, 1)")

    def blocks_needed(self, n: int) -> int:
        """The fewest blocks for a verdict, given n; for a fixed number those of the complete run."""
        complete = fewest_blocks(self.confidence, self.anytime and not self.fixed)
        return complete if n < complete else fewest_blocks(self.confidence, self.anytime)

    @property
    def margin(self) -> float:
        """The margin in ln units; the same distance in both directions."""
        return math.log1p(self.margin_ratio)


def judge(interval: Interval, margin: float, exhausted: bool) -> Verdict:
    """The verdict of an interval; margin in ln units, exhausted if no more blocks will come.

    An interval wholly outside the margin is a difference, wholly inside a tie (interval inclusion for equivalence:
    Westlake 1972; Schuirmann 1987). An interval that only excludes 1 gets a slight verdict, only at the end of the
    budget.
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
    """How often both protocols finished, over n blocks. Only blocks that exactly one finished carry evidence."""

    n: int
    base_finished: int
    new_finished: int
    only_base: int  # blocks that only the baseline finished
    only_new: int
    verdict: Verdict  # COMPLETES_MORE, COMPLETES_LESS, or UNDECIDED: no difference shown
    decided_at: int = 0  # the first block after which the verdict held; 0: none

    def stalls_too_often(self, favours: int, stall_ratio: float) -> bool:
        """True if the favoured side (0: either) stalled too often beyond the other to be called fast.

        That is in more than stall_ratio of the blocks, and in at least FEWEST_STALLS.
        """
        excess = (self.only_base - self.only_new) * favours if favours else abs(self.only_base - self.only_new)
        return excess >= FEWEST_STALLS and excess > stall_ratio * self.n

    def stalled(self, favours: int) -> int:
        """Number of blocks that the favoured side did not finish; 0 if neither is favoured."""
        return {1: self.n - self.new_finished, -1: self.n - self.base_finished, 0: 0}[favours]


def completion(base_finished: Sequence[bool], new_finished: Sequence[bool], rule: Rule) -> Completion:
    """Which of two protocols finishes more often: the sign test on the blocks that exactly one finished.

    Inputs: one value per block, in the same order. Source: McNemar, Psychometrika 12, 1947, in its exact form; with
    rule.anytime the same counts against the martingale of stats.log_e_of_count, and a verdict stays.
    """
    only = [(base and not new, new and not base) for base, new in zip(base_finished, new_finished, strict=True)]
    only_base, only_new, verdict, decided_at = 0, 0, Verdict.UNDECIDED, 0
    for number, (base, new) in enumerate(only, 1):
        only_base, only_new = only_base + base, only_new + new
        looks = (base or new) if rule.anytime else number == len(only)
        if looks and not decided_at and (verdict := _completes(only_base, only_new, rule)) is not Verdict.UNDECIDED:
            decided_at = number
    return Completion(len(only), sum(base_finished), sum(new_finished), only_base, only_new, verdict, decided_at)


def _completes(only_base: int, only_new: int, rule: Rule) -> Verdict:
    if min(only_base, only_new) >= interval_rank(only_base + only_new, rule.confidence, rule.anytime):
        return Verdict.UNDECIDED
    return Verdict.COMPLETES_MORE if only_new > only_base else Verdict.COMPLETES_LESS


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a baseline in one condition: the verdict and everything that it rests on."""

    verdict: Verdict
    interval: Interval
    completion: Completion
    log_e_value: float  # ln of the evidence for the verdict, for e_bh. -inf: no verdict, or a slight one
    withheld: Verdict | None = None  # the verdict on speed that stalls held back


# A comparison can claim something on speed (faster, slower or a tie), or on completion. The weight of each kind is
# declared before the first block. Most questions are about speed: few arms ever fail to complete.
SPEED_SHARE = 0.8
COMPLETION_SHARE = 1 - SPEED_SHARE


def share_of(verdict: Verdict) -> float:
    """The factor of the evidence for this claim; the shares of the two kinds of claims add up to 1."""
    return COMPLETION_SHARE if verdict.is_completion else SPEED_SHARE


def compare(
    base: Sequence[Observed], new: Sequence[Observed], rule: Rule, exhausted: bool, better: Better = Better.LESS
) -> Comparison:
    """Judge a candidate against a baseline from their times in the same blocks, in block order.

    Other metrics work too: `better` states whether less or more is better.
    """
    lows, highs = (side.tolist() for side in paired_bounds(base, new, better))
    return follow(lows, highs, [t.is_finished for t in base], [t.is_finished for t in new], rule, exhausted)[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a comparison after a number of blocks, and ln of the evidence for it."""

    verdict: Verdict
    log_e_value: float


NO_CLAIM = Claim(Verdict.UNDECIDED, -math.inf)


def follow(
    lows: Sequence[float],
    highs: Sequence[float],
    base_finished: Sequence[bool],
    new_finished: Sequence[bool],
    rule: Rule,
    exhausted: bool,
) -> tuple[Comparison, Sequence[Claim]]:
    """The comparison after all of its blocks, and its claim after each of them (empty if it never made one).

    `lows` and `highs` are from paired_bounds. Completion comes first. While it is open, a protocol that stalls too
    often beyond the other (Completion.stalls_too_often) gets no verdict that favours it, and no tie: undecided, and
    inconclusive once exhausted. With rule.anytime intervals are those of stats.narrowed, so a verdict on speed stays.

    The e-value is that for the claim which is made, times its share (share_of). If the claim is false as worded, it is
    at most the mean of two test martingales, weighted with their shares, so its expectation is at most 1 at any
    stopping time, which is all that e-BH needs:

    - Speed. Let t be the true median and M the martingale of log_e_of_count at t. "Faster" has evidence
      log_e_against(n, k) of the k blocks that may lie at or below the margin. It is false if t is at or below the
      margin; then no more than k blocks lie below t, and evidence falls with its count up to n / 2, so M is at least as
      large. "Slower" is its mirror image. A tie has the lesser evidence of both margins; it is false if t lies beyond
      one of them, and that one's is at most M for the same reason. M bounds each of the three claims.
    - Completion. Let p be the true share of the blocks that only the candidate finished, among those that exactly one
      finished. "Completes more often" is false if p is at most 1/2; then the observed counts, most of them the
      candidate's, are no likelier under p than under 1/2, and the mixture's likelihood ratio against p is at least that
      against 1/2.
    """
    finishing = completion(base_finished, new_finished, rule)
    interval = interval_of(lows, highs, rule)
    speed = judge(interval, rule.margin, exhausted)
    if finishing.verdict is Verdict.UNDECIDED and not (speed is Verdict.TIE or speed.is_clear):
        return Comparison(speed, interval, finishing, -math.inf), ()
    columns = np.asarray(lows), np.asarray(highs), np.asarray(base_finished), np.asarray(new_finished)
    claims = _claims(*columns, finishing, rule)
    last = claims[-1]
    if last is not NO_CLAIM:
        return Comparison(last.verdict, interval, finishing, last.log_e_value), claims
    return Comparison(_withheld(exhausted), interval, finishing, -math.inf, withheld=speed), claims


def interval_of(lows: Sequence[float], highs: Sequence[float], rule: Rule) -> Interval:
    """Interval of the median difference: after all blocks of a fixed number, or within all intervals so far."""
    if rule.anytime:
        return running_interval(lows, highs, rule.confidence)
    return ratio_interval(lows, highs, rule.confidence, anytime=False)


def _withheld(exhausted: bool) -> Verdict:
    return Verdict.INCONCLUSIVE if exhausted else Verdict.UNDECIDED


def _claims(
    lows: Floats, highs: Floats, base_finished: Bools, new_finished: Bools, finishing: Completion, rule: Rule
) -> list[Claim]:
    """The claim after each block. For a fixed number of blocks there is only one, after the last."""
    m, n = rule.margin, np.arange(1, len(lows) + 1)
    if rule.anytime:
        low, high = np.array(list(narrowed(lows.tolist(), highs.tolist(), rule.confidence))).T
    else:
        fixed = ratio_interval(lows, highs, rule.confidence, anytime=False)
        low, high = np.full(len(n), fixed.low), np.full(len(n), fixed.high)
    only_base, only_new = np.cumsum(base_finished & ~new_finished), np.cumsum(new_finished & ~base_finished)
    evidence = {
        Verdict.FASTER: log_e_against(n, np.cumsum(lows <= m)),
        Verdict.SLOWER: log_e_against(n, np.cumsum(highs >= -m)),
        Verdict.TIE: np.minimum(log_e_against(n, np.cumsum(lows <= -m)), log_e_against(n, np.cumsum(highs >= m))),
        Verdict.COMPLETES_MORE: log_e_against(only_base + only_new, only_base),
        Verdict.COMPLETES_LESS: log_e_against(only_base + only_new, only_new),
    }
    holds = {
        Verdict.FASTER: (low > m) & ~_stalls(only_base - only_new, n, rule),
        Verdict.SLOWER: (high < -m) & ~_stalls(only_new - only_base, n, rule),
        Verdict.TIE: (low > -m) & (high < m) & ~_stalls(np.abs(only_base - only_new), n, rule),
        finishing.verdict: n >= finishing.decided_at,  # set last, so it takes precedence
    }
    claims = [NO_CLAIM] * len(n)
    for verdict in evidence:
        for number in np.flatnonzero(holds.get(verdict, False)):
            claims[number] = Claim(verdict, float(evidence[verdict][number]) + math.log(share_of(verdict)))
    return claims


def _stalls(excess: NDArray[np.int64], n: NDArray[np.int64], rule: Rule) -> Bools:
    """The condition of Completion.stalls_too_often, after each block."""
    return (excess >= FEWEST_STALLS) & (excess > rule.stall_ratio * n)


def ended(comparison: Comparison, rule: Rule) -> Comparison:
    """The comparison, judged while more blocks could come, once none will: `exhausted` of `compare`."""
    if comparison.verdict is not Verdict.UNDECIDED:
        return comparison
    speed = judge(comparison.interval, rule.margin, exhausted=True)
    if speed.says_something and comparison.completion.stalls_too_often(speed.favours, rule.stall_ratio):
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, withheld=speed)
    return replace(comparison, verdict=speed)


class Lead(StrEnum):
    """How clear the lead in a condition is."""

    WINNER = "winner"
    TIE = "tie at the top"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Top:
    """The protocols that no protocol clearly beats, in the order given, and how clear that is."""

    protocols: tuple[str, ...]
    lead: Lead


def winner(protocols: Iterable[str], verdicts: Mapping[tuple[str, str], Verdict]) -> Top:
    """The best in one condition, from the verdict of every pair, keyed (base, new) in either order.

    A winner clearly beats every other protocol, so also the runner-up, whichever that is. A false winner needs one of
    the k - 1 intervals against the truly best to err on one side: at most 5 % for three protocols at 95 %. A pair
    without a verdict, because it was not compared, is not decided.
    """
    names = tuple(protocols)

    def verdict_for(new: str, base: str) -> Verdict:
        return verdicts.get((base, new), verdicts.get((new, base), Verdict.UNDECIDED).opposite)

    def beats(one: str, other: str) -> bool:
        verdict = verdict_for(one, other)
        return verdict.is_clear and verdict.favours > 0

    for name in names:
        if all(beats(name, other) for other in names if other != name):
            return Top((name,), Lead.WINNER)
    unbeaten = tuple(name for name in names if not any(beats(other, name) for other in names if other != name))
    top = unbeaten or names  # medians can form a circle
    pairs = [(one, other) for i, one in enumerate(top) for other in top[i + 1 :]]
    tied = bool(pairs) and all(verdict_for(one, other) is Verdict.TIE for one, other in pairs)
    return Top(top, Lead.TIE if tied else Lead.OPEN)
