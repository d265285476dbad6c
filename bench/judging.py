"""Measures how long it takes to judge a run: every verdict, open comparisons with their forecasts, and self-checks.

    .venv/bin/python bench/judging.py [--trials 10000] [--times 3]

It uses synthetic runs with this number of trials in few and in many conditions; some are noise and some have a
difference between protocols. "all" judges a whole run from nothing, as the command `report` does; "one more block"
judges it again after a block of one condition, as a run does after each.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.arm import PLAIN, Protocol
from headwind.model import Condition, Matrix, Outcome, Repetition, Result
from headwind.plan.block_order import plan_block
from headwind.verdicts import outlook
from headwind.verdicts.judgement import Judge, Judgement
from headwind.workloads.h2load import H2load
from impair.profile import Profile

CONDITIONS = (40, 120, 360)
SPREADS = (0.02, 0.1, 0.4)  # standard deviations of ln times, condition by condition
LEADS = (0.0, 0.02, 0.1, 0.5)  # leads of h3, in ln units


def made_up(conditions: int, trials: int) -> tuple[Matrix, list[Result]]:
    """A matrix of three protocols, and as many whole blocks of each condition as the trials allow."""
    work = H2load("article", 1000, 100, 100)
    cells = tuple(Condition(Profile(f"network{number}"), work) for number in range(conditions))
    blocks = max(1, trials // (conditions * len(PLAIN)))
    matrix = Matrix(PLAIN, cells, Repetition(least=3, most=10 * blocks), timeout_s=60.0, seed=1)
    return matrix, [result for index in range(blocks) for cell in cells for result in block_of(matrix, cell, index)]


def block_of(matrix: Matrix, condition: Condition, index: int) -> list[Result]:
    """Results of one block; one trial in a hundred timed out."""
    number = matrix.conditions.index(condition)
    spread, lead = SPREADS[number % len(SPREADS)], LEADS[number % len(LEADS)]
    found = []
    for trial in plan_block(matrix, condition, index).trials():
        chance = random.Random(trial.id)
        ahead = lead if trial.protocol is Protocol.H3 else 0.0
        total_s, tail = math.exp(chance.gauss(-ahead, spread)), chance.uniform(0.4, 0.6)
        metrics = {
            "total_s": total_s, "mean_done_s": 0.4 * total_s, "request_p50_s": total_s / 10,
            "request_p95_s": total_s * tail,
        }  # fmt: skip
        stopped = chance.random() < 0.01
        outcome = Outcome.TIMEOUT if stopped else Outcome.OK
        found.append(Result(trial, outcome, metrics={"timeout_s": 60.0} if stopped else metrics))
    return found


def judged(judge: Judge) -> Judgement:
    """The judgement that a run computes while it is in progress."""
    return judge.judgement(lambda _: 1.0, complete=False, exhausted=False)


def timed(matrix: Matrix, results: Sequence[Result], times: int) -> tuple[float, float]:
    """Median CPU seconds of judging all from nothing, and of judging again after one more block."""
    whole, more = [], []
    for again in range(times):
        outlook.forecast.cache_clear()
        start = time.process_time()
        judge = Judge(matrix, results)
        judged(judge)
        whole.append(time.process_time() - start)
        block = block_of(matrix, matrix.conditions[again % len(matrix.conditions)], matrix.repeat.most)
        start = time.process_time()
        judge.tell(block)
        judged(judge)
        more.append(time.process_time() - start)
    return statistics.median(whole), statistics.median(more)


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate runs, judge them and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| conditions | trials | all | one more block |")
    print("| --- | --- | --- | --- |")
    for conditions in CONDITIONS:
        matrix, results = made_up(conditions, options.trials)
        whole_s, more_s = timed(matrix, results, options.times)
        print(f"| {conditions} | {len(results):,} | {whole_s:.2f} s | {more_s:.3f} s |")


if __name__ == "__main__":
    main()
