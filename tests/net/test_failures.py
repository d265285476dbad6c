"""Killing things in the middle of a trial: nothing finished is lost, the broken trial is on record, nothing stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwind.model import Outcome
from headwind.run.journal import Run
from headwind.testbed.docker import docker
from headwind.testbed.testbed import OWNER_LABEL
from tests.net.beside import exit_status, outcomes

pytestmark = [
    pytest.mark.timeout(400, func_only=True),  # the first test may have to build the images
    pytest.mark.killed,
    pytest.mark.usefixtures("images"),
]

ROOT = Path(__file__).resolve().parent.parent.parent
# 200 responses of 612 bytes at 400 kbit/s: a trial of more than three seconds, whatever the machine.
MATRIX = """
protocols: [h2]
lanes: 1
timeout: 30s
repeat: {trials}
profiles:
  slow: {{downlink: {{rate: 400kbit}}}}
workloads:
  some: {{requests: 200, connections: 2, streams: 10}}
"""
DEADLINE_S = 240  # for what is left of a run, on a busy machine
SIGNAL = """
import os, pathlib, sys
for process in pathlib.Path('/proc').glob('[0-9]*'):
    try:
        if (process / 'comm').read_text().strip() == sys.argv[1]:
            os.kill(int(process.name), int(sys.argv[2]))
            print(process.name)
    except (FileNotFoundError, ProcessLookupError):
        pass
"""


def send_signal(container: str, name: str, number: int) -> str:
    """Signal every process of that name in a container; the pids that got it."""
    return docker("exec", container, "python3", "-c", SIGNAL, name, str(number), check=False).strip()


class LiveLab:
    """A lab that runs in a process of its own."""

    def __init__(self, folder: Path, trials: int, *more: str) -> None:
        matrix = folder / "matrix.yaml"
        matrix.write_text(MATRIX.format(trials=trials))
        self.reports = folder / "reports"
        self.process = subprocess.Popen(
            [sys.executable, "-u", ROOT / "lab.py", "run", matrix, "-v", "--reports", self.reports, *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []

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
        self.wait_for(r"\[ *\d+/\d+\]")
        while int(re.findall(r"\[ *(\d+)/\d+\]", self.said[-1])[-1]) < number:
            self.wait_for(r"\[ *\d+/\d+\]")

    def wait_for_trial(self, number: int) -> None:
        """All before it are done, and the client runs it; the first one has number 0."""
        self.wait_until_done(number)
        client = self.container("client")
        while "h2load" not in docker("top", client, "-eo", "pid,comm"):
            assert self.process.poll() is None, "".join(self.said)

    def container(self, service: str) -> str:
        """The id of one of this lab's containers."""
        return docker("ps", "-q", "--filter", f"label=com.docker.compose.service={service}",
                      *self.ours).strip()  # fmt: skip

    @property
    def ours(self) -> tuple[str, str]:
        """A filter for what belongs to this lab."""
        owner = f"{os.uname().nodename}:{self.process.pid}:"
        every = docker("ps", "-a", "--filter", f"label={OWNER_LABEL}", "--format", f'{{{{.Label "{OWNER_LABEL}"}}}}')
        owners = {line for line in every.split() if line.startswith(owner)}
        return "--filter", f"label={OWNER_LABEL}={owners.pop() if owners else owner}"

    def end(self) -> tuple[int, str]:
        """Wait for the end; the exit code and everything that was said."""
        rest, _ = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, "".join(self.said) + rest

    @property
    def run(self) -> Run:
        (folder,) = (path.parent for path in self.reports.glob("*/matrix.json"))
        return Run.open(folder)

    def outcomes(self) -> list[Outcome]:
        """Those of all attempts, once the lab is over; the process that drew for a killed one ends a bit later."""
        deadline_s = time.monotonic() + DEADLINE_S
        with self.run as run:
            while run.is_live and time.monotonic() < deadline_s:
                time.sleep(0.05)
            return outcomes(run)

    def due(self) -> int:
        """The exit code of a lab that went through."""
        with self.run as run:
            return exit_status(run)


