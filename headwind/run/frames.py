"""A run as pandas tables, for notebooks and other programs: `open_run`. docs/frames.md describes every column."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from headwind.run import tables
from headwind.run.data import RunData
from headwind.run.journal import JournalError, Run

if TYPE_CHECKING:
    import pandas as pd


class RunFrames:
    """The tables of one run, each created on first access; changes to them do not affect the run."""

    def __init__(self, folder: Path, data: RunData) -> None:
        self.folder = folder
        self._data = data

    @cached_property
    def trials(self) -> pd.DataFrame:
        """A row for each attempt at each trial, with any outcome."""
        return self._data.trials.copy()

    @cached_property
    def requests(self) -> pd.DataFrame:
        """A row for each finished request, including those of unfinished trials. Raises JournalError."""
        try:
            with Run.open(self.folder) as run:
                return tables.requests_table(self._data.matrix, run.each_result(samples=True))
        except (ValueError, TypeError, OverflowError) as error:
            raise JournalError(f"{self.folder}: the samples of this run are not requests: {error}") from error

    @cached_property
    def checks(self) -> pd.DataFrame:
        """A row for each check of each trial: requested, configured and measured value of its network."""
        return tables.checks_table(self._data.matrix, self._data.results)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """A row for each comparison by each of its metrics."""
        return tables.verdicts_table(self._data.matrix, self._data.judgement)


def open_run(path: Path | str) -> RunFrames:
    """The run in a folder, as far as it has come. Raises NoRunFolder or JournalError."""
    folder = Path(path)
    with Run.open(folder) as run:
        return RunFrames(folder, RunData.of(run))
