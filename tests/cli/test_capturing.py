"""`lab.py run --capture`: extra trials whose packets and keys are kept, and which count nowhere."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import lab
from headwind.cli.capturing import chosen
from headwind.errors import UsageError
from headwind.run.captures import TRIAL
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed
from tests.matrix_files import FOUR_BLOCKS as MATRIX
from tests.matrix_files import load

TRIALS = 12
MATRIX_OF_FOUR = MATRIX.replace("lanes:", "  large: {requests: 900, connections: 5, streams: 5}\nlanes:")


class Lab:
    """The lab with a fake testbed under it and its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world, self.matrix = folder / "reports", World(), folder / "matrix.yaml"
        self.matrix.write_text(MATRIX)

    def run(self, *arguments: str) -> int:
        deps = fake_dependencies(lambda: fake_testbed(self.world))
        return lab.main(["run", str(self.matrix), "--reports", str(self.folder), *arguments], deps)

    @property
    def run_folder(self) -> Path:
        (found,) = (folder for folder in self.folder.glob("*/") if (folder / "matrix.json").exists())
        return found

    @property
    def counted(self) -> int:
        with (self.run_folder / "trials.csv").open() as file:
            return len(list(csv.reader(file))) - 1


@pytest.fixture
def fake_lab(tmp_path: Path, signals: None) -> Lab:
    return Lab(tmp_path)


def evidence_of(fake_lab: Lab) -> list[str]:
    folder = fake_lab.run_folder
    return sorted(str(path.relative_to(folder)) for path in folder.glob("evidence/*/*"))


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["loss/small"], ["loss/small"]),
        (["loss"], ["loss/small", "loss/large"]),
        (["all"], ["clean/small", "clean/large", "loss/small", "loss/large"]),
        (["loss/large", "clean/large", "loss/large"], ["loss/large", "clean/large"]),
        ([], []),
    ],
)
def test_a_condition_is_named_by_itself_or_by_its_profile(names: list[str], ids: list[str], tmp_path: Path) -> None:
    matrix = load(MATRIX_OF_FOUR, tmp_path)
    assert [each.id for each in chosen(matrix, names, None)] == ids


SWEPT = MATRIX_OF_FOUR.replace("profiles:\n", "profiles:\n  far: {both: {delay: [10ms, 20ms]}}\n", 1)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("far/small", ["far 10ms/small", "far 20ms/small"]),
        ("far 20ms", ["far 20ms/small", "far 20ms/large"]),
        ("far", ["far 10ms/small", "far 10ms/large", "far 20ms/small", "far 20ms/large"]),
    ],
)
def test_the_name_of_a_sweep_stands_for_each_of_its_networks(name: str, ids: list[str], tmp_path: Path) -> None:
    assert [each.id for each in chosen(load(SWEPT, tmp_path), [name], None)] == ids


def test_the_name_of_a_sweep_is_proposed_for_a_misspelt_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean `far`"):
        chosen(load(SWEPT, tmp_path), ["farr"], None)


