"""Limits for run folders of another person: opening one must be safe, whatever is in it.

Links and devices would make the lab read or write elsewhere, and sizes that no run has would fill the memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
MOST_ENTRIES = 100_000  # files and folders; an evidence folder with a film has up to a thousand
MOST_FILM_BYTES = 256 * MIB  # pictures of all films together: the page embeds them
MOST_JOURNAL_BYTES = 4096 * MIB  # 10,000 trials of 1,000 requests take a tenth
MOST_BYTES = {  # files that are read as a whole, by name
    "matrix.yaml": MIB, "matrix.json": 32 * MIB, "environment.json": 32 * MIB, "trial.json": MIB,
    "journal.sqlite": MOST_JOURNAL_BYTES, "journal.sqlite-wal": MOST_JOURNAL_BYTES,
}  # fmt: skip
ROLLBACK = "journal.sqlite-journal"  # SQLite deletes the file that is named at its end, wherever that is
MOST_ATTEMPTS = 200_000  # a matrix has at most 10,000 trials
MOST_RECORD_BYTES = 1024 * MIB  # of all attempts together: most of them stay in memory
MOST_SAMPLE_BYTES = 16_384 * MIB  # of all attempts together, unpacked: they are read one by one
MOST_VALUE_BYTES = 64 * MIB  # of one text or blob
MOST_COLUMNS, MOST_CELLS = 2_000, 20_000_000  # of a table; 10,000 attempts with 200 columns have a tenth


@dataclass(slots=True)
class Allowance:
    """The bytes that may still be read of a journal: its rows may share pages, and samples are packed."""

    record_bytes: int = MOST_RECORD_BYTES
    sample_bytes: int = MOST_SAMPLE_BYTES

    def take(self, record: str | bytes) -> None:
        """Count a record. Raises ValueError if that is too much."""
        self.record_bytes -= len(record)
        if self.record_bytes < 0:
            raise ValueError(f"the records of all attempts have more than {MOST_RECORD_BYTES // MIB:,} MiB")

    def take_samples(self, text: bytes) -> None:
        """Count unpacked samples. Raises ValueError if that is too much."""
        self.sample_bytes -= len(text)
        if self.sample_bytes < 0:
            raise ValueError(f"the samples of all attempts have more than {MOST_SAMPLE_BYTES // MIB:,} MiB")


def oddity(folder: Path) -> str:
    """The first thing in a run folder that no lab writes, with its place; empty if there is none. Raises OSError."""
    film_bytes = 0
    for count, entry in enumerate(_entries(folder), 1):
        place = os.path.relpath(entry.path, folder)
        if count > MOST_ENTRIES:
            return f"has more than {MOST_ENTRIES:,} files"
        if entry.is_symlink():
            return f"{place} is a symbolic link"
        if entry.is_dir(follow_symlinks=False):
            continue
        if not entry.is_file(follow_symlinks=False):
            return f"{place} is neither a file nor a folder"
        if place == ROLLBACK:
            return f"{place} belongs to another kind of journal"
        size = _size(entry) if entry.name in MOST_BYTES or entry.name.endswith(".jpg") else 0
        film_bytes += size if entry.name.endswith(".jpg") else 0
        if size > MOST_BYTES.get(entry.name, size) or film_bytes > MOST_FILM_BYTES:
            return f"{place} is too large ({size / MIB:,.0f} MiB)"
    return ""


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything in a folder and in the folders in it; no link is followed."""
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(FileNotFoundError):  # a lab that runs removes its log
        return entry.stat(follow_symlinks=False).st_size
    return 0
