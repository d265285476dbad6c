"""How request lines reach a user-mode kernel: each is a file in a directory that both see, and the console only rings.

The console itself cannot carry them. When more than 4 KB wait in it, the driver stops listening and never starts again
(line_throttle() in arch/um/drivers/line.c takes the descriptor out of epoll, line_unthrottle() does not put it back),
so that neither the rest of the line nor the end of the input would arrive. Answers have no such limit.

With each request comes a note: a line of what the sender sees and the receiver cannot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

BELL = b"\n"
KEPT = 1000  # requests that are surely read when that many newer ones were posted


def post(lines: Iterable[str], box: Path, bell: int, note: Callable[[], str] = str) -> None:
    """Put every line into a file of its own in `box`, behind its note, and ring on the descriptor `bell` for each.

    A note is one line, without its end. Returns when the lines end or nobody listens any more.
    """
    for number, line in enumerate(lines):
        (box / str(number)).write_text(f"{note()}\n{line}")
        (box / str(number - KEPT)).unlink(missing_ok=True)
        try:
            os.write(bell, BELL)
        except BrokenPipeError:
            return


def collect(box: Path, bell: int, heed: Callable[[str], object] = str) -> Iterator[str]:
    """The lines that `post` puts into `box`, one for each ring on the descriptor `bell`, until that ends.

    `heed` is given the note of each before the line itself is.
    """
    number = 0
    while rings := os.read(bell, KEPT):
        for _ in rings:
            note, _, line = (box / str(number)).read_text().partition("\n")
            heed(note)
            yield line
            number += 1
