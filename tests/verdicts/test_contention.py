"""Trials that met a busy machine: none is dropped, so none is favoured, and if they change a ratio both are given."""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headwind.arm import H1, H3, Arm
from headwind.format import arm_name
from headwind.metric import MACHINE, PRESSURE
from headwind.model import Outcome, Repetition, Result, Trial
from headwind.plan.block_order import plan_block
from headwind.plan.scheduler import Scheduler
from headwind.proof.processors import lacked_cpus
from headwind.report.times_table import notices
from headwind.verdicts.assumptions import WarningKind
from headwind.verdicts.judgement import Judge
from headwind.workloads.h2load import TOTAL
from tests import fake
from tests.golden.runs import Golden

MATRIX = fake.example_matrix(fake.PROFILES[0], repeat=Repetition(1, 2000), arms=(H1, H3))
CONDITION = MATRIX.conditions[0]
CONTENTION_S, EVERY_S = 0.4, 1.1  # for how long something else needs the processors, and how often, on average
COST_S = 0.005  # by so much it makes a trial longer
FAST_S, SLOW_S, FAST_SHARE = 0.3, 3.0, 0.52  # of HTTP/1.1's trials; those of HTTP/3 are all fast


def took(trial: Trial, time_s: float, pressure: float) -> Result:
    """A trial with something waiting for a processor in so large a share of its time."""
    return Result(trial, Outcome.OK, metrics={TOTAL.key: time_s, PRESSURE.key: pressure, MACHINE.key: 0.95})


def contended(trial: Trial, time_s: float, chance: random.Random) -> Result:
    """A trial beside contention that comes at random, whatever is measured."""
    met_s, at_s = 0.0, chance.expovariate(1 / EVERY_S)
    while at_s < time_s:
        met_s += min(CONTENTION_S, time_s - at_s)
        at_s += CONTENTION_S + chance.expovariate(1 / EVERY_S)
    return took(trial, time_s + COST_S * (met_s > 0), met_s / time_s)


def simulated(blocks: int) -> list[Result]:
    chance = random.Random(7)

    def time_s(arm: Arm) -> float:
        return (FAST_S if arm == H3 or chance.random() < FAST_SHARE else SLOW_S) * chance.uniform(0.9, 1.1)

    planned = (plan_block(MATRIX, CONDITION, index) for index in range(blocks))
    return [contended(trial, time_s(trial.arm), chance) for block in planned for trial in block.trials()]


def dropped_shares(trials: Sequence[Result], is_dropped: Callable[[Result], bool]) -> list[float]:
    """Of the slow arm and of the fast one."""
    return [statistics.fmean(is_dropped(each) for each in trials if each.trial.arm == arm) for arm in (H1, H3)]


def median_s(trials: Sequence[Result], is_dropped: Callable[[Result], bool]) -> float:
    """Of the slow arm."""
    return statistics.median(
        each.metrics[TOTAL.key] for each in trials if each.trial.arm == H1 and not is_dropped(each)
    )


def test_the_same_contention_drops_no_trial_of_a_fast_arm_nor_of_a_slow_one_and_moves_no_median() -> None:
    trials = simulated(1500)
    scheduler, judge = Scheduler(MATRIX, trials), Judge(MATRIX, trials)
    task = scheduler.next()
    assert task is None or task.block.index >= 1500, "nothing of them runs again"
    kept = {
        (result.trial.id, result.attempt) for row in judge.rows_of(CONDITION.id).values() for result in row.values()
    }

    def now(result: Result) -> bool:
        return (result.trial.id, result.attempt) not in kept

    assert dropped_shares(trials, now) == [0, 0]
    assert median_s(trials, now) == pytest.approx(FAST_S * 1.09, rel=0.05), "as without contention"
    # the rule of an earlier version, by the share of a trial's own time
    slow, fast = dropped_shares(trials, lacked_cpus)
    assert fast > 1.5 * slow > 0
    assert median_s(trials, lacked_cpus) > 5 * FAST_S


def warnings(results: Sequence[Result]) -> list[str]:
    lines = Judge(MATRIX, results).judgement(fake.one_second, complete=False, exhausted=False).lines
    return [
        warning.message for line in lines for warning in line.primary.warnings if warning.kind is WarningKind.CONTENTION
    ]


def blocks_with(short: int, calm: int, cost_ratio: float) -> list[Result]:
    """HTTP/3 is twice as fast as HTTP/1.1, but slower by so much in the blocks in which CPUs were short."""
    chance, found = random.Random(3), []
    for index in range(short + calm):
        for trial in plan_block(MATRIX, CONDITION, index).trials():
            is_short = index < short
            time_s = (1.0 if trial.arm == H1 else 0.5 * (cost_ratio if is_short else 1.0)) * chance.uniform(0.98, 1.02)
            found.append(took(trial, time_s, 0.9 if is_short and trial.arm == H3 else 0.1))
    return found


def test_a_ratio_that_contention_changes_is_given_with_those_blocks_and_without_them() -> None:
    (said,) = warnings(blocks_with(short=12, calm=8, cost_ratio=1.5))
    assert said.startswith("CPU contention in 12 of 20 blocks, which still count: the ratio is 1.3")
    assert " with them and 2.0" in said or " with them and 1.9" in said


@pytest.mark.parametrize(("short", "calm", "cost_ratio"), [(0, 20, 1.0), (12, 8, 1.0), (3, 17, 1.5)])
def test_nothing_is_said_where_the_ratio_is_the_same_without_those_blocks(
    short: int, calm: int, cost_ratio: float
) -> None:
    assert warnings(blocks_with(short, calm, cost_ratio)) == []


def test_where_too_few_calm_blocks_are_left_it_is_said_that_nobody_knows() -> None:
    (said,) = warnings(blocks_with(short=18, calm=2, cost_ratio=1.0))
    assert said == (
        "CPU contention in 18 of 20 blocks, which still count; too few blocks without contention to see its effect"
    )


def test_the_report_counts_trials_that_lacked_processors_by_arm() -> None:
    results: Any = tuple(blocks_with(short=12, calm=8, cost_ratio=1.0))
    (told,) = (each for each in notices(Golden(MATRIX, results).data("x")) if "(contention)" in each.text)
    assert told.line.startswith("12 trials had to wait for CPU time (contention): HTTP/")
    assert told.line.endswith("; none is excluded")
    assert "HTTP/1.1: 0 of 20" in told.text
    assert "HTTP/3: 12 of 20" in told.text
    assert len(told.trials) == 12


def test_trials_that_are_in_no_figure_are_not_among_those_that_count() -> None:
    first, *others = blocks_with(short=12, calm=8, cost_ratio=1.0)
    results: Any = (replace(first, outcome=Outcome.INVALID), *others)
    (told,) = (each for each in notices(Golden(MATRIX, results).data("x")) if "(contention)" in each.text)
    assert f"{arm_name(first.trial.arm)}: " in told.text
    assert re.search(rf"{re.escape(arm_name(first.trial.arm))}: [0-9]+ of 19\b", told.text)
