"""The objects that nginx serves, written once when the image is built: `python3 objects.py DIRECTORY`."""

from __future__ import annotations

import random
import sys
from functools import cache
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


@cache
def content(path: str) -> bytes | None:
    """What the path of a URL must give, whatever a server has made of it; None where there is no such object."""
    name = path.partition("?")[0].removeprefix("/")
    if name in ("", "index.html"):
        return index_page()
    return object_bytes(SIZES_BYTES[name]) if name in SIZES_BYTES else None


def write_site(directory: Path) -> None:
    """Write `index.html` and one object per entry of SIZES_BYTES into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "index.html").write_bytes(index_page())
    for name, size_bytes in SIZES_BYTES.items():
        (directory / name).write_bytes(object_bytes(size_bytes))


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
