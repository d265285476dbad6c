"""`lab.py compare`: exit status 3 for a protocol's regression and for nothing else, in words, and in a file."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.errors import UsageError
from headwind.model import Condition, Matrix, Outcome, SelfCheck, Trial
from headwind.proof.attempts import MOST_ATTEMPTS
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
    assert "not counted (--absolute counts it)" in told
    runs = f"{Path(loaded).name} against {Path(usual).name}"
    assert told.startswith(
        f"{runs}: of 18 comparisons by 3 metrics none got worse, none got better, 18 show no change above 1.0"
    )
    assert lab.main(["compare", usual, loaded, "--absolute"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert f"{runs}: of 18 absolute values by 3 metrics 18 got worse, none got better" in told


def test_a_slower_protocol_on_a_slower_machine_is_named_alone_and_ends_with_3(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = recorded(tmp_path / "worse", {**dict.fromkeys(PLAIN, 2.2), H3: 3.3})
    file = tmp_path / "changes.json"
    assert lab.main(["compare", usual, worse, "--json", str(file)]) == 3
    told = " ".join(capsys.readouterr().out.split())
    runs = f"{Path(worse).name} against {Path(usual).name}"
    assert told.startswith(
        f"{runs}: of 18 comparisons by 3 metrics 12 got worse, none got better, 6 show no change above 1.0"
    )
    assert "HTTP/3 worse (0.67x): clean/article against h1 and h2" in told
    assert "HTTP/2 worse" not in told
    written: dict[str, Any] = json.loads(file.read_text())
    assert written["regression"] is True
    assert all((each["verdict"] == "inconclusive") is each["inconclusive"] for each in written["ratios"])
    assert {each["verdict"] for each in written["ratios"] if not each["regression"]} <= {"bounded", "tie"}
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
    assert "unknown: 18 of 18; needs 8 blocks in each run, has 20 and 2 (clean/article, delay/article)" in told
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
    assert "no change above" not in told
    assert "unknown: 9 of 9; too few blocks to rule out a change above 1.50x, up to " in told
    assert lab.main(["compare", *noisy, "--strict", "--json", str(file)]) == 4
    written = json.loads(file.read_text())
    assert written["inconclusive"]["count"] == 9
    needed = written["inconclusive"]["blocks_needed"]
    single = [each["blocks_needed"] for each in written["ratios"]]
    assert needed == (None if None in single else max(single))
    assert ("hundreds of blocks" if None in single else f"{needed} blocks in each run") in told, "not the least"
    assert {each["verdict"] for each in written["ratios"]} == {"inconclusive"}
    assert all(each["inconclusive"] and each["largest_factor"] > 1.5 for each in written["ratios"])


def test_a_failed_self_check_ends_with_4_where_that_is_asked_for(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`recorded` makes arms with longer names slower, so that the second HTTP/2 is slower than the first by 6 %."""
    checked = replace(MATRIX, selfcheck=SelfCheck(H2, again=("clean",)))
    failing = recorded(tmp_path / "failing", defaultdict(lambda: 1.0), checked)
    for runs in ((usual, failing), (failing, usual)):
        assert lab.main(["compare", *runs]) == 0
        warning = f"! {Path(failing).name}: self-checks FAILED in clean: do not rely on this comparison"
        assert warning in " ".join(capsys.readouterr().out.split())
        assert lab.main(["compare", *runs, "--strict"]) == 4
    worse = recorded(tmp_path / "worse", {**dict.fromkeys(PLAIN, 1.0), H3: 1.5})
    assert lab.main(["compare", failing, worse, "--strict"]) == 3, "a regression goes before a self-check"


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
    assert "no change above 1.0" in told
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
    images = {**fake.ENVIRONMENT["images"], "nginx": "777777777777@sha256:" + "77" * 32}
    labs = [{"owner": "host:4711:x", "testbeds": 3, "from": 1.0, "to": 2.0}] * 2
    others = {**fake.ENVIRONMENT, "images": images, "testbed": testbed, OTHER_LABS: labs}
    again = recorded(tmp_path / "again", dict.fromkeys(PLAIN, 1.0), environment=others)
    assert lab.main(["compare", usual, again]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("! ")]
    assert [line.replace("\N{RIGHTWARDS ARROW}", ">") for line in lines] == [
        f"! environment: images > nginx: {'5e' * 6}@{'5e' * 6} -> {'77' * 6}@{'77' * 6}",
        "! environment: other labs on the machine: none -> 2",
        "! environment: testbed > h2load > patch digest: not noted -> e0242d86a46a",
    ]


