"""Runs all tests in three stages, and adds them up: tests that wait or compute in parallel, timed ones, and some alone.

`python -m tests.rings [pytest arguments]`. Tests that measure times on real containers share the machine with one other
ring, that of browsers: both mostly wait, and a trial that the other one disturbed is repeated. Whole labs that need
room for several lanes, or whose every trial must be proven, have it for themselves. The other network tests (marked
with the name of their ring) mostly wait as well, and share the CPUs with the pure tests, which are niced: a lab counts
niced work as free CPU time. The last line is one summary of all in pytest's own form; the exit status is that of the
first ring that failed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

PURE = ("-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
# What pytest takes besides.
RINGS = {"pure": PURE, "images": (), "beside": (), "labs": (), "killed": (), "net": (), "pages": (), "alone": ()}
STAGES = (("pure", "images", "beside", "labs", "killed"), ("net", "pages"), ("alone",))  # what runs at the same time
NICED = {"pure": ("nice", "-n", "5")}
KINDS = ("failed", "passed", "skipped", "xfailed", "xpassed", "error", "rerun")  # in the order of pytest's summary
WIDTH = 80

Run = Callable[[Sequence[Sequence[str]]], list[int]]


def run(commands: Sequence[Sequence[str]]) -> list[int]:
    """Run commands at the same time; their status. What all but the first say comes when all have ended."""
    with ExitStack() as opened:
        later = [opened.enter_context(tempfile.TemporaryFile()) for _ in commands[1:]]
        processes = [
            opened.enter_context(subprocess.Popen(command, stdout=out, stderr=out))
            for command, out in zip(commands, (None, *later), strict=True)
        ]
        codes = [process.wait() for process in processes]
        for out in later:
            out.seek(0)
            sys.stdout.write(out.read().decode(errors="replace"))
            sys.stdout.flush()
    return codes


def summary(tallies: Sequence[Mapping[str, int]], seconds: float) -> str:
    """`==== 1 failed, 3000 passed in 750.12s (0:12:30) ====`, as pytest would have said of all together."""
    total = sum(map(Counter, tallies), Counter[str]())
    plural = "s" if total["error"] > 1 else ""
    said = ", ".join(f"{total[kind]} {kind}{plural * (kind == 'error')}" for kind in KINDS if total[kind])
    line = f" {said or 'no tests ran'} in {seconds:.2f}s ({timedelta(seconds=int(seconds))}) "
    return line.center(WIDTH, "=")


def status(codes: Sequence[int]) -> int:
    """Of all together: that of the first that failed; a ring in which nothing was asked for did not."""
    ran = [code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    return next((code for code in ran if code), 0) if ran else int(pytest.ExitCode.NO_TESTS_COLLECTED)


def main(arguments: Sequence[str], run: Run = run) -> int:
    """Run all; after an interrupt the next stage does not begin."""
    signal.signal(signal.SIGINT, lambda *_: None)  # each pytest that runs has it as well, and cleans up
    codes, start = list[int](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = {ring: Path(folder) / ring for ring in RINGS}
        for stage in STAGES:
            codes += run([
                [*NICED.get(ring, ()), sys.executable, "-m", "pytest", "--ring", ring, "--tally", str(files[ring]),
                 *RINGS[ring], *arguments]
                for ring in stage
            ])  # fmt: skip
            if pytest.ExitCode.INTERRUPTED in codes:
                break
        told = [json.loads(file.read_text()) for file in files.values() if file.exists()]
    sys.stdout.write(f"{summary(told, time.monotonic() - start)}\n")
    return status(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
