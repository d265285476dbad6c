"""No input does more to a parser than to be refused: a few of each kind here, a million with bench/fuzz.py."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench.fuzz import fuzz
from headwind.cluster.messages import Question, from_text
from headwind.errors import HeadwindError
from headwind.matrix.complaint import MatrixError
from headwind.matrix.reader import load_matrix
from headwind.run import journal
from headwind.run.journal import JOURNAL, JournalError, Run, fits_together
from impair import wire
from tests.fuzz import guard as guards
from tests.fuzz.guard import Guard
from tests.fuzz.mutations import DEEPEST
from tests.fuzz.targets import TARGETS, Deaf, Target, read_folder
from tests.sizes import size

FEW = {"matrix.yaml, bytes": 10, "matrix.yaml, keys and values": 6, "run folders": 4}
DEEP = "[" * DEEPEST


def spin() -> None:
    while True:
        pass


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard()


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_no_input_does_more_than_to_be_refused(target: Target, guard: Guard) -> None:
    few = FEW.get(target.name, 200)
    outcome = fuzz(target, size(few, 20 * few), 1, guard)
    assert outcome.faults == []
    assert outcome.inputs == size(few, 20 * few)
    assert outcome.coverage > 0.1, "the inputs get into the parser"
    assert outcome.accepted < outcome.inputs, "some are refused"
    assert outcome.accepted or target.name in FEW, "some are right"


@pytest.mark.parametrize(
    ("act", "fault"),
    [
        (lambda: Path("/tmp/headwind-elsewhere").write_text("x"), "writes to /tmp/headwind-elsewhere"),  # noqa: S108
        (lambda: subprocess.run(["true"], check=True), "subprocess.Popen"),
        (spin, "CPU time"),
        (lambda: dict[str, int]()["nothing"], "KeyError"),
    ],
)
def test_what_an_input_must_not_do_is_found(
    act: Callable[[], object], fault: str, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "MOST_S", 0.2)
    target = Target("control", lambda _: b"", lambda *_: bool(act()), 1.0, "bench/fuzz.py")
    assert fault in "".join(fuzz(target, 1, 1, guard).faults)
    Path("/tmp/headwind-elsewhere").unlink(missing_ok=True)  # noqa: S108


def test_the_same_seed_draws_the_same_inputs() -> None:
    for target in TARGETS:
        assert target.make(Random("1")) == target.make(Random("1"))


def test_what_is_nested_too_deeply_is_refused_by_both_ends_of_every_wire() -> None:
    (answer,) = [wire.answer({}, DEEP)]
    assert isinstance(answer, dict)
    assert answer["kind"] == "RecursionError"
    Deaf()._heed(DEEP.encode())
    with pytest.raises(ValueError, match="nested too deeply"):
        from_text(Question, DEEP)


@pytest.mark.parametrize(
    ("text", "word"),
    [("times: {lte/page/ttfb_s: {h2: 1s, h3: 1s}}\n", "times"),
     ("content: " + "s" * 5000 + "\n", "not a folder")],
)  # fmt: skip
def test_mistakes_that_once_broke_their_own_explanation(tmp_path: Path, text: str, word: str) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(text)
    with pytest.raises(MatrixError, match=word):
        load_matrix(file)


def test_values_that_no_lab_writes_are_an_error_with_their_place(tmp_path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError("division by zero")

    expected = r"run: .* no lab writes.*: ZeroDivisionError: division by zero \(test_fuzz\.py, line \d+\)"
    with pytest.raises(JournalError, match=expected), fits_together(tmp_path / "run"):
        fail()


def test_a_row_with_counters_of_another_kind_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(Path(__file__).parent / "run/stored" / JOURNAL) as connection:
        (record,) = connection.execute("SELECT record FROM attempts WHERE sequence = 2").fetchone()
    connection.close()
    row = json.loads(record)
    row["counters"]["before"]["router"]["uplink"]["unverified"] = [1.5]
    assert not read_folder(b"row\0" + json.dumps(row).encode(), tmp_path)


def test_samples_that_unpack_to_more_than_any_trial_has_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_folder(b"matrix.yaml\0", tmp_path), "the control: a folder is read"
    monkeypatch.setattr(journal, "MOST_SAMPLES_BYTES", 1000)
    (folder,) = tmp_path.iterdir()
    with sqlite3.connect(folder / JOURNAL) as connection:
        connection.execute("UPDATE attempts SET samples = ?", (zlib.compress(b"[" + b"0," * 10_000),))
    connection.close()
    with Run.open(folder) as run, pytest.raises(HeadwindError, match="the samples of a trial have more than"):
        run.results(samples=True)
