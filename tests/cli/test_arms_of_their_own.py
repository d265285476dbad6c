"""Whole runs on a fake testbed whose arms have another number of requests than their condition."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path

import pytest

import lab
from headwind.model import Outcome, Result
from headwind.run.journal import JOURNAL, Run, _connect
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed

TIMEOUT_S = 3.0
MATRIX = """
protocols: [h1, h2]
arms:
  h1-more: {protocol: h1, requests: 4000}
  h2-few: {protocol: h2, requests: 100}
timeout: 3s
repeat: 1
seed: 7
profiles:
  loss: {downlink: {loss: 30%}}
workloads:
  small: {requests: 1000, connections: 5, streams: 5}
"""


class Stopped:
    """A run in which the client never ends by itself, as all that is stopped at the timeout."""

    def __init__(self, folder: Path) -> None:
        self.reports, self.matrix = folder / "reports", folder / "matrix.yaml"
        self.matrix.write_text(MATRIX)
        self.world = World(Sabotage(hangs=True))

    def lab(self, *arguments: str) -> int:
        return lab.main(list(arguments), fake_dependencies(lambda: fake_testbed(self.world)))

    def run(self, *arguments: str) -> int:
        return self.lab("run", str(self.matrix), "--reports", str(self.reports), *arguments)

    @property
    def folder(self) -> Path:
        """The folder of the first run."""
        return self.folders[0]

    @property
    def folders(self) -> list[Path]:
        """The run folders, in the order of the runs."""
        found = [path.parent for path in self.reports.glob("*/matrix.json")]
        return sorted(found, key=lambda folder: (folder / "matrix.json").stat().st_mtime_ns)

    @property
    def results(self) -> list[Result]:
        with Run.open(self.folder) as run:
            return run.results(samples=True)


@pytest.fixture
def stopped(tmp_path: Path, signals: None) -> Stopped:
    found = Stopped(tmp_path)
    assert found.run() == 0
    return found


def test_what_a_stopped_trial_says_is_computed_from_the_requests_of_its_own_arm(stopped: Stopped) -> None:
    asked = {"h1": 1000, "h2": 1000, "h1-more": 4000, "h2-few": 100}
    assert {result.outcome for result in stopped.results} == {Outcome.TIMEOUT}
    for result in stopped.results:
        took_s = result.samples["samples"]["request_took_s"]
        assert len(took_s) == asked[result.trial.arm.name], "all of them were answered"
        assert result.metrics["mean_done_low_s"] == pytest.approx(math.fsum(took_s) / len(took_s))
        assert result.metrics["done_all_low_s"] == pytest.approx(min(max(took_s), TIMEOUT_S), abs=1e-6)


def test_such_a_run_goes_on_and_is_reported_and_compared(stopped: Stopped) -> None:
    assert stopped.run("--resume", str(stopped.folder)) == 0
    assert stopped.lab("report", str(stopped.folder)) == 0
    assert stopped.run() == 0
    assert stopped.lab("compare", *map(str, stopped.folders)) == 0


@pytest.mark.parametrize("command", ["report", "compare", "run"])
def test_a_folder_with_a_negative_bound_is_refused_with_a_sentence(
    stopped: Stopped, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(_connect(stopped.folder / JOURNAL)) as journal:
        rows = journal.execute("SELECT sequence, record FROM attempts WHERE trial LIKE '%/h1-more'").fetchall()
        for sequence, record in rows:
            known = json.loads(record)
            known["metrics"]["mean_done_low_s"] = -0.91
            journal.execute("UPDATE attempts SET record = ? WHERE sequence = ?", (json.dumps(known), sequence))
    assert stopped.run() == 0
    first, second = map(str, stopped.folders)
    arguments = {"report": [first], "compare": [first, second], "run": ["--resume", first]}[command]
    assert stopped.lab(command, *arguments) == 1
    said = capsys.readouterr().err
    assert "the run folder is damaged" in said
    assert "#0/h1-more: a negative bound" in said
