"""The files of a generated page, by their names: HTML, CSS, JavaScript, fonts and images that a browser applies.

A page is described by its folder's name, so that every server makes the same bytes, and the lab knows them.
"""

from __future__ import annotations

import random
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

DOCUMENT = "page.html"
MOST_FILES = 1024  # of a kind
MOST_BYTES = 64 << 20  # of all files together
_STORED_BYTES = 65_535  # the largest block of uncompressed data: RFC 1951, section 3.2.4
_FOLDER = re.compile(r"page-(\d+)-(\d+)x(\d+)-(\d+)x(\d+)-(\d+)x(\d+)-(\d+)x(\d+)-(\d+)")
_FILE = re.compile(r"(style|script|font|image)-([1-9]\d{0,3})\.(css|js|ttf|png)")
_ENDINGS = {"style": "css", "script": "js", "font": "ttf", "image": "png"}
_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Headwind</title>
<link rel="icon" href="data:,">
"""
_TAIL = "</html>\n"


@dataclass(frozen=True, slots=True)
class Several:
    """A number of files, and the size of each in bytes."""

    count: int
    bytes: int


class TooSmall(ValueError):
    """A file has too few bytes for what it must have: `kind` is html, style, script, font or image, `least` enough."""

    def __init__(self, kind: str, least: int) -> None:
        super().__init__(f"a file of kind {kind} has at least {least} bytes")
        self.kind, self.least = kind, least


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The files of a page. `chain` stylesheets and scripts load each other, one after the other; 0: none does.

    Raises TooSmall for sizes that a file cannot have, ValueError for other values that no page can have.
    """

    html_bytes: int
    styles: Several
    scripts: Several
    fonts: Several
    images: Several
    chain: int = 0

    def __post_init__(self) -> None:
        parts = {"style": self.styles, "script": self.scripts, "font": self.fonts, "image": self.images}
        if any(part.count > MOST_FILES for part in parts.values()):
            raise ValueError(f"a page has at most {MOST_FILES} files of a kind")
        if self.html_bytes + sum(part.count * part.bytes for part in parts.values()) > MOST_BYTES:
            raise ValueError(f"a page has at most {MOST_BYTES >> 20} MiB")
        chained = [part.count for part in (self.styles, self.scripts) if part.count]
        if self.chain == 1 or self.chain > min(chained, default=0):
            raise ValueError("a chain has at least two stylesheets or scripts, and no more than there are")
        for kind, part in parts.items():
            least = max((len(self._least(kind, number)) for number in range(1, part.count + 1)), default=0)
            if part.bytes < least:
                raise TooSmall(kind, least)
        if self.html_bytes < (least := len(self._document(_HEAD, _TAIL))):
            raise TooSmall("html", least)

    @property
    def folder(self) -> str:
        """The name of its folder: `page-22528-8x10496-22x32442-4x35584-19x57020-0`."""
        parts = (self.styles, self.scripts, self.fonts, self.images)
        return "-".join(["page", str(self.html_bytes), *(f"{part.count}x{part.bytes}" for part in parts),
                         str(self.chain)])  # fmt: skip

    def sizes(self) -> dict[str, int]:
        """The size of every file in bytes, by its name, the document first."""
        parts = {"style": self.styles, "script": self.scripts, "font": self.fonts, "image": self.images}
        return {DOCUMENT: self.html_bytes} | {
            _name(kind, number): part.bytes for kind, part in parts.items() for number in range(1, part.count + 1)
        }

    def content(self, name: str) -> bytes:
        """The bytes of a file. Raises KeyError if the page has no such file."""
        size_bytes = self.sizes()[name]
        if name == DOCUMENT:
            return self._whole_document()
        found = _FILE.fullmatch(name)
        assert found
        kind, number = found[1], int(found[2])
        start = self._least(kind, number)
        match kind:
            case "style":
                return start + _filled(".r{0}{{margin:{0}px;color:#{0:06x}}}\n", size_bytes - len(start))
            case "script":
                return start + _filled("function f{0}(a){{return a*{0}+1}}\n", size_bytes - len(start))
            case "font":
                return start + bytes(size_bytes - len(start))
            case _:
                return image(size_bytes, seed=name)

    def _least(self, kind: str, number: int) -> bytes:
        """The least content of a file: all that it must have."""
        next_one = _name(kind, number + 1) if number < self.chain else ""
        if kind == "style":
            imported = f'@import "{next_one}";\n' if next_one else ""
            return f"{imported}{self._faces(number, self.styles.count)}:root{{--style-{number}:1}}\n".encode()
        if kind == "script":
            loaded = f"document.write('<script src=\"{next_one}\"><\\/script>');\n" if next_one else ""
            return f"(self.ran??=[]).push({number});\n{loaded}".encode()
        return font() if kind == "font" else image(0, seed="")

    def _faces(self, number: int, sheets: int) -> str:
        """The fonts of one of several stylesheets, and the texts that use them."""
        return "".join(
            f"@font-face{{font-family:f{each};src:url({_name('font', each)});font-display:swap}}\n"
            f".t{each}{{font-family:f{each},sans-serif}}\n"
            for each in range(number, self.fonts.count + 1, sheets)
        )  # fmt: skip

    def _document(self, head: str, tail: str, paragraphs: str = "") -> str:
        """HTML with everything that the page needs, and further paragraphs."""
        shown = [f'<p class="t{number}">A text in a font</p>\n' for number in range(1, self.fonts.count + 1)]
        images = [f'<img src="{_name("image", number)}" alt="">\n' for number in range(1, self.images.count + 1)]
        first, others = "".join(images[:1]), "".join(images[1:])
        return f"{head}{''.join(self._linked())}<h1>A page</h1>\n{first}{''.join(shown)}{paragraphs}{others}{tail}"

    def _linked(self) -> Iterator[str]:
        """The stylesheets and scripts that the document names, in the order of a usual head."""
        if self.fonts.count and not self.styles.count:
            yield f"<style>\n{self._faces(1, 1)}</style>\n"
        for number in _named(self.styles.count, self.chain):
            yield f'<link rel="stylesheet" href="{_name("style", number)}">\n'
        for number in _named(self.scripts.count, self.chain):
            how = "" if number == 1 else " defer" if number % 2 else " async"
            yield f'<script src="{_name("script", number)}"{how}></script>\n'

    def _whole_document(self) -> bytes:
        """The document in its size: filled with paragraphs of one line, and a comment."""
        room = self.html_bytes - len(self._document(_HEAD, _TAIL))
        text = _filled("<p>Line {0} of a text that fills the page.</p>\n", room, ("<!--", "-->\n")).decode()
        return self._document(_HEAD, _TAIL, text).encode()


