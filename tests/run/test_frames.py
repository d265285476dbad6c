"""A run as pandas tables: every attempt is there, with types and units, and they say what the report says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from headwind.model import DATA_OUTCOMES, Outcome
from headwind.report import summary_table
from headwind.run import tables
from headwind.run.data import RunData
from headwind.run.frames import RunFrames, open_run
from headwind.run.journal import JournalError, NoRunFolder
from headwind.verdicts.verdict import Verdict
from tests.fake import example_matrix, ok, recorded, trials_csv, trials_of
from tests.golden.runs import RUNS

ROOT = Path(__file__).resolve().parent.parent.parent
STORED = Path(__file__).with_name("stored")
GUIDE = (ROOT / "docs/frames.md").read_text()
FILES = (ROOT / "docs/files.md").read_text()


@pytest.fixture
def stored(tmp_path: Path) -> RunFrames:
    return open_run(shutil.copytree(STORED, tmp_path / "20261122-0039-b698"))


def frames_of(name: str, folder: Path) -> tuple[RunData, RunFrames]:
    golden = RUNS[name]()
    with recorded(folder, golden.matrix, golden.results) as run:
        return RunData.of(run), open_run(str(run.folder))


EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", GUIDE, re.DOTALL)


def test_the_guide_shows_times_of_trials_ratios_within_blocks_and_a_percentile_of_requests() -> None:
    found = [[word for word in ("total_s", "block", "quantile") if word in code] for code, _ in EXAMPLES]
    assert found == [["total_s"], ["total_s", "block"], ["quantile"]]


@pytest.mark.parametrize(("code", "shown"), EXAMPLES)
def test_a_guides_example_prints_what_the_guide_shows(code: str, shown: str, tmp_path: Path) -> None:
    assert len(code.strip().splitlines()) <= 2 + 4, "an import, and a few lines"
    assert "`PYTHONPATH=. .venv/bin/python FILE`" in GUIDE
    example = tmp_path / "example.py"  # not beside the package
    example.write_text(code)
    done = subprocess.run(
        [sys.executable, example], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    assert done.stdout == shown


def test_no_attempt_is_left_out_and_each_says_whether_it_counts(tmp_path: Path) -> None:
    data, run = frames_of("mixed", tmp_path)
    assert list(run.trials["number"]) == list(range(len(data.results)))
    assert list(run.trials["outcome"]) == [result.outcome.value for result in data.results]
    assert run.trials["latest"].sum() == len(data.latest) == len(data.results) - 1
    assert run.trials["analysed"].sum() == data.count(*DATA_OUTCOMES)
    for number, result in enumerate(data.results):
        row = run.trials.loc[number]
        assert {name: row[name] for name in result.metrics} == result.metrics, "raw, whatever came of it"


def test_columns_have_the_types_that_the_guide_names(tmp_path: Path) -> None:
    _, run = frames_of("mixed", tmp_path)
    for table, dtypes in (("trials", tables.TRIALS), ("checks", tables.CHECKS), ("verdicts", tables.VERDICTS)):
        found = getattr(run, table).dtypes.astype(str).to_dict()
        assert dtypes.items() <= found.items()
    others = run.trials.drop(columns=[*tables.TRIALS, "latest", "analysed"])
    assert set(others.dtypes.astype(str)) == {"float64", "Int64"}
    assert run.trials["requests_succeeded"].dtype == "Int64", "what is counted stays whole although some have none"
    assert run.trials["requests_succeeded"].isna().any()


@pytest.mark.parametrize("name", ["mixed", "checked", "arms"])
def test_categories_are_in_the_order_of_the_matrix(name: str, tmp_path: Path) -> None:
    data, run = frames_of(name, tmp_path)
    arms = dict.fromkeys(
        [*data.matrix.arms, *(arm for each in data.matrix.conditions for arm in data.matrix.arms_in(each))]
    )
    assert list(run.trials["profile"].cat.categories) == [each.profile.name for each in data.matrix.conditions]
    assert list(run.trials["protocol"].cat.categories) == ["h1", "h2", "h3"]
    for column in (run.trials["arm"], run.requests["arm"], run.checks["arm"], run.verdicts["candidate"]):
        assert list(column.cat.categories) == [arm.name for arm in arms]
    assert list(run.trials["outcome"].cat.categories) == list(Outcome)


def test_requests_are_those_of_the_parquet_file(stored: RunFrames) -> None:
    from headwind.report.files import write_files
    from headwind.run.journal import Run

    with Run.open(stored.folder) as run:
        write_files(run)
    file = pd.read_parquet(stored.folder / "requests.parquet")
    assert len(stored.requests) == 1800
    names = dict.fromkeys((*tables.NAMES, *tables.TEXTS), object)
    whole = file["request_bytes"].astype("Int64")
    pd.testing.assert_frame_equal(stored.requests.astype(names), file.astype(names).assign(request_bytes=whole))


def test_samples_that_are_none_are_an_error_for_people(tmp_path: Path) -> None:
    matrix = example_matrix()
    results = [ok(next(trials_of(matrix)), 1.0, samples={"samples": [1]})]
    with recorded(tmp_path, matrix, results) as run, pytest.raises(JournalError, match="are not requests"):
        _ = open_run(run.folder).requests
    with pytest.raises(NoRunFolder):
        open_run(tmp_path)


def test_each_check_is_a_row(stored: RunFrames) -> None:
    counted = stored.checks.groupby("trial", observed=True).size()
    assert len(counted) == len(stored.trials) == 9
    delays = stored.checks.query("profile == 'delay' and quantity == 'delay_s' and direction == 'uplink'")
    assert list(delays["requested"]) == [0.02] * 3
    assert list(delays["measured"]) == list(stored.trials.query("profile == 'delay'")["uplink_delay_s"])


def test_verdicts_are_those_of_the_file(tmp_path: Path) -> None:
    from headwind.report.formats.verdicts_json import verdicts_json

    data, run = frames_of("checked", tmp_path)
    file = verdicts_json(data, data.judgement)["comparisons"]
    expected = [
        (item["profile"], item["candidate"], item["baseline"], metric, told.get("verdict"), told["ratio"]["estimate"])
        for item in file
        for metric, told in item["metrics"].items()
    ]
    columns = ["profile", "candidate", "baseline", "metric", "verdict", "ratio"]
    rows = run.verdicts[columns].astype(object)
    assert [tuple(row) for row in rows.where(rows.notna(), None).to_numpy()] == expected
    assert run.verdicts["self_check"].any()
    assert not run.verdicts["judged"].all()
    assert run.verdicts["verdict"].notna().equals(run.verdicts["judged"])


def test_the_reports_table_counts_what_the_frame_counts(tmp_path: Path) -> None:
    data, run = frames_of("mixed", tmp_path)
    by_cell = run.trials.groupby(list(tables.CELL), observed=True)
    for row in summary_table(data):
        mine = by_cell.get_group((row.condition.profile.name, row.condition.workload.name, row.arm.name))
        assert row.analysed == mine["analysed"].sum()
        assert row.repeated == (~mine["latest"]).sum()
        assert row.outcomes == mine["outcome"][mine["latest"]].value_counts()[lambda count: count > 0].to_dict()


@pytest.mark.parametrize("name", ["killed-at-once", "in-progress"])
def test_a_run_that_is_not_over_has_the_same_columns(name: str, tmp_path: Path) -> None:
    data, run = frames_of(name, tmp_path)
    assert len(run.trials) == len(data.results)
    assert {*tables.TRIALS, "latest", "analysed"} <= set(run.trials)
    assert list(run.checks) == list(tables.CHECKS)
    assert list(run.verdicts) == list(tables.VERDICTS)
    assert len(pd.read_csv(StringIO(trials_csv(data.trials)))) == len(data.results), "a header at least"


def test_the_documents_describe_every_column(stored: RunFrames) -> None:
    columns = {*tables.TRIALS, "latest", "analysed", *stored.requests, *tables.CHECKS, *tables.VERDICTS}
    assert {name for name in columns if f"`{name}`" not in GUIDE + FILES} == set()


def test_the_guide_lists_every_verdict() -> None:
    """It named three of nine, with `undecided`, which a finished run does not have."""
    rows = re.findall(r"^\| (`.*?) \|", GUIDE.partition("Values of `verdict`")[2], re.MULTILINE)
    assert [name for row in rows for name in re.findall("`(.*?)`", row)] == list(Verdict)
