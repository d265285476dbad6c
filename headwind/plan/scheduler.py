"""The scheduler: asked for the next block, told what came of the others. Whatever it learns is its own."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from headwind.model import Block, Matrix, Outcome, Result, Task
from headwind.plan.adaptive import block_seconds, choices
from headwind.plan.forecast import Forecast
from headwind.plan.schedule import plan_blocks
from headwind.verdicts.judgement import Judge

UNFINISHED = (Outcome.LAB_ERROR, Outcome.SKIPPED)  # such a trial runs again


class Scheduler:
    """`next` until it gives nothing and nothing runs any more; `tell` after each trial.

    First the minimum of the matrix, in the order of the plan, then what adaptive repetition chooses. A block is given
    only if it is expected to end within `left_s`, and never split; what is left of one that was interrupted is given
    whole. `results` are those of a run that goes on.
    """

    def __init__(
        self, matrix: Matrix, results: Collection[Result] = (), left_s: Callable[[], float] = lambda: math.inf
    ) -> None:
        self.matrix = matrix
        self.judge, self.forecast = Judge(matrix), Forecast(matrix.timeout_s)
        self._left_s = left_s
        self._attempts: dict[str, int] = {}  # of each trial, by its id
        self._done: set[str] = set()  # ids of trials that need no further attempt
        self._planned = plan_blocks(matrix)  # the minimum and what was chosen beyond it, as far as it is not done
        self._again: deque[Block] = deque()
        self.tell(results)

    def tell(self, results: Collection[Result]) -> None:
        """What came of trials, in the order in which they ended."""
        self.judge.tell(results)
        for result in results:
            self.forecast.learn(result)
            trial = result.trial.id
            self._attempts[trial] = result.attempt + 1
            (self._done.discard if result.outcome in UNFINISHED else self._done.add)(trial)

    def repeat(self, blocks: Collection[Block]) -> None:
        """These blocks run again, whole and before all others: their results say nothing of a protocol."""
        self._again += [block for block in blocks if block not in self._again]

    @property
    def counts(self) -> tuple[int, int]:
        """Trials that are done, and those together with the ones that are planned, as far as that is known."""
        left = sum(len(self._left_of(block).attempts) for block in self._planned)
        return len(self._done), len(self._done) + left

    def expected_s(self) -> float:
        """How long what is planned takes yet, one trial after the other."""
        return self.forecast.trials_s(trial for block in self._planned for trial in self._left_of(block).trials)

    def next(self, in_flight: Collection[Task] = ()) -> Task | None:
        """What to run now, beside what runs already; None: nothing before one of these has ended, if any ever."""
        running = [task.block for task in in_flight]
        for block in self._again:
            if block not in running:
                self._again.remove(block)
                return self._task(block)
        for block in self._candidates(running):
            if block not in self._planned:
                self._planned.append(block)
            return self._left_of(block)
        return None

    def _candidates(self, running: Collection[Block]) -> Iterator[Block]:
        """The blocks that are worth their time and fit into what is left of it, in the order in which they should run.

        The minimum comes first; where repetition is adaptive, what was seen decides after that.
        """
        left_s = self._left_s()
        self._planned = [block for block in self._planned if self._left_of(block).attempts]
        for block in self._planned:
            if block not in running and self.forecast.trials_s(self._left_of(block).trials) <= left_s:
                yield block
        if self.matrix.repeat.is_adaptive:
            costs = block_seconds(self.matrix, self.forecast)
            yield from choices(self.judge, self._done, running, costs, left_s)

    def _task(self, block: Block) -> Task:
        """All of a block, each arm with the number of its next attempt."""
        return Task(block, {trial.arm: self._attempts.get(trial.id, 0) for trial in block.trials()})

    def _left_of(self, block: Block) -> Task:
        """What of a block still has to run."""
        done = {trial.arm for trial in block.trials() if trial.id in self._done}
        every = self._task(block)
        return replace(every, attempts={arm: number for arm, number in every.attempts.items() if arm not in done})
