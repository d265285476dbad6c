"""Grids of two parameters of the network as tables: who leads in each cell, the deeper its colour the further."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwind.format import arm_name, measured, setting
from headwind.model import Condition, Matrix
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.sweeps import Grid, Sweep, crossovers, curves, grids_of
from headwind.report.verdicts import cell_class, short_text, toward
from headwind.verdicts.findings import Finding, Pair
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.verdict import Rule

DEEPER = (1.25, 2.0)  # a lead from so much on is drawn deeper


@dataclass(frozen=True, slots=True)
class GridCell:
    """One condition by one comparison."""

    condition: Condition
    text: str
    look: str  # classes


@dataclass(frozen=True, slots=True)
class GridTable:
    """One comparison over a grid, row by row; the texts of a row's and the columns' values."""

    pair: Pair
    rows: tuple[tuple[str, tuple[GridCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class GridPicture:
    """One grid: a table for each comparison, and where along a row or column two protocols are even."""

    grid: Grid
    columns: tuple[str, ...]
    tables: tuple[GridTable, ...]
    crossovers: tuple[str, ...]


def grid_pictures(matrix: Matrix, verdicts: Judgement, sweeps: Sequence[Sweep]) -> list[GridPicture]:
    """Every grid of a matrix by the primary metric, where two protocols or more are compared.

    `sweeps` are those of the matrix: what a grid shows of them is where the lead changes.
    """
    found: dict[Pair, dict[str, Finding]] = {}
    for line in verdicts.compared:
        found.setdefault(line.pair, {})[line.condition.id] = line.primary
    return [
        GridPicture(
            grid,
            tuple(setting(grid.along_quantity, value) for value in grid.along_values),
            tuple(GridTable(pair, tuple(_rows(grid, mine, verdicts.rule))) for pair, mine in found.items()),
            tuple(text for sweep in sweeps if grid.holds(sweep) for text in _even(grid, sweep, verdicts)),
        )
        for grid in (grids_of(matrix) if found else ())
    ]


def _rows(grid: Grid, found: Mapping[str, Finding], rule: Rule) -> Iterator[tuple[str, tuple[GridCell, ...]]]:
    for row in grid.down_values:
        conditions = [grid.cells[row, column] for column in grid.along_values]
        cells = (GridCell(each, short_text(found[each.id], rule), _look(found[each.id], rule)) for each in conditions)
        yield setting(grid.down_quantity, row), tuple(cells)


def _look(finding: Finding, rule: Rule) -> str:
    """Whose lead it is and, where it is sure, how large: its estimate, else at least so much; none by finishing."""
    look = cell_class(finding, rule)
    if certainty_of(finding, rule) is not Certainty.SURE or not finding.verdict.favours:
        return look
    lead = toward(finding.comparison.interval, finding.verdict.favours)
    known = lead.estimate if lead.estimate is not None and math.isfinite(lead.estimate) else lead.low
    size = 0.0 if finding.verdict.is_completion else known
    return f"{look} deep{sum(size >= math.log(factor) for factor in DEEPER)}"


def _even(grid: Grid, sweep: Sweep, verdicts: Judgement) -> Iterator[str]:
    """`HTTP/3 and HTTP/2 at a downlink loss of about 1.2 % where downlink delay is 50 ms`."""
    place = next(place for place, each in grid.cells.items() if each.id == sweep.steps[0].condition.id)
    beside = (
        (grid.down, setting(grid.down_quantity, place[0]))
        if sweep.parameter == grid.along
        else (grid.along, setting(grid.along_quantity, place[1]))
    )
    for pair, curve in curves(sweep, verdicts, sweep.steps[0].condition.workload.primary()).items():
        for value in crossovers(curve):
            at = f"a {sweep.parameter} of about {measured(sweep.quantity, value)}"
            yield f"{arm_name(pair.new)} and {arm_name(pair.base)} at {at} where {beside[0]} is {beside[1]}"
