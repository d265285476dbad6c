"""Compares published figures with this run: the same direction, another one, or unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headwind.arm import Arm
from headwind.format import NOTHING, measured, setting
from headwind.metric import Better, Metric, Use
from headwind.model import Condition, Published, PublishedRow
from headwind.observed import Observed, mean
from headwind.report import verdicts as describe
from headwind.run.data import RunData
from headwind.verdicts.ended import ended
from headwind.verdicts.findings import Finding, columns_of
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.percentiles import percentile_interval
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Rule, Verdict, judge

Word = Literal["reproduced", "contradicted", "no verdict"]
SLIGHT = (Verdict.SLIGHTLY_FASTER, Verdict.SLIGHTLY_SLOWER)
OPEN = (Verdict.INCONCLUSIVE, Verdict.UNDECIDED)
PERCENTILES = {"p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison in one condition, as published and as measured."""

    condition_id: str
    metric: Metric
    metric_key: str  # as the article's row names it; empty: the primary one
    statistic: str  # of the article's runs; empty: a single figure
    base: Arm
    new: Arm
    published_base: float | None  # in the metric's unit; None: it gave no result
    published_new: float | None
    is_relative: bool  # published as shares of each other, without a unit
    published_ratio: float | None  # above 1: new is ahead; None if one gave no result
    published_verdict: Verdict  # FASTER, SLOWER, TIE, COMPLETES_MORE, COMPLETES_LESS; INCONCLUSIVE: both gave none
    interval: Interval | None  # of the measurement; None if nothing was compared
    finding: Finding | None  # of the interval; None for a percentile, and for a metric that is not judged
    word: Word

    @property
    def published_text(self) -> str:
        """The published result as a cell: `h3 1.69x`, `tie 1.02x`, `h3 alone gave a result`."""
        ahead = self.new if self.published_verdict.favours > 0 else self.base
        if self.published_ratio is None:
            return f"{ahead.name} alone gave a result" if self.published_verdict.favours else NOTHING
        ratio = max(self.published_ratio, 1 / self.published_ratio)
        return f"{ahead.name if self.published_verdict.favours else 'tie'} {ratio:.2f}x"

    @property
    def figures(self) -> list[str]:
        """Published figures of the candidate and the baseline."""
        unit = figure_unit(self.metric.unit, is_relative=self.is_relative)
        return [figure_text(unit, each) for each in (self.published_new, self.published_base)]

    @property
    def blocks(self) -> int:
        """Number of blocks of the measured interval."""
        return self.interval.n if self.interval else 0

    @property
    def what(self) -> str:
        """The metric, with the statistic of the article: `mean total time`."""
        return f"{self.statistic} {self.metric.label}".strip()

    @property
    def side(self) -> str:
        """Without a verdict, the side of the estimate relative to the published one. It proves nothing."""
        interval, favours = self.interval, self.published_verdict.favours
        if self.word != "no verdict" or not favours or interval is None or describe.is_equal(interval):
            return ""
        return "" if interval.estimate is None else "same side" if interval.estimate * favours > 0 else "other side"


@dataclass(frozen=True, slots=True)
class Source:
    """An article."""

    name: str
    title: str
    source: str
    note: str
    rows: tuple[Row, ...]
    gaps: Mapping[str, Sequence[str]]  # reason -> names of rows that have no counterpart here


def published_rows(data: RunData, verdicts: Judgement, articles: Sequence[Published] | None = None) -> list[Source]:
    """Every article with its comparisons, in the article's order and within a row in the matrix's.

    `articles` are those of the run's matrix by default. An article without any counterpart stays, only with its gaps:
    the reader sees why nothing is compared.
    """
    conditions = {condition.id: condition for condition in data.matrix.conditions}
    lines = {(line.condition.id, line.pair): line for line in verdicts.compared}
    articles = data.matrix.published if articles is None else articles
    percentiles = sum(row.statistic in PERCENTILES for source in articles for row in source.rows)
    seen = _Seen(data, verdicts.rule, percentiles)

    def rows(source: Published) -> Iterator[Row]:
        for row in source.rows:
            condition = conditions.get(row.condition_id)
            if condition is None or row.gap:
                continue
            for pair in _pairs(data, condition, row):
                yield _compared(row, pair, metric_of(condition, row), lines[row.condition_id, pair], seen)

    return [
        Source(source.name, source.title, source.source, source.note, tuple(rows(source)), source.gaps)
        for source in articles
    ]


def metric_of(condition: Condition, row: PublishedRow) -> Metric:
    """The metric of a row in a condition, the primary one if it names none."""
    every = condition.metrics(Use.JUDGED, Use.COMPARED)
    return next((metric for metric in every if metric.key == row.metric), condition.workload.primary())


def _pairs(data: RunData, condition: Condition, row: PublishedRow) -> Iterator[Pair]:
    """The comparisons for which the article has both sides; the candidate is the later one in the matrix."""
    for pair in pairs_of(data.matrix, condition):
        if {pair.base.name, pair.new.name} <= row.values.keys():
            yield pair


