"""`lab.py compare`: exit status 3 for a protocol's regression and for nothing else, in words, and in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.arm import H3, PLAIN, Arm
from headwind.errors import UsageError
from headwind.model import Matrix
from headwind.report.trust import OTHER_LABS
from tests import fake

MATRIX = fake.example_matrix(*fake.PROFILES[:2], repeat=20)


def recorded(
    folder: Path, slower: Mapping[Arm, float], matrix: Matrix = MATRIX,
    environment: Mapping[str, Any] = fake.ENVIRONMENT,
) -> str:  # fmt: skip
    """The folder of a run in which every arm is slower by its factor, give or take."""
    results = [
        fake.ok(trial, slower[trial.arm] * (1 + trial.block.index / 500 + len(trial.arm.name) / 100))
        for trial in fake.trials_of(matrix)
    ]
    with fake.recorded(folder, matrix, results, environment) as run:
        return str(run.folder)


@pytest.fixture
def usual(tmp_path: Path) -> str:
    return recorded(tmp_path / "usual", dict.fromkeys(PLAIN, 1.0))


def test_a_slower_machine_is_said_and_ends_with_0(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = recorded(tmp_path / "loaded", dict.fromkeys(PLAIN, 2.2))
    assert lab.main(["compare", usual, loaded]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "the machine was 2.2 times slower: all arms alike in 2 of 2 conditions (clean/article, delay/article)" in told
    )
    assert "no regression (--absolute counts it)" in told
    assert "worse" not in told
    assert lab.main(["compare", usual, loaded, "--absolute"]) == 3
    assert "by absolute values: 18 of 18 figures worse" in " ".join(capsys.readouterr().out.split())


def test_a_slower_protocol_on_a_slower_machine_is_named_alone_and_ends_with_3(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = recorded(tmp_path / "worse", {**dict.fromkeys(PLAIN, 2.2), H3: 3.3})
    file = tmp_path / "changes.json"
    assert lab.main(["compare", usual, worse, "--json", str(file)]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "HTTP/3 worse: clean/article against h1 and h2" in told
    assert "HTTP/2 worse" not in told
    written: dict[str, Any] = json.loads(file.read_text())
    assert written["regression"] is True
    assert {(each["candidate"], each["baseline"]) for each in written["ratios"] if each["regression"]} == {
        ("h3", "h1"), ("h3", "h2"),
    }  # fmt: skip
    assert {each["changed_arm"] for each in written["ratios"]} == {"h3", None}
    assert [round(each["factor"], 2) for each in written["machine"]] == [pytest.approx(1 / 2.2, abs=0.01)] * 6
    assert lab.main(["compare", worse, usual]) == 0, "the way back is an improvement"


def test_what_cannot_be_told_ends_with_4_where_that_is_asked_for(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    few = recorded(
        tmp_path / "few", dict.fromkeys(PLAIN, 1.0), replace(MATRIX, repeat=fake.example_matrix(repeat=2).repeat)
    )
    file = tmp_path / "changes.json"
    assert lab.main(["compare", usual, few]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "cannot tell: 18 of 18; needs 8 blocks in each run, has 20 and 2 (clean/article, delay/article)" in told
    assert "[0" not in told, "no row says nothing"
    assert lab.main(["compare", usual, few, "--strict", "--json", str(file)]) == 4
    written = json.loads(file.read_text())
    assert written["inconclusive"] == {"count": 18, "of": 18, "blocks_needed": 8}
    assert {(each["inconclusive"], each["largest_factor"]) for each in written["ratios"]} == {(True, None)}


def test_wide_bounds_cannot_tell_in_text_file_and_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each block another protocol takes four times as long: ratios are between 0.25 and 4."""
    few = fake.example_matrix(*fake.PROFILES[:1], repeat=10)
    noisy = [str(_jumping(tmp_path / name, few, shift)) for name, shift in (("a", 0), ("b", 1))]
    file = tmp_path / "changes.json"
    assert lab.main(["compare", *noisy]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "no change larger" not in told
    assert "cannot tell: 9 of 9; changes of up to " in told
    assert lab.main(["compare", *noisy, "--strict", "--json", str(file)]) == 4
    written = json.loads(file.read_text())
    assert written["inconclusive"]["count"] == 9
    assert all(each["inconclusive"] and each["largest_factor"] > 1.5 for each in written["ratios"])


def _jumping(folder: Path, matrix: Matrix, shift: int) -> Path:
    order = list(matrix.arms)
    results = [
        fake.ok(trial, 4.0 if (trial.block.index + shift) % len(order) == order.index(trial.arm) else 1.0)
        for trial in fake.trials_of(matrix)
    ]
    with fake.recorded(folder, matrix, results) as run:
        return run.folder


def test_only_what_changed_has_a_row_and_the_rest_is_bounded(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    again = recorded(tmp_path / "again", dict.fromkeys(PLAIN, 1.0))
    assert lab.main(["compare", usual, again, "--strict"]) == 0
    told = capsys.readouterr().out
    assert "no change larger than 1.0" in told
    assert "h3 against h1" not in told
    worse = recorded(tmp_path / "worse", {**dict.fromkeys(PLAIN, 1.0), H3: 1.5})
    assert lab.main(["compare", usual, worse, "--strict"]) == 3, "a regression goes before what is open"
    told = capsys.readouterr().out
    assert "h3 against h1" in told
    assert "h2 against h1" not in told


def test_what_else_differs_is_in_words_with_short_digests(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    testbed = {**fake.ENVIRONMENT["testbed"], "h2load": {"patch_sha256": "e0242d86a46a" + "9" * 52}}
    images = {**fake.ENVIRONMENT["images"], "server": "sha256:" + "77" * 32}
    labs = [{"owner": "host:4711:x", "testbeds": 3, "from": 1.0, "to": 2.0}] * 2
    others = {**fake.ENVIRONMENT, "images": images, "testbed": testbed, OTHER_LABS: labs}
    again = recorded(tmp_path / "again", dict.fromkeys(PLAIN, 1.0), environment=others)
    assert lab.main(["compare", usual, again]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("! ")]
    assert [line.replace("\N{RIGHTWARDS ARROW}", ">") for line in lines] == [
        f"! environment: images > server: {'5e' * 6} -> {'77' * 6}",
        "! environment: other labs on the machine: none -> 2",
        "! environment: testbed > h2load > patch digest: not noted -> e0242d86a46a",
    ]


def test_a_single_arm_is_compared_only_where_that_is_asked_for(tmp_path: Path) -> None:
    alone = fake.example_matrix(*fake.PROFILES[:1], repeat=20, arms=(H3,))
    first, second = (recorded(tmp_path / name, {H3: slower}, alone) for name, slower in (("a", 1.0), ("b", 1.5)))
    assert lab.main(["compare", first, second]) == 2
    assert lab.main(["compare", first, second, "--absolute"]) == 3


def test_runs_without_a_common_condition_are_refused(tmp_path: Path, usual: str) -> None:
    other = recorded(tmp_path / "b", dict.fromkeys(PLAIN, 1.0), fake.example_matrix(fake.PROFILES[2], repeat=2))
    assert lab.main(["compare", usual, other]) == UsageError.exit_code == 2
