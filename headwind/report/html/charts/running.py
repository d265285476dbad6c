"""The interval of a comparison block by block, which shows why it stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.report.html.charts.axes import BELOW, Plot, Scale, count_ticks, left_room, ticks, x_axis, y_axis
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
from headwind.report.html.charts.svg import LINE, WIDTH, chart, nothing, text, text_width

_TOP, _BOTTOM = 24.0, 204.0


@dataclass(frozen=True, slots=True)
class RunningPoint:
    """A ratio after a number of blocks; low 0 and high infinite: open on that side."""

    blocks: int
    estimate: float | None
    low: float
    high: float


def running(
    id: str,  # noqa: A002
    points: Sequence[RunningPoint],
    *,
    title: str,
    description: str,
    margin_ratio: float,
) -> Markup:
    """Chart with blocks along, the ratio up on a logarithmic axis: estimate, interval, and the band of ties.

    The axis is made for the later half, in which the interval is informative; values beyond it run to the edge.
    """
    if not points:
        return nothing("running", id, "No block is complete yet.", title=title, description=description)
    last = points[-1]
    later = points[len(points) // 2 :]
    up = ratio_scale(
        (ratio for point in later for ratio in (point.low, point.estimate, point.high)), margin_ratio, _BOTTOM, _TOP
    )
    marked = ticks(up, 6)
    texts = [estimate_text(last.estimate), interval_text(last.low, last.high)]
    right = WIDTH - max(map(text_width, texts)) - 14
    first = points[0].blocks
    plot = Plot(Scale("lin", first, max(last.blocks, first + 1), left_room(map(tick_text, marked)), right), up)
    return chart(
        "running",
        id,
        _BOTTOM + BELOW,
        ribbon("c1", plot, [(point.blocks, point.low, point.high) for point in points]),
        tie_band(plot, margin_ratio),
        y_axis(plot, marked, tick_text, "speed ratio"),
        x_axis(plot, count_ticks(plot.x, 4), lambda value: units.setting("", value), "blocks"),
        curve("c1", plot, [(point.blocks, point.estimate) for point in points]),
        _end(plot, last, texts),
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(plot.y),
    )


def _end(plot: Plot, last: RunningPoint, texts: Sequence[str]) -> Markup:
    """The final value: its dot, with its text next to it and its interval below."""
    middle = last.estimate if last.estimate is not None else math.sqrt(max(last.low, 1e-9) * min(last.high, 1e9))
    row = min(max(plot.y(middle), plot.top), plot.bottom - LINE)
    dot = stamp("c1", [(plot.x(last.blocks), plot.y(last.estimate))], 3.5) if last.estimate is not None else Markup()
    x = plot.right + 9
    return Markup().join((dot, text(x, row, texts[0], class_="strong"), text(x, row + LINE, texts[1], class_="quiet")))
