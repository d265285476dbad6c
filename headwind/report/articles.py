"""Published figures and the findings of runs, row by row: for a document and for a page. Pure.

Rows without a measurement stay, with the reason, so that no reader has to count missing rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from headwind.format import NOTHING, counted
from headwind.model import Condition, Matrix, Published, PublishedRow
from headwind.report.published import Row, figure_text, figure_unit, measured_text, metric_of, published_rows
from headwind.run.data import RunData
from headwind.verdicts.verdict import Rule

UNMEASURED = "not measured yet"
COLUMNS = ("row", "metric", "published", "published ratio", "measured ratio", "outcome", "blocks")

Key = tuple[str, str, str]  # condition, metric and statistic of a row


@dataclass(slots=True)
class Entry:
    """A row of an article, with its condition, if there is one, and the findings of a run."""

    published: PublishedRow
    condition: Condition | None
    found: Sequence[Row] = ()
    rule: Rule | None = None
    run: str = ""


@dataclass(slots=True)
class Article:
    """An article, with its rows from all matrices and runs."""

    title: str
    sources: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    entries: dict[Key, Entry] = field(default_factory=dict)

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that fill its rows."""
        return list(dict.fromkeys(entry.run for entry in self.entries.values() if entry.run))

    @property
    def words(self) -> Counter[str]:
        """Number of comparisons by outcome."""
        return Counter(each.word for entry in self.entries.values() for each in entry.found)

    @property
    def rows(self) -> dict[tuple[str, str], bool]:
        """Condition and metric of each row, whose statistics are one row: whether all of them were measured."""
        rows: dict[tuple[str, str], bool] = {}
        for (condition, metric, _), entry in self.entries.items():
            rows[condition, metric] = rows.get((condition, metric), True) and bool(entry.found)
        return rows


def articles_of(matrices: Iterable[Matrix], runs: Iterable[RunData]) -> dict[str, Article]:
    """Articles by name: those of the matrices, then those that only runs have.

    A run fills a row of a matrix if network and workload are the same in both. It is judged by the matrix's figures,
    which may be corrected ones. If several runs do, the last one given counts, so that a row cannot be chosen by its
    result.
    """
    articles: dict[str, Article] = {}
    for matrix in matrices:
        for source in matrix.published:
            _take(articles, source, matrix)
    for data in runs:
        for source in data.matrix.published:
            _take(articles, source, data.matrix)
        _fill(articles, data)
    return articles


def unused(matrices: Iterable[Matrix], runs: Iterable[RunData]) -> list[str]:
    """The ids of the runs that fill no row."""
    every = list(runs)
    used = {name for article in articles_of(matrices, every).values() for name in article.runs}
    return [data.id for data in every if data.id not in used]


def totals(articles: Iterable[Article]) -> str:
    """Number of measured rows, and outcomes: `42 of 59 rows measured: 20 reproduced, 22 no verdict.` as a sentence.

    A row with several statistics, or several pairs of arms, is several comparisons.
    """
    every = list(articles)
    rows = [measured for article in every for measured in article.rows.values()]
    words = sum((article.words for article in every), Counter[str]())
    figures = ", ".join(f"{words[word]} {word}" for word in ("reproduced", "contradicted", "no verdict") if words[word])
    several = f", in {counted(words.total(), 'comparison')}" if words.total() != sum(rows) else ""
    return f"{sum(rows)} of {counted(len(rows), 'row')} measured{several}{f': {figures}' if figures else ''}."


def _take(articles: dict[str, Article], source: Published, matrix: Matrix) -> None:
    """Add the new rows of a matrix; known rows stay."""
    article = articles.setdefault(source.name, Article(source.title))
    article.sources |= dict.fromkeys(filter(None, [source.source]))
    conditions = {condition.id: condition for condition in matrix.conditions}
    new = [each for each in source.rows if _key(each) not in article.entries]
    for each in new:
        article.entries[_key(each)] = Entry(each, conditions.get(each.condition_id))
    if new and source.note:
        article.notes[source.note] = None


def _fill(articles: dict[str, Article], data: RunData) -> None:
    conditions = {condition.id: condition for condition in data.matrix.conditions}
    known = [
        replace(source, rows=tuple(articles[source.name].entries[_key(each)].published for each in source.rows))
        for source in data.matrix.published
    ]
    for source in published_rows(data, data.judgement, known):
        found: dict[Key, list[Row]] = {}
        for each in source.rows:
            if each.blocks:
                found.setdefault((each.condition_id, each.metric_key, each.statistic), []).append(each)
        for key, rows in found.items():
            entry = articles[source.name].entries[key]
            if entry.condition == conditions[rows[0].condition_id]:
                entry.found, entry.rule, entry.run = rows, data.judgement.rule, data.id


def _key(published: PublishedRow) -> Key:
    return published.condition_id, published.metric, published.statistic


def lines(entry: Entry) -> Iterator[tuple[str, ...]]:
    """The cells of a row under COLUMNS, as plain texts."""
    published = entry.published
    if not entry.found or entry.rule is None:
        metric = metric_of(entry.condition, published) if entry.condition else None
        seconds_or_bps = "bps" if published.metric.endswith("_bps") else "s"
        unit = figure_unit(metric.unit if metric else seconds_or_bps, is_relative=published.is_relative)
        figures = ", ".join(f"{arm} {figure_text(unit, value)}" for arm, value in published.values.items())
        label = " ".join(filter(None, (published.statistic, metric.label if metric else published.metric)))
        reason = published.gap or UNMEASURED
        yield published.condition_id, label or NOTHING, figures or NOTHING, NOTHING, NOTHING, reason, "0"
        return
    for each in entry.found:
        outcome = f"{each.word}, {each.side}" if each.side else each.word
        figures = f"{each.new} {each.figures[0]}, {each.base} {each.figures[1]}"
        measured = measured_text(each, entry.rule)
        yield (
            published.condition_id, each.what, figures, each.published_text, measured, outcome, str(each.blocks),
        )  # fmt: skip
