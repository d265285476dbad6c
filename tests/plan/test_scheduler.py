"""The scheduler gives each block once, whoever asks, and learns only from what it is told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.clock import Clock
from headwind.metric import BUSY, MACHINE, PRESSURE
from headwind.model import AUTO, CPU_BOUND, Block, Matrix, Outcome, Place, Proof, Repetition, Result, Trial
from headwind.plan.block_order import plan_blocks
from headwind.plan.scheduler import SHORT_S, Scheduler
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.trial.block import Task
from impair.profile import Link, Loss, Profile, Steps
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


def test_thousands_of_blocks_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 3,000 blocks that took seconds for each trial; only those that run are looked for among them."""
    matrix, compared, equal = fake.example_matrix(repeat=200), [0], Block.__eq__

    def counted(one: Block, other: object) -> bool:
        compared[0] += 1
        return equal(one, other)

    needs = known(matrix, {"clean": 4.0, "loss": 4.0, "delay": 0.1})
    scheduler = Scheduler(matrix, needs, lanes=4, cores=4)
    monkeypatch.setattr(Block, "__eq__", counted)
    assert scheduler.next()
    assert compared[0] <= 5000, "five for each of 1,000 blocks"


def busy(trial: Trial, processors: float, time_s: float = 1.0, **more: Any) -> Result:
    """A trial that kept so many processors busy."""
    result = fake.ok(trial, time_s, **more)
    return replace(result, metrics={**result.metrics, BUSY.key: processors})


def known(matrix: Matrix, needs: Mapping[str, float], time_s: float = 1.0) -> list[Result]:
    """A first trial of each of these profiles, so that it is known what they need."""
    first = {block.condition.profile.name: block.trials()[0] for block in reversed(plan_blocks(matrix))}
    return [busy(first[name], processors, time_s) for name, processors in needs.items()]


NAMES = [profile.name for profile in fake.PROFILES]
LIGHT = known(MATRIX, dict.fromkeys(NAMES, 0.1))
HEAVY = known(MATRIX, {**dict.fromkeys(NAMES, 0.1), "clean": 1.9})


def together(scheduler: Scheduler, running: Sequence[Task] = ()) -> list[Task]:
    """Everything that may run at once."""
    found = list(running)
    while len(found) < scheduler.lanes and (task := scheduler.next(found)):
        found.append(task)
    return found


def names(tasks: Collection[Task]) -> list[str]:
    return [task.block.condition.profile.name for task in tasks]


def test_what_runs_is_not_given_a_second_time() -> None:
    running = together(Scheduler(MATRIX, LIGHT, lanes=64, cores=16))
    assert sorted(task.block.id for task in running) == sorted(block.id for block in plan_blocks(MATRIX))


def test_blocks_of_different_conditions_run_side_by_side_before_two_of_one() -> None:
    running = together(Scheduler(MATRIX, LIGHT, lanes=7, cores=16))
    assert sorted(names(running[:5])) == sorted(NAMES)
    assert len(running) == 7


def test_side_by_side_they_need_no_more_than_the_head_room() -> None:
    needs = known(MATRIX, dict.fromkeys(NAMES, 0.3))
    assert len(together(Scheduler(MATRIX, needs, lanes=8, cores=2))) == 3, "0.9 of 2 processors; 1.2 are too many"
    assert len(together(Scheduler(MATRIX, needs, lanes=2, cores=2))) == 2


WITH_LOSS = [replace(each, downlink=replace(each.downlink, loss=Loss(0.5))) for each in fake.PROFILES]
LONG = fake.example_matrix(*WITH_LOSS, repeat=3)


def test_of_what_nothing_is_known_and_little_is_expected_one_block_runs_at_a_time() -> None:
    matrix = fake.example_matrix(*fake.PROFILES[:2], repeat=3)
    scheduler, met = Scheduler(matrix, lanes=4, cores=4), list[str]()
    assert max(scheduler.forecast.block_s(block) for block in plan_blocks(matrix)) < SHORT_S
    for _ in matrix.conditions:
        task = scheduler.next()
        assert task
        assert scheduler.next([task]) is None
        scheduler.tell([busy(trial, 0.1) for trial in task.trials])
        met += names([task])
    assert sorted(met) == sorted(NAMES[:2])
    assert len(together(scheduler)) == 4


