"""One page over all experiments: what each run came to, with the way to its report, and what articles published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwind.model import Matrix
from headwind.report.articles import COLUMNS, articles_of, lines, totals
from headwind.report.html import templating
from headwind.run.data import RunData

CLASSES = {"reproduced": "good", "contradicted": "bad"}


def render_overview(
    matrices: Iterable[Matrix], runs: Sequence[RunData], links: Sequence[str], generated_at_s: float
) -> str:
    """The page as HTML5; `links` are the addresses of the runs' reports, as seen from where the page will be."""
    articles = list(articles_of(matrices, runs).values())
    tables = [
        (article, [cells for entry in article.entries.values() for cells in lines(entry)]) for article in articles
    ]
    return templating.page(
        "overview.html.j2",
        {"classes": CLASSES},
        runs=list(zip(runs, links, strict=True)),
        columns=COLUMNS,
        tables=tables,
        totals=totals(articles),
        generated_at_s=generated_at_s,
    )
