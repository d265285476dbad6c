"""Ctrl-C and its like: the first one ends what the program does, wherever it is; what must be whole is ended first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a polite kill, a closed terminal


class _Waiting:
    """How the main thread takes the next stop; signals reach no other thread of a Python program."""

    depth = 0  # of `held_back`
    came = False  # while it was held back


def listen() -> None:
    """From now on the first of STOPS raises KeyboardInterrupt in the main thread, which calls this."""
    _Waiting.came = False
    for each in STOPS:
        signal.signal(each, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """The first of STOPS: stop where we are and clean up; further ones find us already doing so."""
    del number, frame
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    _Waiting.came = bool(_Waiting.depth)
    if not _Waiting.came:
        raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[None]:
    """Inside, a stop waits for the end, and is then raised as KeyboardInterrupt: for what takes milliseconds.

    It makes no difference to a thread but the main one, nor before `listen`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Waiting.depth += 1
    try:
        yield
    finally:
        _Waiting.depth -= 1
        if _Waiting.came and not _Waiting.depth:
            _Waiting.came = False
            raise KeyboardInterrupt
