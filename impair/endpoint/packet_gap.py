"""The longest time in which an interface carried no frame."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

COUNTERS = ("rx_packets", "tx_packets")
INTERFACES = Path("/sys/class/net")
NUMBER_BYTES = 32


class Silence:
    """Inside `with Silence(interface) as silence`, `look` at the interface's counters again and again."""

    def __init__(self, interface: str, interfaces: Path = INTERFACES) -> None:
        self._paths = [interfaces / interface / "statistics" / name for name in COUNTERS]
        self._files: list[int] = []  # open all the time: to open one takes longer than to read it
        self._longest_s = 0.0

    def __enter__(self) -> Self:
        self._files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in self._paths]
        self._frames, self._since_s = self._read(), time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.look()
        finally:
            for file in self._files:
                os.close(file)

    @property
    def longest_s(self) -> float:
        """The longest time without a frame, to within the time between two looks; one that lasted to the end counts."""
        return self._longest_s

    def look(self) -> None:
        """Check whether a frame has passed since the last look. Raises OSError if the interface is gone."""
        frames, now_s = self._read(), time.monotonic()
        self._longest_s = max(self._longest_s, now_s - self._since_s)
        if frames != self._frames:
            self._frames, self._since_s = frames, now_s

    def _read(self) -> list[bytes]:
        return [os.pread(file, NUMBER_BYTES, 0) for file in self._files]
