"""Finds the host's ends of the containers' veth pairs, where a queue or filter may sit, too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from impair.messages import FarEnds

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # of this kernel, since it started


def on_this_host(told: Iterable[FarEnds]) -> tuple[int, ...]:
    """The indices of the far ends, out of what the hosts told; none where Docker runs on another kernel than we do."""
    ours = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
    return tuple(index for found in told if found.boot_id == ours for index in found.indices)
