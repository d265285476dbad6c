"""Compares two runs of the same matrix: which arms got better or worse, free of the machine's moods. Pure.

Blocks of two runs have nothing in common but their names, so two samples are compared (two_samples.gain), with the
margin and the words of every other comparison. There are two kinds of change:

- of a ratio: the paired ln ratio of two arms, one for each block. Both arms of a block ran on the same machine in the
  same minute, so how fast the machine was is in neither run's ratios. A regression is a change of these.
- of an arm's own values. They hold the machine's speed, too. What all arms of a condition share is called the
  machine's (Shared), because nothing in such runs can tell it from that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import TypeVar

from headwind.arm import Arm
from headwind.metric import Metric
from headwind.model import Condition, Matrix, Outcome, Result
from headwind.observed import Observed, observed
from headwind.verdicts.findings import FALSE_SHARE, Columns, Pair, Rows, columns_of, is_bound, pairs_of, rows_of
from headwind.verdicts.stats import Interval, e_bh
from headwind.verdicts.two_samples import fewest_in_each, gain, share_changed, speeds
from headwind.verdicts.verdict import Rule, Verdict, judge, share_of

WIDE_RATIO = 1.5  # an interval that leaves a larger change possible, to either side, says nothing about the change


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of something from the earlier run to the later, by one metric; ratios above 1: the later is ahead."""

    condition: Condition
    metric: Metric
    verdict: Verdict
    interval: Interval
    finished: tuple[int, int]  # trials, or blocks in which both arms did, in the earlier and the later run
    trials: tuple[int, int]
    log_e_value: float
    finishing_differs: bool = False  # by more than the stall share: then the speed alone says too little
    survives: bool = False  # e-BH over all changes of its kind: at most FALSE_SHARE of those that survive are false

    @property
    def favours(self) -> int:
        """+1 better by more than the margin or finishing more often, -1 worse, 0 where chance may have done it."""
        return self.verdict.favours if self.survives and self.verdict.is_clear else 0

    @property
    def is_counted(self) -> bool:
        """Whether the two runs may be held against each other in this at all."""
        return True

    @property
    def is_likely(self) -> bool:
        """Something changed by itself, but not surely: among so many, or by more than the margin."""
        return self.is_counted and bool(self.verdict.favours) and not self.favours

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known: neither that something changed, nor that a change is small."""
        is_narrow = max(-self.interval.low, self.interval.high) <= math.log(WIDE_RATIO)
        is_bounded = self.is_counted and is_narrow and not self.finishing_differs
        return not (is_bounded or self.favours or self.is_likely)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmChange(Change):
    """How an arm's own values changed, with everything that was else on the machine."""

    arm: Arm
    is_shared: bool = False  # with all arms of its condition


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioChange(Change):
    """How the candidate of a pair changed against its baseline."""

    pair: Pair
    bound_once: bool = False  # processors were the limit in one of the two runs only: then nothing survives
    culprit: Arm | None = None  # the arm of the two that changed, where that can be told

    @property
    def is_counted(self) -> bool:
        """Whether processors were the limit in both runs or in neither."""
        return not self.bound_once

    @property
    def loser(self) -> Arm:
        """Who lost ground to the other, if anyone did."""
        return self.pair.base if self.verdict.favours > 0 else self.pair.new

    @property
    def winner(self) -> Arm:
        """The other one."""
        return self.pair.new if self.verdict.favours > 0 else self.pair.base

    @property
    def is_regression(self) -> bool:
        """One arm lost ground, and it is not known to be the other's gain."""
        return bool(self.favours) and self.culprit != self.winner

    @property
    def is_improvement(self) -> bool:
        """One arm gained ground, and that is not the other's loss."""
        return bool(self.favours) and self.culprit == self.winner


@dataclass(frozen=True, slots=True)
class Shared:
    """What all arms of a condition have in common: all better, or all worse, each by itself more than chance."""

    condition: Condition
    metric: Metric
    favours: int  # +1 the later run is ahead, -1 behind
    ratio: float | None  # of the arm in the middle, above 1 the later is ahead; None where one changed in finishing


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that changed between two runs."""

    ratios: tuple[RatioChange, ...]
    arms: tuple[ArmChange, ...]
    shared: tuple[Shared, ...]
    fewest: int = 1  # blocks that each run needs before anything can be told

    def is_regression(self, *, absolute: bool) -> bool:
        """Whether a ratio got worse, or, where `absolute` is asked for, an arm's own values."""
        return any(change.is_regression for change in self.ratios) or (
            absolute and any(change.favours < 0 for change in self.arms)
        )


_Kind = TypeVar("_Kind", ArmChange, RatioChange)


