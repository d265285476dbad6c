"""Two runs side by side in the terminal: what got better or worse, and what else was different."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwind.errors import UsageError
from headwind.format import clean, counted
from headwind.model import Result
from headwind.report.compare.agreement import change_figures, change_word, machine_sentences, outcome
from headwind.report.html.page import facts_of
from headwind.run.codec import matrix_to_json
from headwind.run.data import RunData
from headwind.run.differences import differences
from headwind.verdicts.changes import Change, Changes, RatioChange, changes

if TYPE_CHECKING:
    from rich.console import Console

    from headwind.run.journal import Run


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs and what changed from one to the other; `absolute`: arms' own values count as well."""

    before: RunData
    after: RunData
    found: Changes
    absolute: bool

    @property
    def is_regression(self) -> bool:
        """Whether anything got worse that counts."""
        return self.found.is_regression(absolute=self.absolute)


# What differs between any two runs and cannot matter: addresses and names that the lab drew, and what it measured.
OWN_TO_A_RUN = (
    "ip", "mac", "network", "dst", "gateway", "prefsrc", "lladdr", "subnet", "neighbour", "neighbours", "route",
    "routes", "ceiling", "start", "testbeds", "master", "master_started_s", "workers", "boot_s", "started_s",
)  # fmt: skip


def compared(earlier: Run, later: Run, *, absolute: bool) -> Comparison:
    """Everything that changed between two runs.

    Raises UsageError when nothing can be compared: without a condition in common, or, unless `absolute` is asked for,
    without two arms in one.
    """
    before, after = RunData.of(earlier), RunData.of(later)
    found = changes(after.matrix, same_networks(before, after), after.latest)
    if not found.arms:
        raise UsageError(f"{before.id} and {after.id} have no condition in common: nothing can be compared")
    if not (found.ratios or absolute):
        raise UsageError(
            f"{before.id} and {after.id} have no two arms in common, and a single one cannot be told from the machine; "
            "--absolute compares its values all the same"
        )
    return Comparison(before, after, found, absolute)


def print_changes(comparison: Comparison, console: Console) -> None:
    """Print what else differs, what the machine did, a line for every pair, with `absolute` for every arm, and the end.

    That is who got worse.
    """
    from rich.text import Text

    found = comparison.found
    for warning in warnings(comparison.before, comparison.after):
        console.print(Text(clean(f"! {warning}"), style="yellow"))
    if found.ratios:
        _print_table("comparison", [(str(change.pair), change) for change in found.ratios], comparison, console)
    if comparison.absolute:
        _print_table("protocol", [(change.arm.name, change) for change in found.arms], comparison, console)
    for sentence in machine_sentences(found):
        counts = "" if comparison.absolute else "; that is no regression (--absolute counts it)"
        console.print(Text(clean(sentence + counts)))
    for line in outcome(found) if found.ratios else ():
        console.print(Text(clean(line), style="bold"))
    if comparison.absolute:
        worse, better = (sum(change.favours == side for change in found.arms) for side in (-1, 1))
        figures = counted(len(found.arms), "figure")
        console.print(Text(f"by absolute values: {worse} of {figures} worse, {better} better", style="bold"))


def _print_table(what: str, rows: Sequence[tuple[str, Change]], comparison: Comparison, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    change_of = f"{comparison.after.id} against {comparison.before.id}"
    table = Table("condition", what, "metric", change_of, "n", "finished", "verdict")
    for name, change in rows:
        style = {-1: "bold red", 1: "bold green", 0: ""}[_tone(change)]
        table.add_row(*(Text(clean(cell), style=style) for cell in _cells(name, change)))
    console.print(table)


def _tone(change: Change) -> int:
    if isinstance(change, RatioChange):
        return change.is_improvement - change.is_regression
    return change.favours


def same_networks(before: RunData, after: RunData) -> list[Result]:
    """Results of the earlier run for conditions that are what they are in the later one, not only called the same."""
    shared = set(after.matrix.conditions)
    return [result for result in before.latest if result.trial.block.condition in shared]


def _cells(name: str, change: Change) -> list[str]:
    earlier, later = (f"{done} of {all_}" for done, all_ in zip(change.finished, change.trials, strict=True))
    return [
        change.condition.id,
        name,
        change.metric.label,
        change_figures(change),
        f"{change.trials[0]}, {change.trials[1]}",
        f"{earlier}, {later}",
        change_word(change),
    ]


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
