"""Compares one lane with several in one sitting: the time saved, and any change of the measured times.

    .venv/bin/python bench/lanes.py [--profiles loss,corrupt] [--blocks 9] [--lanes auto] [--reports DIR]

It makes two runs of the same blocks of the default matrix (or of some of its profiles), one after the other. It prints
the time from the first trial to the last, the trials lost to other lanes, and the number of lanes. For each condition
and protocol it compares the times of the second run with those of the first, which must be a tie.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.model import Outcome, Result
from headwind.observed import Observed, from_best, median, observed
from headwind.proof.processors import lacked_cpus
from headwind.report.verdicts import interval_text
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.verdicts.two_samples import gain, speeds

ROOT = Path(__file__).resolve().parent.parent
CONFIDENCE = 0.95
MATRIX = """\
protocols: [h1, h2, h3]
timeout: 60s
repeat: {blocks}
seed: {seed}
profiles:
{profiles}
workloads:
  article: {{requests: {requests}, connections: 100, streams: 100}}
"""
PROFILES = {
    "clean": "{}",
    "delay": "{downlink: {delay: 100ms, jitter: 10ms}}",
    "loss": "{downlink: {loss: 30%}}",
    "duplicate": "{downlink: {duplicate: 70%}}",
    "corrupt": "{downlink: {corrupt: 20%}}",
    "delay-loss": "{downlink: {delay: 100ms, jitter: 10ms, loss: 30%}}",
    "loss-duplicate": "{downlink: {loss: 30%, duplicate: 70%}}",
    "loss-corrupt": "{downlink: {loss: 30%, corrupt: 20%}}",
}


def measure(options: argparse.Namespace, lanes: str, seed: int) -> RunData:
    """Make one run on these lanes."""
    reports = Path(options.reports)
    reports.mkdir(parents=True, exist_ok=True)
    matrix = reports / "lanes.yaml"
    profiles = "\n".join(f"  {name}: {PROFILES[name]}" for name in options.profiles.split(","))
    matrix.write_text(MATRIX.format(blocks=options.blocks, seed=seed, profiles=profiles, requests=options.requests))
    before = set(reports.glob("*/"))
    command = [sys.executable, ROOT / "lab.py", "run", matrix, "--reports", reports, "--engine", options.engine]
    if (code := subprocess.run([*command, "--lanes", lanes], check=False).returncode) not in (0, 1):
        raise SystemExit(code)  # 1: a trial gave no data, and is counted
    (folder,) = set(reports.glob("*/")) - before
    with Run.open(folder) as run:
        return RunData.of(run)


def span_s(results: Sequence[Result]) -> float:
    """Seconds from the start of the first trial to the end of the last."""
    began = min(result.started_at for result in results)
    return max(result.started_at + sum(result.phases_s.values()) for result in results) - began


def describe(name: str, data: RunData) -> None:
    """Print the duration of a run, and its losses."""
    results = data.results
    contended = sum(map(lacked_cpus, results))
    lost = sum(result.outcome in (Outcome.INVALID, Outcome.LAB_ERROR) for result in results)
    frames = sum(
        check.quantity == "unexplained_loss_ratio" and not check.passed
        for result in results
        for check in result.proof.checks
    )
    lanes = {result.place.lane for result in results}
    print(
        f"{name}: {span_s(results):.0f} s, {len(results)} trials on {len(lanes)} lanes, {contended} with CPU "
        f"contention ({contended / len(results):.1%}), {lost} without data, {frames} with frames lost"
    )


def compare(one: RunData, many: RunData) -> None:
    """Print the times of many lanes against those of one, for each condition and protocol."""
    print("\n| condition | protocol | one lane | many | ratio |\n| --- | --- | --- | --- | --- |")
    ties = cells = 0
    for condition in one.matrix.conditions:
        for arm in one.matrix.arms_in(condition):
            first, second = (sample(data, condition.id, str(arm)) for data in (one, many))
            if not first or not second:
                continue
            interval, _ = gain(speeds(first), speeds(second), CONFIDENCE)
            cells, ties = cells + 1, ties + (interval.low <= 0 <= interval.high)
            better = condition.workload.primary().better
            middles = " | ".join(str(median(from_best(values, better))) for values in (first, second))
            print(f"| {condition.id} | {arm} | {middles} | {interval_text(interval)} |")
    print(f"\n{ties} of {cells} cells show no difference between one lane and many")


def sample(data: RunData, condition: str, arm: str) -> list[Observed]:
    """The primary metric of every trial of one cell that gave data."""
    results = [r for r in data.latest if r.trial.block.condition.id == condition and str(r.trial.arm) == arm]
    values = (observed(result, result.trial.block.condition.workload.primary()) for result in results)
    return [value for value in values if value]


def main() -> None:
    """Measure twice, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", default=",".join(PROFILES))
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--lanes", default="auto")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--reports", default=str(ROOT / "reports" / ".lanes"))
    options = parser.parse_args()
    one = measure(options, "1", seed=1)
    many = measure(options, options.lanes, seed=1)
    describe("one lane", one)
    describe(f"--lanes {options.lanes}", many)
    print(f"{span_s(many.results) / span_s(one.results):.2f} x the time")
    compare(one, many)


if __name__ == "__main__":
    main()
