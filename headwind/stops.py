"""Ctrl-C and its like: the first one ends what the program does, wherever it is; what must be whole is ended first.

The program then cleans up. A stop that comes GIVE_UP_S after the first one ends it there and then.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from headwind.own_command import lab_command

GIVE_UP_S = 10.0  # from the first stop on, cleaning up has this time to itself
GAVE_UP = """
lab.py: gave up cleaning up; containers and networks may be left. This removes them:
  {down}
"""
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a polite kill, a closed terminal


class _Waiting:
    """How the main thread takes the next stop; signals reach no other thread of a Python program."""

    depth = 0  # of `held_back`
    came = False  # while it was held back
    name = ""  # of the first stop
    first_s = 0.0  # when that came, by the monotonic clock


def listen() -> None:
    """Raise KeyboardInterrupt in the main thread, which calls this, on the first of STOPS from now on.

    A closed terminal stops nothing if the caller ignores it: `nohup` does.
    """
    _Waiting.came, _Waiting.name = False, ""
    _handle_stops(interrupt)


def _handle_stops(handler: Callable[[int, FrameType | None], None]) -> None:
    for each in STOPS:
        if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle the first of STOPS: stop at this point and clean up."""
    del frame
    _Waiting.name, _Waiting.first_s = signal.Signals(number).name, time.monotonic()
    _handle_stops(_interrupt_again)
    os.write(2, b"\nlab.py: stopping\n")
    _Waiting.came = bool(_Waiting.depth)
    if not _Waiting.came:
        raise KeyboardInterrupt


def _interrupt_again(number: int, frame: FrameType | None) -> None:
    """Handle a further stop during cleanup. Raises nothing: an exception would end the cleanup half-way."""
    del number, frame
    left_s = GIVE_UP_S - (time.monotonic() - _Waiting.first_s)
    if left_s <= 0:
        _give_up()
    os.write(2, f"\nlab.py: cleaning up; in {left_s:.0f} s another Ctrl-C skips the cleanup\n".encode())


def _give_up() -> NoReturn:
    os.write(2, GAVE_UP.format(down=lab_command("down")).encode())
    os._exit(130)  # threads that wait for Docker would keep the program alive


def cause() -> str:
    """`stopped by Ctrl-C`: what stopped the program, for messages."""
    return f"stopped by {'Ctrl-C' if _Waiting.name in ('', 'SIGINT') else _Waiting.name}"


def sentence() -> str:
    """The cause; true once everything is cleaned up."""
    return f"{cause()}; nothing is left running"


@contextmanager
def held_back() -> Iterator[None]:
    """Delay a stop until the end of the block, then raise KeyboardInterrupt: for steps of milliseconds.

    No effect in threads other than the main one, or before `listen`.
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
