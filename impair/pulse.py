"""Whether this host kept running: a clock that ticks, and notices when it could not."""

from __future__ import annotations

import threading
import time

TICK_S = 0.02


class Pulse:
    """Ticks every TICK_S in a thread of its own. A host that was frozen, or starved of CPU time, shows as a gap."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_s, self._largest_s = time.monotonic(), 0.0
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def largest_gap_s(self) -> float:
        """The longest time between two ticks since the last call, or since the beginning; then it starts afresh.

        The time from the last tick to now counts: whoever asks right after a freeze may be faster than the next tick.
        """
        with self._lock:
            self._note()
            largest_s, self._largest_s = self._largest_s, 0.0
        return largest_s

    def _beat(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                self._note()

    def _note(self) -> None:
        now_s = time.monotonic()
        self._largest_s = max(self._largest_s, now_s - self._last_s)
        self._last_s = now_s
