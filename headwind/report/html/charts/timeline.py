"""The trials over time, and the drift: each trial's time relative to the usual one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.format import arm_name, duration
from headwind.report.html.charts.axes import BELOW, Plot, Scale, clock_ticks, left_room, ticks, x_axis, y_axis
from headwind.report.html.charts.labels import ROOM
from headwind.report.html.charts.ratios import ratio_scale, tick_text
from headwind.report.html.charts.svg import (
    LINE,
    Point,
    chart,
    line,
    nothing,
    number,
    path,
    shortened,
    stamps,
    text,
    text_width,
)
from headwind.report.html.charts.svg import bars as bars_path

_WIDTH = 600.0
_TOP = 30.0  # below a key of one line
_ARM = 5.0  # height of an arm's row in a lane
_GAP = 4.0  # between lanes
_DRIFT = 140.0  # height of the panel below the lanes, with its heading
_MOST = 80  # points of the running median


@dataclass(frozen=True, slots=True)
class Bar:
    """A trial: its arm, its lane, its start (since the start of the run) and its length, in seconds.

    `relative` is its time divided by the median of its condition and arm; None if it has no time.
    """

    arm: str
    lane: int
    start_s: float
    length_s: float
    relative: float | None
    finished: bool


def timeline(
    id: str,  # noqa: A002
    bars: Sequence[Bar],
    lanes: Sequence[str],
    *,
    title: str,
    description: str,
) -> Markup:
    """Chart with time along; a lane for each condition with a row for each arm, and below them the drift (logarithmic).

    A trial that did not finish ends with an upright. Raises IndexError for a bar in no lane.
    """
    if not bars:
        return nothing("timeline", id, "Nothing has run yet.", title=title, description=description)
    bars = sorted(bars, key=lambda bar: (bar.start_s, bar.lane, bar.arm))
    arms = sorted({bar.arm for bar in bars})
    lane = max(_ARM * len(arms) + _GAP, LINE)
    key, more = _key(arms, stopped=any(not bar.finished for bar in bars))
    top = _TOP + LINE * more
    edge = top + lane * len(lanes)
    relatives = [bar.relative for bar in bars if bar.relative is not None]
    up = ratio_scale(relatives, 0.2, edge + (_DRIFT if relatives else 6), edge + (30 if relatives else 0))
    marked = ticks(up, 5) if relatives else []
    ends = [bar.start_s for bar in bars] + [bar.start_s + bar.length_s for bar in bars]
    low, high = min(0.0, *ends), max(ends)
    left = left_room([*(shortened(name, ROOM) for name in lanes), *map(tick_text, marked)])
    plot = Plot(Scale("lin", low, high if high > low else low + 1, left, _WIDTH - 26), up)
    rows = {arm: top + (lane - _ARM * len(arms)) / 2 + _ARM * (index + 0.5) for index, arm in enumerate(arms)}
    return chart(
        "timeline",
        id,
        plot.bottom + BELOW,
        key,
        _lanes(plot, lanes, top, lane),
        *_bars(plot, [(bar, rows[bar.arm] + lane * bar.lane) for bar in bars], arms),
        y_axis(plot, marked, tick_text, ""),
        _drift(plot, bars),
        x_axis(plot, clock_ticks(plot.x), duration, "since the start"),
        width=_WIDTH,
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(plot.y) if relatives else None,
        data_lanes=f"{number(top)} {number(lane)} {len(lanes)}",
    )


def _key(arms: Sequence[str], *, stopped: bool) -> tuple[Markup, int]:
    """The arms in the order of their rows, and what an upright means; on as many lines as they need."""
    parts, x, y = list[Markup](), 0.0, 9.0
    for arm in [*arms, *([""] if stopped else [])]:
        name = arm_name(arm) if arm else "not finished"
        wide = 19 + text_width(name)
        if x and x + wide > _WIDTH:
            x, y = 0.0, y + LINE
        mark = (
            path(f"{arm} bar", bars_path([(x, y, 14)]), stroke_width=_ARM)
            if arm
            else path("stop", f"M{number(x + 9)} {number(y - 5)}v10")
        )
        parts += [mark, text(x + 19, y, name)]
        x += wide + 14
    return Markup().join(parts), round((y - 9) / LINE)


def _lanes(plot: Plot, lanes: Sequence[str], top: float, height: float) -> Markup:
    lines = "".join(f"M0 {number(top + height * index)}H{number(plot.right)}" for index in range(len(lanes) + 1))
    names = [text(0, top + height * (index + 0.5), name, room=plot.left - 8) for index, name in enumerate(lanes)]
    return path("grid", lines) + Markup().join(names)


def _bars(plot: Plot, placed: Sequence[tuple[Bar, float]], arms: Sequence[str]) -> Iterator[Markup]:
    """A path of bars for each arm with a minimum length, and the uprights of unfinished trials."""
    for arm in arms:
        own = sorted(((y, bar) for bar, y in placed if bar.arm == arm), key=lambda pair: pair[0])
        pieces = ((plot.x(bar.start_s), y, max(1.0, _length(plot, bar))) for y, bar in own)
        yield path(f"{arm} bar", bars_path(pieces), stroke_width=_ARM - 0.8)
    ends = [(plot.x(bar.start_s) + _length(plot, bar), y - 4) for bar, y in placed if not bar.finished]
    yield path("stop", stamps(ends, "v8", (0, 8)))


def _length(plot: Plot, bar: Bar) -> float:
    return plot.x(bar.start_s + bar.length_s) - plot.x(bar.start_s)


def _drift(plot: Plot, bars: Sequence[Bar]) -> Markup:
    """A dot for each time, and the running median of all of them, over all conditions."""
    relatives = [(plot.x(bar.start_s), bar.relative) for bar in bars if bar.relative is not None]
    places = sorted(
        {(round(x), round(plot.y(relative))) for x, relative in relatives}
    )  # those at one place are one dot
    dots = path("round drift", stamps(places, "h0"))
    window = max(9, len(relatives) // 20)
    line_: list[Point] = []
    for begin in range(0, len(relatives) - window + 1, max(1, len(relatives) // _MOST)):
        part = relatives[begin : begin + window]
        line_.append((statistics.median(x for x, _ in part), plot.y(statistics.median(value for _, value in part))))
    if not relatives:
        return Markup()
    heading = text(
        0,
        plot.top - 15,
        "relative time of each trial",
        class_="quiet",
    )
    level = path("one", f"M{number(plot.left)} {number(plot.y(1))}H{number(plot.right)}")
    return heading + level + dots + path("median", line(line_) if len(line_) > 1 else "")
