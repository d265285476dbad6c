"""The scheduler gives each block once, whoever asks, and learns only from what it is told."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.model import Block, Outcome, Repetition, Task
from headwind.plan.schedule import plan_blocks
from headwind.plan.scheduler import Scheduler
from impair.profile import Profile
from tests import fake

MATRIX = fake.example_matrix(repeat=3)
ADAPTIVE = fake.example_matrix(Profile("clean"), repeat=Repetition(1, 60))


def finish(scheduler: Scheduler, task: Task, time_s: float = 1.0) -> None:
    """Every trial of a task goes well."""
    scheduler.tell([fake.ok(trial, time_s, attempt=task.attempts[trial.arm]) for trial in task.trials])


def given_out(scheduler: Scheduler, most: int = 1000) -> list[Task]:
    """What one lane is given, one after the other."""
    tasks: list[Task] = []
    while len(tasks) < most and (task := scheduler.next()):
        tasks.append(task)
        finish(scheduler, task)
    return tasks


def blocks_of(tasks: Collection[Task]) -> list[Block]:
    return [task.block for task in tasks]


def test_the_minimum_comes_in_the_order_of_the_plan() -> None:
    assert blocks_of(given_out(Scheduler(MATRIX))) == plan_blocks(MATRIX)


def test_what_runs_is_not_given_a_second_time() -> None:
    scheduler, running = Scheduler(MATRIX), list[Task]()
    while task := scheduler.next(running):
        running.append(task)
    assert sorted(map(id, running)) == sorted({id(task) for task in running})
    assert {(task.block.condition.id, task.block.index) for task in running} == {
        (block.condition.id, block.index) for block in plan_blocks(MATRIX)
    }
    assert scheduler.counts == (0, 3 * len(running))


@given(st.integers(0, 45), st.randoms(use_true_random=False))
def test_a_resumed_run_does_what_is_left_in_the_order_of_the_plan(finished: int, chance: random.Random) -> None:
    trials = [trial for block in plan_blocks(MATRIX) for trial in block.trials()]
    done = {trial.id for trial in chance.sample(trials, finished)}
    tasks = given_out(Scheduler(MATRIX, [fake.ok(trial, 1.0) for trial in trials if trial.id in done]))
    left = [trial.id for task in tasks for trial in task.trials]
    assert left == [trial.id for trial in trials if trial.id not in done]


def test_a_block_that_was_chosen_beyond_the_minimum_is_finished_whatever_becomes_of_its_lane() -> None:
    scheduler = Scheduler(ADAPTIVE)
    given_out(scheduler, 1)
    beyond = scheduler.next()
    assert beyond
    assert beyond.block.index == 1
    assert scheduler.next([beyond]) is None or scheduler.next([beyond]).block != beyond.block  # type: ignore[union-attr]
    again = scheduler.next()
    assert again == beyond


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_lab_errors_and_trials_that_never_started_are_run_again(outcome: Outcome) -> None:
    trial = plan_blocks(MATRIX)[0].trials()[0]
    scheduler = Scheduler(MATRIX, [fake.ok(trial, 1.0, outcome=outcome, reason="because")])
    task = scheduler.next()
    assert task
    again = outcome in (Outcome.LAB_ERROR, Outcome.SKIPPED)
    assert (trial in task.trials) == again
    assert task.attempts.get(trial.arm) == (1 if again else None)


def test_what_must_run_again_comes_first_whole_and_with_its_next_attempt() -> None:
    scheduler = Scheduler(MATRIX)
    first, second = given_out(scheduler, 2)
    scheduler.repeat([first.block, second.block])
    scheduler.repeat([second.block])
    tasks = given_out(scheduler, 3)
    assert blocks_of(tasks) == [first.block, second.block, plan_blocks(MATRIX)[2]]
    assert [set(task.attempts.values()) for task in tasks] == [{1}, {1}, {0}]
    assert [len(task.trials) for task in tasks] == [3, 3, 3]


def test_a_block_begins_only_if_it_is_expected_to_end_in_time() -> None:
    left = [1e6]
    scheduler = Scheduler(replace(MATRIX, repeat=Repetition(3, 9)), left_s=lambda: left[0])
    task = scheduler.next()
    assert task
    left[0] = scheduler.forecast.trials_s(task.trials) * 0.99
    shorter = scheduler.next()
    assert shorter is None or scheduler.forecast.trials_s(shorter.trials) <= left[0]
    left[0] = 0.0
    assert scheduler.next() is None
