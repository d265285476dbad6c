"""Time as a program sees it, so that a test can give it another one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """This machine's clock, or a replacement for tests."""

    monotonic: Callable[[], float] = time.monotonic  # seconds since an arbitrary moment
    sleep: Callable[[float], object] = time.sleep


CLOCK = Clock()
