"""Two runs side by side in the terminal: what got better or worse, and what else was different."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headwind.errors import UsageError
from headwind.format import arm_name, clean, counted
from headwind.model import Result
from headwind.report.compare.agreement import change_figures, change_word
from headwind.report.data import RunData
from headwind.report.html.page import facts_of
from headwind.run.codec import matrix_to_json
from headwind.run.differences import differences
from headwind.verdicts.changes import Change, changes

if TYPE_CHECKING:
    from rich.console import Console

    from headwind.run.journal import Run

# What differs between any two runs and cannot matter: addresses and names that the lab drew, and what it measured.
OWN_TO_A_RUN = (
    "ip", "mac", "network", "dst", "gateway", "prefsrc", "lladdr", "subnet", "neighbour", "neighbours", "route",
    "routes", "ceiling", "master", "master_started_s", "workers", "boot_s", "started_s",
)  # fmt: skip


def print_changes(earlier: Run, later: Run, console: Console) -> bool:
    """Print a line for every cell of both runs; True when something got worse.

    Raises UsageError when the runs have no condition in common.
    """
    from rich.table import Table
    from rich.text import Text

    before, after = RunData.of(earlier), RunData.of(later)
    found = changes(after.matrix, same_networks(before, after), after.latest)
    if not found:
        raise UsageError(f"{before.id} and {after.id} have no condition in common: nothing can be compared")
    for warning in warnings(before, after):
        console.print(Text(clean(f"! {warning}"), style="yellow"))
    table = Table("condition", "protocol", "metric", f"{after.id} against {before.id}", "n", "finished", "verdict")
    for change in found:
        style = "bold red" if change.is_regression else "bold green" if change.is_improvement else ""
        table.add_row(*(Text(clean(cell), style=style) for cell in _cells(change)))
    console.print(table)
    console.print(Text(summary(found), style="bold"))
    return any(change.is_regression for change in found)


def same_networks(before: RunData, after: RunData) -> list[Result]:
    """Results of the earlier run for conditions that are what they are in the later one, not only called the same."""
    shared = set(after.matrix.conditions)
    return [result for result in before.latest if result.trial.block.condition in shared]


def _cells(change: Change) -> list[str]:
    earlier, later = (f"{done} of {all_}" for done, all_ in zip(change.finished, change.trials, strict=True))
    return [
        change.condition.id,
        change.arm.name,
        change.metric.label,
        change_figures(change),
        f"{change.trials[0]}, {change.trials[1]}",
        f"{earlier}, {later}",
        change_word(change),
    ]


def summary(found: list[Change]) -> str:
    """`h3: worse in 1 of 16 (clean/article by total time); ...`, for each arm."""
    parts = []
    for arm in dict.fromkeys(change.arm for change in found):
        mine = [change for change in found if change.arm == arm]
        words = [
            f"{word} in {len(places)} ({', '.join(places)})"
            for word, places in (
                ("worse", [_place(change) for change in mine if change.is_regression]),
                ("better", [_place(change) for change in mine if change.is_improvement]),
            )
            if places
        ]
        parts.append(f"{arm_name(arm)}: {'; '.join(words) or 'no change shown'} of {counted(len(mine), 'figure')}")
    return "\n".join(parts)


def _place(change: Change) -> str:
    return f"{change.condition.id} by {change.metric.label}"


def warnings(before: RunData, after: RunData) -> Iterator[str]:
    """Everything besides chance that may be behind a change: settings and environment that are not the same."""
    for line in differences(matrix_to_json(before.matrix), matrix_to_json(after.matrix)):
        yield f"matrix: {line}"
    old, new = (dict(facts_of(lasting(data.environment))) for data in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield f"environment: {name}: {old.get(name, 'not noted')} -> {new.get(name, 'not noted')}"


def lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment without what is drawn or measured anew for every run."""
    kept = {}
    for key, value in environment.items():
        if key not in OWN_TO_A_RUN:
            kept[key] = lasting(value) if isinstance(value, Mapping) else json.loads(json.dumps(value))
    return kept
