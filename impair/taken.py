"""Files that an agent keeps in memory until the lab takes them, in pieces that are short enough for a line of JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PIECE_BYTES = 1 << 20
MOST_BYTES = 64 << 20  # of all files together


@dataclass(slots=True)
class Files:
    """Files by their names; its methods are operations of an agent."""

    _contents: dict[str, bytes] = field(default_factory=dict)
    _left_out: list[str] = field(default_factory=list)

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Keep these files as well, without empty ones. Those for which MOST_BYTES leaves no room are left out."""
        for name, content in files.items():
            if sum(map(len, self._contents.values())) + len(content) > MOST_BYTES:
                self._left_out.append(name)
            elif content:
                self._contents[name] = content

    def keep_folder(self, folder: Path, prefix: str = "") -> None:
        """Keep the files in a folder and the folders below it, one after the other."""
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            name = f"{prefix}{path.relative_to(folder)}"
            if path.stat().st_size > MOST_BYTES:
                self._left_out.append(name)
            else:
                self.keep({name: path.read_bytes()})

    def files(self) -> dict[str, object]:
        """The size of each file in bytes, and the names of those that were too long: {"sizes", "left_out"}."""
        return {"sizes": {name: len(content) for name, content in self._contents.items()}, "left_out": self._left_out}

    def piece(self, name: str, start: int) -> str:
        """PIECE_BYTES of a file in base64, or as many as there are."""
        return base64.b64encode(self._contents[name][start : start + PIECE_BYTES]).decode()

    def forget_files(self) -> None:
        """Drop all files."""
        self._contents, self._left_out = {}, []


FILES = Files()
OPERATIONS: dict[str, Callable[..., Any]] = {
    "files": FILES.files,
    "piece": FILES.piece,
    "forget_files": FILES.forget_files,
}