def changes(matrix: Matrix, earlier: Iterable[Result], later: Iterable[Result]) -> Changes:
    """Every pair and every arm of the matrix by every judged metric, as far as both runs have data of it."""
    before, after = rows_of(earlier), rows_of(later)
    rule = Rule(matrix.repeat.confidence, matrix.repeat.margin_ratio)
    arms: list[ArmChange] = []
    ratios: list[RatioChange] = []
    for condition in matrix.conditions:
        rows = before.get(condition.id, {}), after.get(condition.id, {})
        pairs = [pair for pair in pairs_of(matrix, condition) if not pair.is_check]
        for metric in matrix.judged(condition):
            arms += (_arm_change(condition, arm, metric, *rows, rule) for arm in matrix.arms)
            ratios += (_ratio_change(condition, pair, metric, *rows, rule) for pair in pairs)
    arms = _surviving([change for change in arms if all(change.trials)])
    ratios = _surviving([change for change in ratios if all(change.trials)])
    shared = tuple(_shared(arms))
    common = {(each.condition, each.metric) for each in shared}
    arms = [replace(change, is_shared=(change.condition, change.metric) in common) for change in arms]
    ratios = [replace(each, culprit=_culprit(each, ratios, arms)) for each in ratios]
    return Changes(tuple(ratios), tuple(arms), shared, fewest_in_each(rule.confidence))


def _surviving(found: list[_Kind]) -> list[_Kind]:
    survivors = e_bh([change.log_e_value for change in found], FALSE_SHARE)
    return [replace(change, survives=survives) for change, survives in zip(found, survivors, strict=True)]


def _arm_change(condition: Condition, arm: Arm, metric: Metric, before: Rows, after: Rows, rule: Rule) -> ArmChange:
    base, new = (_sample(rows, arm, metric) for rows in (before, after))
    interval, log_speed = gain(speeds(base, metric.better), speeds(new, metric.better), rule.confidence, rule.margin)
    finished, trials = (_finished(before, arm), _finished(after, arm)), (len(base), len(new))
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
    """In how many blocks the baseline alone did its work, and in how many the candidate alone."""
    done = list(zip(*columns.finished, strict=True))
    return sum(base and not new for base, new in done), sum(new and not base for base, new in done)


def _evidence(verdict: Verdict, log_speed: float, log_completion: float) -> float:
    """ln of the evidence for the claim that is made, times its share (verdict.share_of); -inf where none is."""
    if not verdict.is_clear:
        return -math.inf
    return (log_completion if verdict.is_completion else log_speed) + math.log(share_of(verdict))


def _verdict(interval: Interval, gained: float, log_completion: float, rule: Rule) -> Verdict:
    """Completion first; while it is open, who finishes less often by more than the stall share is not faster.

    `gained` is the share of trials that the later run finishes more than the earlier. That is the rule of
    verdict.follow, for samples instead of blocks.
    """
    if log_completion >= -math.log1p(-rule.confidence):
        return Verdict.COMPLETES_MORE if gained > 0 else Verdict.COMPLETES_LESS
    speed = judge(interval, rule.margin, exhausted=True)
    excess = -gained * speed.favours if speed.favours else abs(gained)
    return Verdict.INCONCLUSIVE if speed.says_something and excess > rule.stall_ratio else speed


def _shared(arms: Sequence[ArmChange]) -> Iterator[Shared]:
    """Of two arms or more that all changed to the same side; the one in the middle stands for the machine."""
    for (condition, metric), group in groupby(arms, key=lambda change: (change.condition, change.metric)):
        members = list(group)
        sides = {change.favours for change in members}
        if len(members) > 1 and sides in ({1}, {-1}):
            estimates = [change.interval.estimate for change in members if not change.verdict.is_completion]
            known = [estimate for estimate in estimates if estimate is not None]
            ratio = math.exp(median(known)) if len(known) == len(members) else None
            yield Shared(condition, metric, sides.pop(), ratio)


def _culprit(change: RatioChange, ratios: Sequence[RatioChange], arms: Sequence[ArmChange]) -> Arm | None:
    """Which of the two arms changed; None where that cannot be told, which counts as the loser's regression.

    Where the arms do not share a change, it is the one whose own values moved the way the ratio did. Where they do, or
    both moved or neither, it is the one that moved against third arms as well: if h3 lost ground to h1 and to h2, and
    h2 none to h1, it is h3.
    """
    if not change.favours:
        return None
    own = {each.arm: each for each in arms if (each.condition, each.metric) == (change.condition, change.metric)}
    lost, won = own[change.loser].favours < 0, own[change.winner].favours > 0
    if lost != won and not own[change.loser].is_shared:
        return change.loser if lost else change.winner
    beside = [other for other in ratios if (other.condition, other.metric) == (change.condition, change.metric)
              and other.favours and other.pair != change.pair]  # fmt: skip
    losses = sum(other.loser == change.loser for other in beside)
    gains = sum(other.winner == change.winner for other in beside)
    if losses == gains:
        return None
    return change.loser if losses > gains else change.winner


def _sample(rows: Rows, arm: Arm, metric: Metric) -> list[Observed]:
    times = (observed(row.get(arm), metric) for row in rows.values())
    return [time for time in times if time is not None]


def _finished(rows: Rows, arm: Arm) -> int:
    return sum(arm in row and row[arm].outcome is Outcome.OK for row in rows.values())


def _share(count: int, of: int) -> float:
    return count / of if of else 0.0
