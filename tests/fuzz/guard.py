"""What no input may do: change a file elsewhere, start a program, open a connection, hang, or take much memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOST_S = 10.0  # of CPU time for one input
MOST_BYTES = 500 << 20
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
FORBIDDEN = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "socket.bind",
             "shutil.rmtree", "ctypes.dlopen"}  # fmt: skip
MOVES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.symlink", "os.link"}


class Violation(Exception):
    """An input made the parser do something that it must not."""


class Guard:
    """Watches what Python does while `watching`. An audit hook cannot be taken back, so there is one per process."""

    def __init__(self) -> None:
        self.folder = ""
        self.found: list[str] = []
        sys.addaudithook(self._heed)

    @contextmanager
    def watching(self, folder: Path) -> Iterator[None]:
        """Let nothing happen outside of `folder`, and nothing take more than MOST_S. Raises Violation, at the end."""
        self.found.clear()
        old = signal.signal(signal.SIGPROF, self._too_long)
        signal.setitimer(signal.ITIMER_PROF, MOST_S)
        self.folder = str(folder)
        try:
            yield
        finally:
            self.folder = ""
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, old)
        if self.found:
            raise Violation("; ".join(self.found))

    def _too_long(self, *_: object) -> None:
        raise Violation(f"an input took more than {MOST_S:g} s of CPU time")

    def _heed(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        if event in FORBIDDEN:
            self.found.append(f"{event} {arguments[:2]}")
        elif event == "open":
            path, _, flags = arguments
            if flags & WRITES and not self._is_inside(path):
                self.found.append(f"writes to {path}")
        elif event in MOVES and not self._is_inside(arguments[0]):
            self.found.append(f"{event} {arguments[0]}")

    def _is_inside(self, path: Any) -> bool:
        if not isinstance(path, (str, bytes)):
            return isinstance(path, int)  # a descriptor that is open already
        text = os.path.realpath(os.fsdecode(path))
        return text.startswith((os.path.realpath(self.folder), "/dev/null"))


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
