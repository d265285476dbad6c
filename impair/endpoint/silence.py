"""The longest time in which an interface carried no frame."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

LOOK_S = 0.05
COUNTERS = ("rx_packets", "tx_packets")
INTERFACES = Path("/sys/class/net")


class Silence:
    """Inside `with Silence(interface) as silence`, the interface's counters are looked at every LOOK_S."""

    def __init__(self, interface: str, interfaces: Path = INTERFACES) -> None:
        self._files = [interfaces / interface / "statistics" / name for name in COUNTERS]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)
        self._longest_s = 0.0

    def __enter__(self) -> Self:
        self._frames, self._since_s = self._read(), time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    @property
    def longest_s(self) -> float:
        """The longest time without a frame, give or take LOOK_S; one that lasted to the end counts too."""
        return self._longest_s

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        frames, now_s = self._read(), time.monotonic()
        self._longest_s = max(self._longest_s, now_s - self._since_s)
        if frames != self._frames:
            self._frames, self._since_s = frames, now_s

    def _read(self) -> list[str]:
        return [file.read_text() for file in self._files]
