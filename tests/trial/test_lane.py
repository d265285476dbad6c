"""A lane: blocks on a testbed that is built again when it breaks, or when its hosts changed for good."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest

from headwind.arm import H3, PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.testbed import testbed as testbeds
from headwind.testbed.docker import DockerError
from headwind.trial.block import Task, left_after, run_block
from headwind.trial.lane import ATTEMPTS, LabBroken, Lane, Stopped
from headwind.workloads.h2load import H2load
from impair.profile import Direction
from tests.fake_testbed import BAD, RULES, Sabotage, World, fake_testbed


def blocks(count: int, *arms: Arm) -> list[Block]:
    condition = Condition(BAD, H2load("small", 1000, 10, 10))
    seeds = {Direction.UPLINK: 11, Direction.DOWNLINK: 2}
    return [Block(condition, index, arms or PLAIN, seeds) for index in range(count)]


class Notes:
    """A record that keeps what it is told, and gives tasks their attempts."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.results: list[Result] = []

    def begin(self, trial: Trial, attempt: int) -> None:
        assert trial.id
        self.begun.append(attempt)

    def append(self, result: Result) -> None:
        self.results.append(result)

    def task(self, block: Block) -> Task:
        """All of a block."""
        known = [result.trial.id for result in self.results]
        return Task(block, {trial.arm: known.count(trial.id) for trial in block.trials()})

    def run(self, lane: Lane, count: int) -> None:
        """So many blocks, and those that must run again."""
        waiting = blocks(count)
        while waiting:
            waiting = [*lane.run(self.task(waiting[0]), self), *waiting[1:]]

    @property
    def outcomes(self) -> list[Outcome]:
        """Of all attempts."""
        return [result.outcome for result in self.results]


@pytest.mark.parametrize("dies", ["client", "server", "router"])
def test_a_dead_container_is_a_lab_error_and_the_trial_runs_again(dies: str) -> None:
    world, notes = World(Sabotage(dies=dies, at=[0])), Notes()
    with Lane(lambda _: fake_testbed(world), RULES) as lane:
        assert lane.run(notes.task(blocks(1, H3)[0]), notes) == ()
    assert notes.outcomes == [Outcome.LAB_ERROR, Outcome.OK]
    assert dies in notes.results[0].reason
    assert (notes.results[-1].attempt, notes.begun) == (1, [0, 1])
    assert len(lane.lives) == 2


def test_a_block_goes_on_where_the_lab_broke() -> None:
    notes = Notes()
    with Lane(lambda _: fake_testbed(World(Sabotage(dies="client", at=[1]))), RULES) as lane:
        (block,) = blocks(1)
        testbed = lane.open()
        kept = list(run_block(testbed.path, notes.task(block), notes, lane.place, RULES))
    assert [result.outcome for result in kept] == [Outcome.OK, Outcome.LAB_ERROR], "the third one did not start"
    task = notes.task(block)
    for result in kept:
        task = left_after(task, result)
    assert [trial.id for trial in task.trials] == [trial.id for trial in block.trials()[1:]]
    assert list(task.attempts.values()) == [0, 1]


def test_a_lab_that_stays_broken_gives_up_and_has_written_every_attempt_down() -> None:
    world, notes = World(Sabotage(nginx_dies=True)), Notes()
    with Lane(lambda _: fake_testbed(world), RULES) as lane, pytest.raises(LabBroken, match="nginx"):
        notes.run(lane, 1)
    assert notes.outcomes == [Outcome.LAB_ERROR] * ATTEMPTS


def test_a_testbed_that_does_not_come_up_is_a_lab_error_with_its_place() -> None:
    notes, broken = Notes(), [DockerError("no address left"), None]

    def up(_: str) -> AbstractContextManager[testbeds.Testbed]:
        if error := broken.pop(0):
            raise error
        return fake_testbed(World())

    lane = Lane(up, RULES, number=3)
    assert lane.run(notes.task(blocks(1, H3)[0]), notes) == ()
    lane.close()
    assert notes.outcomes == [Outcome.LAB_ERROR, Outcome.OK]
    assert [result.place.lane for result in notes.results] == [3, 3]
    assert notes.results[0].reason == "no address left"
    assert notes.begun == [0, 1]


def test_a_result_says_which_lane_and_testbed_it_is_from() -> None:
    world, notes = World(Sabotage(dies="router", at=[1])), Notes()
    with Lane(lambda _: fake_testbed(world), RULES, number=3) as lane:
        notes.run(lane, 1)
    places = [result.place for result in notes.results]
    assert {(place.lane, place.engine) for place in places} == {(3, "fake")}
    assert all(place.host for place in places)
    assert [place.testbed for place in places] == [
        life["testbed"] for life, trials in zip(lane.lives, (2, 2), strict=True) for _ in range(trials)
    ]
    assert len({place.testbed for place in places}) == 2


def run_blocks(sabotage: Sabotage, count: int) -> tuple[Lane, Notes]:
    """Whole blocks on a lane, whose first testbed alone is sabotaged."""
    notes = Notes()
    lane = Lane(lambda _: fake_testbed(World(sabotage)) if not lane.lives else fake_testbed(World()), RULES)
    with lane:
        notes.run(lane, count)
        lane.retire()
    return lane, notes


