"""The objects that all servers have, written when an image is built (`python3 objects.py DIRECTORY`) or on demand."""

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
LARGEST_BYTES = 64 << 20  # of an object made on demand
_ON_DEMAND = re.compile(r"bytes/([1-9][0-9]{0,8})")
_AFTER = re.compile(r"^/after/[0-9]{1,5}ms(?=/)")
_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Headwind</title>
<h1>The far end of the path</h1>
<p>This page has crossed the testbed: from the server, through the router and the impairments that it applies to
packets, to the client. It is as large as the page that a fresh nginx shows, so that measurements of both can be
compared.</p>
<p>
"""
_TAIL = "\n</html>\n"


def index_page() -> bytes:
    """The page at `/`, INDEX_BYTES long: some text, then a ruler that fills it up."""
    room = INDEX_BYTES - len(_HEAD) - len(_TAIL)
    return (_HEAD + ("1234567890" * (room // 10 + 1))[:room] + _TAIL).encode("ascii")


def object_bytes(size_bytes: int) -> bytes:
    """Incompressible bytes, the same at every build."""
    return random.Random(size_bytes).randbytes(size_bytes)


def path_of(size_bytes: int) -> str:
    """The path of an object of any size up to LARGEST_BYTES: `/bytes/15000`; create it before fetching."""
    return f"/bytes/{size_bytes}"


def size_of(path: str) -> int | None:
    """The expected body size of a URL's path, in bytes; None if there is no such object."""
    name = _name(path)
    if name in ("", "index.html"):
        return INDEX_BYTES
    if (found := _ON_DEMAND.fullmatch(name)) and int(found[1]) <= LARGEST_BYTES:
        return int(found[1])
    return SIZES_BYTES.get(name)


def is_on_demand(path: str) -> bool:
    """Whether the object must be created before it can be fetched."""
    return size_of(path) is not None and _ON_DEMAND.fullmatch(_name(path)) is not None


def after(delay_s: float, path: str) -> str:
    """The path of an object that is served after a delay in whole milliseconds: `/after/30ms/bytes/15000`.

    Without a delay the path is unchanged. nginx/delay.js waits.
    """
    return f"/after/{round(delay_s * 1000)}ms{path}" if delay_s else path


def _name(path: str) -> str:
    return _AFTER.sub("", path.partition("?")[0], count=1).removeprefix("/")


@lru_cache(maxsize=1)  # of up to 100 MB
def content(path: str) -> bytes | None:
    """The expected body of a URL's path, independent of any server; None if there is no such object."""
    size_bytes = size_of(path)
    if size_bytes is None:
        return None
    return index_page() if _name(path) in ("", "index.html") else object_bytes(size_bytes)


def make(directory: Path, path: str) -> bool:
    """Create the object of an on-demand path below `directory`; False if it exists already.

    Raises ValueError for any other path.
    """
    size_bytes = size_of(path)
    if size_bytes is None or not is_on_demand(path):
        raise ValueError(f"{path} is not created on demand; paths are /bytes/1 to /bytes/{LARGEST_BYTES}")
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
