"""Knowledge from earlier runs in a reports folder: results of the same conditions, capacity of the same host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwind.errors import HeadwindError
from headwind.model import Matrix, Result
from headwind.plan.capacity import FLOORS, Ceiling
from headwind.run import disk
from headwind.run.differences import HOST_FACTS
from headwind.run.journal import ENVIRONMENT, Run
from impair.profile import Direction

REMEMBERED_RUNS = 10


def earlier_ceilings(reports: Path, engine: str, host: Mapping[str, Any]) -> list[Ceiling]:
    """Capacities of the unimpaired path that the newest runs in `reports` recorded, for this engine and host."""
    found: list[Ceiling] = []
    for folder in disk.newest_folders(reports):
        try:
            environment = disk.read_object(folder / ENVIRONMENT)
            ceiling = environment["testbed"]["ceiling"]
            known = environment["host"]
            if environment["engine"] == engine and all(known.get(name) == host.get(name) for name in HOST_FACTS):
                found.append(
                    {direction: {name: float(ceiling[direction][name]) for name in FLOORS} for direction in Direction}
                )
        except (OSError, ValueError, TypeError, KeyError):
            continue  # not a run, or from before this was measured
        if len(found) == REMEMBERED_RUNS:
            break
    return found


def earlier_results(matrix: Matrix, reports: Path, own: Path | None = None) -> list[Result]:
    """Results of each condition of the matrix, from the newest run in `reports` that has some; none if no run has.

    `own` is the folder of the run that asks, which does not count.
    """
    wanted, found, opened = set(matrix.conditions), list[Result](), 0
    for folder in disk.newest_folders(reports):
        if folder == own:
            continue
        if not wanted or opened == REMEMBERED_RUNS:
            break
        try:
            with Run.open(folder) as run:
                opened += 1
                shared = wanted & set(run.matrix.conditions)
                known = [result for result in run.results() if result.trial.block.condition in shared] if shared else []
        except HeadwindError:
            continue  # not a run, or unreadable: a forecast works without it
        found += known
        wanted -= {result.trial.block.condition for result in known}
    return found
