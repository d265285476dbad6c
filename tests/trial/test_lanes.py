"""Lanes side by side: what runs beside what, and what becomes of the others when one breaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

from headwind.arm import H1, H2
from headwind.clock import Clock
from headwind.errors import HeadwindError
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.proof.processors import MOST_BUSY, MOST_PRESSURE, lacked_cpus
from headwind.testbed import testbed as testbeds
from headwind.trial.block import Task
from headwind.trial.lane import ATTEMPTS, END_OF_RUN, NOT_NEEDED, LabBroken, Lane
from headwind.trial.lanes import Begun, Ended, Lanes
from headwind.trial.overlap import MIN_GAP_S
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Loss, Profile
from tests.fake_testbed import AT_ONCE, RULES, Sabotage, World, fake_testbed

PATIENCE_S = 30.0  # of a test for what takes milliseconds


def block(name: str, index: int = 0) -> Block:
    condition = Condition(Profile(name, downlink=Link(loss=Loss(0.1))), H2load("small", 1000, 10, 10))
    return Block(condition, index, (H1, H2), dict.fromkeys(Direction, 11))


@dataclass
class Row:
    """A plan: these blocks in their order, whatever runs; it keeps what it is told, as the run folder does."""

    waiting: list[Block]
    begun: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    told: list[Result] = field(default_factory=list)
    worthy: int | None = None  # lanes that pay
    alone: Collection[str] = ()  # profiles of which one block runs while one testbed is up
    begun_blocks: list[str] = field(default_factory=list)  # the profiles of blocks that were given out

    def next(self, in_flight: Collection[Task], elsewhere: Collection[Task] = ()) -> Task | None:
        assert len({task.block.id for task in (*in_flight, *elsewhere)}) == len(in_flight) + len(elsewhere)
        is_alone = self.waiting and self.waiting[0].condition.profile.name in self.alone
        if not self.waiting or (in_flight and (is_alone or self.begun_blocks[-1] in self.alone)):
            return None
        self.begun_blocks.append(self.waiting[0].condition.profile.name)
        return self._task(self.waiting.pop(0))

    def _task(self, block: Block) -> Task:
        known = [result.trial.id for result in self.results]
        return Task(block, {trial.arm: known.count(trial.id) for trial in block.trials()})

    def tell(self, results: Collection[Result]) -> None:
        self.told += results

    def repeat(self, blocks: Collection[Block]) -> None:
        self.waiting += blocks

    def worth(self, up: int, most: int, up_s: float, *, running: Collection[Task] = ()) -> int:
        assert len(running) <= up
        assert up_s >= 0
        if self.alone:
            return 1 if self.begun_blocks[-1:] and self.begun_blocks[-1] in self.alone else most
        return most if self.worthy is None else max(up, self.worthy)

    def begin(self, trial: Trial, attempt: int) -> None:
        self.begun.append(f"{trial.id} {attempt}")

    def append(self, result: Result) -> None:
        self.results.append(result)

    @property
    def outcomes(self) -> dict[str, list[Outcome]]:
        """Of each block's trials, attempt by attempt."""
        found: dict[str, list[Outcome]] = {}
        for result in self.results:
            found.setdefault(result.trial.block.id, []).append(result.outcome)
        return found


class Together:
    """Testbeds whose clients run only once so many of them are at it."""

    def __init__(self, count: int, *worlds: World) -> None:
        self.barrier = threading.Barrier(count)
        self.worlds = list(worlds)
        self.up_now, self.ups = 0, 0
        self._lock = threading.Lock()

    @contextmanager
    def up(self, _engine: str) -> Iterator[testbeds.Testbed]:
        with self._lock:
            world = self.worlds.pop(0) if self.worlds else World()
            self.up_now, self.ups = self.up_now + 1, self.ups + 1
        try:
            with fake_testbed(world) as testbed:
                run = testbed.client.do_run  # type: ignore[attr-defined]

                def run_together(**asked: object) -> object:
                    if not self.barrier.broken:
                        self.barrier.wait(PATIENCE_S)
                    return run(**asked)

                testbed.client.do_run = run_together  # type: ignore[attr-defined]
                yield testbed
        finally:
            with self._lock:
                self.up_now -= 1


