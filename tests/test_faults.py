"""The fault bench: torn journals lose nothing that was committed before, and each violation is found and printed."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.faults import summary, table
from headwind.errors import HeadwindError
from headwind.model import Outcome, Place, Result
from headwind.run.journal import JOURNAL, Run
from tests.fake import ENVIRONMENT, example_matrix, failed, ok, trials_of
from tests.faults.disk import commits, tear, tear_database
from tests.faults.document import write
from tests.faults.kinds import KINDS, kinds_of
from tests.faults.scenes import SCENES
from tests.faults.session import Broken, Hit, Session, Then, read
from tests.sizes import size

MATRIX = example_matrix(repeat=8)
RESULTS = [ok(trial, 1.0) for trial in trials_of(MATRIX)]
HIT = Hit("a kill", frozenset({"bed"}), began_at=100, ended_at=102)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose lab was killed in a trial, with all of its write-ahead log."""
    reports, copy = tmp_path_factory.mktemp("reports"), tmp_path_factory.mktemp("copy") / "run"
    with Run.create(reports, MATRIX, ENVIRONMENT) as run, run.recording():
        for number, result in enumerate(RESULTS):
            run.begin(result.trial, 0)
            if number + 1 < len(RESULTS):
                run.append(result)
        shutil.copytree(run.folder, copy)
    return copy


def copied(killed: Path, folder: Path) -> Path:
    return Path(shutil.copytree(killed, folder / killed.name))


def test_a_torn_page_of_the_journal_loses_nothing_that_was_committed_before(killed: Path, tmp_path: Path) -> None:
    for seed in range(size(20, 200)):
        place = tmp_path / str(seed)
        folder = copied(killed, place)
        whole = tear(folder, random.Random(seed), place)
        assert whole
        kept, found = read(whole), read(folder)
        assert len(kept) >= len(RESULTS) - 1
        assert found == kept, "and the torn transaction left no half of itself"
        shutil.rmtree(place)


def test_the_ends_of_transactions_are_those_of_the_log_in_use(killed: Path, tmp_path: Path) -> None:
    log = (killed / f"{JOURNAL}-wal").read_bytes()
    ends = commits(log)
    assert len(ends) > len(RESULTS)
    assert ends[-1] <= len(log)
    assert commits(log[: ends[3]] + log[:32]) == ends[:4], "frames with other salts are of an earlier log"
    assert commits(b"") == []
    shutil.copytree(killed, tmp_path / "empty")
    (tmp_path / f"empty/{JOURNAL}-wal").unlink()
    assert tear(tmp_path / "empty", random.Random(1), tmp_path) is None


def test_a_journal_that_was_cut_short_is_refused_or_whole(killed: Path, tmp_path: Path) -> None:
    for seed in range(size(10, 100)):
        folder = copied(killed, tmp_path / str(seed))
        before = read(folder)
        tear_database(folder / JOURNAL, random.Random(seed))
        try:
            assert read(folder) == before
        except HeadwindError as error:
            assert "damaged" in str(error)  # noqa: PT017 - either is right
        shutil.rmtree(folder)


class OnRecord(Session):
    def results(self) -> dict[tuple[str, int], Result]:
        return {(each.trial.id, each.attempt): each for each in self.record}

    record: list[Result]


def session_of(results: list[Result]) -> Session:
    session = OnRecord(SCENES[0], Path("/nowhere"), None, random.Random(1), lambda _: None)  # type: ignore[arg-type]
    session.record = results
    return session


def at(result: Result, started_at: float, testbed: str) -> Result:
    return replace(result, started_at=started_at, place=Place(testbed=testbed), phases_s={"client": 1.0})


def problems(session: Session) -> list[Broken]:
    session.broken.clear()
    session.check("a kill")
    return [what for _, what, _ in session.broken]


def test_a_record_that_is_gone_or_another_one_is_found() -> None:
    results = RESULTS[:6]
    session = session_of(results)
    assert problems(session) == []
    results[2] = replace(results[2], outcome=Outcome.INVALID, reason="another")
    del results[4]
    assert problems(session) == [Broken.LOST, Broken.LOST]


def test_a_result_that_counts_although_a_fault_made_it_is_found() -> None:
    condition, arm = RESULTS[0].trial.block.condition, RESULTS[0].trial.arm
    alike = [each for each in RESULTS if (each.trial.block.condition, each.trial.arm) == (condition, arm)]
    results = [at(each, 10.0, "bed") for each in alike[:4]]
    session = session_of(results)
    session.hits.append(HIT)
    assert problems(session) == []
    slow = ok(alike[4].trial, 11.0)
    results.append(at(slow, 100.5, "other"))
    assert problems(session) == [], "another testbed"
    results[-1] = at(replace(slow, attempt=1), 100.5, "bed")
    session.known.clear()
    assert problems(session) == [Broken.WRONG]
    results[-1] = at(replace(ok(alike[4].trial, 1.1), attempt=2), 100.5, "bed")
    session.known.clear()
    assert problems(session) == [], "it was hit, and is right"
    results.append(failed(alike[5].trial, 1.0, 3))
    assert problems(session) == [Broken.WRONG], "on this network nothing fails"


def test_the_tables_have_every_fault_and_every_violation(tmp_path: Path) -> None:
    session = session_of(RESULTS[:6])
    session.done = [(KINDS[0].name, Then.WENT_ON), (KINDS[0].name, Then.RESUMED), (KINDS[1].name, Then.REFUSED)]
    session.broken = [(KINDS[0].name, Broken.LEFT, "a network"), ("between faults", Broken.TRACEBACK, "...")]
    rows = list(table([session]))
    assert f"| {KINDS[0].name} | 2 | 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |" in rows
    assert "| between faults | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |" in rows
    assert rows[-1] == "| **all** | 3 | 1 | 1 | 1 | 0 | 0 | 1 | 0 | 1 | 0 |"
    assert summary([session], 120).startswith("3 faults in 2 minutes.")
    page = tmp_path / "page.md"
    begin, end = "<!-- faults: begin -->", "<!-- faults: end -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    write(page, "faults", rows)
    assert page.read_text() == "\n".join(["before", begin, "", *rows, "", end, "after", ""])
    with pytest.raises(ValueError, match="has no"):
        write(page, "endurance", rows)


def test_every_kind_of_fault_fits_a_run_and_every_run_has_faults() -> None:
    assert {kind for scene in SCENES for kind in kinds_of(scene)} == set(KINDS)
    assert all(len(kinds_of(scene)) > 5 for scene in SCENES)
