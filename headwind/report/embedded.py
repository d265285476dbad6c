"""The trials inside the page, for the script that shows them under the pointer and hands them out as files."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

from headwind.format import clean
from headwind.model import Result
from headwind.report.condition import ConditionView
from headwind.report.data import RunData

COLUMNS = (
    "condition", "arm", "block", "position", "attempt", "latest", "outcome", "total_s", "timeout_s", "request_p50_s",
    "request_p95_s", "ttfb_p50_s", "command",
)  # fmt: skip
METRICS = ("total_s", "timeout_s", "request_p50_s", "request_p95_s", "ttfb_p50_s")


def embedded(data: RunData, views: Sequence[ConditionView]) -> str:
    """Every attempt as base64 of gzip of JSON, the same bytes for the same run.

    The object has `trials`, an array for each of COLUMNS with a value for each attempt in the order in which they ran
    (arrays of like values compress best); and `conditions` and `commands`, texts to which those refer by number. Times
    are in seconds, to the microsecond that h2load gives.
    """
    numbers = {view.condition.id: number for number, view in enumerate(views)}
    commands: dict[str, int] = {}
    latest = {id(result) for result in data.latest}
    rows = [_row(result, numbers, commands, latest=id(result) in latest) for result in data.results]
    content = {
        "run": data.id,
        "conditions": [clean(view.condition.id) for view in views],
        "commands": [clean(command) for command in commands],
        "trials": dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(COLUMNS, ()),
    }
    text = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode("ascii")


def _row(result: Result, numbers: dict[str, int], commands: dict[str, int], *, latest: bool) -> list[Any]:
    trial = result.trial
    return [
        numbers[trial.block.condition.id], trial.arm.value, trial.block.index, trial.position, result.attempt,
        int(latest), result.outcome.value, *(_to_microsecond(result.metrics.get(metric)) for metric in METRICS),
        commands.setdefault(result.command, len(commands)),
    ]  # fmt: skip


def _to_microsecond(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
