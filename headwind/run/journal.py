"""The run folder, and the only file that touches SQLite.

    reports/20261121-093512-3f0a/
        matrix.yaml        as it was given
        matrix.json        as it was resolved, SI units
        environment.json   host, programs and testbeds of the run
        journal.sqlite     every attempt at every trial, raw, committed before the next one starts
        journal.lock       held by the lab that writes
        trials.csv, requests.parquet, verdicts.json     for other programs: every attempt, request and decision
        har/*.har          page loads, for viewers of HTTP archives
        evidence/          captured trials: packets, keys, logs
        report.html, summary.md, junit.xml              for people, for a pull request, for CI on request

The folder can be read at any time, also while the lab writes.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Self

from pydantic_core import PydanticSerializationError, to_json

from headwind import stops
from headwind.errors import HeadwindError, UsageError
from headwind.model import Matrix, Outcome, Result, Trial
from headwind.run import codec, disk, foreign
from headwind.run.captures import CapturedTrial, captured_trials
from headwind.run.codec import State, Status
from headwind.run.differences import differences, setup_differences, what_changed

JOURNAL, LOCK = "journal.sqlite", "journal.lock"
MATRIX_AS_GIVEN, MATRIX_RESOLVED, ENVIRONMENT = "matrix.yaml", "matrix.json", "environment.json"
PAUSES = "pauses"  # key in a run's environment: from when to when no lab ran it, before each time it was resumed
SCHEMA_VERSION = 3  # PRAGMA user_version; raised if a run of an earlier version would be misread
DAMAGED = "the run folder is damaged"
CONTRADICTORY = "the run folder has values that no lab writes, or files that do not belong together"
UNWRITABLE = "cannot write to the journal"
UNOPENED = "cannot open the journal; is the disk full or read-only?"
NO_FAULT_OF_THE_FILE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL)
CUT_SHORT = "the lab stopped during this trial"  # the whole reason in earlier runs
STOPPED_WITH_RUN = "stopped with the run"  # the outcome of such an attempt, in words
STOPPED = f"{STOPPED_WITH_RUN}: {CUT_SHORT}"
KILLED = "the lab was killed, so no reason was recorded"
BUSY_S = 10.0  # how long to wait while another process writes
_connect = partial(sqlite3.connect, isolation_level=None, timeout=BUSY_S, check_same_thread=False)  # see Run._writing
COMPRESSION = 1  # of zlib: within a tenth of the size of level 6 for samples, in a quarter of the time
MOST_SAMPLES_BYTES = 64 << 20  # of a trial, unpacked: a million requests take half of it

_SCHEMA = f"""
BEGIN;
CREATE TABLE run (state TEXT NOT NULL, reason TEXT NOT NULL, started REAL NOT NULL, ended REAL);
CREATE TABLE attempts (
    sequence INTEGER PRIMARY KEY,  -- the order in which they began
    trial    TEXT NOT NULL,        -- profile/workload#block/protocol
    attempt  INTEGER NOT NULL,     -- 0, 1, ... of this trial
    complete INTEGER NOT NULL,     -- 0: began; the record holds if nothing more comes
    outcome  TEXT NOT NULL,
    record   TEXT NOT NULL,        -- JSON: the result without its samples
    samples  BLOB NOT NULL,        -- zlib of JSON: what the client printed
    UNIQUE (trial, attempt)
);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class JournalError(HeadwindError):
    """The journal cannot be read or written as requested."""


class NoRunFolder(UsageError):
    """The folder is not a run folder, has what no lab writes, or was written by another version of Headwind."""


class ResumeRefused(UsageError):
    """The run cannot be resumed: something changed, or another lab is running it."""


