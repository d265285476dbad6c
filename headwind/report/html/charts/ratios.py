"""Common parts of charts of ratios: the logarithmic axis around 1x, the band of ties, ribbons, and texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

from headwind import format as units
from headwind.report.html.charts.axes import Plot, Scale, scale
from headwind.report.html.charts.svg import Point, element, joined, line, number, path
from headwind.report.verdicts import end, two

_WIDEST = 1000.0  # ratios beyond it or its inverse are put on the edge


def ratio_scale(ratios: Iterable[float | None], margin_ratio: float, start: float, end: float) -> Scale:
    """A logarithmic scale for ratios, 1, and the band of ties; unknown or open ends do not count."""
    tie = (1 + margin_ratio) ** 1.5
    known = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    inside = [min(max(ratio, 1 / _WIDEST), _WIDEST) for ratio in known]
    return scale([*inside, tie, 1 / tie], start, end, kind="log")


def tick_text(ratio: float) -> str:
    """A tick label such as `1.25x`, as short as possible."""
    return f"{units.setting('', ratio)}x"


def estimate_text(estimate: float | None) -> str:
    """An estimate such as `1.23x`; a question mark if it is open."""
    return "?" if estimate is None else f"{two(estimate)}x"


def interval_text(low: float, high: float) -> str:
    """An interval such as `[1.18, 1.29]`."""
    return f"[{end(low) if low > 0 else '0'}, {end(high)}]"


def tie_band(plot: Plot, margin_ratio: float) -> Markup:
    """The ratios that count as equal, and the line of 1x in their middle."""
    high, low = plot.y(1 + margin_ratio), plot.y(1 / (1 + margin_ratio))
    wide = number(plot.right - plot.left)
    band = f"M{joined((plot.left, high))}h{wide}V{number(low)}h-{wide}z"
    tooltip = element("title", f"a tie: within {units.setting('margin_ratio', margin_ratio)}")
    return element("path", tooltip, class_="tie", d=band) + path("one", f"M{joined((plot.left, plot.y(1)))}h{wide}")


def ribbon(name: str, plot: Plot, intervals: Sequence[tuple[float, float, float]]) -> Markup:
    """The area between (x, low, high); open sides run to the edge of the plot."""
    above = [(plot.x(value), plot.y(high)) for value, _, high in intervals]
    below = [(plot.x(value), plot.y(low)) for value, low, _ in intervals]
    return path(f"{name} ribbon", line([*above, *reversed(below)]) + "z") if intervals else Markup()


def curve(name: str, plot: Plot, estimates: Iterable[tuple[float, float | None]]) -> Markup:
    """A line through (x, estimate), interrupted where an estimate is missing."""
    return path(f"{name} curve", "".join(line(run) for run in _runs(plot, estimates) if len(run) > 1))


def _runs(plot: Plot, estimates: Iterable[tuple[float, float | None]]) -> Iterator[list[Point]]:
    run: list[Point] = []
    for value, estimate in estimates:
        if estimate is None:
            yield run
            run = []
        else:
            run.append((plot.x(value), plot.y(estimate)))
    yield run
