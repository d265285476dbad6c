"""A server of one process that a loop starts again whenever it ends (servers/supervise.sh)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from impair import kept
from impair.endpoint import agent
from impair.messages import Answers, Health
from impair.wire import Operation
from servers.contract import SITE, NotOfferedError, tail
from servers.objects import make
from servers.probes import Probes, ServerIsGone
from servers.processes import children, parent_and_start, peak_memory_bytes

PID_FILE = Path("/run/headwind/supervisor.pid")
WORKERS_FILE = Path("/run/headwind/workers")
ERROR_LOG = Path("/dev/shm/error.log")  # noqa: S108 - memory of the container
START_TIMEOUT_S = 5.0
LOOK_EVERY_S = 0.002


@dataclass(frozen=True, slots=True)
class Supervised:
    """The server's process is the only child of the loop whose pid is in `pid_file`.

    The loop reads the number of CPUs that the server can use from `workers_file`, and appends its errors to `log`.
    """

    probes: Probes = field(default_factory=Probes)
    pid_file: Path = PID_FILE
    workers_file: Path = WORKERS_FILE
    log: Path = ERROR_LOG
    timeout_s: float = START_TIMEOUT_S
    speaks_quic: bool = True

    def health(self) -> Health:
        """The loop's pid, and the server's once for each CPU that it can use. Raises ServerIsGone."""
        master = self._master()
        pids = children(master)
        return Health(master, pids * self.workers(), parent_and_start(master)[1], peak_memory_bytes(pids))

    def workers(self) -> int:
        """The number of CPUs that the server can use."""
        return int(kept.read_new(str(self.workers_file)))

    def fresh(self, workers: int | None = None) -> dict[str, Any]:
        """Kill the server, and return when a new one answers over all that it speaks (servers/contract.py)."""
        start, master = time.monotonic(), self._master()
        if workers and workers != self.workers():
            self.workers_file.write_text(f"{workers}\n")
        if self.log.exists():
            os.truncate(self.log, 0)
        old = children(master)
        for process in old:
            os.kill(process, signal.SIGKILL)
        deadline = start + self.timeout_s
        self._until(deadline, lambda: self._is_new(master, old))
        self._until(deadline, self.probes.tcp)
        if self.speaks_quic:
            self._until(deadline, lambda: self.probes.quic(1))
        return {"workers": self.health().workers, "took_s": time.monotonic() - start}

    def _is_new(self, master: int, old: list[int]) -> None:
        new = children(master)
        if len(new) != 1 or set(new) & set(old):
            raise ServerIsGone(f"{self.probes.server} was not started again within {self.timeout_s:g} s")

    def _until(self, deadline: float, check: Callable[[], None]) -> None:
        """Repeat a check until it passes. Raises ServerIsGone with the end of the log at the deadline."""
        while True:
            try:
                return check()
            except ServerIsGone as error:
                if time.monotonic() >= deadline:
                    raise ServerIsGone(f"{error}; the end of its log: {tail(self.log) or 'empty'}") from error
            time.sleep(LOOK_EVERY_S)

    def _master(self) -> int:
        try:
            pid = int(kept.read_new(str(self.pid_file)))
            parent_and_start(pid)
        except (OSError, ValueError) as error:
            raise ServerIsGone(f"{self.probes.server} is not running: {error}") from error
        return pid

    def odd_command(self, expected: str) -> list[str]:
        """A deviation if the server's command line is not `expected`."""
        for process in children(self._master()):
            words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if words != expected:
                return [f"{self.probes.server} runs as `{words}` instead of `{expected}`"]
        return []

    def answers(self) -> Answers:
        """Raise NotOfferedError: without delays and sessions there is nothing to log."""
        raise NotOfferedError(
            f"{self.probes.server} keeps no log of its answers: it offers neither delays nor sessions"
        )

    def operations(self, command: Callable[[], str], **further: Operation) -> dict[str, Operation]:
        """The endpoint's operations and those of the server contract: the server's own, and those in `further`.

        `examine` also finds another command line than `command`.
        """
        return {
            **agent.OPERATIONS,
            "answers": self.answers,
            "examine": lambda: [*agent.OPERATIONS["examine"](), *self.odd_command(command())],
            "fresh": self.fresh,
            "health": self.health,
            "log": lambda: tail(self.log),
            "provide": provide,
            **further,
        }


def provide(path: str) -> dict[str, Any]:
    """Create the object of an on-demand path unless it exists: {"made": bool}."""
    return {"made": make(SITE, path)}
