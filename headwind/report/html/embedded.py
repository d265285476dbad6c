"""The trials inside the page, for the script that shows them under the pointer and exports them as files."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

from headwind.format import clean
from headwind.metric import Metric
from headwind.model import Result
from headwind.report.condition import ConditionView
from headwind.run.data import RunData

ABOUT = ("condition", "arm", "block", "position", "attempt", "latest", "outcome")
STOPPED = "timeout_s"  # time at which a trial was stopped
DIGITS = 5  # significant digits of a metric: a hundred times finer than the page shows


def embedded(data: RunData, views: Sequence[ConditionView]) -> str:
    """Every attempt as base64 of gzip of JSON, the same bytes for the same run.

    The object has `trials`, an array for each column with a value for each attempt in the order in which they ran
    (arrays of similar values compress best); `conditions` and `commands`, texts that the trials reference by number;
    and `metrics`, those shown of a trial, by condition, the primary metric first. All are in SI units, with DIGITS
    significant digits: trials.csv has them as they were measured.
    """
    metrics = tuple(dict.fromkeys(metric for view in views for metric in _shown(view)))
    columns = (*ABOUT, *(metric.key for metric in metrics), STOPPED, "command")
    numbers = {view.condition.id: number for number, view in enumerate(views)}
    commands: dict[str, int] = {}
    latest = {id(result) for result in data.latest}
    rows = [_row(result, metrics, numbers, commands, latest=id(result) in latest) for result in data.results]
    content = {
        "run": data.id,
        "conditions": [clean(view.condition.id) for view in views],
        "commands": [clean(command) for command in commands],
        "metrics": [[_about(metric) for metric in _shown(view)] for view in views],
        "trials": dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(columns, ()),
    }
    text = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), 7, mtime=0)).decode("ascii")


def _shown(view: ConditionView) -> tuple[Metric, ...]:
    return (view.condition.workload.primary(), *view.inside)


def _about(metric: Metric) -> dict[str, str]:
    return {"key": metric.key, "heading": metric.heading, "unit": metric.unit}


def _row(
    result: Result, metrics: Sequence[Metric], numbers: dict[str, int], commands: dict[str, int], *, latest: bool
) -> list[Any]:
    trial = result.trial
    return [
        numbers[trial.block.condition.id], trial.arm.name, trial.block.index, trial.position, result.attempt,
        int(latest), result.outcome.value, *(_short(result.metrics.get(metric.key)) for metric in metrics),
        _short(result.metrics.get(STOPPED)),
        commands.setdefault(result.command, len(commands)),
    ]  # fmt: skip


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
