"""The objects that all servers have: made for images (`python3 -m servers.objects DIRECTORY`) or on demand."""

from __future__ import annotations

import random
import re
import sys
from functools import lru_cache
from pathlib import Path

from servers.page_files import PageFiles, page_of

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
_ON_DEMAND = re.compile(r"bytes/([1-9][0-9]{0,8})(\.png)?")
_PAGE = re.compile(r"bytes/([1-9][0-9]{0,3})-of-([1-9][0-9]{0,8})\.html")
_PAGE_FILE = re.compile(r"bytes/(page-[0-9x-]+)/([a-z0-9-]+\.[a-z]+)")
# A grey pixel. Whatever follows its end is no part of the picture, and read all the same.
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001"
    "08000000003a7e9b550000000a4944415478da6368000000"
    "820081da45083b0000000049454e44ae426082"
)
LEAST_PICTURE_BYTES = len(_PIXEL)
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
_PAGE_TEXT = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Headwind</title>
<link rel="icon" href="data:,">
<p>A page with {count} pictures</p>
{pictures}
</html>
"""


def index_page() -> bytes:
    """The page at `/`, INDEX_BYTES long: some text, then a ruler that fills it up."""
    room = INDEX_BYTES - len(_HEAD) - len(_TAIL)
    return (_HEAD + ("1234567890" * (room // 10 + 1))[:room] + _TAIL).encode("ascii")


def object_bytes(size_bytes: int) -> bytes:
    """Incompressible bytes, the same at every build."""
    return random.Random(size_bytes).randbytes(size_bytes)


def picture(size_bytes: int) -> bytes:
    """A picture of one pixel, and random bytes after it: as large as requested, and quickly drawn."""
    return _PIXEL + object_bytes(size_bytes)[len(_PIXEL) :]


def document(count: int, size_bytes: int) -> bytes:
    """A page that asks for a number of pictures at once; each has a different address, and thus is fetched."""
    pictures = "\n".join(f'<img src="{size_bytes}.png?{number}" width="8" height="8" alt="">'
                         for number in range(1, count + 1))  # fmt: skip
    return _PAGE_TEXT.format(count=count, pictures=pictures).encode("ascii")


def document_path(count: int, size_bytes: int) -> str:
    """The path of a page with pictures: `/bytes/50-of-10000.html`; create it before fetching."""
    return f"/bytes/{count}-of-{size_bytes}.html"


def picture_path(size_bytes: int) -> str:
    """The path of a picture: `/bytes/10000.png`, at least LEAST_PICTURE_BYTES; create it before fetching."""
    return f"/bytes/{size_bytes}.png"


def page_path(folder: str, name: str) -> str:
    """The path of a file of a generated page (servers/page_files.py); create the page before fetching."""
    return f"/bytes/{folder}/{name}"


def path_of(size_bytes: int) -> str:
    """The path of an object of any size up to LARGEST_BYTES: `/bytes/15000`; create it before fetching."""
    return f"/bytes/{size_bytes}"


def size_of(path: str) -> int | None:
    """The expected body size of a URL's path, in bytes; None if there is no such object."""
    name = _name(path)
    if name in ("", "index.html"):
        return INDEX_BYTES
    if (found := _ON_DEMAND.fullmatch(name)) and int(found[1]) <= LARGEST_BYTES:
        is_complete = not found[2] or int(found[1]) >= LEAST_PICTURE_BYTES
        return int(found[1]) if is_complete else None
    if found := _PAGE.fullmatch(name):
        return len(document(int(found[1]), int(found[2])))
    if part := _page_file(name):
        return part[0].sizes()[part[1]]
    return SIZES_BYTES.get(name)


def is_on_demand(path: str) -> bool:
    """Whether the object must be created before it can be fetched."""
    return size_of(path) is not None and _name(path).startswith("bytes/")


def after(delay_s: float, path: str) -> str:
    """The path of an object that is served after a delay in whole milliseconds: `/after/30ms/bytes/15000`.

    Without a delay the path is unchanged. nginx/delay.js waits.
    """
    return f"/after/{round(delay_s * 1000)}ms{path}" if delay_s else path


def _page_file(name: str) -> tuple[PageFiles, str] | None:
    """The generated page and the name of its file; None if there is no such file."""
    found = _PAGE_FILE.fullmatch(name)
    page = page_of(found[1]) if found else None
    return (page, found[2]) if found and page and found[2] in page.sizes() else None


def _name(path: str) -> str:
    return _AFTER.sub("", path.partition("?")[0], count=1).removeprefix("/")


@lru_cache(maxsize=1)  # of up to 100 MB
def content(path: str) -> bytes | None:
    """The expected body of a URL's path, independent of any server; None if there is no such object."""
    return _body(path)


def _body(path: str) -> bytes | None:
    size_bytes = size_of(path)
    if size_bytes is None:
        return None
    name = _name(path)
    if name in ("", "index.html"):
        return index_page()
    if page := _PAGE.fullmatch(name):
        return document(int(page[1]), int(page[2]))
    if part := _page_file(name):
        return part[0].content(part[1])
    return picture(size_bytes) if name.endswith(".png") else object_bytes(size_bytes)


def make(directory: Path, path: str) -> bool:
    """Create the object of an on-demand path below `directory`, of a page all files; False if it exists already.

    Raises ValueError for any other path.
    """
    if not is_on_demand(path):
        raise ValueError(f"{path} is not created on demand; paths are /bytes/1 to /bytes/{LARGEST_BYTES}")
    found = _page_file(_name(path))
    target = (directory / _name(path)).parent if found else directory / _name(path)
    if target.exists():
        return False
    target.parent.mkdir(exist_ok=True)
    begun = target.with_name(f"{target.name}.begun")
    if found:
        _write_page(begun, found[0])
    else:
        begun.write_bytes(_body(path) or b"")
    begun.rename(target)
    return True


def _write_page(folder: Path, page: PageFiles) -> None:
    folder.mkdir(exist_ok=True)
    for name in page.sizes():
        (folder / name).write_bytes(page.content(name))


def write_site(directory: Path) -> None:
    """Write `index.html` and one object per entry of SIZES_BYTES into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "index.html").write_bytes(index_page())
    for name, size_bytes in SIZES_BYTES.items():
        (directory / name).write_bytes(object_bytes(size_bytes))


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
