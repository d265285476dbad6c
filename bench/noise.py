"""Measures the noise of this machine, and the differences that the lab detects on it; Markdown for docs/noise.md.

    .venv/bin/python bench/noise.py repeat [--runs 20] [--profile delay] [--budget 3min] [--reports DIR]
    .venv/bin/python bench/noise.py pilot RUN
    .venv/bin/python bench/noise.py blocks [--repetitions 500] [--margin 0.05]

`repeat` makes whole runs of a small matrix, each with another seed: HTTP/2 against itself, which must be a tie, and
against itself over a network a tenth slower, which must be detected. `pilot` reads the folder of a run of any matrix,
and prints the spread of the blocks of each comparison and the blocks to each verdict. `blocks` simulates comparisons
with a known ratio and spread, and prints how many blocks make them sure.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.engines import AUTO, CHOICES
from headwind.metric import Metric
from headwind.model import Matrix, Result
from headwind.report.verdicts import interval_text
from headwind.run.data import RunData, latest_of
from headwind.run.journal import Run
from headwind.verdicts.findings import Rows, columns_of, is_decided, is_found, judged_metrics, rows_of, rule_of
from headwind.verdicts.judgement import Line
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.pending import joining_bar
from headwind.verdicts.verdict import Comparison, Rule, compare, follow

ROOT = Path(__file__).resolve().parent.parent
MATRIX = """\
title: A/A and positive control, run {seed}
protocols: [h2]
lanes: 1
timeout: 60s
repeat: {{min: 9, max: {most}, budget: {budget}}}
seed: {seed}
profiles:
  {profile}
workloads:
  article: {{requests: 1000, connections: 100, streams: 100}}
