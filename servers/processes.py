"""Processes of this host, from /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from impair import kept


def children(master: int) -> list[int]:
    """The pids of a process's living children, ascending; those that its first thread has started."""
    try:
        candidates = map(int, kept.read_new(f"/proc/{master}/task/{master}/children").split())
    except FileNotFoundError:  # a kernel without PROC_CHILDREN, or there is no such process
        candidates = map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208 - in a loop, and pathlib takes twice as long
    found = []
    for pid in candidates:
        try:
            if parent_and_start(pid)[0] == master:
                found.append(pid)
        except OSError:
            continue  # it ended while we looked
    return sorted(found)


def peak_memory_bytes(pids: Iterable[int]) -> int | None:
    """The largest resident memory of each process since its start (VmHWM, proc(5)), added up; None if one has ended."""
    peaks_kib = []
    for pid in set(pids):
        try:
            peaks_kib += re.findall(r"^VmHWM:\s+(\d+) kB$", kept.read_new(f"/proc/{pid}/status"), re.MULTILINE)
        except OSError:
            return None
    return 1024 * sum(map(int, peaks_kib)) or None


def parent_and_start(pid: int) -> tuple[int, float]:
    """(parent's pid, start in seconds after boot) of a living process; raises OSError for any other."""
    fields = kept.read_new(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    return int(fields[1]), int(fields[19]) / os.sysconf("SC_CLK_TCK")
