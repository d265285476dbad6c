"""A short budget completes the minimum of as many conditions as fit, and says before the start what it can settle."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headwind.metric import BUSY
from headwind.model import AUTO, Matrix, Repetition
from headwind.plan.cpu_demand import HEADROOM, USUAL_NEED, CpuDemand
from headwind.plan.forecast import Forecast
from headwind.plan.minimum import affordable, enough_s, guessed, minimum_s, too_few_blocks, what_a_budget_settles
from headwind.plan.scheduler import Scheduler
from headwind.settings import TrialRules
from headwind.trial.overlap import MIN_GAP_S
from impair.profile import Link, Steps
from tests import fake

NAMES = ("clean", "delay", "loss")


def matrix(budget_s: float | None, least: int = 9) -> Matrix:
    return fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(least, 60, budget_s=budget_s))


def text(budget_s: float | None, *costs: float) -> str:
    named = {f"{name}/article": cost for name, cost in zip(NAMES, costs, strict=True)}
    return what_a_budget_settles(matrix(budget_s), named)


def test_conditions_that_run_alone_use_one_lane() -> None:
    """`5 min will probably complete them (with 4 testbeds in parallel)`, of networks that change during a trial."""
    both = matrix(60.0).conditions
    changing = replace(both[0], profile=replace(both[0].profile, downlink_changes=Steps((1.0,), (Link(),))))
    needs = CpuDemand(4, trial_s=lambda _: 10.0)
    assert (needs.lanes_for([changing], 4), needs.lanes_for([changing, both[1]], 4)) == (1, 4)


def test_the_shortest_come_first() -> None:
    costs = {"a": 50.0, "b": 10.0, "c": 20.0}
    assert affordable(costs, 9.0) == []
    assert affordable(costs, 30.0) == ["b", "c"]
    assert affordable(costs, 80.0) == ["b", "c", "a"]


def test_before_the_start_a_network_that_the_budget_does_not_reach_is_named() -> None:
    assert text(120.0, 60.0, 40.0, 300.0) == (
        "2 min is probably too short for the minimum of 9 blocks in loss, so nothing would be sure there; "
        "`--budget 9min` is probably enough for all 3 networks."
    )
    assert text(480.0, 60.0, 40.0, 300.0) == ""
    costs = {"clean/article": 60.0, "delay/article": 40.0, "loss/article": 300.0}
    assert what_a_budget_settles(matrix(120.0), costs, lanes=3).endswith(
        "for all 3 networks (with 3 testbeds in parallel)."
    )
    assert what_a_budget_settles(matrix(120.0), costs, lanes=3, unverified=["loss/article"]).endswith(
        "is probably enough (with 3 testbeds in parallel), but hardly for loss, where most trials were not verified."
    )
    assert text(420.0, 60.0, 40.0, 300.0).startswith("7 min may be too short"), "a lossy network may take longer"
    assert text(None, 60.0, 40.0, 300.0) == ""


def test_the_start_of_further_testbeds_takes_its_part_of_the_budget() -> None:
    """`plan --budget 60s` said 45 s on 6 lanes; their start took 23 s, and 63 of 108 trials ran."""
    costs = {"clean/article": 10.0, "delay/article": 15.0, "loss/article": 20.0}
    assert what_a_budget_settles(matrix(60.0), costs, start_s=6.0) == ""
    assert what_a_budget_settles(matrix(60.0), costs, start_s=23.0) == (
        "1 min is probably too short for the minimum of 9 blocks in loss, so nothing would be sure there; "
        "`--budget 2min` is probably enough for all 3 networks."
    )
    wanted = replace(matrix(60.0), lanes=6)
    scheduler = Scheduler(wanted, (), lambda: 200.0, lanes=6)
    assert (scheduler.worth(1, 6, 4.0), scheduler.lanes, scheduler.start_s) == (1, 6, 20.0)
    assert (scheduler.worth(6, 6, 4.0), scheduler.lanes, scheduler.start_s) == (1, 6, 0.0)


def test_a_budget_that_reaches_no_network_says_so() -> None:
    assert text(120.0, 240.0, 300.0, 300.0) == (
        "2 min is probably too short for the minimum of 9 blocks in any network (clean alone may need 4 min 48 s), so "
        "nothing would be sure; `--budget 17min` is probably enough for all 3 networks."
    )
    alone = fake.example_matrix(fake.PROFILES[0], repeat=Repetition(9, 60, budget_s=60.0))
    assert what_a_budget_settles(alone, {"clean/article": 100.0}) == (
        "1 min is probably too short for the minimum of 9 blocks, so nothing would be sure; `--budget 3min` is "
        "probably enough."
    )


@pytest.mark.parametrize(
    ("seconds", "budget_s"), [(40.0, 60.0), (110.0, 120.0), (120.0, 180.0), (1800.0, 2100.0), (1e9, 604_800.0)]
)
def test_a_budget_that_is_enough_has_the_time_to_start_and_is_round(seconds: float, budget_s: float) -> None:
    assert enough_s(seconds) == budget_s


@pytest.mark.parametrize(
    ("budget_s", "words"),
    [
        (500.0, "8 min may be too short for the minimum of 9 blocks in loss, so nothing "),
        (300.0, "5 min is probably too short for the minimum of 9 blocks in loss, so nothing "),
        (571.0, ""),
    ],
)
def test_a_guess_may_be_too_short(budget_s: float, words: str) -> None:
    costs = {"clean/article": 60.0, "delay/article": 40.0, "loss/article": 300.0}
    warning = what_a_budget_settles(matrix(budget_s), costs, guesses=["loss/article"])
    assert warning.startswith(words)
    assert bool(warning) == bool(words)
    assert not words or warning.endswith("; `--budget 10min` is probably enough for all 3 networks.")


def test_what_no_trial_is_known_of_is_guessed() -> None:
    wanted = fake.example_matrix(*fake.PROFILES[:2])
    forecast = Forecast(TrialRules(60.0))
    assert guessed(wanted, forecast) == {"clean/article", "delay/article"}
    forecast.learn(fake.ok(next(trial for trial in fake.trials_of(wanted) if "clean" in trial.id), 1.0))
    assert guessed(wanted, forecast) == {"delay/article"}


def test_fewer_blocks_than_a_verdict_needs_settle_nothing_however_long_they_take() -> None:
    few = replace(matrix(900.0), repeat=replace(matrix(900.0).repeat, least=2, most=7))
    costs = {condition.id: 1.0 for condition in few.conditions}
    assert what_a_budget_settles(few, costs) == "", "no budget is enough"
    said = "note: a sure result takes 8 blocks, and this matrix has 7: nothing can be sure; `repeat: {min: 9, max: 60}`"
    assert (
        too_few_blocks(few) == f"{said} runs until everything is sure, the budget ends, or each network has 60 blocks"
    )


@pytest.mark.parametrize(("least", "blocks"), [(2, 8), (8, 8), (9, 9), (12, 12)])
def test_a_minimum_has_the_blocks_that_an_interval_needs(least: int, blocks: int) -> None:
    wanted = matrix(None, least)
    forecast, needs = Forecast(TrialRules(60.0)), CpuDemand(2)
    forecast.learn(fake.ok(next(fake.trials_of(wanted)), 1.0))
    once = minimum_s(wanted, forecast, needs, 1)
    done = {condition.id: blocks - 1 for condition in wanted.conditions}
    left = minimum_s(wanted, forecast, needs, 1, done)
    assert once == pytest.approx({name: blocks * one_s for name, one_s in left.items()})


def test_side_by_side_a_block_takes_a_share_of_the_host() -> None:
    wanted = replace(matrix(None), repeat=Repetition.fixed(1))
    light, heavy, unknown = wanted.conditions
    results = [
        replace(fake.ok(trial, 1.0), metrics={BUSY.key: 0.1 if trial.block.condition == light else 1.9})
        for trial in fake.trials_of(wanted)
        if trial.block.condition != unknown
    ]
    needs = CpuDemand(2, results)
    assert needs.share(light, 1) == 1.0
    assert needs.share(light, 4) == 0.25
    assert needs.share(light, 40) == pytest.approx(0.1 / (2 * HEADROOM))
    assert needs.share(heavy, 4) == 1.0
    assert needs.share(unknown, 40) == pytest.approx(USUAL_NEED / (2 * HEADROOM))


def test_earlier_runs_give_the_share_of_the_host_until_this_run_has_results() -> None:
    """A plan that used them and a run that did not proposed different budgets."""
    wanted = replace(matrix(None), repeat=Repetition.fixed(1))
    heavy, other, unknown = wanted.conditions
    earlier, later = (
        [
            replace(fake.ok(trial, 1.0), metrics={BUSY.key: busy})
            for trial in fake.trials_of(wanted)
            if trial.block.condition in conditions
        ]
        for busy, conditions in ((1.9, (heavy, other)), (0.1, (other,)))
    )
    needs = Scheduler(wanted, later, lanes=4, cores=2, earlier=earlier).needs
    assert needs.share(heavy, 4) == 1.0
    assert needs.share(other, 4) == 0.25
    assert needs.share(unknown, 40) == pytest.approx(USUAL_NEED / (2 * HEADROOM))
    assert not needs.is_known(heavy)
    assert not needs.runs_alone(heavy)


def test_trials_that_are_shorter_than_the_gap_between_lanes_gain_nothing_from_lanes() -> None:
    """`plan` said 1 min 13 s on six lanes for 288 trials that start at least half a second apart; 132 ran in 70 s."""
    wanted = matrix(None)
    short, long, unknown = wanted.conditions
    trial_s = {short.id: MIN_GAP_S / 2, long.id: 10 * MIN_GAP_S}
    needs = CpuDemand(8, trial_s=lambda condition: trial_s.get(condition.id, math.inf))
    assert needs.share(short, 1) == 1.0
    assert needs.share(short, 6) == 2.0
    assert needs.share(long, 6) == pytest.approx(1 / 6)
    assert needs.share(long, 60) == pytest.approx(1 / 10)
    assert needs.share(unknown, 60) < 1 / 10
    scheduler = Scheduler(replace(wanted, lanes=AUTO), lanes=6, cores=8)
    for trial in fake.trials_of(replace(wanted, repeat=Repetition.fixed(1))):
        scheduler.tell([replace(fake.ok(trial, 0.1), phases_s={"client": MIN_GAP_S / 2})])
    assert scheduler.worth(1, 6, 5.0) == 1
