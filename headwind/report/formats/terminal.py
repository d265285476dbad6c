"""The result in the terminal: for each condition what every protocol did, and what the blocks say about the pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwind.format import NOTHING, clean, protocol_name
from headwind.metric import Metric, Use
from headwind.report import verdicts as told
from headwind.report import words
from headwind.report.data import RunData
from headwind.report.summary import Row, compare_ranges, notices, summary_table
from headwind.verdicts.findings import metrics_of
from headwind.verdicts.judgement import Line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headwind.verdicts.findings import Finding


def print_summary(data: RunData, console: Console) -> None:
    """Print the run's headline, one row for each condition, and what the reader must know before the figures."""
    from rich.table import Table
    from rich.text import Text

    protocols = data.matrix.protocols
    table = Table("condition", *(protocol_name(protocol) for protocol in protocols), "ranges", show_lines=True)
    rows = summary_table(data)
    for start in range(0, len(rows), len(protocols)):
        cells = rows[start : start + len(protocols)]
        name = Text(clean(cells[0].condition.id))
        table.add_row(name, *(_cell(row) for row in cells), Text(compare_ranges(cells)))
    console.print(table)
    verdicts = data.judgement
    if verdicts.compared:
        console.print(_verdict_table(data))
    for notice in notices(data):
        console.print(Text(clean(f"! {len(notice.trials)} x {notice.text}"), style="yellow"))
    for check in verdicts.checks:
        style = {True: "green", False: "bold white on red", None: "yellow"}[check.passed]
        console.print(Text(clean(told.check_text(check)), style=style))
    for item in verdicts.open:
        console.print(Text(clean(told.open_text(item)), style="yellow"))
    console.print(Text(clean(words.headline(data))))
    console.print(Text(clean(told.sentence(verdicts)), style="bold"))


def _verdict_table(data: RunData) -> Table:
    """One row for each comparison; of metrics that are not judged the interval alone."""
    from rich.table import Table
    from rich.text import Text

    verdicts, metrics = data.judgement, metrics_of(data.matrix, Use.JUDGED, Use.COMPARED)
    table = Table("condition", "comparison", "n", *(metric.heading for metric in metrics), "unfinished")
    last = ""
    for line in verdicts.lines:
        name = "" if line.condition.id == last else line.condition.id
        last = line.condition.id
        table.add_row(
            Text(clean(name)), str(line.pair), str(line.blocks), *(_told(line, metric) for metric in metrics),
            told.unfinished_text(line), end_section=line is verdicts.lines[-1],
        )  # fmt: skip
    return table


def _told(line: Line, metric: Metric) -> Text:
    from rich.text import Text

    if finding := line.findings.get(metric):
        return Text(told.finding_text(finding), style=_style(finding))
    return Text(told.interval_text(line.intervals[metric]) if metric in line.intervals else NOTHING)


def _style(finding: Finding) -> str:
    if not finding.is_decided:
        return "dim"
    return "bold" if finding.survives or finding.pair.is_check or not finding.verdict.favours else ""


def _cell(row: Row) -> Text:
    from rich.text import Text

    text = Text(words.median_text(row), style="bold")
    if spread := words.range_text(row):
        text.append(f" {spread}", style="not bold")
    finished, *others = words.trials_text(row)
    text.append(f"\n{finished}", style="not bold dim")
    for other in others:
        text.append(f"\n{other}", style="not bold yellow")
    return text
