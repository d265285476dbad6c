"""Every trial as a dot, joined by block: the leader of each block, and a drift of the network."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.metric import Metric
from headwind.observed import Kind
from headwind.report.html.charts.axes import (
    BELOW,
    Plot,
    Scale,
    Span,
    count_ticks,
    left_room,
    spanned,
    ticks,
    x_axis,
    y_axis,
)
from headwind.report.html.charts.labels import Label, column, column_width, lines_of
from headwind.report.html.charts.marks import UNFINISHED, DotSeries, arrows, crosses, name_of, stamp
from headwind.report.html.charts.svg import LINE, WIDTH, chart, nothing, number, path, text

_TOP = 26.0  # below the axis's name
_HEIGHT = 230.0  # of the times
_ROW = LINE  # height of a row for one arm's trials that were stopped, or failed


@dataclass(frozen=True, slots=True)
class _Row:
    """The trials of one arm that were stopped, or that failed, above the times."""

    kind: Kind
    series: DotSeries
    y: float

    @property
    def count(self) -> str:
        return f"{len(self.series.values(self.kind))} of {self.series.trials}"


def dots(
    id: str,  # noqa: A002
    series: Sequence[DotSeries],
    *,
    title: str,
    description: str,
    metric: Metric,
    blocks: Sequence[int],
    span: Span | None = None,
) -> Markup:
    """Chart with blocks along, times up (SI units of `metric`); `blocks` has the number of the block of each mark.

    `span` is that of all charts of these trials (violin.span); None: chosen for these times.

    Trials without a time are above the others, a row for each arm: arrows if they were stopped, crosses if they failed.
    Raises ValueError if a series does not have one mark, or None, for each block.
    """
    if any(len(item.marks) != len(blocks) for item in series):
        raise ValueError("a series has one mark, or None, for each block")
    series = [item for item in series if item.trials]
    if not series:
        return nothing("dots", id, "No trial gave data yet.", title=title, description=description)
    rows = list(_rows(series))
    times = [value for item in series for value in item.values()]
    top = _TOP + _ROW * len(rows)
    up = spanned(span, times or [1.0, 2.0], top + (_HEIGHT if times else 6), top + (10 if rows else 0))
    marked = ticks(up) if times else []
    labels = [Label(item.arm, item.label, top + LINE * (index + 0.5)) for index, item in enumerate(series)]
    room = column_width([*lines_of(labels), *(row.count for row in rows)])
    names = (name for name, _ in _names(rows, metric.key))
    left = left_room([*(units.setting(metric.key, value) for value in marked), *names])
    plot = Plot(Scale("lin", min(blocks) - 0.6, max(blocks) + 0.6, left, WIDTH - room - 4), up)
    height = max(plot.bottom + BELOW, top + LINE * len(labels))
    return chart(
        "dots",
        id,
        height,
        y_axis(plot, marked, lambda value: units.setting(metric.key, value), metric.label),
        x_axis(plot, count_ticks(plot.x), lambda value: units.setting("", value), "block"),
        _unfinished(plot, rows, blocks, metric.key),
        *_marks(plot, series, blocks, rows),
        column(labels, plot.right + 4, top, height),
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(plot.y) if times else None,
        data_rows=" ".join(f"{row.kind}:{row.series.arm}:{number(row.y)}" for row in rows) or None,
    )


def _rows(series: Sequence[DotSeries]) -> Iterator[_Row]:
    found = [(kind, item) for kind in UNFINISHED for item in series if item.values(kind)]
    for index, (kind, item) in enumerate(found):
        yield _Row(kind, item, _TOP + _ROW * (index + 0.5))


def _names(rows: Sequence[_Row], quantity: str) -> Iterator[tuple[str, float]]:
    """The name of each kind's rows, and the height of their middle."""
    for kind in dict.fromkeys(row.kind for row in rows):
        members = [row for row in rows if row.kind is kind]
        yield name_of(kind, [row.series for row in members], quantity), statistics.fmean(row.y for row in members)


def _unfinished(plot: Plot, rows: Sequence[_Row], blocks: Sequence[int], quantity: str) -> Markup:
    parts = []
    for row in rows:
        points = [
            (plot.x(block), row.y)
            for block, mark in zip(blocks, row.series.marks, strict=True)
            if mark and mark.kind is row.kind
        ]
        parts.append((arrows if row.kind is Kind.BOUND else crosses)(row.series.arm, points, 3.5))
        parts.append(
            column([Label(row.series.arm, row.count, row.y)], plot.right + 4, row.y - LINE / 2, row.y + LINE / 2)
        )
    parts += [text(plot.left - 8, y, name, class_="end") for name, y in _names(rows, quantity)]
    if any(row.kind is Kind.BOUND for row in rows):
        edge = _TOP + _ROW * len(rows)
        parts.append(path("timeout", f"M{number(plot.left)} {number(edge)}H{number(plot.right)}"))
    return Markup().join(parts)


def _marks(plot: Plot, series: Sequence[DotSeries], blocks: Sequence[int], rows: Sequence[_Row]) -> Iterator[Markup]:
    """The dots, smaller if there are more blocks, and under them a line for each block from end to end."""
    radius = max(1.5, min(4.0, 0.45 * (plot.right - plot.left) / (len(blocks) + 1)))
    above = {(row.series.arm, row.kind): row.y for row in rows}
    joints = []
    for index, block in enumerate(blocks):
        marks = [(item.arm, mark) for item in series if (mark := item.marks[index])]
        ends = [plot.y(mark.known) if mark.is_finished else above[arm, mark.kind] for arm, mark in marks]
        if len(ends) > 1:
            joints.append(f"M{number(plot.x(block))} {number(min(ends))}V{number(max(ends))}")
    yield path("joint", "".join(joints))
    for item in series:
        places = zip(blocks, item.marks, strict=True)
        points = [(plot.x(block), plot.y(mark.known)) for block, mark in places if mark and mark.is_finished]
        yield stamp(item.arm, points, radius)
