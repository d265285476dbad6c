"""A/A of the lab itself: do two revisions find the same ratios?

    .venv/bin/python bench/same.py --before OLD/reports/<run-id>... --after reports/<run-id>... [--metric total_s]

Run one matrix in both checkouts in turn, several times, with `lanes: 1`: how many blocks run in parallel is part of a
revision, and parallel blocks compete for CPUs. Only `trials.csv` is read, so runs of any revision compare.

It prints for each condition and pair of arms the blocks, the median ratio within blocks before and after, and by how
much the ratios shifted: the Hodges-Lehmann estimate and its 95 % interval for large samples (Hollander, Wolfe and
Chicken, "Nonparametric Statistical Methods", 2014, 4.2 and 4.3). The result is `tie` if the interval lies within the
margin of 5 %, `shift` if it excludes 1, else `unknown`.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

MARGIN = 0.05
Z = 1.96  # of the normal distribution, for 95 % in the middle
Key = tuple[str, str, str]  # condition, candidate, baseline


def ratios(folders: Iterable[Path], metric: str) -> dict[Key, list[float]]:
    """ln of the baseline's value over the candidate's, in each block in which both are `ok`."""
    found: dict[Key, list[float]] = defaultdict(list)
    for folder in folders:
        blocks: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        with (folder / "trials.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                block = f"{row['profile']}/{row['workload']}", row["block"]
                blocks[block].pop(row["arm"], None)  # of an earlier attempt
                if row["outcome"] == "ok" and row[metric]:
                    blocks[block][row["arm"]] = float(row[metric])
        for (condition, _), values in blocks.items():
            for base, new in combinations(sorted(values), 2):
                found[condition, new, base].append(math.log(values[base] / values[new]))
    return found


def shift(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Hodges-Lehmann estimate of the shift from one sample to another, and the ends of its interval.

    The interval is infinite for fewer than three blocks.
    """
    differences = np.sort(np.subtract.outer(np.array(after), np.array(before)), axis=None)
    n, m = len(before), len(after)
    rank = math.floor(n * m / 2 - Z * math.sqrt(n * m * (n + m + 1) / 12))
    low, high = (differences[rank], differences[-1 - rank]) if rank >= 0 else (-math.inf, math.inf)
    return float(np.median(differences)), float(low), float(high)


def table(before: Mapping[Key, Sequence[float]], after: Mapping[Key, Sequence[float]]) -> list[str]:
    """The lines of the table, in Markdown."""
    lines = ["| condition | comparison | blocks | ratio before, after | shift | |", f"|{' --- |' * 6}"]
    for key in sorted(before.keys() & after.keys()):
        condition, new, base = key
        middles = ", ".join(f"{math.exp(np.median(each[key])):.3f}x" for each in (before, after))
        middle, low, high = shift(before[key], after[key])
        is_tie = -math.log1p(MARGIN) < low and high < math.log1p(MARGIN)
        result = "tie" if is_tie else "shift" if low > 0 or high < 0 else "unknown"
        moved = f"{math.exp(middle):.3f}x [{math.exp(low):.3f}, {math.exp(high):.3f}]"
        counts = f"{len(before[key])}, {len(after[key])}"
        lines.append(f"| {condition} | {new} against {base} | {counts} | {middles} | {moved} | {result} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, nargs="+", required=True)
    parser.add_argument("--after", type=Path, nargs="+", required=True)
    parser.add_argument("--metric", default="total_s")
    options = parser.parse_args(arguments)
    print("\n".join(table(ratios(options.before, options.metric), ratios(options.after, options.metric))))


if __name__ == "__main__":
    main()
