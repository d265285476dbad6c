"""Data classes of the user's site (`content` in a matrix): files that every shipped server serves read-only.

Servers have them below PREFIX, next to the lab's objects, so no name in a site can hide one of these.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PREFIX = "/site"
INDEX = "index.html"
MOST_LISTED = 5  # changed files, by name
_UNRESERVED = frozenset((string.ascii_letters + string.digits + "-._~/").encode())  # RFC 3986, section 2.3
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class SiteFile:
    """A file of a site: its path below the folder, with slashes, its size and its hash."""

    path: str
    bytes: int
    sha256: str

    @property
    def url(self) -> str:
        """The path to request: percent-encoded, below PREFIX."""
        encoded = (chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in self.path.encode())
        return f"{PREFIX}/{''.join(encoded)}"


@dataclass(frozen=True, slots=True)
class Site:
    """The files of a folder, by path, as they were when the matrix was read; `left_out` has reasons by path."""

    folder: str
    files: tuple[SiteFile, ...]
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.bytes for file in self.files)

    @property
    def sha256(self) -> str:
        """A hash of all names, sizes and contents."""
        lines = (f"{file.sha256} {file.bytes} {file.path}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def file(self, path: str) -> SiteFile | None:
        """The file at a URL's path, `/` and `/docs/` being index pages; None if there is none."""
        name = name_of(path)
        return next((file for file in self.files if file.path == name), None)


def name_of(path: str) -> str:
    """The name of the file at a URL's path, below the folder: `index.html` for `/`, `a b.html` for `/a%20b.html`.

    An escape that is not UTF-8 names no file that a site can have.
    """
    decoded = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), path.encode()).decode(errors="replace")
    name = decoded.removeprefix("/")
    return f"{name}{INDEX}" if not name or name.endswith("/") else name


def site_changes(before: Site | None, after: Site | None) -> Iterator[str]:
    """A line for each file that differs, at most MOST_LISTED and one more; a folder that moved is no difference."""
    old = {file.path: file for file in before.files} if before else {}
    new = {file.path: file for file in after.files} if after else {}
    changed = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    for path in changed[:MOST_LISTED]:
        yield f"content.{path}: {_described(old.get(path))} -> {_described(new.get(path))}"
    if len(changed) > MOST_LISTED:
        yield f"content: {len(changed) - MOST_LISTED} more files"


def _described(file: SiteFile | None) -> str:
    return f"{file.bytes} bytes, sha256 {file.sha256[:12]}" if file else "none"
