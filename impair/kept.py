"""Kernel files that are read again and again: each is opened once, and then read from its beginning.

Opening and closing a file of /proc takes longer than reading it. Only for files whose path means the same file for as
long as the process lives.
"""

from __future__ import annotations

import os
from functools import cache

CHUNK_BYTES = 1 << 16


@cache
def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def read(path: str) -> str:
    """The current text of a file that the kernel gives in one piece, such as a value or a table.

    Raises OSError if it cannot be opened or read.
    """
    return os.pread(_opened(path), CHUNK_BYTES, 0).decode()


def read_new(path: str) -> str:
    """The text of a file that differs each time, such as that of a process. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, CHUNK_BYTES).decode()
    finally:
        os.close(file)


def read_list(path: str) -> str:
    """The current text of a file that the kernel gives one page of entries at a time. Raises as `read` does."""
    file, data = _opened(path), b""
    while chunk := os.pread(file, CHUNK_BYTES, len(data)):
        data += chunk
    return data.decode()
