"""A lane: one testbed that runs blocks, and is rebuilt if it breaks, or if its hosts changed for good."""

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

from headwind.engines import AUTO
from headwind.errors import HeadwindError
from headwind.model import Block, Outcome, Place, Result, Trial
from headwind.proof.attempts import faults_of
from headwind.settings import INSTALLED, TrialRules
from headwind.testbed.agent import AgentDied, AgentError
from headwind.testbed.packages import installed_in
from headwind.testbed.path import Path
from headwind.testbed.testbed import Testbed
from headwind.trial.block import LAB_TROUBLE, Record, Task, attempted, left_after, run_block
from headwind.trial.calibration import measure_capacity
from headwind.trial.start import examine_start, long_train, troubles

END_OF_RUN = "the end of the run"
NOT_NEEDED = "the next blocks run alone"  # ended, and comes up again if it is needed
ATTEMPTS = 3  # of one trial, if the lab itself breaks

TestbedUp = Callable[[str], AbstractContextManager[Testbed]]  # takes the engine


class Stopped(Exception):
    """The lane was stopped."""


class LabBroken(HeadwindError):
    """The lab failed `ATTEMPTS` times at the same trial."""


class HostLost(HeadwindError):
    """The host of a lane does not answer any more."""


@dataclass(slots=True, kw_only=True)
class AnyLane(ABC):
    """A lane with a testbed on any machine: it runs blocks, and replaces a faulty testbed.

    `engine` is the requested one, then the one that the first testbed chose: a run never mixes them.
    """

    engine: str = AUTO
    number: int = 1
    up_s: float = 0.0  # time that its first testbed took to come up
    lives: list[dict[str, Any]] = field(default_factory=list)  # of each testbed so far: its findings, with times
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
        """Take the testbed down, in any state."""
        self.drop("the lab stopped")

    @abstractmethod
    def open(self) -> object:
        """Bring a testbed up if none is. Raises HeadwindError, or Stopped."""

    @abstractmethod
    def another(self, number: int) -> AnyLane:
        """Another lane on this host, not up yet. It has the `ceiling` of this one, measured while no other was busy."""

    @abstractmethod
    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """Run the trials as `run_block` does; the testbed is up."""

    @abstractmethod
    def look_again(self) -> None:
        """Record the state of the path after the last trial."""

    @abstractmethod
    def drop(self, why: str) -> None:
        """Take the testbed down; the next trial builds a new one."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The reports of the testbed's hosts about themselves."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """The place that results name."""

    def stop(self) -> None:
        """Stop the thread that runs blocks, from another one: it soon ends with Stopped."""
        self._stop.set()

    def check_stop(self) -> None:
        """Raise Stopped once the lane is stopped: a trial that ends after that has no result."""
        if self._stop.is_set():
            raise Stopped

    def run(self, task: Task, record: Record) -> tuple[Block, ...]:
        """Run the rest of a block; results go to `record`. Returns the blocks that must run again because of them.

        A trial that the lab breaks is tried ATTEMPTS times, on a new testbed each time; raises LabBroken after that.
        A trial whose network was not verified runs again after the others of its block (proof/attempts.py). After two
        such attempts in a row with the same fault, the testbed is retired, and the blocks of both trials run again,
        once. The measured times have no influence on which attempt is proven.
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
        """The results of a block up to its first lab error; a testbed that does not come up is a lab error, too."""
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
        """Take the testbed down after a last look at it; the next trial builds a new one."""
        self.look_again()
        self.drop(why)

    @property
    def doubts(self) -> list[str]:
        """The faults of testbeds that served to the end, as text; others ended because of theirs."""
        return [
            f"testbed {number}, at its end: {trouble}"
            for number, life in enumerate(self.lives, start=1)
            if life.get("why") in (END_OF_RUN, NOT_NEEDED)
            for trouble in troubles(life.get("end", {}).get("train", {}))
        ]


@dataclass(slots=True)
class Lane(AnyLane):
    """A lane on this machine: `with Lane(up, rules) as lane` runs blocks on `lane.testbed`.

    `up` makes the testbed, and makes it again after a lab error.
    """

    up: TestbedUp
    rules: TrialRules
    ceiling: dict[str, Any] | None = None  # capacity of the bare path (calibration.py); None: not measured yet
    testbed: Testbed | None = None
    host: str = field(default_factory=lambda: os.uname().nodename)
    _context: AbstractContextManager[Testbed] | None = field(default=None, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)  # of `testbed` and `_context`

    def open(self) -> Testbed:
        """The testbed, brought up if none is. Raises HeadwindError, or Stopped."""
        return self.testbed or self._build()

    def another(self, number: int) -> Lane:
        """Another lane of this machine, with its own testbed."""
        return Lane(self.up, self.rules, self.ceiling, host=self.host, engine=self.engine, number=number)

    def stop(self) -> None:
        """Stop the lane and the current work of its agents."""
        self._stop.set()
        testbed = self.testbed  # once: another thread may take it down now
        for agent in testbed.agents if testbed else ():
            agent.close()

    @property
    def path(self) -> Path:
        """The path of the testbed, which is up, to its first server."""
        assert self.testbed
        return self.testbed.path()

    @property
    def facts(self) -> dict[str, Any]:
        """The reports of the testbed's hosts; empty while no testbed is up."""
        return self.testbed.facts if self.testbed else {}

    @property
    def place(self) -> Place:
        """This host, and the testbed."""
        return Place(self.host, self.number, self.testbed.name if self.testbed else "", self.engine)

    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """Run the trials on the testbed."""
        assert self.testbed
        return run_block(self.testbed.path, task, record, self.place, self.rules)

    def look_again(self) -> None:
        """Send a long train, if a testbed is up that had none yet."""
        if self.testbed and "end" not in self.lives[-1]:
            with suppress(AgentDied, AgentError):
                self.lives[-1]["end"] = {"train": long_train(self.testbed.path())}

    def _build(self) -> Testbed:
        self.check_stop()
        began_s = time.monotonic()
        context = self.up(self.engine)
        testbed = context.__enter__()
        with self._guard:
            self.testbed, self._context = testbed, context
            self.engine = testbed.engine.name
            self.lives.append({"lane": self.number, "testbed": testbed.name, "began_at": time.time()})
        try:
            self.check_stop()
            first, *others = testbed.paths.values()
            testbed.facts["start"] = self.lives[-1]["start"] = examine_start(first)
            for path in others:
                self.lives[-1]["start"][path.server_name] = examine_start(path)
            self.up_s = self.up_s or time.monotonic() - began_s
            if self.ceiling is None:  # the first testbed on this host
                self.ceiling = self.lives[-1]["ceiling"] = measure_capacity(first)
                testbed.facts[INSTALLED] = installed_in(testbed.containers)
            testbed.facts["ceiling"] = self.ceiling
            for path in testbed.paths.values():
                path.ceiling = self.ceiling
        except BaseException as error:
            self.drop(str(error))  # __exit__ is not called for a lane that was not entered
            raise
        return testbed

    def drop(self, why: str) -> None:
        """Take the testbed down, if one is up. If several threads call this, one of them does it."""
        with self._guard:
            context, self._context, self.testbed = self._context, None, None
        if context:
            self.lives[-1] |= {"ended_at": time.time(), "why": why}
            context.__exit__(None, None, None)


def _cannot_run(why: Exception, trial: Trial, attempt: int) -> Result:
    del trial, attempt
    raise why
