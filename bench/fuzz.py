"""Feeds mutations of right inputs to everything that reads what others wrote, and prints a table of what came of them.

    .venv/bin/python bench/fuzz.py [--inputs 1000000] [--seed 1] [--only NAME] [--write docs/trust.md]

No input may cause another exception than those that the parser documents, take 10 s of CPU time or 500 MB,
change a file outside of the input's own folder, start a program or open a connection: the script prints the input that
did, and ends with 1. Coverage is the share of the lines in functions of the parser's files that the first 300 inputs
ran, and every 200th after them.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faults.document import write
from tests.fuzz.guard import MOST_BYTES, Guard, Violation, peak_bytes
from tests.fuzz.targets import ROOT, TARGETS, Target

FIRST, TRACED = 300, 200  # inputs at the beginning that are traced, and after them one in TRACED
ONLY_RUN_BY_OTHERS = ("main", "<module>")


@dataclass(slots=True)
class Outcome:
    """Counts of a target's inputs, and its faults."""

    target: Target
    inputs: int = 0
    accepted: int = 0
    slowest_s: float = 0.0
    took_s: float = 0.0
    lines: set[tuple[str, int]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    @property
    def coverage(self) -> float:
        """The share of the lines of functions that ran."""
        all_lines = set(lines_of(ROOT / self.target.code))
        return len(self.lines & all_lines) / len(all_lines)


def fuzz(target: Target, inputs: int, seed: int, guard: Guard, most_faults: int = 5) -> Outcome:
    """Give a number of inputs to a parser; after `most_faults` faults it is left alone."""
    outcome, start = Outcome(target), time.process_time()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="headwind-fuzz-") as name:
        folder = Path(name)
        for number in range(inputs):
            data = target.make(Random(f"{seed} {target.name} {number}"))
            begun = time.process_time()
            try:
                outcome.accepted += _read(
                    target, data, folder, guard, None if number > FIRST and number % TRACED else outcome.lines
                )
            except (Exception, Violation):  # noqa: BLE001 - any is a fault
                outcome.faults.append(f"{target.name}, seed {seed}, input {number}: {data[:300]!r}\n"
                                      f"{traceback.format_exc(limit=-8)}")  # fmt: skip
            outcome.slowest_s = max(outcome.slowest_s, time.process_time() - begun)
            for left in folder.iterdir():
                if left.is_dir():
                    shutil.rmtree(left)
            outcome.inputs += 1
            if len(outcome.faults) == most_faults:
                break
    outcome.took_s = time.process_time() - start
    return outcome


def _read(target: Target, data: bytes, folder: Path, guard: Guard, lines: set[tuple[str, int]] | None) -> bool:
    """Parse one input, under guard; with `lines`, these get the lines that ran."""
    code = str(ROOT / target.code)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(code):
            return None
        if event == "line" and lines is not None:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    with redirect_stderr(StringIO()), guard.watching(folder):  # agents print tracebacks there, for their log
        if lines is None:
            return target.read(data, folder)
        sys.settrace(trace)
        try:
            return target.read(data, folder)
        finally:
            sys.settrace(None)


def lines_of(path: Path) -> Iterator[tuple[str, int]]:
    """The lines in functions of a file or of all files in a folder, without those of whole programs."""
    for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
        for code in _functions(compile(file.read_text(), str(file), "exec")):
            yield from ((str(file), line) for _, _, line in code.co_lines() if line and line != code.co_firstlineno)


def _functions(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_name not in ONLY_RUN_BY_OTHERS and inner.co_flags & 2:  # CO_NEWLOCALS: no class body
                yield inner
            yield from _functions(inner)


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The outcomes in Markdown."""
    yield "| parser | inputs | accepted | faults | lines run | slowest | per s |"
    yield "|---|---|---|---|---|---|---|"
    for each in outcomes:
        rate = each.inputs / each.took_s if each.took_s else 0
        yield (
            f"| {each.target.name} | {each.inputs:,} | {each.accepted:,} | {len(each.faults)} | "
            f"{each.coverage:.0%} | {each.slowest_s:.2f} s | {rate:,.0f} |"
        )
    inputs, accepted = sum(each.inputs for each in outcomes), sum(each.accepted for each in outcomes)
    yield f"| all | {inputs:,} | {accepted:,} | {sum(len(each.faults) for each in outcomes)} | | | |"


def main() -> int:
    """Fuzz all parsers; 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path, help="put the table into this document as well")
    given = parser.parse_args()
    guard, outcomes = Guard(), []
    for target in TARGETS:
        if given.only in target.name:
            outcome = fuzz(target, max(1, round(given.inputs * target.share)), given.seed, guard)
            outcomes.append(outcome)
            print(f"{target.name}: {outcome.inputs:,} inputs in {outcome.took_s:.0f} s", *outcome.faults,
                  sep="\n", file=sys.stderr, flush=True)  # fmt: skip
    lines = [*table(outcomes), "", f"Most memory: {peak_bytes() / 1e6:.0f} MB."]
    print(*lines, sep="\n")
    if given.write:
        write(given.write, "fuzz", lines)
    return int(any(each.faults for each in outcomes) or peak_bytes() > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
