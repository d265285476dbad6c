"""The run folder keeps every result, whole, through anything that happens to the lab."""

from __future__ import annotations

import json
import math
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headwind import stops
from headwind.arm import H1, H2, H3, Congestion
from headwind.model import Condition, Matrix, Outcome, Place, Repetition, Result, SelfCheck, Trial
from headwind.run.codec import State, Status, matrix_to_json
from headwind.run.data import RunData
from headwind.run.differences import differences
from headwind.run.disk import new_folder
from headwind.run.journal import ENVIRONMENT as ENVIRONMENT_FILE
from headwind.run.journal import JOURNAL, SCHEMA_VERSION, STOPPED, JournalError, NoRunFolder, ResumeRefused, Run
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Link, Loss, Profile
from tests.fake import (
    ENVIRONMENT,
    PROFILES,
    example_matrix,
    lab_error,
    ok,
    ok_results,
    recorded,
    timeout,
    trials_of,
)
from tests.sizes import size
from tests.strategies import RESULTS

ROOT = Path(__file__).resolve().parent.parent.parent


def a_run(reports: Path, matrix: Matrix | None = None) -> Run:
    return Run.create(reports, matrix or example_matrix(), ENVIRONMENT)


def test_a_new_run_holds_the_matrix_and_the_environment_as_they_were_given(tmp_path: Path) -> None:
    matrix = example_matrix(title="emoji \N{HOT BEVERAGE}", source="# ma\u00efs\nrepeat: 3\n")
    with a_run(tmp_path, matrix) as created, Run.open(created.folder) as run:
        assert run.matrix == replace(matrix, path=str(run.folder / "matrix.yaml"))
        assert (run.folder / "matrix.yaml").read_text(encoding="utf-8") == matrix.source
        assert run.environment == ENVIRONMENT
        assert run.status.state is State.RUNNING, "the lab that made it still has it"