def test_a_host_that_changed_for_good_costs_one_rebuild_and_no_finished_trial() -> None:
    # from its third trial on; the first block's last trial and the second block's first one are hit
    lane, notes = run_blocks(Sabotage(bypass=True, at=range(2, 99)), 3)
    assert notes.outcomes == [*[Outcome.OK] * 2, *[Outcome.INVALID] * 2, *[Outcome.OK] * 9]
    latest = {result.trial.id: result for result in notes.results}
    assert len(latest) == 9
    assert {result.outcome for result in latest.values()} == {Outcome.OK}
    assert [life["why"].partition(":")[0] for life in lane.lives] == [
        "two trials in a row were invalid", "the end of the run",
    ]  # fmt: skip


def test_what_a_new_testbed_does_not_mend_costs_one_rebuild_and_three_attempts_at_each_trial() -> None:
    world, notes = World(Sabotage(bypass=True)), Notes()
    with Lane(lambda _: fake_testbed(world), RULES) as lane:
        notes.run(lane, 3)
    assert set(notes.outcomes) == {Outcome.INVALID}
    assert set(Counter(result.trial.id for result in notes.results).values()) == {MOST_ATTEMPTS}
    assert len(lane.lives) == 2


def test_an_unproven_trial_runs_again_after_the_others_of_its_block() -> None:
    notes = Notes()
    with Lane(lambda _: fake_testbed(World(Sabotage(bypass=True, at=[0]))), RULES) as lane:
        (block,) = blocks(1)
        assert lane.run(notes.task(block), notes) == ()
    first, *others = block.trials()
    assert [(result.trial, result.attempt) for result in notes.results] == [
        (first, 0), *((trial, 0) for trial in others), (first, 1)
    ]  # fmt: skip
    assert notes.outcomes == [Outcome.INVALID, *[Outcome.OK] * 3]
    assert len(lane.lives) == 1


def test_two_invalid_trials_with_a_good_one_between_them_rebuild_nothing() -> None:
    lane, notes = run_blocks(Sabotage(bypass=True, at=[0, 2, 4]), 2)
    assert notes.outcomes == [*[Outcome.INVALID, Outcome.OK] * 3, *[Outcome.OK] * 3]
    assert len(lane.lives) == 1


def test_what_the_bare_path_carries_is_measured_once() -> None:
    lane, _ = run_blocks(Sabotage(bypass=True, at=range(2, 99)), 3)
    first, second = lane.lives
    assert first["ceiling"]["downlink"]["rate_bps"] > 0
    assert "ceiling" not in second
    assert lane.another(2).ceiling == lane.ceiling


def test_a_testbed_that_is_worse_at_its_end_is_doubted() -> None:
    lane, _ = run_blocks(Sabotage(vanishing=5, at=[3]), 1)  # after three runs of the client
    assert len(lane.doubts) == 2
    assert "lost 5 of 2000" in lane.doubts[0]


def test_a_testbed_that_is_dropped_while_it_is_stopped_raises_nothing() -> None:
    """`stop` is called by another thread: between its two looks at the testbed that may be gone."""
    lane = Lane(lambda _: fake_testbed(World()), RULES)
    lane.open()

    class Vanishing(type(lane.testbed)):  # type: ignore[misc]
        """Is taken down by another thread as soon as somebody asks whether it is there."""

        __slots__ = ()

        def __bool__(self) -> bool:
            thread = threading.Thread(target=lane.drop, args=("the lab stopped",))
            thread.start()
            thread.join()
            return True

    assert lane.testbed
    lane.testbed.__class__ = Vanishing
    lane.stop()
    assert lane.testbed is None


def test_of_several_threads_that_drop_a_testbed_one_takes_it_down() -> None:
    downs, inside = [], threading.Barrier(8)

    @contextmanager
    def up(_: str) -> Iterator[testbeds.Testbed]:
        with fake_testbed(World()) as bed:
            yield bed
        time.sleep(0.05)
        downs.append(1)

    lane = Lane(up, RULES)
    for _ in range(20):
        lane.open()

        def drop() -> None:
            inside.wait()
            lane.drop("the lab stopped")

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(drop) for _ in range(8)]:
                done.result()
    assert len(downs) == len(lane.lives) == 20


def test_a_lane_that_is_stopped_while_its_testbed_comes_up_takes_it_down() -> None:
    coming, gate, downs = threading.Event(), threading.Event(), []

    @contextmanager
    def up(_: str) -> Iterator[testbeds.Testbed]:
        coming.set()
        gate.wait(10)
        try:
            with fake_testbed(World()) as bed:
                yield bed
        finally:
            downs.append(1)

    lane = Lane(up, RULES)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(lane.open)
        assert coming.wait(10)
        lane.stop()
        lane.drop("the lab stopped")  # nothing yet
        gate.set()
        with pytest.raises(Stopped):
            opening.result()
    assert downs == [1]
    assert lane.testbed is None
