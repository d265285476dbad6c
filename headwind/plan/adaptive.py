"""Adaptive repetition: the condition that runs next, and when to stop. Pure except for the clock that it makes.

First every condition gets its minimum, pass by pass. Then each Latin square of blocks goes to the most promising
condition: settled comparisons per second, from the forecasts of all open comparisons of a condition
(outlook.blocks_needed) and the measured seconds of its blocks. So a cheap condition rarely waits for an expensive one.
A little-known condition is tried before one that is known to take long. A condition in which nothing more can be
settled, within its maximum or the time left, comes last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from itertools import count
from math import ceil

from headwind.clock import CLOCK, Clock
from headwind.model import Block, Condition, Matrix
from headwind.plan.block_order import plan_block
from headwind.verdicts.judgement import BlockSeconds, Judge
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS
from headwind.verdicts.pending import Open
from headwind.verdicts.search import next_value, tallies_of


def time_left(budget_s: float | None, clock: Clock = CLOCK) -> Callable[[], float]:
    """Seconds left of the budget from now on; infinite without a budget."""
    start = clock.monotonic()
    return lambda: math.inf if budget_s is None else budget_s - (clock.monotonic() - start)


def choices(
    matrix: Matrix,
    still_open: Iterable[Open],
    done: Collection[str],
    in_flight: Collection[Block],
    left_s: float,
    at_once: Callable[[Condition], int] = lambda _: 1,
    last: Collection[str] = (),
) -> list[Block]:  # fmt: skip
    """The next block of each condition beyond its minimum that fits into left_s, the most promising first.

    Empty if all is decided or at its maximum, or if no block fits. `done` are the ids of the trials that need not run
    again, `at_once` is the number of blocks of a condition that may run in parallel. Blocks of a condition of which
    one is running come last: those of the same Latin square, which will run in any case, then those of another one. A
    condition without any block comes first. Behind all those whose square fits come others that fit by themselves, so
    that no time is left, and of these first the conditions with the fewest blocks. The conditions whose ids are in
    `last` come behind all others: their open comparisons are CPU-bound, which more blocks hardly change.
    """
    waiting = []
    running = {block.condition.id for block in in_flight}
    known = {*done, *(trial.id for block in in_flight for trial in block.trials())}
    for item in still_open:
        block = first_missing(matrix, item.condition, known)
        size, is_running = len(block.order), item.condition.id in running
        begun = block.index % size
        square_s = item.block_s * (1 if begun else ceil(size / at_once(item.condition)))
        if block.index < matrix.repeat.most and item.block_s <= left_s:
            is_hopeless, rate = _promise(item, matrix.repeat.most - block.index, left_s)
            fewest = item.n if square_s > left_s else -1
            is_last = item.condition.id in last
            has_any = is_running or item.n > 0
            waiting.append((is_last, has_any, fewest, is_running, is_hopeless, not begun, rate, block))
    return [entry[-1] for entry in sorted(waiting, key=lambda entry: entry[:-1])]


def _promise(item: Open, blocks_left: int, left_s: float) -> tuple[bool, float]:
    """Sort key of a condition: those that can still settle a comparison first, then by verdicts per second."""
    fewest = item.fewest or LONGEST_FORECAST_BLOCKS
    return fewest > blocks_left or fewest * item.block_s > left_s, -item.rate / item.block_s


def first_missing(matrix: Matrix, condition: Condition, done: Collection[str]) -> Block:
    """The first block of a condition with a trial that is not among these ids."""
    arms = tuple(matrix.arms_in(condition))  # their order, which takes time to draw, is not part of a trial's id
    blocks = (Block(condition, index, arms, {}) for index in count())
    index = next(block.index for block in blocks if any(trial.id not in done for trial in block.trials()))
    return plan_block(matrix, condition, index)


def search_blocks(
    matrix: Matrix, judge: Judge, block_s: BlockSeconds, done: Collection[str], in_flight: Collection[Block],
    left_s: float,
) -> list[Block]:  # fmt: skip
    """The next block of the matrix's search, at the most informative value, if there is one and it fits into left_s."""
    place = next_value(tallies_of(matrix, judge.counted_rows), matrix.repeat.confidence, matrix.repeat.most)
    if place is None:
        return []
    condition = matrix.conditions[place]
    known = {*done, *(trial.id for block in in_flight for trial in block.trials())}
    block = first_missing(matrix, condition, known)
    return [block] if block.index < matrix.repeat.most and block_s(condition) <= left_s else []
