"""Whole runs on several fake lanes: the same trials as on one, whatever is broken or interrupted on the way."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.model import Outcome
from headwind.run.codec import State
from headwind.run.journal import STOPPED, Run
from headwind.testbed import testbed as testbeds
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed

MATRIX = """
protocols: [h1, h2, h3]
timeout: 60s
repeat: 4
profiles:
  a: {downlink: {loss: 20%}}
  b: {downlink: {loss: 30%}}
  c: {downlink: {loss: 40%}}
workloads:
  small: {requests: 300, connections: 5, streams: 5}
lanes: 1
"""
TRIALS = 36
TRIAL_S = 0.02  # so long that lanes meet


class Beds:
    """Testbeds of the lab under test; each has its own world."""

    def __init__(self) -> None:
        self.made = 0
        self.sabotage: dict[int, Sabotage] = {}  # by the number of the testbed
        self.interrupts: set[int] = set()  # numbers of testbeds whose second client is interrupted

    @contextmanager
    def up(self) -> Iterator[testbeds.Testbed]:
        number = self.made = self.made + 1
        with fake_testbed(World(self.sabotage.get(number, Sabotage()), load=0.05)) as bed:
            run, runs = bed.client.do_run, 0  # type: ignore[attr-defined]

            def slowly(**asked: object) -> object:
                nonlocal runs
                runs += 1
                if runs == 2 and number in self.interrupts:
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(TRIAL_S)
                return run(**asked)

            bed.client.do_run = slowly  # type: ignore[attr-defined]
            yield bed


@pytest.fixture
def beds(signals: None) -> Beds:
    return Beds()


def run_lab(beds: Beds, folder: Path, *arguments: str, **deps: Any) -> int:
    (folder / "matrix.yaml").write_text(MATRIX)
    command = ["run", str(folder / "matrix.yaml"), "--reports", str(folder / "reports"), *arguments]
    return lab.main(command, fake_dependencies(beds.up, **deps))


def folder_of(reports: Path) -> Path:
    (found,) = (path.parent for path in reports.glob("reports/*/matrix.json"))
    return found


def test_three_lanes_run_the_trials_that_one_runs(beds: Beds, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    assert run_lab(beds, tmp_path / "one") == 0
    assert run_lab(beds, tmp_path / "many", "--lanes", "3") == 0
    found = {}
    for name in ("one", "many"):
        with Run.open(folder_of(tmp_path / name)) as run:
            found[name] = run.results()
    seeds = [{result.trial.id: result.trial for result in results} for results in found.values()]
    assert seeds[0] == seeds[1], "the same blocks, orders and seeds"
    assert {result.outcome for results in found.values() for result in results} == {Outcome.OK}
    assert {result.place.lane for result in found["one"]} == {1}
    assert {result.place.lane for result in found["many"]} == {1, 2, 3}
    assert any(result.place.beside for result in found["many"])
    assert not any(result.place.beside for result in found["one"])


def test_a_lane_that_breaks_is_built_again_and_all_trials_are_there(beds: Beds, tmp_path: Path) -> None:
    beds.sabotage[2] = Sabotage(dies="server", at=[1])
    assert run_lab(beds, tmp_path, "--lanes", "3") == 0
    with Run.open(folder_of(tmp_path)) as run:
        results, testbeds = run.results(), run.environment["testbeds"]
    outcomes = Counter(result.outcome for result in results)
    assert outcomes == {Outcome.OK: TRIALS, Outcome.LAB_ERROR: 1}
    (broken,) = (result.place.lane for result in results if result.outcome is Outcome.LAB_ERROR)
    assert broken in (2, 3), "they come up at the same time, so either may have the second testbed"
    assert Counter(life["lane"] for life in testbeds) == Counter((1, 2, 3, broken))
    assert {result.place.testbed for result in results} == {life["testbed"] for life in testbeds}


def test_ctrl_c_keeps_what_is_finished_on_all_lanes_and_resume_does_the_rest(beds: Beds, tmp_path: Path) -> None:
    beds.interrupts = {2}
    assert run_lab(beds, tmp_path, "--lanes", "3") == 130
    folder = folder_of(tmp_path)
    with Run.open(folder) as run:
        assert run.status.state is State.INTERRUPTED
        before = [result for result in run.results() if result.outcome is Outcome.OK]
        broken = [result for result in run.results() if result.outcome is not Outcome.OK]
    assert 0 < len(before) < TRIALS
    assert {result.reason for result in broken} <= {STOPPED}
    assert (folder / "report.html").exists()
    assert run_lab(beds, tmp_path, "--lanes", "2", "--resume", str(folder)) == 0
    with Run.open(folder) as run:
        latest = {result.trial.id: result for result in run.results()}
        assert run.status.state is State.FINISHED
    assert [result.outcome for result in latest.values()] == [Outcome.OK] * TRIALS
    done = Counter(result.trial.block.id for result in before)
    for result in before:
        is_whole = done[result.trial.block.id] == len(result.trial.block.order)
        assert (latest[result.trial.id] == result) == is_whole, "only blocks that were cut ran again, and whole"
