"""`make test`: two calls of pytest, one sum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rings import RINGS, status, summary

ROOT = Path(__file__).parent.parent


def test_the_summary_adds_both_rings_and_is_the_line_that_continuous_integration_looks_for() -> None:
    told = [{"passed": 3000, "skipped": 4, "failed": 1, "": 7}, {"passed": 250, "error": 2, "warnings": 1}]
    line = summary(told, 750.123)
    assert line.strip("= ") == "1 failed, 3250 passed, 4 skipped, 2 errors in 750.12s (0:12:30)"
    (pattern,) = re.findall(r"grep -aE '([^']+)'", (ROOT / ".ci/run").read_text())
    assert re.search(pattern, line)
    assert re.search(pattern, summary([], 1.0))
    assert summary([{"deselected": 3000}], 1.0).strip("= ") == "no tests ran in 1.00s (0:00:01)"


@pytest.mark.parametrize(
    ("codes", "expected"), [([0, 0], 0), ([1, 0], 1), ([0, 1], 1), ([5, 0], 0), ([0, 5], 0), ([5, 5], 5), ([2], 2)]
)
def test_a_ring_without_a_test_is_no_failure_unless_both_are(codes: list[int], expected: int) -> None:
    assert status(codes) == expected


def test_nothing_runs_beside_the_real_network() -> None:
    assert RINGS["net"] == ()