def test_of_what_nothing_is_known_and_much_is_expected_as_many_blocks_run_as_there_are_processors() -> None:
    scheduler, met = Scheduler(LONG, lanes=8, cores=2), set[str]()
    assert min(scheduler.forecast.block_s(block) for block in plan_blocks(LONG)) > SHORT_S
    running = together(scheduler)
    assert len(running) == 2
    for _ in NAMES:
        strangers = [task for task in running if task.block.condition.id not in met]
        assert len(strangers) == min(2, len(NAMES) - len(met))
        met.add(strangers[0].block.condition.id)
        scheduler.tell([busy(strangers[0].trials[0], 0.05)])
        running = together(scheduler, strangers[1:])
    assert len(running) == scheduler.lanes


def test_beside_a_block_of_which_nothing_is_known_there_is_room_for_what_needs_little() -> None:
    known_ones = known(LONG, dict.fromkeys(NAMES[1:], 0.3))
    running = together(Scheduler(LONG, known_ones, lanes=4, cores=2))
    assert names(running)[0] == NAMES[0]
    assert len(running) == 3, "0.3 assumed and twice 0.3 known; 1.2 would be above half of two processors"


def test_room_is_kept_for_a_block_of_which_nothing_is_known() -> None:
    """Else those that need little would take it, one after the other, for as long as there are any."""
    scheduler = Scheduler(LONG, known(LONG, dict.fromkeys(NAMES[1:], 0.4)), lanes=4, cores=2)
    first = scheduler.next()
    assert first
    assert names([first]) == NAMES[:1]
    finish(scheduler, first)  # which tells nothing of processors
    crowd = [Task(block, dict.fromkeys(block.order, 0)) for block in plan_blocks(LONG) if block.index == 0]
    light = [task for task in crowd if names([task]) != NAMES[:1]]
    assert scheduler.next(light[:2]) is None, "0.8 and 0.3 assumed would be too much, and no other takes what is free"
    following = scheduler.next(light[:1])
    assert following
    assert names([following]) == NAMES[:1]


def test_small_conditions_do_not_keep_a_larger_one_from_its_minimum() -> None:
    """A condition that needs 0.7 of the 1.0 that may be busy runs beside 0.3: others leave it that room."""
    needs = known(MATRIX, {**dict.fromkeys(NAMES, 0.15), "delay": 0.7})
    scheduler, blocks = Scheduler(MATRIX, needs, lanes=6, cores=2), Counter[str]()
    running = together(scheduler)
    while running:
        ended = running.pop(0)
        finish(scheduler, ended)
        blocks[ended.block.condition.profile.name] += 1
        running = together(scheduler, running)
        if blocks["delay"]:
            break
    assert max(blocks.values()) == 1, "in the first square, not after all others"


def test_where_nobody_tells_what_blocks_need_they_run_one_by_one() -> None:
    scheduler = Scheduler(MATRIX, lanes=4, cores=4)
    task = scheduler.next()
    assert task
    scheduler.tell([fake.ok(task.trials[0], 1.0)])
    assert scheduler.next([task]) is None


def test_a_block_that_needs_the_processors_runs_alone() -> None:
    scheduler, running, alone = Scheduler(MATRIX, HEAVY, lanes=4, cores=2), list[Task](), 0
    while running := together(scheduler, running):
        if "clean" in names(running):
            assert len(running) == 1
            alone += 1
        finish(scheduler, running.pop(0))
    assert alone == MATRIX.repeat.least
    assert scheduler.counts == (45, 45)


