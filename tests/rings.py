"""Runs all tests: the pure rings side by side, then the real network with nothing beside it, and adds them up.

`python -m tests.rings [what pytest takes]`. What runs on real containers measures times and has the machine for itself.
It ends with one summary of both in pytest's own form, and with the status of the first that failed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

RINGS = {"pure": ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal"), "net": ()}
KINDS = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")  # in the order of pytest's summary
WIDTH = 80


def run(ring: str, arguments: Sequence[str], tally: Path) -> int:
    """One pytest; its status."""
    command = [sys.executable, "-m", "pytest", "--ring", ring, "--tally", str(tally), *RINGS[ring], *arguments]
    with subprocess.Popen(command) as process:
        return process.wait()


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


def main(arguments: Sequence[str]) -> int:
    """Run both; after an interrupt the second does not begin."""
    signal.signal(signal.SIGINT, lambda *_: None)  # the pytest that runs has it as well, and cleans up
    codes, start = list[int](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = {ring: Path(folder) / ring for ring in RINGS}
        for ring, file in files.items():
            codes.append(run(ring, arguments, file))
            if codes[-1] == pytest.ExitCode.INTERRUPTED:
                break
        told = [json.loads(file.read_text()) for file in files.values() if file.exists()]
    sys.stdout.write(f"{summary(told, time.monotonic() - start)}\n")
    return status(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
