"""The result in the terminal: a row for each network, and the answer below it; all figures on request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwind.format import NOTHING, arm_name, clean, counted, observed_text, override_texts, setting
from headwind.metric import Metric, Use
from headwind.report import row_text
from headwind.report import verdicts as describe
from headwind.report.answer import Answer, answer_of
from headwind.report.cells import Cell
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.ranking import MOST_COLUMNS, Standing, columns_of
from headwind.report.times_table import Row, notices, summary_table
from headwind.report.verdicts import MARKS
from headwind.run.data import RunData
from headwind.verdicts.findings import metrics_of
from headwind.verdicts.judgement import Line
from impair.profile import Direction

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

    from headwind.verdicts.findings import Finding
    from headwind.verdicts.verdict import Rule

WIDTH = 120  # columns, if the terminal is that wide
WIDTH_OF_NAME, WIDTH_OF_CELL, WIDTH_OF_MEDIAN = 22, 23, 9  # of columns, as a rule
WIDTH_OF_LINE = 50  # of the column with all comparisons, if each has no column
MOST_WARNINGS = 4
_JOINED = re.compile(
    r"(?<=[0-9]) (?=%|[nµm]?s\b|of [0-9]|\(HTTP)|(?<=of) (?=[0-9])|(?<=x) (?=slower|faster)"
    r"|(?<=[0-9],) (?=[^ ]+\])"
)
HELD = "\ue000"  # in place of a space at which no line may end
STYLES = {Certainty.SURE: "bold", Certainty.LIKELY: "", Certainty.UNCLEAR: "dim"}


def print_summary(data: RunData, console: Console, *, full: bool = False) -> None:
    """Print the answer, under 35 lines for eight networks; `full` adds every figure, comparison and warning."""
    from rich.text import Text

    found, width = answer_of(data), min(console.width, WIDTH)

    def say(text: str, style: str = "") -> None:
        console.print(Text(clean(text), style=style), width=width, soft_wrap=False)

    if full:
        console.print(_times(data))
        if data.judgement.compared:
            console.print(_verdict_table(data))
    console.print(_Spaced(_overview(data, found.standings, width)), width=width, soft_wrap=False)
    for text, style in _answer(data, found):
        say(text, style)
    for check in data.judgement.checks:
        if full or check.passed is False:  # the sentence on trust says what the others mean
            style = {True: "green", False: "bold white on red", None: "yellow"}[check.passed]
            say(describe.check_text(check, data.matrix.name_of(check.finding.condition)), style)
    for text in (*_warnings(data, full=full), *(_open(data) if full else ())):
        say(text, "yellow")
    say(row_text.headline(data))
    for text in found.gaps:
        say(text, "yellow")


def _answer(data: RunData, found: Answer) -> Iterator[tuple[str, str]]:
    """The answer line by line, each with its style; the table above it has every network."""
    yield from ((text, "") for text in override_texts(data.matrix.arms))
    yield found.headline, "bold"
    yield from ((text, "") for text in (*found.by_others, *_terms(data, found), found.measured, found.trust) if text)


def _terms(data: RunData, found: Answer) -> Iterator[str]:
    """Definitions of what the table names and no sentence defines: other metrics, a direction."""
    if found.has_other_metrics:
        yield describe.others_shown(data.judgement.compared)
    if row_text.has_downlink_only(data.matrix):
        is_all = not row_text.impairs(Direction.UPLINK, [each.profile for each in data.matrix.conditions])
        which = "All impairments are" if is_all else "An impairment without a direction is"
        yield f"{which} on the downlink (server to client)."
    cells = [cell for standing in found.standings for cell in standing.cells.values()]
    named = " ".join(text for cell in cells for text in (*cell.notes, *(other.metric for other in cell.others)))
    for metric in data.judgement.other_metrics:
        is_defined = any(f"{metric.label} (" in sentence for sentence in found.by_others)
        if metric.meaning and metric.label in named and not is_defined:
            yield f"{metric.label.capitalize()}: {metric.meaning}."


def _warnings(data: RunData, *, full: bool) -> list[str]:
    """The warnings; results of protocols are in the tally of outcomes."""
    warned = (notice for notice in notices(data) if full or not notice.is_finding)
    lines = [f"! {notice.line}" for notice in warned]
    left = len(lines) - MOST_WARNINGS
    if full or left <= 1:  # a line that counts one warning is as long as the warning
        return lines
    return [*lines[:MOST_WARNINGS], f"! {counted(left, 'more warning')} about trials: see the report"]


def _open(data: RunData) -> list[str]:
    """The forecast for each condition with open comparisons, and those that are open only by the primary metric."""
    found = [describe.open_text(item, data.matrix.name_of(item.condition)) for item in data.still_open]
    return [*found, *describe.without_forecast(data)]


def _overview(data: RunData, found: Sequence[Standing], width: int) -> Table:
    """Two lines for each condition: its name and impairments, medians if there is room, comparisons."""
    from rich.table import Table
    from rich.text import Text

    arms = data.matrix.arms
    pairs, rest = columns_of(data.matrix, data.judgement)
    labels = row_text.primaries(data.matrix.conditions)
    has_columns = len(pairs) <= MOST_COLUMNS and not rest
    width_of_pairs = len(pairs) * WIDTH_OF_CELL if has_columns else WIDTH_OF_LINE
    has_room = WIDTH_OF_NAME + width_of_pairs + len(arms) * WIDTH_OF_MEDIAN <= width
    table = Table(
        title=Text(_heading(data, labels, has_pairs=bool(pairs), has_medians=has_room)),
        title_justify="left",
        title_style="dim",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )
    table.add_column(f"{data.matrix.place},\ncomplete blocks")
    for arm in arms if has_room else ():
        table.add_column(arm.name, justify="right", no_wrap=True)
    for pair in pairs if has_columns else ():
        table.add_column(str(pair))
    if not has_columns:
        more = f"; {counted(len(rest), 'more pair')} {'is' if len(rest) == 1 else 'are'} in the report" if rest else ""
        table.add_column(f"comparisons{more}")
    for standing in [each for each in found if each.rows] or found:  # a sentence names those that did not run
        blocks = counted(standing.blocks, "block") if standing.rows else "not run"
        medians = [observed_text(standing.condition.workload.primary().key, standing.medians.get(arm)) for arm in arms]
        cells = [_cell(standing.cells[pair]) for pair in pairs if pair in standing.cells]
        if not has_columns:
            shown = [(str(pair), standing.cells[pair]) for pair in pairs if pair in standing.cells]
            cells = [Text("\n").join(_line(label, cell) for label, cell in shown)]
        label, meaning = data.matrix.name_of(standing.condition), standing.network.meaning
        below = "".join(
            f"\n{clean(text)}" for text in (meaning, standing.unfinished_text, standing.spells_text) if text
        )
        name = Text.assemble((clean(label), "bold"), (_held(f", {blocks}{below}"), "dim"))
        table.add_row(name, *(medians if has_room else ()), *cells)
    return table


def _heading(data: RunData, labels: str, *, has_pairs: bool, has_medians: bool) -> str:
    """The heading of the table: `Medians of total time; ratios within blocks [95 % interval]; ✓ sure`."""
    by = describe.first_judged(data.judgement.compared) or labels
    confidence = setting("confidence_ratio", data.judgement.rule.confidence)
    of = "" if by == labels else f" of {by}"
    ratios = f"ratios{of} within blocks [{confidence} interval]; {MARKS[Certainty.SURE]} sure" if has_pairs else ""
    if not has_medians:
        return f"By {by}: {ratios}" if ratios else f"By {by}"
    return "; ".join(filter(None, (f"Medians of {labels}", ratios)))


def _cell(cell: Cell) -> Text:
    from rich.text import Text

    text = Text(_held(clean(f"{cell.mark} {cell.text}")), style=STYLES[cell.certainty])
    for line in filter(None, (cell.interval, *(f"({note})" for note in cell.notes), *map(str, cell.others))):
        text.append(f"\n{_held(clean(line))}", style="not bold")
    return text


@dataclass(frozen=True, slots=True)
class _Spaced:
    """A table that is printed with spaces in place of HELD, after its lines were broken."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self.table, options):
            yield part._replace(text=part.text.replace(HELD, " "))