@contextmanager
def live_lab(folder: Path, trials: int, *more: str) -> Iterator[LiveLab]:
    """A lab that is ended whatever the test does."""
    lab = LiveLab(folder, trials, *more)
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_finished_and_takes_everything_down(tmp_path: Path, number: int) -> None:
    with live_lab(tmp_path, 2) as lab:
        lab.wait_for_trial(1)
        lab.process.send_signal(number)
        code, said = lab.end()
    assert code == 130
    assert "--resume" in said
    assert lab.outcomes() == [Outcome.OK, Outcome.LAB_ERROR]
    assert left_by(lab) == ""


def test_after_a_kill_lab_down_removes_everything_and_resume_finishes_the_run(tmp_path: Path) -> None:
    with live_lab(tmp_path, 2) as lab:
        lab.wait_for_trial(1)
        assert left_by(lab) != "", "what a killed lab cannot take down, and any other that begins now sweeps away"
        lab.process.kill()
        lab.end()
    assert lab.outcomes() == [Outcome.OK, Outcome.LAB_ERROR]
    subprocess.run([sys.executable, ROOT / "lab.py", "down"], check=True, capture_output=True)
    assert left_by(lab) == ""

    with live_lab(tmp_path, 2, "--resume", str(lab.run.folder)) as second:
        code, said = second.end()
    assert code == second.due(), said
    assert second.outcomes() == [Outcome.OK, Outcome.LAB_ERROR, Outcome.OK]
    assert left_by(second) == ""


PARTS = (("server", "nginx"), ("client", "h2load"), ("server", ""), ("client", ""), ("impair", ""))


def test_each_part_that_is_killed_breaks_one_attempt_and_no_more(tmp_path: Path) -> None:
    """A process, or a whole container; one in each trial but the first."""
    with live_lab(tmp_path, 1 + len(PARTS)) as lab:
        for number, (service, process) in enumerate(PARTS, start=1):
            lab.wait_for_trial(number)
            container = lab.container(service)
            assert send_signal(container, process, signal.SIGKILL) if process else docker("kill", container)
        code, said = lab.end()
    assert code == lab.due(), said
    assert lab.outcomes() == [Outcome.OK, *[Outcome.LAB_ERROR, Outcome.OK] * len(PARTS)]
    assert left_by(lab) == ""


@pytest.mark.timeout(600, func_only=True)  # four testbeds, twice, and one
def test_with_four_lanes_nothing_finished_is_lost_and_nothing_stays(tmp_path: Path) -> None:
    """A part of one lane is killed, then the lab; the run goes on, is interrupted, and goes on to its end."""
    blocks, lanes = 14, ("--lanes", "4")
    with live_lab(tmp_path, blocks, *lanes) as lab:
        lab.wait_until_done(2)
        while len(servers := lab.container("server").split()) < 4:
            assert lab.process.poll() is None, "".join(lab.said)
        lab.wait_until_done(3)
        docker("kill", servers[-1])
        lab.wait_for("lab-error")
        lab.process.kill()
        lab.end()
    first = finished_by(lab)
    assert Outcome.LAB_ERROR in lab.outcomes(), "the lane's; of the others there are as many as ran at the lab's end"
    subprocess.run([sys.executable, ROOT / "lab.py", "down"], check=True, capture_output=True)
    assert left_by(lab) == ""

    with live_lab(tmp_path, blocks, "--resume", str(lab.run.folder), *lanes) as second:
        for _ in range(3):
            second.wait_for(r"\d\] .* ok ")
        second.process.send_signal(signal.SIGINT)
        code, said = second.end()
    assert code == 130, said
    assert left_by(second) == ""
    then = finished_by(second)
    assert first <= then
    assert len(then) > len(first)

    with live_lab(tmp_path, blocks, "--resume", str(lab.run.folder)) as third:
        code, said = third.end()
    assert code == third.due(), said
    assert then <= finished_by(third)
    assert len(finished_by(third)) == blocks
    assert len({trial for trial, _ in finished_by(third)}) == blocks, "none was run twice"
    assert left_by(third) == ""


def finished_by(lab: LiveLab) -> set[tuple[str, int]]:
    """The trials that need not run again, each with the number of its attempt."""
    with lab.run as run:
        tried = zip(run.results(), outcomes(run), strict=True)
        return {(result.trial.id, result.attempt) for result, outcome in tried if outcome is Outcome.OK}
