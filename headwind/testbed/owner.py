"""The owner of a testbed: the process of its lab, written as a label on containers and networks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def this_lab() -> str:
    """This process as the owner of testbeds."""
    return owner_of(os.getpid())


def owner_of(pid: int) -> str:
    """A process of this host that runs, as the owner of testbeds."""
    return f"{os.uname().nodename}:{pid}:{_start_time(pid)}"


def _start_time(pid: int) -> str:
    """The kernel's start time of a process, so that a reused pid is not mistaken for its owner; empty when unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def is_elsewhere(owner: str) -> bool:
    """Whether an owner has another host name than this machine, so that nothing is known about its process."""
    return bool(owner) and owner.partition(":")[0] != os.uname().nodename


def is_alive(owner: str, kill: Callable[[int, int], None] = os.kill) -> bool:
    """Whether an owner still runs; one of another host counts as alive."""
    pid, _, start = owner.partition(":")[2].partition(":")
    if is_elsewhere(owner) or not pid.isdigit():
        return is_elsewhere(owner)  # another host's lab on the same daemon: leave it alone
    try:
        kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's process, perhaps one that has the pid after a reboot
    return not start or _start_time(int(pid)) in (start, "")
