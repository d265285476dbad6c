"""The result in the terminal: the answer, a line for each condition, and what to look at; all figures if asked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headwind.arm import Arm
from headwind.format import NOTHING, arm_name, clean, counted, observed_text, override_texts
from headwind.metric import Metric, Use
from headwind.observed import from_best
from headwind.report import answer, words
from headwind.report import verdicts as describe
from headwind.report.otherwise import otherwise
from headwind.report.search import searched
from headwind.report.standing import Standing, standings
from headwind.report.summary import Row, notices, summary_table
from headwind.report.trust import believed, trust
from headwind.run.data import RunData
from headwind.verdicts.findings import metrics_of
from headwind.verdicts.judgement import Line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headwind.verdicts.findings import Finding
    from headwind.verdicts.verdict import Rule

WIDTH = 100  # columns, where the terminal has so many
MOST_ARMS = 5  # with a column each; of more, the best and the worst are shown


def print_summary(data: RunData, console: Console, *, full: bool = False) -> None:
    """Print what a reader must know, under 30 lines for eight conditions; `full` adds every figure and comparison."""
    from rich.text import Text

    found, width = standings(data), min(console.width, WIDTH)
    if full:
        console.print(_times(data))
        if data.judgement.compared:
            console.print(_verdict_table(data))
    console.print(Text(clean(answer.headline(data)), style="bold"), width=width, soft_wrap=False)
    for sentence in filter(
        None, (*searched(data), *otherwise(data), answer.seen(data, found), *answer.workloads(data))
    ):
        console.print(Text(clean(sentence)), width=width, soft_wrap=False)
    console.print(_overview(data, found), width=width, soft_wrap=False)
    for set_by_arm in override_texts(data.matrix.arms):
        console.print(Text(set_by_arm), width=width, soft_wrap=False)
    if full:
        for notice in notices(data):
            console.print(
                Text(clean(f"! {len(notice.trials)} x {notice.text}"), style="yellow"), width=width, soft_wrap=False
            )
    for check in data.judgement.checks:
        if full or check.passed is False:  # those that are open stand in the line on trust
            style = {True: "green", False: "bold white on red", None: "yellow"}[check.passed]
            console.print(
                Text(clean(describe.check_text(check, data.matrix.name_of(check.finding.condition))), style=style),
                width=width,
                soft_wrap=False,
            )
    for text in _open(data, full=full):
        console.print(Text(clean(text), style="yellow"), width=width, soft_wrap=False)
    console.print(_trust(data), width=width, soft_wrap=False)


def _open(data: RunData, *, full: bool) -> list[str]:
    """What more time would bring: for the condition that is settled soonest, or for all."""
    left = data.judgement.open
    if full or not left:
        return [describe.open_text(item, data.matrix.name_of(item.condition)) for item in left]
    soonest = min(
        left, key=lambda item: math.inf if item.outlook.blocks is None else item.outlook.blocks * item.block_s
    )
    total = counted(len(data.matrix.conditions), data.matrix.place)
    told = describe.open_text(soonest, data.matrix.name_of(soonest.condition))
    return [f"Something is open in {len(left)} of {total}; soonest: {told}"]


def _trust(data: RunData) -> Text:
    from rich.text import Text

    styles = {"good": "green", "bad": "bold red", "": "yellow"}
    found = trust(data)
    parts = [Text(clean(f"{words.how_far(data)} Can it be believed? {believed(found).capitalize()}."))]
    parts += [Text(clean(str(item)), style=styles[item.tone] if item.mark else "") for item in found]
    return Text("  ").join(parts)


def _overview(data: RunData, found: list[Standing]) -> Table:
    """One line for each condition: medians, blocks, who leads and how sure."""
    from rich.table import Table
    from rich.text import Text

    arms = data.matrix.arms
    names = [arm.name for arm in arms] if len(arms) <= MOST_ARMS else ["best median", "worst median"]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(data.matrix.place)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("blocks", justify="right", no_wrap=True)
    table.add_column("who leads")
    for standing in found:
        name = clean(data.matrix.name_of(standing.condition))
        style = "bold" if standing.word and describe.word_class(standing.word) == "settled" else ""
        seen = standing.seen if not standing.leader and not style else ""
        told = "; ".join(filter(None, (standing.claim, seen, standing.stopped)))
        table.add_row(
            Text(name), *_medians(standing, arms), standing.blocks_text.removesuffix("s").removesuffix(" block"),
            Text(clean(told), style=style),
        )  # fmt: skip
    return table


def _medians(standing: Standing, arms: tuple[Arm, ...]) -> list[str]:
    """The median of each arm, or of many the best and the worst with their names."""
    metric = standing.condition.workload.primary()
    texts = {arm: observed_text(metric.key, standing.medians.get(arm)) for arm in arms}
    if len(arms) <= MOST_ARMS:
        return list(texts.values())
    ordered = from_best(standing.medians.values(), metric.better)
    if not ordered:
        return [NOTHING, NOTHING]
    names = {id(value): arm for arm, value in standing.medians.items()}
    return [f"{names[id(value)].name} {observed_text(metric.key, value)}" for value in (ordered[0], ordered[-1])]


def _times(data: RunData) -> Table:
    """What every protocol did in each condition."""
    from rich.table import Table
    from rich.text import Text

    protocols = data.matrix.arms
    table = Table("condition", *map(arm_name, protocols), show_lines=True)
    rows = summary_table(data)
    for start in range(0, len(rows), len(protocols)):
        cells = rows[start : start + len(protocols)]
        table.add_row(Text(clean(data.matrix.name_of(cells[0].condition))), *map(_cell, cells))
    return table


def _verdict_table(data: RunData) -> Table:
    """One row for each comparison; of metrics that are not judged the interval alone."""
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
            *(_told(line, metric, verdicts.rule) for metric in metrics),
            describe.unfinished_text(line), end_section=line is verdicts.lines[-1],
        )  # fmt: skip
    return table


def _told(line: Line, metric: Metric, rule: Rule) -> Text:
    from rich.text import Text

    if finding := line.findings.get(metric):
        return Text(describe.finding_text(finding, rule), style=_style(finding, rule))
    return Text(describe.pair_text(line.pair, line.intervals[metric], rule) if metric in line.intervals else NOTHING)


def _style(finding: Finding, rule: Rule) -> str:
    return "bold" if describe.word_class(describe.word_of(finding, rule)) == "settled" else "dim"


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
