"""Pages in a real browser on real containers: proven, fresh in each trial, and an outcome whatever happens to them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.browsers import CHROMIUM
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import docker
from headwind.testbed.images import Images, ensure_images, needed
from headwind.trial.start import examine_start
from headwind.trial.trial import run_trial
from headwind.workloads.page import FIRST, LAST, LOAD, PAINT, Page
from impair.profile import Delay, Direction, Link, Profile
from tests.net.beside import alone

pytestmark = pytest.mark.timeout(400, func_only=True)  # the first test may have to build the image

DELAY_S = 0.03
RTT_S = 2 * DELAY_S
FAR = Profile("far", Link(Delay(DELAY_S)), Link(Delay(DELAY_S)))
PAGE = Page("page", 30, 5_000)
SLOW = replace(PAGE, name="slow", server_delay_s=1.0)  # two seconds, in which things happen
CONNECTIONS = {"h1": 6, "h2": 1, "h3": 1}
HANDSHAKE_AND_ANSWER = {"h1": 3, "h2": 3, "h3": 2}  # round trips until the first byte
# Kills the processes of a container whose command line has a word, and prints how many there were.
KILL = """
import contextlib, os, pathlib, sys
found = []
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        command = (process / 'cmdline').read_bytes().decode()  # a renderer's has spaces between its words
        if 'chromium' in command and sys.argv[1] in command and int(process.name) != os.getpid():
            found.append(int(process.name))
for pid in found:
    with contextlib.suppress(OSError):
        os.kill(pid, int(sys.argv[2]))
print(len(found))
"""

LOOK = """
import os
capabilities = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff'))
print(os.getuid(), os.readlink('/proc/self/ns/net'), capabilities)
"""


@pytest.fixture(scope="module")
def bed(images: Images) -> Iterator[testbeds.Testbed]:
    with alone():
        tags = ensure_images(print, needed(browsers=[CHROMIUM])).tags
    with testbeds.Testbed.up(BedSpec({**images.tags, **tags}, browsers=(CHROMIUM,))) as up:
        examine_start(up.path())
        yield up


def page_over(path: paths.Path, arm: Arm, page: Page = PAGE, timeout_s: float = 30.0) -> Result:
    """A trial, again if the machine was so busy that its network could not be proven."""
    trial = Trial(Block(Condition(FAR, page), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)
    results = (run_trial(path, trial, TrialRules(timeout_s)) for _ in range(4))
    return next(result for result in results if result.outcome is not Outcome.INVALID)


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_each_trial_loads_a_fresh_page_over_its_protocol(bed: testbeds.Testbed, arm: Arm) -> None:
    """In the same browser: connections, handshakes and all bytes come again."""
    for _ in range(3):
        result = page_over(bed.path(), arm)
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        metrics, columns = result.metrics, result.samples["samples"]
        assert set(columns["request_protocol"]) == {arm.protocol.alpn}
        assert len(columns["request_took_s"]) == 31
        assert metrics["bytes_body"] == 30 * 5_000
        assert metrics["connections"] == CONNECTIONS[arm.name]
        assert metrics["from_cache"] == 0
        assert metrics[FIRST.key] >= HANDSHAKE_AND_ANSWER[arm.name] * RTT_S
        assert metrics[LOAD.key] >= metrics[LAST.key] >= metrics[FIRST.key] + RTT_S
        assert metrics[PAINT.key] >= metrics[FIRST.key]
        assert metrics["client_cpu_s"] > 0.02, "a browser's CPU time is the client's"


def test_the_client_and_its_browser_have_one_address_and_no_capabilities(bed: testbeds.Testbed) -> None:
    read = ("python3", "-c", LOOK)
    user, space, capabilities = docker("exec", bed.containers[CHROMIUM], *read).split()
    assert (user != "0", int(capabilities, 16)) == (True, 0)
    assert space == docker("exec", bed.containers["client"], *read).split()[1]


def test_a_page_that_does_not_load_in_time_is_a_bound(bed: testbeds.Testbed) -> None:
    result = page_over(bed.path(), H2, SLOW, timeout_s=1.6)
    assert result.outcome is Outcome.TIMEOUT
    assert result.metrics["timeout_s"] == result.metrics["last_resource_low_s"] == 1.6
    assert result.metrics["ttfb_low_s"] == result.metrics["ttfb_high_s"] >= 1.0
    assert page_over(bed.path(), H2).outcome is Outcome.OK


def test_a_document_that_does_not_come_in_time_is_a_bound(bed: testbeds.Testbed) -> None:
    result = page_over(bed.path(), H3, SLOW, timeout_s=0.7)
    assert result.outcome is Outcome.TIMEOUT
    assert result.metrics["ttfb_low_s"] == 0.7
    assert "ttfb_high_s" not in result.metrics
    assert page_over(bed.path(), H3).outcome is Outcome.OK


def during(action: Callable[[], object], after_s: float) -> threading.Timer:
    timer = threading.Timer(after_s, action)
    timer.start()
    return timer


@pytest.mark.parametrize(
    ("word", "arm"), [("--type=renderer", H1), ("--remote-debugging-pipe", H2), ("--type=utility", H3)]
)
def test_what_is_killed_during_a_trial_gives_an_outcome_and_the_next_trial_is_clean(
    bed: testbeds.Testbed, word: str, arm: Arm
) -> None:
    """The page's process, the browser, and its network."""
    assert page_over(bed.path(), arm).outcome is Outcome.OK, "the browser runs"
    killed: list[str] = []

    def kill() -> None:
        kill_it = ("python3", "-c", KILL, word, str(int(signal.SIGKILL)))
        killed.append(docker("exec", bed.containers[CHROMIUM], *kill_it).strip())

    timer = during(kill, 1.0)
    result = page_over(bed.path(), arm, SLOW, timeout_s=8.0)
    timer.join()
    assert killed
    assert int(killed[0]) > 0
    assert result.outcome is Outcome.LAB_ERROR, f"that is no failure of the protocol: {result.reason}"
    assert "browser" in result.reason or "renderer" in result.reason
    for _ in range(2):
        assert page_over(bed.path(), arm).outcome is Outcome.OK
