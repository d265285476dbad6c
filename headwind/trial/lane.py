"""A lane: one testbed that runs blocks, and is built again when it breaks, or when its hosts changed for good."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from headwind.errors import HeadwindError
from headwind.model import Block, Outcome, Place, Result, Trial
from headwind.proof.attempts import faults_of
from headwind.settings import UNBOUND, Settings
from headwind.testbed.agent import AgentDied, AgentError
from headwind.testbed.testbed import Testbed
from headwind.trial.block import LAB_TROUBLE, Record, Task, attempted, left_after, run_block
from headwind.trial.calibration import measure_capacity
from headwind.trial.start import examine_start, long_train, troubles

END_OF_RUN = "the end of the run"
ATTEMPTS = 3  # of one trial, when the lab itself breaks

TestbedUp = Callable[[str], AbstractContextManager[Testbed]]  # takes the engine


class Stopped(Exception):
    """The lane was told to stop."""


class LabBroken(HeadwindError):
    """The lab failed `ATTEMPTS` times at the same trial."""


class HostLost(HeadwindError):
    """The host of a lane is not heard of any more."""


@dataclass(slots=True, kw_only=True)
class AnyLane(ABC):
    """What every lane does, wherever its testbed is: it runs blocks, and does without a testbed that is no good.

    `engine` is the one that was asked for, then the one that the first testbed chose: they are never mixed in one run.
    """

    engine: str = "auto"
    settings: Settings = UNBOUND
    number: int = 1
    lives: list[dict[str, Any]] = field(default_factory=list)  # of each testbed so far: what was found of it, and when
    _strike: Result | None = field(default=None, repr=False)  # the last trial, if it was invalid
    _helpless: set[tuple[str, str]] = field(default_factory=set, repr=False)  # condition and fault, after a rebuild
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the testbed down as it is."""
        self.drop("the lab stopped")

    @abstractmethod
    def open(self) -> object:
        """Bring the testbed up where there is none. Raises HeadwindError, or Stopped."""

    @abstractmethod
    def another(self, number: int) -> AnyLane:
        """A further lane on this host, not up yet. What the path carries was measured while no other lane was busy."""

    @abstractmethod
    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """What run_block gives on the testbed, which is up."""

    @abstractmethod
    def look_again(self) -> None:
        """Note what the path does now that the testbed has served."""

    @abstractmethod
    def drop(self, why: str) -> None:
        """Take the testbed down; the next trial builds another one."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the testbed's hosts said of themselves."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """Where results come from."""

    def stop(self) -> None:
        """Called from another thread than the one that runs blocks, which then soon ends with Stopped."""
        self._stop.set()

    def check_stop(self) -> None:
        """Raises Stopped once the lane was told to stop: what happens to a trial then is nobody's result."""
        if self._stop.is_set():
            raise Stopped

    def run(self, task: Task, record: Record) -> tuple[Block, ...]:
        """Run what is left of a block; results go to `record`. Returns the blocks that must run again because of them.

        A trial that the lab breaks is tried ATTEMPTS times, on a new testbed each time; raises LabBroken after that.
        A trial whose network was not proven runs again after the others of its block (proof/attempts.py). After two
        such attempts in a row with the same fault, the testbed is retired and both trials' blocks are to run again,
        once. Which attempt is proven was decided without a look at any time.
        """
        broken = 0
        while task.attempts:
            for result in self._results(task, record):
                task = left_after(task, result)
                if again := self._repeated(result):
                    return again
                broken = broken + 1 if result.outcome is Outcome.LAB_ERROR else 0
            if broken:
                self.drop(result.reason)
            if broken == ATTEMPTS:
                raise LabBroken(f"{result.trial.id}: the lab failed {ATTEMPTS} times, last with: {result.reason}")
        return ()

    def _results(self, task: Task, record: Record) -> Iterator[Result]:
        """Those of a block up to its first lab error, which a testbed that does not come up is, too."""
        try:
            self.open()
        except LAB_TROUBLE as error:
            yield attempted(task, task.trials[0], record, self.place, partial(_cannot_run, error))
        else:
            yield from self.trials(task, record)

    def _repeated(self, result: Result) -> tuple[Block, ...]:
        """The blocks to run again, on a new testbed, after this result; usually none."""
        condition, faults = result.trial.block.condition.id, faults_of(result)
        before, self._strike = self._strike, result if faults else None
        if not faults:
            self._helpless = {known for known in self._helpless if known[0] != condition}
        common = faults & faults_of(before) if before else frozenset[str]()
        if not before or not any((condition, fault) not in self._helpless for fault in common):
            return ()
        self._helpless |= {(condition, fault) for fault in common}
        self._strike = None
        self.retire(f"two trials in a row were invalid: {result.reason}")
        first, second = before.trial.block, result.trial.block
        return (first,) if first == second else (first, second)

    def retire(self, why: str = END_OF_RUN) -> None:
        """Take the testbed down after a last look at it; the next trial builds another one."""
        self.look_again()
        self.drop(why)

    @property
    def doubts(self) -> list[str]:
        """What was found wrong with testbeds that served to the end, in words; others ended for what was seen."""
        return [
            f"testbed {number}, at its end: {trouble}"
            for number, life in enumerate(self.lives, start=1)
            if life.get("why") == END_OF_RUN
            for trouble in troubles(life.get("end", {}).get("train", {}))
        ]


