"""What does a run know after so many minutes? Judges the trials of recorded runs that had ended by then.

    .venv/bin/python bench/answered.py reports/<run-id>... [--minutes 5,10,15] [--within 1.15]

The clock begins with a run's first trial. For each run and time: whole blocks, attempts, comparisons of protocols that
are sure, and those that are sure or that a judged metric bounds within the ratio given. With two runs, made in turn on
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
from headwind.report.certainty import Certainty, known_of, most_apart
from headwind.run.data import RunData
from headwind.run.journal import Run


def after(data: RunData, limit_s: float) -> RunData:
    """The run as it was so many seconds after its first trial began."""
    assert data.counted is not None, "as it was read from a folder"
    begin = min((result.started_at for result in data.results), default=0.0)
    ended = tuple(seen for seen in data.counted if _end(seen.result) - begin <= limit_s)
    return replace(data, results=tuple(seen.result for seen in ended), judge=None, counted=ended)


def answered(data: RunData, within: float) -> dict[str, int]:
    """Whole blocks, attempts, comparisons, those that are sure, and those that are sure or bounded within a ratio."""
    judgement = data.judgement
    known = [known_of(line, judgement.rule) for line in judgement.compared]
    sure = [each for each in known if each.certainty is Certainty.SURE]
    bounded = [
        each for each in known
        if each not in sure and most_apart(each.narrowest.comparison.interval) <= within
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, judge and print."""
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
    """When a trial ended, in seconds since the epoch."""
    return result.started_at + sum(result.phases_s.values())


if __name__ == "__main__":
    main()