def run(
    plan: Row, up: Callable[[str], AbstractContextManager[testbeds.Testbed]], most: int, clock: Clock = AT_ONCE
) -> tuple[Lanes, list[object], list[str]]:
    said: list[str] = []
    with Lanes(Lane(up, RULES), most, said.append, clock=clock) as lanes:
        events: list[object] = list(lanes.run(plan, plan))
        lanes.retire()
    return lanes, events, said


def test_blocks_run_side_by_side_and_each_result_says_beside_what() -> None:
    beds, plan = Together(2), Row([block("a"), block("b")])
    lanes, events, _ = run(plan, beds.up, 2)
    assert {tuple(result.place.beside) for result in plan.results if result.trial.block.id == "a/small#0"} == {
        ("b/small#0",)
    }
    assert {result.place.lane for result in plan.results} == {1, 2}
    assert {result.outcome for result in plan.results} == {Outcome.OK}
    assert [result.trial.id for result in plan.told] == [result.trial.id for result in plan.results]
    ends = [result.ended_at for result in plan.results]
    assert ends == sorted(ends)
    assert all(result.ended_at > result.started_at for result in plan.results)
    assert [type(event) for event in events].count(Ended) == 2
    assert [type(event) for event in events].count(Begun) == 4
    assert (beds.ups, beds.up_now) == (2, 0)
    assert len(lanes.lives) == 2


def test_a_lane_that_does_not_pay_is_not_brought_up() -> None:
    plan, beds = Row([block(str(number)) for number in range(4)], worthy=1), Together(1)
    lanes, _, said = run(plan, beds.up, 3)
    assert (beds.ups, len(lanes.lanes), said) == (1, 1, [])
    assert len(plan.outcomes) == 4


def test_only_as_many_lanes_come_up_as_pay() -> None:
    plan, beds = Row([block(str(number)) for number in range(6)], worthy=2), Together(1)
    run(plan, beds.up, 5)
    assert beds.ups == 2


def test_blocks_that_run_alone_have_one_testbed_up_and_the_others_come_up_again_under_their_numbers() -> None:
    beds = Together(1)
    beds.barrier.abort()
    names = ["a", "b", "alone", "alone", "a", "b"]
    plan = Row([block(name, index) for index, name in enumerate(names)], alone=["alone"])
    up_then: dict[str, set[int]] = {}

    def append(result: Result) -> None:
        up_then.setdefault(result.trial.block.condition.profile.name, set()).add(beds.up_now)

    plan.append = append  # type: ignore[method-assign]
    lanes, _, said = run(plan, beds.up, 2)
    assert up_then == {"a": {2}, "b": {2}, "alone": {1}}
    assert (beds.ups, beds.up_now) == (3, 0)
    assert sorted((life["lane"], life["why"]) for life in lanes.lives) == [
        (1, END_OF_RUN), (2, END_OF_RUN), (2, NOT_NEEDED)
    ]  # fmt: skip
    assert all("end" in life for life in lanes.lives), "a last look at each"
    assert [text.split()[0] for text in said] == ["bringing", "taking", "bringing"]


def test_trials_of_two_lanes_begin_apart_by_the_clock_that_the_lanes_got() -> None:
    plan, paused_s = Row([block("a"), block("b")]), list[float]()
    run(plan, Together(2).up, 2, Clock(lambda: 0.0, paused_s.append))
    assert any(paused_s)
    assert all(pause_s / MIN_GAP_S == pytest.approx(round(pause_s / MIN_GAP_S)) for pause_s in paused_s)


def test_one_lane_runs_them_one_after_the_other() -> None:
    beds, plan = Together(1), Row([block("a"), block("b")])
    run(plan, beds.up, 1)
    assert beds.ups == 1
    assert {result.place.beside for result in plan.results} == {()}


def test_what_the_path_carries_is_measured_on_the_first_lane_alone() -> None:
    beds, plan = Together(2), Row([block("a"), block("b")])
    lanes, _, _ = run(plan, beds.up, 2)
    assert ["ceiling" in life for life in lanes.lives] == [True, False]
    assert all("start" in life for life in lanes.lives)


@pytest.mark.parametrize("stolen", [0.0, 0.3])
def test_a_trial_in_which_processors_were_short_counts_whoever_took_them(stolen: float) -> None:
    worlds = [World(load=0.1, pressure=MOST_PRESSURE + 0.1, stolen=stolen) for _ in range(2)]
    plan = Row([block("a"), block("b")])
    run(plan, Together(2, *worlds).up, 2)
    assert {result.outcome for result in plan.results} == {Outcome.OK}
    assert any(result.place.beside for result in plan.results)
    for result in plan.results:
        assert lacked_cpus(result)
        assert result.metrics["pressure_ratio"] == pytest.approx(MOST_PRESSURE + 0.1)
        assert result.metrics["machine_steal_ratio"] == pytest.approx(stolen)