def test_a_network_that_changes_during_a_trial_is_measured_with_no_other_block_however_little_it_needs() -> None:
    blackout = Steps((1.0, 1.5), (Link(loss=Loss(1.0)), Link()))
    changing = Profile("changing", downlink_changes=blackout)
    matrix = fake.example_matrix(Profile("clean"), changing, repeat=4)
    scheduler = Scheduler(matrix, known(matrix, {"clean": 0.1, "changing": 0.1}), lanes=3, cores=16)
    seen, running = set[tuple[str, int]](), list[Task]()
    while running := together(scheduler, running):
        seen.add((names(running)[0], len(running)))
        assert len(running) == 1 or "changing" not in names(running)
        finish(scheduler, running.pop(0))
    assert ("changing", 1) in seen
    assert ("clean", 3) in seen, "the others still run in parallel"


def test_those_that_run_alone_come_first_for_their_share_and_again_once_the_others_are_done() -> None:
    """Idle testbeds lengthen their trials, so they run while one is up, and testbeds take a while to come up."""
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(3, 60))
    needs = known(matrix, {"clean": 1.9, "delay": 0.1, "loss": 0.1}, 10.0)
    now, turns = [0.0], list[tuple[bool, float, float]]()  # whether alone, from when, until when
    budget_s = 1800.0
    scheduler = Scheduler(
        replace(matrix, lanes=2), needs, lambda: budget_s - now[0], lanes=2, cores=2, clock=Clock(lambda: now[0])
    )
    running = together(scheduler)
    while running:
        alone, began = names(running)[0] == "clean", now[0]
        assert scheduler.worth(2, 2, 0.0, running=running) == 1 if alone else "clean" not in names(running)
        now[0] += 30.0 / len(running)
        task = running.pop(0)
        scheduler.tell([busy(trial, 1.9 if alone else 0.1, shaken_s(trial)) for trial in task.trials])
        if not turns or turns[-1][0] != alone:
            turns.append((alone, began, now[0]))
        turns[-1] = (alone, turns[-1][1], now[0])
        running = together(scheduler, running)
    assert [alone for alone, _, _ in turns][:2] == [True, False]
    _, _, ended = turns[0]
    assert ended == pytest.approx(budget_s / 3, abs=60.0), "one of three networks"


def shaken_s(trial: Trial) -> float:
    """A time in which no protocol is ahead."""
    return 10.0 * random.Random(trial.id).uniform(0.5, 2.0)


@pytest.mark.parametrize(("budget_s", "turns"), [(400.0, "alone parallel"), (240.0, "alone parallel alone")])
def test_those_that_run_alone_have_the_rest_of_the_time_once_the_others_are_done(budget_s: float, turns: str) -> None:
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(9, 30))
    needs = known(matrix, {"clean": 1.9, "delay": 0.1, "loss": 0.1})
    now, order, kinds = [0.0], list[str](), list[str]()
    scheduler = Scheduler(matrix, needs, lambda: budget_s - now[0], lanes=2, cores=2, clock=Clock(lambda: now[0]))
    running = together(scheduler)
    while running:
        task = running.pop(0)
        order += names([task])
        kinds.append("alone" if order[-1] == "clean" else "parallel")
        assert (scheduler.worth(2, 2, 0.0) == 1) == (kinds[-1] == "alone")
        now[0] += 3.0 if order[-1] == "clean" else 1.5
        trials = [busy(trial, needs_of(trial), shaken_s(trial)) for trial in task.trials]
        scheduler.tell([replace(each, phases_s={"client": 1.0}) for each in trials])
        running = together(scheduler, running)
    assert [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before] == turns.split()
    assert Counter(order) == dict.fromkeys(NAMES[:3], 30)


def needs_of(trial: Trial) -> float:
    return 1.9 if trial.block.condition.profile.name == "clean" else 0.1


