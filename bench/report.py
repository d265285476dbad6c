"""Measures how long it takes to generate a report, and how large the page is.

    .venv/bin/python bench/report.py [--trials 10000] [--times 3] [RUN]

Generates the page of a synthetic run of 40 conditions, or of the run in a folder (then it also times reading the
folder), and of a run with 45 trials: the ratio of the two shows the cost of a trial on any machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.report import RunData, render
from headwind.run.journal import Run
from tests.golden.runs import RUNS, large

PER_BLOCK = 120  # trials in a block of each of the 40 conditions


def read(folder: str) -> RunData:
    """The run of a folder."""
    with Run.open(Path(folder)) as run:
        return RunData.of(run)


def timed(data: RunData, times: int) -> tuple[float, int]:
    """Median seconds to generate its page, and the page's size in bytes."""
    seconds, size = [], 0
    for _ in range(times):
        start = time.perf_counter()
        size = len(render(data, 0.0).encode())
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), size


def main() -> None:
    """Generate pages and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", help="run folder")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    start = time.perf_counter()
    data = read(options.run) if options.run else large(-(-options.trials // PER_BLOCK)).data("large")
    made_s = time.perf_counter() - start
    small = RUNS["small"]().data("small")
    timed(small, 1)  # compile the templates once
    print("| run | trials | generated in | page | trials per second |")
    print("| --- | --- | --- | --- | --- |")
    for name, each in (("small", small), (options.run or "large", data)):
        seconds, size = timed(each, options.times)
        count = len(each.results)
        print(f"| {name} | {count:,} | {seconds:.2f} s | {size / 1e6:.2f} MB | {count / seconds:,.0f} |")
    if options.run:
        print(f"\nreading the folder took {made_s:.2f} s")


if __name__ == "__main__":
    main()
