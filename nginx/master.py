"""nginx's processes: a master, and workers that are restarted between trials."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from impair import kept
from impair.messages import Health
from servers.probes import Probes, ServerIsGone
from servers.processes import children, parent_and_start

PID_FILE = Path("/run/nginx.pid")
WORKERS_FILE = Path("/run/headwind/workers.conf")
RESTART_TIMEOUT_S = 5.0
LOOK_EVERY_S = 0.002
PROBES_PER_WORKER = 8  # with n workers a socket is missed by all of 8 n random source ports once in e^8 = 3,000 times


@dataclass(frozen=True, slots=True)
class Nginx:
    """An nginx, known by the master's `pid_file`, which reads its number of workers from `workers_file`."""

    pid_file: Path = PID_FILE
    workers_file: Path = WORKERS_FILE
    timeout_s: float = RESTART_TIMEOUT_S
    probes: Probes = field(default_factory=Probes)

    def health(self) -> Health:
        """The processes' pids; raises ServerIsGone."""
        master = self._master()
        return Health(master, children(master), parent_and_start(master)[1])

    def fresh(self, workers: int | None = None) -> dict[str, Any]:
        """End all workers and their connections, and return when new ones answer over TCP and QUIC.

        `workers` sets their number (default: as before). The listening sockets are the master's and stay bound
        throughout. Returns {"workers": [pids], "took_s": float}; raises ServerIsGone.
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
        """Make the master read its number of workers; the old workers have no connection, and end at once."""
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
        raise ServerIsGone(f"nginx (master {master}) started no new workers within {self.timeout_s:g} s")

    def _master(self) -> int:
        try:
            pid = int(kept.read_new(str(self.pid_file)))
            parent_and_start(pid)
        except (OSError, ValueError) as error:
            raise ServerIsGone(f"nginx is not running: {error}") from error
        return pid
