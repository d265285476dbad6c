"""What earlier runs noted of the bare path of the same host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwind.plan.capacity import FLOORS, Ceiling
from headwind.run import disk
from headwind.run.differences import HOST_FACTS
from headwind.run.journal import ENVIRONMENT
from impair.profile import Direction

REMEMBERED_RUNS = 10


def earlier_ceilings(reports: Path, engine: str, host: Mapping[str, Any]) -> list[Ceiling]:
    """What the newest runs in `reports` noted of the same engine on the same host."""
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
            continue  # not a run, or one from before this was measured
        if len(found) == REMEMBERED_RUNS:
            break
    return found
