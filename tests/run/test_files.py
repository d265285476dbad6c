"""The files of a run folder: all there, drawn from the journal alone, and described in docs/files.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from client.h2load import Output, interpret
from headwind.arm import PLAIN, Arm, Overrides, Protocol
from headwind.errors import HeadwindError, UsageError
from headwind.model import Outcome, Result
from headwind.report.certainty import Certainty
from headwind.report.files import several_path, write_files, write_page
from headwind.run.disk import draft_of, write_whole
from headwind.run.journal import JOURNAL, JournalError, Run
from headwind.run.tables import OF_A_BROWSER, write_requests
from tests.fake import PROFILES, example_matrix, lab_error, ok, ok_results, recorded, timeout, trials_of
from tests.golden.runs import RUNS

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = (ROOT / "docs/report.md").read_text()
FILES = (ROOT / "docs/files.md").read_text()
ALWAYS = {"trials.csv", "requests.parquet", "verdicts.json", "summary.md", "report.html"}
OWN = {"matrix.yaml", "matrix.json", "environment.json", "journal.sqlite", "journal.lock"}


def samples_of(case: str) -> dict[str, Any]:
    """What the client answers after a recorded run of h2load, which is what the journal keeps."""
    kept = json.loads((ROOT / "tests/golden/h2load" / f"{case}.json").read_text())
    result = (kept["result"] or {}).get("measurements")
    output = Output("\n".join(kept["stdout"]), "\n".join(kept["log"]), result)
    return interpret(output, kept["requests"], kept["started_at"])


def columns_of(result: Result) -> dict[str, Any]:
    columns = result.samples.get("samples", {})
    assert isinstance(columns, dict)
    return columns


def results_with_samples() -> list[Result]:
    """Attempts of every kind, with the samples that real clients left."""
    h1, h2, h3, again, *_ = trials_of(example_matrix())
    return [
        ok(h1, 0.4, samples=samples_of("h1")),
        timeout(h2, samples=samples_of("timeout")),
        lab_error(h3),
        ok(h3, 0.3, samples=samples_of("h3"), attempt=1),
        ok(again, 0.3, samples={}),
    ]


def packed(results: Iterable[Result], about: Mapping[str, str], **more: int) -> bytes:
    file = BytesIO()
    write_requests(file, results, about, **more)
    return file.getvalue()


def table(content: bytes) -> pa.Table:
    return parquet.read_table(BytesIO(content))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with recorded(tmp_path / "reports", example_matrix(), results_with_samples()) as run:
        yield run


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"journal.sqlite-wal", "journal.sqlite-shm"}


def test_every_file_is_there_and_drawing_again_changes_the_stamp_of_the_page_alone(run: Run) -> None:
    assert write_files(run, junit=True).id == run.id
    assert names(run.folder) == ALWAYS | {"junit.xml"} | OWN
    before = {name: (run.folder / name).read_bytes() for name in ALWAYS | {"junit.xml"}}
    write_files(run)
    after = {name: (run.folder / name).read_bytes() for name in before}
    stamp = re.compile(rb'<span id="generated">[^<]*</span>')
    for contents in (before, after):
        contents["report.html"] = stamp.sub(b"", contents["report.html"])
    assert before == after


def test_junit_is_written_on_request_and_kept_up_to_date_from_then_on(run: Run) -> None:
    write_files(run)
    assert "junit.xml" not in names(run.folder)
    (run.folder / "junit.xml").write_text("of an earlier time")
    write_files(run)
    assert (run.folder / "junit.xml").read_text().startswith("<?xml")


# requests.parquet


def test_every_finished_request_is_a_row_with_what_the_client_noted(run: Run) -> None:
    write_files(run)
    rows = table((run.folder / "requests.parquet").read_bytes()).to_pylist()
    expected = [
        {
            "trial": result.trial.id, "profile": "clean", "workload": "article", "arm": result.trial.arm.name,
            "protocol": result.trial.protocol.value, "outcome": result.outcome.value, "block": 0,
            "attempt": result.attempt, "request_start_s": start, "request_took_s": took, "request_status": status,
            **dict.fromkeys(OF_A_BROWSER),
        }
        for result in results_with_samples()
        for start, took, status in zip(
            *(columns_of(result).get(f"request_{name}", []) for name in ("start_s", "took_s", "status")), strict=True
        )
    ]  # fmt: skip
    assert rows == expected
    assert {row["outcome"] for row in rows} == {"ok", "timeout"}, "a trial that was stopped has what it had finished"


def test_the_file_says_which_run_it_is_of(run: Run) -> None:
    write_files(run)
    schema = parquet.read_schema(run.folder / "requests.parquet")
    metadata = schema.metadata
    assert str(schema.field("trial").type).startswith("dictionary<"), "a reader keeps each text once, too"
    assert metadata[b"headwind.run"] == run.id.encode()
    assert metadata[b"headwind.version"] == b"1"
    assert metadata[b"headwind.attempts"] == b"5"


def test_rows_are_the_same_in_groups_of_any_size() -> None:
    results = [ok(trial, 1.0, samples=samples_of("h2")) for trial in trials_of(example_matrix())]
    whole = packed(results, {})
    parts = packed(iter(results), {}, group_rows=25)
    assert parquet.ParquetFile(BytesIO(whole)).num_row_groups == 1
    assert parquet.ParquetFile(BytesIO(parts)).num_row_groups == 15, "45 trials of 10 requests, three in a group"
    assert table(parts).to_pylist() == table(whole).to_pylist()


def test_rows_are_written_while_results_are_still_read() -> None:
    file, sizes = BytesIO(), []

    def each() -> Iterator[Result]:
        for trial in trials_of(example_matrix()):
            sizes.append(file.tell())
            yield ok(trial, 1.0, samples=samples_of("h2"))

    write_requests(file, each(), {}, group_rows=100)
    assert len(set(sizes)) == 1 + 4, "45 trials of 10 requests: at four times while results come a group is written"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_file_that_is_written_piece_by_piece_is_whole_or_not_there(
    tmp_path: Path, error: type[BaseException]
) -> None:
    page = write_whole(tmp_path / "page", "old")

    def break_off() -> None:
        with draft_of(page) as file:
            file.write(b"half")
            assert page.read_text() == "old"
            raise error

    with pytest.raises(error):
        break_off()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    with draft_of(page) as file:
        file.write(b"new ")
        file.write(b"content")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new content"]


def test_texts_are_kept_once_whatever_the_number_of_requests() -> None:
    trial = next(trials_of(example_matrix()))
    sizes = [
        len(packed([ok(trial, 1.0, samples={"samples": {name: [value] * count for name, value in row.items()}})], {}))
        for row in ({"request_start_s": 0.5, "request_took_s": 0.25, "request_status": 200},)
        for count in (1_000, 100_000)
    ]
    assert sizes[1] - sizes[0] < 99_000 * 2 * 8, "the numbers alone would take this, the names of trials as much again"


@pytest.mark.parametrize("results", [[], [lab_error(next(trials_of(example_matrix())))]])
def test_a_run_without_requests_has_a_file_without_rows(results: list[Result]) -> None:
    empty = table(packed(results, {}))
    assert empty.num_rows == 0
    assert "request_took_s" in empty.column_names


@pytest.mark.parametrize(
    "samples",
    [
        {"request_start_s": [0.1], "request_took_s": [0.1, 0.2], "request_status": [200, 200]},
        {"request_start_s": [0.1], "request_took_s": ["soon"], "request_status": [200]},
        {"request_start_s": [0.1], "request_took_s": [0.1], "request_status": [2000000]},
        {"request_start_s": 0.1, "request_took_s": 0.1, "request_status": 200},
        [0.1, 0.2],
    ],
)
def test_samples_that_are_none_are_an_error_for_people(tmp_path: Path, samples: Any) -> None:
    matrix = example_matrix()
    results = [ok(next(trials_of(matrix)), 1.0, samples={"samples": samples})]
    with recorded(tmp_path, matrix, results) as run, pytest.raises(JournalError, match=r"requests\.parquet"):
        write_files(run)


def test_columns_that_are_too_long_and_too_short_by_turns_are_no_samples() -> None:
    first, second, *_ = trials_of(example_matrix())
    rest = {"request_took_s": [0.1], "request_status": [200]}
    results = [
        ok(trial, 1.0, samples={"samples": {"request_start_s": [0.1] * count, **rest}})
        for trial, count in ((first, 2), (second, 0))
    ]
    with pytest.raises(ValueError, match="different lengths"):
        packed(results, {})


def test_results_are_read_one_by_one(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, ok_results(matrix)[:2]) as run:
        assert list(run.each_result(samples=True)) == run.results(samples=True)
        run._connection.execute("UPDATE attempts SET samples = 'x' WHERE sequence = 2")
        reading = run.each_result(samples=True)
        assert next(reading).trial.id == "clean/article#0/h1", "the first is there before the second is looked at"
        with pytest.raises(JournalError, match="damaged"):
            next(reading)


# A page somewhere else


def test_a_page_is_put_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("an older one")
    assert write_page(path, "new") == path
    assert path.read_text() == "new"


def test_a_page_never_becomes_a_file_of_a_run(run: Run) -> None:
    for name in (JOURNAL, "matrix.yaml", "report.html", "notes.html"):
        before = (run.folder / name).read_bytes() if (run.folder / name).exists() else None
        with pytest.raises(UsageError, match="a run folder has only its own files"):
            write_page(run.folder / name, "page")
        link = run.folder.parent / "link"
        link.symlink_to(run.folder / name)
        with pytest.raises(UsageError, match="a run folder has only its own files"):
            write_page(link, "page")
        link.unlink()
        assert ((run.folder / name).read_bytes() if before is not None else None) == before


@pytest.mark.parametrize("place", ["", "none/page.html", "file/page.html", "x" * 300, "pipe"])
def test_a_place_that_cannot_be_written_is_an_error_for_people(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HeadwindError, match=re.escape(str(tmp_path / place))):
        write_page(tmp_path / place, "page")
    assert names(tmp_path) == {"file", "pipe"}


def test_a_page_of_several_runs_is_named_after_them_beside_the_first(tmp_path: Path) -> None:
    matrix = example_matrix(PROFILES[0], repeat=1)
    runs = []
    for place in ("a", "b", *"cdefgh"):
        with recorded(tmp_path / place, matrix, []) as run:
            runs.append(run)
    assert several_path(runs[:2]) == tmp_path / "a" / f"{runs[0].id}+{runs[1].id}.html"
    many, others = several_path(runs), several_path([*runs[:-1], runs[0]])
    assert re.fullmatch(rf"{runs[0].id}\+7-others-[0-9a-f]{{8}}\.html", many.name)
    assert others.name != many.name, "other runs, another file"


# docs/report.md and docs/files.md


def test_the_guide_explains_every_word() -> None:
    table = GUIDE.partition("| word | meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE) == [word.value for word in Certainty]
    for word in ("✓", "✗", "reproduced", "contradicted", "same side", "other side"):
        assert word in GUIDE


def test_every_file_column_and_outcome_is_described(run: Run) -> None:
    write_files(run, junit=True)
    for name in (names(run.folder) - OWN) | {"journal.sqlite"}:
        assert f"`{name}`" in FILES
    for name in parquet.read_schema(run.folder / "requests.parquet").names:
        assert f"`{name}`" in FILES
    for outcome in set(Outcome) - {Outcome.OK, Outcome.SKIPPED}:
        assert f"`{outcome.value}`" in FILES


def test_the_example_of_reading_requests_keeps_arms_of_a_protocol_apart(tmp_path: Path) -> None:
    bbr = Arm("h2-bbr", Protocol.H2, overrides=Overrides(congestion="bbr"))
    matrix = example_matrix(PROFILES[0], repeat=1, arms=(*PLAIN, bbr))
    (code,) = re.findall(r"```python\n(.*?)```", FILES, re.DOTALL)
    with recorded(tmp_path, matrix, [replace(r, samples=samples_of("h2")) for r in ok_results(matrix)]) as run:
        write_files(run)
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=run.folder, capture_output=True, text=True, check=True, timeout=60
        )
    assert re.findall(r"(h\S+) +0\.0", done.stdout) == ["h1", "h2", "h3", "h2-bbr"]


@pytest.mark.parametrize("name", [name for name in RUNS if name != "hostile"])
def test_every_kind_of_run_has_all_files(name: str, tmp_path: Path) -> None:
    golden = RUNS[name]()
    with recorded(tmp_path, golden.matrix, golden.results) as run:
        write_files(run, junit=True)
        assert names(run.folder) == ALWAYS | {"junit.xml"} | OWN