@dataclass(frozen=True, slots=True)
class _Seen:
    """Data of a run beyond its verdicts."""

    data: RunData
    rule: Rule
    percentiles: int  # number of rows about a percentile: they share the probability of an error

    def sides(self, line: Line, metric: Metric) -> tuple[Sequence[Observed], Sequence[Observed]]:
        """The values of baseline and candidate in the blocks of a comparison."""
        columns = columns_of(ended(self.data.rows.get(line.condition.id, {})), line.pair, metric)
        return columns.base, columns.new

    def percentile(self, line: Line, metric: Metric, share: float) -> Interval:
        """The ratio of a percentile over all trials of each arm."""
        confidence = 1 - (1 - self.rule.confidence) / max(1, self.percentiles)
        return percentile_interval(*self.sides(line, metric), share, confidence, metric.better)

    def means(self, line: Line, metric: Metric, margin_ratio: float = 0.0) -> Verdict:
        """The verdict of the plain means, as of published ones; INCONCLUSIVE if a trial did not finish."""
        base, new = self.sides(line, metric)
        if not base or not all(value.is_finished for value in (*base, *new)):
            return Verdict.INCONCLUSIVE
        return published_verdict(mean(base).low, mean(new).low, margin_ratio, metric.better)


def _compared(row: PublishedRow, pair: Pair, metric: Metric, line: Line, seen: _Seen) -> Row:
    base, new = row.values[pair.base.name], row.values[pair.new.name]
    verdict = published_verdict(base, new, seen.rule.margin_ratio, metric.better)
    interval, finding, found = _measured(row, verdict, metric, line, seen)
    return Row(
        condition_id=row.condition_id,
        metric=metric,
        metric_key=row.metric,
        statistic=row.statistic,
        base=pair.base,
        new=pair.new,
        published_base=base,
        published_new=new,
        is_relative=row.is_relative,
        published_ratio=_ratio(base, new, metric.better),
        published_verdict=verdict,
        interval=interval,
        finding=finding,
        word=word_for(verdict, found),
    )


def _measured(
    row: PublishedRow, published: Verdict, metric: Metric, line: Line, seen: _Seen
) -> tuple[Interval, Finding | None, Verdict]:
    """The interval to show next to a row, its finding, and its verdict as far as it counts.

    A percentile is compared with the percentile over all trials. Every other statistic is compared with the median
    difference of the two inside a block. But for an article's mean, tails decide if the means of all trials favour the
    other side than that median, or if they reproduce what it contradicts, such as by a tie: there is no verdict.
    """
    if row.statistic in PERCENTILES:
        interval = seen.percentile(line, metric, PERCENTILES[row.statistic])
        return interval, None, judge(interval, seen.rule.margin, exhausted=True)
    finding = line.findings.get(metric)
    if finding is None:
        return line.intervals[metric], None, Verdict.INCONCLUSIVE
    found = finding.counted
    if row.statistic == "mean":
        words = [word_for(published, each) for each in (found, seen.means(line, metric, seen.rule.margin_ratio))]
        if found.favours * seen.means(line, metric).favours < 0 or words == ["contradicted", "reproduced"]:
            found = Verdict.INCONCLUSIVE
    return finding.comparison.interval, finding, found


def figure_unit(unit: str, *, is_relative: bool) -> str:
    """The unit in which a figure of a metric in `unit` is shown: percent if an article has only relative ones."""
    return "ratio" if is_relative else unit


def figure_text(unit: str, value: float | None) -> str:
    """A published figure in its unit, or `no result`; a percentage as it was printed."""
    if value is None:
        return "no result"
    return (setting if unit == "ratio" else measured)(f"published_{unit}", value)


def measured_text(row: Row, rule: Rule) -> str:
    """The measurement as a cell: the leader and the size of the lead."""
    if row.finding:
        return describe.finding_text(row.finding)
    return describe.pair_text(Pair(row.base, row.new), row.interval, rule) if row.interval else NOTHING


def _ratio(base: float | None, new: float | None, better: Better) -> float | None:
    if base is None or new is None:
        return None
    return base / new if better is Better.LESS else new / base


def published_verdict(
    base: float | None, new: float | None, margin_ratio: float, better: Better = Better.LESS
) -> Verdict:
    """The verdict of two published figures for the candidate, by the rule of this run; None is a side without a result.

    Articles rarely state the uncertainty of a figure, so the bare figures are taken as exact: closer than the margin is
    a tie. A side that alone gave a result completes more often. If neither did, there is no verdict.
    """
    if base is None or new is None:
        if base is new:
            return Verdict.INCONCLUSIVE
        return Verdict.COMPLETES_MORE if base is None else Verdict.COMPLETES_LESS
    worse, other = (base, new) if better is Better.LESS else (new, base)
    if worse > other * (1 + margin_ratio):
        return Verdict.FASTER
    return Verdict.SLOWER if other > worse * (1 + margin_ratio) else Verdict.TIE


def word_for(published: Verdict, measured: Verdict) -> Word:
    """Compare the direction of a measured verdict with the published one: candidate, baseline, or neither (a tie).

    Only directions are compared: `faster` in one reproduces `completes more often` in the other. A slight difference is
    surely on its side of 1, but perhaps within the margin: it has its direction, and is no evidence against a published
    tie.
    """
    if published in OPEN or measured in OPEN or (published is Verdict.TIE and measured in SLIGHT):
        return "no verdict"
    return "reproduced" if published.favours == measured.favours else "contradicted"
