"""Axes of charts: scales from values to positions, round tick values, and their drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from headwind.report.html.charts.svg import LINE, element, number, path, text, text_width

WIDE = 4.0  # values further apart than this factor have a logarithmic scale
_MOST_TICKS = 6
_TICK = 15.0  # from an x axis to the middle of its labels
BELOW = _TICK + LINE + 9  # the height that an x axis needs below it
_ROUND = (1.0, 2.0, 2.5, 5.0)
_CLOCK_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)

Kind = Literal["lin", "log"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from low to high on pixels from start to end, which may run backwards."""

    kind: Kind
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value; values outside, including infinities, are put on the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.kind == "log":
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def __str__(self) -> str:
        """Text for data-x and data-y: kind, lowest and highest value, and their positions."""
        return f"{self.kind} {self.low:.9g} {self.high:.9g} {number(self.start)} {number(self.end)}"

    def holds(self, value: float) -> bool:
        """True if the value lies inside the scale, and is not only put on an end."""
        return self.low <= value <= self.high


def scale(values: Iterable[float], start: float, end: float, *, kind: Kind | None = None, pad: float = 0.05) -> Scale:
    """A scale for all values with some room around them; logarithmic if they are WIDE apart and above 0."""
    values = list(values)
    low, high = min(values), max(values)
    if kind is None:
        kind = "log" if low > 0 and high > WIDE * low else "lin"
    same = high - low <= 1e-9 * max(abs(low), abs(high))
    if kind == "log":
        room = 0.1 if same else pad * math.log(high / low)
        return Scale(kind, low * math.exp(-room), high * math.exp(room), start, end)
    room = (abs(high) * 0.1 or 1.0) if same else pad * (high - low)
    return Scale(kind, low - room if low < 0 else max(0.0, low - room), high + room, start, end)


Span = tuple[float, float]  # the lowest and the highest value of several charts of the same trials


def spanned(span: Span | None, values: Iterable[float], start: float, end: float) -> Scale:
    """A logarithmic scale from end to end of the span; without one a scale for the values."""
    return scale(span or values, start, end, kind="log" if span else None, pad=0.02 if span else 0.05)


def ticks(scale: Scale, most: int = _MOST_TICKS) -> list[float]:
    """A few round values on a scale: 1-2-5 if it is logarithmic and wide, evenly spaced ones otherwise."""
    found = _decades(scale, most + 1) if scale.kind == "log" else []
    return found if len(found) > 2 else even_ticks(scale, most)


def _decades(scale: Scale, most: int) -> list[float]:
    """Values 1-2-5, else powers of ten, else every second, third, ... of them."""
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    tries = [[float(f"{m}e{power}") for power in range(first, last + 1) for m in (1, 2, 5)]]
    tries += [[float(f"1e{power}") for power in range(first, last + 1) if power % by == 0] for by in range(1, 100)]
    inside = ([value for value in values if scale.holds(value)] for values in tries)
    return next(values for values in inside if len(values) <= most)


def even_ticks(scale: Scale, most: int = _MOST_TICKS, steps: Sequence[float] = ()) -> list[float]:
    """Multiples of the smallest round step (or the smallest of `steps`) that gives at most `most` of them."""
    span = scale.high - scale.low
    power = 10.0 ** math.floor(math.log10(span / most))
    choice = [*steps, *(round_ * power * more for more in (1, 10, 100) for round_ in _ROUND)]
    step = next((step for step in choice if span / step <= most), choice[-1])
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def count_ticks(scale: Scale, most: int = _MOST_TICKS) -> list[float]:
    """Ticks at whole numbers."""
    wide = even_ticks(scale, most, steps=(1.0, 2.0)) if scale.high - scale.low < 2 * most else even_ticks(scale, most)
    return [value for value in wide if value == round(value)]


def clock_ticks(scale: Scale, most: int = _MOST_TICKS) -> list[float]:
    """Ticks at round seconds, minutes, or hours; at parts of a second if the scale spans few seconds."""
    return even_ticks(scale, most, steps=_CLOCK_S if scale.high - scale.low > 3 else ())


@dataclass(frozen=True, slots=True)
class Plot:
    """The rectangle of the data with the scales of its sides."""

    x: Scale
    y: Scale

    @property
    def left(self) -> float:
        """The smallest x."""
        return self.x.start

    @property
    def right(self) -> float:
        """The largest x."""
        return self.x.end

    @property
    def top(self) -> float:
        """The smallest y."""
        return self.y.end

    @property
    def bottom(self) -> float:
        """The largest y."""
        return self.y.start


def left_room(texts: Iterable[str]) -> float:
    """Left edge of a plot whose y axis has these labels."""
    return max(map(text_width, texts), default=0.0) + 8


def y_axis(plot: Plot, values: Sequence[float], write: Callable[[float], str], name: str) -> Markup:
    """Light horizontal lines with their labels at the left, and the axis's name, if any, at the top."""
    rows = [plot.y(value) for value in values]
    lines = "".join(f"M{number(plot.left)} {number(row)}H{number(plot.right)}" for row in rows)
    labels = [text(plot.left - 8, row, write(value)) for value, row in zip(values, rows, strict=True)]
    title = text(0, 9, name, room=240, class_="quiet") if name else Markup()
    return path("grid", lines) + element("g", *labels, class_="ticks end") + title


def x_axis(plot: Plot, values: Sequence[float], write: Callable[[float], str], name: str) -> Markup:
    """The base line with its ticks, their labels (if there is room) and the axis's name below."""
    places = [(plot.x(value), write(value)) for value in values]
    marks = "".join(f"M{number(place)} {number(plot.bottom)}v4" for place, _ in places)
    labels, free = [], -math.inf
    for place, label in places:
        half = text_width(label) / 2
        if place - half >= free:
            labels.append(text(place, plot.bottom + _TICK, label))
            free = place + half + 6
    base = f"M{number(plot.left)} {number(plot.bottom)}H{number(plot.right)}"
    return Markup().join(
        (
            path("axis", base + marks),
            element("g", *labels, class_="ticks middle"),
            text(plot.right, plot.bottom + _TICK + LINE, name, room=plot.right - plot.left, class_="quiet end"),
        )
    )
