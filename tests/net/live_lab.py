"""Whole labs in processes of their own, which tests interrupt, break and resume."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwind.model import Outcome
from headwind.run.journal import Run
from headwind.testbed.containers import OWNER_LABEL
from headwind.testbed.docker import docker
from headwind.testbed.owner import owner_of
from tests.net.beside import attempts, exit_status

ROOT = Path(__file__).resolve().parent.parent.parent
# 200 responses of 612 bytes at 200 kbit/s: a trial of more than six seconds, so that a busy machine finds it running.
MATRIX = """
protocols: [h2]
lanes: 1
timeout: 30s
repeat: {trials}
profiles:
  slow: {{downlink: {{rate: 200kbit}}}}
workloads:
  some: {{requests: 200, connections: 2, streams: 10}}
"""
POLL_S = 0.2  # between two calls of docker, each of which takes CPU time from the lab
DEADLINE_S = 240  # for what is left of a run, on a busy machine


class LiveLab:
    """A lab that runs in a separate process."""

    def __init__(self, folder: Path, trials: int, *more: str, text: str = MATRIX) -> None:
        matrix = folder / "matrix.yaml"
        matrix.write_text(text.format(trials=trials))
        self.reports = folder / "reports"
        self.process = subprocess.Popen(
            [sys.executable, "-u", ROOT / "lab.py", "run", matrix, "-v", "--reports", self.reports, *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []
        self._owner = owner_of(self.process.pid)

    def wait_for(self, pattern: str) -> None:
        """Read what the lab says until a line matches."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line)
            if re.search(pattern, line):
                return
        pytest.fail("the lab ended before it said " + pattern + ":\n" + "".join(self.said))

    def wait_until_done(self, number: int) -> None:
        """So many trials are done, or more."""
        self.wait_for(r"\[ *\d+(?:/\d+)?\]")
        while int(re.findall(r"\[ *(\d+)(?:/\d+)?\]", self.said[-1])[-1]) < number:
            self.wait_for(r"\[ *\d+(?:/\d+)?\]")

    def wait_for_trial(self, number: int) -> None:
        """All before it are done, and the client runs it; the first one has number 0."""
        self.wait_until_done(number)
        self.wait_for_client()

    def wait_for_client(self) -> None:
        """The client runs a trial."""
        client = self.container("client")
        while "h2load" not in docker("top", client, "-eo", "pid,comm"):
            assert self.process.poll() is None, "".join(self.said)
            time.sleep(POLL_S)

    def container(self, service: str) -> str:
        """The id of one of this lab's containers."""
        return docker("ps", "-q", "--filter", f"label=com.docker.compose.service={service}",
                      *self.ours).strip()  # fmt: skip

    @property
    def ours(self) -> tuple[str, str]:
        """A filter for what belongs to this lab."""
        return "--filter", f"label={OWNER_LABEL}={self._owner}"

    def end(self) -> tuple[int, str]:
        """Wait for the end; the exit code and everything that was said."""
        rest, _ = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, "".join(self.said) + rest

    @property
    def run(self) -> Run:
        (folder,) = (path.parent for path in self.reports.glob("*/matrix.json"))
        return Run.open(folder)

    def outcomes(self) -> list[Outcome]:
        """Those of all attempts, once the lab is over."""
        return [outcome for _, _, outcome in self.attempts()]

    def attempts(self) -> list[tuple[str, int, Outcome]]:
        """Trial id, number, outcome of each, once the lab is over; what drew for a killed one ends later."""
        deadline_s = time.monotonic() + DEADLINE_S
        with self.run as run:
            while run.is_live and time.monotonic() < deadline_s:
                time.sleep(0.05)
            results = run.results()
        return [(result.trial.id, result.attempt, outcome) for result, outcome in attempts(results)]

    def due(self) -> int:
        """The exit code of a lab that went through."""
        with self.run as run:
            return exit_status(run)


@contextmanager
def live_lab(folder: Path, trials: int, *more: str, text: str = MATRIX) -> Iterator[LiveLab]:
    """A lab that is ended whatever the test does."""
    lab = LiveLab(folder, trials, *more, text=text)
    try:
        yield lab
    finally:
        if lab.process.poll() is None:
            lab.process.terminate()
            lab.process.communicate(timeout=DEADLINE_S)


def left_by(lab: LiveLab) -> str:
    """Containers and networks that carry the lab's owner label."""
    kept = lab.ours
    return docker("ps", "-aq", *kept) + docker("network", "ls", "-q", *kept)


def finished_by(lab: LiveLab) -> set[tuple[str, int]]:
    """The trials that need not run again, each with the number of its attempt."""
    return {(trial, attempt) for trial, attempt, outcome in lab.attempts() if outcome is Outcome.OK}
