"""Disk operations of the run folder: atomic writes, fsync, locks."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from headwind.stops import held_back

LOCK_TRIES, LOCK_PAUSE_S = 5, 0.05  # a reader that checks for a live writer holds the lock for an instant
MOST_JSON_CHARACTERS = 32 << 20


def new_folder(parent: Path, draw: Callable[[int], str] = secrets.token_hex) -> Path:
    """A new folder, named after the second (UTC) and four random hex digits. Raises OSError.

    So names sort by start, which is how the newest run is chosen (newest_folders, cli/runs.py, Makefile).
    """
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        folder = parent / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{draw(2)}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue  # another process drew the same digits in the same second
        return folder


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file so that a reader sees the old one or the new one, never a part. Returns `path`; raises OSError.

    A Ctrl-C waits until it is done: during opening it would leave the file open, and its draft behind.
    """
    with held_back(), draft_of(path) as file:
        # Half a surrogate pair (an undecodable byte of some message) becomes \udc80, which JSON reads back.
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
    return path


@contextmanager
def draft_of(path: Path) -> Iterator[IO[bytes]]:
    """A file for content that is written piece by piece: it becomes `path` at the end, or is removed after an error.

    A Ctrl-C is such an error. Raises OSError.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")  # see remove_drafts
    try:
        with ExitStack() as closing:
            with held_back():
                file = closing.enter_context(draft.open("wb"))
            yield file
            file.flush()
            os.fsync(file.fileno())
        with held_back():
            draft.replace(path)
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def remove_drafts(folder: Path) -> None:
    """Remove files that this process has not written completely, before it ends."""
    for draft in folder.glob(f".*.{os.getpid()}"):
        with suppress(OSError):
            draft.unlink()


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; links and pipes hold none. Raises OSError, ValueError or TypeError."""
    with open(path, encoding="utf-8", opener=_open_plainly) as file:
        text = file.read(MOST_JSON_CHARACTERS + 1)
    if len(text) > MOST_JSON_CHARACTERS:
        raise ValueError(f"{path.name} has more than {MOST_JSON_CHARACTERS >> 20} MiB")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError(f"{path.name} holds no JSON object")
    return content


def _open_plainly(path: str, flags: int) -> int:
    """Open a file without following a link, and without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def object_text(value: Mapping[str, Any]) -> str:
    """The file content of a JSON object, readable by people as well."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def sync_folder(folder: Path) -> None:
    """Make new and renamed entries of a folder survive a power loss; fsync of the files alone does not (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_lock(path: Path, tries: int = LOCK_TRIES) -> int | None:
    """A descriptor that holds the lock at `path` until it is closed or its process dies.

    None if another process has it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for attempt in range(tries):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < tries:
                time.sleep(LOCK_PAUSE_S)
        else:
            return lock
    os.close(lock)
    return None


class Claim:
    """The lock at a path for this process: held until no `keeps` is open any more, or until `drop`."""

    def __init__(self, path: Path) -> None:
        self._path, self._keepers = path, 0
        self.descriptor: int | None = None  # while a process that inherits it lives, no other process gets the lock

    def take(self) -> bool:
        """Take the lock. Returns True if this process now has it."""
        if self.descriptor is None:
            self.descriptor = take_lock(self._path)
        return self.descriptor is not None

    @contextmanager
    def keeps(self) -> Iterator[bool]:
        """Hold the lock for the code inside; yields False if another process has it."""
        is_ours = self.take()
        self._keepers += 1
        try:
            yield is_ours
        finally:
            self._keepers -= 1
            if not self._keepers:
                self.drop()

    def drop(self) -> None:
        """Release the lock."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    @property
    def is_taken(self) -> bool:
        """True if any process, including this one, has the lock."""
        if self.descriptor is not None:
            return True
        lock = take_lock(self._path, tries=1)
        if lock is not None:
            os.close(lock)
        return lock is None


def newest_folders(reports: Path) -> list[Path]:
    """The folders in `reports`, the newest run's first; empty if it cannot be read."""
    try:
        return sorted(reports.glob("*/"), reverse=True)
    except OSError:
        return []
