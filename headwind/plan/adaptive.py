"""Adaptive repetition: which condition runs next, and when to stop. Pure but for the clock that it makes.

First every condition gets its minimum, pass by pass. Then each Latin square of blocks goes where it promises most:
settled comparisons per second, from the forecasts of all that are open in a condition (outlook.blocks_needed) and the
measured seconds of its blocks. So a cheap condition rarely waits for an expensive one; one of which little is known is
tried before one that is known to take long; and one in which nothing can be settled any more, within its maximum or the
time left, comes last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from itertools import count

from headwind.clock import CLOCK, Clock
from headwind.model import Block, Condition, Matrix
from headwind.plan.forecast import Forecast
from headwind.plan.schedule import plan_block
from headwind.verdicts.judgement import BlockSeconds
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS
from headwind.verdicts.pending import Open


def time_left(budget_s: float | None, clock: Clock = CLOCK) -> Callable[[], float]:
    """A clock that runs down from now on, in seconds; without a budget it never does."""
    start = clock.monotonic()
    return lambda: math.inf if budget_s is None else budget_s - (clock.monotonic() - start)


def block_seconds(matrix: Matrix, forecast: Forecast) -> BlockSeconds:
    """What a block of a condition costs, as far as it is known."""
    return lambda condition: forecast.block_s(Block(condition, 0, tuple(matrix.arms_in(condition)), {}))


def choices(
    matrix: Matrix, still_open: Iterable[Open], done: Collection[str], in_flight: Collection[Block], left_s: float
) -> list[Block]:
    """The next block of each condition beyond its minimum that fits into left_s, the most promising first.

    Empty: all is decided, or at its maximum, or nothing fits. `done` are the ids of the trials that need not run again.
    Where a block of a condition runs already, only another one of the same Latin square may run beside it, and it comes
    last: nothing that is seen can change any more that it will run.
    """
    waiting = []
    running = {block.condition.id for block in in_flight}
    known = {*done, *(trial.id for block in in_flight for trial in block.trials())}
    for item in still_open:
        block = first_missing(matrix, item.condition, known)
        size, beside = len(block.order), item.condition.id in running
        begun = block.index % size
        square_s = item.block_s * (1 if begun else size)
        if block.index < matrix.repeat.most and square_s <= left_s and (begun or not beside):
            waiting.append((beside, not begun, *_promise(item, matrix.repeat.most - block.index, left_s), block))
    return [entry[-1] for entry in sorted(waiting, key=lambda entry: entry[:-1])]


def _promise(item: Open, blocks_left: int, left_s: float) -> tuple[bool, float]:
    """How a condition stands in the queue: those that can still settle something first, then by verdicts per second."""
    fewest = item.fewest or LONGEST_FORECAST_BLOCKS
    return fewest > blocks_left or fewest * item.block_s > left_s, -item.rate / item.block_s


def first_missing(matrix: Matrix, condition: Condition, done: Collection[str]) -> Block:
    """The first block of a condition with a trial that is not among these ids."""
    arms = tuple(matrix.arms_in(condition))  # their order, which takes time to draw, has no part in a trial's id
    blocks = (Block(condition, index, arms, {}) for index in count())
    index = next(block.index for block in blocks if any(trial.id not in done for trial in block.trials()))
    return plan_block(matrix, condition, index)
