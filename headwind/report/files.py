"""All files that are generated from a run's journal, and pages written to other places.

Generating them again changes only the time in the page. docs/report.md describes each of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from headwind.errors import HeadwindError, UsageError
from headwind.report.formats.har import hars
from headwind.report.formats.junit import junit_xml
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.verdicts_json import verdicts_text
from headwind.report.html.page import REPORT, write_report
from headwind.run import disk
from headwind.run.data import RunData
from headwind.run.journal import JOURNAL, JournalError, fits_together
from headwind.run.tables import write_requests, write_trials

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwind.run.journal import Run

TRIALS, REQUESTS, VERDICTS = "trials.csv", "requests.parquet", "verdicts.json"
SUMMARY, JUNIT = "summary.md", "junit.xml"
LONGEST_NAME = 120  # characters of a file name made of several run ids


def write_files(run: Run, *, junit: bool = False) -> RunData:
    """Write all files, the page last, and return the data of the run. Raises JournalError.

    junit.xml is written if `junit` is set or an earlier one would be out of date. The samples pass through memory
    before the results of the whole run fill it.
    """
    with fits_together(run.folder):
        return _written(run, junit=junit)


def _written(run: Run, *, junit: bool) -> RunData:
    _write_requests(run)
    data = RunData.of(run)
    verdicts = data.judgement
    with run.writing(TRIALS) as file:
        write_trials(file, data.trials)
    run.write(VERDICTS, verdicts_text(data, verdicts))
    for name, archive in hars(data):
        run.write(name, archive)
    run.write(SUMMARY, summary_md(data, verdicts, REPORT))
    if junit or (run.folder / JUNIT).exists():
        run.write(JUNIT, junit_xml(data, verdicts))
    write_report(run, data)
    return data


def _write_requests(run: Run) -> None:
    about = {"run": run.id, "state": run.status.state.value, "attempts": str(run.count())}
    with run.writing(REQUESTS) as file:
        try:
            write_requests(file, run.each_result(samples=True), about)
        except (ValueError, TypeError, OverflowError) as error:
            raise JournalError(f"{run.folder}: {REQUESTS} cannot be made of these samples: {error}") from error


def write_page(path: Path, page: str) -> Path:
    """Write a page or another text to the given path, whole or not at all. Returns `path`.

    Raises UsageError if the path is not a place for a file, HeadwindError if it cannot be written.
    """
    with _writing(path):
        disk.write_whole(place_for(path), page)
    return path


def place_for(path: Path) -> Path:
    """The resolved path, at which `write_page` can write. Raises UsageError if it is not a place for a file."""
    with _writing(path):
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise UsageError(f"{path}: not a writable file; give the name of a file")
        if not target.parent.is_dir():
            raise UsageError(f"{path}: {path.parent} is not a folder")
        if (target.parent / JOURNAL).exists():
            raise UsageError(f"{path}: a run folder has only its own files; choose another folder")
        return target


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise HeadwindError with the path for an OSError inside."""
    try:
        yield
    except OSError as error:
        raise HeadwindError(f"{path}: cannot write the file here: {error.strerror or error}") from error


def several_path(runs: Sequence[Run]) -> Path:
    """Default path of a page of several runs: next to the first run's folder, named after all of them."""
    ids = [run.id for run in runs]
    name = "+".join(ids)
    if len(name) > LONGEST_NAME:
        name = f"{ids[0]}+{len(ids) - 1}-others-{sha256(name.encode()).hexdigest()[:8]}"
    return runs[0].folder.resolve().parent / f"{name}.html"
