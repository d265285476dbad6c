"""`make test`: several calls of pytest, one sum."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rings import RINGS, main, run, status, summary

ROOT = Path(__file__).parent.parent
STAGE = ["pure", "images", "beside", "labs", "killed"]


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


def rings_of(stages: list[list[Sequence[str]]]) -> list[list[str]]:
    return [[command[command.index("--ring") + 1] for command in commands] for commands in stages]


@pytest.mark.usefixtures("signals")
def test_only_pages_are_loaded_while_times_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    stages: list[list[Sequence[str]]] = []

    def run(commands: Sequence[Sequence[str]]) -> list[int]:
        stages.append(list(commands))
        for command in commands:
            Path(command[command.index("--tally") + 1]).write_text('{"passed": 7}')
        return [0] * len(commands)

    assert main(["-k", "word"], run) == 0
    assert rings_of(stages) == [STAGE, ["net", "pages"], ["alone"]]
    assert all(list(command[-2:]) == ["-k", "word"] for commands in stages for command in commands)
    assert RINGS["net"] == RINGS["pages"] == RINGS["alone"] == (), "one test at a time"
    assert " 56 passed in " in capsys.readouterr().out


@pytest.mark.usefixtures("signals")
def test_after_an_interrupt_the_real_network_does_not_begin(capsys: pytest.CaptureFixture[str]) -> None:
    stages: list[list[Sequence[str]]] = []

    def run(commands: Sequence[Sequence[str]]) -> list[int]:
        stages.append(list(commands))
        return [2, 0, 0, 0, 0]

    assert main([], run) == 2
    assert rings_of(stages) == [STAGE]
    assert "no tests ran" in capsys.readouterr().out


def test_what_runs_at_the_same_time_is_heard_one_after_the_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first waits for the second, which would not begin if it had to wait for the first."""
    os.mkfifo(meeting := tmp_path / "meeting")
    first, second = f"cat {meeting} >/dev/null; echo first", f"echo second; echo >{meeting}; exit 3"
    assert run([["sh", "-c", first], ["sh", "-c", second]]) == [0, 3]
    assert capfd.readouterr().out.split() == ["first", "second"]
