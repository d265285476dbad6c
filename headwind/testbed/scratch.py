"""Temporary folders that name their process, so that those of a killed one can be found and removed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwind.testbed.owner import is_alive, owner_of

NAME = re.compile(r"headwind-(\d+)-(\d*)-.+")  # process, its start time, random characters


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder for the code inside."""
    _, pid, start = owner_of(os.getpid()).rsplit(":", 2)
    with tempfile.TemporaryDirectory(prefix=f"headwind-{pid}-{start}-") as folder:
        yield Path(folder)


def remove_scratch(parent: Path | None = None) -> None:
    """Remove the folders of processes of this host that have ended; what cannot be removed stays.

    They are looked for in the system's folder for temporary files, or in `parent`.
    """
    for folder in (parent or Path(tempfile.gettempdir())).glob("headwind-*"):
        named = NAME.fullmatch(folder.name)
        if named and not is_alive(f"{os.uname().nodename}:{named[1]}:{named[2]}"):
            shutil.rmtree(folder, ignore_errors=True)
