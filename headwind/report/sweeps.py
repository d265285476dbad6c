"""Sweeps: conditions that differ in one number of the network, such as the loss; and their crossovers.

Grids: conditions that differ in two numbers, with each value of one for each value of the other. Sweeps are not
declared: profiles with a loss of 1 %, 2 % and 5 %, and otherwise equal, form one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from headwind.format import link_settings, quantity_name
from headwind.metric import Metric
from headwind.model import Condition, Matrix
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.pairs import Pair
from impair.profile import Direction, Link, Profile

FEWEST_STEPS = 3
WIDE = 10.0  # if the highest value is more than this factor above the lowest, the axis is logarithmic
# An absent impairment has size 0. An absent rate, slot or queue has no size.
ZERO_IF_ABSENT = frozenset({"delay_s", "jitter_s", "loss_ratio", "duplicate_ratio", "corrupt_ratio", "reorder_ratio"})
WHERE = {
    (Direction.DOWNLINK,): "downlink {}",
    (Direction.UPLINK,): "uplink {}",
    tuple(Direction): "{} in both directions",
}

Parameter = tuple[tuple[Direction, ...], str]  # a number of the network: its directions, and its quantity
Settings = dict[tuple[Direction, str], float | str]  # ("downlink", "loss_ratio") -> 0.3; texts such as a distribution


@dataclass(frozen=True, slots=True)
class Step:
    """A value of the parameter, in SI units, and the condition that has it."""

    value: float
    condition: Condition


@dataclass(frozen=True, slots=True)
class Sweep:
    """Conditions of one workload over networks that differ in one number, by rising value, without duplicates."""

    parameter: str  # in words: "downlink loss", "delay in both directions"
    quantity: str  # with its unit: "loss_ratio", "delay_s"; as in headwind.format
    workload: str
    steps: tuple[Step, ...]


def sweeps_of(matrix: Matrix) -> list[Sweep]:
    """Every sweep of at least three steps: by workload, direction and parameter, in the order of the matrix.

    The settings of both directions must be equal except for one number; a number that is the same in both directions
    and changes in both is one parameter. Quantities in `ZERO_IF_ABSENT` are 0 if not set. The first of equal networks
    is taken. Any two steps determine the parameter in which they differ, so two sweeps of a workload share at most one
    condition, and none lies within another.
    """
    found = []
    for workload in dict.fromkeys(condition.workload.name for condition in matrix.conditions):
        conditions = [condition for condition in matrix.conditions if condition.workload.name == workload]
        for parameter, quantity, steps in _groups(conditions):
            if len(steps) >= FEWEST_STEPS:
                ordered = tuple(Step(value, steps[value]) for value in sorted(steps))
                found.append(Sweep(parameter, quantity, workload, ordered))
    return found


@dataclass(frozen=True, slots=True)
class Grid:
    """Conditions of one workload over networks that differ in two numbers: a sweep along each row and each column."""

    down: str  # the parameter of the rows, in words
    down_quantity: str
    down_values: tuple[float, ...]  # rising, in SI units
    along: str  # parameter of the columns
    along_quantity: str
    along_values: tuple[float, ...]
    workload: str
    cells: Mapping[tuple[float, float], Condition]  # (row value, column value) -> condition, without gaps

    def holds(self, sweep: Sweep) -> bool:
        """True if a sweep is one of its rows or columns."""
        ids = {condition.id for condition in self.cells.values()}
        return all(step.condition.id in ids for step in sweep.steps)


def grids_of(matrix: Matrix) -> list[Grid]:
    """Every grid of at least three by three values without a gap, in the order of `sweeps_of`."""
    found = list[Grid]()
    for workload in dict.fromkeys(condition.workload.name for condition in matrix.conditions):
        conditions = [condition for condition in matrix.conditions if condition.workload.name == workload]
        settings = [(condition, _settings(condition.profile)) for condition in conditions]
        for one, other in combinations(_parameters(settings), 2):
            if one[1] == other[1] and set(one[0]) & set(other[0]):
                continue
            names = parameter_name(*one), one[1], parameter_name(*other), other[1]
            for group in _alike_but(settings, one, other):
                cells = {(row, column): condition for (row, column), condition in group.items()}
                found += _whole(*names, workload, cells)
    return found


def _whole(
    down: str, down_quantity: str, along: str, along_quantity: str, workload: str,
    cells: Mapping[tuple[float, float], Condition],
) -> Iterator[Grid]:  # fmt: skip
    """A grid of these cells, or none if it is too small or has a gap."""
    rows, columns = (tuple(sorted({place[axis] for place in cells})) for axis in (0, 1))
    if min(len(rows), len(columns)) >= FEWEST_STEPS and len(cells) == len(rows) * len(columns):
        yield Grid(down, down_quantity, rows, along, along_quantity, columns, workload, cells)


def parameter_name(directions: tuple[Direction, ...], quantity: str) -> str:
    """A number of the network in words: `downlink loss`, `delay in both directions`."""
    return WHERE[directions].format(quantity_name(quantity).replace(".", " "))


def _groups(conditions: Sequence[Condition]) -> Iterator[tuple[str, str, dict[float, Condition]]]:
    """For each parameter, and each setting of all the others, the conditions by the parameter's value."""
    settings = [(condition, _settings(condition.profile)) for condition in conditions]
    for directions, quantity in _parameters(settings):
        name = parameter_name(directions, quantity)
        for group in _alike_but(settings, (directions, quantity)):
            yield name, quantity, {value: condition for (value,), condition in group.items()}


