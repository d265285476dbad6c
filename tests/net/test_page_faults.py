"""Whatever happens to a page or its browser: the trial has an outcome with its reason, and the next trial is clean."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.browsers import BROWSERS, CHROMIUM, FIREFOX
from headwind.model import Outcome, Result
from headwind.site import PREFIX
from headwind.testbed import testbed as testbeds
from headwind.testbed.docker import docker
from headwind.trial.trial import CLIENT_GRACE_S
from headwind.workloads.page import Page
from tests.net.page_trials import (
    OPENED,
    PAGE,
    SIGNAL,
    SLOW,
    assert_clean,
    assert_lab_error,
    in_browser,
    page_over,
    signalled,
)

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images

BROWSER = pytest.mark.parametrize("browser", BROWSERS)
TIMEOUT_S = 4.0
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the folder that is filled
# Fills a folder until nothing more fits, and prints the bytes.
FILL = """
import os, sys
file, written = os.open(f'{sys.argv[1]}/full', os.O_CREAT | os.O_WRONLY), 0
try:
    while True:
        written += os.write(file, bytes(4096))
except OSError:
    print(written)
"""


@dataclass(frozen=True, slots=True)
class Odd(Page):
    """A page of PAGES, or another file; its one picture, which is compared, is not requested by it."""

    resources: int = 0
    size_bytes: int = PAGE.size_bytes
    file: str = ""

    def object_paths(self) -> tuple[str, ...]:
        return f"{PREFIX}/{self.file}", self.object_path()

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        del answer, object_bytes
        return ""


def odd(page_bed: testbeds.Testbed, name: str, browser: str) -> Result:
    """The trial of a page, and a clean one after it."""
    start = time.monotonic()
    result = page_over(page_bed.path(), H2, Odd(name, file=name, browser=browser), TIMEOUT_S)
    assert time.monotonic() - start < 3 * (TIMEOUT_S + CLIENT_GRACE_S), "several tries, each with an end"
    assert_clean(page_bed, H2, browser)
    return result


@pytest.mark.parametrize(("name", "counted", "browser"), [
    ("dialogs", 3, CHROMIUM), ("windows", 2, CHROMIUM), ("downloads", 1, CHROMIUM), ("dialogs", 3, FIREFOX),
    ("windows", 2, FIREFOX),
])  # fmt: skip
def test_what_a_page_opens_is_refused_at_once_and_named(
    page_bed: testbeds.Testbed, name: str, counted: int, browser: str
) -> None:
    result = odd(page_bed, f"{name}.html", browser)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    named = [warning for warning in result.proof.warnings if OPENED in warning]
    silent = (name, browser) == ("windows", FIREFOX)  # which refuses them, and does not report it
    assert named == ([] if silent else [f"{OPENED} ({name}: {counted})"])
    assert result.metrics["load_s"] < 1.0, "nothing waits for a person"


@BROWSER
def test_a_download_is_no_page(page_bed: testbeds.Testbed, browser: str) -> None:
    result = odd(page_bed, "file.bin", browser)
    assert result.outcome is Outcome.FAILED, result.reason
    assert "it is a download" in result.reason


@BROWSER
def test_a_page_that_goes_elsewhere_is_not_measured(page_bed: testbeds.Testbed, browser: str) -> None:
    result = odd(page_bed, "elsewhere.html", browser)
    assert result.outcome is Outcome.FAILED
    assert "it went on to https://server" in result.reason


@BROWSER
def test_a_script_without_an_end_is_a_timeout(page_bed: testbeds.Testbed, browser: str) -> None:
    result = odd(page_bed, "forever.html", browser)
    assert result.outcome is Outcome.TIMEOUT
    assert result.lower_bound_s == TIMEOUT_S
    assert not [name for name in result.metrics if name.endswith("_low_s")], "the document came; nobody knows when"


@BROWSER
def test_a_first_visit_without_an_end_is_a_failure_of_the_repeat_visit(
    page_bed: testbeds.Testbed, browser: str
) -> None:
    page = Odd("forever", file="forever.html", browser=browser, visit="repeat")
    result = page_over(page_bed.path(), H2, page, TIMEOUT_S)
    assert result.outcome is Outcome.FAILED
    assert f"its first visit: no load event within {TIMEOUT_S:g} s" in result.reason
    assert_clean(page_bed, H2, browser)


@BROWSER
def test_a_page_that_stops_answering_after_its_load_event_fails(page_bed: testbeds.Testbed, browser: str) -> None:
    result = odd(page_bed, "forever-after.html", browser)
    assert result.outcome is Outcome.FAILED
    assert "one of its scripts does not end" in result.reason


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize(
    ("word", "arm"), [("--type=renderer", H1), ("--remote-debugging-pipe", H2), ("network.mojom", H3)]
)
def test_what_ends_during_a_trial_is_a_lab_error(
    page_bed: testbeds.Testbed, word: str, arm: Arm, number: signal.Signals
) -> None:
    """The page's process, the browser, and its network."""
    assert_lab_error(page_bed, arm, word, int(number))


@pytest.mark.parametrize(("word", "outcome"), [
    ("--type=renderer", Outcome.TIMEOUT), ("--remote-debugging-pipe", Outcome.LAB_ERROR),
    ("network.mojom", Outcome.TIMEOUT),
])  # fmt: skip
def test_what_stands_still_during_a_trial_gives_an_outcome(
    page_bed: testbeds.Testbed, word: str, outcome: Outcome
) -> None:
    assert_clean(page_bed, H2)
    with signalled(page_bed, word, int(signal.SIGSTOP)) as stopped:
        result = page_over(page_bed.path(), H2, SLOW, TIMEOUT_S)
    assert stopped[0] > 0
    assert result.outcome is outcome, result.reason
    assert_clean(page_bed, H2)


def test_a_full_dev_shm_does_not_matter(page_bed: testbeds.Testbed) -> None:
    """Chromium's shared memory has no files (memfd_create), neither that of a running browser nor that of a new one."""
    assert in_browser(page_bed, FILL, SHARED_MEMORY) >= 1 << 20
    try:
        assert_clean(page_bed, H1)
        in_browser(page_bed, SIGNAL, CHROMIUM, "--remote-debugging-pipe", int(signal.SIGKILL))
        assert_clean(page_bed, H1)
    finally:
        docker("exec", page_bed.containers[CHROMIUM], "rm", f"{SHARED_MEMORY}/full")
    assert_clean(page_bed, H1)