def test_in_their_first_turn_those_that_run_alone_leave_the_others_time_for_their_minimum() -> None:
    matrix = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(9, 60))
    needs = known(matrix, {"clean": 1.9, "delay": 1.0})
    now, blocks = [0.0], Counter[str]()
    scheduler = Scheduler(matrix, needs, lambda: 62.0 - now[0], lanes=2, cores=4, clock=Clock(lambda: now[0]))
    while task := scheduler.next():
        blocks.update(names([task]))
        now[0] += 3.0
        trials = [busy(trial, needs_of(trial), shaken_s(trial)) for trial in task.trials]
        scheduler.tell([replace(each, phases_s={"client": 1.0}) for each in trials])
    assert min(blocks.values()) >= 9


def test_a_condition_whose_open_comparisons_are_cpu_bound_gets_further_blocks_last() -> None:
    """Five more blocks went to a network that was CPU-bound in all of its blocks, and two others got none."""
    matrix = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(9, 60))
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(9)))
    results = [fake.ok(trial, 1.0 + 0.1 * (trial.block.index % 3) * (trial.arm.name == "h1")) for trial in trials]
    first = Scheduler(matrix, results).next()
    assert first
    bound = Proof(warnings=(f"{CPU_BOUND}: the router",))
    is_first = [each.trial.block.condition == first.block.condition for each in results]
    changed = [replace(each, proof=bound) if here else each for each, here in zip(results, is_first, strict=True)]
    other = Scheduler(matrix, changed).next()
    assert other
    assert other.block.condition != first.block.condition


def test_a_condition_without_a_block_gets_one_if_its_minimum_does_not_fit() -> None:
    """`the budget left no time for` two of four networks, after 20 blocks beyond the minimum of another one."""
    matrix = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(9, 60, budget_s=60.0))
    clean, delay = matrix.conditions
    trials = list(fake.trials_of(replace(matrix, repeat=Repetition.fixed(9))))
    earlier = [fake.ok(trial, 4.0) for trial in trials if trial.block.condition == delay]
    results = [
        fake.ok(trial, 1.0 + 0.1 * (trial.block.index % 3) * (trial.arm.name == "h1"))
        for trial in trials
        if trial.block.condition == clean
    ]
    scheduler = Scheduler(matrix, results, lambda: 30.0, earlier=earlier)
    first = scheduler.next()
    assert first
    assert first.block.condition == delay
    finish(scheduler, first, 4.0)
    second = scheduler.next()
    assert second
    assert second.block.condition == clean, "of a condition that has one, nothing can be settled in this time"


def test_a_condition_that_is_hardly_ever_verified_comes_last() -> None:
    """It took 39 s of the last minute, in which two others lacked a block or two of their minimum."""
    matrix = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(9, 60, budget_s=60.0))
    clean, delay = matrix.conditions
    trials = list(fake.trials_of(replace(matrix, repeat=Repetition.fixed(4))))
    results = [
        replace(fake.ok(trial, 1.0, attempt=attempt), outcome=Outcome.INVALID, proof=Proof())
        for trial in trials
        if trial.block.condition == clean
        for attempt in range(MOST_ATTEMPTS)
    ]
    scheduler = Scheduler(matrix, results)
    order = [scheduler.next()]
    for _ in range(8):
        assert order[-1]
        finish(scheduler, order[-1])
        order.append(scheduler.next())
    assert {task.block.condition for task in order if task} == {delay}
    finish(scheduler, next(task for task in order[::-1] if task))
    last = scheduler.next()
    assert last
    assert last.block.condition == clean


def test_a_block_of_the_minimum_comes_before_one_beyond_it() -> None:
    """Block 9 ran before block 2, while room was reserved for another network."""
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(4, 60))
    scheduler = Scheduler(matrix, known(matrix, {"clean": 0.3, "delay": 0.5, "loss": 0.7}), lanes=3, cores=2)
    assert together(scheduler), "the turn of parallel blocks begins"
    delay = next(block for block in plan_blocks(matrix) if block.condition.profile.name == "delay")
    parallel = scheduler.next([Task(delay, dict.fromkeys(delay.order, 0))])
    assert parallel
    assert (names([parallel]), parallel.block.index) == (["clean"], 0)


