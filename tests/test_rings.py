"""`make test`: several calls of pytest, one sum."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.rings import ONE, RINGS, main, run, status, summary

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


@pytest.mark.usefixtures("signals")
def test_only_pages_are_loaded_while_times_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    stages: list[Mapping[str, Sequence[str]]] = []

    def run(commands: Mapping[str, Sequence[str]]) -> list[int]:
        stages.append(commands)
        for ring, command in commands.items():
            assert command[command.index("--ring") + 1] == ring
            Path(command[command.index("--tally") + 1]).write_text('{"passed": 7}')
        return [0] * len(commands)

    assert main(["-k", "word"], run) == 0
    assert [list(stage) for stage in stages] == [STAGE, ["net", "pages"], ["alone"]]
    assert all(list(command[-2:]) == ["-k", "word"] for stage in stages for command in stage.values())
    assert RINGS["net"] == RINGS["pages"] == RINGS["alone"] == ONE, "one test at a time"
    assert " 56 passed in " in capsys.readouterr().out


@pytest.mark.usefixtures("signals")
def test_after_an_interrupt_the_real_network_does_not_begin(capsys: pytest.CaptureFixture[str]) -> None:
    stages: list[Mapping[str, Sequence[str]]] = []

    def run(commands: Mapping[str, Sequence[str]]) -> list[int]:
        stages.append(commands)
        return [2, 0, 0, 0, 0]

    assert main([], run) == 2
    assert [list(stage) for stage in stages] == [STAGE]
    assert "no tests ran" in capsys.readouterr().out


@pytest.mark.usefixtures("signals")
def test_what_runs_at_the_same_time_is_printed_line_by_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first waits for the second, which would not begin if it had to wait for the first."""
    os.mkfifo(meeting := tmp_path / "meeting")
    first = f"printf 'the fi'; cat {meeting} >/dev/null; echo rst"
    second = f"echo second; echo >{meeting}; printf 'no end'; exit 3"
    assert run({"one": ["sh", "-c", first], "two": ["sh", "-c", second]}) == [0, 3]
    assert sorted(capfd.readouterr().out.splitlines()) == ["one    | the first", "two    | no end", "two    | second"]


@pytest.mark.usefixtures("signals")
def test_an_interrupt_prints_the_line_of_the_test_that_did_not_end(capfd: pytest.CaptureFixture[str]) -> None:
    pause = "sleep 0.3"
    test = f"trap 'echo stopped; exit 2' INT; printf 'a_test '; {pause}; kill -INT $PPID; {pause}; kill -INT $$"
    assert run({"net": ["sh", "-c", test]}) == [2]
    assert capfd.readouterr().out.splitlines() == ["net    | a_test ", "net    | stopped"]