def test_an_unknown_condition_is_refused_with_a_proposal_before_anything_starts(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake_lab.run("--capture", "loss/small2") == 2
    assert (
        "--capture loss/small2: the matrix has no such condition; did you mean `loss/small`" in capsys.readouterr().err
    )
    assert not fake_lab.world.order


def test_a_condition_that_the_smoke_test_leaves_out_is_not_called_unknown_to_the_matrix(tmp_path: Path) -> None:
    matrix = load(f"{MATRIX}smoke: [{{profiles: [clean]}}]\n", tmp_path)
    with pytest.raises(UsageError, match=r"--capture loss: the smoke test .key `smoke`. has no such condition; did"):
        chosen(matrix.in_short(), ["loss"], None)
    with pytest.raises(UsageError, match="--capture gone: the matrix has no such condition"):
        chosen(matrix, ["gone"], None)


def test_a_condition_for_which_no_time_was_left_is_named(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("repeat: 2", "repeat: {min: 2, max: 9}"))
    fake_lab.run("--capture", "all", "--budget", "1s")
    out = capsys.readouterr().out
    assert "not captured: loss/small, because the run ended before it was measured\n" in out


def test_captures_on_other_machines_are_refused(tmp_path: Path) -> None:
    matrix = load(MATRIX, tmp_path)
    with pytest.raises(UsageError, match="leave out --cluster"):
        chosen(matrix, ["all"], "tcp://lab:8786")
    assert chosen(matrix, [], "tcp://lab:8786") == ()


def test_a_captured_trial_is_an_extra_one_with_packets_keys_and_logs(fake_lab: Lab) -> None:
    assert fake_lab.run("--capture", "loss") == 0
    folder = fake_lab.run_folder
    assert fake_lab.counted == TRIALS, "captured trials count nowhere"
    assert fake_lab.world.runs == TRIALS + 3, "one more of each protocol, in this condition alone"
    assert evidence_of(fake_lab) == [
        f"evidence/2-loss-small-{arm}/{name}"
        for arm in ("h1", "h2", "h3")
        for name in ("client.pcapng", "keys.log", "qlog", "server.pcapng", TRIAL)
    ]
    *counted, first, second, third = [seeds for profile, seeds in fake_lab.world.applied if profile.name == "loss"]
    about = json.loads((folder / "evidence/2-loss-small-h3" / TRIAL).read_text())
    assert first == second == third == counted[0], "the seeds of the first block"
    assert (about["condition"], about["arm"], about["outcome"]) == ("loss/small", "h3", "ok")
    assert about["packets"] == {"client": 1, "server": 1}
    for end in ("client", "server"):
        content = (folder / f"evidence/2-loss-small-h3/{end}.pcapng").read_bytes()
        assert b"CLIENT_RANDOM 00 11" in content, "the keys are embedded"
        assert f"a frame at the {end}".encode() in content


def test_the_report_links_the_files_of_captured_trials_in_their_condition(fake_lab: Lab) -> None:
    assert fake_lab.run("--capture", "loss") == 0
    page = (fake_lab.run_folder / "report.html").read_text()
    assert page.count('href="evidence/2-loss-small-h3/client.pcapng"') == 1
    assert page.count("<h4>Captured trials</h4>") == 1
    assert 'class="film"' not in page, "only browsers have a window"


def test_the_report_shows_the_film_of_a_captured_page(fake_lab: Lab) -> None:
    assert fake_lab.run("--capture", "loss") == 0
    film = fake_lab.run_folder / "evidence/2-loss-small-h3/film"
    film.mkdir()
    (film / "000100.jpg").write_bytes(b"\xff\xd8\xff")
    assert lab.main(["report", str(fake_lab.run_folder)]) == 0
    page = (fake_lab.run_folder / "report.html").read_text()
    assert page.count('<img src="data:image/jpeg;base64,/9j/"') == 1
    assert "000100.jpg" not in page, "shown, and not linked"


@pytest.mark.parametrize("arguments", [(), ("--lanes", "2")])
def test_a_run_without_it_captures_nothing_and_says_nothing_of_it(fake_lab: Lab, arguments: tuple[str, ...]) -> None:
    assert fake_lab.run(*arguments) == 0
    assert not any("capture" in step or "forget_files" in step for step in fake_lab.world.order)
    assert not (fake_lab.run_folder / "evidence").exists()
    assert "Captured trials" not in (fake_lab.run_folder / "report.html").read_text()


def test_a_run_that_is_resumed_can_be_captured_without_another_counted_trial(fake_lab: Lab) -> None:
    assert fake_lab.run() == 0
    folder = fake_lab.run_folder
    assert fake_lab.run("--resume", str(folder), "--capture", "clean/small") == 0
    assert fake_lab.counted == TRIALS
    assert len(list(folder.glob("evidence/1-clean-small-*"))) == 3


@pytest.mark.parametrize("break_", [Sabotage(late=True), Sabotage(dies="client")])
def test_a_capture_that_fails_is_tried_again_then_reported_and_ends_the_run_with_1(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str], break_: Sabotage
) -> None:
    break_.at = range(TRIALS, TRIALS + 3)
    fake_lab.world.sabotage = break_
    assert fake_lab.run("--capture", "loss") == 1
    assert "the capture of loss/small#0/" in (said := capsys.readouterr().err)
    assert "failed 3 times, last with: " in said
    outcomes = [json.loads(path.read_text())["outcome"] for path in fake_lab.run_folder.glob(f"evidence/*/{TRIAL}")]
    assert sorted(outcomes)[1:] == ["ok", "ok"]
