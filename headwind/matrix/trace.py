"""The key `trace` of a direction in matrix.yaml: the file of a rate trace, in mahimahi's format, is read as a Trace."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from headwind.matrix.content import FOLDER, where_looked
from headwind.matrix.units import Mistake, harmless, quoted, scalar
from impair.trace import STEP_S, Trace

STEP_MS = round(STEP_S * 1000)
MOST_BYTES = 16 << 20
LONGEST_MS = 1_800_000
SHORTEST_MS = 1000  # a shorter trace is repeated up to this length: its steps would be too short
FORMAT = (
    "each line is one time in ms, such as `137`: then a packet of 1500 bytes can pass; docs/matrix.md, Rate traces, "
    "turns a recorded throughput into such lines"
)
_LINE = re.compile(rb"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class TraceFile:
    """Annotates the type of `trace`: a file by its path, relative to the matrix file."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: (
                value if isinstance(value, Trace) else _read(value, (info.context or {}).get(FOLDER, "."))
            )
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "examples": ["traces/train.trace"]}


def _read(value: Any, home: str | Path) -> Trace:
    text = scalar(value, "`traces/train.trace`")
    path = Path(home) / text.replace("\0", "")
    try:
        if not text or "\0" in text or not path.is_file():
            raise Mistake(f"there is no file {quoted(text)}", where_looked(path, text, Path.is_file))
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:  # such as a name that is too long
        raise Mistake(
            f"cannot read {quoted(text)}: {error.strerror}", "a trace is a text file of this machine"
        ) from None
    return parsed(data, text)


@lru_cache(maxsize=4)  # a matrix is parsed several times, for its hints
def parsed(data: bytes, name: str) -> Trace:
    """The trace in the content of a file with a name. Raises Mistake, with line and column in the file."""
    if len(data) > MOST_BYTES:
        raise Mistake(
            f"{quoted(name)} has more than {MOST_BYTES >> 20} MB", "a shorter part of it is enough: it repeats"
        )
    times_ms = _times(data.removesuffix(b"\n"), name)
    length_ms = times_ms[-1]
    if length_ms == 0:
        raise Mistake(f"{harmless(name)}:{len(times_ms)}:1: the trace ends at 0 ms", "its last time is its length")
    if length_ms > LONGEST_MS:
        number = next(number for number, at_ms in enumerate(times_ms, 1) if at_ms > LONGEST_MS)
        minutes = f"after {LONGEST_MS // 60_000} minutes"
        raise Mistake(f"{harmless(name)}:{number}:1: {minutes} the trace is too long", "cut it here: it repeats")
    copies = -(-SHORTEST_MS // length_ms)
    steps = max(1, copies * length_ms // STEP_MS)
    frames = [0] * steps
    for copy in range(copies):
        for at_ms in times_ms:
            frames[min(steps - 1, (copy * length_ms + at_ms) * steps // (copies * length_ms))] += 1
    return Trace(Path(name).name, hashlib.sha256(data).hexdigest(), copies * length_ms / 1000, tuple(frames))


def _times(data: bytes, name: str) -> list[int]:
    """The times in ms of all lines, none before the line above it. Raises Mistake."""
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    for number, line in enumerate(lines, 1):
        if not _LINE.fullmatch(line):
            start = _LINE.match(line)
            column = start.end() + 1 if start else 1
            shown = quoted(line[:20].decode(errors="replace")) if line else "an empty line"
            raise Mistake(f"{harmless(name)}:{number}:{column}: {shown} is not a time in ms", FORMAT)
    times_ms = [*map(int, lines)]
    for number, (before, after) in enumerate(pairwise(times_ms), 2):
        if after < before:
            message = f"{harmless(name)}:{number}:1: {after} ms is before {before} ms of the line above"
            raise Mistake(message, "the times of a trace never go back")
    return times_ms
