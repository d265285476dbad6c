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


def is_alive(owner: str, kill: Callable[[int, int], None] = os.kill) -> bool:
    """Whether an owner still runs; one of another host counts as alive."""
    host, _, rest = owner.partition(":")
    pid, _, start = rest.partition(":")
    if host != os.uname().nodename or not pid.isdigit():
        return host != os.uname().nodename and bool(owner)  # another host's lab on the same daemon: leave it alone
    try:
        kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not start or _start_time(int(pid)) in (start, "")
