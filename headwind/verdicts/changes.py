"""Compares two runs of the same matrix: which arms got better or worse, independent of machine speed. Pure.

Blocks of two runs cannot be paired, so two samples are compared (two_samples.gain), with the margin and the words of
every other comparison. There are two kinds of change:

- of a ratio: the paired ln ratio of two arms, one for each block. Both arms of a block ran on the same machine in the
  same minute, so the ratios of either run do not contain the machine's speed. A regression is a change of these.
- of an arm's own values. They contain the machine's speed too. A change that all arms of a condition share is
  attributed to the machine (Shared), because such runs cannot distinguish the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any, TypeVar

from headwind.arm import Arm
from headwind.metric import Metric
from headwind.model import Condition, Matrix, Outcome, Result
from headwind.observed import Observed, observed
from headwind.verdicts.findings import FALSE_SHARE, Columns, Rows, columns_of, is_bound, judged_by, rows_of
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.stats import Interval, e_bh
from headwind.verdicts.two_samples import fewest_in_each, gain, share_changed, speeds
from headwind.verdicts.verdict import Rule, Verdict, judge, share_of

UNMEASURED: Mapping[str, Any] = {  # fields of a change of which one run has no data
    "interval": Interval(-math.inf, math.inf, None, 0),
    "verdict": Verdict.INCONCLUSIVE,
    "log_e_value": -math.inf,
    "finishing_differs": False,
}
WIDE_RATIO = 1.5  # an interval that allows a larger change, to either side, makes the change unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of a value from the earlier run to the later, by one metric; ratios above 1: the later is ahead."""

    condition: Condition
    metric: Metric
    verdict: Verdict
    interval: Interval
    finished: tuple[int, int]  # trials, or blocks in which both arms finished, in the earlier and the later run
    trials: tuple[int, int]
    log_e_value: float
    finishing_differs: bool = False  # by more than the stall share: then the speed alone is not enough
    survives: bool = False  # e-BH over all changes of its kind: at most FALSE_SHARE of those that survive are false

    @property
    def favours(self) -> int:
        """+1 better by more than the margin or finishing more often, -1 worse, 0 if chance can explain it."""
        return self.verdict.favours if self.survives and self.verdict.is_clear else 0

    @property
    def is_counted(self) -> bool:
        """True if the two runs can be compared in this."""
        return True

    @property
    def is_regression(self) -> bool:
        """True if it got worse, which is sure."""
        return self.favours < 0

    @property
    def is_improvement(self) -> bool:
        """True if it got better, which is sure."""
        return self.favours > 0

    @property
    def is_bounded(self) -> bool:
        """True if no change is known, and no large change is possible."""
        return not (self.favours or self.is_likely or self.is_unknown)

    @property
    def is_likely(self) -> bool:
        """True for a change that is significant only on its own, before correction, or may be within the margin."""
        return self.is_counted and bool(self.verdict.favours) and not self.favours

    @property
    def is_unknown(self) -> bool:
        """True if neither a change nor a bound on it is known."""
        is_narrow = max(-self.interval.low, self.interval.high) <= math.log(WIDE_RATIO)
        is_bounded = self.is_counted and is_narrow and not self.finishing_differs
        return not (is_bounded or self.favours or self.is_likely)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmChange(Change):
    """The change of an arm's own values, which include the state of the machine."""

    arm: Arm
    is_shared: bool = False  # with all arms of its condition


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioChange(Change):
    """The change of a pair's candidate relative to its baseline."""

    pair: Pair
    bound_once: bool = False  # CPU-bound in only one of the two runs: then it does not survive
    culprit: Arm | None = None  # the arm of the two that changed, if known

    @property
    def is_counted(self) -> bool:
        """True if both runs were CPU-bound, or neither."""
        return not self.bound_once

    @property
    def loser(self) -> Arm:
        """The arm that lost ground to the other, if one did."""
        return self.pair.base if self.verdict.favours > 0 else self.pair.new

    @property
    def winner(self) -> Arm:
        """The arm that gained ground on the other, if one did."""
        return self.pair.new if self.verdict.favours > 0 else self.pair.base

    @property
    def is_regression(self) -> bool:
        """True if one arm lost ground, unless this is known to be the other's gain."""
        return bool(self.favours) and self.culprit != self.winner

    @property
    def is_improvement(self) -> bool:
        """True if one arm gained ground, and this is known not to be the other's loss."""
        return bool(self.favours) and self.culprit == self.winner


