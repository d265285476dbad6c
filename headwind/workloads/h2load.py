"""The workload kind `h2load`: a fixed number of requests for one object, sent as fast as possible.

client/h2load.py carries it out. This file has everything that the host knows of it: the settings and how a user writes
them, the metrics, the request to the client, when a trial counts as done, and its texts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from headwind.format import counted, enumerated
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.units import Mistake, harmless
from headwind.matrix.values import whole
from headwind.matrix.workload import CompetedKeys
from headwind.metric import Better, Metric, Rate, Unfinished, Use, Workload
from servers.objects import after, size_of

MOST_STREAMS = 1024  # http2_max_concurrent_streams and http3_max_concurrent_streams of nginx/nginx.conf
MOST_REQUESTS = 1_000_000  # h2load keeps a sample of each
MOST_CONNECTIONS = 10_000  # fewer than the ephemeral ports of one address
MOST_THREADS = 64
IDLE_S = 30.0  # h2load's max_idle_timeout of QUIC, see client/h2load.py

TOTAL = Metric("total_s", "total time", "total time", "s", use=Use.JUDGED, unfinished=Unfinished.ABOVE_TIMEOUT,
               meaning="until the last request is done, so the slowest connection determines it")  # fmt: skip
DONE = Metric(
    "mean_done_s", "mean completion time", "mean completion", "s", use=Use.JUDGED, unfinished=Unfinished.BOUNDED,
    meaning="mean over requests of the time from client start to completion",
    note="over all requests, counted from client start",
)  # fmt: skip
REQUEST = Metric(
    "request_p50_s", "median time per request", "median request", "s", use=Use.JUDGED, unfinished=Unfinished.BOUNDED,
    meaning="median over requests of the time from sending to completion",
    note="from sending to last byte, without handshakes", is_from_sending=True,
)  # fmt: skip
TAIL = Metric("request_p95_s", "95th percentile per request", "95th percentile", "s", use=Use.COMPARED,
              meaning="95th percentile over requests of the time from sending to completion",
              is_from_sending=True)  # fmt: skip
PROGRESS = {
    share: Metric(f"done_{name}_s", f"time until {text} of the requests were done", f"{text} done", "s",
                  unfinished=Unfinished.BOUNDED)
    for share, name, text in ((0.5, "p50", "50 %"), (0.9, "p90", "90 %"), (0.99, "p99", "99 %"), (1.0, "all", "100 %"))
}  # fmt: skip
CONNECT = Metric("connect_p50_s", "median handshake time", "median handshake", "s", use=Use.SHOWN)
SLOWEST = Metric("connect_max_s", "slowest handshake", "slowest handshake", "s")
GIVEN_UP = Metric("quic_packets_lost", "packets that the QUIC client declared lost", "lost")
BODY = Metric("bytes_body", "bytes of response bodies", "body bytes", better=Better.MORE)
FURTHER = (
    Metric("request_p99_s", "99th percentile per request", "99th percentile", "s", use=Use.SHOWN, is_from_sending=True),
    Metric("ttfb_p50_s", "median time to first byte", "median TTFB", "s", use=Use.SHOWN),
    CONNECT,
    Metric("requests_per_s", "requests per second", "requests/s", "per_s", Better.MORE),
    Metric("goodput_bps", "goodput", "goodput", "bps", Better.MORE),
    Metric("requests_succeeded", "requests that succeeded", "succeeded", better=Better.MORE),
    Metric("requests_failed", "requests that failed", "failed"),
    Metric("bytes_total", "bytes received", "bytes"),
    BODY,
    *PROGRESS.values(),
    SLOWEST,
    GIVEN_UP,
    Metric("quic_packets_sent", "packets that the QUIC client sent", "sent"),
    Metric("quic_packets_received", "packets that the QUIC client received", "received"),
)


@dataclass(frozen=True, slots=True)
class H2load(Workload):
    """Workload of `requests` in total over `connections`, at most `streams` at once on each."""

    kind: ClassVar[str] = "h2load"
    program: ClassVar[str] = "h2load"
    metrics: ClassVar[tuple[Metric, ...]] = (TOTAL, DONE, REQUEST, TAIL, *FURTHER)
    rates: ClassVar[tuple[Rate, ...]] = (
        Rate("requests_rate", "Requests/s", "requests_succeeded"),
        Rate("goodput_bps", "Throughput", "bytes_body", times=8),
    )
    progress: ClassVar[Mapping[float, Metric]] = PROGRESS
    handshake: ClassVar[tuple[Metric, ...]] = (CONNECT, SLOWEST)
    payload: ClassVar[Metric | None] = BODY

    requests: int
    connections: int
    streams: int  # requests in flight at once on each connection: streams of h2 and h3, pipelined on h1
    threads: int = 1
    path: str = "/"  # the object that every request fetches

    def asked(self) -> dict[str, Any]:
        """The request as client/agent.py takes it."""
        return {
            "path": self.object_path(), "requests": self.requests, "connections": self.connections,
            "streams": self.streams, "threads": self.threads,
        }  # fmt: skip

    def object_path(self) -> str:
        """Path of the only object."""
        return after(self.server_delay_s, self.files[0].url if self.files else self.path)

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Mismatch of the bytes of all bodies; empty if none.

        Failed requests may have had bodies too, so more is allowed.
        """
        metrics = answer.get("metrics") or {}
        if "bytes_body" not in metrics:
            return ""
        count, body_bytes = int(metrics["requests_succeeded"]), int(metrics["bytes_body"])
        expected = count * object_bytes
        if body_bytes < expected or (body_bytes > expected and not metrics["requests_failed"]):
            return f"{count} answers had {body_bytes} bytes instead of {expected}"
        return ""

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """Number of failed requests and their statuses as a text; empty if every request succeeded."""
        missing = self.requests - self.answered(answer)
        statuses = (answer.get("samples") or {}).get("request_status", ())
        refused = [str(status) for status in sorted({*statuses}) if status >= 400]  # -1: the stream failed
        why = f": status {enumerated(refused)}" if refused else ""
        return f"{missing} of {self.requests} requests failed{why}" if missing > 0 else ""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """Number of requests that succeeded."""
        return int((answer.get("totals") or {}).get("succeeded", 0))

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """Bounds of progress, mean completion and median request, from the requests that were answered in time.

        The other requests would have been done after the timeout, or never, so the mean is larger than with them at the
        timeout. How long they would have taken from their own start is unknown: with f of n answered, the median is not
        below that with n - f shorter ones, and not above that with n - f longer ones; f > n / 2 bounds it.
        """
        columns, n = answer["samples"], self.requests
        rows = zip(columns["request_start_s"], columns["request_took_s"], columns["request_status"], strict=True)
        answered = [(start_s + took_s, took_s) for start_s, took_s, status in rows if 200 <= status < 400]
        missing, took = n - len(answered), sorted(took_s for _, took_s in answered)
        ends = {DONE.low_key: (math.fsum(done_s for done_s, _ in answered) + missing * timeout_s) / n}
        times = reached(self.requests, [done_s for done_s, _ in answered])
        for metric in PROGRESS.values():
            ends[metric.low_key] = times.get(metric.key, timeout_s)
            if metric.key in times:
                ends[metric.high_key] = ends[metric.low_key]
        if len(answered) > n / 2:
            ends[REQUEST.low_key] = statistics.median([0.0] * missing + took)
            ends[REQUEST.high_key] = statistics.median([*took, *[math.inf] * missing])
        return ends

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Times from client start until each share of requests was answered; the slowest handshake; QUIC's counts."""
        columns = answer.get("samples") or {}
        rows = zip(*(columns.get(name, ()) for name in ("request_start_s", "request_took_s", "request_status")),
                   strict=True)  # fmt: skip
        found = reached(self.requests, [start_s + took_s for start_s, took_s, status in rows if 200 <= status < 400])
        if columns.get("connect_s"):
            found[SLOWEST.key] = max(columns["connect_s"])
        quic = {f"quic_{name}": sum(columns.get(name, ())) for name in ("packets_lost", "packets_sent",
                                                                        "packets_received")}  # fmt: skip
        return {**found, **(quic if "packets_lost" in columns else {})}

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Contradictions between h2load's three reports of the same run (client/h2load.py); empty if they agree."""
        return "" if answer["reconciled"] else "; ".join(answer["discrepancies"])

    def size(self) -> float:
        """Number of requests."""
        return float(self.requests)

    def at_once(self) -> tuple[int, int]:
        """Connections, and concurrent requests on each; not more than there are requests for each connection."""
        return self.connections, max(1, min(self.streams, self.requests // self.connections))

    def pipelines(self) -> bool:
        """True with several requests at once on a connection: h2load pipelines them in HTTP/1.1."""
        return self.streams > 1 and self.requests > self.connections

    def least(self) -> tuple[int, int]:
        """Rounds of the busiest connection, and bytes of all bodies."""
        connections, streams = self.at_once()
        return max(1, self.requests // (connections * streams)), self.requests * self._object_bytes

    @property
    def _object_bytes(self) -> int:
        """Size of the object; 0 if there is none."""
        return self.files[0].bytes if self.files else size_of(self.path) or 0

    def processors(self) -> int:
        """CPUs that the client can use, one for each thread."""
        return self.threads

    def sentence(self, protocols: Collection[str]) -> str:
        """Description of the workload, with the meaning of pipelining."""
        each = -(-self.requests // self.connections)  # requests of a connection, rounded up
        at_once = f"at most {counted(self.streams, 'request')} at once on each"
        if self.streams >= each:
            up_to = "up to " if self.requests % self.connections else ""
            at_once = f"{up_to}{counted(each, 'request')}{' at once' if each > 1 else ''} on each"
        is_named = "h1" in protocols and self.pipelines()
        pipelined = " (pipelined in HTTP/1.1, which browsers do not do)" if is_named else ""
        return (
            f"{counted(self.requests, 'request')} for the path {self.path}, over "
            f"{counted(self.connections, 'connection')}, {at_once}{pipelined}, "
            f"{counted(self.threads, 'client thread')}."
        )

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "The total time is measured by the client, h2load, from its start to its last response; throughput is the "
            "bits of response bodies over that time, headers not counted. The mean completion time is the mean over "
            "all requests of the time from client start to completion. The time to first byte (TTFB) includes the "
            "handshake; the time of a request does not."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description: `1,000 requests, each for 612 bytes, over 100 new connections; not a page load`."""
        del protocols
        sizes = [each["bytes_body"] / each["requests_succeeded"] for each in metrics
                 if each.get("bytes_body") and each.get("requests_succeeded")]  # fmt: skip
        wanted = f" for {counted(round(median(sizes)), 'byte')}" if sizes else f" for {self.path}"
        wanted = f", each{wanted}," if sizes and self.requests > 1 else wanted
        over = counted(self.connections, "new connection")
        return f"{counted(self.requests, 'request')}{wanted} over {over}; not a page load"

    def brief(self) -> str:
        """Requests, path, connections, streams and threads as a text."""
        return (
            f"{counted(self.requests, 'request')} for {self.path}, "
            f"{counted(self.connections, 'connection')}, {counted(self.streams, 'stream')}, "
            f"{counted(self.threads, 'client thread')}"
        )

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """Requests that succeeded: `951 to 960 of 1,000 requests succeeded`."""
        counts = [int(each["requests_succeeded"]) for each in metrics if "requests_succeeded" in each]
        if not counts:
            return ""
        fewest, most = min(counts), max(counts)
        shown = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        return f"{shown} of {self.requests:,} requests succeeded"

    def line(self, metrics: Mapping[str, float]) -> str:
        """Figures of a trial's line: `   2.130 s     470.0 req/s`."""
        if TOTAL.key not in metrics:
            return ""
        return f"{metrics[TOTAL.key]:8.3f} s {metrics.get('requests_per_s', 0):9.1f} req/s"


def reached(requests: int, done_s: Sequence[float]) -> dict[str, float]:
    """Time at which each share of PROGRESS of all requests was done; shares that were not reached are absent."""
    ordered = sorted(done_s)
    places = {metric.key: math.ceil(share * requests) - 1 for share, metric in PROGRESS.items()}
    return {key: round(ordered[place], 6) for key, place in places.items() if place < len(ordered)}


class H2loadKeys(CompetedKeys):
    """A fixed number of requests for one object, sent as fast as possible."""

    model: ClassVar[type[Workload]] = H2load

    kind: Literal["h2load"] = key("the kind of the workload", "h2load")
    requests: Annotated[int, whole(1, MOST_REQUESTS)] = key("total number")
    connections: Annotated[int, whole(1, MOST_CONNECTIONS)] = key("number in parallel; at most one for each request")
    streams: Annotated[int, whole(1, MOST_STREAMS)] = key("concurrent requests on each connection (h2, h3)", 1)
    threads: Annotated[int, whole(1, MOST_THREADS)] = key("number in the client; at most one for each connection", 1)
    path: values.PagePath = key("object that every request fetches: one of the lab's, or a file of `content`", "/")

    @model_validator(mode="before")
    @classmethod
    def _single(cls, written: Any) -> Any:
        for name in ("path", "paths"):
            if isinstance(written, dict) and isinstance(paths := written.get(name), list):
                hint = f"for a list: {{kind: objects, paths: [{', '.join(map(harmless, paths))}]}}"
                raise Slips([Slip((name,), Mistake("h2load fetches one object only, over every connection", hint))])
        return written

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise Slips if h2load refuses the values."""
        slips = []
        for fewer, more in (("connections", "requests"), ("threads", "connections")):
            if getattr(self, fewer) > getattr(self, more):
                message = f"{getattr(self, fewer)} {fewer} are more than the {getattr(self, more)} {more}"
                hint = f"at most one for each of them: `{fewer}: {getattr(self, more)}`, or more {more}"
                slips.append(Slip((fewer,), Mistake(message, hint)))
        raise_any(slips)

    def to_model(self, name: str) -> H2load:
        """Convert the keys to the workload of this name."""
        return H2load(name, self.requests, self.connections, self.streams, self.threads, self.path)

    def paths_used(self) -> dict[tuple[str | int, ...], str]:
        """The path."""
        return {("path",): self.path}
