"""Prepares the data of each chart on the page for headwind/report/html/charts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.arm import Arm
from headwind.format import arm_name, counted, measured
from headwind.metric import Metric, Unfinished, Workload
from headwind.model import Outcome, Result
from headwind.observed import Observed, figure
from headwind.report.attribution import Why
from headwind.report.certainty import certainty_of
from headwind.report.condition import ConditionView, Running
from headwind.report.drift import Key, relative_time
from headwind.report.html import charts
from headwind.report.html.charts import Bar, DotSeries, RunningPoint, SweepPoint
from headwind.report.html.charts.strip import StripAxis
from headwind.report.ranking import Standing
from headwind.report.request_progress import Track, columns, handshake_name, unrecorded
from headwind.report.row_text import primaries
from headwind.report.sweeps import Step, Sweep, compared_by, crossovers, curves
from headwind.report.verdicts import finding_text
from headwind.run.data import RunData, is_data
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Rule

MOST_STEPS = 12  # drawn steps of a running interval
WIDEST = 8.0  # ratio at which small intervals are cut


@dataclass(frozen=True, slots=True)
class ConditionPictures:
    """The charts of one condition."""

    dots: Markup
    ecdf: Markup
    violin: Markup
    running: tuple[tuple[Running, Markup], ...]


def condition_pictures(view: ConditionView, timeout_s: float, rule: Rule) -> ConditionPictures:
    """The charts of every trial, of their distribution (two kinds), and of the running intervals."""
    metric = view.condition.workload.primary()
    series = [_series(view, arm) for arm in view.arms]
    blocks = [row.block.index for row in view.rows]
    name, many = view.name, counted(len(blocks), "block")
    span = charts.span(series, limit(metric, timeout_s))
    medians = "; ".join(f"{arm_name(each.arm)}: median {each.primary['median']}" for each in view.figures)
    return ConditionPictures(
        dots=charts.dots(
            f"{view.anchor}-dots", series, blocks=blocks, metric=metric, span=span,
            title=f"{heading(metric)} of every trial in {name}",
            description=f"One mark for each trial, {many}; a line joins the trials of a block. {medians}.",
        ),
        ecdf=charts.ecdf(
            f"{view.anchor}-ecdf", series, metric=metric, timeout_s=limit(metric, timeout_s), span=span,
            title=f"Share of trials finished in {name}",
            description=f"By {metric.label}, up to the timeout; trials missing from 100 % did not finish.",
        ),
        violin=charts.violin(
            f"{view.anchor}-violin", series, metric=metric, span=span,
            title=f"Distribution of {metric.label} in {name}",
            description="Density of the trials that finished; quartiles and median of all trials; an "
            "unfinished one counts as the worst.",
        ),
        running=tuple((running, _running(view, running, rule)) for running in view.running if running.is_closed),
    )  # fmt: skip


def heading(metric: Metric) -> str:
    """The metric's name at the head of a column, or at the start of a title."""
    return metric.heading[:1].upper() + metric.heading[1:]


def limit(metric: Metric, timeout_s: float) -> float | None:
    """The timeout, if the metric is a time up to it."""
    return timeout_s if metric.unfinished is Unfinished.ABOVE_TIMEOUT else None


def _series(view: ConditionView, arm: Arm) -> DotSeries:
    marks = [trial_mark(row.results.get(arm)) for row in view.rows]
    return DotSeries(arm.name, arm_name(arm), marks, view.condition.workload.primary().better)


def trial_mark(result: Result | None) -> Observed | None:
    """A trial by its primary metric, for the charts; None if it is in no figure."""
    if result is None or not is_data(result):
        return None
    return figure(result, result.trial.block.condition.workload.primary())


