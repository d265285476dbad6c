"""Distribution of each arm's trials: density, quartiles, and every trial if there are few."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headwind import format as units
from headwind.metric import Better, Metric
from headwind.observed import Kind, median, quantile
from headwind.report.html.charts.axes import Plot, Scale, Span, left_room, scale, ticks, y_axis
from headwind.report.html.charts.ecdf import NEAR
from headwind.report.html.charts.marks import UNFINISHED, DotSeries, arrows, crosses, name_of
from headwind.report.html.charts.svg import LINE, WIDTH, chart, line, nothing, number, path, stamps, text, text_width

_TOP = 26.0
_HEIGHT = 230.0
_ROW = 18.0  # of the trials that were stopped, or failed
_FEWEST = 5  # times with a density
_MOST_DOTS = 30  # times that are shown one by one
_BOX = 5.0  # half its width
_RADIUS = 2.2
_GAP = 8.0  # between names under neighbouring columns
_FEW = 3  # columns, whose names stand in one row


@dataclass(frozen=True, slots=True)
class _Violin:
    """An arm's column: `places` are times, `heights` shares of all trials for each unit of the scale."""

    series: DotSeries
    places: Floats
    heights: Floats

    @classmethod
    def of(cls, series: DotSeries, *, log: bool) -> _Violin:
        times = series.values()
        if len(times) < _FEWEST:
            return cls(series, np.empty(0), np.empty(0))
        places, heights = density([math.log(time) for time in times] if log else times)
        return cls(series, np.exp(places) if log else places, heights * len(times) / series.trials)


def span(series: Sequence[DotSeries], timeout_s: float | None) -> Span | None:
    """Range from the shortest time to the longest, with violins, and with a timeout that stopped a trial soon after.

    It is for all charts of a condition. None if there is no time, or one that has no logarithm.
    """
    times = [value for item in series for value in item.values()]
    if not times or min(times) <= 0:
        return None
    ends = [
        end for item in series if len(item.values()) >= _FEWEST for end in reach(list(map(math.log, item.values())))
    ]
    stopped = any(item.values(Kind.BOUND) for item in series)
    limit = [timeout_s] if timeout_s and stopped and timeout_s <= NEAR * max(times) else []
    return min([*times, *map(math.exp, ends)]), max([*times, *map(math.exp, ends), *limit])


def violin(
    id: str,  # noqa: A002
    series: Sequence[DotSeries],
    *,
    title: str,
    description: str,
    metric: Metric,
    span: Span | None = None,
) -> Markup:
    """Chart with a column for each arm, times up (SI units of `metric`): trials, quartiles, and half a violin.

    Quartiles are those of all trials, and an unfinished one is slower than any time: a box without a lid has its
    upper quartile among them. Equal areas are equal shares of an arm's trials. Fewer than five times: only dots.
    `span` is that of all charts of these trials; None: chosen for these times.
    """
    series = [item for item in series if item.trials]
    if not series:
        return nothing("violin", id, "No trial gave data yet.", title=title, description=description)
    times = [value for item in series for value in item.values()]
    log = bool(times) and min(times) > 0
    violins = [_Violin.of(item, log=log) for item in series]
    ends = [float(end) for item in violins for end in (*item.places[:1], *item.places[-1:])]
    kinds = [kind for kind in UNFINISHED if any(item.values(kind) for item in series)]
    top = _TOP + _ROW * len(kinds)
    bottom = top + (_HEIGHT if times else 6)
    domain = span or [*times, *ends] or [1.0, 2.0]
    up = scale(domain, bottom, top + (10 if kinds else 0), kind="log" if log else "lin", pad=0.02 if span else 0.05)
    marked = ticks(up) if times else []
    rows = {kind: (_TOP + _ROW * (index + 0.5), name_of(kind, series, metric.key)) for index, kind in enumerate(kinds)}
    words = ["median", *(units.setting(metric.key, value) for value in marked), *(name for _, name in rows.values())]
    plot = Plot(Scale("lin", -0.5, len(series) - 0.5, left_room(words), WIDTH - 4), up)
    room = (plot.right - plot.left) / len(series)
    widest = max((float(item.heights.max()) for item in violins if item.heights.size), default=1.0)
    names = _Names.of([item.label for item in series], room - _GAP)
    return chart(
        "violin",
        id,
        bottom + 15 + LINE * (max(map(len, names.lines)) + 0.5),
        y_axis(plot, marked, lambda value: units.setting(metric.key, value), metric.label),
        path("axis", f"M{number(plot.left)} {number(bottom)}H{number(plot.right)}"),
        *(text(plot.left - 8, y, name, class_="end") for y, name in rows.values()),
        *(_unfinished(item, kind, plot.x(index), rows[kind][0]) for index, item in enumerate(series) for kind in kinds),
        *(part for index, item in enumerate(violins) for part in _drawn(item, plot, index, room / widest)),
        *_written(names, [_median(item, metric.key) for item in series], plot),
        title=title,
        description=description,
        data_x=str(plot.x),
        data_y=str(up) if times else None,
    )


