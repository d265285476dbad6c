"""Lanes beside each other: which blocks ran beside a trial, and that no two trials begin at once."""

from __future__ import annotations

import threading

from headwind.clock import CLOCK, Clock

APART_S = 0.5  # between the starts of trials of one host, which need the processors most when connections begin


class Company:
    """Which blocks run, and in whose company each lane's trial has run since it began. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, str] = {}  # by the lane's number: the block's id
        self._met: dict[int, set[str]] = {}

    def starts(self, lane: int, block: str) -> None:
        """A lane has this block from now on."""
        with self._lock:
            self._running[lane] = block
            for other in self._met.keys() - {lane}:
                self._met[other].add(block)

    def ends(self, lane: int) -> None:
        """The lane has none."""
        with self._lock:
            del self._running[lane]

    def trial_begins(self, lane: int) -> None:
        """From here on its company counts."""
        with self._lock:
            self._met[lane] = {block for other, block in self._running.items() if other != lane}

    def met(self, lane: int) -> tuple[str, ...]:
        """The blocks that ran on other lanes since the trial began."""
        with self._lock:
            return tuple(sorted(self._met[lane]))


class Turnstile:
    """Lets a trial begin `apart_s` after one of another lane at the earliest."""

    def __init__(self, apart_s: float, clock: Clock = CLOCK) -> None:
        self._apart_s, self._clock = apart_s, clock
        self._lock = threading.Lock()
        self._last = (0, 0.0)  # the lane that went through, and when

    def go_through(self, lane: int) -> None:
        """Waits for its turn."""
        with self._lock:
            before, when = self._last
            now = self._clock.monotonic()
            at = now if lane == before else max(now, when + self._apart_s)
            self._last = lane, at
        self._clock.sleep(at - now)
