"""The workload kind `page`: a page in a browser, with a number of pictures that it asks for at once.

A browser carries it out (browsers/), in a fresh context for each trial. This file has all that the host knows of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from headwind.arm import BROWSER_CONNECTIONS
from headwind.browsers import BROWSERS, CHROMIUM
from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake, choose, scalar
from headwind.matrix.values import Written, whole
from headwind.metric import Metric, Rate, Unfinished, Use, Workload
from headwind.workloads.discovery import (
    SHARE,
    Discovering,
    DiscoveringKeys,
    Discovery,
    discovered_text,
    share,
)
from headwind.workloads.h2load import BODY, PROGRESS, reached
from headwind.workloads.transfer import FIRST_BYTE, HANDSHAKE
from servers.objects import LEAST_PICTURE_BYTES, after, document_path, picture_path, size_of

MOST_RESOURCES = 1024
CLOCK_TOLERANCE_S = 0.05  # between the browser's clock and that of its agent

LOAD = Metric("load_s", "time until the load event", "load event", "s", use=Use.JUDGED,
              unfinished=Unfinished.ABOVE_TIMEOUT,
              meaning="from the start of the navigation until the page and all its pictures are there")  # fmt: skip
FIRST = replace(FIRST_BYTE, use=Use.COMPARED, unfinished=Unfinished.BOUNDED)
PAINT = Metric("first_paint_s", "time until the first contentful paint", "first paint", "s", use=Use.COMPARED,
               unfinished=Unfinished.BOUNDED)  # fmt: skip
LARGEST = Metric("lcp_s", "time until the largest contentful paint", "largest paint", "s", use=Use.COMPARED,
                 unfinished=Unfinished.BOUNDED)  # fmt: skip
LAST = Metric("last_resource_s", "time until the last resource", "last resource", "s", use=Use.COMPARED,
              unfinished=Unfinished.BOUNDED)  # fmt: skip
CONNECTED = replace(HANDSHAKE, use=Use.SHOWN)  # of the document's connection: TCP and TLS, or QUIC
# Of a browser that discovers HTTP/3: connections that were begun, by the kernel's count. One of each is a race.
TCP_BEGUN = Metric("tcp_connections", "connections that the browser began over TCP", "begun over TCP", use=Use.SHOWN)
QUIC_BEGUN = Metric("quic_connections", "connections that the browser began over QUIC", "begun over QUIC",
                    use=Use.SHOWN)  # fmt: skip
SUCCEEDED = "requests_succeeded"


class Visit(StrEnum):
    """The number of the measured load, by which a browser knows the server or not."""

    FIRST = "first"  # nothing
    REPEAT = "repeat"  # the page was loaded before: TLS sessions, Alt-Svc, round-trip times


class Isolation(StrEnum):
    """The part of a browser that is new for each trial."""

    CONTEXT = "context"  # connections, cache, sessions
    BROWSER = "browser"  # also the process


@dataclass(frozen=True, slots=True)
class PageLoad(Discovering):
    """Workload of one page in a browser, whatever it consists of. `requests` is the number of its requests."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        LOAD, FIRST, PAINT, LARGEST, LAST, CONNECTED, BODY,
        Metric("connections", "connections that the browser opened", "connections", use=Use.SHOWN),
        SHARE, TCP_BEGUN, QUIC_BEGUN,
        Metric(SUCCEEDED, "requests that succeeded", "succeeded"),
        Metric("requests_failed", "requests that failed", "failed"),
        *PROGRESS.values(),
    )  # fmt: skip
    rates: ClassVar[tuple[Rate, ...]] = ()
    progress: ClassVar[Mapping[float, Metric]] = PROGRESS
    handshake: ClassVar[tuple[Metric, ...]] = (CONNECTED,)
    is_drawn: ClassVar[bool] = True
    payload: ClassVar[Metric | None] = BODY
    has_client_windows: ClassVar[bool] = False  # those windows are the browser's

    browser: str = field(default=CHROMIUM, kw_only=True)
    visit: str = field(default=Visit.FIRST.value, kw_only=True)
    isolation: str = field(default=Isolation.CONTEXT.value, kw_only=True)
    discovery: str = field(default=Discovery.FORCED.value, kw_only=True)
    connections: int = field(default=0, kw_only=True)  # that the browser opens at most; 0: no protocol is known yet

    def over(self, protocol: str) -> Self:
        """The workload over a protocol: only HTTP/3 can be discovered, and HTTP/1.1 has several connections."""
        return replace(super(PageLoad, self).over(protocol), connections=BROWSER_CONNECTIONS[protocol])

    @property
    def is_repeat(self) -> bool:
        """Whether the measured load is a repeat visit."""
        return self.visit == Visit.REPEAT

    @property
    def resumes(self) -> bool:
        """Whether its connections may resume sessions: those of a first visit have none."""
        return self.is_repeat

    def spoken(self, answer: Mapping[str, Any]) -> Collection[str]:
        """The ALPN identifiers of all requests of the measured load."""
        found: Collection[str] = (answer.get("samples") or {}).get("request_protocol", ())
        return found

    @property
    def where(self) -> str:
        """The browser, and what is unusual of its use, as a text."""
        words = {
            "a repeat visit": self.is_repeat, "a new process for each trial": self.isolation == Isolation.BROWSER,
            discovered_text(self.offer_if): self.discovers,
        }  # fmt: skip
        unusual = ", ".join(word for word, is_so in words.items() if is_so)
        return f"{BROWSERS[self.browser]} ({unusual})" if unusual else BROWSERS[self.browser]

    @property
    @abstractmethod
    def requests(self) -> int:
        """The number of requests, that for the document included."""

    def wanted(self, answer: Mapping[str, Any]) -> int:
        """The number of requests of the page that the browser reports."""
        del answer
        return self.requests

    def asked(self) -> dict[str, Any]:
        """The request as browsers/agent.py takes it."""
        return {"path": self.object_paths()[0], "isolation": self.isolation, "discovers": self.discovers}

    def object_path(self) -> str:
        """The path of the document."""
        return self.object_paths()[0]

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """The browser's error, or the number of failed requests as a text; empty if every request succeeded."""
        if answer.get("error"):
            return f"the browser could not load the page: {answer['error']}"
        wanted = self.wanted(answer)
        missing = wanted - self.answered(answer)
        return f"{missing} of {wanted} requests failed" if missing > 0 else ""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """Number of requests that succeeded."""
        return int((answer.get("metrics") or {}).get(SUCCEEDED, 0))

    def wrong_session(self, answer: Mapping[str, Any], *, orderly: bool) -> str:
        """A repeat visit over a forced protocol in which the server resumed no session, by its log; else empty.

        A discovered HTTP/3 may have no session: the first visit can end before its connection over QUIC has one.
        """
        del orderly
        if self.is_repeat and self.discovery == Discovery.FORCED and not answer["served"]["resumed"]:
            return "the server resumed no session on a repeat visit"
        return ""

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Inconsistency of the browser's report with itself, or with the agent's clock; empty if there is none."""
        metrics = answer["metrics"]
        if metrics[SUCCEEDED] > self.wanted(answer):
            return f"the browser reports {metrics[SUCCEEDED]} answers to {self.wanted(answer)} requests"
        paths = (answer.get("samples") or {}).get("request_path", ())
        if metrics["from_cache"] > len(paths) - len(set(paths)):  # a page may request a file twice
            return f"{metrics['from_cache']} answers came from a cache, and the page was to be fresh"
        if LOAD.key not in metrics:
            return "the browser reports no load event"
        if metrics[LOAD.key] > answer["wall_s"] + CLOCK_TOLERANCE_S:
            return f"the load event came after {metrics[LOAD.key]:.3f} s, in a run of {answer['wall_s']:.3f} s"
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """First byte and first paint if the page had them; the timeout as lower bound of all that it had not.

        The largest paint so far is a lower bound: a larger one may have followed. None if the document came and could
        not report, because a script did not end: then nothing is known of what it had.
        """
        metrics = answer.get("metrics") or {}
        if answer.get("error"):
            return {}
        ends = {LAST.low_key: timeout_s, LARGEST.low_key: min(metrics.get(LARGEST.key, timeout_s), timeout_s)}
        for metric in (FIRST, PAINT):
            ends[metric.low_key] = min(metrics.get(metric.key, timeout_s), timeout_s)
            if metric.key in metrics:
                ends[metric.high_key] = ends[metric.low_key]
        times = self.further(answer)
        for metric in PROGRESS.values():
            ends[metric.low_key] = times.get(metric.key, timeout_s)
            if metric.key in times:
                ends[metric.high_key] = times[metric.key]
        return ends

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Times from the start of the navigation until each share of requests was answered.

        And the share of requests over HTTP/3, if it is discovered.
        """
        columns = answer.get("samples") or {}
        rows = zip(*(columns.get(name, ()) for name in ("request_start_s", "request_took_s", "request_status")),
                   strict=True)  # fmt: skip
        times = reached(
            self.wanted(answer), [start_s + took_s for start_s, took_s, status in rows if 200 <= status < 400]
        )
        return times | (share(columns.get("request_protocol", ())) if self.discovers else {})

    def size(self) -> float:
        """Number of requests."""
        return float(self.requests)

    def at_once(self) -> tuple[int, int]:
        """Connections, and concurrent requests on each; before a protocol is known, as over HTTP/2."""
        several = max(1, self.requests - 1)
        return (min(self.connections, several), 1) if self.connections > 1 else (1, several)

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "Pages are loaded by Chromium, or by Firefox if an arm says so, without a window: one process for each "
            "protocol (with `isolation: browser` one for each trial), and a new context, without connections, cache or "
            "sessions, for each trial. A repeat visit follows a first one in the same context and network, without "
            "connections and HTTP cache. Its times are those "
            "that the browser gives to pages (Navigation, Resource, Paint and Largest Contentful Paint Timing), from "
            "the start of the navigation; the process and the context exist before. The protocol of every request is "
            "the browser's report (nextHopProtocol). HTTP/3 is used from the first request on, unless it is to be "
            "discovered (`discovery: alt-svc`)."
        )

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """Requests that succeeded: `40 to 51 of 51 requests succeeded`."""
        counts = [int(each[SUCCEEDED]) for each in metrics if SUCCEEDED in each]
        if not counts:
            return ""
        fewest, most = min(counts), max(counts)
        shown = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        return f"{shown} of {self.requests:,} requests succeeded"

    def line(self, metrics: Mapping[str, float]) -> str:
        """Figures of a trial's line: `   0.812 s to the load event`."""
        return f"{metrics[LOAD.key]:8.3f} s to the load event" if LOAD.key in metrics else ""


