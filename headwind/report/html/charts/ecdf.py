"""The share of trials that was done by each time: whole distributions, with the unfinished trials."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from headwind import format as units
from headwind.metric import Metric
from headwind.observed import Kind
from headwind.report.html.charts.axes import (
    BELOW,
    Plot,
    Scale,
    Span,
    left_room,
    scale,
    spanned,
    ticks,
    x_axis,
    y_axis,
)
from headwind.report.html.charts.labels import Label, column, column_width, lines_of
from headwind.report.html.charts.marks import DotSeries, stamp
from headwind.report.html.charts.svg import LINE, WIDTH, Point, chart, nothing, number, path, steps, text

_TOP, _BOTTOM = 26.0, 256.0
_BRACKET = 6.0  # distance from one arm's bracket to the next
NEAR = 5.0  # times the slowest trial: a later timeout would squeeze the trials into one end of the axis


def ecdf(
    id: str,  # noqa: A002
    series: Sequence[DotSeries],
    *,
    title: str,
    description: str,
    metric: Metric,
    timeout_s: float | None,
    span: Span | None = None,
) -> Markup:
    """Chart with times along (SI units of `metric`), the share of all trials up; unfinished trials never arrive.

    `span` is that of all charts of these trials (violin.span); None: chosen for these times.

    A bracket at the end of a curve is the missing share. The timeout is a dashed line if it stopped a trial, unless the
    finished ones were done long before (NEAR); None if the metric is not a time up to it.
    """
    series = [item for item in series if item.trials]
    if not series:
        return nothing("ecdf", id, "No trial gave data yet.", title=title, description=description)
    labels = [Label(item.arm, item.label, _TOP + 2 * LINE * index, _missing(item)) for index, item in enumerate(series)]
    gaps = [item for item in series if item.unfinished]
    end = WIDTH - column_width(lines_of(labels)) - 4
    plot = Plot(
        _along(series, timeout_s, span, left_room(["100 %"]), end - _BRACKET * len(gaps)),
        Scale("lin", 0.0, 1.0, _BOTTOM, _TOP),
    )
    height = max(_BOTTOM + BELOW, LINE * len(lines_of(labels)))
    return chart(
        "ecdf",
        id,
        height,
        y_axis(plot, [0, 0.25, 0.5, 0.75, 1], lambda value: units.setting("share_ratio", value), "share of trials"),
        x_axis(plot, ticks(plot.x, 5), lambda value: units.setting(metric.key, value), metric.label),
        _timeout(plot, timeout_s if any(item.values(Kind.BOUND) for item in series) else None),
        *(_bracket(item, plot.right + _BRACKET * (index + 1)) for index, item in enumerate(gaps)),
        *(_curve(plot, item) for item in series),
        column(labels, end + 4, _TOP - 8, height),
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(plot.y),
    )


def _height(share: float) -> float:
    return _BOTTOM + share * (_TOP - _BOTTOM)


def _missing(series: DotSeries) -> str:
    """Text of the missing share: `33 % not finished`; empty if all finished."""
    share = series.unfinished / series.trials
    rounded = min(max(round(share, 2), 0.01), 0.99) if series.unfinished < series.trials else 1.0
    return f"{units.setting('share_ratio', rounded)} not finished" if series.unfinished else ""


def _along(series: Sequence[DotSeries], timeout_s: float | None, span: Span | None, start: float, end: float) -> Scale:
    """Scale from just before the first time to the timeout that stopped a trial, or else to just after the last."""
    if span:
        return spanned(span, (), start, end)
    times = [value for item in series for value in item.values()]
    stopped = any(item.values(Kind.BOUND) for item in series)
    if timeout_s is None:
        return scale(times or [0.0, 1.0], start, end)
    if not times:
        return scale([timeout_s / 10, timeout_s], start, end, kind="log", pad=0)
    if not stopped or timeout_s > NEAR * max(times):
        return scale(times, start, end)
    found = scale([*times, timeout_s], start, end)
    return Scale(found.kind, found.low, max(timeout_s, *times), start, end)


def _timeout(plot: Plot, timeout_s: float | None) -> Markup:
    if timeout_s is None or not plot.x.holds(timeout_s):
        return Markup()
    x = plot.x(timeout_s)
    name = f"timeout {units.setting('timeout_s', timeout_s)}"
    line = path("timeout", f"M{number(x)} {number(_BOTTOM)}V{number(_TOP - 6)}")
    return line + text(x, 9, name, room=200, class_="quiet end")


def _bracket(series: DotSeries, x: float) -> Markup:
    """A bracket from the end of a curve to 100 %."""
    end = _height(len(series.values()) / series.trials)
    return path(f"{series.arm} bracket", f"M{number(x - 3)} {number(_TOP)}h3V{number(end)}h-3")


def _curve(plot: Plot, series: DotSeries) -> Markup:
    """A staircase with the arm's shape at one half, or at its end if it never reaches that."""
    times = sorted(series.values())
    share = 1 / series.trials
    points: list[Point] = [(plot.x(times[0]) if times else plot.left, plot.bottom)]
    points += [(plot.x(value), plot.y(share * count)) for count, value in enumerate(times, 1)]
    middle = points[min(len(times), (series.trials + 1) // 2)]
    points.append((plot.right, points[-1][1]))
    return path(f"{series.arm} curve", steps(points)) + stamp(series.arm, [middle], 4.5)
