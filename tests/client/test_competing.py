"""Competing downloads are in progress before, while and after the measured client runs, and end with it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from client import competing
from client.competing import Competition, Line, NoCompetition, _at

# Stands for the program: two flows of 1000 and 3000 bytes per 20 ms.
PROGRAM = """\
import sys, time
received = [0, 0]
while True:
    print(f"{time.monotonic():.6f} {received[0]} {received[1]}", flush=True)
    received = [received[0] + 1000, received[1] + 3000]
    time.sleep(0.02)
"""
ASKED: dict[str, Any] = {"protocol": "h2", "flows": 2, "host": "192.0.2.1", "port": 443, "path": "/100m"}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, as `python3` that ignores its arguments."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    (tmp_path / "python3").write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    return script


def test_bytes_are_counted_before_during_and_after(program: Path) -> None:
    assert program.exists()
    competition = Competition()
    competition.start(**ASKED, lead_s=1.1, timeout_s=10.0)
    process = competition._process
    with competition.measured():
        time.sleep(0.5)
    seen = competition.stop()
    assert (seen.protocol, seen.error) == ("h2", "")
    assert seen.during_s == pytest.approx(0.5, abs=0.2)
    for part in (seen.alone_bytes, seen.during_bytes, seen.after_bytes):
        assert min(part) > 0
        assert part[1] == pytest.approx(3 * part[0], abs=3)
    assert process is not None
    assert process.poll() is not None, "it must not outlive the trial"


def test_a_program_that_ends_is_quoted(program: Path) -> None:
    program.write_text("print('flow 0: Connection refused')")
    with pytest.raises(NoCompetition, match="ended: flow 0: Connection refused"):
        Competition().start(**ASKED, lead_s=0.0, timeout_s=10.0)


def test_one_that_stops_to_receive_is_an_error_of_the_trial(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(competing, "AFTER_S", 0.3)
    program.write_text(PROGRAM.replace("received[1] + 3000", "min(9000, received[1] + 3000)"))
    competition = Competition()
    competition.start(**ASKED, lead_s=0.3, timeout_s=10.0)
    with competition.measured():
        time.sleep(0.1)
    seen = competition.stop()
    assert seen.error == "the competing downloads received nothing for 0.3 s"
    assert seen.after_bytes[1] == 0


def test_a_flow_that_never_begins_is_given_up(program: Path) -> None:
    program.write_text(PROGRAM.replace("received[1] + 3000", "0"))
    with pytest.raises(NoCompetition, match=r"received nothing for 0\.2 s"):
        Competition().start(**ASKED, lead_s=0.0, timeout_s=0.2)


def test_the_bytes_at_a_time_lie_between_those_of_its_lines() -> None:
    lines = [Line.of("1.0 100 0"), Line.of("2.0 300 50")]
    assert [_at(lines, at) for at in (0.5, 1.0, 1.5, 9.0)] == [[0, 0], [100, 0], [200, 25], [300, 50]]
