"""Reads a matrix file as text, and converts positions in it to lines and columns."""

from __future__ import annotations

import codecs
import re
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from headwind.matrix.complaint import MatrixError
from headwind.matrix.nowhere import LIVE, is_live
from headwind.matrix.spelling import nearest
from headwind.matrix.units import harmless

LARGEST_BYTES = 128 * 1024  # a thousand conditions with comments; PyYAML reads a quarter of a megabyte in a second

_COMMENT = re.compile(r"(?:^|\s)#")

Place = tuple[int, int]  # line and column, from 0


@dataclass(slots=True)
class Hidden:
    """A text without characters that look like a space or like nothing; `odd` has the first of each line."""

    text: str
    odd: dict[Place, str] = field(default_factory=dict)
    removed: dict[int, list[int]] = field(default_factory=dict)  # by line: columns of characters without width

    @classmethod
    def of(cls, text: str) -> Hidden:
        """Replace other blanks by spaces, and remove characters without width; comments may have any."""
        if text.isascii():
            return cls(text)
        found, written = cls(""), []
        for number, part in enumerate(re.split("(\r\n|[\r\n\x85\u2028\u2029])", text)):
            written.append(part if number % 2 else found._cleaned(number // 2, part))
        found.text = "".join(written)
        return found

    def _cleaned(self, number: int, line: str) -> str:
        comment = _COMMENT.search(line)
        cleaned = ""
        for column, letter in enumerate(line):
            kind = "" if comment and column >= comment.start() else unicodedata.category(letter)
            is_blank = kind == "Zs" and letter != " "
            if (is_blank or kind == "Cf") and all(line_ != number for line_, _ in self.odd):
                self.odd[number, column] = letter
            if kind == "Cf":
                self.removed.setdefault(number, []).append(column)
            else:
                cleaned += " " if is_blank else letter
        return cleaned

    def place(self, place: Place) -> Place:
        """Place in the original text."""
        line, column = place
        for at in self.removed.get(line, ()):
            column += at <= column
        return line, column


def read_text(path: Path, file: str) -> str:
    """Text of a file. Raises MatrixError if it cannot be a matrix; `file` is its name as printed."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise MatrixError(f"{file} is {kind}; a matrix is a YAML file, such as the matrix.yaml of this repository")
        if status.st_size > LARGEST_BYTES:
            raise MatrixError(f"{file} has {status.st_size} bytes; a matrix has at most {LARGEST_BYTES}")
        data = path.read_bytes()
    except FileNotFoundError:
        hint = f"; {LIVE}" if is_live(str(path)) else _neighbour(path)
        raise MatrixError(f"{file}: there is no such file{hint}") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise MatrixError(f"{file} cannot be read: {reason}") from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise MatrixError(f"{file} is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise MatrixError(f"{file} is a binary file; a matrix is YAML in UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line, column = place_behind(data[: error.start].decode())
        where = f"{file}:{line + 1}:{column + 1}"
        raise MatrixError(f"{where}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def _neighbour(path: Path) -> str:
    try:
        matrices = {each.stem: each for each in path.parent.glob("*.y*ml") if each.is_file() and _is_matrix(each)}
    except (OSError, ValueError):
        return ""
    near = nearest(path.stem, list(matrices))
    return f"; did you mean {harmless(matrices[near])}?" if near else ""


def _is_matrix(path: Path) -> bool:
    with path.open("rb") as file:
        return re.search(rb"^profiles:", file.read(LARGEST_BYTES), re.MULTILINE) is not None


def lines_of(text: str) -> list[str]:
    """Lines as PyYAML counts them."""
    return re.split("\r\n|[\r\n\x85\u2028\u2029]", text)


def place_behind(before: str) -> Place:
    """Line and column of the end of a text."""
    lines = lines_of(before)
    return len(lines) - 1, len(lines[-1])
