"""Runs all tests in three stages, and adds them up: tests that wait or compute in parallel, timed ones, and some alone.

`python -m tests.rings [pytest arguments]`. Tests that measure times on real containers share the machine with one other
ring, that of browsers: both mostly wait, and a trial that the other one disturbed is repeated. Whole labs that need
room for several lanes, or whose every trial must be proven, have it for themselves. The other network tests (marked
with the name of their ring) mostly wait as well, and share the CPUs with the pure tests, which are niced: a lab counts
niced work as free CPU time. Each line of output begins with the ring's name. The last line is one summary of all in
pytest's own form; the exit status is that of the first ring that failed.
"""

from __future__ import annotations

import codecs
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import IO

import pytest

PURE = ("-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
ONE = ("--verbose",)  # one test at a time, a line each
# What pytest takes besides.
RINGS = {"pure": PURE, **dict.fromkeys(("images", "beside", "labs", "killed", "net", "pages", "alone"), ONE)}
STAGES = (("pure", "images", "beside", "labs", "killed"), ("net", "pages"), ("alone",))  # what runs at the same time
NICED = {"pure": ("nice", "-n", "5")}
KINDS = ("failed", "passed", "skipped", "xfailed", "xpassed", "error", "rerun")  # in the order of pytest's summary
WIDTH = 80
REST_S = 5.0  # for output after a ring's end: something that it left behind could keep its pipe open

Run = Callable[[Mapping[str, Sequence[str]]], list[int]]


def run(commands: Mapping[str, Sequence[str]]) -> list[int]:
    """Run named commands at the same time, and print each line with its command's name; their exit status.

    After an interrupt, which each command gets as well, a line that has no end yet is printed: it names the test that
    did not end.
    """
    printed = [Lines(name) for name in commands]

    def interrupted(*_: object) -> None:
        for lines in printed:
            lines.end()

    signal.signal(signal.SIGINT, interrupted)
    with ExitStack() as opened:
        processes = [
            opened.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0))
            for command in commands.values()
        ]
        readers = [
            threading.Thread(target=lines.copy, args=[process.stdout], daemon=True)
            for lines, process in zip(printed, processes, strict=True)
        ]
        for reader in readers:
            reader.start()
        codes = [process.wait() for process in processes]
        for reader in readers:
            reader.join(REST_S)
    return codes


class Lines:
    """Output that arrives in parts, printed in whole lines that begin with a name."""

    def __init__(self, name: str) -> None:
        self._name, self._begun = name, ""

    def copy(self, source: IO[bytes] | None) -> None:
        """Print all that comes from the source until its end."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while part := source.read(1 << 16) if source else b"":
            *lines, self._begun = (self._begun + decode(part)).split("\n")
            self._print(lines)
        self.end()

    def end(self) -> None:
        """Print the line that has begun."""
        begun, self._begun = self._begun, ""
        self._print([begun] if begun else [])

    def _print(self, lines: Sequence[str]) -> None:
        sys.stdout.write("".join(f"{self._name:6} | {line}\n" for line in lines))
        sys.stdout.flush()


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
    codes, start = list[int](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = {ring: Path(folder) / ring for ring in RINGS}
        for stage in STAGES:
            codes += run({
                ring: [*NICED.get(ring, ()), sys.executable, "-m", "pytest", "--ring", ring,
                       "--tally", str(files[ring]), *RINGS[ring], *arguments]
                for ring in stage
            })  # fmt: skip
            if pytest.ExitCode.INTERRUPTED in codes:
                break
        told = [json.loads(file.read_text()) for file in files.values() if file.exists()]
    sys.stdout.write(f"{summary(told, time.monotonic() - start)}\n")
    return status(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
