"""The longest time in which an interface carried no frame, between its first and its last one."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

COUNTERS = ("rx_packets", "tx_packets")
INTERFACES = Path("/sys/class/net")
NUMBER_BYTES = 32
LONGEST_END_S = 1.0  # a program that has its last frame ends sooner: a longer silence at the end is the network's


class Silence:
    """Inside `with Silence(interface) as silence`, `look` at the interface's counters again and again."""

    def __init__(self, interface: str, interfaces: Path = INTERFACES) -> None:
        self._paths = [interfaces / interface / "statistics" / name for name in COUNTERS]
        self._files: list[int] = []  # open all the time: to open one takes longer than to read it
        self._longest_s = 0.0
        self._since_s = math.inf  # the first look after the last frame: none has come

    def __enter__(self) -> Self:
        self._files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in self._paths]
        self._frames, self._looked_s = self._read(), time.monotonic()
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
        """A lower bound of the longest time between two frames: it is up to two looks longer.

        The time since the last frame counts if it is longer than LONGEST_END_S.
        """
        end_s = self._looked_s - self._since_s
        return max(self._longest_s, end_s if end_s > LONGEST_END_S else 0.0)

    def look(self) -> None:
        """Check whether a frame has passed since the last look. Raises OSError if the interface is gone."""
        now_s, frames = time.monotonic(), self._read()
        if frames != self._frames:  # none had come between the first look after the one before, and the last look
            self._longest_s = max(self._longest_s, self._looked_s - self._since_s)
            self._frames, self._since_s = frames, time.monotonic()
        self._looked_s = now_s

    def _read(self) -> list[bytes]:
        return [os.pread(file, NUMBER_BYTES, 0) for file in self._files]
