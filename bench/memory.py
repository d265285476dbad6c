"""Measures the memory that a long run needs: the lab during the run, and the command that writes the report.

    .venv/bin/python bench/memory.py [--trials 10000] [--requests 1000]

It makes a run folder with this number of trials over 40 networks, each with the samples of its requests. Then one
process takes in every result with its samples, as the lab does during a run, and judges the run after each 500. Another
one writes the page and all other files, as `lab.py report` does. Peak RSS is the kernel's figure for each process
(VmHWM).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.model import Repetition
from headwind.plan.scheduler import Scheduler
from headwind.report.files import write_files
from headwind.run.journal import Run
from tests.fake import ENVIRONMENT
from tests.golden.runs import large

PER_BLOCK = 120  # trials in a block of each of the 40 conditions
OFTEN = 500


def make(reports: Path, trials: int, requests: int) -> tuple[Path, int]:
    """Write the run folder. Returns it with the number of its trials."""
    chance, blocks = random.Random(1), -(-trials // PER_BLOCK)
    made = large(blocks)
    matrix = replace(made.matrix, repeat=Repetition(least=blocks, most=10 * blocks))
    times = [
        {name: [round(chance.random(), 6) for _ in range(requests)] for name in ("request_start_s", "request_took_s")}
        for _ in range(7)
    ]
    with Run.create(reports, matrix, ENVIRONMENT) as run, run.recording():
        for number, result in enumerate(made.results):
            columns = {**times[number % len(times)], "request_status": [200] * requests}
            run.append(replace(result, samples={"samples": columns}))
    return run.folder, len(made.results)


def take_in(run: Run) -> None:
    """Process results as the lab does during a run."""
    scheduler = Scheduler(run.matrix)
    for number, result in enumerate(run.each_result(samples=True), 1):
        scheduler.tell([result])
        if number % OFTEN == 0:
            scheduler.settled()


WORK: dict[str, Callable[[Run], object]] = {"nothing": id, "lab": take_in, "report": write_files}


def peak_mb(work: str, folder: Path) -> float:
    """Peak RSS of a process that does this work, in MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--work", work, "--folder", str(folder)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Generate a run, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        with Run.open(options.folder) as run:
            WORK[options.work](run)
        status = Path("/proc/self/status").read_text().splitlines()
        print(next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM")))
        return
    with tempfile.TemporaryDirectory() as reports:
        folder, trials = make(Path(reports), options.trials, options.requests)
        print("| process | trials | peak RSS |")
        print("| --- | --- | --- |")
        for work in WORK:
            print(f"| {work} | {trials:,} | {peak_mb(work, folder):.0f} MB |")


if __name__ == "__main__":
    main()
