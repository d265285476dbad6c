"""Finds the host's ends of the containers' veth pairs, which can also have a queue or filter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from impair.messages import FarEnds

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # of this kernel, since it started


def on_this_host(reports: Iterable[FarEnds]) -> tuple[int, ...]:
    """The interface indices of the far ends that the hosts reported; none if Docker runs on a different kernel."""
    ours = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
    return tuple(index for report in reports if report.boot_id == ours for index in report.indices)
