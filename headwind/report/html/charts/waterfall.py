"""The requests of one trial, one row each in the order in which they were wanted, and what each waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from headwind.format import duration
from headwind.report.html.charts.axes import BELOW, Plot, Scale, even_ticks, x_axis
from headwind.report.html.charts.svg import WIDTH, bars, chart, element, number, path
from headwind.run.page_requests import PageRequest

_TOP = 6.0
_HEIGHT = 300.0  # of all rows, at most
_ROW = 6.0  # of one row, at most
_LEFT, _RIGHT = 14.0, WIDTH - 26
_SHORTEST = 1.2  # of an answer, which would not be seen otherwise
# From one moment of a request to the next: class, and share of a row. Widths alone tell them apart, as in print.
_QUEUED, _CONNECTING, _WAITING, _RECEIVING = (
    ("queued", 0.2),
    ("connecting", 0.55),
    ("waiting", 0.55),
    ("receiving", 0.9),
)
_PARTS = (_QUEUED, _CONNECTING, _QUEUED, _WAITING, _RECEIVING)
_MEANINGS = {
    _QUEUED: "waits until it is sent",
    _CONNECTING: "opens a connection",
    _WAITING: "waits for the first byte of its answer",
    _RECEIVING: "receives its answer",
}


def waterfall(
    id: str,  # noqa: A002
    arm: str,
    requests: Sequence[PageRequest],
    *,
    end_s: float,
    load_s: float | None,
    title: str,
    description: str,
) -> Markup:
    """Chart of requests, at least one, in the order given; a line is at `load_s`, if it is known.

    The axis ends at `end_s`.
    """
    high = min(_ROW, _HEIGHT / len(requests))
    x = Scale("lin", 0.0, end_s or 1.0, _LEFT, _RIGHT)
    bottom = _TOP + high * len(requests)
    plot = Plot(x, Scale("lin", 0.0, float(len(requests)), bottom, _TOP))
    marked = even_ticks(x)
    grid = "".join(f"M{number(x(value))} {number(_TOP)}V{number(bottom)}" for value in marked)
    load = "" if load_s is None else f"M{number(x(load_s))} {number(_TOP)}V{number(bottom)}"
    lines = (
        path(f"{arm} {name}", bars(_pieces(requests, (name, share), x, high)), stroke_width=high * share)
        for name, share in _MEANINGS
    )
    return chart(
        "waterfall", id, bottom + BELOW, path("grid", grid), *lines, path("load", load),
        x_axis(plot, marked, duration, "since the start"), title=title, description=description, data_x=str(x),
    )  # fmt: skip


def _pieces(
    requests: Sequence[PageRequest], part: tuple[str, float], x: Scale, high: float
) -> Iterator[tuple[float, float, float]]:
    """The lines of one part of all requests: left end, middle, length."""
    least = _SHORTEST if part == _RECEIVING else 0.0
    for index, request in enumerate(requests):
        moments = request.moments
        for place, found in enumerate(_PARTS):
            start, end = moments[place], moments[place + 1]
            if found == part and (end > start or (least and request.first_byte_s)):
                yield x(start), _TOP + high * (index + 0.5), max(x(end) - x(start), least)


def waterfall_key(end: str) -> list[tuple[str, Markup]]:
    """The parts of a request with their lines, and the line of `end`, such as the load event, for a line of text."""
    found = [(meaning, _swatch(path(f"any {name}", "M1 7h20", stroke_width=10 * share)))
             for (name, share), meaning in _MEANINGS.items()]  # fmt: skip
    return [*found, (end, _swatch(path("load", "M11 0v14")))]


def _swatch(line: Markup) -> Markup:
    return element("svg", line, class_="chart icon long", viewBox="0 0 22 14", aria_hidden="true")
