"""Modules of the user-mode kernel are loaded when they are asked for, and only those that are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from impair.router.modules import load


def test_only_missing_modules_are_loaded_with_their_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules, loaded, log = tmp_path / "modules", tmp_path / "loaded", tmp_path / "log"
    sched, net = (modules / os.uname().release / f"kernel/{place}" for place in ("net/sched", "drivers/net"))
    for folder, name in ((sched, "sch_tbf"), (sched, "sch_red"), (net, "ifb")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ko").touch()
    (loaded / "sch_red").mkdir(parents=True)
    (tmp_path / "insmod").write_text(f'#!/bin/sh\necho "$@" >>{log}\nexit 1\n')  # the use of it says what is missing
    (tmp_path / "insmod").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    load(["ifb", "sch_tbf", "sch_red", "sch_pie"], modules, loaded)
    assert log.read_text().splitlines() == [f"{net}/ifb.ko numifbs=0", f"{sched}/sch_tbf.ko"]
