"""Trials of pages, for the tests of browsers on real containers."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from headwind.arm import Arm
from headwind.browsers import CHROMIUM
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed import testbed as testbeds
from headwind.testbed.docker import docker
from headwind.trial.trial import run_trial
from headwind.workloads.page import Page, PageLoad
from impair.profile import Delay, Direction, Link, Profile

DELAY_S = 0.03
RTT_S = 2 * DELAY_S
FAR = Profile("far", Link(Delay(DELAY_S)), Link(Delay(DELAY_S)))
PAGE = Page("page", 30, 5_000)
SLOW = replace(PAGE, name="slow", server_delay_s=1.0)  # two seconds, in which things happen
OPENED = "the page wanted to open what a browser without a window refuses at once"
# Sends a signal to the processes of a container whose command line has two words, and prints how many there were.
SIGNAL = """
import contextlib, os, pathlib, sys
found = []
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        command = (process / 'cmdline').read_bytes().decode().replace(chr(0), ' ')
        if sys.argv[1] in command and sys.argv[2] in command and int(process.name) != os.getpid():
            found.append(int(process.name))
for pid in found:
    with contextlib.suppress(OSError):
        os.kill(pid, int(sys.argv[3]))
print(len(found))
"""
WHEN_ASKED = "print('ready', flush=True)\ninput()\n"


def page_over(path: paths.Path, arm: Arm, page: PageLoad = PAGE, timeout_s: float = 30.0) -> Result:
    """A trial, again if the machine was so busy that its network could not be proven."""
    trial = Trial(Block(Condition(FAR, page), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)
    reasons = []
    for _ in range(8):
        result = run_trial(path, trial, TrialRules(timeout_s))
        if result.outcome is not Outcome.INVALID:
            return result
        reasons.append(result.reason)
    pytest.fail("\n".join(reasons))


@contextmanager
def signalled(
    bed: testbeds.Testbed, word: str, number: int, browser: str = CHROMIUM, after_s: float = 1.3
) -> Iterator[list[int]]:
    """Signal the browser's processes with a word that long after the trial's start; gets their number at its end.

    What sends the signal is started before the trial: on a busy machine `docker exec` takes as long as a trial.
    """
    found: list[int] = []
    command = ["docker", "exec", "-i", bed.containers[browser], "python3", "-c", WHEN_ASKED + SIGNAL,
               browser, word, str(number)]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as sender:
        assert sender.stdin
        assert sender.stdout
        assert sender.stdout.readline() == "ready\n"
        timer = threading.Timer(after_s, sender.stdin.write, ["\n"])
        timer.start()
        yield found
        timer.join()
        found.append(int(sender.stdout.readline()))


def assert_clean(bed: testbeds.Testbed, arm: Arm, browser: str = CHROMIUM) -> None:
    """Assert that a page is loaded in the browser as if nothing had happened before."""
    result = page_over(bed.path(), arm, replace(PAGE, browser=browser))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert not [warning for warning in result.proof.warnings if OPENED in warning]


def in_browser(bed: testbeds.Testbed, program: str, *arguments: object, browser: str = CHROMIUM) -> int:
    """Run a Python program in the browser's container; the number that it prints."""
    return int(docker("exec", bed.containers[browser], "python3", "-c", program, *map(str, arguments)))


def assert_lab_error(bed: testbeds.Testbed, arm: Arm, word: str, number: int, browser: str = CHROMIUM) -> None:
    """Assert that a trial in which the browser's processes with this word are ended is a lab error, and the next ok."""
    assert_clean(bed, arm, browser)
    with signalled(bed, word, number, browser) as ended:
        result = page_over(bed.path(), arm, replace(SLOW, browser=browser), timeout_s=8.0)
    assert ended[0] > 0
    assert result.outcome is Outcome.LAB_ERROR, f"that is no failure of the protocol: {result.reason}"
    assert "browser" in result.reason or "renderer" in result.reason
    for _ in range(2):
        assert_clean(bed, arm, browser)
