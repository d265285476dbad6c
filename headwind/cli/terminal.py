"""Printing of lines. Names, reasons and messages in them come from matrices, run folders and servers of others."""

from __future__ import annotations

from typing import TextIO

from headwind.format import clean


def say(text: object, file: TextIO | None = None) -> None:
    """Print one or more lines at once, without anything that a terminal would obey."""
    print(clean(str(text)), file=file, flush=True)
