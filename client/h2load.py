"""Input and output of h2load: the command line of one workload, and its three outputs. Starts no process.

h2load 1.70 reports the same run in three ways, which are compared with each other:
- standard output: what was negotiated, once, by the first connection of the first thread;
- `--output-file`: totals, and samples sorted by size (successful requests only; connections);
- `--log-file`: one line per finished request as it finishes, written at once, so that it outlives a kill: start in
  microseconds since the epoch, status (-1: the stream failed), duration in microseconds. Requests that were lost with
  their connection are in no line of it and in no sample.

It gives up a QUIC connection that has received nothing for 30 s (its max_idle_timeout, not an option); TCP waits
longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
PROGRAMS = {"unlimited": "h2load", "as-shipped": "h2load-as-shipped"}  # by setting; the first has h2load.patch
WINDOW_BITS = {"h2": 30, "h3": 24}  # of a stream: h2load's defaults, stated explicitly
CONNECTION_WINDOW_BITS = 30
FAILED_STREAM = -1  # h2load's status of a request whose stream was closed with an error

_SECONDS = {"connect_s": "connect", "ttfb_s": "ttfb", "min_rtt_s": "min_rtt", "smoothed_rtt_s": "smoothed_rtt"}
_COUNTS = {"packets_sent": "packets_sent", "packets_received": "packets_recv", "packets_lost": "packets_lost"}
_STATISTICS = {
    "request_p50_s": ("request", "median"), "request_p95_s": ("request", "p95"), "request_p99_s": ("request", "p99"),
    "ttfb_p50_s": ("ttfb", "median"), "connect_p50_s": ("connect", "median"),
}  # fmt: skip
_NEGOTIATED = {
    "alpn": "Application protocol: ", "tls": "TLS Protocol: ", "cipher": "Cipher: ", "group": "Negotiated Group: ",
    "resumed": "Resumption: ",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fetch:
    """A workload over one protocol: `requests` for `path`, over `connections`, at most `streams` at once on each.

    With h1, h2load pipelines: up to `streams` requests are sent on a connection before the first answer.
    """

    protocol: str
    host: str
    port: int
    path: str
    requests: int
    connections: int
    streams: int
    threads: int
    settings: str = "unlimited"  # or "as-shipped": padded QUIC packets, and the socket buffers that a fresh host gives

    def __post_init__(self) -> None:
        if self.protocol not in ALPN:
            raise ValueError(f"protocol {self.protocol!r} is not one of {', '.join(ALPN)}")
        if self.settings not in PROGRAMS:
            raise ValueError(f"settings {self.settings!r} are not one of {', '.join(PROGRAMS)}")
        if not 1 <= self.threads <= self.connections <= self.requests:
            raise ValueError(
                f"h2load needs threads <= connections <= requests, got {self.threads}, {self.connections}, "
                f"{self.requests}"
            )

    def command(self) -> list[str]:
        """The command line; h2load writes `result.json` and `log` into its working directory.

        Only one ALPN identifier is offered, so no connection can fall back to another protocol. UDP segmentation is off
        because a super-packet would be impaired as one packet. There is no option for QUIC's congestion control.
        """
        return [
            PROGRAMS[self.settings],
            f"--threads={self.threads}", f"--clients={self.connections}", f"--requests={self.requests}",
            f"--max-concurrent-streams={self.streams}", f"--alpn-list={ALPN[self.protocol]}", "--no-udp-gso",
            *(f"--{name.removesuffix('_bytes').replace('_', '-')}-bits={size_bytes.bit_length()}"
              for name, size_bytes in self.windows().items() if self.settings == "unlimited"),
            "--output-file=result.json", "--log-file=log",
            f"https://{self.host}:{self.port}{self.path}",
        ]  # fmt: skip

    def logs(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """An option for QUIC; h2load writes a file for each connection."""
        return [f"--qlog-file-base={folder}/h2load"] if self.protocol == "h3" else [], {}

    def windows(self) -> dict[str, int]:
        """The flow-control windows that the client grants: {"window_bytes" of a stream, "connection_window_bytes"}."""
        if self.protocol == "h1":
            return {}
        bits = {"window_bytes": WINDOW_BITS[self.protocol], "connection_window_bytes": CONNECTION_WINDOW_BITS}
        return {name: (1 << bit) - 1 for name, bit in bits.items()}

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """The result, from the files that the command left in its working directory (`interpret`)."""
        return interpret(Output.read(directory), self.requests, started_at)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of h2load. `result` is None if it was killed before the end or wrote nothing readable."""

    stdout: str
    log: str
    result: Mapping[str, Any] | None

    @classmethod
    def read(cls, directory: Path) -> Output:
        """Read `stdout`, `log` and `result.json` from `directory`; missing files count as empty."""
        texts = {}
        for name in ("stdout", "log", "result.json"):
            file = directory / name
            texts[name] = file.read_text(errors="replace") if file.exists() else ""
        try:
            result = json.loads(texts["result.json"])["measurements"]
        except (ValueError, KeyError):
            result = None
        return cls(texts["stdout"], texts["log"], result)