@dataclass(frozen=True, slots=True)
class Shared:
    """A change that all arms of a condition share: all better, or all worse, each significantly."""

    condition: Condition
    metric: Metric
    favours: int  # +1 the later run is ahead, -1 behind
    ratio: float | None  # of the middle arm, above 1 the later is ahead; None if an arm changed in finishing


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes between two runs."""

    ratios: tuple[RatioChange, ...]
    arms: tuple[ArmChange, ...]
    shared: tuple[Shared, ...]
    fewest: int = 1  # blocks that each run needs before a change can be detected

    def is_regression(self, *, absolute: bool) -> bool:
        """True if a ratio got worse, or, with `absolute`, an arm's own values."""
        return any(change.is_regression for change in self.ratios) or (
            absolute and any(change.is_regression for change in self.arms)
        )


_Kind = TypeVar("_Kind", ArmChange, RatioChange)


def changes(matrix: Matrix, earlier: Iterable[Result], later: Iterable[Result]) -> Changes:
    """Changes of every pair and every arm of the matrix by every judged metric, if both runs have data of it."""
    before, after = rows_of(earlier), rows_of(later)
    rule = Rule(matrix.repeat.confidence, matrix.repeat.margin_ratio)
    arms: list[ArmChange] = []
    ratios: list[RatioChange] = []
    for condition in matrix.conditions:
        rows = before.get(condition.id, {}), after.get(condition.id, {})
        pairs = [pair for pair in pairs_of(matrix, condition) if not pair.is_check]
        for metric in matrix.judged(condition):
            arms += (_arm_change(condition, arm, metric, *rows, rule) for arm in matrix.arms)
            ratios += (
                _ratio_change(condition, pair, metric, *rows, rule)
                for pair in pairs if metric in judged_by(matrix, condition, pair)
            )  # fmt: skip
    arms = _surviving([change for change in arms if all(change.trials)])
    ratios = _surviving([change for change in ratios if all(change.trials)])
    shared = tuple(_shared(arms))
    common = {(each.condition, each.metric) for each in shared}
    arms = [replace(change, is_shared=(change.condition, change.metric) in common) for change in arms]
    ratios = [replace(each, culprit=_culprit(each, ratios, arms)) for each in ratios]
    return Changes(tuple(ratios), tuple(arms), shared, fewest_in_each(rule.confidence))


def with_unmeasured(found: Changes, asked: Matrix, earlier: Iterable[Result], later: Iterable[Result]) -> Changes:
    """The changes, with everything added that both runs should have measured and one of them did not: unknown.

    `asked` is the common part of both matrices.
    """
    before, after = rows_of(earlier), rows_of(later)
    rule = Rule(asked.repeat.confidence, asked.repeat.margin_ratio)
    ratios = {(each.condition, each.pair, each.metric): each for each in found.ratios}
    arms = {(each.condition, each.arm, each.metric): each for each in found.arms}
    for condition in asked.conditions:
        rows = before.get(condition.id, {}), after.get(condition.id, {})
        pairs = [pair for pair in pairs_of(asked, condition) if {pair.new, pair.base} <= {*asked.arms}]
        for metric in asked.judged(condition):
            for arm in asked.arms:
                if (condition, arm, metric) not in arms:
                    lacking = _arm_change(condition, arm, metric, *rows, rule)
                    arms[condition, arm, metric] = replace(lacking, **UNMEASURED)
            for pair in pairs:
                if (condition, pair, metric) not in ratios and metric in judged_by(asked, condition, pair):
                    unpaired = _ratio_change(condition, pair, metric, *rows, rule)
                    ratios[condition, pair, metric] = replace(unpaired, **UNMEASURED)
    return replace(found, ratios=tuple(ratios.values()), arms=tuple(arms.values()))


def _surviving(found: list[_Kind]) -> list[_Kind]:
    survivors = e_bh([change.log_e_value for change in found], FALSE_SHARE)
    return [replace(change, survives=survives) for change, survives in zip(found, survivors, strict=True)]


def _arm_change(condition: Condition, arm: Arm, metric: Metric, before: Rows, after: Rows, rule: Rule) -> ArmChange:
    base, new = (_sample(rows, arm, metric) for rows in (before, after))
    interval, log_speed = gain(speeds(base, metric.better), speeds(new, metric.better), rule.confidence, rule.margin)
    finished = _finished(before, arm, metric), _finished(after, arm, metric)
    trials = len(base), len(new)
    gained = _share(finished[1], trials[1]) - _share(finished[0], trials[0])
    log_completion = share_changed(finished, trials)
    verdict = _verdict(interval, gained, log_completion, rule)
    log_e = _evidence(verdict, log_speed, log_completion)
    return ArmChange(
        condition=condition, arm=arm, metric=metric, verdict=verdict, interval=interval, finished=finished,
        trials=trials, log_e_value=log_e, finishing_differs=abs(gained) > rule.stall_ratio,
    )  # fmt: skip