def test_facts_that_become_known_later_are_added_to_the_environment(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        run.note_environment(engine="kernel", weather="fine")
        assert run.environment == {**ENVIRONMENT, "engine": "kernel", "weather": "fine"}


def test_the_name_of_a_run_is_the_second_of_its_start_and_four_hex_digits(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        second, digits = run.id.rsplit("-", 1)
        started_at = datetime.strptime(second, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
        assert 0 <= run.status.started_at - started_at < 30
    assert len(digits) == 4
    assert int(digits, 16) >= 0


def test_two_runs_that_draw_the_same_name_get_different_folders(tmp_path: Path) -> None:
    drawn = iter(["aaaa", "aaaa", "aaaa", "bbbb"])
    first, second = (new_folder(tmp_path, lambda _: next(drawn)) for _ in range(2))
    assert first.name.endswith("-aaaa")
    assert second.name.endswith("-bbbb")
    assert sorted(tmp_path.iterdir()) == [first, second]


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with a_run(tmp_path_factory.mktemp("reports")) as run:
        yield run


@settings(max_examples=size(40, 100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(result=RESULTS)
def test_a_result_comes_back_exactly_as_it_was(shared_run: Run, result: Result) -> None:
    shared_run._connection.execute("DELETE FROM attempts")  # reading all of them again each time takes long
    shared_run.append(result)
    assert shared_run.results(samples=True)[-1] == result
    assert shared_run.results()[-1] == replace(result, samples={})


def test_results_come_in_the_order_in_which_they_ran_and_earlier_attempts_stay(tmp_path: Path) -> None:
    first, second, *_ = trials_of(example_matrix())
    history = [lab_error(first), ok(first, 0.3, attempt=1), timeout(second), lab_error(second, attempt=1)]
    with a_run(tmp_path) as run:
        for result in history:
            run.begin(result.trial, result.attempt)
            run.append(result)
        assert run.results(samples=True) == history
        assert (run.attempts(first), run.attempts(second)) == (2, 2)


def test_a_trial_that_never_ran_needs_attempt_zero(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        assert run.attempts(next(trials_of(example_matrix()))) == 0


def test_nothing_on_record_is_written_over(tmp_path: Path) -> None:
    trial = next(trials_of(example_matrix()))
    with a_run(tmp_path) as run:
        run.append(ok(trial, 1.0))
        with pytest.raises(JournalError, match="attempt 0 of clean/article#0/h1 is already on record"):
            run.append(ok(trial, 2.0))
        with pytest.raises(JournalError, match="already on record"):
            run.begin(trial, 0)
        assert [result.metrics["total_s"] for result in run.results()] == [1.0]


def test_an_attempt_begins_once(tmp_path: Path) -> None:
    trial = next(trials_of(example_matrix()))
    with a_run(tmp_path) as run:
        run.begin(trial, 0)
        with pytest.raises(JournalError, match="already on record"):
            run.begin(trial, 0)


def test_a_trial_in_progress_is_no_result_while_the_lab_lives_and_a_lab_error_after(tmp_path: Path) -> None:
    trial = next(trials_of(example_matrix()))
    run = a_run(tmp_path)
    run.begin(trial, 0)
    with Run.open(run.folder) as reader:
        assert run.results() == reader.results() == []
        run.close()
        (result,) = reader.results()
        assert (result.outcome, result.reason, result.trial) == (Outcome.LAB_ERROR, STOPPED, trial)


VICTIM = """
import sys
from pathlib import Path
from headwind.run.journal import Run
from headwind.workloads.h2load import H2load
from tests.fake import example_matrix, ok, trials_of
matrix = example_matrix()
run = Run.create(Path(sys.argv[1]), matrix, {})
print(run.folder, flush=True)
with run.recording():
    for number, trial in enumerate(trials_of(matrix)):
        run.begin(trial, 0)
        if number == 5:
            print("ready", flush=True)
            sys.stdin.read()
        run.append(ok(trial, 0.1 + number))
        print(trial.id, flush=True)
"""


def test_a_killed_lab_loses_no_finished_trial_and_leaves_a_row_for_the_broken_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", VICTIM, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as victim:
        assert victim.stdout
        folder = Path(victim.stdout.readline().strip())
        told = []
        while (line := victim.stdout.readline().strip()) != "ready":
            assert line, "the victim died too early"
            told.append(line)
        with Run.open(folder) as watching:
            assert watching.status.state is State.RUNNING
            assert [result.trial.id for result in watching.results()] == told
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    with Run.open(folder) as run:
        assert run.status.state is State.INTERRUPTED
        *kept, broken = run.results(samples=True)
        assert [result.trial.id for result in kept] == told
        assert kept == [ok(trial, 0.1 + number) for number, trial in enumerate(trials_of(example_matrix()))][:5]
        assert (broken.outcome, broken.reason) == (Outcome.LAB_ERROR, STOPPED)
        with run.recording():
            assert run.results(samples=True) == [*kept, broken], "of the lab that is gone, not of this one"
            assert run.attempts(broken.trial) == 1
            run.begin(broken.trial, 1)
            run.append(ok(broken.trial, 9.0, attempt=1))
        assert [result.outcome for result in run.results()] == [Outcome.OK] * 5 + [Outcome.LAB_ERROR, Outcome.OK]
        (pause,) = run.environment["pauses"]
        assert broken.started_at == pause["from"] < pause["to"], "when the killed lab ended is unknown"


def test_each_time_a_run_is_resumed_its_pause_is_noted(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        with run.recording():
            pass
        assert "pauses" not in run.environment
        ends = []
        for _ in range(2):
            ends.append(run.status.ended_at)
            with run.recording():
                pass
        assert [pause["from"] for pause in run.environment["pauses"]] == ends
        assert run.status.ended_at
        assert 0 < sum(RunData.of(run).pauses_s) < run.status.ended_at - run.status.started_at


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    with a_run(tmp_path) as created, created.recording():
        pragmas = [
            created._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
        ]
        assert pragmas == [2, "wal"], "2 is FULL"


@pytest.mark.parametrize(
    ("end", "stop", "state", "reason"),
    [
        (None, "", State.FINISHED, ""),
        (KeyboardInterrupt(), "SIGINT", State.INTERRUPTED, "stopped by Ctrl-C"),
        (KeyboardInterrupt(), "SIGTERM", State.INTERRUPTED, "stopped by SIGTERM"),
        (SystemExit(143), "", State.INTERRUPTED, "stopped by Ctrl-C"),
        (ValueError("no route to the server"), "", State.FAILED, "no route to the server"),
    ],
)
def test_the_end_of_a_run_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException | None, stop: str, state: State, reason: str
) -> None:
    monkeypatch.setattr(stops._Waiting, "name", stop)
    with a_run(tmp_path) as run:
        with pytest.raises(type(end)) if end else nullcontext(), run.recording():
            if end:
                raise end
        status = run.status
        assert (status.state, status.reason) == (state, reason)
        assert status.ended_at is not None
        assert status.started_at <= status.ended_at


def test_a_run_that_goes_on_is_running_again(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, ok_results(matrix)[:4]) as run:
        started_at = run.status.started_at
        with run.recording():
            assert run.status == Status(State.RUNNING, "", started_at, None)
        again = run.status
        assert (again.state, again.started_at) == (State.FINISHED, started_at)


def test_of_two_labs_that_go_on_with_one_run_the_second_is_refused(tmp_path: Path) -> None:
    matrix = example_matrix()
    with (
        recorded(tmp_path, matrix, []) as first,
        Run.open(first.folder) as second,
        first.recording(),
        pytest.raises(ResumeRefused, match="another lab is running this run"),
        second.recording(),
    ):
        pytest.fail("two labs record one run")


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, []) as run, pytest.raises(JournalError, match="open for reading"):
        run.append(ok(next(trials_of(matrix)), 1.0))


def test_asking_whether_a_lab_lives_never_keeps_one_from_starting(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, []) as run, Run.open(run.folder) as reader:
        for _ in range(20):
            assert not reader.is_live
            with run.recording():
                assert reader.is_live


def test_asking_leaves_no_file_open(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, []) as run, Run.open(run.folder) as reader, run.recording():
        before = len(list(Path("/proc/self/fd").iterdir()))
        assert all(reader.is_live for _ in range(20))
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def ruin(folder: Path, name: str, content: bytes) -> None:
    for path in folder.glob(f"{name}*"):
        path.unlink()
    (folder / name).write_bytes(content)


def test_a_folder_that_is_no_run_is_told_apart_from_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(NoRunFolder, match="not a run folder"):
        Run.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    with a_run(tmp_path) as run:
        folder = run.folder
    (folder / JOURNAL).unlink()
    with pytest.raises(NoRunFolder, match="the results of this run are gone"):
        Run.open(folder)


@pytest.mark.parametrize("content", [b"", b"not a database at all, " * 400, b"SQLite format 3\0" + bytes(4080)])
def test_a_damaged_journal_is_an_error_for_people(tmp_path: Path, content: bytes) -> None:
    with a_run(tmp_path) as run:
        folder = run.folder
    ruin(folder, JOURNAL, content)
    with pytest.raises(JournalError, match="the run folder is damaged"):
        Run.open(folder)


def test_a_journal_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        pass
    (run.folder / f"{JOURNAL}-wal").mkdir()  # SQLite then cannot make its log there, as on a read-only disk
    with pytest.raises(JournalError, match="cannot open the journal; is the disk full or read-only"):
        Run.open(run.folder)


@pytest.mark.parametrize("column", ["record", "samples"])
def test_a_damaged_row_is_an_error_for_people(tmp_path: Path, column: str) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, ok_results(matrix)[:2]) as run:
        with sqlite3.connect(run.folder / JOURNAL) as connection:
            connection.execute(f"UPDATE attempts SET {column} = '{{\"trial\": 1'")  # noqa: S608
        connection.close()
        with pytest.raises(JournalError, match="the run folder is damaged"):
            run.results(samples=True)


@pytest.mark.parametrize("name", ["matrix.json", "environment.json"])
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b"{}"])
def test_damaged_files_are_errors_for_people(tmp_path: Path, name: str, content: bytes) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, []) as run:
        (run.folder / name).write_bytes(content)
        if (name, content) == (ENVIRONMENT_FILE, b"{}"):
            assert run.environment == {}
            return
        with pytest.raises(JournalError, match="the run folder is damaged"):
            _ = run.matrix if name == "matrix.json" else run.environment


def test_the_journal_of_a_newer_headwind_is_left_alone(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        run._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        folder = run.folder
    with pytest.raises(NoRunFolder, match="newer Headwind"):
        Run.open(folder)


@pytest.mark.parametrize(
    ("environment", "commit"), [({"host": {"commit": "543c330d0fbe"}}, "543c330d0fbe"), ({}, "the commit that made it")]
)
def test_the_journal_of_an_earlier_headwind_is_refused_with_what_to_do(
    tmp_path: Path, environment: dict[str, Any], commit: str
) -> None:
    with Run.create(tmp_path, example_matrix(), environment) as run:
        run._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
        folder = run.folder
    with pytest.raises(NoRunFolder) as refusal:
        Run.open(folder)
    assert str(refusal.value) == (
        f"{folder}: written by an earlier Headwind; run it again, or check out {commit} "
        "(host.commit in its environment.json) to read it"
    )


def test_a_folder_that_cannot_be_made_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JournalError, match="cannot create a run folder here"):
        a_run(tmp_path / "file")


def test_a_run_goes_on_when_only_comments_and_title_changed(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        changed = example_matrix(source="# tidier\n", title="a better name", path="/elsewhere/matrix.yaml")
        run.check_resumable(changed, ENVIRONMENT["images"], "uml")


def swap(matrix: Matrix, name: str, profile: Profile) -> Matrix:
    conditions = tuple(
        Condition(profile, condition.workload) if condition.profile.name == name else condition
        for condition in matrix.conditions
    )
    return replace(matrix, conditions=conditions)


THREE = example_matrix(*PROFILES[:3])


def test_the_budget_may_change_while_a_run_goes_on_and_nothing_else_of_the_repetition() -> None:
    adaptive = replace(THREE, repeat=Repetition(9, 60, budget_s=60.0), selfcheck=SelfCheck(H2, ("delay",)))

    def changes(matrix: Matrix) -> list[str]:
        return list(differences(matrix_to_json(adaptive), matrix_to_json(matrix)))

    assert changes(replace(adaptive, repeat=Repetition(9, 60, budget_s=7200.0))) == []
    assert changes(replace(adaptive, repeat=Repetition(9, 90, 0.1, 0.99))) == [
        "repeat: 9 to 60 -> 9 to 90", "repeat.margin: 5% -> 10%", "repeat.confidence: 95% -> 99%",
    ]  # fmt: skip
    assert changes(replace(adaptive, repeat=Repetition.fixed(9)))[0] == "repeat: 9 to 60 -> 9"
    assert changes(replace(adaptive, selfcheck=None)) == [
        "selfcheck.protocol: h2 -> not set", "selfcheck.again: delay -> not set",
    ]  # fmt: skip


CHANGES: list[tuple[Callable[[Matrix], Matrix], list[str]]] = [
    (
        lambda matrix: swap(matrix, "loss", Profile("loss", downlink=Link(loss=Loss(0.2)))),
        ["profiles.loss.downlink.loss: 30% -> 20%"],
    ),
    (
        lambda matrix: swap(matrix, "delay", Profile("delay", Link(delay=Delay(0.1)), Link(delay=Delay(0.0125)))),
        [
            "profiles.delay.downlink.delay: 100ms -> 12.5ms",
            "profiles.delay.downlink.jitter: 10ms -> not set",
            "profiles.delay.uplink.delay: not set -> 100ms",
        ],
    ),
    (lambda matrix: replace(matrix, repeat=Repetition.fixed(4)), ["repeat: 3 -> 4"]),
    (lambda matrix: replace(matrix, timeout_s=90.0), ["timeout: 60s -> 90s"]),
    (lambda matrix: replace(matrix, seed=8), ["seed: 7 -> 8"]),
    (lambda matrix: replace(matrix, congestion=Congestion("bbr", "cubic")), ["congestion.tcp: cubic -> bbr"]),
    (lambda matrix: replace(matrix, arms=(H1, H3)), ["protocols: h1, h2, h3 -> h1, h3"]),
    (
        lambda matrix: swap(matrix, "loss", Profile("lossy", downlink=Link(loss=Loss(0.3)))),
        [
            "profiles.loss: removed",
            "profiles.lossy: added",
        ],
    ),
    (
        lambda _: example_matrix(*PROFILES[:3], workload=H2load("article", 10_000, 100, 100)),
        ["workloads.article.requests: 1000 -> 10000"],
    ),
    (
        lambda matrix: replace(matrix, conditions=(matrix.conditions[0], matrix.conditions[2], matrix.conditions[1])),
        [
            "conditions: clean/article, delay/article, loss/article -> clean/article, loss/article, delay/article",
        ],
    ),
]


@pytest.mark.parametrize(("change", "lines"), CHANGES, ids=[lines[0] for _, lines in CHANGES])
def test_a_changed_matrix_is_refused_with_every_difference_in_its_own_words(
    tmp_path: Path, change: Callable[[Matrix], Matrix], lines: list[str]
) -> None:
    with a_run(tmp_path, THREE) as run, pytest.raises(ResumeRefused) as refusal:
        run.check_resumable(change(THREE), ENVIRONMENT["images"], "uml")
    told = [line.strip() for line in str(refusal.value).splitlines() if line.startswith("  ")]
    assert sorted(told) == sorted(f"matrix: {line}" for line in lines)


def test_changed_images_and_another_engine_are_refused_by_name(tmp_path: Path) -> None:
    with a_run(tmp_path) as run, pytest.raises(ResumeRefused) as refusal:
        run.check_resumable(example_matrix(), {**ENVIRONMENT["images"], "client": "newtag@sha256:new"}, "kernel")
    assert f"image client: {'c1' * 6}@{'c1' * 6} -> newtag@sha256:new" in str(refusal.value)
    assert "engine: uml -> kernel" in str(refusal.value)
    assert "matrix" not in str(refusal.value).splitlines()[1]
    assert refusal.value.exit_code == 2


def test_an_image_that_was_rebuilt_from_the_same_sources_is_named_with_the_command_that_restores_it(
    tmp_path: Path,
) -> None:
    tag, old, new = "ed" * 6, "17" * 32, "72" * 32
    facts = {**ENVIRONMENT, "images": {"caddy": f"{tag}@sha256:{old}", "server mine": f"my/app:1@sha256:{old}"}}
    now = {"caddy": f"{tag}@sha256:{new}", "server mine": f"my/app:1@sha256:{new}"}
    with Run.create(tmp_path, example_matrix(), facts) as run, pytest.raises(ResumeRefused) as refusal:
        run.check_resumable(example_matrix(), now, "uml")
    assert (
        f"image caddy: {tag}@{'17' * 6} -> {tag}@{'72' * 6} (rebuilt from the same sources; "
        f"`docker tag {'17' * 6} headwind-caddy:{tag}` restores the first one, unless it was removed)\n"
    ) in str(refusal.value)
    assert str(refusal.value).count("(rebuilt from") == 1, "the lab does not know the sources of the user's image"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        first = run.write("report.html", "old" * 1000)
        with first.open(encoding="utf-8") as reader:
            assert run.write("report.html", "new" * 2000) == first
            assert reader.read() == "old" * 1000, "who reads the old page keeps it"
        assert first.read_text() == "new" * 2000
        assert sorted(path.name for path in run.folder.glob(".*")) == []


@pytest.mark.parametrize("word", ["h\u00e9", "\udc80"], ids=["plain", "half of a surrogate pair"])
def test_samples_are_read_as_they_were(tmp_path: Path, word: str) -> None:
    samples = {"word": word, "columns": {"took_s": [0.1, 1e-9, math.inf, -math.inf, 3], "none": [None, True]}}
    matrix = example_matrix()
    result = replace(ok_results(matrix)[0], samples=samples)
    with recorded(tmp_path, matrix, [result]) as run:
        assert run.results(samples=True)[0].samples == samples


def test_half_of_a_surrogate_pair_is_no_reason_to_lose_a_file(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        run.write("facts.json", json.dumps({"word": "\udc80"}, ensure_ascii=False))
        assert json.loads((run.folder / "facts.json").read_text(encoding="utf-8")) == {"word": "\udc80"}


def test_the_journal_of_a_run_that_ended_can_be_copied_as_one_file(tmp_path: Path) -> None:
    matrix = example_matrix()
    results = ok_results(matrix)
    with recorded(tmp_path, matrix, results) as run:
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in (JOURNAL, "matrix.json", "matrix.yaml", "environment.json"):
            shutil.copy(run.folder / name, copy)
        with Run.open(copy) as copied:
            assert copied.results(samples=True) == results


def test_rows_are_numbered_in_the_order_in_which_trials_began(tmp_path: Path) -> None:
    matrix = example_matrix()
    with recorded(tmp_path, matrix, ok_results(matrix)) as run:
        rows = run._connection.execute("SELECT sequence, trial FROM attempts ORDER BY sequence").fetchall()
        assert [trial for _, trial in rows] == [trial.id for trial in trials_of(matrix)]
        assert all(before < after for (before, _), (after, _) in pairwise(rows))


def test_several_threads_may_write_to_one_run(tmp_path: Path) -> None:
    matrix = example_matrix(repeat=20)
    shares = [list(trials_of(matrix))[number::4] for number in range(4)]
    with a_run(tmp_path, matrix) as run, run.recording(), ThreadPoolExecutor(len(shares)) as pool:

        def write(share: list[Trial]) -> None:
            for trial in share:
                run.begin(trial, 0)
                run.append(ok(trial, 1.0))
                assert run.attempts(trial) == 1

        list(pool.map(write, shares))
        assert {result.trial.id for result in run.results()} == {trial.id for trial in trials_of(matrix)}


def test_where_a_result_was_measured_stays_with_it_if_it_is_known(tmp_path: Path) -> None:
    first, second, *_ = trials_of(example_matrix())
    place = Place("lab-1", lane=2, testbed="headwind-1-abcdef", engine="uml")
    with a_run(tmp_path) as run:
        run.append(ok(first, 1.0, place=place))
        run.append(ok(second, 1.0, place=place))
        with closing(sqlite3.connect(run.folder / JOURNAL)) as older:
            older.execute("UPDATE attempts SET record = json_remove(record, '$.place') WHERE sequence = 2")
            older.commit()
        assert [result.place for result in run.results()] == [place, Place()]
