"""Counts what recorded runs had settled after a number of minutes, from the trials that had ended by then.

    .venv/bin/python bench/answered.py reports/<run-id>... [--minutes 5,10,15] [--within 1.15]

The clock starts with a run's first trial. For each run and time it prints: whole blocks, attempts, sure comparisons of
protocols, and those that are sure or that a judged metric bounds within the given ratio. With two runs, made in turn on
one machine, it compares two revisions of the lab.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.model import Result
from headwind.report.certainty import Certainty, certainty_of, known_of, most_apart
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Line


def after(data: RunData, limit_s: float) -> RunData:
    """The run as it was `limit_s` seconds after its first trial began."""
    assert data.counted is not None, "the run was read from a folder"
    begin = min((result.started_at for result in data.results), default=0.0)
    ended = tuple(kept for kept in data.counted if _end(kept.result) - begin <= limit_s)
    return replace(data, results=tuple(kept.result for kept in ended), judge=None, counted=ended)


def answered(data: RunData, within: float) -> dict[str, int]:
    """Whole blocks, attempts, comparisons, those sure by a judged metric, and those sure or bounded within a ratio."""
    judgement = data.judgement
    known = [known_of(line) for line in judgement.compared]
    sure = [
        each for each in known
        if any(certainty_of(finding) is Certainty.SURE for finding in each.line.findings.values())
    ]  # fmt: skip
    bounded = [
        each for each in known
        if each not in sure and most_apart(narrowest(each.line).comparison.interval) <= within
    ]  # fmt: skip
    trials = Counter(result.trial.block.id for result in data.latest)
    arms = {result.trial.block.id: len(result.trial.block.order) for result in data.latest}
    return {
        "blocks": sum(count == arms[block] for block, count in trials.items()),
        "attempts": len(data.results),
        "comparisons": len(known),
        "sure": len(sure),
        "sure or bounded": len(sure) + len(bounded),
    }


def narrowest(line: Line) -> Finding:
    """The finding by the judged metric that bounds the difference best; that by the primary one if equal."""
    return min(line.findings.values(), key=lambda finding: most_apart(finding.comparison.interval))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the runs, judge them and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--minutes", default="5,10,15")
    parser.add_argument("--within", type=float, default=1.15)
    options = parser.parse_args(arguments)
    print(f"| run | minutes | blocks | attempts | comparisons | sure | sure or within {options.within:g}x |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for folder in options.runs:
        with Run.open(folder) as run:
            data = RunData.of(run)
        for minutes in map(float, options.minutes.split(",")):
            figures = answered(after(data, 60 * minutes), options.within)
            print(f"| {data.id} | {minutes:g} | {' | '.join(map(str, figures.values()))} |")


def _end(result: Result) -> float:
    """End of a trial, in seconds since the epoch."""
    return result.started_at + sum(result.phases_s.values())


if __name__ == "__main__":
    main()
