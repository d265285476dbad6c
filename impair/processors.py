"""CPU limits and CPU use of a container, and its waiting time: cgroup version 1 or 2, from inside."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from impair import kept
from impair.messages import Machine, Processors

CGROUPS = "/sys/fs/cgroup"
PRESSURE = "/proc/pressure/cpu"  # of the whole host
STAT = "/proc/stat"  # likewise; proc_stat(5)
STEAL_COLUMN = 7  # CPU steal: time that the hypervisor gave to others
BUSY_COLUMNS = (0, 2, 5, 6, STEAL_COLUMN)  # user, system, irq, softirq: not idle, waiting for a disk, or niced
PLACES = ("", "/cpu", "/cpu,cpuacct")  # version 2; version 1; 1, both controllers mounted as one
# In cpu.stat, and its unit: version 2 counts microseconds, version 1 nanoseconds.
THROTTLED_S = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
USED_S = {"usage_usec": 1e-6}
MEMORY = ("/memory.max", "/memory/memory.limit_in_bytes")


def kept_waiting(cgroups: str = CGROUPS, pressure: str = PRESSURE) -> Processors:
    """The container's CPU use, and how long it waited for CPUs."""
    return Processors(
        clock_s=time.monotonic(),
        cpu_s=_stat_s(cgroups, USED_S) or _usage_s(cgroups),
        throttled_s=_stat_s(cgroups, THROTTLED_S),
        pressure_s=_total_s(f"{cgroups}/cpu.pressure", "full"),
        host_pressure_s=_total_s(pressure, "some"),
    )


def machine(stat: str = STAT) -> Machine:
    """The host's CPUs, and how long they were busy since its start."""
    total, *each = (line.split()[1:] for line in _read(stat).splitlines() if line.startswith("cpu"))
    second = os.sysconf("SC_CLK_TCK")
    return Machine(
        len(each), sum(int(total[column]) for column in BUSY_COLUMNS) / second, int(total[STEAL_COLUMN]) / second
    )


def limits(cgroups: str = CGROUPS) -> dict[str, str]:
    """{"quota", "weight", "processors", "memory"} of this container, as texts; "none" if not limited here."""
    return {
        "quota": _quota(cgroups),
        "weight": _first(cgroups, "cpu.weight", "cpu.shares"),
        "processors": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "memory": next((text for name in MEMORY if (text := _read(cgroups + name))), "none"),
    }


def _quota(cgroups: str) -> str:
    """`30000 of 100000 us`, or "none"."""
    for place in PLACES:
        limit, _, period = _read(f"{cgroups}{place}/cpu.max").partition(" ")  # version 2
        limit = limit or _read(f"{cgroups}{place}/cpu.cfs_quota_us")
        if limit not in ("", "max", "-1"):
            return f"{limit} of {period or _read(f'{cgroups}{place}/cpu.cfs_period_us')} us"
    return "none"


def _first(cgroups: str, *names: str) -> str:
    return next((text for place in PLACES for name in names if (text := _read(f"{cgroups}{place}/{name}"))), "none")


def _usage_s(cgroups: str) -> float | None:
    """The CPU time as version 1 has it, in a separate file."""
    text = _read(f"{cgroups}/cpuacct/cpuacct.usage") or _read(f"{cgroups}/cpu,cpuacct/cpuacct.usage")
    return int(text) / 1e9 if text else None


def _stat_s(cgroups: str, units_s: Mapping[str, float]) -> float | None:
    """The line of cpu.stat that has one of these names, in seconds; None if there is none."""
    for place in PLACES:
        for line in _read(f"{cgroups}{place}/cpu.stat").splitlines():
            name, _, number = line.partition(" ")
            if name in units_s:
                return int(number) * units_s[name]
    return None


def _total_s(path: str, kind: str) -> float | None:
    for line in _read(path).splitlines():
        if line.startswith(f"{kind} "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _read(path: str) -> str:
    """The text of a file; empty if it is absent or unreadable (pressure, if it is turned off)."""
    try:
        return kept.read(path).strip()
    except OSError:
        return ""
