"""Labels next to curves: in a column at the right end of the lines, pushed apart if they would overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.report.html.charts.marks import stamp
from headwind.report.html.charts.svg import LINE, text, text_width

ROOM = 176.0  # for the texts of the widest column
_ICON = 16.0  # for the shape before each label


@dataclass(frozen=True, slots=True)
class Label:
    """The name of an arm or a curve, the wished height of the text, and an optional second line."""

    name: str  # the class of the arm or curve, which sets its shape and colour
    text: str
    y: float
    note: str = ""

    @property
    def height(self) -> float:
        """Height of its one or two lines."""
        return 2 * LINE if self.note else LINE


def spread(wishes: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Middles for items of these sizes: as near to the wishes (by squares) as possible without overlapping.

    Items keep the order of their wishes and lie between low and high, or begin at low if there is too little room. The
    best places are an isotonic regression of the position at which each item would have the whole stack begin.
    """
    order = sorted(range(len(wishes)), key=lambda index: wishes[index])
    before, filled = {}, 0.0
    for index in order:
        before[index] = filled + sizes[index] / 2
        filled += sizes[index]
    begins = _rising([wishes[index] - before[index] for index in order])
    places = {
        index: max(low, min(begin, high - filled)) + before[index] for index, begin in zip(order, begins, strict=True)
    }
    return [places[index] for index in range(len(wishes))]


def _rising(values: Iterable[float]) -> list[float]:
    """The nearest values, by squares, that never fall: an isotonic regression by pooling adjacent violators.

    scipy.optimize has one (a test compares them), and takes 25 MB and a second to import.
    """
    pools: list[tuple[float, int]] = []  # the mean of neighbours, and their number
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (right, after), (left, before) = pools.pop(), pools.pop()
            pools.append(((left * before + right * after) / (before + after), before + after))
    return [mean for mean, count in pools for _ in range(count)]


def column_width(texts: Iterable[str]) -> float:
    """Width of a column with these lines, at most its maximum."""
    return _ICON + min(max(map(text_width, texts), default=0.0), ROOM) + 1


def lines_of(labels: Iterable[Label]) -> list[str]:
    """All lines of the labels."""
    return [line for label in labels for line in (label.text, label.note)]


def column(labels: Sequence[Label], x: float, low: float, high: float) -> Markup:
    """The labels from x on, each with its shape, between the heights low and high."""
    wishes = [label.y + (label.height - LINE) / 2 for label in labels]
    middles = spread(wishes, [label.height for label in labels], low, high)
    rows = [middle - (label.height - LINE) / 2 for label, middle in zip(labels, middles, strict=True)]
    return Markup().join(_drawn(label, x, row) for label, row in zip(labels, rows, strict=True))


def _drawn(label: Label, x: float, y: float) -> Markup:
    parts = [stamp(label.name, [(x + 6, y)], 4), text(x + _ICON, y, label.text, room=ROOM)]
    if label.note:
        parts.append(text(x + _ICON, y + LINE, label.note, room=ROOM, class_="quiet"))
    return Markup().join(parts)
