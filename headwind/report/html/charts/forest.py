"""Estimates with their intervals as rows of a table, all on one axis: a forest plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from headwind.report.html.charts.axes import Scale, ticks
from headwind.report.html.charts.marks import crosses, stamp
from headwind.report.html.charts.ratios import tick_text
from headwind.report.html.charts.svg import SHARED, chart, element, joined, number, path, text, text_width
from headwind.verdicts.stats import Interval

_WIDTH, _ROW, _AXIS = 320.0, 18.0, 40.0
_MIDDLE = _ROW / 2
_ARROW = 5.0
_LEAST = math.log(1.25)  # in ln units: minimum reach of the axis
_WIDEST = math.log(64)  # maximum reach; an arrow head marks an end beyond it


@dataclass(frozen=True, slots=True)
class ForestAxis:
    """The ratios along all rows of a table, and the margin of ties; `id` is that of its labels."""

    x: Scale
    margin_ratio: float
    id: str


def forest_axis(id: str, intervals: Iterable[Interval], margin_ratio: float) -> ForestAxis:  # noqa: A002
    """An axis wide enough for every known end. The intervals are as they will be drawn."""
    ends = [end for each in intervals for end in (each.low, each.high, each.estimate or 0.0)]
    known = [end for end in ends if math.isfinite(end)]
    high = min(_WIDEST, max([_LEAST, *known]) * 1.05)
    low = min(_WIDEST, max([_LEAST, *(-end for end in known)]) * 1.05)
    return ForestAxis(Scale("log", math.exp(-low), math.exp(high), _ARROW, _WIDTH - _ARROW), margin_ratio, id)


def _ticks(axis: ForestAxis) -> list[float]:
    """Values 1, round ratios above it, and their inverses."""
    above = [value for value in ticks(Scale("log", 1.0, axis.x.high, 0, 1), 4) if value > 1]
    return [*(1 / value for value in reversed(above) if axis.x.holds(1 / value)), 1.0, *above]


def forest_labels(axis: ForestAxis) -> Markup:
    """The axis for the head of the table, with the arms of the sides.

    It also has the background of every row, the band of ties and the line at 1, once for all of them.
    """
    parts, free = [], -math.inf
    for value in _ticks(axis):
        label = tick_text(float(f"{value:.2g}") if value < 1 else value)
        half = text_width(label) / 2
        place = min(max(axis.x(value), half), _WIDTH - half)
        if place - half >= free:
            parts.append(text(place, 30, label, class_="quiet middle"))
            free = place + half + 6
    sides = [text(axis.x(1) + 8, 10, "first-named ahead \N{RIGHTWARDS ARROW}", class_="quiet")]
    left = "\N{LEFTWARDS ARROW} second-named ahead"
    if text_width(left) < axis.x(1) - 8:
        sides.append(text(axis.x(1) - 8, 10, left, class_="quiet end"))
    margin = 1 + axis.margin_ratio
    behind = element(
        "g",
        path("tie", f"M{joined((axis.x(1 / margin), 0))}V{number(_ROW)}H{number(axis.x(margin))}V0z"),
        path("one", f"M{joined((axis.x(1), 0))}V{number(_ROW)}"),
        id=f"{axis.id}-b",
        class_=SHARED,
    )
    return chart(
        "forest axis", axis.id, _AXIS, element("defs", behind), *sides, *parts, title="Axis", width=_WIDTH,
        description="Ratios, logarithmic: to the right of 1 the protocol that is named first is ahead.",
    )  # fmt: skip


def forest_row(
    axis: ForestAxis, interval: Interval | None, arm: str = "", *, pale: bool = False, published: float | None = None
) -> Markup:
    """An interval in the colour of `arm` (none: neutral), hollow if pale; and a published ratio as a cross.

    It is hidden from screen readers, since its figures are next to it in the table. An end beyond the axis is an arrow
    head.
    """
    parts = [element("use", href=f"#{axis.id}-b")]
    if interval:
        parts += _interval(axis, interval, arm, hollow=pale or not arm)
    if published and axis.x.holds(published):
        parts.append(crosses("published", [(axis.x(published), _MIDDLE)], 4))
    return element(
        "svg",
        *parts,
        class_=f"chart forest{' pale' if pale else ''}",
        aria_hidden="true",
        viewBox=f"0 0 {number(_WIDTH)} {number(_ROW)}",
    )


def _interval(axis: ForestAxis, interval: Interval, arm: str, *, hollow: bool) -> Iterator[Markup]:
    estimate, low, high = interval.ratios
    x, name = axis.x, arm or "open"
    caps = "".join(f"M{joined((x(end), _MIDDLE - 3))}v6" for end in (low, high) if x.holds(end))
    heads = ((low < x.low, 0.0, _ARROW), (high > x.high, _WIDTH, -_ARROW))
    cut = "".join(f"M{number(at)} {number(_MIDDLE)}l{joined((by, -3.5))}v7z" for is_cut, at, by in heads if is_cut)
    yield path(f"{name} stroke", f"M{joined((x(low), _MIDDLE))}H{number(x(high))}{caps}")
    yield path(f"{name} solid", cut)
    if estimate is not None and x.holds(estimate):
        yield stamp(name, [(x(estimate), _MIDDLE)], 4.5, hollow=hollow)
