"""Times at which an arm's requests were done, as a line: rows of a table with one axis for all conditions."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from headwind.observed import Kind, Observed
from headwind.report.html.charts.marks import crosses, onward, stamp
from headwind.report.html.charts.strip import StripAxis, strip_labels
from headwind.report.html.charts.svg import SHARED, WIDTH, element, number, path

_ROW = 22.0
_MIDDLE = _ROW / 2
_WIDTHS = (7.0, 3.5, 1.6)  # of the line from each share to the next: thinner for fewer requests


def track_labels(id: str, axis: StripAxis) -> Markup:  # noqa: A002
    """The axis for the head of the table, with the background of every row: round times."""
    height = number(_ROW)
    grid = "".join(f"M{number(axis.x(value))} 0V{height}" for value in axis.ticks)
    behind = element("g", path("grid", grid), id=f"{id}-b", class_=SHARED)
    return strip_labels(id, axis, element("defs", behind))


def track(id: str, axis: StripAxis, arm: str, reached: Sequence[Observed], handshake: float | None) -> Markup:  # noqa: A002
    """A line from the first of `reached` to the last, which has the arm's mark; a tick is the slowest handshake.

    `reached` are times in the order of shares, in the units of the axis. If a median trial was stopped before, its line
    leads to an arrow in the column of stopped trials; one that failed is a cross in that of failed ones. The figures
    stand next to it. `id` is that of the labels.
    """
    height = number(_ROW)
    tick = f"M{number(axis.x(handshake))} 0V{height}" if handshake else ""
    return element(
        "svg", element("use", href=f"#{id}-b"), *_line(axis, arm, reached),
        path("stop", tick),
        class_="chart strip", aria_hidden="true", viewBox=f"0 0 {number(WIDTH)} {height}",
    )  # fmt: skip


def _line(axis: StripAxis, arm: str, reached: Sequence[Observed]) -> list[Markup]:
    parts = []
    for width, first, last in zip(_WIDTHS, reached, reached[1:], strict=False):
        if first.is_finished and last.kind is not Kind.NOTHING:
            start, end = axis.x(first.known), axis.x(last.known) if last.is_finished else axis.scale.end
            along = f"M{number(start)} {number(_MIDDLE)}H{number(end)}"
            parts.append(path(f"{arm} bar", along, stroke_width=width))
        if not last.is_finished:
            break
    if not reached:
        return parts
    last = reached[-1]
    if last.is_finished:
        return [*parts, stamp(arm, [(axis.x(last.known), _MIDDLE)], 5)]
    draw = crosses if last.kind is Kind.NOTHING else onward
    return [*parts, draw(arm, [(axis.columns.get(last.kind, WIDTH - 8), _MIDDLE)], 4)]