def _running(view: ConditionView, running: Running, rule: Rule) -> Markup:
    stride, steps = running.thinned(MOST_STEPS)
    points = [RunningPoint(step.n, *step.ratios) for step in steps]
    each = "each block" if stride == 1 else f"every {stride} blocks"
    pair = running.pair
    return charts.running(
        f"{view.anchor}-{pair.new}-{pair.base}", points, margin_ratio=rule.margin_ratio,
        title=f"{arm_name(pair.new)} against {arm_name(pair.base)} in {view.name}, block by block",
        description=f"Ratio of {view.condition.workload.primary().label} and its interval after {each}; "
        "above 1 the first is faster.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overview:
    """Every condition of one workload, with a picture each, on one axis."""

    workload: Workload
    axis: Markup
    rows: tuple[tuple[Standing, Markup], ...]


@dataclass(frozen=True, slots=True)
class WhyPicture:
    """Times at which the requests of one workload were done, condition by condition on one axis."""

    name: str  # the id of its table
    workload: Workload
    columns: tuple[str, ...]
    axis: Markup
    rows: tuple[tuple[Why, tuple[Markup, ...]], ...]  # a picture for each track
    missing: tuple[str, ...]  # figures that were not recorded

    @property
    def handshake(self) -> str:
        """Name of a track's tick."""
        return handshake_name(self.workload)


def why_pictures(attributions: Sequence[Why], timeout_s: float) -> list[WhyPicture]:
    """A picture for each workload, in the order of their first conditions."""
    workloads = dict.fromkeys(why.condition.workload for why in attributions)
    return [
        _why(f"why-{number}", workload, [why for why in attributions if why.condition.workload == workload], timeout_s)
        for number, workload in enumerate(workloads, 1)
    ]


def _why(name: str, workload: Workload, attributions: Sequence[Why], timeout_s: float) -> WhyPicture:
    tracks = [track for why in attributions for track in why.tracks]
    slowest = [Observed.finished(track.handshake_s) for track in tracks if track.handshake_s]
    values = [*slowest, *(value for track in tracks for value in track.reached.values())]
    metric = workload.primary()
    axis = charts.strip_axis(values, metric.key, limit(metric, timeout_s))
    labels = charts.track_labels(f"{name}-axis", axis) if values else Markup()
    rows = tuple(
        (why, tuple(_track(labels, f"{name}-axis", axis, track) for track in why.tracks)) for why in attributions
    )
    return WhyPicture(name, workload, columns(workload), labels, rows, tuple(unrecorded(workload, tracks)))


def label_style(pictures: Iterable[WhyPicture]) -> str:
    """CSS that puts the name of its column before each figure, for narrow windows, which hide the heads of tables.

    In the style instead of in each cell, because a page may have thousands of them.
    """
    rules = (
        f"#{each.name} td:nth-child({place})::before {{ content: {json.dumps(name + ' ')}; }}"
        for each in pictures
        for place, name in enumerate(each.columns, 3)  # after the arm and the picture
    )
    return "@media (max-width: 40rem) {\n" + "\n".join(rules) + "\n}"


def _track(labels: Markup, name: str, axis: StripAxis, track: Track) -> Markup:
    """The track, or nothing without an axis, if nothing was recorded."""
    reached = list(track.reached.values())
    return charts.track(name, axis, track.arm.name, reached, track.handshake_s) if labels else labels


def arm_key(arms: Iterable[Arm]) -> list[tuple[Arm, Markup]]:
    """The arms with their shapes, for a line of text."""
    return [(arm, charts.icon(arm.name)) for arm in arms]


def overviews(data: RunData, found: Sequence[Standing]) -> list[Overview]:
    """An overview for each workload, with its conditions in the order given."""
    workloads = dict.fromkeys(condition.workload for condition in data.matrix.conditions)
    return [
        _overview(f"answer-{number}", data, workload, [each for each in found if each.condition.workload == workload])
        for number, workload in enumerate(workloads, 1)
    ]


def _overview(name: str, data: RunData, workload: Workload, found: Sequence[Standing]) -> Overview:
    metric = workload.primary()
    drawn = [
        [DotSeries(arm.name, arm_name(arm), [trial_mark(row.get(arm)) for row in each.rows.values()], metric.better)
         for arm in data.matrix.arms]
        for each in found
    ]  # fmt: skip
    marks = [mark for series in drawn for item in series for mark in item.marks if mark]
    axis = charts.strip_axis(marks, metric.key, limit(metric, data.matrix.timeout_s))
    pictures = (
        charts.strip(
            f"{name}-{number}", series, axis, medians={arm.name: value for arm, value in each.medians.items()},
            title=f"{heading(metric)} of every trial {each.network.preposition} {each.network}",
        )
        for number, (each, series) in enumerate(zip(found, drawn, strict=True), 1)
    )  # fmt: skip
    return Overview(workload, charts.strip_labels(f"{name}-axis", axis), tuple(zip(found, pictures, strict=True)))


def interval_domain(intervals: Iterable[Interval]) -> tuple[float, float]:
    """The ratios that small intervals show: symmetrical around 1, wide enough for all known ends, within WIDEST."""
    ends = [abs(end) for each in intervals for end in (each.low, each.high, each.estimate or 0.0)]
    reach = min(math.log(WIDEST), max([math.log(1.25), *filter(math.isfinite, ends)]))
    return math.exp(-reach), math.exp(reach)


def timeline_picture(data: RunData, usual: Mapping[Key, float]) -> Markup:
    """When every attempt ran, and its time relative to the usual one, which shows a drift of the machine."""
    conditions = data.matrix.conditions
    lanes = {condition.id: lane for lane, condition in enumerate(conditions)}
    start_s = min((result.started_at for result in data.results if result.started_at), default=0.0)
    bars = [
        Bar(
            arm=result.trial.arm.name,
            lane=lanes[result.trial.block.condition.id],
            start_s=result.started_at - start_s,
            length_s=sum(result.phases_s.values()),
            relative=relative_time(result, usual),
            finished=result.outcome is Outcome.OK,
        )
        for result in data.results
        if result.started_at
    ]
    return charts.timeline(
        "timeline-chart", bars, [data.matrix.name_of(condition) for condition in conditions], title="The run over time",
        description="Above, when each trial ran, in a row for each condition; below, its "
        f"{primaries(conditions)} over the median of the trials of its condition "
        "and protocol that finished: a slope would be a drift of the machine.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SweepPicture:
    """A sweep as a chart, and its values as the rows of a table."""

    sweep: Sweep
    chart: Markup
    rows: tuple[tuple[Step, tuple[str, ...]], ...]  # a text for each of `pairs`
    crossovers: tuple[str, ...]


def sweep_pictures(sweeps: Sequence[Sweep], verdicts: Judgement) -> list[SweepPicture]:
    """Sweeps by the metric that is compared first, if two protocols or more are compared."""
    return [_sweep(f"sweep-{number}", sweep, verdicts) for number, sweep in enumerate(sweeps, 1) if verdicts.pairs]


def _sweep(name: str, sweep: Sweep, verdicts: Judgement) -> SweepPicture:
    metric = compared_by(sweep, verdicts)
    found = curves(sweep, verdicts, metric)
    pairs = [pair for pair in verdicts.pairs if pair in found]
    drawn = [
        (f"{pair.new.name}:{pair.base.name}", str(pair),
         [_sweep_point(step, finding) for step, finding in found[pair]])
        for pair in pairs
    ]  # fmt: skip
    crossings = [(f"{pair.new} and {pair.base}", value) for pair in pairs for value in crossovers(found[pair])]
    chart = charts.sweep(
        name, drawn, quantity=sweep.quantity, margin_ratio=verdicts.rule.margin_ratio,
        crossovers=crossings,
        title=f"Ratio of {metric.label} over {sweep.parameter}, {sweep.workload}",
        description="Above 1 the first is faster. The ribbon is the interval; filled marks are clear differences.",
    )  # fmt: skip
    by_step = zip(*(found[pair] for pair in pairs), strict=True)
    rows = tuple((row[0][0], tuple(finding_text(finding) for _, finding in row)) for row in by_step)
    medians = tuple(f"{names} are even at about {measured(sweep.quantity, value)}" for names, value in crossings)
    return SweepPicture(sweep, chart, rows, medians)


def _sweep_point(step: Step, finding: Finding) -> SweepPoint:
    estimate, low, high = finding.comparison.interval.ratios
    return SweepPoint(step.value, estimate, low, high, certainty_of(finding), finding.counted.is_clear)
