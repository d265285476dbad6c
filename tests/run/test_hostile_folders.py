"""A run folder of another person reads, writes and runs only its own files, and takes bounded time and memory."""

from __future__ import annotations

import copy
import csv
import json
import os
import re
import shutil
import sqlite3
import struct
import sys
import time
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import lab
from headwind.cli.console import PlainConsole
from headwind.cli.terminal import say
from headwind.report.files import write_files
from headwind.run import foreign
from headwind.run.earlier import earlier_ceilings
from headwind.run.journal import ENVIRONMENT, JOURNAL, JournalError, NoRunFolder, Run
from tests.pages import parse

STORED = Path(__file__).with_name("stored")
PAGE_BYTES = 4096
ESCAPES = "\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202etxt.exe\u2066\u200f\ud800"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
COMMANDS = (["report"], ["report", "{other}"], ["compare", "{other}"], ["advise"], ["published"], ["run", "--resume"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = tmp_path / "reports/20261122-0039-b698"
    shutil.copytree(STORED, copied)
    return copied


def contents(place: Path) -> dict[str, bytes]:
    """Every file in a place; links are not followed."""
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file() and not path.is_symlink()}


def refusal(folder: Path) -> str:
    """Why a folder is not opened; this takes no time."""
    start = time.process_time()
    with pytest.raises(NoRunFolder) as refused:
        Run.open(folder).close()
    assert time.process_time() - start < 5
    assert str(refused.value).startswith(f"{folder}: refused: ")
    assert "get the folder again" in str(refused.value)
    return str(refused.value)


def sql(folder: Path, *statements: str) -> None:
    """Change a journal."""
    with closing(sqlite3.connect(folder / JOURNAL)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def edit(folder: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change a JSON file, or with JOURNAL each record."""
    if name == JOURNAL:
        with closing(sqlite3.connect(folder / JOURNAL)) as connection, connection:
            for number, text in connection.execute("SELECT sequence, record FROM attempts").fetchall():
                tree = json.loads(text)
                change(tree)
                connection.execute("UPDATE attempts SET record = ? WHERE sequence = ?", (json.dumps(tree), number))
        return
    tree = json.loads((folder / name).read_text())
    change(tree)
    (folder / name).write_text(json.dumps(tree))


# Links, pipes, devices


@pytest.mark.parametrize(
    "name",
    ["matrix.json", "matrix.yaml", ENVIRONMENT, JOURNAL, f"{JOURNAL}-wal", "journal.lock", "trials.csv", "report.html",
     ".trials.csv.{pid}", "har", "har/1.har", "evidence", "evidence/1/film"],
)  # fmt: skip
def test_a_link_is_not_followed_by_any_command(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, outside, other = name.format(pid=os.getpid()), tmp_path / "outside", tmp_path / "other"
    shutil.copytree(folder, other)
    outside.mkdir()
    target = outside / "target"
    if (folder / name).exists():
        (folder / name).rename(target)
    elif name in ("har", "evidence", "evidence/1/film"):
        target.mkdir()
    else:
        target.write_text("mine")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(target)
    before = contents(tmp_path)
    for command in COMMANDS:
        assert lab.main([part.format(other=other) for part in command] + [str(folder)]) == 2
        output = capsys.readouterr()
        assert output.err == (
            f"lab.py: {folder}: refused: {name} is a symbolic link; get the folder again from where it was made\n"
        )
    assert contents(tmp_path) == before


def test_a_run_folder_may_be_named_by_a_link(folder: Path) -> None:
    link = folder.with_name("newest")
    link.symlink_to(folder)
    with Run.open(link) as run:
        assert run.count() == 9


@pytest.mark.parametrize("name", ["matrix.yaml", ENVIRONMENT, "evidence/1/trial.json", "notes"])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / name)
    assert f"{name} is neither a file nor a folder" in refusal(folder)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_folder_beside_the_own_ones_is_read_as_carefully(folder: Path, kind: str) -> None:
    found = {"engine": "uml", "host": {}, "testbed": {"ceiling": {
        direction: {"packets_per_s": 1.0, "rate_bps": 1.0, "bytes_per_s": 1.0} for direction in ("uplink", "downlink")
    }}}  # fmt: skip
    (folder / ENVIRONMENT).rename(folder.parent / "kept")
    if kind == "pipe":
        os.mkfifo(folder / ENVIRONMENT)
    else:
        (folder.parent / "kept").write_text(json.dumps(found))
        (folder / ENVIRONMENT).symlink_to(folder.parent / "kept")
    assert earlier_ceilings(folder.parent, "uml", {}) == []


# The journal


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["ALTER TABLE run RENAME TO old", f"CREATE VIEW run AS {ENDLESS} 'finished', '', max(i), 1.0 FROM n"], "old"),
        (["DROP TABLE run", f"CREATE VIEW run AS {ENDLESS} 'finished', '', max(i), 1.0 FROM n"], "view run"),
        (["CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM attempts; END"], "trigger t"),
        (["CREATE VIRTUAL TABLE words USING fts5(text)"], "table words"),
        (["ALTER TABLE run ADD COLUMN more GENERATED ALWAYS AS (hex(zeroblob(100000000)))"], "table run"),
        (["ALTER TABLE run ADD COLUMN more"], "table run"),
        (["DROP TABLE run", "CREATE TABLE run (state TEXT, reason TEXT, started REAL, ended REAL CHECK (1))"], "run"),
        (["CREATE INDEX i ON attempts (length(record))"], "index i"),
    ],
)
def test_a_journal_has_the_labs_tables_and_nothing_else(folder: Path, statements: list[str], named: str) -> None:
    sql(folder, *statements)
    assert named in refusal(folder)


def test_nothing_in_a_schema_may_call_functions(folder: Path) -> None:
    with Run.open(folder) as run:
        assert run._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert run._connection.execute("PRAGMA cell_size_check").fetchone() == (1,)
        assert run._connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == foreign.MOST_VALUE_BYTES
        if sys.version_info >= (3, 12):
            assert run._connection.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)


def rollback_journal(database: Path, victim: Path) -> bytes:
    """A journal with nothing to roll back; SQLite deletes the file that it names afterwards."""
    pages, name = database.stat().st_size // PAGE_BYTES, str(victim).encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, pages, 512, PAGE_BYTES)
    pending_page = (0x40000000 // PAGE_BYTES) + 1
    named = struct.pack(">I", pending_page) + name + struct.pack(">2I", len(name), sum(name)) + magic
    return header.ljust(512, b"\0") + named


def test_a_journal_deletes_no_file_elsewhere(folder: Path, tmp_path: Path) -> None:
    control, victim = tmp_path / "control.sqlite", tmp_path / "victim"
    for database in (control, folder / JOURNAL):
        victim.write_text("mine")
        if database == control:
            shutil.copy(folder / JOURNAL, control)
        database.with_name(f"{database.name}-journal").write_bytes(rollback_journal(database, victim))
        if database == control:
            with closing(sqlite3.connect(control)) as connection:
                connection.execute("SELECT 1 FROM run").fetchone()
            assert not victim.exists(), "the control: SQLite alone would delete it"
    assert "journal.sqlite-journal belongs to another kind of journal" in refusal(folder)
    assert victim.exists()


def test_rows_without_end_in_a_small_file_are_not_counted(folder: Path) -> None:
    """Ten levels of pages, each of which points 200 times to the next one."""
    with closing(sqlite3.connect(folder / JOURNAL)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'attempts'"
        (root,) = connection.execute(query).fetchone()
    data = bytearray((folder / JOURNAL).read_bytes())
    first, levels = len(data) // PAGE_BYTES + 1, 10
    place = slice((root - 1) * PAGE_BYTES, root * PAGE_BYTES)
    leaf = bytes(data[place])
    data[place] = pointing_to(first)
    data += b"".join(pointing_to(first + level + 1) for level in range(levels)) + leaf
    data[28:32] = struct.pack(">I", len(data) // PAGE_BYTES)
    (folder / JOURNAL).write_bytes(data)
    assert "more than 200,000 rows" in refusal(folder)


def pointing_to(page: int, times: int = 200) -> bytes:
    """An inner page of a table."""
    cell = struct.pack(">IB", page, 1)
    start = PAGE_BYTES - times * len(cell)
    header = struct.pack(">BHHHBI", 5, 0, times, start, 0, page)
    pointers = b"".join(struct.pack(">H", start + number * len(cell)) for number in range(times))
    return (header + pointers).ljust(start, b"\0") + cell * times


@pytest.mark.parametrize(("limit", "why"), [("record_bytes", "the records of all"), ("sample_bytes", "the samples of")])
def test_what_a_run_reads_of_its_journal_is_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, why: str
) -> None:
    with Run.open(folder) as run:
        run.results(samples=True)
        small = {"record_bytes": 10**9, "sample_bytes": 10**9, limit: 3000}
        monkeypatch.setattr(foreign, "Allowance", lambda whole=foreign.Allowance: whole(**small))
        with pytest.raises(JournalError, match=why):
            run.results(samples=True)
        if limit == "record_bytes":
            with pytest.raises(JournalError, match=why):
                list(run.each_numbered())


# Sizes and numbers


@pytest.mark.parametrize(
    ("name", "size"),
    [("matrix.yaml", 2 << 20), ("matrix.json", 40 << 20), (ENVIRONMENT, 40 << 20), (JOURNAL, 5 << 30),
     (f"{JOURNAL}-wal", 5 << 30), ("evidence/1/trial.json", 2 << 20), ("evidence/1/film/1.jpg", 300 << 20)],
)  # fmt: skip
def test_a_file_that_is_too_large_is_not_read(folder: Path, name: str, size: int) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    os.truncate(folder / name, size)
    assert f"{name} is too large ({size >> 20:,} MiB)" in refusal(folder)


def test_the_search_ends_in_a_folder_with_too_many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MOST_ENTRIES", 10)
    for number in range(20):
        (folder / "evidence" / str(number)).mkdir(parents=True)
    assert "more than 10 files" in refusal(folder)


def more_conditions(matrix: Any) -> None:
    matrix["conditions"] = [
        {**copy.deepcopy(matrix["conditions"][1]), "profile": {**matrix["conditions"][1]["profile"], "name": f"p{n}"}}
        for n in range(100_000)
    ]


HUGE: dict[str, tuple[str, Callable[[Any], object]]] = {
    "100,000 profiles": ("matrix.json", more_conditions),
    "arms": ("matrix.json", lambda matrix: matrix.update(protocols=["h1", "h2", "h3"] * 300)),
    "pairs": ("matrix.json", lambda matrix: matrix.update(compare=[["h1", "h2"]] * 100_000)),
    "blocks": ("matrix.json", lambda matrix: matrix.update(repeat=10**9)),
    "most blocks": ("matrix.json", lambda matrix: matrix.update(repeat={"least": 1, "most": 10**12})),
    "all blocks": ("matrix.json", lambda matrix: matrix.update(
        repeat=1000, conditions=matrix["conditions"] * 10)),
    "metrics": (JOURNAL, lambda row: row["metrics"].update({f"m{n}": 1 for n in range(10_000)})),
    "checks": (JOURNAL, lambda row: row.update(checks=row["checks"] * 5000)),
    "order": (JOURNAL, lambda row: row["trial"].update(order=["h1", "h2", "h3"] * 100)),
    "figures": (JOURNAL, lambda row: row["metrics"].update(dict.fromkeys(row["metrics"], 10**400))),
    "a moment": (JOURNAL, lambda row: row.update(started_at=1e300)),
}  # fmt: skip


@pytest.mark.parametrize("case", HUGE)
def test_more_than_any_run_has_is_an_error_in_bounded_time(
    folder: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder, *HUGE[case])
    start = time.process_time()
    assert lab.main(["report", str(folder)]) == 1
    assert time.process_time() - start < 20
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lab.py: {folder}: the run folder ")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matrix.json", lambda matrix: matrix.update(timeout_s=1e308, lanes=10**18)),
        (JOURNAL, lambda row: row["trial"].update(block=10**9, position=10**12)),
        (JOURNAL, lambda row: row["metrics"].update(dict.fromkeys(row["metrics"], 1e308))),
        (JOURNAL, lambda row: row["trial"]["condition"]["workload"].update(requests=10**12)),
    ],
)
def test_a_huge_number_is_reported_in_bounded_time(folder: Path, name: str, change: Callable[[Any], object]) -> None:
    edit(folder, name, change)
    start = time.process_time()
    assert lab.main(["report", str(folder)]) in (0, 1)
    assert time.process_time() - start < 20


def test_columns_of_many_results_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwind.run.tables.MOST_CELLS", 100)
    with Run.open(folder) as run, pytest.raises(JournalError, match="columns are more than a run has"):
        write_files(run)


EVIDENCE = {"condition": "loss/small", "arm": "h2", "outcome": "ok", "reason": "", "metrics": {}, "packets": {},
            "missed": {}, "left_out": []}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", json.dumps({**EVIDENCE, "missed": 5}), "[" * 50_000],
    ids=["a list", "nothing", "other types", "too deep"],
)
def test_hostile_evidence_is_an_error_for_people(
    folder: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "evidence/1").mkdir(parents=True)
    (folder / "evidence/1/trial.json").write_text(content)
    assert lab.main(["report", str(folder)]) == 1
    assert capsys.readouterr().err.startswith(f"lab.py: {folder}: the run folder ")


def test_names_of_evidence_are_text_and_lead_into_the_folder(folder: Path) -> None:
    place = folder / 'evidence/"onerror=alert(1) '
    place.mkdir(parents=True)
    (place / "trial.json").write_text(json.dumps({**EVIDENCE, "reason": "<script>alert(1)</script>"}))
    (place / "javascript:alert(1)<b>").write_text("")
    assert lab.main(["report", str(folder)]) == 0
    page = parse((folder / "report.html").read_text())
    links = [link.get("href", "") for link in page.iter("a")]
    assert 'evidence/"onerror=alert(1) /javascript:alert(1)<b>' in links
    assert not [link for link in links if link.startswith("javascript:")]


# What is shown


def test_a_terminal_obeys_nothing_that_a_run_folder_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = folder.with_name("run\x1b[2J\u202e")
    shutil.copytree(folder, named)
    for name in (JOURNAL, "matrix.json"):
        edit(named, name, lambda tree: rename(tree, ESCAPES.rstrip("\ud800")))  # Parquet takes no half pairs
    edit(named, JOURNAL, lambda row: row.update(reason=ESCAPES, outcome="failed"))
    sql(named, "UPDATE run SET started = 1, state = 'failed', reason = 'gone' || char(27) || '[2J' || char(8238)")
    for command in (["report", "--full", str(named)], ["report", str(named), str(folder)], ["advise", str(named)]):
        lab.main(command)
        output = capsys.readouterr()
        assert "report: " in output.out or command[0] == "advise"
        assert "\ufffd" in output.out + output.err
        assert not OBEYED.search(output.out + output.err)


def rename(tree: Any, name: str) -> None:
    conditions = [tree["trial"]["condition"]] if "trial" in tree else tree["conditions"]
    for condition in conditions:
        condition["profile"]["name"] = f"{condition['profile']['name']} {name}"


def test_an_error_obeys_nothing_either(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder, "matrix.json", lambda matrix: matrix["conditions"].append({ESCAPES: {}}))
    edit(folder, "matrix.json", lambda matrix: matrix.update(published=[{"name": ESCAPES, "rows": {ESCAPES: 1}}]))
    edit(folder, JOURNAL, lambda row: row["metrics"].update({ESCAPES: "none"}))
    assert lab.main(["report", str(folder)]) == 1
    assert not OBEYED.search(capsys.readouterr().err)


def test_all_output_is_clean_and_keeps_its_own_styles(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a\tb\n{ESCAPES}")
    shown = capsys.readouterr().out
    assert shown.startswith("a\tb\n\ufffd]0;owned\ufffd")
    assert not OBEYED.search(shown)
    screen = StringIO()
    console = PlainConsole(file=screen, force_terminal=True, color_system="standard", width=80)
    console.print(Text(f"red{ESCAPES}", style="red"))
    assert screen.getvalue().startswith("\x1b[31mred\ufffd]0;owned")
    assert not OBEYED.search(screen.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", ""))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_computes_nothing_that_a_run_folder_says(folder: Path, start: str) -> None:
    formula = f"{start}cmd|'/c calc'!A0"
    inert = f"'{formula}".replace("\r", "\n")

    def change(row: Any) -> None:
        row.update(reason=formula, command=f"x\r{formula}", warnings=[formula])
        row["metrics"][formula] = -1.5

    edit(folder, JOURNAL, change)
    with Run.open(folder) as run:
        write_files(run)
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    for row in rows:
        assert [row["reason"], row["warnings"]] == [inert] * 2
        assert row["command"] == "x\n" + formula.replace("\r", "\n"), "in the same cell"
        assert row[inert] == "-1.5", "a number stays one"
        assert formula not in row
