"""Lanes side by side: each runs its blocks in a thread of its own, and what happens is told in one place, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

from headwind.errors import HeadwindError
from headwind.model import Block, Result, Trial
from headwind.trial.block import Record, Task
from headwind.trial.crowding import with_neighbours
from headwind.trial.lane import Lane, Stopped


class Plan(Protocol):
    """Who decides what runs: plan/scheduler.py."""

    def next(self, in_flight: Collection[Task]) -> Task | None:
        """The next block, given those that run now; None: not before one of them has ended, if any ever."""

    def tell(self, results: Collection[Result]) -> None:
        """What came of trials."""

    def repeat(self, blocks: Collection[Block]) -> None:
        """These blocks must run again."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A lane begins an attempt at a trial."""

    lane: int
    trial: Trial


@dataclass(frozen=True, slots=True)
class Ended:
    """A lane has run its block, or could not."""

    lane: int
    again: tuple[Block, ...] = ()  # blocks that must run again
    error: Exception | None = None
    came_up: bool = True


Event = Begun | Result | Ended


class _Company:
    """Which blocks run, and in whose company each lane's trial has run since it began. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, str] = {}  # by the lane's number: the block's id
        self._met: dict[int, set[str]] = {}

    def starts(self, lane: int, block: str) -> None:
        """A lane has this block from now on."""
        with self._lock:
            self._running[lane] = block
            for other in self._met.keys() - {lane}:
                self._met[other].add(block)

    def ends(self, lane: int) -> None:
        """The lane has none."""
        with self._lock:
            del self._running[lane]

    def trial_begins(self, lane: int) -> None:
        """From here on its company counts."""
        with self._lock:
            self._met[lane] = {block for other, block in self._running.items() if other != lane}

    def met(self, lane: int) -> tuple[str, ...]:
        """The blocks that ran on other lanes since the trial began."""
        with self._lock:
            return tuple(sorted(self._met[lane]))


@dataclass(frozen=True, slots=True)
class _Notes:
    """The record of one lane: on disk first, then told. A lane that was told to stop writes nothing any more."""

    lane: Lane
    record: Record
    company: _Company
    tell: Callable[[Event], None]

    def begin(self, trial: Trial, attempt: int) -> None:
        self.lane.check_stop()
        self.record.begin(trial, attempt)
        self.company.trial_begins(self.lane.number)
        self.tell(Begun(self.lane.number, trial))

    def append(self, result: Result) -> None:
        self.lane.check_stop()
        result = with_neighbours(result, self.company.met(self.lane.number))
        self.record.append(result)
        self.tell(result)


class Lanes:
    """`with Lanes(first) as lanes`: the first one is up inside, others come up when there is a block for them.

    A lane that does not come up is done without, and `say` is told; afterwards all are down.
    """

    def __init__(self, first: Lane, most: int = 1, say: Callable[[str], None] = print) -> None:
        self.lanes, self.most, self._say = [first], most, say
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._company = _Company()
        self._coming_up = 0  # number of the lane that does; one at a time, because to start containers is work
        self._running: dict[int, Task] = {}  # by the lane's number
        self._threads: dict[int, threading.Thread] = {}

    def __enter__(self) -> Self:
        self.lanes[0].open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._each(self._shut)

    @property
    def first(self) -> Lane:
        """The one that was up first, and chose the engine."""
        return self.lanes[0]

    def run(self, plan: Plan, record: Record) -> Iterator[Event]:
        """Run blocks until the plan has none left; what happens, as it happens. Raises what a lane raises."""
        while True:
            self._hand_out(plan, record)
            if not self._running:
                return
            event = self._events.get()
            if not isinstance(event, Result) and event.lane == self._coming_up:
                self._coming_up = 0
            if isinstance(event, Result):
                plan.tell([event])
            elif isinstance(event, Ended):
                del self._running[event.lane]
                self._company.ends(event.lane)
                plan.repeat(event.again)
                self._check(event)
            yield event

    def _hand_out(self, plan: Plan, record: Record) -> None:
        """A block for each lane that has none, and for as many new ones as may be."""
        while True:
            idle = [lane for lane in self.lanes if lane.number not in self._running]
            if not idle and (self._coming_up or len(self.lanes) >= self.most):
                return
            task = plan.next(self._running.values())
            if task is None:
                return
            if not idle:
                idle = [self.first.another(len(self.lanes) + 1)]
                self._coming_up = idle[0].number
                self.lanes += idle
            self._start(idle[0], task, record)

    def _start(self, lane: Lane, task: Task, record: Record) -> None:
        notes = _Notes(lane, record, self._company, self._events.put)
        self._company.starts(lane.number, task.block.id)
        thread = threading.Thread(target=self._work, args=(lane, task, notes), name=f"lane {lane.number}", daemon=True)
        self._running[lane.number], self._threads[lane.number] = task, thread
        thread.start()

    def _work(self, lane: Lane, task: Task, notes: _Notes) -> None:
        """What a lane's thread does. However it ends is told, but for a stop: then nobody listens any more."""
        came_up = bool(lane.lives)
        try:
            if not came_up:
                lane.open()
            came_up = True
            ended = Ended(lane.number, lane.run(task, notes))
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - it is raised again where all lanes come together
            ended = Ended(lane.number, error=error, came_up=came_up)
        self._events.put(ended)

    def _check(self, ended: Ended) -> None:
        """Raises a lane's error, unless the lane did not even come up and there are others."""
        if ended.error and (ended.came_up or not isinstance(ended.error, HeadwindError)):
            raise ended.error
        if ended.error:
            self.lanes = [lane for lane in self.lanes if lane.number != ended.lane]
            self.most = len(self.lanes)
            self._say(f"no more than {self.most} lanes: another one did not come up: {ended.error}")

    def retire(self) -> None:
        """Take all testbeds down after a last look at each, one at a time: none may disturb another's."""
        for lane in self.lanes:
            lane.look_again()
        self._each(lambda lane: lane.retire())

    def _shut(self, lane: Lane) -> None:
        lane.stop()
        if thread := self._threads.get(lane.number):
            thread.join()
        lane.close()

    def _each(self, do: Callable[[Lane], None]) -> None:
        """At once: to take a testbed down is to wait for Docker."""
        with ThreadPoolExecutor(len(self.lanes)) as pool:
            list(pool.map(do, self.lanes))

    @property
    def lives(self) -> list[dict[str, Any]]:
        """Every testbed so far, with what was found of it."""
        return [life for lane in self.lanes for life in lane.lives]

    @property
    def doubts(self) -> list[str]:
        """What was found wrong with testbeds that served to the end, in words."""
        return [doubt for lane in self.lanes for doubt in lane.doubts]
