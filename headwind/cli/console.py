"""The console for tables, colours and the progress bar. It shows what others wrote, and never obeys it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

from headwind.format import clean

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType


class PlainConsole(Console):
    """A console whose texts are `clean`: only its own styles and cursor movements reach the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with clean texts."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else clean(text), style, control)

    def on_broken_pipe(self) -> None:
        """Raise what `print` raises if the reader of the output is gone; rich would end the program with status 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console() -> Console:
    """The console for all output but single lines; wide enough for tables if it is not a terminal."""
    is_terminal = sys.stdout.isatty()
    return PlainConsole(width=None if is_terminal else 140, highlight=False, soft_wrap=not is_terminal)
