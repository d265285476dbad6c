"""Whole adaptive runs on the fake testbed: as often as needed, within the budget, with the lab checking itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.clock import Clock
from headwind.model import Trial, slowed
from headwind.run.codec import State
from headwind.run.journal import Run
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed

MATRIX = """
protocols: [h1, h2, h3]
repeat: {min: 9, max: 60, budget: 1h}
lanes: 1
selfcheck: {again: [delay], slower: [delay]}
profiles:
  clean: {}
  delay: {downlink: {delay: 100ms}}
  loss: {downlink: {loss: 20%}}
workloads:
  small: {requests: 60, connections: 5, streams: 5}
"""
PAIRS = 3


class Lab:
    """The lab on a fake testbed whose clock is that of its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world = folder, World()
        self.matrix = folder / "matrix.yaml"
        self.write(MATRIX)

    def write(self, matrix: str) -> None:
        """Another matrix."""
        self.matrix.write_text(matrix)

    def run(self, *arguments: str) -> int:
        """Run it, and return the exit code."""
        clock = Clock(lambda: self.world.clock_s, self.world.wait)
        deps = fake_dependencies(lambda: fake_testbed(self.world, clock), clock=clock)
        return lab.main(["run", str(self.matrix), "--reports", str(self.folder / "reports"), *arguments], deps)

    @property
    def last(self) -> Path:
        """The newest run folder."""
        return max((self.folder / "reports").glob("*/matrix.json"), key=lambda file: file.stat().st_mtime_ns).parent

    def blocks(self) -> Counter[str]:
        """How many blocks each condition got, in whole arms."""
        with Run.open(self.last) as run:
            results = run.results()
        arms = Counter(result.trial.block.condition.id for result in results)
        sizes = {result.trial.block.condition.id: len(result.trial.block.order) for result in results}
        assert all(count % sizes[name] == 0 for name, count in arms.items()), "a block was split"
        return Counter({name: count // sizes[name] for name, count in arms.items()})

    def verdicts(self) -> dict[str, Any]:
        """What verdicts.json says."""
        found = json.loads((self.last / "verdicts.json").read_text())
        assert isinstance(found, dict)
        return found


@pytest.fixture
def fake_lab(tmp_path: Path, signals: None) -> Lab:
    return Lab(tmp_path)


def test_a_run_goes_on_until_every_comparison_is_decided(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.world.noise_ratio = 0.03
    fake_lab.write(MATRIX.replace("lanes: 1\n", ""))
    assert fake_lab.run() == 0
    assert min(fake_lab.blocks().values()) >= 9
    verdicts = fake_lab.verdicts()
    assert verdicts["undecided"] == []
    assert all(check["passed"] for check in verdicts["self_checks"])
    assert len(verdicts["comparisons"]) == 3 * PAIRS + 2
    assert "HTTP/3 is faster than both HTTP/1.1 and HTTP/2 in 2 of 3 networks" in verdicts["sentence"]
    assert verdicts["sentence"] in " ".join(capsys.readouterr().out.split()), "wrapped lines may end with a blank"


def test_the_noisier_condition_gets_more_blocks(fake_lab: Lab) -> None:
    """Protocols differ by 11 to 25 % in clean and loss, and by less than 2 % where a delay of 2 s hides that."""
    fake_lab.world.noise_ratio = 0.06
    fake_lab.write(MATRIX.replace("max: 60", "max: 30"))
    assert fake_lab.run() == 0
    assert len(set(fake_lab.blocks().values())) > 1


def test_the_budget_is_respected_and_what_is_left_open_is_said(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.world.noise_ratio = 0.2
    assert fake_lab.run("--budget", "3min") == 0
    block_s = 5 * (2.2 + 0.2) * 1.2
    assert 180 - 5 * block_s < fake_lab.world.clock_s <= 180 + block_s
    undecided = fake_lab.verdicts()["undecided"]
    assert undecided
    assert any(item["blocks"] < 60 for item in undecided)
    said = " ".join(capsys.readouterr().out.split())
    assert " of 9 comparisons are sure by at least one metric; another 3 min may make more comparisons sure in " in said
    assert said.endswith(" --budget 3min")


def test_a_budget_below_the_minimum_splits_no_block(fake_lab: Lab) -> None:
    assert fake_lab.run("--budget", "10s") == 1, "two networks were not run"
    assert sum(fake_lab.blocks().values()) < 3 * 9
    assert fake_lab.world.clock_s <= 10 + 5 * 2.5


def test_no_condition_gets_more_than_the_maximum(fake_lab: Lab) -> None:
    fake_lab.world.noise_ratio = 0.5
    fake_lab.write(MATRIX.replace("max: 60", "max: 12"))
    assert fake_lab.run() == 0
    assert set(fake_lab.blocks().values()) == {12}


def test_resume_adds_blocks_to_a_finished_run(fake_lab: Lab) -> None:
    fake_lab.world.noise_ratio = 0.4
    assert fake_lab.run("--budget", "3min") == 0
    folder, before = fake_lab.last, fake_lab.blocks()
    assert fake_lab.run("--budget", "3min", "--resume", str(folder)) == 0
    assert fake_lab.last == folder
    assert fake_lab.blocks().total() > before.total()
    with Run.open(folder) as run:
        assert run.status.state is State.FINISHED


def test_a_fixed_number_of_blocks_takes_no_budget(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.write(MATRIX.replace("{min: 9, max: 60, budget: 1h}", "2"))
    assert fake_lab.run("--budget", "1h") == 2
    assert "2 blocks" in capsys.readouterr().err
    assert fake_lab.run() == 0
    assert set(fake_lab.blocks().values()) == {2}


@pytest.mark.parametrize("budget", ["1", "5m", "0s", "soon", "-1h"])
def test_a_budget_is_a_duration(fake_lab: Lab, budget: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        fake_lab.run("--budget", budget)
    assert stopped.value.code == 2
    assert "budget" in capsys.readouterr().err


def test_a_control_that_is_not_found_is_loud(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.world.noise_ratio, fake_lab.world.sabotage = 0.01, Sabotage(deaf=True)
    fake_lab.run()
    assert "self-check FAILED: delay, h2-slower against h2" in capsys.readouterr().out
    page = (fake_lab.last / "report.html").read_text()
    assert 'role="alert">⚠ self-check FAILED: delay, h2-slower against h2' in page
    passed = {check["candidate"]: check["passed"] for check in fake_lab.verdicts()["self_checks"]}
    assert passed == {"h2-again": True, "h2-slower": False}


def test_a_difference_between_twins_is_loud(
    fake_lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if the lab treated whatever is not a plain protocol in another way."""

    def uneven(trial: Trial) -> Any:
        profile = trial.block.condition.profile
        return slowed(profile) if trial.arm.is_twin else profile

    monkeypatch.setattr(Trial, "profile", property(uneven))
    fake_lab.world.noise_ratio = 0.03
    fake_lab.run()
    assert "self-check FAILED: delay, h2-again against h2" in capsys.readouterr().out


def compared(fake_lab: Lab, first: Path, second: Path, *options: str) -> int:
    return lab.main(["compare", str(first), str(second), *options])


def test_slower_alike_is_a_regression_only_on_demand(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.world.noise_ratio = 0.03
    fake_lab.write(MATRIX.replace("{min: 9, max: 60, budget: 1h}", "15"))
    fake_lab.run()
    first = fake_lab.last
    fake_lab.run()
    second = fake_lab.last
    assert compared(fake_lab, first, second) == 0
    assert compared(fake_lab, first, first) == 2, "a run says nothing about itself"
    capsys.readouterr()
    fake_lab.world.slowness = 1.3
    fake_lab.run()
    third = fake_lab.last
    assert third not in (first, second)
    assert compared(fake_lab, second, third) == 0
    assert "the machine was 1.3 times slower" in capsys.readouterr().out
    assert compared(fake_lab, second, third, "--absolute") == 3
    assert "of 27 absolute values by 3 metrics 27 got worse" in capsys.readouterr().out
    assert compared(fake_lab, third, second, "--absolute") == 0
    assert "of 27 absolute values by 3 metrics none got worse, 27 got better" in capsys.readouterr().out


def test_what_differs_between_two_runs_is_said(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.write(MATRIX.replace("{min: 9, max: 60, budget: 1h}", "2"))
    fake_lab.run()
    first = fake_lab.last
    fake_lab.write(MATRIX.replace("{min: 9, max: 60, budget: 1h}", "3"))
    fake_lab.run()
    note = json.loads((fake_lab.last / "environment.json").read_text())
    note["host"]["kernel"] = "another"
    (fake_lab.last / "environment.json").write_text(json.dumps(note))
    assert compared(fake_lab, first, fake_lab.last) == 0
    said = capsys.readouterr().out
    assert "! matrix: repeat: 2 -> 3" in said
    assert "-> another" in said


def test_runs_without_a_common_condition_cannot_be_compared(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.write(MATRIX.replace("{min: 9, max: 60, budget: 1h}", "1"))
    fake_lab.run()
    first = fake_lab.last
    fake_lab.write(fake_lab.matrix.read_text().replace("requests: 60", "requests: 61"))
    fake_lab.run()
    assert compared(fake_lab, first, fake_lab.last) == 2
    assert "no condition in common" in capsys.readouterr().err


def test_runs_without_a_common_arm_are_distinguished_from_those_without_a_common_condition(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = "arms: {h2-one: {protocol: h2, congestion: reno}, h3-one: {protocol: h3, connections: 2}}"
    text = MATRIX.replace("{min: 9, max: 60, budget: 1h}", "1").replace("protocols: [h1, h2, h3]", arms)
    text = text.replace("selfcheck: {again: [delay], slower: [delay]}\n", "")
    fake_lab.write(text)
    fake_lab.run()
    first = fake_lab.last
    fake_lab.write(text.replace("reno", "bbr").replace("connections: 2}", "connections: 3}"))
    fake_lab.run()
    assert compared(fake_lab, first, fake_lab.last) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "no arm in common; an arm's settings and its server's image are part of it" in err