def test_lanes_without_other_work_run_further_blocks_of_a_condition_in_parallel() -> None:
    """Three of six lanes were idle: a second Latin square waited for the last block of the first one."""
    matrix = fake.example_matrix(Profile("clean"), repeat=Repetition(2, 60))
    scheduler = Scheduler(matrix, known(matrix, {"clean": 0.1}), lanes=6, cores=2)
    running = together(scheduler)
    assert [task.block.index for task in running] == [0, 1, 2, 3, 4, 5]


def test_a_latin_square_whose_blocks_run_in_parallel_needs_the_time_of_one_block() -> None:
    matrix = fake.example_matrix(Profile("clean"), repeat=Repetition(3, 60))
    first = known(matrix, {"clean": 0.1})
    left_s = 2 * Scheduler(matrix, first).forecast.block_s(plan_blocks(matrix)[0])
    for lanes, begun in ((1, 1), (3, 3)):  # with one lane, only a single block fits
        scheduler = Scheduler(matrix, first, lanes=lanes, cores=2)
        for task in given_out(scheduler, 3):
            assert task.block.index < 3
        scheduler.left_s = lambda: left_s
        assert len(together(scheduler)) == begun


def test_in_a_short_run_what_runs_side_by_side_leaves_the_others_time_for_their_minimum() -> None:
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(10, 60))
    now, budget_s, trial_s, begun = [0.0], 650.0, 10.0, Counter[str]()
    block_s = trial_s * len(matrix.arms)
    needs = known(matrix, {"clean": 1.9, "delay": 0.1, "loss": 0.1}, trial_s)
    scheduler = Scheduler(matrix, needs, lambda: budget_s - now[0], lanes=2, cores=2, clock=Clock(lambda: now[0]))
    running = together(scheduler)
    while running:
        begun[names(running)[0]] += 1
        now[0] += block_s / len(running)
        finish(scheduler, running.pop(0), trial_s)
        running = together(scheduler, running)
    assert begun["clean"] >= 9, "4 without it; the change of turns, in which lanes drain, may cost one"
    assert budget_s - 2 * block_s < now[0] <= budget_s + block_s, "and no time is left over"


def attempts_at(block: Block, attempt: int, arms: int = 3) -> list[Result]:
    """Good trials of the first arms of a block."""
    return [fake.ok(trial, 1.0, attempt=attempt) for trial in block.trials()[:arms]]


def unproven(trial: Trial, attempt: int = 0) -> Result:
    """An attempt at which the network was not shown to be the requested one."""
    return fake.ok(trial, 1.0, attempt=attempt, outcome=Outcome.INVALID, reason="not proven", proof=Proof())


@pytest.mark.parametrize("attempts", range(1, MOST_ATTEMPTS))
def test_a_run_that_goes_on_tries_an_unproven_trial_again_and_nothing_else_of_its_block(attempts: int) -> None:
    block, *others = plan_blocks(MATRIX)
    first, *good = block.trials()
    told = [*(fake.ok(trial, 1.0) for trial in good), *(unproven(first, attempt) for attempt in range(attempts))]
    task, *later = given_out(Scheduler(MATRIX, told))
    assert (task.block, task.attempts) == (block, {first.arm: attempts})
    assert blocks_of(later) == others


def test_a_trial_that_is_never_proven_is_given_up_after_so_many_attempts() -> None:
    block, *others = plan_blocks(MATRIX)
    first, *good = block.trials()
    told = [*(fake.ok(trial, 1.0) for trial in good), *(unproven(first, attempt) for attempt in range(MOST_ATTEMPTS))]
    assert blocks_of(given_out(Scheduler(MATRIX, told))) == others


def test_a_block_that_must_run_again_comes_first_whatever_its_square() -> None:
    matrix = fake.example_matrix(repeat=30)
    scheduler = Scheduler(matrix, known(matrix, dict.fromkeys(NAMES, 0.1)), lanes=3, cores=16)
    running = together(scheduler)
    while not (names([ended := running.pop(0)]) == ["loss"] and ended.block.index == 6):
        finish(scheduler, ended)
        running = together(scheduler, running)
    scheduler.repeat([ended.block])
    assert together(scheduler, running)[len(running)].block == ended.block


