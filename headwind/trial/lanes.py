"""Parallel lanes: each runs its blocks in its own thread; their events are yielded in one place, in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import count
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

from headwind.clock import CLOCK, Clock
from headwind.errors import HeadwindError
from headwind.format import about, counted, enumerated
from headwind.model import Block, Result, Trial
from headwind.trial.block import Record, Task
from headwind.trial.lane import END_OF_RUN, NOT_NEEDED, AnyLane, HostLost, Stopped
from headwind.trial.overlap import MIN_GAP_S, OverlapTracker, StartSpacer


class Plan(Protocol):
    """The choice of the next blocks: plan/scheduler.py."""

    def next(self, in_flight: Collection[Task], elsewhere: Collection[Task] = ()) -> Task | None:
        """The next block for a host, given the blocks that run there now, and on other hosts.

        None: none before one of them has ended, if any.
        """

    def tell(self, results: Collection[Result]) -> None:
        """Take in results."""

    def repeat(self, blocks: Collection[Block]) -> None:
        """Run these blocks again."""

    def worth(self, up: int, most: int, up_s: float, *, running: Collection[Task] = ()) -> int:
        """The number of lanes that a host should have; `up` are up, and each other one takes `up_s` to start.

        More than `up` come up, or the others go down, once the `running` blocks have ended.
        """


@dataclass(frozen=True, slots=True)
class Begun:
    """A lane begins an attempt at a trial."""

    lane: int
    trial: Trial


@dataclass(frozen=True, slots=True)
class Ended:
    """A lane has finished its block, or failed."""

    lane: int
    again: tuple[Block, ...] = ()  # blocks that must run again
    error: Exception | None = None


Event = Begun | Result | Ended


@dataclass(frozen=True, slots=True)
class _Notes:
    """The record of one lane: first on disk, then an event. A stopped lane writes nothing any more."""

    lane: AnyLane
    record: Record
    overlap: OverlapTracker
    start_spacer: StartSpacer
    notify: Callable[[Event], None]
    ending: threading.Lock  # of all lanes: results are recorded and reported in the order of their `ended_at`

    def begin(self, trial: Trial, attempt: int) -> None:
        self.start_spacer.wait_for_turn(self.lane.number)
        self.lane.check_stop()
        self.record.begin(trial, attempt)
        self.overlap.trial_begins(self.lane.number)
        self.notify(Begun(self.lane.number, trial))

    def append(self, result: Result) -> None:
        self.lane.check_stop()
        place = replace(result.place, beside=self.overlap.met(self.lane.number))
        with self.ending:
            result = replace(result, place=place, ended_at=time.time())
            self.record.append(result)
            self.notify(result)


def is_growing(*, up: int, wanted: int, running: int, waiting: int) -> bool:
    """Whether more lanes are wanted than are up: blocks are waiting for them. They come up once nothing runs."""
    return waiting > up - running and up < wanted


def is_full(*, up: int, wanted: int, running: int, waiting: int) -> bool:
    """Whether no more blocks can be taken now: as many as lanes are assigned, or the running ones must end first."""
    grows = is_growing(up=up, wanted=wanted, running=running, waiting=waiting)
    return running + waiting >= wanted or (grows and running > 0)


class _Site:
    """The lanes of one host, at most `most`."""

    def __init__(self, first: AnyLane, most: int, clock: Clock) -> None:
        self.lanes, self.most = [first], most
        self.down: list[AnyLane] = []  # lanes that were up
        self.wanted = most  # the number of them by the plan
        self.overlap, self.start_spacer = OverlapTracker(), StartSpacer(MIN_GAP_S, clock)
        self.running: dict[int, Task] = {}  # by the lane's number
        self.waiting: list[Task] = []  # assigned, but not started: for lanes that are not up
        self.lost = False

    @property
    def idle(self) -> list[AnyLane]:
        """The lanes without a block."""
        return [lane for lane in self.lanes if lane.number not in self.running]

    @property
    def tasks(self) -> list[Task]:
        """The assigned blocks, started or not."""
        return [*self.running.values(), *self.waiting]

    @property
    def is_growing(self) -> bool:
        """Whether more lanes are wanted, which come up once nothing runs."""
        return is_growing(**self._counts)

    @property
    def is_full(self) -> bool:
        """Whether it can take no more blocks now."""
        return self.lost or is_full(**self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        """Lanes and blocks, as is_growing and is_full take them."""
        return {
            "up": len(self.lanes),
            "wanted": self.wanted,
            "running": len(self.running),
            "waiting": len(self.waiting),
        }


class Lanes:
    """Parallel lanes: `with Lanes(first) as lanes` opens the first lane, and the others of a host once they are needed.

    Starting a testbed takes CPU time from trials: the other lanes come up together, while no trial runs. `elsewhere`
    are the first lanes of other hosts, each with their highest number there; lane numbers are unique. The run continues
    without lanes that do not come up, and without lost hosts as long as one is left: `say` gets a message, and the
    blocks of a lost host run again, whole, on another. If the plan wants fewer lanes, the others go down until they
    are wanted again. At the end all lanes are down.
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
        self._ending = threading.Lock()

    def __enter__(self) -> Self:
        try:
            for done in _opened(self.lanes):
                done.result()
        except BaseException:
            self._each(self.lanes, lambda lane: lane.close())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._each(self.lanes, self._shut)

    @property
    def lanes(self) -> list[AnyLane]:
        """The lanes of all hosts that are up, or were."""
        return [lane for site in self._sites for lane in (*site.lanes, *site.down)]

    @property
    def most(self) -> int:
        """The highest number of lanes, over all hosts that are left."""
        return sum(site.most for site in self._sites if not site.lost)

    @property
    def first(self) -> AnyLane:
        """The lane that was up first, and chose the engine."""
        return self._sites[0].lanes[0]

    def run(self, plan: Plan, record: Record) -> Iterator[Event]:
        """Run blocks until the plan has none left, and yield events as they happen. Raises the errors of lanes."""
        self._hand_out(plan, record)
        while any(site.running for site in self._sites):
            event = self._events.get()
            if isinstance(event, Result):
                plan.tell([event])
            elif isinstance(event, Ended):
                self._end(self._site_of(event.lane), event, plan)
            yield event
            if not isinstance(event, Begun):  # a start changes nothing
                self._hand_out(plan, record)

    def _site_of(self, lane: int) -> _Site:
        return next(site for site in self._sites if lane in site.running)

    def _hand_out(self, plan: Plan, record: Record) -> None:
        """Start as many blocks as may run now; hosts take turns. A block may change the number of lanes wanted."""
        self.consult(plan)
        asking = list(self._sites)
        while asking:
            asking = [site for site in asking if not site.is_full and self._ask(site, plan)]
            self.consult(plan)
        for site in self._sites:
            if site.is_growing and not site.running:
                self._grow(site)
            elif site.waiting and not site.running and site.wanted < len(site.lanes):
                self._shrink(site)
            begun = [] if site.is_growing else list(zip(site.idle, site.waiting, strict=False))
            del site.waiting[: len(begun)]
            for lane, task in begun:
                self._start(site, lane, task, record)

    def consult(self, plan: Plan) -> None:
        """Ask the plan for the number of lanes; if there are several hosts, use all lanes."""
        for site in self._sites if len(self._sites) == 1 else ():
            running = site.running.values()
            site.wanted = min(site.most, plan.worth(len(site.lanes), site.most, site.lanes[0].up_s, running=running))

    def _ask(self, site: _Site, plan: Plan) -> bool:
        """Whether there is another block for this host; it then waits for a lane."""
        others = [task for other in self._sites if other is not site for task in other.tasks]
        if task := plan.next(site.tasks, others):
            site.waiting.append(task)
        return task is not None

    def _grow(self, site: _Site) -> None:
        """Bring up all wanted lanes, and continue without those that fail."""
        count = site.wanted - len(site.lanes)
        further, site.down = site.down[:count], site.down[count:]
        further += [site.lanes[0].another(next(self._numbers)) for _ in range(count - len(further))]
        takes = about(len(further) * site.lanes[0].up_s)
        self._say(f"bringing up {counted(len(further), 'more testbed')} (about {takes}), to measure in parallel")
        site.lanes += further
        opened = list(zip(further, _opened(further), strict=True))
        for lane, done in opened:
            error = done.exception()
            if error and not isinstance(error, HeadwindError):
                raise error
            if error:
                site.lanes.remove(lane)
        if len(site.lanes) < site.wanted:
            site.most = site.wanted = len(site.lanes)
            why = next(error for _, done in opened if (error := done.exception()))
            self._say(f"no more than {self.most} lanes: others did not come up: {why}")

    def _shrink(self, site: _Site) -> None:
        """Take the lanes down that are not wanted, after a last look at each."""
        surplus = site.lanes[site.wanted :]
        number = counted(len(surplus), "testbed")
        self._say(f"taking down {number}: the next networks run alone, and idle testbeds would lengthen their times")
        site.lanes, site.down = site.lanes[: site.wanted], [*surplus, *site.down]
        self._retire(surplus, NOT_NEEDED)

    def _start(self, site: _Site, lane: AnyLane, task: Task, record: Record) -> None:
        notes = _Notes(lane, record, site.overlap, site.start_spacer, self._events.put, self._ending)
        site.overlap.starts(lane.number, task.block.id)
        thread = threading.Thread(target=self._work, args=(lane, task, notes), name=f"lane {lane.number}", daemon=True)
        site.running[lane.number], self._threads[lane.number] = task, thread
        thread.start()

    def _work(self, lane: AnyLane, task: Task, notes: _Notes) -> None:
        """Run a task in the lane's thread, and report its end; if it was stopped, no thread listens any more."""
        try:
            ended = Ended(lane.number, lane.run(task, notes))
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - `run` raises it again
            ended = Ended(lane.number, error=error)
        self._events.put(ended)

    def _end(self, site: _Site, ended: Ended, plan: Plan) -> None:
        """Process the end of a lane's block. Raises its error, unless the run can continue without the host."""
        task = site.running.pop(ended.lane)
        site.overlap.ends(ended.lane)
        plan.repeat(ended.again)
        if ended.again:
            blocks, run = enumerated([block.id for block in ended.again]), "runs" if len(ended.again) == 1 else "run"
            self._say(f"two trials in a row were invalid: {blocks} {run} again on a new testbed")
        if ended.error is None:
            return
        if isinstance(ended.error, HostLost):
            self._lose(site, ended.error)
            plan.repeat([task.block])  # a block never spans hosts
        else:
            raise ended.error

    def _lose(self, site: _Site, error: HostLost) -> None:
        """Continue without a host. Raises the error if none is left."""
        if not site.lost:
            site.lost = True
            site.waiting.clear()
            self._say(f"continuing without a host: {error}")
        if all(each.lost for each in self._sites):
            raise error

    def retire(self) -> None:
        """Take all testbeds down after a last look at each."""
        self._retire([lane for site in self._sites if not site.lost for lane in site.lanes], END_OF_RUN)

    def _retire(self, lanes: Collection[AnyLane], why: str) -> None:
        """Take testbeds down after a last look at each, one at a time: none may affect another's."""
        for lane in lanes:
            lane.look_again()
        self._each(lanes, lambda lane: lane.retire(why))

    def _shut(self, lane: AnyLane) -> None:
        lane.stop()
        if thread := self._threads.get(lane.number):
            thread.join()
        lane.close()

    @staticmethod
    def _each(lanes: Collection[AnyLane], do: Callable[[AnyLane], object]) -> None:
        """Call `do` for lanes in parallel: taking a testbed down means waiting for Docker."""
        with ThreadPoolExecutor(len(lanes) or 1) as pool:
            list(pool.map(do, lanes))

    @property
    def lives(self) -> list[dict[str, Any]]:
        """The findings of every testbed so far."""
        return [life for lane in self.lanes for life in lane.lives]

    @property
    def doubts(self) -> list[str]:
        """The faults of testbeds that served to the end, as text."""
        return [doubt for lane in self.lanes for doubt in lane.doubts]


def _opened(lanes: Collection[AnyLane]) -> list[Future[object]]:
    """Open lanes in parallel, and wait for all. An interrupt stops them, which ends the wait sooner."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            wait(opened := [pool.submit(lane.open) for lane in lanes])
        except BaseException:
            for lane in lanes:
                lane.stop()
            raise
    return opened
