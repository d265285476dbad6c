"""Runs are named by folder or by id, and a name without a run brings the near ones."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import lab
from headwind.cli import runs
from headwind.cli.runs import NONE_YET, USUAL, run_folder, run_folders
from headwind.run.journal import NoRunFolder
from tests import fake

MATRIX = fake.example_matrix(fake.PROFILES[0], repeat=2)
IDS = ("20261125-101507-77bc", "20261125-101544-3f0a", "20261126-080030-0001")


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "reports"
    for name in IDS:
        with fake.recorded(tmp_path / "made", MATRIX, fake.ok_results(MATRIX)) as run:
            shutil.move(run.folder, folder / name)
    (folder / "20261125-101507-none").mkdir()
    shutil.copytree(folder / IDS[0], folder / "renamed")
    monkeypatch.setattr(runs, "REPORTS", folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [["report"], ["advise"], ["published"], ["compare", IDS[0]], ["run", "--resume"]],
    ids=lambda each: each[0],
)
def test_every_command_takes_an_id_and_proposes_near_ones(
    command: Sequence[str], reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--reports", str(reports)] if command[0] == "run" else []
    if command[0] != "run":
        lab.main([*command, IDS[2]])
        assert "there is no such run" not in capsys.readouterr().err
    assert lab.main([*command, "20261126", *more]) == 2
    assert f"20261126: there is no such run; did you mean `{reports / IDS[2]}`?" in capsys.readouterr().err


def test_a_folder_is_taken_as_it_is(reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_folder(str(reports / IDS[0])) == reports / IDS[0]
    assert run_folder(IDS[0], reports) == reports / IDS[0]
    monkeypatch.chdir(tmp_path)
    assert run_folder(f"reports/{IDS[0]}") == Path("reports") / IDS[0]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("20261125-1015", [IDS[1], IDS[0]]),
        ("20261126-080030-0010", [IDS[2]]),
        ("reports/20261126-080030-001", [IDS[2]]),
        ("reports/20261126-080030-0001/", []),
        ("mine", []),
        ("elsewhere/20261126-080030-0001", []),
    ],
)
def test_near_names_are_those_of_runs(
    name: str, near: list[str], reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name.endswith("/"):
        assert run_folder(name) == Path(name)
        return
    with pytest.raises(NoRunFolder) as caught:
        run_folder(name)
    proposed = " or ".join(f"`reports/{each}`" for each in near)
    newest = USUAL if name.startswith("elsewhere/") else f"the newest is `reports/{IDS[2]}`"
    hint = f"did you mean {proposed}?" if near else newest
    assert str(caught.value) == f"{name}: there is no such run; {hint}"
    assert reports.exists()


def test_every_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoRunFolder) as caught:
        run_folders(["a", "b", "a"], tmp_path)
    assert str(caught.value) == "\n".join(f"{name}: there is no such run; {NONE_YET}" for name in "ab")
