"""Finds the host's ends of the containers' veth pairs, which can also have a queue or filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from impair.messages import FarEnds

DEVICES = Path("/sys/class/net")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # of this kernel, since it started


def on_this_host(reports: Iterable[FarEnds]) -> tuple[int, ...]:
    """The interface indices of the far ends that the hosts reported; none if Docker runs on a different kernel.

    An index counts only if the interface here points back: those of rootless Docker are of another network namespace,
    in which other interfaces have the same numbers.
    """
    ours = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
    links = dict(_numbers())
    return tuple(
        index
        for report in reports
        if report.boot_id == ours
        for index, own in zip(report.indices, report.own, strict=True)
        if links.get(index) == own
    )


def _numbers() -> Iterator[tuple[int, int]]:
    """The index of each interface here, and that of its other end; interfaces come and go meanwhile."""
    for device in DEVICES.iterdir() if DEVICES.is_dir() else ():
        with suppress(OSError):
            yield int((device / "ifindex").read_text()), int((device / "iflink").read_text())
