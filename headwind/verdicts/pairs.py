"""The comparisons of a matrix: which arms are compared in which condition. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwind.arm import Arm, Role
from headwind.metric import Metric
from headwind.model import Condition, Matrix


@dataclass(frozen=True, slots=True)
class Pair:
    """Two compared arms: `new` is the candidate, `base` the baseline."""

    base: Arm
    new: Arm

    def __str__(self) -> str:
        return f"{self.new} against {self.base}"

    @property
    def is_check(self) -> bool:
        """True for a self-check."""
        return self.new.is_twin

    @property
    def is_control(self) -> bool:
        """True if a difference exists by design, of whatever size."""
        return self.new.role is Role.SLOWER

    def deciding(self, judged: Iterable[Metric]) -> tuple[Metric, ...]:
        """The judged metrics that can decide it; for a self-check only the primary one, which is the first."""
        metrics = tuple(judged)
        return metrics[:1] if self.is_check else metrics


def pairs_of(matrix: Matrix, condition: Condition) -> list[Pair]:
    """Every comparison in a condition: those that the matrix names, else h3:h1, h3:h2, h2:h1; then the twins."""
    arms, check = matrix.arms, matrix.selfcheck
    named = [Pair(base, new) for new, base in matrix.compare]
    every = [Pair(base, arms[index]) for index in range(len(arms) - 1, 0, -1) for base in arms[:index]]
    twins = [Pair(check.arm, twin) for twin in check.twins(condition)] if check else []
    return (named or every) + twins
