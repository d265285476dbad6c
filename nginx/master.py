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
from servers.processes import children, parent_and_start, peak_memory_bytes

PID_FILE = Path("/run/nginx.pid")
WORKERS_FILE = Path("/run/headwind/workers.conf")
OFFER_FILE = Path("/run/headwind/offer.conf")
RESTART_TIMEOUT_S = 5.0
LOOK_EVERY_S = 0.002
PROBES_PER_WORKER = 8  # with n workers a socket is missed by all of 8 n random source ports once in e^8 = 3,000 times


@dataclass(frozen=True, slots=True)
class Nginx:
    """An nginx, known by the master's `pid_file`; the other files are those that it reads besides its configuration.

    `workers_file` has its number of workers, `offer_file` the map that decides which answers offer HTTP/3.
    """

    pid_file: Path = PID_FILE
    workers_file: Path = WORKERS_FILE
    offer_file: Path = OFFER_FILE
    timeout_s: float = RESTART_TIMEOUT_S
    probes: Probes = field(default_factory=Probes)

    def health(self) -> Health:
        """The processes' pids; raises ServerIsGone."""
        master = self._master()
        workers = children(master)
        return Health(master, workers, parent_and_start(master)[1], peak_memory_bytes(workers))

    def offer(self, text: str) -> bool:
        """Let this map decide about offers of HTTP/3, and return whether that is new. Raises ServerIsGone.

        If it is, workers are new as after `fresh`.
        """
        if self.offer_file.read_text() == text:
            return False
        self.offer_file.write_text(text)
        self.fresh(reload=True)
        return True

    def fresh(self, workers: int | None = None, *, reload: bool = False) -> dict[str, Any]:
        """End all workers and their connections, and return when new ones answer over TCP and QUIC.

        `workers` sets their number (default: as before). The listening sockets are the master's and stay bound
        throughout. With `reload` its files are read again. Returns {"workers": [pids], "took_s": float}; raises
        ServerIsGone.
        """
        start, master = time.monotonic(), self._master()
        old = children(master)
        for worker in old:
            os.kill(worker, signal.SIGKILL)
        new = self._await_workers(master, old, max(1, len(old)))
        if reload or (workers and len(new) != workers):
            new = self._reconfigure(master, new, workers or len(new))
        self.probes.tcp()
        self.probes.quic(PROBES_PER_WORKER * len(new) if len(new) > 1 else 1)
        return {"workers": new, "took_s": time.monotonic() - start}

    def _reconfigure(self, master: int, old: list[int], workers: int) -> list[int]:
        """Make the master read its files, with `workers` workers; the old ones have no connection, and end at once."""
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
