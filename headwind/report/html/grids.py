"""Grids of two network parameters as tables: the leader in each cell, with a deeper colour for a larger lead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwind.format import arm_name, measured, setting
from headwind.model import Condition, Matrix
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.sweeps import Grid, Sweep, compared_by, crossovers, curves, grids_of
from headwind.report.verdicts import cell_class, short_text, toward
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.pairs import Pair

DEEPER = (1.25, 2.0)  # ratios from which a lead has a deeper colour


@dataclass(frozen=True, slots=True)
class GridCell:
    """A condition by one comparison."""

    condition: Condition
    text: str
    look: str  # CSS classes


@dataclass(frozen=True, slots=True)
class GridTable:
    """A comparison over a grid, row by row, with the texts of the values of rows and columns."""

    pair: Pair
    rows: tuple[tuple[str, tuple[GridCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class GridPicture:
    """A grid: a table for each comparison, and the values along rows and columns at which two protocols are even."""

    grid: Grid
    columns: tuple[str, ...]
    tables: tuple[GridTable, ...]
    crossovers: tuple[str, ...]


def grid_pictures(matrix: Matrix, verdicts: Judgement, sweeps: Sequence[Sweep]) -> list[GridPicture]:
    """Every grid of a matrix by the primary metric, if two protocols or more are compared.

    `sweeps` are those of the matrix; those inside a grid give its crossovers.
    """
    found: dict[Pair, dict[str, Finding]] = {}
    for line in verdicts.compared:
        found.setdefault(line.pair, {})[line.condition.id] = line.primary
    return [
        GridPicture(
            grid,
            tuple(setting(grid.along_quantity, value) for value in grid.along_values),
            tuple(GridTable(pair, tuple(_rows(grid, own))) for pair, own in found.items()),
            tuple(text for sweep in sweeps if grid.holds(sweep) for text in _even(grid, sweep, verdicts)),
        )
        for grid in (grids_of(matrix) if found else ())
    ]


def _rows(grid: Grid, found: Mapping[str, Finding]) -> Iterator[tuple[str, tuple[GridCell, ...]]]:
    for row in grid.down_values:
        conditions = [grid.cells[row, column] for column in grid.along_values]
        cells = (GridCell(each, short_text(found[each.id]), _look(found[each.id])) for each in conditions)
        yield setting(grid.down_quantity, row), tuple(cells)


def _look(finding: Finding) -> str:
    """CSS classes: the leader and, if sure, the size of the lead (its estimate or bound); none for completion."""
    look = cell_class(finding)
    if certainty_of(finding) is not Certainty.SURE or not finding.verdict.favours:
        return look
    lead = toward(finding.comparison.interval, finding.verdict.favours)
    known = lead.estimate if lead.estimate is not None and math.isfinite(lead.estimate) else lead.low
    size = 0.0 if finding.verdict.is_completion else known
    return f"{look} deep{sum(size >= math.log(factor) for factor in DEEPER)}"


def _even(grid: Grid, sweep: Sweep, verdicts: Judgement) -> Iterator[str]:
    """Crossovers: `HTTP/3 and HTTP/2 at a downlink loss of about 1.2 % where downlink delay is 50 ms`."""
    place = next(place for place, each in grid.cells.items() if each.id == sweep.steps[0].condition.id)
    fixed = (
        (grid.down, setting(grid.down_quantity, place[0]))
        if sweep.parameter == grid.along
        else (grid.along, setting(grid.along_quantity, place[1]))
    )
    for pair, curve in curves(sweep, verdicts, compared_by(sweep, verdicts)).items():
        for value in crossovers(curve):
            at = f"a {sweep.parameter} of about {measured(sweep.quantity, value)}"
            yield f"{arm_name(pair.new)} and {arm_name(pair.base)} at {at} where {fixed[0]} is {fixed[1]}"
