"""Every trial of a condition on one line for each arm, the median large: rows of a table that share one axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.observed import Kind, Observed
from headwind.report.html.charts.axes import Scale, scale, ticks
from headwind.report.html.charts.ecdf import NEAR
from headwind.report.html.charts.marks import DotSeries, crosses, stamp
from headwind.report.html.charts.svg import (
    ELLIPSIS,
    WIDTH,
    Point,
    chart,
    element,
    joined,
    number,
    path,
    stamps,
    text,
    text_width,
)

_ROW = 13.0  # of an arm
_EDGE = 5.0  # above the first and below the last
_AXIS = 20.0  # the height of the row of labels
_MOST_TICKS = 9
_FAILED = 16.0  # the room at the right for trials without a time
_BREAK = 36.0  # from the end of the axis to a timeout that lies far beyond it


@dataclass(frozen=True, slots=True)
class StripAxis:
    """What the rows of one table share: the axis of times, and where trials were stopped (None: nowhere)."""

    scale: Scale
    quantity: str
    stopped: float | None

    @property
    def is_broken(self) -> bool:
        """Whether the timeout lies beyond the axis, apart from it."""
        return self.stopped is not None and not self.scale.holds(self.stopped)

    def x(self, value: float) -> float:
        """The place of a time; of the timeout and beyond it that of the timeout."""
        if self.is_broken and value >= (self.stopped or 0.0):
            return self.scale.end + _BREAK
        return self.scale(value)

    @property
    def ticks(self) -> list[float]:
        """Round values, without one that meets the place of the timeout."""
        return ticks(self.scale, _MOST_TICKS)


def strip_axis(values: Iterable[Observed], quantity: str, timeout: float | None) -> StripAxis:
    """A logarithmic axis for all of them; where a trial was stopped, the timeout is on it, or beyond it if not NEAR.

    `values` are in SI units of `quantity`, `timeout` too (None: nothing stops a trial at a value of it).
    """
    values = list(values)
    finished = [value.known for value in values if value.is_finished and value.known > 0]
    stopped = timeout if any(value.kind is Kind.BOUND for value in values) else None
    bounds = [value.known for value in values if value.kind is Kind.BOUND]
    end = WIDTH - _FAILED - 6.0
    if stopped and finished and stopped > NEAR * max(finished):
        return StripAxis(scale(finished, 6.0, end - _BREAK, kind="log", pad=0.03), quantity, stopped)
    told = [*finished, *bounds, *([stopped] if stopped else [])] or [1.0, 2.0]
    return StripAxis(scale(told, 6.0, end, kind="log", pad=0.03), quantity, stopped)


def strip_labels(id: str, axis: StripAxis, *more: Markup) -> Markup:  # noqa: A002
    """The axis's labels, for the head of the table: as wide as the strips below it; `more` is beside them."""
    labels, free, limit = [], -math.inf, axis.x(axis.stopped) if axis.stopped else math.inf
    if axis.stopped:
        stop = f"{f'{ELLIPSIS} ' if axis.is_broken else ''}timeout {units.setting(axis.quantity, axis.stopped)}"
        limit -= text_width(stop) + 4
        labels.append(text(axis.x(axis.stopped) + 4, _AXIS / 2, stop, class_="end"))
    for value in axis.ticks:
        place, label = axis.x(value), units.setting(axis.quantity, value)
        left = max(0.0, place - text_width(label) / 2)
        if left >= free and left + text_width(label) < limit:
            labels.append(text(left, _AXIS / 2, label, class_="quiet"))
            free = left + text_width(label) + 8
    return chart(
        "strip axis", id, _AXIS, *more, *labels, title="Axis", description="Of the times below it.",
    )  # fmt: skip


def strip(id: str, series: Sequence[DotSeries], axis: StripAxis, *, medians: dict[str, Observed], title: str) -> Markup:  # noqa: A002
    """A line for each arm: small marks are trials, the large one is the median.

    What was stopped is an arrow at its bound, and the timeout a line there; what has no time is a cross at the right
    end. `medians` are by arm.
    """
    height = 2 * _EDGE + _ROW * len(series)
    grid = "".join(f"M{number(axis.x(value))} 0V{number(height)}" for value in axis.ticks)
    rows = [(item, _EDGE + _ROW * (index + 0.5)) for index, item in enumerate(series)]
    said = "; ".join(f"{item.label} {units.observed_text(axis.quantity, medians.get(item.arm))}" for item in series)
    return chart(
        "strip", id, height,
        path("grid", grid),
        timeout_line(axis, height, (mark for item in series for mark in item.marks)),
        element("g", *(_trials(item, y, axis) for item, y in rows), class_="faint"),
        *(_median(item.arm, medians.get(item.arm), y, axis) for item, y in rows),
        title=title,
        description=f"Medians: {said}.",
    )  # fmt: skip


def timeout_line(axis: StripAxis, height: float, marks: Iterable[Observed | None]) -> Markup:
    """From top to bottom where the timeout is, if one of these was stopped."""
    if axis.stopped is None or not any(mark and mark.kind is Kind.BOUND for mark in marks):
        return Markup()
    return path("timeout", f"M{number(axis.x(axis.stopped))} 0V{number(height)}")


def _trials(series: DotSeries, y: float, axis: StripAxis) -> Markup:
    """Dots from left to right, one for those at the same place: the line tells the arm, and a long run stays small."""
    known = [mark for mark in series.marks if mark]
    places = sorted({round(2 * axis.x(mark.known)) / 2 for mark in known if mark.is_finished})
    bounds = dict.fromkeys((axis.x(mark.known), y) for mark in known if mark.kind is Kind.BOUND)
    failed = [(WIDTH - _FAILED / 2, y)] if any(mark.kind is Kind.NOTHING for mark in known) else []
    dots = path(f"{series.arm} round", stamps(((x, y) for x in places), "h0"), stroke_width=4.4)
    return dots + onward(series.arm, bounds, 3) + crosses(series.arm, failed, 3.5)


def _median(arm: str, value: Observed | None, y: float, axis: StripAxis) -> Markup:
    if value is None:
        return Markup()
    if value.kind is Kind.NOTHING:
        return crosses(arm, [(WIDTH - _FAILED / 2, y)], 5)
    place = (axis.x(value.known), y)
    draw = onward if value.kind is Kind.BOUND else stamp
    return element("g", draw(arm, [place], 6.4), class_="ring") + draw(arm, [place], 5)


def onward(arm: str, points: Iterable[Point], size: float) -> Markup:
    """An arrow to the right at every point: the trial was stopped, its time lies further on."""
    wing = round(0.8 * size, 1)
    draw = f"h{number(2 * size)}l{joined((-wing, -wing))} {joined((wing, wing))} {joined((-wing, wing))}"
    moved = ((x - size, y) for x, y in points)
    return path(f"{arm} stroke onward", stamps(moved, draw, (2 * size - wing, wing)))
