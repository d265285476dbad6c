"""Detects standstills of this host: a clock that notices when it could not tick, and a watch over another process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

TICK_S = 0.05  # a tenth of the standstill that condemns a trial (headwind/proof/stability.py)
STAT_BYTES = 1024  # of /proc/PID/stat: 52 numbers and a name


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


class Glance(NamedTuple):
    """A look at a process: what time it is, the processor time that it has used, and whether it waits for work."""

    now_s: float
    used_s: float
    is_asleep: bool


class Watch:
    """Watches a process from outside: its silences, in which it used no processor time. `look` at it every TICK_S.

    What is silent must have something to do every TICK_S. A watcher that was itself held up for long takes what the
    process did meanwhile off the time that has passed: the rest is the longest that it can have been silent.
    """

    def __init__(self, glance: Callable[[], Glance]) -> None:
        self._glance = glance
        self._lock = threading.Lock()
        self._last = glance()
        self._silent_s = self._largest_s = self._working_s = 0.0

    def look(self) -> None:
        """See what the process did since the last look."""
        with self._lock:
            now = self._glance()
            passed_s, gained_s = now.now_s - self._last.now_s, now.used_s - self._last.used_s
            self._last = now
            self._silent_s += max(0.0, passed_s - gained_s)
            self._largest_s = max(self._largest_s, self._silent_s)
            if gained_s > 0:
                self._silent_s = 0.0
            if not now.is_asleep:
                self._working_s += passed_s

    def tell(self) -> dict[str, float]:
        """{"largest_gap_s": the longest silence since the last call, "cpu_s", "working_s"}, the last two in total.

        "cpu_s" is the processor time that the process has used, without that of interrupts where the kernel keeps them
        apart; "working_s" the time in which it had work, by samples: whether it ran, waited for a processor or was
        stopped.
        """
        self.look()
        with self._lock:
            largest_s, self._largest_s = self._largest_s, 0.0
            return {"largest_gap_s": largest_s, "cpu_s": self._last.used_s, "working_s": self._working_s}


def glance_at(pid: int) -> Callable[[], Glance]:
    """What Watch needs of a process: its CPU-time clock (clock_getcpuclockid(3)) and its state (proc_pid_stat(5)).

    One that has ended uses nothing and sleeps.
    """
    clock = (~pid << 3) | 2  # linux/posix-timers.h: CPUCLOCK_SCHED of the whole process
    used_s, state = 0.0, b"S"
    try:
        stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # kept open: opening it costs most of a look
    except OSError:
        stat = -1

    def glance() -> Glance:
        nonlocal used_s, state
        try:
            used_s = time.clock_gettime(clock)
            state = os.pread(stat, STAT_BYTES, 0).rpartition(b")")[2].split(None, 1)[0]
        except OSError:
            state = b"X"
        return Glance(time.monotonic(), used_s, state in b"SXZ")

    return glance
