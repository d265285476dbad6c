"""Reads a site from its folder: regular files only, bounded in number and size, through no symbolic link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwind.errors import UsageError
from headwind.site import Site, SiteFile, site_changes

MOST_FILES = 1000
MOST_BYTES = 64 << 20  # of all files together: each testbed gets a copy, and a run keeps one in memory
MOST_ENTRIES = 20_000  # names to look at, those that are left out included
LONGEST_NAME = 1000  # characters below the folder
DEEPEST = 32  # folders in each other
HIDDEN, LINK, SPECIAL = "hidden: its name begins with a dot", "a symbolic link", "not a regular file"
ELSEWHERE = "on another file system"


class SiteError(UsageError):
    """A folder that cannot be served as a site; `hint` is what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SiteChanged(UsageError):
    """The files of a site are not those that the run began with."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A site with its bytes, by path: what every testbed of a run serves, whatever happens to the folder meanwhile."""

    site: Site
    data: Mapping[str, bytes]


def read_site(folder: Path) -> Snapshot:
    """Read a folder. Hidden files, symbolic links and special files are left out. Raises SiteError."""
    data, left_out, entries = dict[str, bytes](), dict[str, str](), 0
    left_bytes = MOST_BYTES
    try:
        device = folder.stat().st_dev
        for where, folders, files, number in os.fwalk(folder, onerror=_raise, follow_symlinks=False):
            below = Path(where).relative_to(folder)
            entries += len(folders) + len(files)
            _check_size(entries, below)
            for name in sorted((*folders, *files)):
                path = (below / name).as_posix()
                if reason := _left_out(name, number, device, is_folder=name in folders):
                    left_out[path] = reason
                elif name in files:
                    data[_checked(path)] = _read(name, number, path, left_bytes)
                    left_bytes -= len(data[path])
                if len(data) > MOST_FILES:
                    raise SiteError(f"it has more than {MOST_FILES} files", "name a folder with those to measure")
            folders[:] = [name for name in folders if (below / name).as_posix() not in left_out]
    except OSError as error:
        name = os.fsdecode(error.filename) if error.filename else str(folder)
        raise SiteError(f"{name} cannot be read: {error.strerror}", "make it readable, or remove it") from error
    if not data:
        raise SiteError("it has no files that could be served", "hidden files and symbolic links are left out")
    found = (SiteFile(path, len(data[path]), hashlib.sha256(data[path]).hexdigest()) for path in sorted(data))
    return Snapshot(Site(str(folder), tuple(found), left_out), data)


def snapshot_of(site: Site) -> Snapshot:
    """Read a site again. Raises SiteChanged if its files are not the recorded ones."""
    try:
        found = read_site(Path(site.folder))
    except SiteError as error:
        raise SiteChanged(f"{site.folder}: the content of this run cannot be served: {error}; {error.hint}") from error
    if changes := list(site_changes(site, found.site)):
        lines = "".join(f"\n  {line}" for line in changes)
        raise SiteChanged(
            f"{site.folder}: the content is not that of this run:{lines}\nRevert these changes, or start a new run."
        )
    return found


def _raise(error: OSError) -> None:
    raise error


def _check_size(entries: int, below: Path) -> None:
    if entries > MOST_ENTRIES:
        raise SiteError(f"it has more than {MOST_ENTRIES} entries", "name a folder with the files to measure")
    if len(below.parts) > DEEPEST:
        raise SiteError(f"its folders are nested more than {DEEPEST} deep", "name a folder with the files to measure")


def _left_out(name: str, folder: int, device: int, *, is_folder: bool) -> str:
    """The reason why an entry is not served; empty if it is."""
    if name.startswith("."):
        return HIDDEN
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if status.st_dev != device:
        return ELSEWHERE
    return "" if is_folder or stat.S_ISREG(status.st_mode) else SPECIAL


def _checked(path: str) -> str:
    """The path, if it can be requested and printed."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SiteError(f"the name {ascii(path)[1:-1]} is not UTF-8", "rename it, or remove it") from None
    if not path.isprintable():
        raise SiteError(f"the name {ascii(path)[1:-1]} has an unprintable character", "rename it, or remove it")
    if len(path) > LONGEST_NAME:
        raise SiteError(
            f"the name {path[:60]}... has {len(path)} characters", f"rename it: at most {LONGEST_NAME} below the folder"
        )
    return path


def _read(name: str, folder: int, path: str, most_bytes: int) -> bytes:
    """The bytes of a regular file, which may have become something else since it was listed."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SiteError(f"{path} is no longer a regular file", "start again when nothing writes into the folder")
        data = file.read(most_bytes + 1)
    if data is None:  # of files that a kernel makes up
        raise SiteError(f"{path} cannot be read now", "name a folder with files that do not change")
    if len(data) > most_bytes:
        raise SiteError(
            f"it has more than {MOST_BYTES >> 20} MiB of files",
            "name a folder with those to measure",
        )
    return data