def test_the_time_that_is_left_is_kept_for_what_must_run_again() -> None:
    left = [1e6]
    scheduler = Scheduler(MATRIX, LIGHT, left_s=lambda: left[0], lanes=2, cores=16)
    repeated, other = together(scheduler)
    scheduler.repeat([repeated.block])
    left[0] = 1.1 * scheduler.forecast.trials_s(repeated.block.trials())
    again = scheduler.next([other])
    assert again
    assert again.block == repeated.block


def short(trial: Trial, attempt: int) -> Result:
    """A trial that met too busy a machine, beside others."""
    result = fake.ok(trial, 1.0, attempt=attempt, place=Place(beside=("clean/article#0",)))
    return replace(result, metrics={**result.metrics, BUSY.key: 0.1, PRESSURE.key: 0.9, MACHINE.key: 0.9})


def test_what_lacked_processors_beside_others_counts_and_its_condition_then_runs_alone() -> None:
    scheduler = Scheduler(MATRIX, LIGHT, lanes=3, cores=16)
    first, *running = together(scheduler)
    scheduler.tell([short(trial, first.attempts[trial.arm]) for trial in first.trials])
    assert scheduler.counts[0] == len(LIGHT) + len(first.trials), "nothing of it runs again"
    while running:
        finish(scheduler, running.pop())
    alone = [
        tasks for _ in range(6) if (tasks := _finished_together(scheduler)) and names(tasks)[0] == names([first])[0]
    ]
    assert alone
    assert all(len(tasks) == 1 for tasks in alone)


def _finished_together(scheduler: Scheduler) -> list[Task]:
    """What runs at once, which then ends well."""
    tasks = together(scheduler)
    for task in tasks:
        finish(scheduler, task)
    return tasks


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
def test_lab_errors_unproven_trials_and_those_that_never_started_are_run_again(outcome: Outcome) -> None:
    trial = plan_blocks(MATRIX)[0].trials()[0]
    scheduler = Scheduler(MATRIX, [fake.ok(trial, 1.0, outcome=outcome, reason="because", proof=Proof())])
    task = scheduler.next()
    assert task
    again = outcome in (Outcome.LAB_ERROR, Outcome.SKIPPED, Outcome.INVALID)
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


def run_for(matrix: Matrix, budget_s: float, block_s: Mapping[str, float]) -> Counter[str]:
    """Blocks of each network after a run on one lane in which a block takes so long; no protocol is ahead."""
    now, done = [0.0], Counter[str]()
    scheduler = Scheduler(matrix, left_s=lambda: budget_s - now[0], clock=Clock(lambda: now[0]))
    while task := scheduler.next():
        name = task.block.condition.profile.name
        now[0] += block_s[name]
        done[name] += 1
        scheduler.tell([
            replace(fake.ok(trial, block_s[name] / 3 * random.Random(trial.id).uniform(0.5, 2)),
                    phases_s={"client": block_s[name] / 3})
            for trial in task.trials
        ])  # fmt: skip
    assert now[0] <= budget_s * 1.5
    return done


def test_a_short_budget_gives_whole_minima_to_as_many_networks_as_fit() -> None:
    """Once it ended one block short everywhere: 8 of 9 in each of these, and nothing was settled."""
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(9, 60))
    done = run_for(matrix, 110.0, {"clean": 2.0, "delay": 3.0, "loss": 9.0})
    assert done["clean"] >= 9
    assert done["delay"] >= 9
    assert sum(done.values()) > 18, "the rest, too short for the minimum of loss, is spent too"
    assert run_for(matrix, 200.0, {"clean": 2.0, "delay": 3.0, "loss": 9.0})["loss"] >= 9, "all fit"


