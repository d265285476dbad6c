"""Formats mistakes in a matrix: file:line:column, the message, the line with a caret, and a hint."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from headwind.errors import UsageError

MOST_SHOWN = 50
EXCERPT = 96  # characters of a source line


@dataclass(frozen=True, slots=True, order=True)
class Complaint:
    """Mistake: its place (line and column from 1), message, hint, file and line; `is_last` if all others come first."""

    line: int
    column: int
    message: str
    hint: str
    file: str
    source: str
    is_last: bool = False

    def __str__(self) -> str:
        text, caret = excerpt(self.source, self.column - 1)
        lines = [
            f"{self.file}:{self.line}:{self.column}: {self.message}",
            f"{self.line:>5} | {text}",
            f"{'':>5} | {caret}",
        ]
        return "\n".join([*lines, f"        {self.hint}"] if self.hint else lines)


class MatrixError(UsageError):
    """All mistakes in a matrix file. `str()` is the text for the terminal."""

    def __init__(self, summary: str, complaints: tuple[Complaint, ...] = ()) -> None:
        self.complaints = complaints
        shown = [str(complaint) for complaint in complaints[:MOST_SHOWN]]
        if len(complaints) > MOST_SHOWN:
            shown.append(f"... and {len(complaints) - MOST_SHOWN} more")
        super().__init__("\n\n".join([*shown, summary]))


def excerpt(source: str, column: int) -> tuple[str, str]:
    """Part of a line around a column (from 0), made printable, and a line with a caret below that column."""
    start = max(0, column - EXCERPT * 3 // 4) if len(source) > EXCERPT else 0
    shown = source[start : start + EXCERPT]
    text = "".join(
        letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in shown
    )
    before = "".join(_blank(letter) for letter in text[: column - start])
    lead, tail = "..." if start else "", "..." if start + EXCERPT < len(source) else ""
    return lead + text + tail, " " * len(lead) + before + "^"


def _blank(letter: str) -> str:
    """White space of the letter's width on a terminal."""
    if letter == "\t":
        return "\t"
    if unicodedata.combining(letter):
        return ""
    return "  " if unicodedata.east_asian_width(letter) in "WF" else " "
