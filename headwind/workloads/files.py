"""The workload kind `objects` with `paths`: files of the user's site, each once, fetched as a browser does.

client/files.py carries it out with libcurl: h2load gives every connection the same list, and discards bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, raise_any
from headwind.matrix.units import Mistake, quoted
from headwind.matrix.workload import DelayedKeys
from headwind.metric import Workload
from headwind.workloads.h2load import TOTAL
from headwind.workloads.objects import AS_BROWSERS, Objects
from servers.objects import after

MOST_PATHS = 256  # they are arguments of a command
_EACH = "each file of the list is fetched once, with its own size"


@dataclass(frozen=True, slots=True)
class Files(Objects):
    """Workload of `requests` different files, each fetched once, all requested as soon as connections allow."""

    kind: ClassVar[str] = "files"
    written: ClassVar[str] = "`kind: objects` with `paths`"
    program: ClassVar[str] = "files"
    has_client_windows: ClassVar[bool] = False  # those windows are libcurl's

    paths: tuple[str, ...] = field(default=(), kw_only=True)  # as the matrix has them

    def asked(self) -> dict[str, Any]:
        """The request as client/files.py takes it."""
        urls = [after(self.server_delay_s, file.url) for file in self.files]
        return {"paths": urls, "connections": self.connections}

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Difference of a delivered file from the user's, by size and hash; empty if there is none."""
        del object_bytes
        for got, file in zip(answer.get("objects") or (), self.files, strict=False):
            is_whole = got and got["status"] == 200 and not got["error"]
            if is_whole and (got["bytes"], got["sha256"]) != (file.bytes, file.sha256):
                return f"{file.path} had other content: {got['bytes']} bytes instead of {file.bytes}, or other ones"
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """Bounds as those of h2load, and of the total time: times begin a moment after the program's start."""
        had_s = timeout_s - answer.get("began_s", 0.0)
        return {TOTAL.low_key: had_s, **super(Files, self).bounds(answer, had_s)}

    def least(self) -> tuple[int, int]:
        """Rounds of the busiest connection, and bytes of all files."""
        rounds, _ = super(Files, self).least()
        return rounds, sum(file.bytes for file in self.files)

    def processors(self) -> int:
        """CPUs that the client can use."""
        return 1

    @classmethod
    def method(cls) -> str:
        """Definition of its times, and the differences from a browser."""
        return (
            "The files of the content are fetched by libcurl. The total time is from before the first connection is "
            "opened to the last byte of the last file. Over HTTP/1.1 each connection that becomes free takes the next "
            "file of the list, and over HTTP/2 and HTTP/3 all are requested at once. The size and the hash of each "
            "file are checked in each trial, after its end. Nothing is parsed, and no file waits for another one. The "
            "servers compress nothing."
        )

    def _brief(self, protocols: Collection[str]) -> str:
        return f"{self._content()} over {self._over(protocols)}"

    def _content(self) -> str:
        sizes = [file.bytes for file in self.files] or [0]
        files = f"{counted(self.requests, 'file')} of the content"
        if len(sizes) == 1:
            return f"{files} ({counted(sizes[0], 'byte')})"
        each = f"{min(sizes):,} to {max(sizes):,}" if min(sizes) < max(sizes) else f"{max(sizes):,}"
        return f"{files} ({each} bytes each, {counted(sum(sizes), 'byte')} in total)"

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description: `20 files of the content (300 to 200,000 bytes each, ...) over ...; not a page load`."""
        del metrics
        return f"{self._brief(protocols)}; not a page load"


class FilesKeys(DelayedKeys):
    """Files of your site, fetched as a browser does: all at once, over few connections."""

    model: ClassVar[type[Workload]] = Files
    mark: ClassVar[str] = "paths"
    same_for_all: ClassVar[frozenset[str]] = DelayedKeys.same_for_all | {"paths"}
    needs_content: ClassVar[bool] = True

    kind: Literal["objects"] = key("the kind of the workload")
    paths: list[values.PagePath] = key(
        f"files of `content`, each fetched once; at most {MOST_PATHS}", minItems=1, maxItems=MOST_PATHS
    )

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, written: Any) -> Any:
        """Check that nothing is written next to the list that contradicts it. Raises Slips."""
        names = ("requests", "size", "path", "connections") if isinstance(written, dict) else ()
        hints = {"connections": "those of browsers are used: 6 for h1, 1 for h2 and h3"}
        raise_any([
            Slip((name,), Mistake(f"{quoted(name)} does not go with `paths`", f"remove it: {hints.get(name, _EACH)}"),
                 at_key=True)
            for name in names if name in written
        ])  # fmt: skip
        return written

    @field_validator("paths")
    @classmethod
    def _different(cls, paths: list[str]) -> list[str]:
        if not 1 <= len(paths) <= MOST_PATHS:
            raise Mistake(f"`paths` has {len(paths)} entries", f"1 to {MOST_PATHS}")
        raise_any([
            Slip((index,), Mistake(f"{quoted(path)} appears twice", "each file is fetched once"))
            for index, path in enumerate(paths) if path in paths[:index]
        ])  # fmt: skip
        return paths

    def paths_used(self) -> dict[tuple[str | int, ...], str]:
        """The paths."""
        return {("paths", index): path for index, path in enumerate(self.paths)}

    def to_model(self, name: str) -> Files:
        """Convert the keys to the workload of this name, still without its files."""
        return Files(name, len(self.paths), AS_BROWSERS, AS_BROWSERS, path=self.paths[0], paths=tuple(self.paths))
