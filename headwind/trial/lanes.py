"""Lanes side by side: each runs its blocks in a thread of its own, and what happens is told in one place, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import count
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

from headwind.clock import CLOCK, Clock
from headwind.errors import HeadwindError
from headwind.format import counted
from headwind.model import Block, Result, Trial
from headwind.trial.block import Record, Task
from headwind.trial.company import APART_S, Company, Turnstile
from headwind.trial.lane import AnyLane, HostLost, Stopped


class Plan(Protocol):
    """Who decides what runs: plan/scheduler.py."""

    def next(self, in_flight: Collection[Task], elsewhere: Collection[Task] = ()) -> Task | None:
        """The next block for a host, given those that run there now, and on other hosts.

        None: not before one of them has ended, if any ever.
        """

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


Event = Begun | Result | Ended


@dataclass(frozen=True, slots=True)
class _Notes:
    """The record of one lane: on disk first, then told. A lane that was told to stop writes nothing any more."""

    lane: AnyLane
    record: Record
    company: Company
    turnstile: Turnstile
    tell: Callable[[Event], None]

    def begin(self, trial: Trial, attempt: int) -> None:
        self.turnstile.go_through(self.lane.number)
        self.lane.check_stop()
        self.record.begin(trial, attempt)
        self.company.trial_begins(self.lane.number)
        self.tell(Begun(self.lane.number, trial))

    def append(self, result: Result) -> None:
        self.lane.check_stop()
        result = replace(result, place=replace(result.place, beside=self.company.met(self.lane.number)))
        self.record.append(result)
        self.tell(result)


class _Site:
    """The lanes of one host, of which there may be `most`."""

    def __init__(self, first: AnyLane, most: int, clock: Clock) -> None:
        self.lanes, self.most = [first], most
        self.company, self.turnstile = Company(), Turnstile(APART_S, clock)
        self.running: dict[int, Task] = {}  # by the lane's number
        self.waiting: list[Task] = []  # given, but not begun: for lanes that are not up
        self.lost = False

    @property
    def idle(self) -> list[AnyLane]:
        """Those that have no block."""
        return [lane for lane in self.lanes if lane.number not in self.running]

    @property
    def tasks(self) -> list[Task]:
        """Given, whether begun or not."""
        return [*self.running.values(), *self.waiting]

    @property
    def is_growing(self) -> bool:
        """Whether further lanes are wanted, which come up once nothing runs."""
        return len(self.waiting) > len(self.idle) and len(self.lanes) < self.most

    @property
    def is_full(self) -> bool:
        """Whether it can take no further block now."""
        return self.lost or len(self.tasks) >= self.most or (self.is_growing and bool(self.running))


class Lanes:
    """`with Lanes(first) as lanes`: the first one is up inside; all others of a host once it has a block for one.

    To bring a testbed up takes CPU time from trials: further lanes come up together, and nothing runs meanwhile.
    `elsewhere` are the first lanes of further hosts, each with the number that there may be; numbers of lanes are
    unique. A lane that does not come up is done without, and `say` is told, and so is a host that is lost while others
    are left: its blocks run again, whole, elsewhere. Afterwards all lanes are down.
    """

    def __init__(
        self,
        first: AnyLane,
        most: int = 1,
        say: Callable[[str], None] = print,
        *,
        elsewhere: Collection[tuple[AnyLane, int]] = (),
        clock: Clock = CLOCK,
    ) -> None:
        self._say = say
        self._sites = [_Site(lane, number, clock) for lane, number in ((first, most), *elsewhere)]
        self._numbers = count(max(lane.number for lane in self.lanes) + 1)
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._threads: dict[int, threading.Thread] = {}

    def __enter__(self) -> Self:
        try:
            for done in _opened(self.lanes):
                done.result()
        except BaseException:
            self._each(lambda lane: lane.close())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._each(self._shut)

    @property
    def lanes(self) -> list[AnyLane]:
        """Those of all hosts."""
        return [lane for site in self._sites for lane in site.lanes]

    @property
    def most(self) -> int:
        """How many there may be, of all hosts that are left."""
        return sum(site.most for site in self._sites if not site.lost)

    @property
    def first(self) -> AnyLane:
        """The one that was up first, and chose the engine."""
        return self._sites[0].lanes[0]

    def run(self, plan: Plan, record: Record) -> Iterator[Event]:
        """Run blocks until the plan has none left; what happens, as it happens. Raises what a lane raises."""
        self._hand_out(plan, record)
        while any(site.running for site in self._sites):
            event = self._events.get()
            if isinstance(event, Result):
                plan.tell([event])
            elif isinstance(event, Ended):
                self._end(self._site_of(event.lane), event, plan)
            yield event
            if not isinstance(event, Begun):  # which changes nothing
                self._hand_out(plan, record)

    def _site_of(self, lane: int) -> _Site:
        return next(site for site in self._sites if lane in site.running)

    def _hand_out(self, plan: Plan, record: Record) -> None:
        """As many blocks as may run now; hosts take turns."""
        asking = list(self._sites)
        while asking:
            asking = [site for site in asking if not site.is_full and self._ask(site, plan)]
        for site in self._sites:
            if site.is_growing and not site.running:
                self._grow(site)
            begun = [] if site.is_growing else list(zip(site.idle, site.waiting, strict=False))
            del site.waiting[: len(begun)]
            for lane, task in begun:
                self._start(site, lane, task, record)

    def _ask(self, site: _Site, plan: Plan) -> bool:
        """Whether there is a further block for this host."""
        others = [task for other in self._sites if other is not site for task in other.tasks]
        if task := plan.next(site.tasks, others):
            site.waiting.append(task)
        return task is not None

    def _grow(self, site: _Site) -> None:
        """Bring up all lanes that there may be. Those that do not come up are done without."""
        further = [site.lanes[0].another(next(self._numbers)) for _ in range(site.most - len(site.lanes))]
        self._say(f"bringing up {counted(len(further), 'more testbed')}, to measure side by side")
        site.lanes += further
        opened = list(zip(further, _opened(further), strict=True))
        for lane, done in opened:
            error = done.exception()
            if error and not isinstance(error, HeadwindError):
                raise error
            if error:
                site.lanes.remove(lane)
        if len(site.lanes) < site.most:
            site.most = len(site.lanes)
            why = next(error for _, done in opened if (error := done.exception()))
            self._say(f"no more than {self.most} lanes: others did not come up: {why}")

    def _start(self, site: _Site, lane: AnyLane, task: Task, record: Record) -> None:
        notes = _Notes(lane, record, site.company, site.turnstile, self._events.put)
        site.company.starts(lane.number, task.block.id)
        thread = threading.Thread(target=self._work, args=(lane, task, notes), name=f"lane {lane.number}", daemon=True)
        site.running[lane.number], self._threads[lane.number] = task, thread
        thread.start()

    def _work(self, lane: AnyLane, task: Task, notes: _Notes) -> None:
        """What a lane's thread does. However it ends is told, but for a stop: then nobody listens any more."""
        try:
            ended = Ended(lane.number, lane.run(task, notes))
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - it is raised again where all lanes come together
            ended = Ended(lane.number, error=error)
        self._events.put(ended)

    def _end(self, site: _Site, ended: Ended, plan: Plan) -> None:
        """A lane's block is over. Raises its error, unless others can do without the host."""
        task = site.running.pop(ended.lane)
        site.company.ends(ended.lane)
        plan.repeat(ended.again)
        if ended.error is None:
            return
        if isinstance(ended.error, HostLost):
            self._lose(site, ended.error)
            plan.repeat([task.block])  # a block never spans hosts
        else:
            raise ended.error

    def _lose(self, site: _Site, error: HostLost) -> None:
        """Do without a host. Raises the error where none is left."""
        if not site.lost:
            site.lost = True
            site.waiting.clear()
            self._say(f"going on without a host: {error}")
        if all(each.lost for each in self._sites):
            raise error

    def retire(self) -> None:
        """Take all testbeds down after a last look at each, one at a time: none may affect another's."""
        for lane in [lane for site in self._sites if not site.lost for lane in site.lanes]:
            lane.look_again()
        self._each(lambda lane: lane.retire())

    def _shut(self, lane: AnyLane) -> None:
        lane.stop()
        if thread := self._threads.get(lane.number):
            thread.join()
        lane.close()

    def _each(self, do: Callable[[AnyLane], object]) -> None:
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


def _opened(lanes: Collection[AnyLane]) -> list[Future[object]]:
    """Open lanes at once, and wait for all. If that is interrupted they are told to stop, which ends it sooner."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            wait(opened := [pool.submit(lane.open) for lane in lanes])
        except BaseException:
            for lane in lanes:
                lane.stop()
            raise
    return opened
