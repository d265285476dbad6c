"""Two documents over all experiments: an HTML page of all runs, and docs/published.md with a table for each article."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headwind.model import Matrix
from headwind.report.articles import COLUMNS, Article, articles_of, lines, totals
from headwind.report.formats.markdown import code, row, text
from headwind.report.html import templating
from headwind.run.data import RunData
from headwind.verdicts.ended import complete

CLASSES = {"reproduced": "good", "contradicted": "bad"}


def render_overview(
    matrices: Iterable[Matrix], runs: Sequence[RunData], links: Sequence[str], generated_at_s: float
) -> str:
    """The page as HTML5: the outcome of each run, and the rows of articles.

    `links` are the addresses of the runs' reports, as seen from where the page will be.
    """
    articles = list(articles_of(matrices, runs).values())
    tables = [
        (article, [cells for entry in article.entries.values() for cells in lines(entry)]) for article in articles
    ]
    return templating.page(
        "overview.html.j2",
        {"classes": CLASSES},
        runs=[(data, link, sum(map(complete, data.rows.values()))) for data, link in zip(runs, links, strict=True)],
        columns=COLUMNS,
        tables=tables,
        totals=totals(articles),
        generated_at_s=generated_at_s,
    )


HEAD = """# Published figures and this lab's results

There is one table for each article whose figures an experiment has. The *ratio* is that of the named arm over the
other, with this lab's interval in brackets. Only directions are compared, because times depend on the machine:
*reproduced* is the same direction, *contradicted* another one (a tie is a direction too), with a verdict that is
significant after correction for all comparisons of its run. For a p90 or p99 the interval decides alone, with a
confidence that is corrected for all such rows of the run. Everything else is *no verdict*. Details are in
[report.md](report.md#published-figures). `.venv/bin/python lab.py published RUN... --write docs/published.md`
generates this file; the texts above the tables come from the experiments."""


def published_md(matrices: Iterable[Matrix], runs: Iterable[RunData]) -> str:
    """docs/published.md: a table for each article, with each published row and the verdict of the runs on it."""
    articles = articles_of(matrices, runs).values()
    parts = [HEAD, f"**{totals(articles)}**", *(part for article in articles for part in _section(article))]
    return "\n\n".join(parts) + "\n"


def _section(article: Article) -> Iterator[str]:
    yield f"## {text(article.title)}"
    if article.sources:
        yield f"Source: {text('; '.join(article.sources))}"
    yield from (text(note) for note in article.notes)
    yield f"**{totals([article])}**"
    cells = [cells for entry in article.entries.values() for cells in lines(entry)]
    table = [row(*COLUMNS), row(*["---"] * len(COLUMNS))]
    yield "\n".join([*table, *(row(code(name), *map(text, others)) for name, *others in cells)])
    if article.runs:
        yield f"From {'run' if len(article.runs) == 1 else 'runs'} {', '.join(map(code, article.runs))}."
