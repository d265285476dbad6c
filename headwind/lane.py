"""A lane: one testbed that runs blocks, and is built again when it breaks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType

from headwind.model import HeadwindError, Outcome, Result, Trial
from headwind.pipe import AgentDied, AgentError
from headwind.testbed import DockerError, Testbed
from headwind.trial import run_trial

ATTEMPTS = 3  # of one trial, when the lab itself breaks

TestbedUp = Callable[[], AbstractContextManager[Testbed]]


class LabBroken(HeadwindError):
    """The lab failed `ATTEMPTS` times at the same trial."""


@dataclass(slots=True)
class Lane:
    """`with Lane(up) as lane`: trials run on `lane.testbed`, which `up` makes again after a lab error."""

    up: TestbedUp
    timeout_s: float
    begin: Callable[[Trial, int], None]  # told before every attempt
    done: Callable[[Result], None]  # told after every attempt
    testbed: Testbed | None = None
    _context: AbstractContextManager[Testbed] | None = field(default=None, repr=False)

    def __enter__(self) -> Lane:
        self._build()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    def run(self, trial: Trial, first_attempt: int = 0) -> Result:
        """Run a trial until the lab does its part, at most ATTEMPTS times; every attempt is told to `done`.

        Raises LabBroken when the last attempt too was a lab error.
        """
        result = None
        for attempt in range(first_attempt, first_attempt + ATTEMPTS):
            result = self._attempt(trial, attempt)
            if result.outcome is not Outcome.LAB_ERROR:
                return result
        assert result
        raise LabBroken(f"{trial.id}: the lab failed {ATTEMPTS} times, last with: {result.reason}")

    def _attempt(self, trial: Trial, attempt: int) -> Result:
        self.begin(trial, attempt)
        try:
            if self.testbed is None:
                self._build()
            assert self.testbed
            result = run_trial(self.testbed, trial, self.timeout_s, attempt)
        except (AgentDied, AgentError, DockerError) as error:
            self._drop()
            result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt)
        else:
            if result.outcome is Outcome.LAB_ERROR:
                self._drop()
        self.done(result)
        return result

    def _build(self) -> None:
        context = self.up()
        self.testbed = context.__enter__()
        self._context = context

    def _drop(self) -> None:
        context, self._context, self.testbed = self._context, None, None
        if context:
            context.__exit__(None, None, None)