def _ratio_change(
    condition: Condition, pair: Pair, metric: Metric, before: Rows, after: Rows, rule: Rule
) -> RatioChange:
    columns = tuple(columns_of(rows, pair, metric) for rows in (before, after))
    interval, log_speed = gain(columns[0].bounds, columns[1].bounds, rule.confidence, rule.margin)
    trials = (len(columns[0].rows), len(columns[1].rows))
    only_base, only_new = (tuple(counts) for counts in zip(*map(_finished_alone, columns), strict=True))
    # If neither share changed, the mean of both e-values has an expectation of at most 1.
    evidence = share_changed(only_base, trials), share_changed(only_new, trials)
    log_completion = math.log(sum(map(math.exp, evidence)) / len(evidence))
    lead = [_share(new - base, n) for base, new, n in zip(only_base, only_new, trials, strict=True)]
    gained = lead[1] - lead[0]
    verdict = _verdict(interval, gained, log_completion, rule)
    bound_once = is_bound(before, pair) != is_bound(after, pair)
    log_e = -math.inf if bound_once else _evidence(verdict, log_speed, log_completion)
    both = [sum(base and new for base, new in zip(*each.finished, strict=True)) for each in columns]
    return RatioChange(
        condition=condition, pair=pair, metric=metric, verdict=verdict, interval=interval,
        finished=(both[0], both[1]), trials=trials, log_e_value=log_e, bound_once=bound_once,
        finishing_differs=abs(gained) > rule.stall_ratio,
    )  # fmt: skip


def _finished_alone(columns: Columns) -> tuple[int, int]:
    """Numbers of blocks that only the baseline finished, and that only the candidate finished."""
    done = list(zip(*columns.finished, strict=True))
    return sum(base and not new for base, new in done), sum(new and not base for base, new in done)


def _evidence(verdict: Verdict, log_speed: float, log_completion: float) -> float:
    """ln of the evidence for the claim that is made, times its share (verdict.share_of); -inf without a claim."""
    if not verdict.is_clear:
        return -math.inf
    return (log_completion if verdict.is_completion else log_speed) + math.log(share_of(verdict))


def _verdict(interval: Interval, gained: float, log_completion: float, rule: Rule) -> Verdict:
    """Completion first; while it is open, an arm that finishes less often by more than the stall share is not faster.

    `gained` is the share of trials that the later run finishes more than the earlier. It is the rule of verdict.follow,
    for samples instead of blocks.
    """
    if log_completion >= -math.log1p(-rule.confidence):
        return Verdict.COMPLETES_MORE if gained > 0 else Verdict.COMPLETES_LESS
    speed = judge(interval, rule.margin, exhausted=True)
    excess = -gained * speed.favours if speed.favours else abs(gained)
    return Verdict.INCONCLUSIVE if speed.says_something and excess > rule.stall_ratio else speed


def _shared(arms: Sequence[ArmChange]) -> Iterator[Shared]:
    """Changes that two or more arms share with the same sign; the arm in the middle stands for the machine."""
    for (condition, metric), group in groupby(arms, key=lambda change: (change.condition, change.metric)):
        members = list(group)
        sides = {change.favours for change in members}
        if len(members) > 1 and sides in ({1}, {-1}):
            estimates = [change.interval.estimate for change in members if not change.verdict.is_completion]
            known = [estimate for estimate in estimates if estimate is not None]
            ratio = math.exp(median(known)) if len(known) == len(members) else None
            yield Shared(condition, metric, sides.pop(), ratio)


def _culprit(change: RatioChange, ratios: Sequence[RatioChange], arms: Sequence[ArmChange]) -> Arm | None:
    """The arm of the two that changed; None if unknown, which counts as the loser's regression.

    If the arms do not share a change, it is the arm whose own values moved in the direction of the ratio. If they do,
    or both moved or neither, it is the arm that also moved against third arms: if h3 lost ground to h1 and to h2, and
    h2 none to h1, it is h3.
    """
    if not change.favours:
        return None
    own = {each.arm: each for each in arms if (each.condition, each.metric) == (change.condition, change.metric)}
    lost, won = own[change.loser].favours < 0, own[change.winner].favours > 0
    if lost != won and not own[change.loser].is_shared:
        return change.loser if lost else change.winner
    related = [other for other in ratios if (other.condition, other.metric) == (change.condition, change.metric)
              and other.favours and other.pair != change.pair]  # fmt: skip
    losses = sum(other.loser == change.loser for other in related)
    gains = sum(other.winner == change.winner for other in related)
    if losses == gains:
        return None
    return change.loser if losses > gains else change.winner


def _sample(rows: Rows, arm: Arm, metric: Metric) -> list[Observed]:
    times = (observed(row.get(arm), metric) for row in rows.values())
    return [time for time in times if time is not None]


def _finished(rows: Rows, arm: Arm, metric: Metric) -> int:
    """The number of finished trials among those with data of the metric."""
    own = (row[arm] for row in rows.values() if arm in row and observed(row[arm], metric) is not None)
    return sum(result.outcome is Outcome.OK for result in own)


def _share(count: int, of: int) -> float:
    return count / of if of else 0.0
