"""Two runs side by side in the terminal: what got better or worse, and what else was different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwind.format import clean, counted
from headwind.report.compare.agreement import certainty, change_figures, change_word, machine_sentences, outcome, rest
from headwind.report.compare.comparison import Comparison, warnings
from headwind.verdicts.changes import Change, RatioChange

if TYPE_CHECKING:
    from rich.console import Console


def print_changes(comparison: Comparison, console: Console) -> None:
    """Print what else differs, a line for every pair that changed or may have, what the machine did, and the end.

    With `absolute` there is a line for every such arm, too. The end is who got worse, and what stays possible.
    """
    from rich.text import Text

    found = comparison.found
    for warning in warnings(comparison.before, comparison.after):
        console.print(Text(clean(f"! {warning}"), style="yellow"))
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
        for line in (f"{worse} of {figures} worse, {better} better", *rest(found.arms, found.fewest)):
            console.print(Text(clean(f"by absolute values: {line}"), style="bold"))


def _print_table(what: str, rows: Sequence[tuple[str, Change]], comparison: Comparison, console: Console) -> None:
    """Those that changed, or may have; none of the others."""
    from rich.table import Table
    from rich.text import Text

    shown = [(name, change) for name, change in rows if change.favours or change.is_likely]
    if not shown:
        return
    change_of = f"{comparison.after.id} against {comparison.before.id}"
    table = Table("condition", what, "metric", change_of, "n", "finished", "verdict", "how sure")
    for name, change in shown:
        style = {-1: "bold red", 1: "bold green", 0: ""}[_tone(change)]
        table.add_row(*(Text(clean(cell), style=style) for cell in _cells(name, change)))
    console.print(table)


def _tone(change: Change) -> int:
    if isinstance(change, RatioChange):
        return change.is_improvement - change.is_regression
    return change.favours


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
        certainty(change),
    ]
