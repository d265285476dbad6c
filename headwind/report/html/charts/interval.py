"""An estimate and its interval, small enough for a cell of a table."""

from __future__ import annotations

import math

from markupsafe import Markup

from headwind.report.html.charts.axes import Scale
from headwind.report.html.charts.marks import stamp
from headwind.report.html.charts.svg import element, joined, number, path

_WIDTH, _HEIGHT = 120.0, 14.0
_MIDDLE = _HEIGHT / 2
_ARROW = 4.0


def interval(
    id: str,  # noqa: A002
    estimate: float | None,
    low: float,
    high: float,
    *,
    margin_ratio: float,
    domain: tuple[float, float],
    label: str,
) -> Markup:
    """A ratio with its interval on a logarithmic axis from domain[0] to domain[1], the same for a whole column.

    Shows 1x and the band of ties; an end that lies outside the domain, or is open, is an arrow head. `label` is its
    text. Raises ValueError for a domain that is not two rising ratios.
    """
    if not 0 < domain[0] < domain[1]:
        raise ValueError(f"no ratios lie between {domain[0]} and {domain[1]}")
    along = Scale("log", *domain, _ARROW, _WIDTH - _ARROW)
    tie_low, tie_high = along(1 / (1 + margin_ratio)), along(1 + margin_ratio)
    caps = "".join(f"M{joined((along(end), _MIDDLE - 3))}v6" for end in (low, high) if along.holds(end))
    parts = [
        element("title", label),
        path("tie", f"M{joined((tie_low, 0))}V{number(_HEIGHT)}H{number(tie_high)}V0z"),
        path("one", f"M{joined((along(1), 0))}V{number(_HEIGHT)}"),
        path("whisker", f"M{joined((along(low), _MIDDLE))}H{number(along(high))}{caps}"),
    ]
    heads = ((low < domain[0], 0.0, _ARROW), (high > domain[1], _WIDTH, -_ARROW))
    cut = "".join(f"M{number(x)} {number(_MIDDLE)}l{joined((by, -3))}v6z" for is_cut, x, by in heads if is_cut)
    parts.append(path("head", cut))
    if estimate is not None and along.holds(estimate) and math.isfinite(estimate):
        parts.append(stamp("c1", [(along(estimate), _MIDDLE)], 2.6))
    return element(
        "svg",
        *parts,
        id=id,
        class_="chart interval",
        role="img",
        viewBox=f"0 0 {number(_WIDTH)} {number(_HEIGHT)}",
    )
