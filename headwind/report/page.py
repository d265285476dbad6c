"""report.html: one file, drawn from the run folder alone, with nothing to fetch and nothing to run."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwind import format as units
from headwind.model import Condition, Result
from headwind.record import matrix_to_json
from headwind.report import verdicts as told
from headwind.report import words
from headwind.report.data import RunData
from headwind.report.method import method
from headwind.report.summary import Row, compare_ranges, notices, summary_table
from headwind.report.truth import Truth, truth_table
from headwind.report.verdicts import Verdicts
from impair.profile import Direction

if TYPE_CHECKING:
    import jinja2

    from headwind.journal import Run

REPORT = "report.html"
TEMPLATES = Path(__file__).parent / "templates"
REDRAW_SHARE = 0.05  # of the time of a run that goes into drawing the report, at most
NAMED_TRIALS = 12  # of a notice; the others are counted


def write_report(run: Run) -> Path:
    """Draw the run as far as it went into its folder, whole or not at all, and return the file's path."""
    return run.write(REPORT, render(RunData.of(run), time.time()))


def redrawing(run: Run) -> Callable[[], None]:
    """A function to be called after every block: it draws the report again.

    Of an adaptive run, whose blocks may be many and short, it skips some: drawing may take REDRAW_SHARE of the time.
    """
    due_s, share = 0.0, REDRAW_SHARE if run.matrix.repeat.is_adaptive else math.inf

    def redraw() -> None:
        nonlocal due_s
        start = time.perf_counter()
        if start >= due_s:
            write_report(run)
            end = time.perf_counter()
            due_s = end + (end - start) / share

    return redraw


@dataclass(frozen=True, slots=True)
class Cell:
    """What the page shows of one condition."""

    condition: Condition
    network: Mapping[str, Sequence[str]]
    rows: Sequence[Row]
    ranges: str
    truth: Sequence[Truth]
    attempts: Sequence[tuple[int, Result]]  # with their number in the run
    commands: Mapping[str, int]  # how many attempts ran each


def render(data: RunData, generated_at_s: float) -> str:
    """The page as HTML5. The same run gives the same text but for the time of generation (seconds since the epoch)."""
    matrix = data.matrix
    both_ways = words.uses_uplink(condition.profile for condition in matrix.conditions)
    numbers = {(result.trial.id, result.attempt): number for number, result in enumerate(data.results, 1)}
    latest = {result.trial.id: numbers[result.trial.id, result.attempt] for result in data.latest}
    verdicts = Verdicts.of(data)
    return _environment().get_template("report.html.j2").render(
        data=data,
        verdicts=verdicts,
        sentence=told.sentence(verdicts),
        generated_at_s=generated_at_s,
        style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
        notices=notices(data),
        latest=latest,
        named_trials=NAMED_TRIALS,
        cells=list(_cells(data, numbers, both_ways=both_ways)),
        both_ways=both_ways,
        columns=[column for column in words.COLUMNS if column != "other" or _has_other(data)],
        facts=list(facts_of(data.environment)),
        resolved=json.dumps(matrix_to_json(matrix), indent=2, ensure_ascii=False),
        method=list(method(data)),
    )  # fmt: skip


def _cells(data: RunData, numbers: Mapping[tuple[str, int], int], *, both_ways: bool) -> Iterator[Cell]:
    table = summary_table(data)
    for condition in data.matrix.conditions:
        rows = [row for row in table if row.condition is condition]
        attempts = [result for arm in data.matrix.arms(condition) for result in data.attempts(condition, arm)]
        numbered = sorted(((numbers[item.trial.id, item.attempt], item) for item in attempts), key=lambda pair: pair[0])
        yield Cell(
            condition=condition,
            network=words.network(condition.profile, both_ways=both_ways),
            rows=rows,
            ranges=compare_ranges(rows),
            truth=truth_table(data, condition),
            attempts=numbered,
            commands=Counter(words.command_text(item.command) for _, item in numbered if item.command),
        )


def _has_other(data: RunData) -> bool:
    return any(words.network(item.profile, both_ways=True)["other"] for item in data.matrix.conditions)


def facts_of(environment: Mapping[str, Any], *above: str) -> Iterator[tuple[str, str]]:
    """Every fact of a nested JSON object as (path, text): ("server openssl", "3.6.0")."""
    for key, value in environment.items():
        if isinstance(value, Mapping) and value:
            yield from facts_of(value, *above, key)
        else:
            yield " \N{RIGHTWARDS ARROW} ".join((*above, key)), words.plain(value)


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: units.clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "units": units,
        "words": words,
        "told": told,
        "directions": words.ARROWS,
        "Direction": Direction,
    }
    return environment
