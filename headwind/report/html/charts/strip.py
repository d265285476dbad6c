"""Every trial of a condition on one line for each arm, its median as an outline: rows of a table with one axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.observed import Kind, Observed
from headwind.report.html.charts.axes import Scale, scale, ticks
from headwind.report.html.charts.marks import DotSeries, stamp
from headwind.report.html.charts.svg import (
    WIDTH,
    chart,
    element,
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
_COLUMN = 72.0  # the width of a column of counts, for trials without a time


@dataclass(frozen=True, slots=True)
class StripAxis:
    """The common parts of a table's rows: the axis of times, and columns at its right for trials without a time."""

    scale: Scale
    quantity: str
    stopped: float | None  # the bound of trials that were stopped; None: no column for them
    failed: bool  # True if there is a column for trials that ended without a time

    def x(self, value: float) -> float:
        """The position of a time."""
        return self.scale(value)

    @property
    def ticks(self) -> list[float]:
        """Round values on the axis."""
        return ticks(self.scale, _MOST_TICKS)

    @property
    def columns(self) -> dict[Kind, float]:
        """The position of the middle of each column of counts."""
        kinds = [*([Kind.BOUND] if self.stopped is not None else []), *([Kind.NOTHING] if self.failed else [])]
        return {kind: WIDTH - _COLUMN * (len(kinds) - number - 0.5) for number, kind in enumerate(kinds)}


def strip_axis(values: Iterable[Observed], quantity: str, timeout: float | None) -> StripAxis:
    """A logarithmic axis for all values with a time, and a column for each kind of those without.

    `values` and `timeout` are in SI units of `quantity` (`timeout` None: no trial is stopped at a value of it).
    """
    values = list(values)
    finished = [value.known for value in values if value.is_finished and value.known > 0]
    bounds = [value.known for value in values if value.kind is Kind.BOUND]
    stopped = (timeout or min(bounds)) if bounds else None
    failed = any(value.kind is Kind.NOTHING for value in values)
    end = WIDTH - 6.0 - _COLUMN * ((stopped is not None) + failed)
    return StripAxis(scale(finished or [1.0, 2.0], 6.0, end, kind="log", pad=0.03), quantity, stopped, failed)


def strip_labels(id: str, axis: StripAxis, *more: Markup) -> Markup:  # noqa: A002
    """The axis's labels, for the head of the table: as wide as the strips below it; `more` is next to them."""
    heads = {Kind.BOUND: "timed out", Kind.NOTHING: "no result"}
    labels = [text(x, _AXIS / 2, heads[kind], class_="middle quiet") for kind, x in axis.columns.items()]
    free = -math.inf
    for value in axis.ticks:
        place, label = axis.x(value), units.setting(axis.quantity, value)
        left = max(0.0, place - text_width(label) / 2)
        if left >= free and left + text_width(label) < axis.scale.end + 6:
            labels.append(text(left, _AXIS / 2, label, class_="quiet"))
            free = left + text_width(label) + 8
    return chart(
        "strip axis", id, _AXIS, *more, *labels, title="Axis", description="The axis of the times below it.",
    )  # fmt: skip


def strip(id: str, series: Sequence[DotSeries], axis: StripAxis, *, medians: dict[str, Observed], title: str) -> Markup:  # noqa: A002
    """A line for each arm: dots are trials, the outline is their median, and trials without a time are counted.

    `medians` are by arm.
    """
    height = 2 * _EDGE + _ROW * len(series)
    grid = "".join(f"M{number(axis.x(value))} 0V{number(height)}" for value in axis.ticks)
    rows = [(item, _EDGE + _ROW * (index + 0.5)) for index, item in enumerate(series)]
    summary = "; ".join(_summary(item, axis, medians) for item in series)
    return chart(
        "strip", id, height,
        path("grid", grid),
        element("g", *(_trials(item, y, axis) for item, y in rows), class_="faint"),
        *(_median(item.arm, medians.get(item.arm), y, axis) for item, y in rows),
        *(_counts(item, y, axis) for item, y in rows),
        title=title,
        description=f"Medians: {summary}.",
    )  # fmt: skip


def _summary(series: DotSeries, axis: StripAxis, medians: dict[str, Observed]) -> str:
    """Summary of an arm: `HTTP/2 9.32 s (3 timed out)`."""
    counts = {"timed out": len(series.values(Kind.BOUND)), "failed": len(series.values(Kind.NOTHING))}
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    median = units.observed_text(axis.quantity, medians.get(series.arm))
    return f"{series.label} {median}{f' ({counted})' if counted else ''}"


def _trials(series: DotSeries, y: float, axis: StripAxis) -> Markup:
    """Dots from left to right, one for those at the same place: the line shows the arm, and a long run stays small."""
    places = sorted({round(2 * axis.x(value)) / 2 for value in series.values()})
    return path(f"{series.arm} round", stamps(((x, y) for x in places), "h0"), stroke_width=4.4) if places else Markup()


def _counts(series: DotSeries, y: float, axis: StripAxis) -> Markup:
    """Number of trials without a time, in the column of their kind."""
    counts = {kind: len(series.values(kind)) for kind in axis.columns}
    return Markup("").join(
        text(x, y, str(counts[kind]), class_=f"middle count {series.arm}")
        for kind, x in axis.columns.items()
        if counts[kind]
    )


def _median(arm: str, value: Observed | None, y: float, axis: StripAxis) -> Markup:
    """An outline that hides no dot; for a median without a time it surrounds the count."""
    if value is None:
        return Markup()
    x = axis.x(value.known) if value.is_finished else axis.columns.get(value.kind)
    return element("g", stamp(arm, [(x, y)], 5.5, hollow=True), class_="outline") if x is not None else Markup()
