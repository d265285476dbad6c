"""`lab.py advise`: prints the tables of regrets, the advice, and the lines for nginx."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headwind.format import clean
from headwind.report.advice import Advised, answer, choice_table, network_table, snippet


def print_advice(found: Advised, out: Console) -> None:
    """Print how each network looks and which protocol it favours, the regret of each choice, and the answer."""
    out.print(Text("regret: times the median of the best protocol of each network", style="bold"))
    for table in (network_table(found), choice_table(found)):
        _print_table(table, out)
    for note in found.notes:
        out.print(Text(clean(f"! {note}"), style="yellow"))
    for sentence in answer(found):
        out.print(Text(clean(sentence), style="bold"))
    if text := snippet(found):
        out.print("\nfor nginx:\n")
        out.print(Text(text), soft_wrap=True)


def _print_table(rows: Iterable[tuple[str, ...]], out: Console) -> None:
    heading, *others = rows
    table = Table(*heading, box=None, pad_edge=False)
    for row in others:
        table.add_row(*(Text(clean(cell)) for cell in row))
    out.print(table)
    out.print()
