"""What a bad network costs: how many times its own median over the clean one each arm takes. It describes, no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.model import Condition
from headwind.report.standing import Standing, is_reference


@dataclass(frozen=True, slots=True)
class Times:
    """How many times as long, or as much: more than that where the median is only bounded."""

    ratio: float
    at_least: bool

    def __str__(self) -> str:
        digits = 2 if self.ratio < 10 else 0
        return f"{'> ' if self.at_least else ''}{self.ratio:,.{digits}f}x"


@dataclass(frozen=True, slots=True)
class Cost:
    """The conditions of one workload beside the one in which nothing is impaired."""

    reference: Condition
    rows: Sequence[tuple[Condition, Mapping[Arm, Times]]]  # arms that have both medians


def costs(found: Sequence[Standing]) -> list[Cost]:
    """One for each workload that has a clean condition with medians, and another condition."""
    told: list[Cost] = []
    for reference in (each for each in found if is_reference(each.condition)):
        others = [each for each in found if each.condition.workload == reference.condition.workload]
        rows = [(each.condition, _times(each, reference)) for each in others if not is_reference(each.condition)]
        known = [(condition, times) for condition, times in rows if times]
        if known and reference.condition.workload not in [cost.reference.workload for cost in told]:
            told.append(Cost(reference.condition, known))
    return told


def _times(standing: Standing, reference: Standing) -> dict[Arm, Times]:
    found = {}
    for arm, median in standing.medians.items():
        clean = reference.medians.get(arm)
        if clean and clean.is_finished and clean.known > 0 and median.low > 0:
            found[arm] = Times(median.low / clean.known, not median.is_finished)
    return found
