"""Compares rules for choosing blocks: replays blocks of a recorded run, in another order, without measuring.

    .venv/bin/python bench/scheduling.py reports/<run-id> [--budget 15min] [--lanes 12] [--times 5]

The scheduler is the real one, with a simulated clock. A block is one of the recorded blocks of its condition, drawn
with replacement, with its recorded durations. So another rule can be compared with the current one in seconds, on the
data of one machine. Prints for each repetition: settled comparisons, the lane-seconds in which a lane had no block
because further lanes were to come up, and the blocks of each condition.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.clock import Clock
from headwind.matrix.units import duration_s
from headwind.model import DATA_OUTCOMES, Block, Matrix, Result
from headwind.plan.scheduler import Scheduler
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.trial.block import Task
from headwind.trial.lanes import is_full, is_growing

Recorded = Mapping[str, Sequence[Sequence[Result]]]  # condition id -> its blocks


def recorded(data: RunData) -> Recorded:
    """The whole blocks of a run."""
    blocks = defaultdict[str, list[Result]](list)
    for result in data.latest:
        blocks[result.trial.block.id].append(result)
    found = defaultdict[str, list[Sequence[Result]]](list)
    for results in blocks.values():
        block = results[0].trial.block
        if len(results) == len(block.order) and all(result.outcome in DATA_OUTCOMES for result in results):
            found[block.condition.id].append(results)
    return found


class Replay:
    """A replayed run: the real scheduler with a simulated clock, on lanes that come up as headwind/trial/lanes.py does.

    `lanes` is the highest number of them; each takes `up_s` to come up, while no trial runs.
    """

    def __init__(
        self, matrix: Matrix, known: Recorded, budget_s: float, lanes: int, cores: int, up_s: float, seed: int
    ) -> None:
        self.now_s, self.blocks, self.idle_s = 0.0, Counter[str](), 0.0
        self._known, self._most, self._up_s, self._chance = known, lanes, up_s, random.Random(seed)
        clock = Clock(lambda: self.now_s)
        self.scheduler = Scheduler(matrix, (), lambda: budget_s - self.now_s, lanes, cores, clock)
        self._up, self._wanted, self._waiting = 1, 1, list[Task]()
        self._running: list[tuple[float, str, Task, list[Result]]] = []  # end of the first of the results that are left

    def run(self) -> Replay:
        """Replay to the end."""
        self._hand_out()
        while self._running:
            end_s, name, task, (result, *left) = heapq.heappop(self._running)
            self.idle_s += (end_s - self.now_s) * (self._up - len(self._running) - 1) * bool(self._waiting)
            self.now_s = end_s
            self.scheduler.tell([result])
            if left:
                heapq.heappush(self._running, (end_s + _took_s(left[0]), name, task, left))
            else:
                self.blocks[task.block.condition.profile.name] += 1
            self._hand_out()
        return self

    def _hand_out(self) -> None:
        running = [task for _, _, task, _ in self._running]
        self._wanted = min(self._most, self.scheduler.worth(self._up, self._most, self._up_s, running=running))
        while not self._is_full and (task := self.scheduler.next([*running, *self._waiting])):
            self._waiting.append(task)
        if self._is_growing and not running:
            self.now_s += self._up_s * (self._wanted - self._up)
            self._up = self._wanted
        while self._waiting and not self._is_growing and len(self._running) < self._up:
            task = self._waiting.pop(0)
            results = again(task.block, self._chance.choice(self._known[task.block.condition.id]))
            heapq.heappush(self._running, (self.now_s + _took_s(results[0]), task.block.id, task, results))

    @property
    def _is_growing(self) -> bool:
        return is_growing(**self._counts)

    @property
    def _is_full(self) -> bool:
        return is_full(**self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        return {"up": self._up, "wanted": self._wanted, "running": len(self._running), "waiting": len(self._waiting)}


def _took_s(result: Result) -> float:
    return sum(result.phases_s.values())


def again(block: Block, results: Sequence[Result]) -> list[Result]:
    """The recorded results, as the results of this block."""
    of_arm = {result.trial.arm: result for result in results}
    return [replace(of_arm[trial.arm], trial=trial, attempt=0) for trial in block.trials()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--budget", default="15min")
    parser.add_argument("--lanes", type=int, default=12)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--up", type=float, default=3.6, help="seconds until a further testbed is up")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args(arguments)
    with Run.open(options.run) as run:
        data = RunData.of(run)
    known, settled = recorded(data), list[int]()
    for seed in range(options.times):
        matrix, budget_s = replace(data.matrix, seed=seed), duration_s(options.budget)
        end = Replay(matrix, known, budget_s, options.lanes, options.cores, options.up, seed).run()
        settled.append(len(end.scheduler.settled()))
        print(
            f"{settled[-1]} of {end.scheduler.comparisons} settled; {end.scheduler.counts[0]} trials; lanes waited "
            f"{end.idle_s:.0f} s for others to come up; {dict(end.blocks)}"
        )
    print(f"median {statistics.median(settled)}, mean {statistics.fmean(settled):.1f}")


if __name__ == "__main__":
    main()
