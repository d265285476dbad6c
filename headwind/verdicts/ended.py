"""Which blocks count: blocks that have ended are compared; blocks in which every arm gave data are complete. Pure.

A run that is stopped leaves a block on each lane with some of its trials. They would count for some comparisons of a
condition and not for others until the run is resumed, and the number of blocks would differ between comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwind.arm import Arm
from headwind.model import DATA_OUTCOMES, Result
from headwind.proof.attempts import runs_again
from headwind.verdicts.findings import Rows

Row = Mapping[Arm, Result]  # the latest result of every arm of a block that ran


def has_ended(row: Row) -> bool:
    """True if every arm of the block has run, and none runs again."""
    return _is_whole(row) and not any(map(runs_again, row.values()))


def is_complete(row: Row) -> bool:
    """True if every arm of the block gave data."""
    return _is_whole(row) and all(result.outcome in DATA_OUTCOMES for result in row.values())


def _is_whole(row: Row) -> bool:
    return len(row) == len(next(iter(row.values())).trial.block.order)


def ended(rows: Rows) -> Rows:
    """The rows of blocks that have ended."""
    return {index: row for index, row in rows.items() if has_ended(row)}


def complete(rows: Rows) -> int:
    """Number of complete blocks."""
    return sum(map(is_complete, rows.values()))