def test_runs_in_the_wrong_order_are_reported_and_compared_as_given(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worse, file = recorded(tmp_path / "worse", {**dict.fromkeys(PLAIN, 1.0), H3: 1.5}), tmp_path / "changes.json"
    first, second = (Path(folder).name for folder in (usual, worse))
    assert lab.main(["compare", usual, worse]) == 3
    assert "began after" not in capsys.readouterr().out
    assert lab.main(["compare", worse, usual, "--json", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    warning = f"{second} began after {first}: better and worse describe the earlier run, {first}"
    assert f"! {warning}" in told
    written = json.loads(file.read_text())
    assert (written["run_a"], written["run_b"]) == (second, first)
    assert written["warnings"] == [warning]
    assert "earlier" not in str(written["ratios"])


def test_an_order_is_no_change_of_the_matrix(tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]) -> None:
    turned = replace(MATRIX, conditions=MATRIX.conditions[::-1], arms=PLAIN[::-1])
    again = recorded(tmp_path / "again", dict.fromkeys(PLAIN, 1.0), turned)
    assert lab.main(["compare", usual, again, "--strict"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "matrix:" not in told
    assert "only in" not in told
    assert "both runs have the same seed" in told


def test_runs_of_two_seeds_need_no_word_on_them(tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = recorded(tmp_path / "other", dict.fromkeys(PLAIN, 1.0), replace(MATRIX, seed=MATRIX.seed + 1))
    assert lab.main(["compare", usual, other]) == 0
    assert "same seed" not in capsys.readouterr().out


def test_what_only_one_run_has_is_named(tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(MATRIX, conditions=(MATRIX.conditions[0], fake.example_matrix(fake.PROFILES[2]).conditions[0]))
    other = replace(other, arms=(H2, H3))
    later, file = recorded(tmp_path / "later", dict.fromkeys(PLAIN, 1.0), other), tmp_path / "changes.json"
    assert lab.main(["compare", usual, later, "--json", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "of 3 comparisons by 3 metrics none got worse" in told
    assert f"only in {Path(usual).name}, so not compared: condition delay/article; protocol h1" in told
    assert f"only in {Path(later).name}, so not compared: condition loss/article" in told
    assert "matrix:" not in told, "said once"
    assert json.loads(file.read_text())["not_compared"] == [
        {"only_in": Path(usual).name, "conditions": ["delay/article"], "arms": ["h1"]},
        {"only_in": Path(later).name, "conditions": ["loss/article"], "arms": []},
    ]


def test_another_network_of_the_same_name_is_named(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = replace(fake.PROFILES[1], downlink=fake.PROFILES[2].downlink)
    other = replace(MATRIX, conditions=(MATRIX.conditions[0], replace(MATRIX.conditions[1], profile=slower)))
    assert lab.main(["compare", usual, recorded(tmp_path / "later", dict.fromkeys(PLAIN, 1.0), other)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "of the same name in both runs, but set otherwise, so not compared: condition delay/article" in told
    assert "! matrix: profiles.delay.downlink.loss: not set -> 30%" in told


def test_a_condition_that_one_run_did_not_reach_cannot_be_told(
    tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [fake.ok(trial, 1.0) for trial in fake.trials_of(replace(MATRIX, conditions=MATRIX.conditions[:1]))]
    with fake.recorded(tmp_path / "stopped", MATRIX, results) as run:
        stopped = str(run.folder)
    file = tmp_path / "changes.json"
    assert lab.main(["compare", usual, stopped, "--json", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "of 18 comparisons by 3 metrics none got worse, none got better, 9 show no change above " in told
    assert "9 are unknown." in told
    assert "unknown: 9 of 18; needs 8 blocks in each run, has 20 and 0 (delay/article)" in told
    assert lab.main(["compare", usual, stopped, "--strict"]) == 4
    counts = json.loads(file.read_text())["counts"]
    assert (counts["of"], counts["bounded"], counts["cannot_tell"]) == (18, 9, 9)
    assert sum(counts[key] for key in ("worse", "better", "likely", "bounded", "cannot_tell")) == counts["of"]


def test_blocks_of_a_pair_count_without_those_of_other_arms(tmp_path: Path, usual: str) -> None:
    """A pair with data in 20 and 1 blocks was said to have 20 and 0: a third arm had none in that block."""
    first = [trial for trial in fake.trials_of(MATRIX) if trial.block.index == 0]
    results = [
        replace(fake.ok(trial, 1.0), outcome=Outcome.INVALID, attempt=MOST_ATTEMPTS - 1) if trial.arm is H1
        else fake.ok(trial, 1.0)
        for trial in first
    ]  # fmt: skip
    file = tmp_path / "changes.json"
    with fake.recorded(tmp_path / "stopped", MATRIX, results) as run:
        assert lab.main(["compare", usual, str(run.folder), "--json", str(file)]) == 0
    found = {
        (each["candidate"], each["baseline"], each["condition"], each["metric"]): each
        for each in json.loads(file.read_text())["ratios"]
    }
    assert found["h3", "h2", first[0].block.condition.id, "total_s"]["trials"] == {"run_a": 20, "run_b": 1}
    lacking = found["h3", "h1", first[0].block.condition.id, "total_s"]
    assert (lacking["trials"], lacking["finished"]) == ({"run_a": 20, "run_b": 0}, {"run_a": 20, "run_b": 0})
    assert lacking["inconclusive"]


def test_conditions_that_one_budget_did_not_reach_are_named_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run has its blocks in another condition, and too few to compare in the rest."""
    for budget_s in (60.0, None):
        matrix = replace(MATRIX, repeat=replace(MATRIX.repeat, budget_s=budget_s))
        folders = []
        for place in range(2):
            few = [trial for trial in fake.trials_of(matrix) if trial.block.index < 9]
            results = [fake.ok(each, 1.0) for each in few if _is_reached(each, matrix.conditions[place])]
            with fake.recorded(tmp_path / f"{place}-{budget_s}", matrix, results) as run:
                folders.append(str(run.folder))
        assert lab.main(["compare", *folders]) == 0
        told = " ".join(capsys.readouterr().out.split())
        for folder, name in zip(folders, ("delay/article", "clean/article"), strict=True):
            line = (
                f"{Path(folder).name}: too few blocks in 1 of 2 conditions although the other run has enough ({name})"
            )
            assert (f"! {line}: if the budget was short, fewer conditions" in told) == bool(budget_s)


def _is_reached(trial: Trial, condition: Condition) -> bool:
    """True for the trials of a run that had time for this condition, and for a block of each other one."""
    return trial.block.condition == condition or not trial.block.index


def test_a_single_arm_is_compared_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = fake.example_matrix(*fake.PROFILES[:1], repeat=20, arms=(H3,))
    first, second = (recorded(tmp_path / name, {H3: slower}, alone) for name, slower in (("a", 1.0), ("b", 1.5)))
    assert lab.main(["compare", first, second]) == 2
    assert lab.main(["compare", first, second, "--absolute"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith(f"{Path(second).name} against {Path(first).name}: of 3 absolute values by 3 metrics 3 got")
    assert "of 0 comparisons" not in told


@pytest.mark.parametrize("options", [[], ["--absolute"]])
def test_the_file_has_the_sentences_that_were_printed(
    options: list[str], tmp_path: Path, usual: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those on absolute values were missing: a regression, and `none got worse`."""
    slow, file = recorded(tmp_path / "slow", {**dict.fromkeys(PLAIN, 2.2), H1: 2.4}), tmp_path / "changes.json"
    lab.main(["compare", usual, slow, *options, "--json", str(file)])
    told = " ".join(capsys.readouterr().out.split())
    sentences = json.loads(file.read_text())["sentences"]
    assert all(sentence in told for sentence in sentences)
    assert told.startswith(sentences[0])
    assert any("of 18 absolute values by 3 metrics 18 got worse" in each for each in sentences) == bool(options)
    assert any(each.endswith("; not counted (--absolute counts it)") for each in sentences) != bool(options)


def test_runs_without_a_common_condition_are_refused(tmp_path: Path, usual: str) -> None:
    other = recorded(tmp_path / "b", dict.fromkeys(PLAIN, 1.0), fake.example_matrix(fake.PROFILES[2], repeat=2))
    assert lab.main(["compare", usual, other]) == UsageError.exit_code == 2


def test_a_run_is_not_compared_with_itself_or_with_an_earlier_state_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reported no change, and everything as bounded."""
    whole = recorded(tmp_path / "whole", dict.fromkeys(PLAIN, 1.0))
    part = shutil.copytree(whole, tmp_path / "part")
    for other in (whole, str(part)):
        assert lab.main(["compare", other, whole]) == 2
        assert "both are the same run" in capsys.readouterr().err
