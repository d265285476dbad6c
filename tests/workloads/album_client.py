"""The program `leaf` in and out, which the kind `album` runs. There is no such program: a test prints for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Fetch:
    """So many pages over one protocol."""

    protocol: str
    host: str
    port: int
    pages: int
    settings: str = "unlimited"

    def command(self) -> list[str]:
        return ["leaf", f"--{self.protocol}", f"--pages={self.pages}", f"https://{self.host}:{self.port}/"]

    def logs(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        del folder
        return [], {}

    def windows(self) -> dict[str, int]:
        return {}

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        del started_at
        alpn, pages, missing, size_bytes, took_s = (directory / "stdout").read_text().split()
        return {
            "negotiated": {"alpn": alpn},
            "pages": int(pages),
            "metrics": {
                "pages_per_s": int(pages) / float(took_s), "misses": int(missing), "picture_bytes": int(size_bytes),
            },
        }  # fmt: skip
