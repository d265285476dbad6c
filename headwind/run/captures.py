"""Captured trials in a run folder: a folder for each, with packets, keys and logs. They are never counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from headwind.model import Condition, Matrix, Outcome, Result, Trial
from headwind.run import disk
from headwind.run.codec import validated

FOLDER = "evidence"  # in the run folder
TRIAL = "trial.json"  # written last: a folder without it is not complete
FILM = "film"  # in the folder of a page's trial: a picture of the window, whenever it changed, named by the ms
MOST_FRAMES, MOST_FRAME_BYTES = 1000, 100_000  # that are read: a run folder may come from anywhere
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")  # in a file name


@dataclass(frozen=True, slots=True)
class CapturedTrial:
    """A captured trial: its outcome, its metrics, its files with their sizes, and what they lack."""

    condition_id: str
    arm: str
    outcome: Outcome
    reason: str
    metrics: Mapping[str, float]
    packets: Mapping[str, int] = field(default_factory=dict)  # by the end of the path
    missed: Mapping[str, int] = field(default_factory=dict)  # packets for which there was no room
    left_out: tuple[str, ...] = ()  # files that were too long
    folder: str = ""  # in the run folder
    files: Mapping[str, int] = field(default_factory=dict)  # bytes, by the name in `folder`
    film: Mapping[float, bytes] = field(default_factory=dict)  # JPEG pictures, by s since the start of the navigation


_CAPTURED = TypeAdapter(CapturedTrial)


def file_stem(matrix: Matrix, condition: Condition, *words: str) -> str:
    """The start of a file name: `2-loss-page-h3`; the number is that of the condition."""
    place = matrix.conditions.index(condition) + 1
    names = (str(place), condition.profile.name, condition.workload.name, *words)
    return "-".join(_UNSAFE.sub("_", name)[:40] for name in names)


def folder_of(matrix: Matrix, trial: Trial) -> str:
    """The folder of a captured trial in the run folder."""
    return f"{FOLDER}/{file_stem(matrix, trial.block.condition, trial.arm.name)}"


def contents(
    result: Result, files: Mapping[str, bytes], packets: Mapping[str, int], missed: Mapping[str, int],
    left_out: Sequence[str],
) -> Iterator[tuple[str, bytes | str]]:  # fmt: skip
    """Name and content of each file of a captured trial, TRIAL last."""
    yield from files.items()
    about: dict[str, Any] = {
        "condition": result.trial.block.condition.id, "arm": result.trial.arm.name, "outcome": result.outcome.value,
        "reason": result.reason, "metrics": dict(result.metrics), "warnings": list(result.proof.warnings),
        "command": result.command, "started_at_s": result.started_at, "packets": dict(packets),
        "missed": dict(missed), "left_out": list(left_out),
    }  # fmt: skip
    yield TRIAL, disk.object_text(about)


def captured_trials(run_folder: Path) -> dict[tuple[str, str], CapturedTrial]:
    """The captured trials of a run, by the condition's id and the arm's name. Raises OSError or ValueError."""
    found = {}
    for path in sorted(run_folder.glob(f"{FOLDER}/*/{TRIAL}")):
        about, folder = disk.read_object(path), path.parent
        files = {str(each.relative_to(folder)): each.stat().st_size
                 for each in sorted(folder.rglob("*"))
                 if each.is_file() and each != path and each.parent != folder / FILM}  # fmt: skip
        try:
            known = {
                name: about[name] for name in ("arm", "outcome", "reason", "metrics", "packets", "missed", "left_out")
            }
            place = {"condition_id": about["condition"], "folder": f"{FOLDER}/{folder.name}"}
            trial = validated(_CAPTURED, {**known, **place, "files": files, "film": _film(folder / FILM)})
        except KeyError as error:
            raise ValueError(f"{path}: {error} is missing") from error
        found[trial.condition_id, trial.arm] = trial
    return found


def _film(folder: Path) -> dict[float, bytes]:
    """The pictures of a film by their time in s, in order. Raises OSError."""
    paths = sorted(path for path in folder.glob("*.jpg") if path.stem.isdecimal() and path.is_file())[:MOST_FRAMES]
    return {int(path.stem) / 1000: path.read_bytes() for path in paths if path.stat().st_size <= MOST_FRAME_BYTES}
