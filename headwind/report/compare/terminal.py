"""Comparison of two runs in the terminal: better, worse and unknown changes, and other differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwind.format import clean
from headwind.report.compare.agreement import (
    certainty,
    change_figures,
    change_word,
    toward_changed,
)
from headwind.report.compare.comparison import Comparison, warnings
from headwind.report.compare.sentences import following, leading
from headwind.verdicts.changes import ArmChange, Change, RatioChange

if TYPE_CHECKING:
    from rich.console import Console

TONES = {-1: "bold red", 1: "bold green", 0: ""}


def print_changes(comparison: Comparison, console: Console) -> None:
    """Print the answer first, then the changes and their sizes, the unknown ones, and other differences.

    With `absolute`, changes of the arms' own values are also printed.
    """
    from rich.text import Text

    def print_line(line: str, style: str = "") -> None:
        console.print(Text(clean(line), style=style))

    for line in leading(comparison):
        print_line(line, "bold")
    _print_table(comparison.found.ratios, console)
    if comparison.absolute:
        _print_table(comparison.found.arms, console)
    for line in following(comparison):
        print_line(line)
    for warning in warnings(comparison.before, comparison.after):
        print_line(f"! {warning}", "yellow")


def _print_table(rows: Sequence[Change], console: Console) -> None:
    """Print the sure and the likely changes."""
    from rich.table import Table
    from rich.text import Text

    shown = [change for change in rows if change.favours or change.is_likely]
    if not shown:
        return
    what = "comparison" if isinstance(shown[0], RatioChange) else "protocol"
    table = Table("condition", what, "metric", "change", "blocks", "finished", "verdict", "how sure")
    for change in shown:
        style = TONES[change.is_improvement - change.is_regression]
        table.add_row(*(Text(clean(cell), style=style) for cell in _cells(change)))
    console.print(table)


def _cells(change: Change) -> list[str]:
    earlier, later = (f"{done} of {all_}" for done, all_ in zip(change.finished, change.trials, strict=True))
    name, side = "", 1
    if isinstance(change, RatioChange):
        who, other, side = toward_changed(change)
        name = f"{who} against {other}"
    elif isinstance(change, ArmChange):
        name = change.arm.name
    return [
        change.condition.id,
        name,
        change.metric.label,
        change_figures(change, side),
        f"{change.trials[0]}, {change.trials[1]}",
        f"{earlier}, {later}",
        change_word(change),
        certainty(change).value,
    ]
