"""Compares rules for choosing blocks: replays blocks of a recorded run, in another order, without measuring.

    .venv/bin/python bench/scheduling.py reports/<run-id> [--budget 15min] [--lanes 6] [--times 5]

The scheduler is the real one, with a simulated clock. A block is one of the recorded blocks of its condition, drawn
with replacement, with its recorded duration. So another rule can be compared with the current one in seconds, on the
data of one machine. Prints the settled comparisons of each repetition, and the blocks of each condition.
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


def replay(
    matrix: Matrix, known: Recorded, budget_s: float, lanes: int, cores: int, chance: random.Random
) -> tuple[Scheduler, Counter[str]]:
    """The scheduler at the end of a replayed run, and the number of blocks of each network."""
    now_s, blocks = [0.0], Counter[str]()
    scheduler = Scheduler(matrix, (), lambda: budget_s - now_s[0], lanes, cores, Clock(lambda: now_s[0]))
    running: list[tuple[float, str, Task, Sequence[Result]]] = []
    while True:
        while len(running) < lanes and (task := scheduler.next([entry[2] for entry in running])):
            ended = again(task.block, chance.choice(known[task.block.condition.id]))
            took_s = sum(sum(result.phases_s.values()) for result in ended)
            heapq.heappush(running, (now_s[0] + took_s, task.block.id, task, ended))
        if not running:
            return scheduler, blocks
        now_s[0], _, task, results = heapq.heappop(running)
        blocks[task.block.condition.profile.name] += 1
        scheduler.tell(results)


def again(block: Block, results: Sequence[Result]) -> list[Result]:
    """The recorded results, as the results of this block."""
    of_arm = {result.trial.arm: result for result in results}
    return [replace(of_arm[trial.arm], trial=trial, attempt=0) for trial in block.trials()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--budget", default="15min")
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args(arguments)
    with Run.open(options.run) as run:
        data = RunData.of(run)
    known, settled = recorded(data), list[int]()
    for seed in range(options.times):
        matrix = replace(data.matrix, seed=seed)
        budget_s, chance = duration_s(options.budget), random.Random(seed)
        scheduler, blocks = replay(matrix, known, budget_s, options.lanes, options.cores, chance)
        settled.append(len(scheduler.settled()))
        print(f"{settled[-1]} of {scheduler.comparisons} settled; {scheduler.counts[0]} trials; {dict(blocks)}")
    print(f"median {statistics.median(settled)}, mean {statistics.fmean(settled):.1f}")


if __name__ == "__main__":
    main()