@dataclass(slots=True)
class Lane(AnyLane):
    """`with Lane(up) as lane`: blocks run on `lane.testbed`, which `up` makes again after a lab error."""

    up: TestbedUp
    timeout_s: float  # of one trial
    ceiling: dict[str, Any] | None = None  # what the bare path carries (calibration.py); None: to be measured, once
    testbed: Testbed | None = None
    host: str = field(default_factory=lambda: os.uname().nodename)
    _context: AbstractContextManager[Testbed] | None = field(default=None, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)  # of `testbed` and `_context`

    def open(self) -> Testbed:
        """The testbed, brought up where there is none. Raises HeadwindError, or Stopped."""
        return self.testbed or self._build()

    def another(self, number: int) -> Lane:
        """A further one, with a testbed of its own."""
        return Lane(self.up, self.timeout_s, self.ceiling, host=self.host, engine=self.engine, settings=self.settings,
                    number=number)  # fmt: skip

    def stop(self) -> None:
        """Also whatever an agent is doing now."""
        self._stop.set()
        testbed = self.testbed  # once: another thread may take it down now
        for agent in testbed.agents if testbed else ():
            agent.close()

    @property
    def running(self) -> Testbed:
        """The testbed, which is up."""
        assert self.testbed
        return self.testbed

    @property
    def facts(self) -> dict[str, Any]:
        """Empty while no testbed is up."""
        return self.testbed.facts if self.testbed else {}

    @property
    def place(self) -> Place:
        """This host."""
        return Place(self.host, self.number, self.testbed.name if self.testbed else "", self.engine)

    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """On the testbed."""
        return run_block(self.running, task, record, self.place, self.timeout_s, self.settings)

    def look_again(self) -> None:
        """With a long train, where a testbed is up that was not looked at yet."""
        if self.testbed and "end" not in self.lives[-1]:
            with suppress(AgentDied, AgentError):
                self.lives[-1]["end"] = {"train": long_train(self.testbed)}

    def _build(self) -> Testbed:
        self.check_stop()
        context = self.up(self.engine)
        testbed = context.__enter__()
        with self._guard:
            self.testbed, self._context = testbed, context
            self.engine = testbed.engine
            self.lives.append({"lane": self.number, "testbed": testbed.name, "began_at": time.time()})
        try:
            self.check_stop()
            testbed.facts["start"] = self.lives[-1]["start"] = examine_start(testbed)
            if self.ceiling is None:
                self.ceiling = self.lives[-1]["ceiling"] = measure_capacity(testbed)
            testbed.facts["ceiling"] = self.ceiling
        except BaseException as error:
            self.drop(str(error))  # nobody calls __exit__ for what has not been entered
            raise
        return testbed

    def drop(self, why: str) -> None:
        """Nothing where none is up. Of several threads one does it."""
        with self._guard:
            context, self._context, self.testbed = self._context, None, None
        if context:
            self.lives[-1] |= {"ended_at": time.time(), "why": why}
            context.__exit__(None, None, None)


def _cannot_run(why: Exception, trial: Trial, attempt: int) -> Result:
    del trial, attempt
    raise why
