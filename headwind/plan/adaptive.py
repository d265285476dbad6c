"""Adaptive repetition: which condition runs next, and when to stop. Pure but for the clock, which is handed in.

First every condition gets its minimum, pass by pass. Then each Latin square of blocks goes where it promises most:
settled comparisons per second, from the forecasts of all that are open in a condition (verdict.blocks_needed) and the
measured seconds of its blocks. So a cheap condition rarely waits for an expensive one; one of which little is known is
tried before one that is known to take long; and one in which nothing can be settled any more, within its maximum or the
time left, comes last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

from headwind.model import Block, Condition, Matrix, Result, Trial
from headwind.plan.forecast import Forecast
from headwind.plan.schedule import finished_ids, plan_block, plan_blocks, remaining
from headwind.verdicts.judgement import BlockSeconds, Judge
from headwind.verdicts.pending import Open
from headwind.verdicts.verdict import LONGEST_FORECAST_BLOCKS


def upcoming(
    judge: Judge, results: Sequence[Result], forecast: Forecast, left_s: Callable[[], float]
) -> Iterator[tuple[Trial, ...]]:
    """The trials to run, block by block, until all is decided or no block fits into the time that is left.

    `judge`, `results` and `forecast` are looked at again before each block, so the caller tells them what came of the
    last. A block is started only if it is expected to end in time, and never split.
    """
    matrix = judge.matrix
    for trials in remaining(plan_blocks(matrix), finished_ids(results)):
        if forecast.trials_s(trials) <= left_s():
            yield trials
    while matrix.repeat.is_adaptive:
        block = choose(judge, finished_ids(results), block_seconds(matrix, forecast), left_s())
        if block is None:
            return
        yield from remaining([block], finished_ids(results))


def time_left(budget_s: float | None) -> Callable[[], float]:
    """A clock that runs down from now on, in seconds; without a budget it never does."""
    start = time.monotonic()
    return lambda: math.inf if budget_s is None else budget_s - (time.monotonic() - start)


def block_seconds(matrix: Matrix, forecast: Forecast) -> BlockSeconds:
    """What a block of a condition costs, as far as it is known."""
    return lambda condition: forecast.block_s(plan_block(matrix, condition, 0))


def choose(judge: Judge, done: set[str], block_s: BlockSeconds, left_s: float) -> Block | None:
    """The next block beyond the minimum, or None: all is decided, or at its maximum, or nothing fits into left_s.

    `done` are the ids of the trials that need not run again.
    """
    matrix, waiting = judge.matrix, []
    for item in judge.open(block_s):
        block = _first_missing(matrix, item.condition, done)
        size = len(block.order)
        begun = block.index % size
        square_s = item.block_s * (1 if begun else size)
        if block.index < matrix.repeat.most and square_s <= left_s:
            waiting.append((not begun, *_promise(item, matrix.repeat.most - block.index, left_s), block))
    return min(waiting, key=lambda entry: entry[:3])[3] if waiting else None


def _promise(item: Open, blocks_left: int, left_s: float) -> tuple[bool, float]:
    """How a condition stands in the queue: those that can still settle something first, then by verdicts per second."""
    fewest = item.fewest or LONGEST_FORECAST_BLOCKS
    return fewest > blocks_left or fewest * item.block_s > left_s, -item.rate / item.block_s


def _first_missing(matrix: Matrix, condition: Condition, done: set[str]) -> Block:
    index = 0
    while all(trial.id in done for trial in plan_block(matrix, condition, index).trials()):
        index += 1
    return plan_block(matrix, condition, index)
