"""Measures the cost of one trial beyond the client's run time: median and p95, in total and by phase.

    .venv/bin/python bench/overhead.py [--trials 20] [--engine auto]

Each profile is run with and without the probe train, in turn. `beyond client` is the wall time of the whole trial,
including its two commits to the run folder, less the client's wall time from spawn to exit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.matrix.reader import load_matrix
from headwind.model import Block, Matrix, Result
from headwind.plan.block_order import plan_blocks
from headwind.run.journal import Run
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.images import ensure_images, needed
from headwind.testbed.testbed import Testbed
from headwind.trial.trial import run_trial

ROOT = Path(__file__).resolve().parent.parent
PHASES = ("reset", "apply", "probe", "count", "settle", "verify", "compare", "record")


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(path: paths.Path, run: Run, block: Block, probe: bool, rules: TrialRules, attempt: int) -> Result:
    """Run one trial of the block's first protocol and record it; phases_s gains `record` and `beyond_client`."""
    trial = block.trials()[0]
    start = time.perf_counter()
    run.begin(trial, attempt)
    begun = time.perf_counter()
    result = run_trial(path, trial, rules, attempt, probe=probe)
    ended = time.perf_counter()
    run.append(result)
    phases = dict(result.phases_s)
    phases["record"] = begun - start + time.perf_counter() - ended
    phases["beyond_client"] = time.perf_counter() - start - float(result.samples["wall_s"])
    phases["client"] = phases["client"] - float(result.samples["wall_s"])
    return Result(trial, result.outcome, phases_s=phases)


def print_table(title: str, results: Sequence[Result]) -> None:
    """Print median and p95 of the whole and of each phase, in milliseconds."""
    whole = [result.phases_s["beyond_client"] * 1e3 for result in results]
    print(f"\n{title}: {len(results)} trials, beyond client {statistics.median(whole):.0f} ms median, "
          f"{percentile(whole, 0.95):.0f} ms p95")  # fmt: skip
    for name in (*PHASES, "client"):
        values = [result.phases_s.get(name, 0.0) * 1e3 for result in results]
        print(f"  {name:<8} {statistics.median(values):7.1f} ms  p95 {percentile(values, 0.95):7.1f} ms")


def main() -> None:
    """Measure the clean and the delay profile of the default matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    matrix: Matrix = load_matrix(ROOT / "matrix.yaml")
    chosen = {block.condition.profile.name: block for block in plan_blocks(matrix)}
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        with Testbed.up(BedSpec(ensure_images(print, needed()).tags, matrix.congestion, options.engine)) as testbed:
            run = Run.create(logs, matrix, {"engine": testbed.engine.name})
            kept: dict[tuple[str, bool], list[Result]] = {}
            for attempt in range(options.trials):
                for name in ("clean", "delay"):
                    for probe in (True, False):
                        result = measure(testbed.path(), run, chosen[name], probe, matrix.rules, attempt * 2 + probe)
                        kept.setdefault((name, probe), []).append(result)
    for (name, probe), results in kept.items():
        print_table(f"{name}, {'with' if probe else 'without'} the probe train", results)


if __name__ == "__main__":
    main()
