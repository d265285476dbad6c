"""Compares two runs of the same matrix: which arms got better or worse. Pure.

Blocks of two runs have nothing in common but their names, so the trials of a cell (condition and arm) are compared
as two samples (stats.two_sample_interval), with the margin and the words of every other comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.metric import Metric
from headwind.model import Condition, Matrix, Outcome, Result
from headwind.observed import Observed, observed
from headwind.verdicts.findings import FALSE_SHARE, Rows, rows_of
from headwind.verdicts.stats import Interval, e_bh, two_sample_completion, two_sample_interval
from headwind.verdicts.verdict import Rule, Verdict, judge


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one cell from the earlier run to the later, by one metric; ratios above 1: the later is faster."""

    condition: Condition
    arm: Arm
    metric: Metric
    verdict: Verdict
    interval: Interval
    finished: tuple[int, int]  # trials, in the earlier and the later run
    trials: tuple[int, int]
    log_e_value: float
    survives: bool = False  # e-BH over the matrix: at most FALSE_SHARE of those that survive are false

    @property
    def is_regression(self) -> bool:
        """Worse by more than the margin, or finishing less often, and not by chance among so many cells."""
        return self.survives and self.verdict.is_clear and self.verdict.favours < 0

    @property
    def is_improvement(self) -> bool:
        """The opposite."""
        return self.survives and self.verdict.is_clear and self.verdict.favours > 0


def changes(matrix: Matrix, earlier: Iterable[Result], later: Iterable[Result]) -> list[Change]:
    """Every cell of the matrix by every judged metric; conditions that one of the runs does not have are left out."""
    before, after = rows_of(earlier), rows_of(later)
    rule = Rule(matrix.repeat.confidence, matrix.repeat.margin_ratio)
    found = [
        _change(condition, arm, metric, before[condition.id], after[condition.id], rule)
        for condition in matrix.conditions
        if condition.id in before and condition.id in after
        for arm in matrix.arms
        for metric in matrix.judged(condition)
    ]
    survivors = e_bh([change.log_e_value for change in found], FALSE_SHARE)
    return [replace(change, survives=survives) for change, survives in zip(found, survivors, strict=True)]


def _change(condition: Condition, arm: Arm, metric: Metric, before: Rows, after: Rows, rule: Rule) -> Change:
    base, new = (_sample(rows, arm, metric) for rows in (before, after))
    interval, log_speed = two_sample_interval(base, new, rule.confidence, rule.margin, metric.better)
    finished, trials = (_finished(before, arm), _finished(after, arm)), (len(base), len(new))
    log_completion = two_sample_completion(finished, trials)
    verdict = _verdict(interval, finished, trials, log_completion, rule)
    log_e = (log_completion if verdict.is_completion else log_speed) - math.log(2)  # of two claims, that which is made
    return Change(condition, arm, metric, verdict, interval, finished, trials, log_e if verdict.is_clear else -math.inf)


def _verdict(
    interval: Interval, finished: Sequence[int], trials: Sequence[int], log_completion: float, rule: Rule
) -> Verdict:
    """Completion first; while it is open, a cell that finishes less often by more than the stall share is not faster.

    That is the rule of verdict.compare, for samples instead of blocks.
    """
    if 0 in trials:
        return Verdict.INCONCLUSIVE
    gain = finished[1] / trials[1] - finished[0] / trials[0]
    if log_completion >= -math.log1p(-rule.confidence):
        return Verdict.COMPLETES_MORE if gain > 0 else Verdict.COMPLETES_LESS
    speed = judge(interval, rule.margin, exhausted=True)
    excess = -gain * speed.favours if speed.favours else abs(gain)
    return Verdict.INCONCLUSIVE if speed.says_something and excess > rule.stall_ratio else speed


def _sample(rows: Rows, arm: Arm, metric: Metric) -> list[Observed]:
    times = (observed(row.get(arm), metric) for row in rows.values())
    return [time for time in times if time is not None]


def _finished(rows: Rows, arm: Arm) -> int:
    return sum(arm in row and row[arm].outcome is Outcome.OK for row in rows.values())
