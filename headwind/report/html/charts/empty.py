"""A chart of nothing: it says so, quietly, where the chart would be."""

from __future__ import annotations

from markupsafe import Markup

from headwind.report.html.charts.svg import WIDTH, chart, text

_HEIGHT = 56.0


def nothing(kind: str, id: str, sentence: str, *, title: str, description: str) -> Markup:  # noqa: A002
    """An svg with one sentence and no axes."""
    words = text(WIDTH / 2, _HEIGHT / 2, sentence, class_="quiet middle")
    return chart(kind, id, _HEIGHT, words, title=title, description=description)
