"""docs/published.md: a table for each article, with every row that it published and what runs of this lab say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwind.model import Matrix
from headwind.report.articles import COLUMNS, Article, articles_of, lines, sum_text, totals
from headwind.report.formats.markdown import code, row, text
from headwind.run.data import RunData

HEAD = """# What articles published, and what this lab found

One table for each article whose figures an experiment carries. The *ratio* is that of the arm which is named over the
other; in brackets the interval that this lab's blocks leave. Only directions are compared, because times belong to
machines: *reproduced* is the same direction, *contradicted* another one (a tie is a direction of its own), with a
verdict that stands among all comparisons of its run; everything else is *no verdict*.
[report.md](report.md#published-figures) says more. `.venv/bin/python lab.py published RUN... --write docs/published.md`
writes this file anew; what stands above a table is kept in the experiment."""


def published_md(matrices: Iterable[Matrix], runs: Iterable[RunData]) -> str:
    """The whole file."""
    articles = articles_of(matrices, runs).values()
    parts = [HEAD, f"**{totals(articles)}**", *(part for article in articles for part in _section(article))]
    return "\n\n".join(parts) + "\n"


def _section(article: Article) -> Iterator[str]:
    yield f"## {text(article.title)}"
    if article.sources:
        yield f"Source: {text('; '.join(article.sources))}"
    yield from (text(note) for note in article.notes)
    yield f"**{sum_text(article.words)}**"
    cells = [cells for entry in article.entries.values() for cells in lines(entry)]
    table = [row(*COLUMNS), row(*["---"] * len(COLUMNS))]
    yield "\n".join([*table, *(row(code(name), *map(text, others)) for name, *others in cells)])
    if article.runs:
        yield f"From {'run' if len(article.runs) == 1 else 'runs'} {', '.join(map(code, article.runs))}."