@pytest.mark.parametrize(
    "world",
    [
        # niced work makes the kernel's figures of pressure rise, but it waits for the lab, and not the lab for it
        World(load=0.1, pressure=0.99, machine_busy=MOST_BUSY - 0.05),
        World(load=0.1, pressure=MOST_PRESSURE - 0.1),
    ],
)
def test_processors_are_not_short_because_of_niced_work_or_a_little_pressure(world: World) -> None:
    plan = Row([block("a")])
    run(plan, Together(1, world).up, 1)
    assert not any(map(lacked_cpus, plan.results))


def test_a_lab_error_rebuilds_one_lane_and_no_other() -> None:
    beds = Together(2, World(), World(Sabotage(dies="server", at=[1])))
    plan = Row([block("a"), block("b")])
    beds.barrier.abort()
    lanes, _, _ = run(plan, beds.up, 2)
    assert sorted(map(len, plan.outcomes.values())) == [2, 3]
    assert max(plan.begun).endswith("1"), "a second attempt"
    assert sorted(len(lane.lives) for lane in lanes.lanes) == [1, 2]
    assert beds.up_now == 0


def test_a_lab_that_stays_broken_ends_the_run_and_takes_all_lanes_down() -> None:
    beds = Together(2, World(), *(World(Sabotage(nginx_dies=True)) for _ in range(ATTEMPTS)))
    beds.barrier.abort()
    plan = Row([block("a"), block("b"), *(block("c", index) for index in range(500))])
    with pytest.raises(LabBroken, match="nginx"):
        run(plan, beds.up, 2)
    assert beds.up_now == 0
    assert plan.waiting, "it did not go on with the others until all was done"


def test_a_lane_that_does_not_come_up_is_done_without() -> None:
    beds = Together(1)

    @contextmanager
    def up(engine: str) -> Iterator[testbeds.Testbed]:
        if beds.ups:
            raise HeadwindError("no two free /24 networks")
        with beds.up(engine) as testbed:
            yield testbed

    plan = Row([block("a")])
    taken: list[Task] = []

    def next_of_both(in_flight: Collection[Task], elsewhere: Collection[Task] = ()) -> Task | None:
        """The second block is given again after its lane has failed."""
        running = [task.block.id for task in in_flight]
        for name in "ab":
            if f"{name}/small#0" not in [*running, *plan.outcomes]:
                taken.append(plan._task(block(name)))
                return taken[-1]
        return None

    plan.next = next_of_both  # type: ignore[method-assign]
    _, _, said = run(plan, up, 4)
    assert plan.outcomes == {"a/small#0": [Outcome.OK] * 2, "b/small#0": [Outcome.OK] * 2}
    beginning, lost = said
    assert beginning.startswith("bringing up 3 more testbeds (about ")
    assert "no more than 1 lane" in lost
    assert "no two free /24 networks" in lost


def test_an_interruption_takes_all_lanes_down_and_nothing_is_written_after_it() -> None:
    beds = Together(2)
    beds.barrier.abort()
    plan = Row([block(name, index) for name in "ab" for index in range(200)])
    with pytest.raises(KeyboardInterrupt), Lanes(Lane(beds.up, RULES), 2, clock=AT_ONCE) as lanes:  # noqa: PT012 - the loop raises
        for number, _ in enumerate(lanes.run(plan, plan)):
            if number == 20:
                raise KeyboardInterrupt
    written = len(plan.results)
    assert beds.up_now == 0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane ")]
    assert len(plan.results) == written < 800


def test_the_last_look_at_testbeds_is_taken_one_at_a_time() -> None:
    looks: list[str] = []

    def worlds() -> Sequence[World]:
        return [World(vanish) for vanish in (Sabotage(), Sabotage(vanishing=5, at=[2]))]

    beds, plan = Together(2, *worlds()), Row([block("a"), block("b")])
    lanes, _, _ = run(plan, beds.up, 2)
    looks += lanes.doubts
    assert looks
    assert all("lost 5 of 2000" in doubt for doubt in looks)