def _held(text: str) -> str:
    """The text, of which no line ends between a number and its unit, within an interval, or within `1 of 61`."""
    return _JOINED.sub(HELD, text)


def _line(label: str, cell: Cell) -> Text:
    from rich.text import Text

    return Text(_held(clean(f"{label}: {cell}")), style=STYLES[cell.certainty])


def _times(data: RunData) -> Table:
    """The result of every protocol in each condition."""
    from rich.table import Table
    from rich.text import Text

    protocols = data.matrix.arms
    table = Table("condition", *map(arm_name, protocols), show_lines=True)
    rows = summary_table(data)
    for start in range(0, len(rows), len(protocols)):
        cells = rows[start : start + len(protocols)]
        table.add_row(Text(clean(data.matrix.name_of(cells[0].condition))), *map(_figures, cells))
    return table


def _verdict_table(data: RunData) -> Table:
    """A row for each comparison; for metrics that are not judged only the interval."""
    from rich.table import Table
    from rich.text import Text

    verdicts, metrics = data.judgement, metrics_of(data.matrix, Use.JUDGED, Use.COMPARED)
    table = Table("condition", "comparison", "n", *(metric.heading for metric in metrics), "unfinished")
    last = ""
    for line in verdicts.lines:
        name = "" if line.condition.id == last else data.matrix.name_of(line.condition)
        last = line.condition.id
        table.add_row(
            Text(clean(name)), str(line.pair), str(line.blocks),
            *(_result(line, metric, verdicts.rule) for metric in metrics),
            describe.unfinished_text(line), end_section=line is verdicts.lines[-1],
        )  # fmt: skip
    return table


def _result(line: Line, metric: Metric, rule: Rule) -> Text:
    from rich.text import Text

    if finding := line.findings.get(metric):
        return Text(describe.finding_text(finding), style=_style(finding))
    return Text(describe.pair_text(line.pair, line.intervals[metric], rule) if metric in line.intervals else NOTHING)


def _style(finding: Finding) -> str:
    return STYLES[certainty_of(finding)]


def _figures(row: Row) -> Text:
    from rich.text import Text

    text = Text(row_text.median_text(row), style="bold")
    if spread := row_text.range_text(row):
        text.append(f" {spread}", style="not bold")
    finished, *others = row_text.trials_text(row)
    text.append(f"\n{finished}", style="not bold dim")
    for other in others:
        text.append(f"\n{other}", style="not bold yellow")
    return text
