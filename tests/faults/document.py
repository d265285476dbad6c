"""Figures in a document, between two comments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write(path: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between `<!-- NAME: begin -->` and `<!-- NAME: end -->`. Raises ValueError if these are missing."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = path.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path} has no {begin} ... {end}")
    path.write_text("\n".join([f"{before}{begin}", "", *lines, "", f"{end}{after}"]))
