"""The result in the terminal: for each condition what every protocol did, and nothing that three blocks cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwind.format import clean, protocol_name
from headwind.report import words
from headwind.report.data import RunData
from headwind.report.summary import Row, compare_ranges, notices, summary_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from headwind.journal import Run


def print_summary(run: Run, console: Console) -> None:
    """Print the run's headline, one row for each condition, and what the reader must know before the figures."""
    from rich.table import Table
    from rich.text import Text

    data = RunData.of(run)
    protocols = data.matrix.protocols
    table = Table("condition", *(protocol_name(protocol) for protocol in protocols), "ranges", show_lines=True)
    rows = summary_table(data)
    for start in range(0, len(rows), len(protocols)):
        cells = rows[start : start + len(protocols)]
        name = Text(clean(cells[0].condition.id))
        table.add_row(name, *(_cell(row) for row in cells), Text(compare_ranges(cells)))
    console.print(table)
    for notice in notices(data):
        console.print(Text(clean(f"! {len(notice.trials)} x {notice.text}"), style="yellow"))
    console.print(Text(clean(words.headline(data))))


def _cell(row: Row) -> Text:
    from rich.text import Text

    text = Text(words.time_text(row.time.median if row.time else None), style="bold")
    if spread := words.range_text(row):
        text.append(f" {spread}", style="not bold")
    finished, *others = words.trials_text(row)
    text.append(f"\n{finished}", style="not bold dim")
    for other in others:
        text.append(f"\n{other}", style="not bold yellow")
    return text