selfcheck: {{protocol: h2, again: [{name}], slower: [{slower}]}}
"""
RATIOS, SPREADS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0), (0.05, 0.1, 0.2, 0.5, 1.0)  # of simulated comparisons
CELLS = 72  # comparisons of the default matrix by all judged metrics, among which e-BH corrects
MOST = 300  # blocks: `max` of the default matrix
PROFILES = {"clean": "clean: {}", "delay": "delay: {downlink: {delay: 100ms, jitter: 10ms}}"}


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    for row in (heading, ["---"] * len(heading), *rows):
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def repeat(options: argparse.Namespace) -> None:
    """Make the runs, one after another, and print their findings."""
    reports = Path(options.reports)
    reports.mkdir(parents=True, exist_ok=True)
    folders = []
    for seed in range(1, options.runs + 1):
        matrix = reports / "noise.yaml"
        matrix.write_text(
            MATRIX.format(
                seed=seed, budget=options.budget, most=options.most, profile=PROFILES[options.profile],
                name=options.profile, slower="delay" if options.profile == "delay" else "",
            )
        )  # fmt: skip
        before = set(reports.glob("*/"))
        command = [sys.executable, ROOT / "lab.py", "run", matrix, "--reports", reports, "--engine", options.engine]
        if subprocess.run(command, check=False).returncode not in (0, 1):  # 1: a trial gave no data, and is counted
            break
        folders += sorted(set(reports.glob("*/")) - before)
    show_repeats(folders)


def show_repeats(folders: Sequence[Path]) -> None:
    """Print a line for each run and check, and the tally."""
    rows, tally = [], Counter[str]()
    for folder in folders:
        if not (folder / "matrix.json").exists():
            continue
        with Run.open(folder) as run:
            matrix, results = run.matrix, latest_of(run.results())
        for condition in matrix.conditions:
            data = rows_of(results).get(condition.id, {})
            for pair in (pair for pair in pairs_of(matrix, condition) if pair.is_check):
                metric = condition.workload.primary()
                comparison, closed = judged(matrix, data, pair, metric), closed_at(matrix, data, pair, metric)
                word = comparison.verdict.value
                if pair.is_control:
                    word = "detected" if is_found(pair, comparison) else "not detected"
                tally[f"{condition.id}: {pair}: {word}"] += 1
                ratio, n = interval_text(comparison.interval), comparison.interval.n
                rows.append([matrix.seed, condition.id, pair, word, ratio, n, closed or "-"])
    print()
    table(("seed", "condition", "comparison", "verdict", "ratio", "blocks run", "blocks to the verdict"), rows)
    print()
    table(("finding", "runs"), sorted(tally.items()))


def judged(matrix: Matrix, rows: Rows, pair: Pair, metric: Metric) -> Comparison:
    """Comparison of all blocks together."""
    columns = columns_of(rows, pair, metric)
    return compare(columns.base, columns.new, rule_of(matrix, complete=True), exhausted=True, better=metric.better)


def closed_at(matrix: Matrix, rows: Rows, pair: Pair, metric: Metric) -> int | None:
    """Number of blocks after which the comparison was first decided (a control: first detected); None: never."""
    columns, rule = columns_of(rows, pair, metric), rule_of(matrix, complete=False)
    for n in range(1, len(columns.blocks) + 1):
        if is_decided(pair, compare(columns.base[:n], columns.new[:n], rule, exhausted=False, better=metric.better)):
            return n
    return None


def pilot(options: argparse.Namespace) -> None:
    """Print the spread of the paired ln ratios and the blocks per verdict of one run."""
    with Run.open(Path(options.run)) as run:
        data = RunData.of(run)
    matrix, results, lines = data.matrix, data.latest, []
    metrics = judged_metrics(matrix)
    for condition in matrix.conditions:
        rows = rows_of(results).get(condition.id, {})
        for pair in pairs_of(matrix, condition):
            cells = [cell for metric in metrics for cell in describe(matrix, rows, pair, metric)]
            lines.append([condition.id, pair, len(rows), *cells, f"{block_s(results, condition.id):.1f} s"])
    headings = [f"{metric.label}: {what}" for metric in metrics for what in ("ratio", "spread", "verdict", "took")]
    table(("condition", "comparison", "blocks", *headings, "one block"), lines)
    print(f"\n{tally(data.judgement.compared)}")


def tally(lines: Sequence[Line]) -> str:
    """Text with the numbers of comparisons of protocols that are decided, and settled, in at least one metric."""
    findings = [list(line.findings.values()) for line in lines]
    counts = {
        "have a verdict or a slight difference": [
            any(f.is_decided or f.verdict.favours for f in each) for each in findings
        ],
        "are decided": [any(f.is_decided for f in each) for each in findings],
        "are settled": [any(f.is_decided and f.survives for f in each) for each in findings],
    }
    text = ", ".join(f"{sum(flags)} {what}" for what, flags in counts.items())
    return f"Of {len(lines)} comparisons of protocols, in at least one metric, {text}."


def describe(matrix: Matrix, rows: Rows, pair: Pair, metric: Metric) -> list[str]:
    """Ratio, spread, verdict, and blocks to the verdict. Spread: standard deviation of ln ratios, from their quartiles.

    For normal noise it is the interquartile range divided by 1.349; outliers do not move it. A block in which one arm
    did not finish lies at the open end of its bounds; if a quartile is open, so is the spread.
    """
    comparison, columns = judged(matrix, rows, pair, metric), columns_of(rows, pair, metric)
    took = closed_at(matrix, rows, pair, metric)
    lows, highs = (sorted(side) for side in columns.bounds)
    spread = "-"
    if len(lows) >= 4:
        low, high = lows[len(lows) // 4], highs[-1 - len(highs) // 4]
        spread = f"{math.expm1((high - low) / 1.349):.1%}" if math.isfinite(high - low) else "open"
    return [interval_text(comparison.interval), spread, comparison.verdict.value, str(took or "-")]


def blocks(options: argparse.Namespace) -> None:
    """Print the blocks after which four in five simulated comparisons are sure, by true ratio and spread of blocks."""
    count, rule = options.repetitions, Rule(margin_ratio=options.margin, anytime=True)
    rows = [
        [f"{spread:.0%}", *(needed(math.log(ratio), math.log1p(spread), count, rule) for ratio in RATIOS)]
        for spread in SPREADS
    ]
    table(("spread", *(f"{ratio:.2f}x" for ratio in RATIOS)), rows)


def needed(log_ratio: float, spread: float, repetitions: int, rule: Rule) -> str:
    """Blocks if half of the comparisons of the default matrix differ, and in brackets if it is the only one.

    Normal noise of standard deviation `spread` in ln ratios.
    """
    rng = np.random.default_rng(1)
    bars = [joining_bar(CELLS, 0, joining) for joining in (CELLS // 2, 1)]
    firsts: list[list[float]] = [[], []]
    for noise in rng.normal(log_ratio, spread, (repetitions, MOST)):
        finished = [True] * MOST
        claims = follow(noise.tolist(), noise.tolist(), finished, finished, rule, False)[1]
        for found, bar in zip(firsts, bars, strict=True):
            sure = (n for n, claim in enumerate(claims, 1) if claim.log_e_value >= bar)
            found.append(next(sure, math.inf))
    few, many = (sorted(each)[math.ceil(0.8 * repetitions) - 1] for each in firsts)
    few_text, many_text = (f"{each:.0f}" if math.isfinite(each) else f"over {MOST}" for each in (few, many))
    return few_text if few_text == many_text else f"{few_text} ({many_text})"


def block_s(results: Sequence[Result], condition: str) -> float:
    """Median wall time of a block's trials together, in seconds."""
    walls: dict[int, float] = {}
    for result in results:
        if result.trial.block.condition.id == condition:
            index = result.trial.block.index
            walls[index] = walls.get(index, 0.0) + sum(result.phases_s.values())
    return statistics.median(walls.values()) if walls else 0.0


def main() -> None:
    """Run the chosen subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    again = commands.add_parser("repeat")
    again.add_argument("--runs", type=int, default=20)
    again.add_argument("--profile", choices=PROFILES, default="delay")
    again.add_argument("--most", type=int, default=60, help="maximum number of blocks")
    again.add_argument("--budget", default="3min", help="time budget of each run")
    again.add_argument("--engine", choices=CHOICES, default=AUTO)
    again.add_argument("--reports", default=str(ROOT / "reports" / ".noise"))
    again.set_defaults(function=repeat)
    shown = commands.add_parser("show", help="print the tables of existing runs")
    shown.add_argument("folders", nargs="+", type=Path)
    shown.set_defaults(function=lambda options: show_repeats(options.folders))
    one = commands.add_parser("pilot")
    one.add_argument("run")
    one.set_defaults(function=pilot)
    simulated = commands.add_parser("blocks")
    simulated.add_argument("--repetitions", type=int, default=500)
    simulated.add_argument("--margin", type=float, default=0.05, help="equivalence margin, as a ratio")
    simulated.set_defaults(function=blocks)
    options = parser.parse_args()
    function: Callable[[argparse.Namespace], None] = options.function
    function(options)


if __name__ == "__main__":
    main()
