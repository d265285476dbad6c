"""A lane: one testbed that runs blocks, and is built again when it breaks, or when its hosts changed for good."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from headwind.errors import HeadwindError
from headwind.model import Outcome, Result, Trial
from headwind.settings import UNBOUND, Settings
from headwind.testbed.agent import AgentDied, AgentError
from headwind.testbed.docker import DockerError
from headwind.testbed.testbed import Testbed
from headwind.trial.calibration import measure_capacity
from headwind.trial.start import examine_start, long_train, troubles
from headwind.trial.trial import run_trial

END_OF_RUN = "the end of the run"
ATTEMPTS = 3  # of one trial, when the lab itself breaks

TestbedUp = Callable[[str], AbstractContextManager[Testbed]]  # takes the engine


class Record(Protocol):
    """Where attempts are written down before and after they happen; a `journal.Run` is one."""

    def begin(self, trial: Trial, attempt: int) -> None:
        """The attempt starts."""

    def append(self, result: Result) -> None:
        """The attempt ended like this."""


class LabBroken(HeadwindError):
    """The lab failed `ATTEMPTS` times at the same trial."""


@dataclass(slots=True)
class Lane:
    """`with Lane(up) as lane`: trials run on `lane.testbed`, which `up` makes again after a lab error.

    `engine` is the one that was asked for, then the one that the first testbed chose: they are never mixed in one run.
    """

    up: TestbedUp
    timeout_s: float  # of one trial
    engine: str = "auto"
    settings: Settings = UNBOUND
    testbed: Testbed | None = None
    lives: list[dict[str, Any]] = field(default_factory=list)  # of each testbed so far: what was found of it, and when
    _context: AbstractContextManager[Testbed] | None = field(default=None, repr=False)
    _strike: Result | None = field(default=None, repr=False)  # the last trial, if it was invalid
    _helpless: set[tuple[str, str]] = field(default_factory=set, repr=False)  # condition and fault, after a rebuild

    def __enter__(self) -> Self:
        self._build()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop("the lab stopped")

    @property
    def facts(self) -> dict[str, Any]:
        """What the testbed's hosts said of themselves."""
        return self.testbed.facts if self.testbed else {}

    def run_block(
        self,
        trials: Sequence[Trial],
        record: Record,
        attempts: Callable[[Trial], int],
        starting: Callable[[Trial], None] = lambda _: None,
    ) -> Iterator[Result]:
        """Run `trials`, a block or what is left of it; `attempts` says how many of a trial are on record.

        `starting` is called before each. After two invalid trials in a row with the same fault the testbed is built
        again, and both trials' blocks are repeated, once: which trial is invalid was decided without a look at any
        time. Raises what `run` does.
        """
        left = deque(trials)
        while left:
            trial = left.popleft()
            starting(trial)
            result = self.run(trial, record, attempts(trial))
            yield result
            if again := self._repeated(result):
                known = {trial.id for trial in again}
                left = deque([*again, *(trial for trial in left if trial.id not in known)])

    def _repeated(self, result: Result) -> list[Trial]:
        """The trials to run again, on a new testbed, after this result; usually none."""
        condition, faults = result.trial.block.condition.id, faults_of(result)
        before, self._strike = self._strike, result if faults else None
        if not faults:
            self._helpless = {known for known in self._helpless if known[0] != condition}
        common = faults & faults_of(before) if before else frozenset[str]()
        if not before or not any((condition, fault) not in self._helpless for fault in common):
            return []
        self._helpless |= {(condition, fault) for fault in common}
        self._strike = None
        self.retire(f"two trials in a row were invalid: {result.reason}")
        blocks = [before.trial.block, result.trial.block]
        trials = {trial.id: trial for block in blocks for trial in block.trials()}
        return list(trials.values())

    def retire(self, why: str = END_OF_RUN) -> None:
        """Take the testbed down after a last look at it; the next trial builds another one."""
        if self.testbed:
            with suppress(AgentDied, AgentError):
                self.lives[-1]["end"] = {"train": long_train(self.testbed)}
        self._drop(why)

    @property
    def doubts(self) -> list[str]:
        """What was found wrong with testbeds that served to the end, in words; others ended for what was seen."""
        return [
            f"testbed {number}, at its end: {trouble}"
            for number, life in enumerate(self.lives, start=1)
            if life.get("why") == END_OF_RUN
            for trouble in troubles(life.get("end", {}).get("train", {}))
        ]

    def run(self, trial: Trial, record: Record, first_attempt: int = 0) -> Result:
        """Run a trial until the lab does its part, at most ATTEMPTS times; every attempt is on record.

        Raises LabBroken when the last attempt too was a lab error.
        """
        result = None
        for attempt in range(first_attempt, first_attempt + ATTEMPTS):
            record.begin(trial, attempt)
            result = self._attempt(trial, attempt)
            record.append(result)
            if result.outcome is not Outcome.LAB_ERROR:
                return result
        assert result
        raise LabBroken(f"{trial.id}: the lab failed {ATTEMPTS} times, last with: {result.reason}")

    def _attempt(self, trial: Trial, attempt: int) -> Result:
        started_at = time.time()
        try:
            if self.testbed is None:
                self._build()
            assert self.testbed
            result = run_trial(self.testbed, trial, self.timeout_s, attempt, settings=self.settings)
        except (AgentDied, AgentError, DockerError) as error:
            self._drop(str(error))
            result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt, started_at=started_at)
        else:
            if result.outcome is Outcome.LAB_ERROR:
                self._drop(result.reason)
        return result

    def _build(self) -> None:
        context = self.up(self.engine)
        self.testbed = context.__enter__()
        self._context = context
        self.engine = self.testbed.engine
        self.lives.append({"began_at": time.time()})
        try:
            self.testbed.facts["start"] = self.lives[-1]["start"] = examine_start(self.testbed)
            self.testbed.facts["ceiling"] = measure_capacity(self.testbed)
        except BaseException as error:
            self._drop(str(error))  # nobody calls __exit__ for what has not been entered
            raise

    def _drop(self, why: str) -> None:
        context, self._context, self.testbed = self._context, None, None
        if context:
            self.lives[-1] |= {"ended_at": time.time(), "why": why}
            context.__exit__(None, None, None)


def faults_of(result: Result) -> frozenset[str]:
    """What made a trial invalid, without the figures; nothing for any other outcome."""
    if result.outcome is not Outcome.INVALID:
        return frozenset()
    return frozenset(f"{check.direction} {check.quantity}" for check in result.proof.checks if not check.passed)
