"""What a killed process leaves among temporary files is found and removed; what a living one uses stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwind.testbed.scratch import remove_scratch, scratch

LEAVE = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
from headwind.testbed.scratch import scratch
with scratch() as folder:
    (folder / "agent.log").write_text("its last words")
    os.kill(os.getpid(), 9)
"""


def test_only_folders_of_processes_that_have_ended_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    subprocess.run([sys.executable, "-c", LEAVE, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.is_dir()
    others = {tmp_path / name for name in ("headwind-faults-x1", "headwind-1-99999999999-y2", "headwind", "x-1-2-3")}
    for each in others:
        each.mkdir()
    with scratch() as used:
        remove_scratch()
        assert {*tmp_path.iterdir()} == {used, *others} - {tmp_path / "headwind-1-99999999999-y2"}, (
            "process 1 began later"
        )
    assert not used.exists()
