"""A run folder that the lab wrote is read as it was: `stored/` is a smoke run of November 2026, on engine uml."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.matrix.reader import load_matrix
from headwind.model import Outcome
from headwind.proof.evidence import Evidence
from headwind.proof.trial_checks import prove
from headwind.report import RunData
from headwind.report.files import write_files
from headwind.report.html.page import REPORT
from headwind.run.codec import matrix_to_json, result_to_json
from headwind.run.journal import JOURNAL, JournalError, ResumeRefused, Run
from tests.pages import parse, words

STORED = Path(__file__).with_name("stored")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    folder = tmp_path / "20261122-0039-b698"
    shutil.copytree(STORED, folder)
    with Run.open(folder) as opened:
        yield opened


def test_every_trial_of_a_stored_run_is_read_with_its_samples(run: Run) -> None:
    results = run.results(samples=True)
    assert Counter(result.outcome for result in results) == {Outcome.OK: 9}
    assert {result.trial.block.condition.profile.name for result in results} == {"clean", "delay", "loss"}
    for result in results:
        assert result.metrics["requests_succeeded"] == 200
        assert result.proof.passed
        assert len(result.samples["samples"]["request_took_s"]) == 200


def test_what_is_read_is_written_as_it_was_stored(run: Run) -> None:
    with sqlite3.connect(run.folder / JOURNAL) as connection:
        rows = [row for (row,) in connection.execute("SELECT record FROM attempts ORDER BY sequence")]
    connection.close()
    assert [result_to_json(result) for result in run.results()] == rows
    assert matrix_to_json(run.matrix) == json.loads((STORED / "matrix.json").read_text())


def test_stored_counters_prove_today_what_they_proved_then(run: Run) -> None:
    for result in run.results():
        again = prove(result.trial.profile, Evidence.from_json(result.proof.counters))
        assert [replace(check, note="") for check in again.checks] == [
            replace(check, note="") for check in result.proof.checks
        ], "wording aside"


def test_a_stored_run_is_reported(run: Run) -> None:
    write_files(run)
    page = words(parse((run.folder / REPORT).read_text(encoding="utf-8")))
    assert "Smoke test" in page
    assert "9 of 9" in page or "9 trials" in page
    assert RunData.of(run).was_seeded


def test_a_stored_run_can_be_gone_on_with_and_what_changed_since_is_said(run: Run) -> None:
    matrix, facts = load_matrix(run.folder / "matrix.yaml"), run.environment
    run.check_resumable(matrix, facts["images"], facts["engine"], facts["host"])
    with pytest.raises(ResumeRefused, match="seed: 1 -> 2"):
        run.check_resumable(replace(matrix, seed=2), facts["images"], facts["engine"], facts["host"])


def test_a_row_that_lacks_something_says_what(run: Run) -> None:
    with sqlite3.connect(run.folder / JOURNAL) as connection:
        connection.execute("UPDATE attempts SET record = json_remove(record, '$.trial.seeds') WHERE sequence = 1")
    connection.close()
    with pytest.raises(JournalError, match=r"trial\.seeds: Field required$"):
        run.results()
