"""Detects standstills of this host, by a clock that notices missed ticks, and of another process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

TICK_S = 0.1  # a fifth of the standstill that condemns a trial (headwind/proof/stability.py)
LOOK_S = 0.05  # while a caller looks along
SCHEDSTAT_BYTES = 128  # of /proc/PID/schedstat: three numbers


class Pulse:
    """Ticks every TICK_S in its own thread. A host that was frozen, or starved of CPU time, shows as a gap.

    A gap is at least as long as the standstill in it, and longer by up to a tick.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_s, self._largest_s = time.monotonic(), 0.0
        self._looks: list[Callable[[], None]] = []
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def largest_gap_s(self) -> float:
        """The longest time between two ticks since the last call, or since the start; then restart.

        The time from the last tick to now counts: a call right after a freeze may come before the next tick.
        """
        with self._lock:
            self._note()
            largest_s, self._largest_s = self._largest_s, 0.0
        return largest_s

    @contextmanager
    def along(self, look: Callable[[], None]) -> Iterator[None]:
        """Inside, tick every LOOK_S and call `look` each time, from the same thread: one thread less to wake up.

        An OSError of `look` is ignored.
        """
        with self._lock:
            self._looks.append(look)
        try:
            yield
        finally:
            with self._lock:
                self._looks.remove(look)

    def _beat(self) -> None:
        while True:
            time.sleep(LOOK_S if self._looks else TICK_S)
            with self._lock:
                self._note()
                for look in self._looks:
                    with suppress(OSError):
                        look()

    def _note(self) -> None:
        now_s = time.monotonic()
        self._largest_s = max(self._largest_s, now_s - self._last_s)
        self._last_s = now_s


class Snapshot(NamedTuple):
    """A snapshot of a process: the time, and the CPU time that the process has used."""

    now_s: float
    used_s: float


class Watch:
    """Watches a process from outside: its pauses, in which it used no CPU time. Call `look` every TICK_S.

    The process must have something to do every TICK_S. If the watcher itself was held up, the CPU time of the
    process meanwhile is subtracted from the elapsed time: the rest is an upper bound of its pause.
    """

    def __init__(self, glance: Callable[[], Snapshot]) -> None:
        self._glance = glance
        self._lock = threading.Lock()
        self._last = glance()
        self._silent_s = self._largest_s = 0.0

    def look(self) -> None:
        """Update from the process's CPU time since the last look."""
        with self._lock:
            now = self._glance()
            gained_s = now.used_s - self._last.used_s
            self._silent_s += max(0.0, now.now_s - self._last.now_s - gained_s)
            self._last = now
            self._largest_s = max(self._largest_s, self._silent_s)
            if gained_s > 0:
                self._silent_s = 0.0

    def tell(self) -> dict[str, float]:
        """{"largest_gap_s": the longest silence since the last call, "cpu_s": the CPU time used in total}.

        The latter is without that of interrupts where the kernel keeps them apart.
        """
        self.look()
        with self._lock:
            largest_s, self._largest_s = self._largest_s, 0.0
            return {"largest_gap_s": largest_s, "cpu_s": self._last.used_s}


def glance_at(pid: int) -> Callable[[], Snapshot]:
    """Return a function that takes Watch's snapshots, by the CPU-time clock (clock_getcpuclockid(3)).

    A process that has ended uses no CPU time.
    """
    clock = (~pid << 3) | 2  # linux/posix-timers.h: CPUCLOCK_SCHED of the whole process
    used_s = 0.0

    def glance() -> Snapshot:
        nonlocal used_s
        with suppress(OSError):
            used_s = time.clock_gettime(clock)
        return Snapshot(time.monotonic(), used_s)

    return glance


def working_s(pid: int) -> float | None:
    """The time in which a process had work: its first thread ran, or waited for a CPU (kernel's sched-stats).

    None if the kernel does not report it (it is built without SCHED_INFO), or the process has ended.
    """
    try:
        descriptor = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        ran_ns, waited_ns, _ = os.read(descriptor, SCHEDSTAT_BYTES).split()
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return (int(ran_ns) + int(waited_ns)) / 1e9
