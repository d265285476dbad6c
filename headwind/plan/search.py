"""Which block of a search is next: at the value where it says most. Pure."""

from __future__ import annotations

from collections.abc import Collection

from headwind.model import Block, Matrix
from headwind.plan.adaptive import first_missing
from headwind.verdicts.judgement import BlockSeconds, Judge
from headwind.verdicts.search import next_value, tallies_of


def search_blocks(
    matrix: Matrix, judge: Judge, block_s: BlockSeconds, done: Collection[str], in_flight: Collection[Block],
    left_s: float,
) -> list[Block]:  # fmt: skip
    """The next block of the matrix's search, if there is one and it fits into left_s."""
    place = next_value(tallies_of(matrix, judge.counted_rows), matrix.repeat.confidence, matrix.repeat.most)
    if place is None:
        return []
    condition = matrix.conditions[place]
    known = {*done, *(trial.id for block in in_flight for trial in block.trials())}
    block = first_missing(matrix, condition, known)
    return [block] if block.index < matrix.repeat.most and block_s(condition) <= left_s else []
