"""nghttp: fetches a page of one picture over HTTP/2, and accepts or refuses that the server pushes the picture.

It parses the page, and requests the picture unless it was announced by a push. When it ends, it writes sizes and
durations into a HAR file, to the microsecond, and the times of requests to `stdout`, above 1 s in steps of 10 ms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HAR = "page.har"
PUSHED = "Pushed Object"  # the comment of an entry of the HAR file
UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
# A line of its statistics, sorted by the end: stream, responseEnd, `*` if pushed, requestStart, process, code, ...
_LINE = re.compile(
    r"^ *\d+ +\+[\d.]+(?:us|ms|s) +\*? *\+([\d.]+)(us|ms|s) +[\d.]+(?:us|ms|s) +\d+ +\S+ (\S+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Fetch:
    """A page and the picture in it, over a new connection that accepts pushes if `pushed`."""

    protocol: str
    host: str
    port: int
    path: str
    pushed: bool
    settings: str = "unlimited"  # the program's windows are 1 GB, and are not set

    def __post_init__(self) -> None:
        if self.protocol != "h2":
            raise ValueError(f"nghttp has no {self.protocol}")

    def command(self) -> list[str]:
        """The command line."""
        refused = [] if self.pushed else ["--no-push"]
        url = f"https://{self.host}:{self.port}{self.path}"
        return ["nghttp", "--get-assets", "--null-out", "--stat", f"--har={HAR}", "--no-verify-peer", *refused, url]

    def logs(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """No option and no variable: nghttp has no QUIC."""
        del folder
        return [], {}

    def windows(self) -> dict[str, int]:
        """Empty: nghttp does not report its windows."""
        return {}

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """Return what was negotiated, the metrics, and the objects; they are empty if it was killed.

        nghttp ends with an error if another protocol than HTTP/2 was negotiated.
        """
        del started_at
        har = directory / HAR
        entries = json.loads(har.read_text())["log"]["entries"] if har.exists() else []
        return interpret(entries, (directory / "stdout").read_text())


def interpret(entries: Sequence[Mapping[str, Any]], statistics: str) -> dict[str, Any]:
    """The answer from the entries of the HAR file and the text of the statistics; times in seconds."""
    objects = [
        {
            "path": re.sub(r"^https://[^/]*", "", entry["request"]["url"]), "status": entry["response"]["status"],
            "bytes": entry["response"]["content"]["size"], "pushed": entry["comment"] == PUSHED,
        }
        for entry in entries
    ]  # fmt: skip
    started_s = {path: float(start) * UNITS_S[unit] for start, unit, path in _LINE.findall(statistics)}
    metrics = {}
    if len(objects) == 2 and all(each["path"] in started_s for each in objects):
        connected_s = _sum_s(entries[0], "dns", "connect")
        took_s = [_sum_s(entry, "wait", "receive") for entry in entries]
        ends_s = [started_s[each["path"]] + own_s for each, own_s in zip(objects, took_s, strict=True)]
        metrics = {
            "total_s": connected_s + max(ends_s), "object_s": took_s[1],
            "handshake_s": connected_s, "bytes_body": sum(each["bytes"] for each in objects),
            "pushed": sum(each["pushed"] for each in objects),
        }  # fmt: skip
    return {
        "negotiated": {"alpn": "h2" if objects else None},
        "metrics": {name: round(value, 6) for name, value in metrics.items()},
        "objects": objects,
    }


def _sum_s(entry: Mapping[str, Any], *names: str) -> float:
    """Some phases of an entry of the HAR file, in s."""
    return float(sum(entry["timings"][name] for name in names) / 1000)
