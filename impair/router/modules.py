"""Loads modules of the user-mode kernel, for which there is no modprobe; other kernels load theirs by themselves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

MODULES = Path("/usr/lib/uml/modules")
LOADED = Path("/sys/module")
PLACES = ("kernel/net/sched", "kernel/drivers/net")
ARGUMENTS = {"ifb": ["numifbs=0"]}  # only the requested interfaces


def load(names: Iterable[str], modules: Path = MODULES, loaded: Path = LOADED) -> None:
    """Load the modules of this kernel's release that are not there yet; the use of a missing one is refused later."""
    for name in names:
        if (loaded / name).exists():
            continue
        for place in PLACES:
            module = modules / os.uname().release / place / f"{name}.ko"
            if module.exists():
                subprocess.run(["insmod", str(module), *ARGUMENTS.get(name, [])], capture_output=True, check=False)
