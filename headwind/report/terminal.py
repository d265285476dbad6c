"""The result in the terminal: for each condition what every protocol did, and what the blocks say about the pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwind.format import clean, protocol_name
from headwind.report import verdicts as told
from headwind.report import words
from headwind.report.data import RunData
from headwind.report.summary import Row, compare_ranges, notices, summary_table
from headwind.report.verdicts import Verdicts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headwind.findings import Finding
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
    verdicts = Verdicts.of(data)
    if verdicts.compared:
        console.print(_verdict_table(verdicts))
    for notice in notices(data):
        console.print(Text(clean(f"! {len(notice.trials)} x {notice.text}"), style="yellow"))
    for check in verdicts.checks:
        style = {True: "green", False: "bold white on red", None: "yellow"}[check.passed]
        console.print(Text(clean(told.check_text(check)), style=style))
    for item in verdicts.open:
        console.print(Text(clean(told.open_text(item)), style="yellow"))
    console.print(Text(clean(words.headline(data))))
    console.print(Text(clean(told.sentence(verdicts)), style="bold"))


def _verdict_table(verdicts: Verdicts) -> Table:
    """One row for each comparison; the tail is shown and not judged."""
    from rich.table import Table
    from rich.text import Text

    table = Table("condition", "comparison", "n", "total time", "median request", "p95", "unfinished")
    last = ""
    for line in verdicts.lines:
        name = "" if line.condition.id == last else line.condition.id
        last = line.condition.id
        judged = [Text(told.finding_text(finding), style=_style(finding)) for finding in line.findings.values()]
        table.add_row(
            Text(clean(name)), str(line.pair), str(line.blocks), *judged, told.interval_text(line.tail),
            told.unfinished_text(line), end_section=line is verdicts.lines[-1],
        )  # fmt: skip
    return table


def _style(finding: Finding) -> str:
    if not finding.is_decided:
        return "dim"
    return "bold" if finding.survives or finding.pair.is_check or not finding.verdict.favours else ""


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
