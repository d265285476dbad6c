"""Parallel lanes: which blocks overlapped each trial, and a minimum gap between the starts of trials."""

from __future__ import annotations

import threading

from headwind.clock import CLOCK, Clock

MIN_GAP_S = 0.2  # between the starts of trials of one host, which need the most CPU time when connections begin


class OverlapTracker:
    """Tracks which blocks overlapped each lane's current trial. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, str] = {}  # by the lane's number: the block's id
        self._met: dict[int, set[str]] = {}

    def starts(self, lane: int, block: str) -> None:
        """Record that a lane starts this block."""
        with self._lock:
            self._running[lane] = block
            for other in self._met.keys() - {lane}:
                self._met[other].add(block)

    def ends(self, lane: int) -> None:
        """Record that a lane finished its block."""
        with self._lock:
            del self._running[lane]

    def trial_begins(self, lane: int) -> None:
        """Record that a lane starts a trial: overlaps are counted from here."""
        with self._lock:
            self._met[lane] = {block for other, block in self._running.items() if other != lane}

    def met(self, lane: int) -> tuple[str, ...]:
        """Ids of the blocks that ran on other lanes since the lane's trial began, sorted."""
        with self._lock:
            return tuple(sorted(self._met[lane]))


class StartSpacer:
    """Keeps at least `min_gap_s` between the starts of trials on different lanes."""

    def __init__(self, min_gap_s: float, clock: Clock = CLOCK) -> None:
        self._min_gap_s, self._clock = min_gap_s, clock
        self._lock = threading.Lock()
        self._last = (0, 0.0)  # the lane that went through, and when

    def wait_for_turn(self, lane: int) -> None:
        """Wait until the trial may start."""
        with self._lock:
            before, when = self._last
            now = self._clock.monotonic()
            at = now if lane == before else max(now, when + self._min_gap_s)
            self._last = lane, at
        self._clock.sleep(at - now)
