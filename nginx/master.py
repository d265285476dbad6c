"""nginx's processes: a master, and workers that are started anew between trials."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from impair.messages import Health
from nginx.probes import NginxIsGone, Probes

PID_FILE = Path("/run/nginx.pid")
WORKERS_FILE = Path("/run/headwind/workers.conf")
RESTART_TIMEOUT_S = 5.0
LOOK_EVERY_S = 0.002
PROBES_PER_WORKER = 8  # with n workers a socket is missed by all of 8 n random source ports once in e^8 = 3,000 times


@dataclass(frozen=True, slots=True)
class Nginx:
    """The nginx that wrote its master's pid into `pid_file` and reads from `workers_file` how many workers to have."""

    pid_file: Path = PID_FILE
    workers_file: Path = WORKERS_FILE
    timeout_s: float = RESTART_TIMEOUT_S
    probes: Probes = field(default_factory=Probes)

    def health(self) -> Health:
        """The processes, as pids; raises NginxIsGone."""
        master = self._master()
        return Health(master, children(master), _stat(master)[1])

    def restart_workers(self, workers: int | None = None) -> dict[str, Any]:
        """End all workers, and with them every connection, and return when the new ones answer over TCP and QUIC.

        There are so many `workers` then; without it as many as before. The listening sockets are the master's and stay
        bound throughout. Returns {"workers": [pids], "took_s": float}; raises NginxIsGone.
        """
        start, master = time.monotonic(), self._master()
        old = children(master)
        for worker in old:
            os.kill(worker, signal.SIGKILL)
        new = self._await_workers(master, old, max(1, len(old)))
        if workers and len(new) != workers:
            new = self._reconfigure(master, new, workers)
        self.probes.tcp()
        self.probes.quic(PROBES_PER_WORKER * len(new) if len(new) > 1 else 1)
        return {"workers": new, "took_s": time.monotonic() - start}

    def _reconfigure(self, master: int, old: list[int], workers: int) -> list[int]:
        """Have the master read how many workers there are to be; the old ones have no connection, and end at once."""
        self.workers_file.write_text(f"worker_processes {workers};\n")
        os.kill(master, signal.SIGHUP)
        new = self._await_workers(master, old, workers)
        self.probes.sockets(workers)
        return new

    def _await_workers(self, master: int, old: list[int], count: int) -> list[int]:
        deadline = time.monotonic() + self.timeout_s
        while time.monotonic() < deadline:
            new = children(master)
            if len(new) == count and not set(new) & set(old):
                return new
            time.sleep(LOOK_EVERY_S)
        raise NginxIsGone(f"nginx (master {master}) started no new workers within {self.timeout_s:g} s")

    def _master(self) -> int:
        try:
            pid = int(self.pid_file.read_text())
            _stat(pid)
        except (OSError, ValueError) as error:
            raise NginxIsGone(f"nginx does not run here: {error}") from error
        return pid


def children(master: int) -> list[int]:
    """The pids of a process's living children, ascending; those that its first thread has started."""
    try:
        candidates = map(int, Path(f"/proc/{master}/task/{master}/children").read_text().split())
    except FileNotFoundError:  # a kernel without PROC_CHILDREN, or there is no such process
        candidates = map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208 - in a loop, and pathlib takes twice as long
    found = []
    for pid in candidates:
        try:
            if _stat(pid)[0] == master:
                found.append(pid)
        except OSError:
            continue  # it ended while we looked
    return sorted(found)


def _stat(pid: int) -> tuple[int, float]:
    """(parent's pid, start in seconds after boot) of a living process; raises OSError for any other."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    return int(fields[1]), int(fields[19]) / os.sysconf("SC_CLK_TCK")
