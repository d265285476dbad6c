"""The files of a generated page: exactly as large as requested, the same everywhere, and each is found by a browser."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwind.workloads.page_parts import FONTS, HTML_BYTES, IMAGES, SCRIPTS, STYLES
from servers import objects
from servers.page_files import DOCUMENT, MOST_FILES, PageFiles, Several, TooSmall, font, image, page_of

MEDIAN = PageFiles(HTML_BYTES, STYLES, SCRIPTS, FONTS, IMAGES)
NONE = Several(0, 0)
PAGES = {
    "median": MEDIAN,
    "chained": replace(MEDIAN, chain=5),
    "bundled": PageFiles(1_000, NONE, Several(1, 500_000), NONE, NONE),
    "in pieces": PageFiles(40_000, NONE, Several(500, 1_000), NONE, NONE, chain=3),
    "fonts without stylesheets": PageFiles(3_001, NONE, NONE, Several(3, 703 + 2), Several(2, 99)),
    "empty": PageFiles(900, NONE, NONE, NONE, NONE),
}
ANY = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@ANY
def test_every_file_has_its_size_and_its_page_is_known_from_the_folder(page: PageFiles) -> None:
    assert page_of(page.folder) == page
    for name, size_bytes in page.sizes().items():
        path = objects.page_path(page.folder, name)
        assert len(page.content(name)) == objects.size_of(path) == size_bytes
        assert objects.is_on_demand(path)
        assert objects.content(path) == page.content(name)


def test_the_bytes_are_those_of_every_version_of_python_and_zlib() -> None:
    """A hash of the median page: a change of it changes measured values."""
    data = b"".join(MEDIAN.content(name) for name in MEDIAN.sizes())
    assert hashlib.sha256(data).hexdigest()[:16] == "c299c14b4d83cc0d"


@ANY
def test_a_browser_finds_every_file_from_the_document(page: PageFiles) -> None:
    def named(name: str) -> list[str]:
        text = page.content(name).decode(errors="replace") if name.endswith(("html", "css", "js")) else ""
        return re.findall(r"[a-z]+-\d+\.(?:css|js|ttf|png)", text)

    found, open_files = [DOCUMENT], [DOCUMENT]
    while open_files:
        new = named(open_files.pop())
        found += new
        open_files += new
    assert sorted(found) == sorted(page.sizes()), "each of them once"


@ANY
def test_a_chain_is_found_link_by_link(page: PageFiles) -> None:
    document = page.content(DOCUMENT).decode()
    for kind, part, ending in (("style", page.styles, "css"), ("script", page.scripts, "js")):
        for number in range(1, part.count + 1):
            is_linked = 1 < number <= page.chain
            assert (f'"{kind}-{number}.{ending}"' in document) is not is_linked
            assert not is_linked or f"{kind}-{number}.{ending}".encode() in page.content(
                f"{kind}-{number - 1}.{ending}"
            )


def test_stylesheets_precede_scripts_and_one_script_blocks() -> None:
    document = MEDIAN.content(DOCUMENT).decode()
    assert document.rindex('<link rel="stylesheet"') < document.index("<script")
    assert len(re.findall("<script [^>]*(?:async|defer)></script>", document)) == SCRIPTS.count - 1
    assert document.index("<script") < document.index("<h1>") < document.index("<img") < document.index("<p")


@pytest.mark.parametrize("size_bytes", [70, 71, 99, 57_020, 65_700, 200_001])
def test_an_image_is_a_png_of_noise_as_large_as_its_size_allows(size_bytes: int) -> None:
    data = image(size_bytes, "a")
    assert len(data) == size_bytes
    assert image(size_bytes, "b") != data or size_bytes < 80
    chunks, at = {}, 8
    while at < len(data) and data[at : at + 4].strip(b"\0"):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert int.from_bytes(data[at + 8 + length : at + 12 + length], "big") == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
        if kind == b"IEND":
            break
    side, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = zlib.decompress(chunks[b"IDAT"])
    assert (side, len(rows)) == (height, side * (side + 1))
    assert (side + 1) * (side + 2) > size_bytes - 100, "noise, and not what follows the picture"


def test_a_font_has_its_tables_in_order_within_its_bytes() -> None:
    data = font()
    count = int.from_bytes(data[4:6], "big")
    tables = [struct.unpack(">4sIII", data[12 + 16 * number : 28 + 16 * number]) for number in range(count)]
    assert [tag for tag, *_ in tables] == sorted(tag for tag, *_ in tables)
    assert {tag for tag, *_ in tables} >= {b"OS/2", b"cmap", b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp"}
    for _, _, start, length in tables:
        assert start % 4 == 0
        assert start + length <= len(data)


@pytest.mark.parametrize("kind", ["html", "style", "script", "font", "image"])
def test_the_least_size_of_a_file_is_enough_and_one_byte_less_is_not(kind: str) -> None:
    names = {"style": "styles", "script": "scripts", "font": "fonts", "image": "images"}

    def of_size(size_bytes: int) -> PageFiles:
        chained = replace(MEDIAN, chain=3)
        if kind == "html":
            return replace(chained, html_bytes=size_bytes)
        part: dict[str, Any] = {names[kind]: Several(getattr(chained, names[kind]).count, size_bytes)}
        return replace(chained, **part)

    with pytest.raises(TooSmall) as refused:
        of_size(1)
    assert refused.value.kind == kind
    page = of_size(refused.value.least)
    assert all(len(page.content(name)) == size_bytes for name, size_bytes in page.sizes().items())
    with pytest.raises(TooSmall):
        of_size(refused.value.least - 1)


@pytest.mark.parametrize(
    "change",
    [{"chain": 1}, {"chain": 9}, {"scripts": Several(MOST_FILES + 1, 1_000)}, {"images": Several(1_000, 1_000_000)}],
    ids=str,
)
def test_what_no_page_can_have_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a page has at most|a chain has at least"):
        replace(MEDIAN, **change)


@pytest.mark.parametrize("path", [
    "/bytes/page-1-0x0-0x0-0x0-0x0-0/page.html", "/bytes/page-0900-0x0-0x0-0x0-0x0-0/page.html",
    f"/bytes/{MEDIAN.folder}/style-9.css", f"/bytes/{MEDIAN.folder}/style-1.js", f"/bytes/{MEDIAN.folder}/",
    f"/bytes/{MEDIAN.folder}", f"/{MEDIAN.folder}/page.html", f"/bytes/{MEDIAN.folder}/../1k",
])  # fmt: skip
def test_no_other_file_is_made(path: str, tmp_path: Path) -> None:
    assert objects.size_of(path) is None
    with pytest.raises(ValueError, match="not created on demand"):
        objects.make(tmp_path, path)
    assert not list(tmp_path.iterdir())


def test_a_page_is_made_as_a_whole_and_once(tmp_path: Path) -> None:
    (tmp_path / "bytes").mkdir()
    page = PAGES["fonts without stylesheets"]
    later = objects.after(0.03, objects.page_path(page.folder, DOCUMENT))
    assert objects.make(tmp_path, later)
    assert not objects.make(tmp_path, objects.page_path(page.folder, "image-1.png"))
    (folder,) = (tmp_path / "bytes").iterdir()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        name: page.content(name) for name in page.sizes()
    }