@lru_cache(maxsize=64)
def page_of(folder: str) -> PageFiles | None:
    """The page of a folder's name; None if there is no such page."""
    found = _FOLDER.fullmatch(folder)
    if not found:
        return None
    html, *numbers, chain = map(int, found.groups())
    styles, scripts, fonts, images = (Several(*numbers[index : index + 2]) for index in range(0, len(numbers), 2))
    try:
        page = PageFiles(html, styles, scripts, fonts, images, chain)
    except ValueError:
        return None
    return page if page.folder == folder else None


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number}.{_ENDINGS[kind]}"


def _named(count: int, chain: int) -> Iterator[int]:
    """Numbers of the files that the document names: the first of a chain, and those that are not in it."""
    return (number for number in range(1, count + 1) if number == 1 or number > chain)


def _filled(line: str, room: int, comment: tuple[str, str] = ("/*", "*/\n")) -> bytes:
    """`room` bytes: numbered lines, then a comment, or blanks if there is no room for one."""
    lines, number, opening, closing = bytearray(), 1, *comment
    while len(text := line.format(number)) <= room - len(lines):
        lines += text.encode()
        number += 1
    left = room - len(lines)
    inside = left - len(opening) - len(closing)
    return bytes(lines) + (f"{opening}{'.' * inside}{closing}".encode() if inside >= 0 else b" " * left)