@dataclass(frozen=True, slots=True)
class Page(PageLoad):
    """Workload of one page with `resources` pictures of `size_bytes` each, in a browser."""

    kind: ClassVar[str] = "page"

    resources: int
    size_bytes: int

    @property
    def requests(self) -> int:
        """The number of requests, that for the document included."""
        return self.resources + 1

    def object_path(self) -> str:
        """The path of the picture, whose content is compared."""
        return after(self.server_delay_s, picture_path(self.size_bytes))

    def object_paths(self) -> tuple[str, ...]:
        """The paths of the document and of the picture."""
        return after(self.server_delay_s, document_path(self.resources, self.size_bytes)), self.object_path()

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Mismatch of the bytes of the document or of all pictures; empty if none, or if requests failed."""
        metrics = answer.get("metrics") or {}
        if metrics.get(SUCCEEDED) != self.requests:
            return ""
        document_bytes = size_of(self.object_paths()[0])
        if metrics["bytes_document"] != document_bytes:
            return f"the document had {metrics['bytes_document']} bytes instead of {document_bytes}"
        if metrics["bytes_body"] != self.resources * object_bytes:
            return (f"{self.resources} pictures had {metrics['bytes_body']} bytes instead of "
                    f"{self.resources * object_bytes}")  # fmt: skip
        return ""

    def least(self) -> tuple[int, int]:
        """Rounds: the document, then the pictures. Bytes: those of all pictures."""
        return 2, self.resources * self.size_bytes

    def sentence(self, protocols: Collection[str]) -> str:
        """Description of the workload."""
        del protocols
        return f"{self.brief()}, all requested as soon as the document is read."

    def brief(self) -> str:
        """Pictures, size and browser as a text."""
        pictures = f"{counted(self.resources, 'picture')} of {counted(self.size_bytes, 'byte')}"
        return f"a page with {pictures} in {self.where}"


BrowserUsed = Annotated[
    str,
    Written(lambda value: choose(scalar(value, f"`{CHROMIUM}`"), list(BROWSERS), "a browser"), {"enum": [*BROWSERS]}),
]

VisitKey = Annotated[str, values.choice([each.value for each in Visit], "a kind of visit")]
IsolationKey = Annotated[str, values.choice([each.value for each in Isolation], "a kind of isolation")]


class PageLoadKeys(DiscoveringKeys):
    """Keys of every page."""

    browser: BrowserUsed = key("that loads the page", CHROMIUM, CHROMIUM)
    visit: VisitKey = key(
        "`first`, or `repeat`: the page was loaded once before, over the same network", "first", "first"
    )
    isolation: IsolationKey = key(
        "what each trial gets: a new `context` in a running browser, or a new `browser`", "context", "context"
    )

    def workload(self, name: str) -> Workload:
        """Workload of this name, with all of its keys."""
        page = cast("PageLoad", super().workload(name))
        return replace(page, browser=self.browser, visit=self.visit, isolation=self.isolation)


class PageKeys(PageLoadKeys):
    """A page with pictures, in a browser."""

    model: ClassVar[type[Workload]] = Page
    same_for_all: ClassVar[frozenset[str]] = PageLoadKeys.same_for_all | {"size", "requests"}

    kind: Literal["page"] = key("the kind of the workload")
    requests: Annotated[int, whole(1, MOST_RESOURCES)] = key("number of pictures, all requested at once")
    size: values.ObjectBytes = key(f"of each picture, at least {LEAST_PICTURE_BYTES} bytes; generated on demand")

    def check(self) -> None:
        """Raise Slips as for every page, or if there is no picture as small as the size."""
        super().check()
        if self.size < LEAST_PICTURE_BYTES:
            message = f"{counted(self.size, 'byte')} are too few for a picture"
            raise Slips([Slip(("size",), Mistake(message, f"at least {LEAST_PICTURE_BYTES}B"))])

    def to_model(self, name: str) -> Page:
        """Convert the keys to the workload of this name."""
        return Page(name, self.requests, self.size)