def interpret(output: Output, requests: int, started_at: float) -> dict[str, Any]:
    """The result of `requests`: negotiated, metrics, totals, reconciled, discrepancies, quic, samples.

    `started_at` is when h2load was started, in seconds since the epoch; request_start_s counts from there.
    """
    rows = _log_rows(output.log)
    discrepancies = reconcile(output.result, rows, requests)
    return {
        "negotiated": negotiated(output.stdout),
        "metrics": metrics(output.result) | mean_done(rows, requests, started_at) if output.result else {},
        "totals": totals(output.result, rows, requests),
        "reconciled": not discrepancies,
        "discrepancies": discrepancies,
        "quic": quic(output.result) if output.result else {},
        "samples": samples(output.result, rows, started_at),
    }


def negotiated(stdout: str) -> dict[str, str | None]:
    """{"alpn", "tls", "cipher", "group", "resumed"} as h2load reported them; None if it did not."""
    lines = stdout.splitlines()
    return {
        name: next((line.removeprefix(title) for line in lines if line.startswith(title)), None)
        for name, title in _NEGOTIATED.items()
    }


def metrics(result: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a client that finished, named as in headwind/model.py; absent if there were no samples.

    total_s is h2load's "finished in"; the percentiles are h2load's own (the element at index n x p of the n sorted).
    If no request was done, "finished in" is when h2load gave up, such as 569 us without a connection: then total_s and
    the rates are absent.
    """
    performance, duration_s = result["performance"], result["duration"]
    is_done = result["requests"]["done"] > 0
    found = {"total_s": duration_s, "requests_per_s": result["request_per_second"]} if is_done else {}
    found |= {
        "requests_succeeded": result["requests"]["succeeded"],
        "requests_failed": result["requests"]["failed"],
        "bytes_total": result["traffic"]["total"],
        "bytes_body": result["traffic"]["data"],
    }
    if is_done and duration_s > 0:
        found["goodput_bps"] = result["traffic"]["data"] * 8 / duration_s
    for name, (part, statistic) in _STATISTICS.items():
        if performance[part]["samples"]:
            found[name] = performance[part][statistic]
    return found


def mean_done(rows: list[_Row], requests: int, started_at: float) -> dict[str, float]:
    """{"mean_done_s"}: the mean over all requests of when each was done, from the start of the client.

    Absent if a request is missing or did not succeed: then there is no mean of all.
    """
    if sum(200 <= row.status < 400 for row in rows) != requests:
        return {}
    done_us = sum(row.start_us + row.took_us for row in rows) / requests
    return {"mean_done_s": round(done_us / 1e6 - started_at, 6)}


def totals(result: Mapping[str, Any] | None, rows: list[_Row], requests: int) -> dict[str, int]:
    """Counts of requests: requests = succeeded + failed; failed includes errored (no answer), errored abandoned.

    `abandoned` were lost with their connection or never sent; `succeeded` had a 2xx or 3xx answer. Of a client
    that was killed only what its log shows is known: requests, done, succeeded, abandoned, status_*.
    """
    if result is None:
        succeeded = sum(200 <= row.status < 400 for row in rows)
        known = {"requests": requests, "done": len(rows), "succeeded": succeeded, "abandoned": requests - len(rows)}
        return known | {f"status_{n}xx": sum(row.status // 100 == n for row in rows) for n in (2, 3, 4, 5)}
    counts = result["requests"]
    known = {name: counts[name] for name in ("started", "done", "succeeded", "failed", "errored", "timeout")}
    known |= {"requests": counts["total"], "abandoned": counts["total"] - counts["done"]}
    return known | {f"status_{name}": count for name, count in result["status_codes"].items()}


def reconcile(result: Mapping[str, Any] | None, rows: list[_Row], requests: int) -> list[str]:
    """Descriptions of everything in h2load's outputs that does not add up; empty if it all does."""
    if result is None:
        return ["h2load wrote no result"]
    count, sample_count = result["requests"], len(result["performance"]["request"]["samples"])
    answered = [row.took_us for row in rows if row.status != FAILED_STREAM]
    sums = (
        ("requests in total and requested", count["total"], requests),
        ("succeeded + failed and requests", count["succeeded"] + count["failed"], requests),
        ("answered in the log and succeeded + failed - errored",
         len(answered), count["succeeded"] + count["failed"] - count["errored"]),
        ("succeeded in the log and in the result", sum(200 <= row.status < 400 for row in rows), count["succeeded"]),
        ("lines of the log and requests done", len(rows), count["done"]),
        ("samples and answered requests", sample_count, len(answered)),
    )  # fmt: skip
    wrong = [f"{what} differ: {left} and {right}" for what, left, right in sums if left != right]
    if sample_count == len(answered):
        pairs = zip(sorted(answered), result["performance"]["request"]["samples"], strict=True)
        apart_us = max((abs(took_us - sample * 1e6) for took_us, sample in pairs), default=0.0)
        if apart_us > 2:  # the log cuts to whole microseconds, the result keeps 9 digits
            wrong.append(f"request times of the log and of the result are up to {apart_us:.0f} us apart")
    return wrong


def quic(result: Mapping[str, Any]) -> dict[str, int]:
    """Datagrams of the client's QUIC sockets; empty for h1 and h2.

    largest_gro_packets above 1 means that the kernel merged datagrams before the client saw them.
    """
    if "udp_datagram" not in result:
        return {}
    merged = result["performance"]["gro_packets"]["samples"]
    return {
        "datagrams_sent": result["udp_datagram"]["sent"],
        "datagrams_received": result["udp_datagram"]["recv"],
        "largest_gro_packets": max(merged, default=0),
    }


def samples(result: Mapping[str, Any] | None, rows: list[_Row], started_at: float) -> dict[str, list[float]]:
    """Raw values as columns, times in seconds to a microsecond.

    request_start_s, request_took_s and request_status have one entry per finished request, in the order of finishing.
    The others have one per connection, sorted by size (so that they cannot be paired), and are missing after a kill.
    """
    columns: dict[str, list[float]] = {
        "request_start_s": [round(row.start_us / 1e6 - started_at, 6) for row in rows],
        "request_took_s": [row.took_us / 1e6 for row in rows],
        "request_status": [row.status for row in rows],
    }
    performance = result["performance"] if result else {}
    for name, part in _SECONDS.items():
        if part in performance:
            columns[name] = [round(value, 6) for value in performance[part]["samples"]]
    for name, part in _COUNTS.items():
        if part in performance:
            columns[name] = performance[part]["samples"]
    return columns


class _Row(NamedTuple):
    start_us: int
    status: int
    took_us: int


def _log_rows(text: str) -> list[_Row]:
    rows = (line.split("\t") for line in text.splitlines())
    return [_Row(int(row[0]), int(row[1]), int(row[2])) for row in rows if len(row) >= 3]
