"""Delivers requests to a user-mode kernel: each is a file in a shared directory, and the console only signals it.

The console itself cannot carry them. When more than 4 KB wait in it, the driver stops listening and never starts again
(line_throttle() in arch/um/drivers/line.c takes the descriptor out of epoll, line_unthrottle() does not put it back),
so that neither the rest of the line nor the end of the input would arrive. Answers have no such limit.

Nor does it wake its reader reliably: while the guest forwards packets, a signal is sometimes lost, and only noticed
with the next one (seen twice in some 200 trials). So the signal is repeated for each request, from outside: a guest
that polls takes more CPU time than all the rest of the lab's agents. It polls rarely, in case all signals are lost.

A request can come with a note: a line about what only the sender can see.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

BELL = b"\n"
LOOK_S = 0.5  # poll interval, in case all signals of a request are lost
MORE_RINGS = 2  # for each request
KEPT = 1000  # a request is surely read once this many newer ones were posted


class Bell:
    """Rings by a byte on `console`: once for each request, and MORE_RINGS times when `again` is called later on."""

    def __init__(self, console: IO[bytes]) -> None:
        self._console = console
        self._left = 0

    def ring(self) -> None:
        """Signal a new request. Raises BrokenPipeError if the reader is gone."""
        self._left = MORE_RINGS
        os.write(self._console.fileno(), BELL)

    def again(self) -> None:
        """Repeat the signal of recent requests in case it was lost."""
        if self._left > 0:
            self._left -= 1
            with suppress(OSError, ValueError):  # the reader is gone, or it is closed
                os.write(self._console.fileno(), BELL)


def post(lines: Iterable[str], box: Path, bell: Bell, note: Callable[[str], str] = lambda _: "") -> None:
    """Write every line to a separate file in `box`, after its note, and signal each.

    `note` makes the note for a line: one line, without its end. Returns when the lines end or the reader is gone.
    """
    for number, line in enumerate(lines):
        unfinished = box / f"{number}.unfinished"
        unfinished.write_text(f"{note(line)}\n{line}")
        unfinished.rename(box / str(number))  # a polling reader must not see half of it
        (box / str(number - KEPT)).unlink(missing_ok=True)
        try:
            bell.ring()
        except BrokenPipeError:
            return


def collect(box: Path, bell: int, heed: Callable[[str], object] = str) -> Iterator[str]:
    """The lines that `post` puts into `box`, on each signal on `bell` or after LOOK_S, until `bell` ends.

    `heed` gets a line's note before the line.
    """
    number, is_open = 0, True
    while is_open:
        if select.select([bell], [], [], LOOK_S)[0]:
            is_open = bool(os.read(bell, KEPT))
        while (file := box / str(number)).exists():
            note, _, line = file.read_text().partition("\n")
            if note:
                heed(note)
            yield line
            number += 1
