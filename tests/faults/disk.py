"""A separate small disk for run folders, which can be full or broken without harm to the host; and torn journals."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwind.run.journal import JOURNAL

SIZE_BYTES = 48 << 20
WAL_HEADER, FRAME_HEADER = 32, 24  # SQLite's file format, section 4.1
NEEDED = ("mount", "umount", "mkfs.ext4", "e2fsck")


class Disk:
    """An ext4 in a file, mounted below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._image, self.path = folder / "disk.img", folder / "disk"
        self._filler = self.path / "filler"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def empty(self) -> None:
        """Remove what `fill` wrote."""
        self._filler.unlink(missing_ok=True)

    def break_down(self) -> None:
        """Make it read-only under open files, as ext4 does after a media error."""
        _run("mount", "-o", "remount,abort", str(self.path))

    def repair(self) -> None:
        """Check it, as a system does when it starts, and mount it again."""
        _run("umount", str(self.path))
        subprocess.run(["e2fsck", "-p", "-f", str(self._image)], capture_output=True, check=False)  # 1: it repaired
        self._mount()

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def is_possible() -> bool:
    """Whether this process may mount disks, and end the processes of containers."""
    return os.geteuid() == 0 and all(map(shutil.which, NEEDED)) and Path("/dev/loop-control").exists()


@contextmanager
def disk_in(folder: Path) -> Iterator[Disk]:
    """A mounted disk, for the code inside."""
    disk = Disk(folder)
    try:
        yield disk
    finally:
        disk.close()


def commits(log: bytes) -> list[int]:
    """The offsets in a write-ahead log of SQLite at which a transaction ends; frames of an earlier log do not count."""
    if len(log) < WAL_HEADER:
        return []
    page, salts = struct.unpack(">I", log[8:12])[0], log[16:24]
    ends, place = [], WAL_HEADER
    while place + FRAME_HEADER + page <= len(log) and log[place + 8 : place + 16] == salts:
        size_after = struct.unpack(">I", log[place + 4 : place + 8])[0]
        place += FRAME_HEADER + page
        if size_after:
            ends.append(place)
    return ends


def tear(folder: Path, chance: random.Random, spare: Path) -> Path | None:
    """Cut a random part off the last page of a journal that no process has open, or fill the part with noise.

    Returns a copy of the run folder, in `spare`, in which the whole transaction of that page is missing; or None.
    """
    path = folder / f"{JOURNAL}-wal"
    log = path.read_bytes() if path.exists() else b""
    if len(ends := commits(log)) < 2:
        return None
    whole = spare / f"{folder.name}-whole"
    shutil.copytree(folder, whole)
    (whole / path.name).write_bytes(log[: ends[-2]])
    page = struct.unpack(">I", log[8:12])[0]
    lost = chance.randrange(1, page + FRAME_HEADER)
    noise = chance.randbytes(lost) if chance.random() < 0.5 else b""
    path.write_bytes(log[: ends[-1] - lost] + noise)
    return whole


def tear_database(path: Path, chance: random.Random) -> None:
    """Cut a random part of the last pages off a database that has no write-ahead log."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - chance.randrange(1, min(len(data), 3 * 4096))])
