"""How many times as long each arm takes as over a clean network: rows of a table on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from headwind.report.html.charts.axes import Scale, scale, ticks
from headwind.report.html.charts.marks import onward, stamp
from headwind.report.html.charts.ratios import tick_text
from headwind.report.html.charts.svg import WIDTH, chart, element, joined, number, path, text, text_width

_ROW, _EDGE = 24.0, 10.0

Mark = tuple[str, float, bool]  # arm, how many times, whether it is at least so many


def cost_axis(ratios: Iterable[float]) -> Scale:
    """From 1x, or less where something was faster, to the largest."""
    return scale([1.0, 1.5, *ratios], _EDGE, WIDTH - _EDGE, kind="log", pad=0.03)


def cost_labels(id: str, axis: Scale) -> Markup:  # noqa: A002
    """The labels of the axis, for the head of the table."""
    labels, free = [], 0.0
    for value in ticks(axis, 9):
        label = tick_text(value)
        left = max(0.0, axis(value) - text_width(label) / 2)
        if left >= free and left + text_width(label) <= WIDTH:
            labels.append(text(left, 10, label, class_="quiet"))
            free = left + text_width(label) + 8
    return chart("cost axis", id, 20.0, *labels, title="Axis", description="Times the median over the clean network.")


def cost_row(axis: Scale, marks: Sequence[Mark]) -> Markup:
    """A mark for each arm, joined; an arrow where it is at least so much. The figures stand beside it."""
    middle = _ROW / 2
    grid = "".join(f"M{number(axis(value))} 0V{number(_ROW)}" for value in ticks(axis, 9))
    places = [axis(ratio) for _, ratio, _ in marks]
    joint = f"M{joined((min(places), middle))}H{number(max(places))}" if places else ""
    drawn = [(onward if more else stamp)(arm, [(axis(ratio), middle)], 5) for arm, ratio, more in marks]
    return element(
        "svg", path("grid", grid), path("one", f"M{number(axis(1))} 0V{number(_ROW)}"), path("axis", joint), *drawn,
        class_="chart strip", aria_hidden="true", viewBox=f"0 0 {number(WIDTH)} {number(_ROW)}",
    )  # fmt: skip
