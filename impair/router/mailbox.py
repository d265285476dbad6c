"""How request lines reach a user-mode kernel: each is a file in a directory that both see, and the console only rings.

The console itself cannot carry them. When more than 4 KB wait in it, the driver stops listening and never starts again
(line_throttle() in arch/um/drivers/line.c takes the descriptor out of epoll, line_unthrottle() does not put it back),
so that neither the rest of the line nor the end of the input would arrive. Answers have no such limit.

Nor can it be relied on to wake its reader: while the guest forwards packets, a ring is lost now and then, and is only
heard with the next one (seen twice in some 200 trials). So the bell is rung again for each request, from outside: a
guest that wakes up to look by itself takes more processor time than all the rest of the lab's agents. It does so
seldom, for the case that all rings are lost.

With each request comes a note: a line of what the sender sees and the receiver cannot.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

BELL = b"\n"
LOOK_S = 0.5  # how often is looked for a request whose rings were all lost
MORE_RINGS = 2  # for each request
KEPT = 1000  # requests that are surely read when that many newer ones were posted


class Bell:
    """Rings by a byte on `console`: once for each request, and MORE_RINGS times when `again` is called later on."""

    def __init__(self, console: IO[bytes]) -> None:
        self._console = console
        self._left = 0

    def ring(self) -> None:
        """For a new request. Raises BrokenPipeError where nobody listens any more."""
        self._left = MORE_RINGS
        os.write(self._console.fileno(), BELL)

    def again(self) -> None:
        """For requests whose ring may have been lost; nothing where the last one was some time ago."""
        if self._left > 0:
            self._left -= 1
            with suppress(OSError, ValueError):  # nobody listens any more, or it is closed
                os.write(self._console.fileno(), BELL)


def post(lines: Iterable[str], box: Path, bell: Bell, note: Callable[[], str] = str) -> None:
    """Put every line into a file of its own in `box`, behind its note, and ring the bell for each.

    A note is one line, without its end. Returns when the lines end or nobody listens any more.
    """
    for number, line in enumerate(lines):
        unfinished = box / f"{number}.unfinished"
        unfinished.write_text(f"{note()}\n{line}")
        unfinished.rename(box / str(number))  # who looks by itself must not see half of it
        (box / str(number - KEPT)).unlink(missing_ok=True)
        try:
            bell.ring()
        except BrokenPipeError:
            return


def collect(box: Path, bell: int, heed: Callable[[str], object] = str) -> Iterator[str]:
    """The lines that `post` puts into `box`, as soon as the descriptor `bell` rings or LOOK_S later, until that ends.

    `heed` is given the note of each before the line itself is.
    """
    number, is_open = 0, True
    while is_open:
        if select.select([bell], [], [], LOOK_S)[0]:
            is_open = bool(os.read(bell, KEPT))
        while (file := box / str(number)).exists():
            note, _, line = file.read_text().partition("\n")
            heed(note)
            yield line
            number += 1