def test_with_too_little_time_for_all_one_network_is_completed_after_the_other() -> None:
    """Forecasts err: blocks of all that may fit, in turn, could end with none complete."""
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(9, 60))
    first = {block.condition.profile.name: block.trials()[0] for block in reversed(plan_blocks(matrix))}
    results = [busy(first[name], 0.05, time_s) for name, time_s in (("clean", 1.0), ("delay", 5.0), ("loss", 9.0))]
    short = Scheduler(matrix, results, lambda: 50.0, lanes=3, cores=8)
    assert names(together(short)) == ["clean"] * 3
    roomy = Scheduler(matrix, results, lambda: 1000.0, lanes=3, cores=8)
    assert sorted(names(together(roomy))) == ["clean", "delay", "loss"]
    starting = Scheduler(matrix, results, lambda: 200.0, lanes=3, cores=8)
    assert sorted(names(together(starting))) == ["clean", "delay", "loss"]
    starting = Scheduler(matrix, results, lambda: 200.0, lanes=3, cores=8)
    starting.start_s = 150.0
    assert names(together(starting)) == ["clean"] * 3, "its further lanes take most of the time"


def test_with_too_little_time_for_all_a_new_network_does_not_come_before_one_that_has_begun() -> None:
    """A block of a new and, by the guess, short network took a third of 45 s; then neither had all its blocks."""
    matrix = fake.example_matrix(*fake.PROFILES[:2], WITH_LOSS[2], repeat=Repetition(9, 60))
    first = {block.condition.profile.name: block for block in plan_blocks(matrix) if block.index == 0}
    results = [busy(trial, 0.1, 0.3) for trial in first["clean"].trials()]
    scheduler = Scheduler(matrix, results, lambda: 30.0, lanes=2, cores=2)
    assert scheduler.forecast.block_s(first["delay"]) < SHORT_S, "it would start alone"
    assert scheduler.forecast.block_s(first["loss"]) * 9 > 2 * 30.0, "not all fit on two lanes"
    assert names(together(scheduler)) == ["clean", "clean"]


def test_with_too_little_time_for_all_a_complete_network_gets_no_more_before_the_next_one_that_runs_alone() -> None:
    matrix = fake.example_matrix(*fake.PROFILES[:2], WITH_LOSS[2], repeat=Repetition(9, 60))
    least = {"clean": (8, 0.1), "delay": (1, 1.9)}  # blocks that are done, CPUs
    results = [
        busy(trial, least[name][1], random.Random(trial.id).uniform(0.5, 2.0))
        for block in plan_blocks(matrix)
        if (name := block.condition.profile.name) in least and block.index < least[name][0]
        for trial in block.trials()
    ]
    scheduler = Scheduler(matrix, results, lambda: 60.0, lanes=2, cores=2)
    last = scheduler.next()
    assert last
    assert last.block.id == "delay/article#1"
    while names([last]) == ["delay"]:
        scheduler.tell([busy(trial, 1.9) for trial in last.trials])
        last = scheduler.next()
        assert last
    assert last.block.id == "clean/article#8"


def test_a_network_whose_minimum_fits_comes_before_a_less_filled_one_whose_minimum_does_not() -> None:
    """On a busy machine, 25 of the last 95 s went to a network that could not be completed."""
    matrix = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(9, 60))
    begun = {"clean": (3, 2.1), "delay": (4, 4.5), "loss": (1, 3.2)}  # blocks, seconds of a trial
    results = [
        replace(short(trial, 0), phases_s={"client": begun[block.condition.profile.name][1]})
        for block in plan_blocks(matrix)
        if block.index < begun[block.condition.profile.name][0]
        for trial in block.trials()
    ]
    now, done = [0.0], Counter[str]()
    scheduler = Scheduler(matrix, results, lambda: 95.0 - now[0], lanes=6, cores=2, clock=Clock(lambda: now[0]))
    while task := scheduler.next():
        name = task.block.condition.profile.name
        done[name] += 1
        trial_s = begun[name][1] * 0.7  # CPUs are free again, which the forecast could not know
        now[0] += 3 * trial_s
        scheduler.tell([replace(busy(trial, 0.1), phases_s={"client": trial_s}) for trial in task.trials])
    whole = {name for name, (blocks, _) in begun.items() if blocks + done[name] >= 9}
    assert whole == {"clean", "delay"}


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


