"""A lane: one testbed that runs blocks, and is built again when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from headwind.calibration import measure_capacity
from headwind.docker import DockerError
from headwind.model import HeadwindError, Outcome, Result, Trial
from headwind.pipe import AgentDied, AgentError
from headwind.settings import UNBOUND, Settings
from headwind.start import examine_start
from headwind.testbed import Testbed
from headwind.trial import run_trial

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
    _context: AbstractContextManager[Testbed] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        self._build()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    @property
    def facts(self) -> dict[str, Any]:
        """What the testbed's hosts said of themselves."""
        return self.testbed.facts if self.testbed else {}

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
            self._drop()
            result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt, started_at=started_at)
        else:
            if result.outcome is Outcome.LAB_ERROR:
                self._drop()
        return result

    def _build(self) -> None:
        context = self.up(self.engine)
        self.testbed = context.__enter__()
        self._context = context
        self.engine = self.testbed.engine
        try:
            self.testbed.facts["start"] = examine_start(self.testbed)
            self.testbed.facts["ceiling"] = measure_capacity(self.testbed)
        except BaseException:
            self._drop()  # nobody calls __exit__ for what has not been entered
            raise

    def _drop(self) -> None:
        context, self._context, self.testbed = self._context, None, None
        if context:
            context.__exit__(None, None, None)
