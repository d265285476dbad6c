"""Killing things in the middle of a trial: nothing finished is lost, the broken trial is on record, nothing stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwind.model import Outcome
from headwind.testbed.docker import docker
from tests.net.host_state import changes, host_state, marks_of
from tests.net.live_lab import MATRIX, POLL_S, ROOT, finished_by, left_by, live_lab

pytestmark = [
    pytest.mark.timeout(400, func_only=True),  # the first test may have to build the images
    pytest.mark.killed,
    pytest.mark.usefixtures("images"),
]

LONG = MATRIX.replace("requests: 200", "requests: 400")  # beside other tests a signal may come seconds after its time
# The pids come first: with a server's first process its container ends, and this script with it.
SIGNAL = """
import contextlib, os, pathlib, sys
pids = []
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        if (process / 'comm').read_text().strip() == sys.argv[1]:
            pids.append(int(process.name))
print(*pids, flush=True)
for pid in pids:
    with contextlib.suppress(OSError):
        os.kill(pid, int(sys.argv[2]))
"""


def send_signal(container: str, name: str, number: int) -> str:
    """Signal every process of that name in a container; the pids that got it."""
    return docker("exec", container, "python3", "-c", SIGNAL, name, str(number), check=False).strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_finished_and_takes_everything_down(tmp_path: Path, number: int) -> None:
    before = host_state()
    with live_lab(tmp_path, 2, text=LONG) as lab:
        lab.wait_for_trial(1)
        marks = marks_of(lab)
        lab.process.send_signal(number)
        code, said = lab.end()
    assert code == 130
    assert "--resume" in said
    assert lab.outcomes() == [Outcome.OK, Outcome.LAB_ERROR]
    assert left_by(lab) == ""
    assert changes(before, host_state(), marks) == []


def test_after_a_kill_lab_down_removes_everything_and_resume_finishes_the_run(tmp_path: Path) -> None:
    before = host_state()
    with live_lab(tmp_path, 2, text=LONG) as lab:
        lab.wait_for_trial(1)
        marks = marks_of(lab)
        assert left_by(lab) != "", "what a killed lab cannot take down, and any other that begins now sweeps away"
        lab.process.kill()
        lab.end()
    assert lab.outcomes() == [Outcome.OK, Outcome.LAB_ERROR]
    assert changes(before, host_state(), marks) != [], "the comparison sees what a killed lab leaves"
    subprocess.run([sys.executable, ROOT / "lab.py", "down"], check=True, capture_output=True)
    assert left_by(lab) == ""
    assert changes(before, host_state(), marks) == []

    with live_lab(tmp_path, 2, "--resume", str(lab.run.folder), text=LONG) as second:
        code, said = second.end()
    assert code == second.due(), said
    assert second.outcomes() == [Outcome.OK, Outcome.LAB_ERROR, Outcome.OK]
    assert left_by(second) == ""


PARTS = (("server", "nginx"), ("client", "h2load"), ("server", ""), ("client", ""), ("impair", ""))


def test_each_part_that_is_killed_breaks_one_attempt_and_no_more(tmp_path: Path) -> None:
    """A process, or a whole container; one in each trial but the first."""
    before = host_state()
    with live_lab(tmp_path, 1 + len(PARTS), text=LONG) as lab:
        for number, (service, process) in enumerate(PARTS, start=1):
            lab.wait_until_done(number)
            container = lab.container(service)  # now: on a busy machine the look-up takes as long as a trial
            lab.wait_for_client()
            assert send_signal(container, process, signal.SIGKILL) if process else docker("kill", container)
        code, said = lab.end()
    assert code == lab.due(), said
    assert lab.outcomes() == [Outcome.OK, *[Outcome.LAB_ERROR, Outcome.OK] * len(PARTS)]
    assert left_by(lab) == ""
    assert changes(before, host_state(), set()) == []


@pytest.mark.alone  # four lanes need free CPUs
@pytest.mark.timeout(600, func_only=True)  # four testbeds, twice, and one
def test_with_four_lanes_nothing_finished_is_lost_and_nothing_stays(tmp_path: Path) -> None:
    """A part of one lane is killed, then the lab; the run goes on, is interrupted, and goes on to its end."""
    blocks, lanes = 14, ("--lanes", "4")
    with live_lab(tmp_path, blocks, *lanes) as lab:
        lab.wait_until_done(2)
        while len(servers := lab.container("server").split()) < 4:
            assert lab.process.poll() is None, "".join(lab.said)
            time.sleep(POLL_S)
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