class Run:
    """A run on disk: any number of readers, one writing lab at a time, with any number of threads."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.claim = disk.Claim(folder / LOCK)
        self._connection = connection
        self._records = False  # True while results may be written
        self._writing = threading.Lock()  # SQLite lets threads read in parallel; writing threads take turns

    @classmethod
    def create(cls, reports: Path, matrix: Matrix, environment: Mapping[str, Any]) -> Run:
        """Create a folder in `reports`, named after the second (UTC) and four random hex digits, open for writing.

        `environment` is any JSON object; `check_resumable` reads its "engine" and "images". Raises JournalError.
        """
        with _explained(reports, "cannot create a run folder here"):
            folder = disk.new_folder(reports)
            run = cls(folder, _connect(folder / JOURNAL))
            run.write(MATRIX_AS_GIVEN, matrix.source)
            run.write(MATRIX_RESOLVED, disk.object_text(codec.matrix_to_json(matrix)))
            run.write(ENVIRONMENT, disk.object_text(environment))
            run._connection.execute("PRAGMA journal_mode = WAL")
            run._connection.executescript(_SCHEMA)
            run._connection.execute("INSERT INTO run VALUES (?, '', ?, NULL)", (State.RUNNING, time.time()))
            run.claim.take()
            run._begin()
            disk.sync_folder(reports)
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open the run in `folder`, for reading, or for `recording` more. Raises NoRunFolder or JournalError."""
        with _explained(folder, "cannot look for a run here"):
            for name, loss in ((MATRIX_RESOLVED, "not a run folder"), (JOURNAL, "the results of this run are gone")):
                if not (folder / name).is_file():
                    meant = (
                        folder.parent
                        if (folder.parent / MATRIX_RESOLVED).is_file()
                        else "a folder such as reports/<run-id>"
                    )
                    raise NoRunFolder(f"{folder}: {loss} (no {name}); give {meant}")
        with _explained(folder, DAMAGED):
            _refuse(folder, foreign.oddity(folder))
            address = f"{(folder / JOURNAL).resolve().as_uri()}?mode=rw"
            run = cls(folder, _connect(address, uri=True))
            try:
                _distrust(run._connection)
                run._check_version()
                _refuse(folder, run._oddity())
            except BaseException:
                run.close()
                raise
        return run

    def _check_version(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise NoRunFolder(f"{self.folder}: written by a newer Headwind; update this one")
        if 0 < version < SCHEMA_VERSION:
            made_by = self.environment.get("host", {}).get("commit") or "the commit that made it"
            advice = f"run it again, or check out {made_by} (host.commit in its {ENVIRONMENT}) to read it"
            raise NoRunFolder(f"{self.folder}: written by an earlier Headwind; {advice}")

    def _oddity(self) -> str:
        """The first thing in the journal that no lab writes; empty if there is none."""
        if others := _schema_of(self._connection) - _own_schema():
            return f"{JOURNAL} has the {' '.join(min(others)[:2])}, which is not the lab's"
        # Many pages may point to the same one: a small file then has more rows than can be counted.
        counting = "SELECT count(*) FROM (SELECT 1 FROM attempts NOT INDEXED LIMIT ?)"
        (attempts,) = self._connection.execute(counting, (foreign.MOST_ATTEMPTS + 1,)).fetchone()
        return f"{JOURNAL} has more than {foreign.MOST_ATTEMPTS:,} rows" if attempts > foreign.MOST_ATTEMPTS else ""

    @contextmanager
    def claimed(self) -> Iterator[Run]:
        """Keep other labs out of the folder for the code inside, also after a `recording` in it.

        Raises ResumeRefused.
        """
        with self.claim.keeps() as is_ours:
            if not is_ours:
                raise ResumeRefused(f"{self.folder}: another lab is running this run; wait for it, or stop it")
            yield self

    @contextmanager
    def recording(self) -> Iterator[Run]:
        """Allow this Run to write for the code inside; on exit it records how the run ended.

        Raises ResumeRefused if another lab is running it. For a resumed run, call `check_resumable` first; the pause
        before it is noted.
        """
        with self.claimed():
            if not self._records:
                pause = {"from": self._last_seen_s(), "to": time.time()}
                self.note_environment(**{PAUSES: [*self.environment.get(PAUSES, ()), pause]})
            self._begin()
            try:
                yield self
            except (KeyboardInterrupt, SystemExit):
                self._finish(State.INTERRUPTED, stops.cause())
                raise
            except BaseException as error:
                self._finish(State.FAILED, str(error) or type(error).__name__)
                raise
            else:
                self._finish(State.FINISHED)

    def _last_seen_s(self) -> float:
        """The end of the run; if its lab was killed, the start of its last attempt. In seconds since the epoch."""
        with _explained(self.folder, DAMAGED):
            started_s, ended_s = self._connection.execute("SELECT started, ended FROM run").fetchone()
            last = self._connection.execute("SELECT record FROM attempts ORDER BY sequence DESC LIMIT 1").fetchone()
            begun_s = codec.result_from_json(last[0], {}).started_at if last else 0.0
            return float(max(started_s, begun_s) if ended_s is None else ended_s)

    def _begin(self) -> None:
        with _explained(self.folder, UNWRITABLE):
            # FULL: each commit ends with an fsync of the write-ahead log; NORMAL leaves that to checkpoints.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("UPDATE run SET state = ?, reason = '', ended = NULL", (State.RUNNING,))
            self._connection.execute("UPDATE attempts SET complete = 1")  # started attempts are over: their lab is gone
        self._records = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the journal and the lock. A run that was not finished then reads as interrupted."""
        self._connection.close()
        self.claim.drop()

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.resolve().name

    @property
    def matrix(self) -> Matrix:
        """The matrix as resolved, with its original text."""
        path = self.folder / MATRIX_AS_GIVEN
        with _explained(self.folder, DAMAGED):
            return codec.matrix_from_json(self._json(MATRIX_RESOLVED), path.read_text(encoding="utf-8"), str(path))

    @property
    def environment(self) -> dict[str, Any]:
        """The recorded host, programs and testbeds of the run."""
        return self._json(ENVIRONMENT)

    def note_environment(self, **more: Any) -> None:
        """Add or update facts of the environment."""
        self.write(ENVIRONMENT, disk.object_text({**self.environment, **more}))

    @property
    def status(self) -> Status:
        """The state of the run so far. A lab that was killed leaves it interrupted."""
        with _explained(self.folder, DAMAGED):
            state, reason, *times = self._connection.execute("SELECT * FROM run").fetchone()
            started_at, ended_at = (None if time_s is None else float(time_s) for time_s in times)
            recorded, is_live = Status(State(state), str(reason), started_at or 0.0, ended_at), self.is_live
        if is_live:
            return replace(recorded, state=State.RUNNING, reason="", ended_at=None)
        if recorded.state is State.RUNNING:
            return replace(recorded, state=State.INTERRUPTED, reason=KILLED, ended_at=None)
        return recorded

    @property
    def is_live(self) -> bool:
        """True if a lab, this one or another, may still add results to the run."""
        return self._records or (self.claim.descriptor is None and self.claim.is_taken)

    def begin(self, trial: Trial, attempt: int) -> None:
        """Record that an attempt starts. If nothing follows, it reads as a lab error: the lab was killed in it.

        Raises JournalError if the attempt is already on record.
        """
        self._put(Result(trial, Outcome.LAB_ERROR, STOPPED, attempt=attempt, started_at=time.time()), complete=False)

    def append(self, result: Result) -> None:
        """Store a result: when this returns, it survives the death of the lab and of the machine.

        Raises JournalError if the attempt already has a result; nothing on record is ever overwritten.
        """
        self._put(result, complete=True)

    def _put(self, result: Result, *, complete: bool) -> None:
        row = codec.result_to_json(result)
        samples = _packed(dict(result.samples))
        with _explained(self.folder, UNWRITABLE), self._writing:
            if not self._records:
                raise JournalError(f"{self.folder}: this run is open for reading; results are kept inside `recording`")
            # One statement, so one transaction: a Ctrl-C comes before it or after it.
            written = self._connection.execute(
                "INSERT INTO attempts (trial, attempt, complete, outcome, record, samples) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (trial, attempt) DO UPDATE SET complete = 1, outcome = excluded.outcome, "
                "record = excluded.record, samples = excluded.samples WHERE NOT complete AND excluded.complete",
                (result.trial.id, result.attempt, complete, result.outcome, row, samples),
            )
        if written.rowcount != 1:
            raise JournalError(f"{self.folder}: attempt {result.attempt} of {result.trial.id} is already on record")

    def results(self, *, samples: bool = False) -> list[Result]:
        """Every attempt, in the order in which they began; without `samples`, these stay on disk (much faster).

        An attempt in progress is not among them.
        """
        return list(self.each_result(samples=samples))

    def each_result(self, *, samples: bool = False) -> Iterator[Result]:
        """Like `results`, one by one: the samples of a long run need not fit into memory."""
        query = "SELECT record, CASE WHEN ? THEN samples END FROM attempts WHERE complete OR NOT ? ORDER BY sequence"
        with _explained(self.folder, DAMAGED):
            left = foreign.Allowance()
            for row, packed in self._connection.execute(query, (samples, self.is_live)):
                left.take(row)
                unpacked = _unpacked(packed, left) if packed else {}
                yield codec.result_from_json(row, unpacked)

    def count(self) -> int:
        """The number of attempts that `results` returns."""
        with _explained(self.folder, DAMAGED):
            query = "SELECT count(*) FROM attempts WHERE complete OR NOT ?"
            return int(self._connection.execute(query, (self.is_live,)).fetchone()[0])

    def each_numbered(self, known: Collection[int] = ()) -> Iterator[tuple[int, Result]]:
        """Like `each_result`, without the `known` ones, each with its number: attempts are numbered as they begin."""
        with _explained(self.folder, DAMAGED):
            rows = self._connection.execute(
                "SELECT sequence FROM attempts WHERE complete OR NOT ? ORDER BY sequence", (self.is_live,)
            )
            left = foreign.Allowance()
            for number in [number for (number,) in rows if number not in known]:
                (row,) = self._connection.execute(
                    "SELECT record FROM attempts WHERE sequence = ?", (number,)
                ).fetchone()
                left.take(row)
                yield number, codec.result_from_json(row, {})

    def samples(self, number: int) -> dict[str, Any]:
        """The samples of the attempt with this number, one that `each_numbered` gave."""
        with _explained(self.folder, DAMAGED):
            query = "SELECT samples FROM attempts WHERE sequence = ?"
            (packed,) = self._connection.execute(query, (number,)).fetchone()
            found: dict[str, Any] = _unpacked(packed) if packed else {}
            return found

    def attempts(self, trial: Trial) -> int:
        """Number of attempts at a trial on record, which is the number of the next one."""
        with _explained(self.folder, DAMAGED):
            row = self._connection.execute("SELECT max(attempt) + 1 FROM attempts WHERE trial = ?", (trial.id,))
            return int(row.fetchone()[0] or 0)

    def _finish(self, state: State, reason: str = "") -> None:
        """Record how the run ended; it then takes no more results, and can still be read."""
        self._records = False
        with _explained(self.folder, UNWRITABLE), self._writing:
            self._connection.execute("UPDATE run SET state = ?, reason = ?, ended = ?", (state, reason, time.time()))
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the file is then whole without its log

    def check_resumable(
        self, matrix: Matrix, images: Mapping[str, str], engine: str, host: Mapping[str, Any] | None = None
    ) -> None:
        """Raise ResumeRefused, naming every difference, unless this run can be resumed as it began."""
        if not self._records and self.is_live:
            raise ResumeRefused(f"{self.folder}: another lab is running this run; wait for it, or stop it")
        ours = list(differences(self._json(MATRIX_RESOLVED), codec.matrix_to_json(matrix)))
        changes = list(setup_differences(self.environment, images, engine, host or {}))
        if ours or changes:
            files = (matrix.path or "the matrix", str(self.folder / MATRIX_AS_GIVEN))
            raise ResumeRefused(f"{self.folder}: cannot resume this run: {what_changed(files, ours, changes)}")

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file into the folder, whole or not at all: a reader never sees half of it. Returns its path.

        `name` may begin with those of folders in it, which are created.
        """
        path = self.folder / name
        with _explained(self.folder, f"cannot write {name}"):
            if path.parent != self.folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            return disk.write_whole(path, content)

    @property
    def captured(self) -> dict[tuple[str, str], CapturedTrial]:
        """The captured trials, by the condition's id and the arm's name."""
        with _explained(self.folder, DAMAGED):
            return captured_trials(self.folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Like `write`, for a file that is written piece by piece."""
        with _explained(self.folder, f"cannot write {name}"), disk.draft_of(self.folder / name) as file:
            yield file

    def _json(self, name: str) -> dict[str, Any]:
        with _explained(self.folder, DAMAGED):
            return disk.read_object(self.folder / name)


def _refuse(folder: Path, oddity: str) -> None:
    if oddity:
        raise NoRunFolder(f"{folder}: refused: {oddity}; get the folder again from where it was made")


def _distrust(connection: sqlite3.Connection) -> None:
    """Let nothing in the file run code, and no damage take much memory, as the manual of SQLite advises."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, foreign.MOST_VALUE_BYTES)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _schema_of(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Kind, name and definition of all that a database has; its tables' definitions without comments and layout."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 100")
    return {(kind, name, " ".join(re.sub("--.*", "", sql or "").split())) for kind, name, sql in found}


@cache
def _own_schema() -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(_SCHEMA)
        return _schema_of(own)


def _packed(samples: Mapping[str, Any]) -> bytes:
    """Samples as compressed JSON, with `Infinity` and `NaN`, in a fifth of the time of json.dumps."""
    try:
        text = to_json(samples, inf_nan_mode="constants")
    except PydanticSerializationError:  # half a surrogate pair
        text = json.dumps(samples).encode()
    return zlib.compress(text, COMPRESSION)


def _unpacked(packed: bytes, left: foreign.Allowance | None = None) -> dict[str, Any]:
    """The samples of a row. Raises ValueError if they are larger than any that the lab writes, zlib.error."""
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(packed, MOST_SAMPLES_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError(f"the samples of a trial have more than {MOST_SAMPLES_BYTES >> 20} MiB")
    if left:
        left.take_samples(text)
    found: dict[str, Any] = json.loads(text)
    return found


@contextmanager
def fits_together(*folders: Path) -> Iterator[None]:
    """Turn errors that contradictory or impossible values of a run folder cause into a JournalError with their place.

    Each file of a folder is checked when it is read. That all of them belong together shows when they are used.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        names, place = ", ".join(map(str, folders)), f"{Path(where.filename).name}, line {where.lineno}"
        raise JournalError(f"{names}: {CONTRADICTORY}: {type(error).__name__}: {error} ({place})") from error


@contextmanager
def _explained(folder: Path, trouble: str) -> Iterator[None]:
    """Turn errors of the disk, SQLite and the parsers into a JournalError."""
    try:
        yield
    except (OSError, sqlite3.Error, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        if trouble == DAMAGED and getattr(error, "sqlite_errorcode", 0) & 0xFF in NO_FAULT_OF_THE_FILE:
            trouble = UNOPENED
        raise JournalError(f"{folder}: {trouble}: {type(error).__name__}: {error}") from error
