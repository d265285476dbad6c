"""Run folders as the command line names them: by path, or by the run's id alone."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from headwind.matrix.units import harmless
from headwind.own_command import from_here
from headwind.run.journal import MATRIX_RESOLVED, NoRunFolder

USUAL = "give a folder such as reports/<run-id>"
NONE_YET = "reports/ holds no run yet: `make lab-run` makes one"
MOST_NAMED = 3
ALIKE = 0.8  # of two ids; two random ones of the same day have less in common
REPORTS = Path(__file__).resolve().parent.parent.parent / "reports"


def run_folder(name: str, reports: Path | None = None) -> Path:
    """The folder that was named, or the one of this id in `reports`. Raises NoRunFolder with near names.

    A folder that exists is returned as it is: opening it tells whether it is a run's.
    """
    folder, reports = Path(name), reports or REPORTS
    is_id = folder.name == name
    try:
        known = next((each for each in (folder, *([reports / name] if is_id else [])) if each.exists()), None)
    except (OSError, ValueError):
        return folder  # no name of a file
    if known:
        return known
    beside = reports if is_id else folder.parent
    names = (each.parent.name for each in beside.glob(f"*/{MATRIX_RESOLVED}"))
    runs = sorted(names, key=lambda each: (each[:1].isdigit(), each), reverse=True)  # one that was renamed comes last
    near = _near(folder.name, runs)
    shown = " or ".join(f"`{harmless(from_here(beside / each))}`" for each in near or runs[:1])
    hint = f"did you mean {shown}?" if near else f"the newest is {shown}" if runs else NONE_YET if is_id else USUAL
    raise NoRunFolder(f"{name}: there is no such run; {hint}")


def run_folders(names: Sequence[str], reports: Path | None = None) -> list[Path]:
    """The folder of each run that was named. Raises NoRunFolder with a line for each that does not exist."""
    found, lacking = [], []
    for name in names:
        try:
            found.append(run_folder(name, reports))
        except NoRunFolder as error:
            lacking.append(str(error))
    if lacking:
        raise NoRunFolder("\n".join(dict.fromkeys(lacking)))
    return found


def _near(name: str, runs: Sequence[str]) -> list[str]:
    """Names of runs that begin with a name, or else resemble it."""
    begun = [each for each in runs if name and each.startswith(name)]
    return (begun or get_close_matches(name, runs, MOST_NAMED, ALIKE))[:MOST_NAMED]
