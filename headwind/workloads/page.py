"""The workload kind `page`: a page in a browser, with a number of pictures that it asks for at once.

browsers/chromium carries it out, in a fresh context for each trial. This file has everything that the host knows of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from headwind.browsers import CHROMIUM
from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake
from headwind.matrix.values import whole
from headwind.matrix.workload import DelayedKeys
from headwind.metric import Metric, Rate, Unfinished, Use, Workload
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
LAST = Metric("last_resource_s", "time until the last resource", "last resource", "s", use=Use.COMPARED,
              unfinished=Unfinished.BOUNDED)  # fmt: skip
CONNECTED = replace(HANDSHAKE, use=Use.SHOWN)  # of the document's connection: TCP and TLS, or QUIC
SUCCEEDED = "requests_succeeded"


@dataclass(frozen=True, slots=True)
class Page(Workload):
    """Workload of one page with `resources` pictures of `size_bytes` each, in a browser."""

    kind: ClassVar[str] = "page"
    program: ClassVar[str] = CHROMIUM
    browser: ClassVar[str] = CHROMIUM
    metrics: ClassVar[tuple[Metric, ...]] = (
        LOAD, FIRST, PAINT, LAST, CONNECTED, BODY,
        Metric("connections", "connections that the browser opened", "connections", use=Use.SHOWN),
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

    resources: int
    size_bytes: int

    @property
    def requests(self) -> int:
        """The number of requests, that for the document included."""
        return self.resources + 1

    def asked(self) -> dict[str, Any]:
        """The request as browsers/chromium/agent.py takes it."""
        return {"path": self.object_paths()[0]}

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

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """The browser's error, or the number of failed requests as a text; empty if every request succeeded."""
        if answer.get("error"):
            return f"the browser could not load the page: {answer['error']}"
        missing = self.requests - self.answered(answer)
        return f"{missing} of {self.requests} requests failed" if missing > 0 else ""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """Number of requests that succeeded."""
        return int((answer.get("metrics") or {}).get(SUCCEEDED, 0))

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Inconsistency of the browser's report with itself, or with the agent's clock; empty if there is none."""
        metrics = answer["metrics"]
        if metrics[SUCCEEDED] > self.requests:
            return f"the browser reports {metrics[SUCCEEDED]} answers to {self.requests} requests"
        if metrics["from_cache"]:
            return f"{metrics['from_cache']} answers came from a cache, and the page was to be fresh"
        if LOAD.key not in metrics:
            return "the browser reports no load event"
        if metrics[LOAD.key] > answer["wall_s"] + CLOCK_TOLERANCE_S:
            return f"the load event came after {metrics[LOAD.key]:.3f} s, in a run of {answer['wall_s']:.3f} s"
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """First byte and first paint if the page had them; the timeout as lower bound of all that it had not."""
        metrics = answer.get("metrics") or {}
        ends = {LAST.low_key: timeout_s}
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
        """Times from the start of the navigation until each share of requests was answered."""
        columns = answer.get("samples") or {}
        rows = zip(*(columns.get(name, ()) for name in ("request_start_s", "request_took_s", "request_status")),
                   strict=True)  # fmt: skip
        return reached(self.requests, [start_s + took_s for start_s, took_s, status in rows if 200 <= status < 400])

    def size(self) -> float:
        """Number of requests."""
        return float(self.requests)

    def at_once(self) -> tuple[int, int]:
        """Connections, and concurrent requests on each, as over HTTP/2."""
        return 1, self.resources

    def least(self) -> tuple[int, int]:
        """Rounds: the document, then the pictures. Bytes: those of all pictures."""
        return 2, self.resources * self.size_bytes

    def processors(self) -> int:
        """CPUs that keep the page from being faster: what a page needs mostly waits for each other."""
        return 1

    def sentence(self, protocols: Collection[str]) -> str:
        """Description of the workload."""
        del protocols
        return f"{self.brief()}, all requested as soon as the document is read."

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "Pages are loaded by Chromium, without a window: one process for each protocol, and a new context, without "
            "connections, cache or sessions, for each trial. Its times are those that the browser gives to pages "
            "(Navigation, Resource and Paint Timing), from the start of the navigation; the process and the context "
            "exist before. The protocol of every request is the browser's report (nextHopProtocol). HTTP/3 is used "
            "from the first request on."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description: `a page with 50 pictures of 10,000 bytes in Chromium`."""
        del metrics, protocols
        return self.brief()

    def brief(self) -> str:
        """Pictures, size and browser as a text."""
        return f"a page with {counted(self.resources, 'picture')} of {counted(self.size_bytes, 'byte')} in Chromium"

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


class PageKeys(DelayedKeys):
    """A page with pictures, in a browser."""

    model: ClassVar[type[Workload]] = Page
    same_for_all: ClassVar[frozenset[str]] = DelayedKeys.same_for_all | {"size"}

    kind: Literal["page"] = key("the kind of the workload")
    requests: Annotated[int, whole(1, MOST_RESOURCES)] = key("number of pictures, all requested at once")
    size: values.ObjectBytes = key(f"of each picture, at least {LEAST_PICTURE_BYTES} bytes; generated on demand")

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise Slips if there is no picture as small as the size."""
        if self.size < LEAST_PICTURE_BYTES:
            message = f"{counted(self.size, 'byte')} are too few for a picture"
            raise Slips([Slip(("size",), Mistake(message, f"at least {LEAST_PICTURE_BYTES}B"))])

    def to_model(self, name: str) -> Page:
        """Convert the keys to the workload of this name."""
        return Page(name, self.requests, self.size)