def _unfinished(series: DotSeries, kind: Kind, x: float, y: float) -> Markup:
    count = len(series.values(kind))
    if not count:
        return Markup()
    mark = (arrows if kind is Kind.BOUND else crosses)(series.arm, [(x, y)], 4)
    return mark + text(x + 9, y, f"{count} of {series.trials}", class_="quiet")


def _drawn(violin: _Violin, plot: Plot, column: int, widest: float) -> Iterator[Markup]:
    """Density at the right, box in the middle, dots at the left."""
    arm, middle, times = violin.series.arm, plot.x(column), sorted(violin.series.values())
    if violin.heights.size:
        edge = middle + _BOX + 3
        outline = [(edge, plot.y(violin.places[0]))]
        outline += [
            (edge + 0.36 * widest * height, plot.y(place))
            for place, height in zip(violin.places, violin.heights, strict=True)
        ]
        outline.append((edge, plot.y(violin.places[-1])))
        yield path(f"{arm} density", line(outline) + "z")
    if len(times) <= _MOST_DOTS:
        rows = [plot.y(time) for time in times]
        aside = swarm(rows, 2 * _RADIUS, max(1, round((plot.right - plot.left) / plot.x.high / 2.6 / _RADIUS / 2)))
        left = middle - (_BOX + 4 + _RADIUS if len(times) >= _FEWEST else 0)
        points = [(left - 2 * _RADIUS * by, row) for by, row in zip(aside, rows, strict=True)]
        yield path(f"{arm} round", stamps(points, "h0"), stroke_width=2 * _RADIUS)
    if len(times) >= _FEWEST:
        yield _box(violin.series, plot, middle)


def _box(series: DotSeries, plot: Plot, x: float) -> Markup:
    """Quartiles, a line from the first to the last time, and the median."""
    low, middle, high = (quantile(series.ordered, share) for share in (0.25, 0.5, 0.75))
    left = number(x - _BOX)
    whisker = f"M{number(x)} {number(plot.y(min(series.values())))}V{number(plot.y(max(series.values())))}"
    parts = [path(f"{series.arm} whisker", whisker)]
    if low.is_finished:
        beyond = math.inf if series.better is Better.LESS else -math.inf
        right, top = number(x + _BOX), number(plot.y(high.known if high.is_finished else beyond))
        lid = "z" if high.is_finished else ""
        parts.append(path(f"{series.arm} box", f"M{left} {top}V{number(plot.y(low.known))}H{right}V{top}{lid}"))
    if middle.is_finished:
        parts.append(path("median", f"M{left} {number(plot.y(middle.known))}h{number(2 * _BOX)}"))
    return Markup().join(parts)


