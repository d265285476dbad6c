"""Time as a program sees it, so that a test can give it another one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """This machine's clock, unless it is made of something else."""

    monotonic: Callable[[], float] = time.monotonic  # seconds since whenever
    sleep: Callable[[float], object] = time.sleep


CLOCK = Clock()
