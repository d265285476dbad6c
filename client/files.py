"""The fetch of several files, each once, over a browser's number of connections, with libcurl.

`python3 -m client.files PROTOCOL CONNECTIONS ORIGIN PATH...` prints lines of JSON: {"began_at": s since the epoch}, one
for each transfer that ended, and {"sha256": [...]}. Bodies are kept, and hashed after the last one or
when the program is stopped: hashing takes CPU time.
"""

from __future__ import annotations

import hashlib
import json
import math
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client.curl import HTTP_VERSION, Libcurl, fetch_all

FAILED = -1  # the status of a transfer that ended with an error, as in h2load's log


@dataclass(frozen=True, slots=True)
class Fetch(Libcurl):
    """Files of one host by their paths, over at most `connections` connections; `settings` do not apply to libcurl."""

    protocol: str
    host: str
    port: int
    paths: list[str]
    connections: int
    settings: str = "unlimited"

    def __post_init__(self) -> None:
        if self.protocol not in HTTP_VERSION:
            raise ValueError(f"protocol {self.protocol!r} is not one of {', '.join(HTTP_VERSION)}")
        if not self.paths or self.connections < 1:
            raise ValueError("at least one path and one connection are needed")

    def command(self) -> list[str]:
        """The command line that runs this file as a program."""
        origin = f"https://{self.host}:{self.port}"
        return ["python3", "-m", "client.files", self.protocol, str(self.connections), origin, *self.paths]

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """The program's output in the form of h2load's (client/h2load.py), and "objects": one for each path, or None.

        An object has "status", "bytes", "sha256" and "error". Times count from before the first connection was opened,
        which "began_s" is from the start of the program.
        """
        return interpret((directory / "stdout").read_text(), len(self.paths), started_at)


@dataclass(slots=True)
class Report:
    """The program's output as far as it came; `rows` are transfers, in the order in which they ended."""

    began_at: float | None = None
    sha256: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> Report:
        """Read whole lines; the last one of a program that was killed may be cut off."""
        found = cls()
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            message = json.loads(line)
            if "index" in message:
                found.rows.append(message)
            found.began_at = message.get("began_at", found.began_at)
            found.sha256 = message.get("sha256", found.sha256)
        return found


def interpret(text: str, count: int, started_at: float) -> dict[str, Any]:
    """The answer for `count` files, from the program's standard output."""
    report = Report.read(text)
    objects: list[dict[str, Any] | None] = [None] * count
    for row in report.rows:
        digest = report.sha256[row["index"]] if report.sha256 else ""
        objects[row["index"]] = {**{name: row[name] for name in ("status", "bytes", "error")}, "sha256": digest}
    succeeded = [row for row in report.rows if _is_right(row)]
    spoken = {row["alpn"] for row in report.rows if row["alpn"]}  # a transfer that failed before its answer has none
    return {
        "negotiated": {"alpn": spoken.pop() if len(spoken) == 1 else ", ".join(sorted(map(str, spoken))) or None},
        "metrics": metrics(report.rows, count) if len(report.rows) == count else {},
        "totals": {
            "requests": count, "done": len(report.rows), "succeeded": len(succeeded),
            "abandoned": count - len(report.rows),
        },
        "reconciled": True, "discrepancies": [], "objects": objects,
        "samples": samples(report.rows),
        **({"began_s": round(report.began_at - started_at, 6)} if report.began_at else {}),
    }  # fmt: skip


def _is_right(row: Mapping[str, Any]) -> bool:
    return row["status"] == 200 and not row["error"]


def metrics(rows: Sequence[Mapping[str, Any]], count: int) -> dict[str, float]:
    """The metrics once all transfers have ended, named and defined as those of h2load."""
    succeeded = [row for row in rows if _is_right(row)]
    total_s, body_bytes = max(row["done_s"] for row in rows), sum(row["bytes"] for row in rows)
    took = sorted(row["done_s"] - row["start_s"] for row in rows if not row["error"])
    connects = [row["handshake_s"] for row in rows if row["handshake_s"]]
    found: dict[str, float] = {
        "requests_succeeded": len(succeeded), "requests_failed": count - len(succeeded), "bytes_body": body_bytes,
        "bytes_total": body_bytes + sum(row["header_bytes"] for row in rows),
    }  # fmt: skip
    if took:  # else the time is that of giving up
        found |= {"total_s": total_s, "requests_per_s": len(succeeded) / total_s}
        found["goodput_bps"] = body_bytes * 8 / total_s
    if len(succeeded) == count:
        found["mean_done_s"] = round(statistics.fmean(row["done_s"] for row in succeeded), 6)
    for name, values in (("request_p50_s", took), ("ttfb_p50_s", first_bytes(rows)), ("connect_p50_s", connects)):
        if values:
            found[name] = round(statistics.median(values), 6)
    for name, share in (("request_p95_s", 0.95), ("request_p99_s", 0.99)):
        if took:
            found[name] = round(took[min(len(took) - 1, math.floor(share * len(took)))], 6)
    return found


def first_bytes(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """The time from the opening of each connection to its first byte, sorted: that of the transfer that opened it."""
    opening = (row for row in rows if row["handshake_s"] and not row["error"])
    return sorted(round(row["first_byte_s"] - row["opened_s"], 6) for row in opening)


def samples(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Columns with one entry for each transfer that ended, in that order; connect_s and ttfb_s for each connection."""
    return {
        "request_start_s": [round(row["start_s"], 6) for row in rows],
        "request_took_s": [round(max(0.0, row["done_s"] - row["start_s"]), 6) for row in rows],
        "request_status": [FAILED if row["error"] else row["status"] for row in rows],
        "connect_s": sorted(round(row["handshake_s"], 6) for row in rows if row["handshake_s"]),
        "ttfb_s": first_bytes(rows),
    }


def main(protocol: str, connections: str, origin: str, *paths: str) -> None:
    """Fetch all paths, and print what came of each."""
    bodies: list[list[bytes]] = [[] for _ in paths]

    def begin() -> None:
        _say({"began_at": time.time()})

    def take(index: int, transfer: Mapping[str, Any]) -> None:
        _say({"index": index, **transfer})

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    receive = [body.append for body in bodies]
    try:
        fetch_all(protocol, [f"{origin}{path}" for path in paths], int(connections), begin, take, receive)
    finally:
        _say({"sha256": [hashlib.sha256(b"".join(body)).hexdigest() for body in bodies]})


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