@dataclass(frozen=True, slots=True)
class _Names:
    """The lines under each column, and their room; every second column's begin below the others' if `step` is 2."""

    lines: list[list[str]]
    room: float
    step: int = 1

    @classmethod
    def of(cls, labels: Sequence[str], room: float) -> _Names:
        """The names in one row, or in two if one of many has too little room."""
        names = [_wrapped(label, room) for label in labels]
        if len(labels) <= _FEW or all(text_width(words) <= room for lines in names for words in lines):
            return cls(names, room)
        room = min(2 * room, (WIDTH + _GAP) / math.ceil(len(labels) / 2) - _GAP)
        names = [_wrapped(label, room) for label in labels]
        depth = max(map(len, names[::2]))
        return cls([[""] * depth * (index % 2) + lines for index, lines in enumerate(names)], room, 2)

    def places(self, x: Scale) -> list[float]:
        """Middles of the names: under the columns, except those that would run over the end or into the next."""
        half = [max(min(text_width(words), self.room) for words in lines) / 2 for lines in self.lines]
        found = {index + len(half): WIDTH + _GAP for index in range(self.step)}  # start of the next one
        middles = list[float]()
        for index in reversed(range(len(half))):
            middle = max(half[index], min(x(index), found[index + self.step] - _GAP - half[index]))
            found[index] = middle - half[index]
            middles.insert(0, middle)
        return middles


def _wrapped(label: str, room: float) -> list[str]:
    """A label on one line, or on two if it has a space."""
    if text_width(label) <= room or " " not in label:
        return [label]
    return list(label.split(" ", 1))


def _median(series: DotSeries, quantity: str) -> str:
    """The median of all trials: a bound if it is a stopped trial, a dash if it is a failed one."""
    middle = median(series.ordered)
    return units.NOTHING if middle.kind is Kind.NOTHING else units.observed_text(quantity, middle)


def _written(names: _Names, medians: Sequence[str], plot: Plot) -> Iterator[Markup]:
    """The name under each column, and its median in a row of medians."""
    first, last = plot.bottom + 13, plot.bottom + 13 + LINE * max(map(len, names.lines))
    yield text(plot.left - 8, last, "median", class_="quiet end")
    places = names.places(plot.x)
    for index, (lines, middle) in enumerate(zip(names.lines, medians, strict=True)):
        for row, words in enumerate(lines):
            if words:
                yield text(places[index], first + LINE * row, words, room=names.room, class_="middle")
        yield text(plot.x(index), last, middle, class_="strong middle")


Floats = NDArray[np.float64]

POINTS = 40  # of a density


def bandwidth(values: Floats) -> float:
    """Bandwidth of a Gaussian kernel; 0 for values that are all equal.

    0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5): Silverman, "Density Estimation for Statistics and
    Data Analysis", 1986, equation 3.31. Where half of the values are equal, the standard deviation alone.
    """
    deviation = float(np.std(values, ddof=1))
    low, high = np.quantile(values, [0.25, 0.75])
    narrow = min(deviation, float(high - low) / 1.34) or deviation
    return 0.9 * narrow * len(values) ** -0.2 if deviation > 1e-9 * max(1.0, float(np.abs(values).max())) else 0.0


def reach(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the density of the values: two bandwidths beyond them."""
    data = np.asarray(values, dtype=float)
    beyond = 2 * bandwidth(data)
    return float(data.min()) - beyond, float(data.max()) + beyond


def density(values: Sequence[float]) -> tuple[Floats, Floats]:
    """POINTS places and how densely the values lie there; its integral is about 1. Two empty arrays if all are equal.

    It ends as `reach` says, at an eighth of one kernel. The heights are those of
    scipy.stats.gaussian_kde (a test compares them); to import that takes longer than to draw a page.
    """
    data = np.asarray(values, dtype=float)
    width = bandwidth(data)
    if not width:
        return np.empty(0), np.empty(0)
    places = np.linspace(*reach(values), POINTS)
    kernels = np.exp(-0.5 * ((places[:, None] - data[None, :]) / width) ** 2)
    return places, kernels.sum(axis=1) / (len(data) * width * math.sqrt(2 * math.pi))


def swarm(heights: Sequence[float], size: float, most: int) -> list[int]:
    """Number of steps of `size` that each dot moves aside so that no two touch; beyond `most` they may."""
    steps: list[int] = []
    for index, height in enumerate(heights):
        near = [steps[other] for other in range(index) if abs(heights[other] - height) < size]
        steps.append(next((step for step in range(most) if step not in near), len(near) % most))
    return steps
