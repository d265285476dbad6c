"""Firefox on real containers: whatever ends during a trial gives an outcome, and the next trial is clean."""

from __future__ import annotations

import signal

import pytest

from headwind.arm import H1, H2, Arm
from headwind.browsers import FIREFOX
from headwind.testbed import testbed as testbeds
from tests.net.page_trials import assert_lab_error

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images


@pytest.mark.parametrize(("word", "arm"), [(" tab", H1), ("--remote-debugging-port", H2)])
def test_what_is_killed_during_a_trial_is_a_lab_error(page_bed: testbeds.Testbed, word: str, arm: Arm) -> None:
    """The processes of pages, and the browser."""
    assert_lab_error(page_bed, arm, word, int(signal.SIGKILL), FIREFOX)
