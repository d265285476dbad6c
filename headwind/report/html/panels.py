"""Every comparison of a run as rows of a forest plot: a table for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

from markupsafe import Markup

from headwind.format import NOTHING, arm_name
from headwind.metric import Metric
from headwind.model import Condition
from headwind.report import verdicts as describe
from headwind.report.cells import reasons_of
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.html import charts
from headwind.report.html.charts.forest import ForestAxis
from headwind.report.published import Row as PublishedRow
from headwind.report.published import Source
from headwind.run.data import RunData
from headwind.verdicts.judgement import Line
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A comparison in one condition by one metric: texts, and its interval as a picture."""

    pair: Pair
    claim: str
    look: str  # CSS classes
    note: str
    picture: Markup
    ratio: str
    blocks: str


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """The comparisons of one condition."""

    condition: Condition
    rows: tuple[PanelRow, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Every comparison by one metric, on one axis."""

    metric: Metric
    title: str  # "total time"; if not all workloads have it, "total time (page)"
    judged: bool  # True if it has verdicts
    axis: Markup  # empty if nothing is drawn
    groups: tuple[PanelGroup, ...]


def panels(data: RunData) -> list[Panel]:
    """A panel for each metric that is judged or compared, those with verdicts first, in the order of the matrix."""
    compared = data.judgement.compared
    judged = dict.fromkeys(metric for line in compared for metric in line.findings)
    unjudged = dict.fromkeys(metric for line in compared for metric in line.intervals)
    return [
        _panel(f"panel-{number}", metric, [line for line in compared if metric in (*line.findings, *line.intervals)],
               data)
        for number, metric in enumerate(dict.fromkeys([*judged, *unjudged]), 1)
    ]  # fmt: skip


def _panel(name: str, metric: Metric, lines: Sequence[Line], data: RunData) -> Panel:
    rule = data.judgement.rule
    shown = {(line.condition.id, line.pair): _shown(line, metric, rule) for line in lines}
    axis = charts.forest_axis(f"{name}-axis", filter(None, shown.values()), rule.margin_ratio)
    groups = []
    for condition, own in groupby(lines, key=lambda line: line.condition):
        described = (_row(line, metric, axis, shown[condition.id, line.pair]) for line in own)
        groups.append(PanelGroup(condition, tuple(described)))
    is_judged = any(metric in line.findings for line in lines)
    labels = charts.forest_labels(axis) if any(shown.values()) else Markup()
    title = describe.metric_title(metric, [line.condition for line in lines], data.matrix)
    return Panel(metric, title, is_judged, labels, tuple(groups))


def _shown(line: Line, metric: Metric, rule: Rule) -> Interval | None:
    """The drawn interval, as the lead of the arm that is named first.

    None below the fewest blocks, and for a verdict about completion.
    """
    finding = line.findings.get(metric)
    interval = finding.comparison.interval if finding else line.intervals[metric]
    if interval.n < fewest_blocks(rule.confidence, rule.anytime) or (finding and finding.verdict.is_completion):
        return None
    if finding is None:
        return describe.ahead(interval)
    return describe.toward(interval, 1 if describe.sides(finding)[0] == line.pair.new else -1)


def _row(line: Line, metric: Metric, axis: ForestAxis, shown: Interval | None) -> PanelRow:
    finding = line.findings.get(metric)
    if finding is None:
        interval = line.intervals[metric]
        picture = charts.forest_row(axis, shown) if shown else Markup()
        is_behind = shown is not None and (interval.estimate or 0.0) < 0
        first, second = (line.pair.base, line.pair.new) if is_behind else (line.pair.new, line.pair.base)
        claim, ratio = f"{arm_name(first)} against {arm_name(second)}", describe.ratio_text(shown) if shown else NOTHING
        return PanelRow(line.pair, claim, "", "", picture, ratio, f"{interval.n:,}")
    certainty, arm = certainty_of(finding), describe.leader(finding)
    fewest = finding.rule.blocks_needed(finding.comparison.interval.n)
    too_few = certainty is Certainty.UNCLEAR and finding.comparison.interval.n < fewest
    unfinished = describe.unfinished_text(line)
    name = arm.name if arm else ""
    reasons = [*reasons_of(finding), *([f"unfinished trials: {unfinished}"] if unfinished else [])]
    return PanelRow(
        line.pair,
        describe.claim_text(finding),
        f"{certainty} arm {name}" if name else certainty.value,
        "; ".join(reasons),
        charts.forest_row(axis, shown, name, pale=certainty is Certainty.LIKELY) if shown else Markup(),
        NOTHING if too_few else describe.ahead_text(finding),
        f"{line.blocks:,}",
    )


@dataclass(frozen=True, slots=True)
class PublishedPicture:
    """The rows of an article: the published and the measured figure, as two marks on one axis."""

    labels: Markup
    rows: tuple[Markup, ...]


def published_pictures(sources: Sequence[Source], rule: Rule) -> list[PublishedPicture]:
    """A picture for each article; ratios above 1: the candidate, which a row names first, is ahead."""
    return [_published(f"published-{number}", source.rows, rule) for number, source in enumerate(sources, 1)]


def _published(name: str, rows: Sequence[PublishedRow], rule: Rule) -> PublishedPicture:
    measured = [_measured(row, rule) for row in rows]
    printed = [Interval(log(row.published_ratio), log(row.published_ratio), None, 0)
               for row in rows if row.published_ratio]  # fmt: skip
    axis = charts.forest_axis(f"{name}-axis", [*filter(None, measured), *printed], rule.margin_ratio)
    marks = (
        charts.forest_row(axis, interval, pale=row.word == "no verdict", published=row.published_ratio)
        for row, interval in zip(rows, measured, strict=True)
    )
    return PublishedPicture(charts.forest_labels(axis), tuple(marks))


def _measured(row: PublishedRow, rule: Rule) -> Interval | None:
    """The measured interval; below the fewest blocks only the median, if there is one."""
    found = row.interval
    if found is None:
        return None
    if found.n >= fewest_blocks(rule.confidence, rule.anytime):
        return found
    return None if found.estimate is None else Interval(found.estimate, found.estimate, found.estimate, found.n)
