"""What a report is made of: everything in a run folder but the raw samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwind.model import DATA_OUTCOMES, Arm, Condition, Matrix, Outcome, Result
from headwind.pooled import Pooled, pooled
from headwind.record import Status, planned_trials

if TYPE_CHECKING:
    from headwind.journal import Run


@dataclass(frozen=True)
class RunData:
    """One run as it was read: `results` holds every attempt in the order in which they ran, without samples."""

    id: str
    matrix: Matrix
    results: tuple[Result, ...]
    environment: Mapping[str, Any]
    status: Status

    @classmethod
    def of(cls, run: Run) -> RunData:
        """Read the run folder once. Raises as `Run` does."""
        return cls(run.id, run.matrix, tuple(run.results()), run.environment, run.status)

    @cached_property
    def latest(self) -> tuple[Result, ...]:
        """The latest attempt at every trial, in the order in which they ran: what the report counts."""
        return tuple(latest_of(self.results))

    @property
    def planned(self) -> int:
        """How many trials the matrix asks for at least."""
        return planned_trials(self.matrix)

    @cached_property
    def pooled(self) -> tuple[Pooled, ...]:
        """What all trials of each condition say together about its network."""
        return pooled(self.matrix, self.latest)

    @property
    def was_seeded(self) -> bool:
        """Whether netem took the seeds; runs from before this was asked only ran where it did."""
        return bool(self.environment.get("testbed", {}).get("router", {}).get("netem_seed", True))

    def count(self, *outcomes: Outcome) -> int:
        """How many trials ended in one of these ways at their latest attempt."""
        return sum(result.outcome in outcomes for result in self.latest)

    @cached_property
    def _cells(self) -> Mapping[tuple[str, Arm], list[Result]]:
        cells: dict[tuple[str, Arm], list[Result]] = {}
        for result in self.results:
            cells.setdefault((result.trial.block.condition.id, result.trial.arm), []).append(result)
        return cells

    def attempts(self, condition: Condition, arm: Arm) -> list[Result]:
        """Every attempt of one condition and arm, in the order in which they ran."""
        return self._cells.get((condition.id, arm), [])


def latest_of(results: Iterable[Result]) -> list[Result]:
    """Without the attempts that were made again."""
    results = list(results)
    latest = {result.trial.id: result for result in results}
    return [result for result in results if latest[result.trial.id] is result]


def is_data(result: Result) -> bool:
    """Whether a result belongs into the analysis; the others are counted and shown apart."""
    return result.outcome in DATA_OUTCOMES
