"""The workload kind `album`: pages with pictures, leafed through one after another.

A kind as the recipe in CONTRIBUTING.md asks for it, which is no part of the lab: tests/workloads/album_client.py
carries it out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from headwind.matrix.keys import key
from headwind.matrix.values import whole
from headwind.matrix.workload import WorkloadKeys
from headwind.metric import Better, Metric, Rate, Use, Workload

PACE = Metric("pages_per_s", "pages per second", "pages/s", "per_s", Better.MORE, Use.JUDGED)
MISSES = Metric("misses", "missing pictures", "missing", use=Use.JUDGED)
SIZE = Metric("picture_bytes", "bytes of pictures", "picture bytes", better=Better.MORE, use=Use.COMPARED)


@dataclass(frozen=True, slots=True)
class Album(Workload):
    """So many pages of an album."""

    kind: ClassVar[str] = "album"
    program: ClassVar[str] = "album"
    metrics: ClassVar[tuple[Metric, ...]] = (PACE, MISSES, SIZE)
    rates: ClassVar[tuple[Rate, ...]] = ()

    pages: int

    def asked(self) -> dict[str, Any]:
        return {"pages": self.pages}

    def object_path(self) -> str:
        return "/"

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        return "" if answer["metrics"]["picture_bytes"] == answer["pages"] * object_bytes else "another size"

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        return "" if answer["pages"] >= self.pages else "pages are missing"

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("nonsense", ""))

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        return {"leaves_s": answer["leaves_s"]} if "leaves_s" in answer else {}

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        return {"pages_high_per_s": answer["pages"] / timeout_s}

    def size(self) -> float:
        return self.pages

    def at_once(self) -> tuple[int, int]:
        return 1, 1

    def processors(self) -> int:
        return 1

    def sentence(self, protocols: Collection[str]) -> str:
        del protocols
        return f"{self.pages} pages of an album."

    @classmethod
    def method(cls) -> str:
        return "Albums were leafed through."

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        del protocols
        return f"{len(metrics)} albums of {self.pages} pages"

    def brief(self) -> str:
        return f"{self.pages} pages"

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        return f"{len(metrics)} albums begun"

    def line(self, metrics: Mapping[str, float]) -> str:
        return f"{metrics.get('pages_per_s', 0)} pages/s"


class AlbumKeys(WorkloadKeys):
    """Pages with pictures."""

    model: ClassVar[type[Workload]] = Album

    kind: Literal["album"] = key("the kind of the workload")
    pages: Annotated[int, whole(1, 100)] = key("that are leafed through")

    def to_model(self, name: str) -> Album:
        return Album(name, self.pages)