def image(size_bytes: int, seed: str) -> bytes:
    """A square PNG of grey noise, uncompressed, so that decoding it takes next to no time; the smallest if need be.

    Zeros that fill it up to its size follow its end, where no decoder reads.
    """
    side = 1
    while _png_bytes(side + 1) <= size_bytes:
        side += 1
    noise = random.Random(f"{seed} {size_bytes}").randbytes(side * side)
    rows = b"".join(b"\0" + noise[row * side : (row + 1) * side] for row in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    drawn = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", _stored(rows)) + _chunk(b"IEND", b"")
    return drawn + bytes(max(0, size_bytes - len(drawn)))


def _png_bytes(side: int) -> int:
    """The size of a PNG without the bytes after its end: signature, three chunks, and the stream."""
    rows = side * (side + 1)
    return 8 + (12 + 13) + (12 + 6 + rows + 5 * -(-rows // _STORED_BYTES)) + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _stored(data: bytes) -> bytes:
    """A zlib stream without compression, the same from every version of zlib (RFC 1950, RFC 1951)."""
    parts = [data[first : first + _STORED_BYTES] for first in range(0, len(data), _STORED_BYTES)]
    blocks = (struct.pack("<BHH", number == len(parts), len(part), len(part) ^ 0xFFFF) + part
              for number, part in enumerate(parts, 1))  # fmt: skip
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))


def font() -> bytes:
    """The smallest TrueType font that browsers accept: a square for every printable character of ASCII.

    Bytes after its end belong to no table. Checksums are zero: browsers do not look at them. The tables are those of
    the OpenType specification 1.9.1.
    """
    shape = struct.pack(">5h2H4B8h", 1, 0, 0, 500, 700, 3, 0, 1, 1, 1, 1, 0, 0, 500, 0, 0, 700, 0, -700)
    codes = range(0x20, 0x7F)
    mapping = struct.pack(">14H", 4, 32 + 2 * len(codes), 0, 4, 4, 1, 0, codes[-1], 0xFFFF, 0, codes[0], 0xFFFF, 0, 1)
    mapping += struct.pack(">2H", 4, 0) + struct.pack(">H", 1) * len(codes)
    tables = {
        b"OS/2": struct.pack(">HhHHH11h10s4I4sHHHhhhHH", 0, 600, 400, 5, 0, *[0] * 11, bytes(10), 1, 0, 0, 0, b"HDWD",
                             64, codes[0], codes[-1], 800, -200, 0, 800, 200),
        b"cmap": struct.pack(">HHHHI", 0, 1, 3, 1, 12) + mapping,
        b"glyf": shape,
        b"head": struct.pack(">IIIIHHQQ4hHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 0, 0, 500, 700, 0, 8,
                             2, 0, 0),
        b"hhea": struct.pack(">IhhhH11hH", 0x10000, 800, -200, 0, 600, 0, 100, 500, 1, *[0] * 7, 2),
        b"hmtx": struct.pack(">HhHh", 600, 0, 600, 0),
        b"loca": struct.pack(">3H", 0, 0, len(shape) // 2),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 1, *[0] * 8),
        b"name": struct.pack(">HHH", 0, 0, 6),
        b"post": struct.pack(">II2h5I", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }  # fmt: skip
    directory, data, start = b"", b"", 12 + 16 * len(tables)
    for tag, table in tables.items():
        directory += tag + struct.pack(">III", 0, start + len(data), len(table))
        data += table + bytes(-len(table) % 4)
    return struct.pack(">IHHHH", 0x10000, len(tables), 128, 3, 16 * len(tables) - 128) + directory + data
