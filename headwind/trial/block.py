"""Runs one block on one testbed, trial by trial. It knows nothing of other blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from headwind.arm import Arm
from headwind.model import Block, Outcome, Place, Result, Trial
from headwind.proof.attempts import runs_again
from headwind.settings import UNBOUND, Settings
from headwind.testbed.agent import AgentDied, AgentError
from headwind.testbed.docker import DockerError
from headwind.testbed.testbed import Testbed
from headwind.trial.trial import run_trial

LAB_TROUBLE = (AgentDied, AgentError, DockerError)  # a new testbed may do better


class Record(Protocol):
    """Where attempts are written down before and after they happen; a `journal.Run` is one."""

    def begin(self, trial: Trial, attempt: int) -> None:
        """The attempt starts."""

    def append(self, result: Result) -> None:
        """The attempt ended like this."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane is given to run: a block, or what is left of it."""

    block: Block
    attempts: Mapping[Arm, int]  # of the arms that are left: the number of the attempt that comes now

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those that are left, in the order in which they run."""
        return tuple(trial for trial in self.block.trials() if trial.arm in self.attempts)


def run_block(
    testbed: Testbed, task: Task, record: Record, place: Place, timeout_s: float, settings: Settings = UNBOUND
) -> Iterator[Result]:
    """Run what is left of a block; each result is on record before it is given.

    The first lab error ends it, because the testbed is then to be rebuilt; what `left_after` it is still to be run.
    """

    def run(trial: Trial, attempt: int) -> Result:
        return run_trial(testbed, trial, timeout_s, attempt, settings=settings)

    return run_each(task, record, place, run)


def run_each(task: Task, record: Record, place: Place, run: Callable[[Trial, int], Result]) -> Iterator[Result]:
    """run_block, wherever the testbed is on which `run` makes an attempt."""
    for trial in task.trials:
        result = attempted(task, trial, record, place, run)
        yield result
        if result.outcome is Outcome.LAB_ERROR:
            return


def attempted(task: Task, trial: Trial, record: Record, place: Place, run: Callable[[Trial, int], Result]) -> Result:
    """What came of one attempt (`run` is given its number), on record before and after: LAB_TROUBLE is a lab error."""
    attempt, started_at = task.attempts[trial.arm], time.time()
    record.begin(trial, attempt)
    try:
        result = run(trial, attempt)
    except LAB_TROUBLE as error:
        result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt, started_at=started_at)
    result = result if result.place.host else replace(result, place=place)  # where it was measured may be far away
    record.append(result)
    return result


def left_after(task: Task, result: Result) -> Task:
    """What is still to be run once one of its trials gave this: that trial as well if it runs again."""
    left = {arm: attempt for arm, attempt in task.attempts.items() if arm != result.trial.arm}
    again = {result.trial.arm: result.attempt + 1} if runs_again(result) else {}
    return replace(task, attempts={**left, **again})