def test_a_short_budget_has_fewer_lanes_than_the_matrix_allows() -> None:
    matrix = replace(MATRIX, lanes=AUTO)
    long = Scheduler(matrix, left_s=lambda: 3600.0, lanes=6, cores=8)
    short = Scheduler(matrix, left_s=lambda: 1.0, lanes=6, cores=8)
    assert (long.worth(1, 6, 2.0), short.worth(1, 6, 2.0)) == (1, 1), "until it is known that none must run alone"
    assert (long.lanes, short.lanes) == (6, 1)
    matrix = replace(MATRIX, lanes=6)
    assert Scheduler(matrix, left_s=lambda: 1.0, lanes=6, cores=8).worth(1, 6, 2.0) == 1
    crowded = Scheduler(matrix, left_s=lambda: 3600.0, lanes=6, cores=1)
    assert (crowded.worth(1, 6, 2.0), crowded.lanes) == (1, 6), "with time, the matrix decides"


def test_lanes_do_not_wait_for_a_long_block_so_that_more_can_come_up() -> None:
    now_s = [0.0]
    matrix, trials = replace(MATRIX, lanes=AUTO), len(MATRIX.arms)
    scheduler = Scheduler(
        matrix, known(MATRIX, dict.fromkeys(NAMES, 0.1), 20.0), lanes=6, cores=8, clock=Clock(lambda: now_s[0])
    )
    assert scheduler.worth(1, 6, 2.0) == 1
    task = scheduler.next()
    assert task
    assert scheduler.worth(1, 6, 2.0) == 6, "it does not run alone"
    assert len(task.trials) == trials - 1, "one of its trials is known"
    assert scheduler.worth(1, 6, 2.0, running=[task]) == scheduler.lanes == 1
    *others, last = task.trials
    now_s[0] = scheduler.forecast.trials_s(task.trials)
    assert scheduler.worth(1, 6, 5.0, running=[task]) == 1, "no trial has ended: the others follow the late one"
    scheduler.tell([busy(trial, 0.1, 20.0) for trial in others])
    now_s[0] += scheduler.forecast.trial_s(last) - 9.0
    assert scheduler.worth(1, 6, 2.0, running=[task]) == scheduler.lanes == 6, "five more take 10 s, the block 9"
    now_s[0] += 10.0
    assert scheduler.worth(1, 6, 2.0, running=[task]) == 1, "a late block takes another trial's time"


def test_lanes_do_not_wait_for_a_condition_whose_time_is_unknown() -> None:
    scheduler = Scheduler(replace(MATRIX, lanes=AUTO), lanes=6, cores=8)
    task = scheduler.next()
    assert task
    assert scheduler.worth(1, 6, 2.0) == 1
    assert (scheduler.lanes, scheduler.worth(1, 6, 1e6, running=[task]), scheduler.lanes) == (6, 1, 1)


def test_a_block_that_was_interrupted_runs_again_whole() -> None:
    """A resumed run continued it: trials of one block were minutes and a testbed apart, and were compared."""
    first, second, *_ = plan_blocks(MATRIX)
    trials = [*first.trials(), second.trials()[0]]
    scheduler = Scheduler(MATRIX, [fake.ok(trial, 1.0) for trial in trials])
    assert scheduler.incomplete == [second]
    scheduler.repeat(scheduler.incomplete)
    task = scheduler.next()
    assert task
    assert task.block == second
    assert [task.attempts[trial.arm] for trial in second.trials()] == [1, *[0] * (len(second.order) - 1)]
    assert scheduler.incomplete == [second], "until it has run"
    scheduler.tell([fake.ok(trial, 1.0, attempt=task.attempts[trial.arm]) for trial in task.trials])
    assert scheduler.incomplete == []
