"""A ratio over the strength of an impairment: where one protocol's lead begins, grows, or reverses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.report.html.charts.axes import BELOW, Kind, Plot, Scale, left_room, ticks, x_axis, y_axis
from headwind.report.html.charts.labels import Label, column, column_width, lines_of
from headwind.report.html.charts.marks import stamp
from headwind.report.html.charts.ratios import (
    curve,
    estimate_text,
    interval_text,
    ratio_scale,
    ribbon,
    tick_text,
    tie_band,
)
from headwind.report.html.charts.svg import LINE, WIDTH, chart, element, nothing, number, path, text, text_width

_TOP, _HEIGHT = 24.0, 230.0
_CURVES = 6  # with separate colours and dashes; then they repeat
_FAR = 10.0  # settings further apart than this factor have a logarithmic scale


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A condition of a sweep: its setting (SI units), the ratio with its interval, and the verdict."""

    value: float
    estimate: float | None
    low: float
    high: float
    verdict: str
    is_clear: bool

    @property
    def text(self) -> str:
        """The verdict with its ratio: `beats 1.23x [1.18, 1.29]`."""
        return f"{self.verdict} {estimate_text(self.estimate)} {interval_text(self.low, self.high)}"


Curve = tuple[str, str, Sequence[SweepPoint]]  # key of the comparison, label, points


def sweep(
    id: str,  # noqa: A002
    curves: Sequence[Curve],
    *,
    title: str,
    description: str,
    quantity: str,
    margin_ratio: float,
    crossovers: Sequence[tuple[str, float]],
) -> Markup:
    """Chart with the setting along (SI units of `quantity`), the ratio up: a curve with its interval per comparison.

    A filled shape is a clear difference. If unfinished trials leave no ratio, the verdict's word replaces the shape.
    Crossovers are settings at which the lead changes.
    """
    curves = [(key, label, sorted(points, key=lambda point: point.value)) for key, label, points in curves if points]
    if not curves:
        return nothing("sweep", id, "No comparisons yet.", title=title, description=description)
    top = _TOP + LINE * len(crossovers)
    bottom = top + _HEIGHT
    up = _up(curves, margin_ratio, bottom, top)
    marked = ticks(up)
    names = [f"c{index % _CURVES + 1}" for index in range(len(curves))]
    labels = list(_labels(names, curves, up))
    values = sorted({point.value for _, _, members in curves for point in members})
    right = WIDTH - column_width(lines_of(labels)) - 8
    plot = Plot(
        _along([*values, *(value for _, value in crossovers)], left_room(map(tick_text, marked)) + 10, right), up
    )
    height = max(bottom + BELOW, LINE * len(labels))
    return chart(
        "sweep",
        id,
        height,
        *(
            ribbon(name, plot, [(point.value, point.low, point.high) for point in members])
            for name, (_, _, members) in zip(names, curves, strict=True)
        ),
        tie_band(plot, margin_ratio),
        y_axis(plot, marked, tick_text, "speed ratio"),
        x_axis(plot, values, lambda value: units.setting(quantity, value), units.quantity_name(quantity)),
        _crossovers(plot, crossovers, quantity),
        *(_curve(name, plot, item, quantity) for name, item in zip(names, curves, strict=True)),
        column(labels, right + 8, top - 8, height),
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(plot.y),
    )


def _labels(names: Sequence[str], curves: Sequence[Curve], up: Scale) -> Iterator[Label]:
    """The name of each curve, at the height of its end."""
    for name, (_, label, members) in zip(names, curves, strict=True):
        yield Label(name, label, up(_place(members[-1])))


def _up(curves: Sequence[Curve], margin_ratio: float, bottom: float, top: float) -> Scale:
    points = [point for _, _, members in curves for point in members]
    ratios = (ratio for point in points for ratio in (point.estimate, *_near(point)))
    return ratio_scale(ratios, margin_ratio, bottom, top)


def _near(point: SweepPoint) -> Iterator[float]:
    """The ends of an interval, limited so that the other curves do not look flat."""
    if point.estimate:
        yield max(point.low, point.estimate / 3)
        yield min(point.high, point.estimate * 3)
    else:
        yield _place(point)


def _place(point: SweepPoint) -> float:
    """The height of a point: its estimate, or else the known end of its interval, or 1."""
    if point.estimate is not None:
        return point.estimate
    return point.low if point.low > 0 else point.high if point.high < float("inf") else 1.0


def _along(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    kind: Kind = "log" if low > 0 and high > _FAR * low else "lin"
    if low == high:
        low, high = low - (abs(low) or 1.0), high + (abs(high) or 1.0)
    return Scale(kind, low, high, start, end)


def _crossovers(plot: Plot, crossovers: Sequence[tuple[str, float]], quantity: str) -> Markup:
    """A line from 1x up to a label; labels further right are in lower rows, so no line meets another's label."""
    parts = []
    for index, (name, value) in enumerate(sorted(crossovers, key=lambda each: each[1])):
        x, row = plot.x(value), _TOP + LINE * (index + 0.5) - 6
        parts.append(path("crossover", f"M{number(x)} {number(plot.y(1) + 6)}V{number(row - 5)}"))
        words = f"{name} even at {units.measured(quantity, value)}"
        fits = x + 5 + text_width(words) <= WIDTH
        parts.append(text(x + 5 if fits else x - 5, row, words, class_="" if fits else "end"))
    return Markup().join(parts)


def _curve(name: str, plot: Plot, item: Curve, quantity: str) -> Markup:
    key, label, points = item
    parts = [curve(name, plot, [(point.value, point.estimate) for point in points])]
    for point in points:
        x, y = plot.x(point.value), plot.y(_place(point))
        tooltip = element("title", f"{label}, {units.setting(quantity, point.value)}: {point.text}")
        if point.estimate is None:
            shape = text(x, y, point.verdict, class_=f"{name} symbol middle")
        else:
            shape = stamp(name, [(x, y)], 4.5, hollow=not point.is_clear)
        parts.append(element("g", tooltip, shape))
    return element("g", *parts, data_key=key)
