"""The fetch of one object several times at once with libcurl, with the time at which each piece of each body came.

`python3 -m client.streams PROTOCOL CONNECTIONS ORIGIN PATH STREAMS [reconnect]` prints lines of JSON like
client/files.py, and {"arrivals": [...]}: of each stream, in its order, [ms since before the first connection, bytes],
one for each ms with any. Over HTTP/2 and HTTP/3 the bodies are streams of one connection. With `reconnect` it requests
what is missing of a body over a new connection, if its connection breaks.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from client.curl import HTTP_VERSION, Libcurl, fetch_all
from client.files import Report, interpret

Arrivals = list[list[list[int]]]
MOST_RECONNECTS = 20
FIRST = ("start_s", "first_byte_s", "opened_s")
PARTIAL = 206  # the status of a part (RFC 9110, section 15.3.7)


@dataclass(frozen=True, slots=True)
class Fetch(Libcurl):
    """An object several times at once, over at most `connections` connections; `settings` do not apply to libcurl."""

    protocol: str
    host: str
    port: int
    path: str
    streams: int
    connections: int
    reconnect: bool = False
    settings: str = "unlimited"

    def __post_init__(self) -> None:
        if self.protocol not in HTTP_VERSION:
            raise ValueError(f"protocol {self.protocol!r} is not one of {', '.join(HTTP_VERSION)}")
        if self.streams < 1 or self.connections < 1:
            raise ValueError("at least one stream and one connection are needed")

    def command(self) -> list[str]:
        """The command line that runs this file as a program."""
        origin = f"https://{self.host}:{self.port}"
        return [
            "python3", "-m", "client.streams", self.protocol, str(self.connections), origin, self.path,
            str(self.streams), *(["reconnect"] if self.reconnect else []),
        ]  # fmt: skip

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """The program's output in the form of h2load's (client/h2load.py), and "arrivals" of each stream."""
        text = (directory / "stdout").read_text()
        arrivals = arrivals_in(text)
        found = interpret(text, self.streams, started_at)
        found["samples"] |= columns(Report.read(text).rows, self.path)
        gap_s = payload_gap_s(arrivals)
        if found["metrics"] and gap_s is not None:
            found["metrics"]["payload_gap_max_s"] = gap_s
        if found["metrics"]:
            found["metrics"]["reconnects"] = sum(reconnects_in(text))
        return {**found, "arrivals": arrivals}


def columns(rows: Sequence[Mapping[str, Any]], path: str) -> dict[str, list[Any]]:
    """Further columns of the samples, in their order: what a waterfall shows of each transfer."""
    return {
        "request_sent_s": [round(row["start_s"], 6) for row in rows],
        "request_first_byte_s": [round(row["first_byte_s"], 6) for row in rows],
        "request_connect_start_s": [round(row["opened_s"] or 0.0, 6) for row in rows],
        "request_connect_s": [round(row["handshake_s"] or 0.0, 6) for row in rows],
        "request_protocol": [row["alpn"] or "" for row in rows],
        "request_bytes": [row["bytes"] for row in rows],
        "request_path": [f"{path} ({row['index'] + 1})" for row in rows],
    }


def arrivals_in(text: str) -> Arrivals:
    """The arrivals in the program's output; empty if it did not come so far."""
    for line in text.splitlines(keepends=True):
        if line.endswith("\n") and "arrivals" in (message := json.loads(line)):
            found: Arrivals = message["arrivals"]
            return found
    return []


def reconnects_in(text: str) -> Iterator[int]:
    """The number of connections that each transfer opened in place of broken ones."""
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line).get("reconnects", 0)


def payload_gap_s(arrivals: Arrivals) -> float | None:
    """The longest time between two pieces of payload, of whatever stream, in s; None without two."""
    moments = sorted({moment for stream in arrivals for moment, _ in stream})
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    return max(gaps) / 1000 if gaps else None


def _noting(counts: Counter[int], begun: Sequence[float]) -> Callable[[bytes], object]:
    """A function that adds the pieces of a body to the bytes by ms since the beginning."""

    def receive(piece: bytes) -> None:
        counts[int((time.perf_counter() - begun[0]) * 1000)] += len(piece)

    return receive


class Downloads:
    """The bodies of one object, each as far as it came, and the transfers that their connections broke."""

    def __init__(self, streams: int) -> None:
        self.counts = [Counter[int]() for _ in range(streams)]
        self.begun: list[float] = []  # of each round of transfers
        self.broken: dict[int, dict[str, Any]] = {}  # what is known of transfers that are to go on, by stream
        self._earlier: dict[int, dict[str, Any]] = {}

    def fetch(self, protocol: str, url: str, connections: int) -> None:
        """Fetch what is missing: all, or the rest of what is `broken`."""
        streams = [*self.broken] or [*range(len(self.counts))]
        self._earlier, self.broken = self.broken, {}
        fetch_all(
            protocol, [url] * len(streams), connections, self._begin,
            lambda place, transfer: self._take(streams[place], transfer),
            [_noting(self.counts[stream], self.begun) for stream in streams],
            [self.counts[stream].total() for stream in streams],
        )  # fmt: skip

    def report(self) -> None:
        """Print what is known of transfers that do not go on."""
        for stream, transfer in self.broken.items():
            _say({"index": stream, **transfer})

    def _begin(self) -> None:
        self.begun.append(time.perf_counter())
        if len(self.begun) == 1:
            _say({"began_at": time.time()})

    def _take(self, stream: int, transfer: Mapping[str, Any]) -> None:
        """Print a transfer that is whole, as one with its earlier connections; keep one that broke.

        Its request and first byte, and their connection, are the first that brought one.
        """
        earlier, later_s = self._earlier.get(stream), self.begun[-1] - self.begun[0]
        found = {**transfer, "bytes": self.counts[stream].total()}
        found |= {name: transfer[name] + later_s for name in (*FIRST, "done_s") if transfer[name]}
        if earlier:
            found |= {name: earlier[name] for name in (*FIRST, "handshake_s") if earlier["first_byte_s"]}
            is_opener = bool(transfer["handshake_s"])  # others share its connection
            found["reconnects"] = earlier.get("reconnects", 0) + is_opener
            found["status"] = 200 if transfer["status"] == PARTIAL else transfer["status"]
        if found["error"]:
            self.broken[stream] = found
        else:
            _say({"index": stream, **found})


def main(protocol: str, connections: str, origin: str, path: str, streams: str, reconnect: str = "") -> None:
    """Fetch the object, and print what came of each stream, and when."""
    downloads = Downloads(int(streams))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for _ in range(1 + (MOST_RECONNECTS if reconnect else 0)):
            downloads.fetch(protocol, f"{origin}{path}", int(connections))
            if not downloads.broken:
                break
        downloads.report()
    finally:
        _say({"arrivals": [sorted(each.items()) for each in downloads.counts]})


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