def _parameters(settings: Iterable[tuple[Condition, Settings]]) -> list[Parameter]:
    """Every number that some network sets, in each direction and in both."""
    numbers = dict.fromkeys(
        quantity for _, each in settings for (_, quantity), value in each.items() if not isinstance(value, str)
    )
    return [(directions, quantity) for directions in WHERE for quantity in numbers]


def _alike_but(
    settings: Iterable[tuple[Condition, Settings]], *parameters: Parameter
) -> Iterable[dict[tuple[float, ...], Condition]]:
    """Conditions that differ only in these parameters, by their values; the first of equal ones."""
    groups: dict[frozenset[object], dict[tuple[float, ...], Condition]] = {}
    for condition, each in settings:
        values = [value for parameter in parameters if (value := _value(each, *parameter)) is not None]
        if len(values) == len(parameters):
            rest = (item for item in each.items() if all(_is_other(item[0], *parameter) for parameter in parameters))
            groups.setdefault(frozenset(rest), {}).setdefault(tuple(values), condition)
    return groups.values()


def _settings(profile: Profile) -> Settings:
    """The settings of a profile, without those that are 0 and might as well be absent."""
    found = {(direction, key): value for direction in Direction for key, value in _of(profile.link(direction)).items()}
    changes = {each: changes for each in Direction if (changes := profile.changes(each))}
    return found | {(direction, "changes"): str(each.to_json()) for direction, each in changes.items()}


def _of(link: Link) -> dict[str, float | str]:
    numbers: dict[str, float] = {}

    def take(quantity: str, value: float) -> str:
        if value or quantity not in ZERO_IF_ABSENT:
            numbers[quantity] = value
        return ""

    words = {key: word for key, word in link_settings(link, take).items() if word}
    return {**words, **numbers}


def _value(settings: Settings, directions: Sequence[Direction], quantity: str) -> float | None:
    """The parameter's value; None if it is not set, or not the same in all the directions."""
    absent = 0.0 if quantity in ZERO_IF_ABSENT else None
    first, *others = (settings.get((direction, quantity), absent) for direction in directions)
    return None if isinstance(first, str) or any(other != first for other in others) else first


def _is_other(axis: tuple[Direction, str], directions: Sequence[Direction], quantity: str) -> bool:
    direction, name = axis
    return name != quantity or direction not in directions


Curve = list[tuple[Step, Finding]]


def compared_by(sweep: Sweep, verdicts: Judgement) -> Metric:
    """The metric by which a sweep's protocols are compared first: that of tables, unless `judge` leaves it out."""
    steps = {step.condition.id for step in sweep.steps}
    found = (line.primary.metric for line in verdicts.compared if line.condition.id in steps)
    return next(found, sweep.steps[0].condition.workload.primary())


def curves(sweep: Sweep, verdicts: Judgement, metric: Metric) -> dict[Pair, Curve]:
    """Findings at each step, by comparison of protocols; steps without that comparison by `metric` are left out."""
    steps = {step.condition.id: step for step in sweep.steps}
    found: dict[Pair, Curve] = {}
    for line in verdicts.compared:
        if line.condition.id in steps and metric in line.findings:
            found.setdefault(line.pair, []).append((steps[line.condition.id], line.findings[metric]))
    return {pair: sorted(curve, key=lambda each: each[0].value) for pair, curve in found.items()}


def crossovers(curve: Curve) -> list[float]:
    """Values of the parameter, in SI units and rising, at which candidate and baseline change places.

    Between two neighbouring steps with clear verdicts in opposite directions, ln(ratio) is interpolated linearly, and
    the crossover is where it is 0. The line is over the value, or over its logarithm if all values of the curve are
    above 0 and span more than a factor of WIDE. A step whose verdict has no ratio on its side of 1, because completion
    decided it, shows that the verdict changes but not where: it gives no value.
    """
    values = [step.value for step, _ in curve]
    is_logarithmic = bool(values) and values[0] > 0 and values[-1] > WIDE * values[0]
    found = []
    for (left, before), (right, after) in pairwise(curve):
        start, end = _ln_ratio(before), _ln_ratio(after)
        if start * end < 0:
            share = start / (start - end)
            if is_logarithmic:
                found.append(left.value * (right.value / left.value) ** share)
            else:
                found.append(left.value + (right.value - left.value) * share)
    return found


def _ln_ratio(finding: Finding) -> float:
    """The estimate of a clear verdict that it agrees with; 0 for a finding without a side."""
    estimate = finding.comparison.interval.estimate
    is_known = finding.counted.is_clear and estimate is not None and math.isfinite(estimate)
    if not is_known or estimate is None or estimate * finding.verdict.favours <= 0:
        return 0.0
    return estimate
