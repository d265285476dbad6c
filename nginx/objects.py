"""The objects that nginx serves, written when the image is built (`python3 objects.py DIRECTORY`) or on demand."""

from __future__ import annotations

import random
import re
import sys
from functools import lru_cache
from pathlib import Path

INDEX_BYTES = 612  # the size of nginx's own welcome page, which published comparisons fetch
SIZES_BYTES = {
    "1k": 1 << 10,
    "10k": 10 << 10,
    "100k": 100 << 10,
    "1m": 1 << 20,
    "10m": 10 << 20,
    "100m": 100 << 20,
}
LARGEST_BYTES = 64 << 20  # of what is made on demand
_ON_DEMAND = re.compile(r"bytes/([1-9][0-9]{0,8})")
_AFTER = re.compile(r"^/after/[0-9]{1,5}ms(?=/)")
_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Headwind</title>
<h1>The far end of the path</h1>
<p>Whoever reads this page has crossed the testbed: from the client, through the router and whatever it was told to do
to the packets, to this server. The page is as large as the one that a fresh nginx shows, so that a measurement of it
can be set beside others.</p>
<p>
"""
_TAIL = "\n</html>\n"


def index_page() -> bytes:
    """The page at `/`, INDEX_BYTES long: some words, then a ruler that fills it up."""
    room = INDEX_BYTES - len(_HEAD) - len(_TAIL)
    return (_HEAD + ("1234567890" * (room // 10 + 1))[:room] + _TAIL).encode("ascii")


def object_bytes(size_bytes: int) -> bytes:
    """The same incompressible bytes at every build."""
    return random.Random(size_bytes).randbytes(size_bytes)


def path_of(size_bytes: int) -> str:
    """Where an object of any size up to LARGEST_BYTES is: `/bytes/15000`; it has to be made first."""
    return f"/bytes/{size_bytes}"


def size_of(path: str) -> int | None:
    """How many bytes the path of a URL must give; None where there is no such object."""
    name = _name(path)
    if name in ("", "index.html"):
        return INDEX_BYTES
    if (found := _ON_DEMAND.fullmatch(name)) and int(found[1]) <= LARGEST_BYTES:
        return int(found[1])
    return SIZES_BYTES.get(name)


def is_on_demand(path: str) -> bool:
    """Whether the object has to be made before it can be fetched."""
    return size_of(path) is not None and _ON_DEMAND.fullmatch(_name(path)) is not None


def after(delay_s: float, path: str) -> str:
    """Where the object of a path is after a delay, in whole milliseconds: `/after/30ms/bytes/15000`; without one there.

    nginx/delay.js waits.
    """
    return f"/after/{round(delay_s * 1000)}ms{path}" if delay_s else path


def _name(path: str) -> str:
    return _AFTER.sub("", path.partition("?")[0], count=1).removeprefix("/")


@lru_cache(maxsize=1)  # of up to 100 MB
def content(path: str) -> bytes | None:
    """What the path of a URL must give, whatever a server has made of it; None where there is no such object."""
    size_bytes = size_of(path)
    if size_bytes is None:
        return None
    return index_page() if _name(path) in ("", "index.html") else object_bytes(size_bytes)


def make(directory: Path, path: str) -> bool:
    """Write the object of a path that is made on demand below `directory`; False where it is there already.

    Raises ValueError for any other path.
    """
    size_bytes = size_of(path)
    if size_bytes is None or not is_on_demand(path):
        raise ValueError(f"{path} is not made on demand: that is /bytes/1 to /bytes/{LARGEST_BYTES}")
    target = directory / _name(path)
    if target.exists():
        return False
    target.parent.mkdir(exist_ok=True)
    begun = target.with_suffix(".begun")
    begun.write_bytes(object_bytes(size_bytes))
    begun.rename(target)
    return True


def write_site(directory: Path) -> None:
    """Write `index.html` and one object per entry of SIZES_BYTES into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "index.html").write_bytes(index_page())
    for name, size_bytes in SIZES_BYTES.items():
        (directory / name).write_bytes(object_bytes(size_bytes))


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
