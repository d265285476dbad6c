"""Runs one block on one testbed, trial by trial. It knows no other blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from headwind.arm import Arm
from headwind.model import Block, Outcome, Place, Result, Trial
from headwind.proof.attempts import runs_again
from headwind.settings import TrialRules
from headwind.testbed.agent import AgentDied, AgentError
from headwind.testbed.docker import DockerError
from headwind.testbed.own_server import OwnServerError
from headwind.testbed.path import Path
from headwind.trial.trial import run_trial

LAB_TROUBLE = (AgentDied, AgentError, DockerError, OwnServerError)  # a new testbed may help


class Record(Protocol):
    """A record of attempts, written before and after each; a `journal.Run` is one."""

    def begin(self, trial: Trial, attempt: int) -> None:
        """Record that the attempt starts."""

    def append(self, result: Result) -> None:
        """Record the attempt's result."""


@dataclass(frozen=True, slots=True)
class Task:
    """A block for a lane to run, or the rest of one."""

    block: Block
    attempts: Mapping[Arm, int]  # of the arms that are left: the number of the next attempt

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that are left, in their order."""
        return tuple(trial for trial in self.block.trials() if trial.arm in self.attempts)


def run_block(
    path: Callable[[str], Path], task: Task, record: Record, place: Place, rules: TrialRules
) -> Iterator[Result]:
    """Run the rest of a block; each result is recorded before it is yielded. `path` gives that to a server.

    The first lab error ends it, because the testbed must then be rebuilt; `left_after` gives the rest.
    """

    def run(trial: Trial, attempt: int) -> Result:
        return run_trial(path(trial.arm.server.name), trial, rules, attempt)

    return run_each(task, record, place, run)


def run_each(task: Task, record: Record, place: Place, run: Callable[[Trial, int], Result]) -> Iterator[Result]:
    """Run the rest of a block as `run_block` does, on any testbed: `run` makes an attempt."""
    for trial in task.trials:
        result = attempted(task, trial, record, place, run)
        yield result
        if result.outcome is Outcome.LAB_ERROR:
            return


def attempted(task: Task, trial: Trial, record: Record, place: Place, run: Callable[[Trial, int], Result]) -> Result:
    """The result of one attempt (`run` gets its number), recorded before and after; LAB_TROUBLE is a lab error."""
    attempt, started_at = task.attempts[trial.arm], time.time()
    record.begin(trial, attempt)
    try:
        result = run(trial, attempt)
    except LAB_TROUBLE as error:
        result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt, started_at=started_at)
    result = result if result.place.host else replace(result, place=place)  # a remote lane names its own
    record.append(result)
    return result


def left_after(task: Task, result: Result) -> Task:
    """The rest of a task after one of its results; the trial itself is part of it if it must run again."""
    left = {arm: attempt for arm, attempt in task.attempts.items() if arm != result.trial.arm}
    again = {result.trial.arm: result.attempt + 1} if runs_again(result) else {}
    return replace(task, attempts={**left, **again})
