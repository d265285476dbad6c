"""The requests of one trial, one row each: a thin line until it was sent, a wider one until its answer began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.format import duration
from headwind.report.html.charts.axes import BELOW, Plot, Scale, even_ticks, x_axis
from headwind.report.html.charts.svg import WIDTH, bars, chart, number, path

_TOP = 6.0
_HEIGHT = 300.0  # of all rows, at most
_ROW = 6.0  # of one row, at most
_LEFT, _RIGHT = 14.0, WIDTH - 26
_WIDTHS = (0.2, 0.45, 0.85)  # share of a row: before the request was sent, until its first byte, and until its last


@dataclass(frozen=True, slots=True)
class Request:
    """A request: when it was wanted, sent, answered first and done, in seconds from the start of the trial."""

    start_s: float
    sent_s: float
    first_byte_s: float
    done_s: float

    @property
    def moments(self) -> tuple[float, float, float, float]:
        """The four times in ascending order: one that is unknown (0) is put on the one before."""
        sent = max(self.start_s, self.sent_s)
        first = max(sent, self.first_byte_s)
        return self.start_s, min(sent, self.done_s), min(first, self.done_s), self.done_s


def waterfall(
    id: str,  # noqa: A002
    arm: str,
    requests: Sequence[Request],
    *,
    end_s: float,
    title: str,
    description: str,
) -> Markup:
    """Chart of requests, at least one, in the order in which they were wanted; the axis ends at `end_s`."""
    rows = sorted((request.moments for request in requests), key=lambda moments: (moments[0], moments[-1]))
    high = min(_ROW, _HEIGHT / len(rows))
    x = Scale("lin", 0.0, end_s or 1.0, _LEFT, _RIGHT)
    bottom = _TOP + high * len(rows)
    plot = Plot(x, Scale("lin", 0.0, float(len(rows)), bottom, _TOP))
    marked = even_ticks(x)
    grid = "".join(f"M{number(x(value))} {number(_TOP)}V{number(bottom)}" for value in marked)
    lines = []
    for place, share in enumerate(_WIDTHS):
        pieces = [
            (x(row[place]), _TOP + high * (index + 0.5), x(row[place + 1]) - x(row[place]))
            for index, row in enumerate(rows)
            if row[place + 1] > row[place]
        ]
        lines.append(path(f"{arm} bar", bars(pieces), stroke_width=high * share))
    return chart(
        "waterfall", id, bottom + BELOW, path("grid", grid), *lines, x_axis(plot, marked, duration, "since the start"),
        title=title, description=description, data_x=str(x),
    )  # fmt: skip
