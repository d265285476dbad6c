"""The requests of one page load, as a browser reported them (browsers/page.py), and what each of them waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwind.model import Result

H1 = "http/1.1"  # ALPN of the protocol that carries one request at a time on a connection
_NEEDED = ("request_start_s", "request_took_s", "request_status", "request_sent_s", "request_first_byte_s",
           "request_connect_s", "request_protocol")  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request: when it was wanted, sent, answered first and done, in seconds from the start of the navigation.

    A time that is unknown is 0. `connect_s` is 0 on a connection that was open already.
    """

    start_s: float
    sent_s: float
    first_byte_s: float
    done_s: float
    connect_start_s: float = 0.0
    connect_s: float = 0.0
    status: int = 200
    protocol: str = ""
    body_bytes: int | None = None  # None: not recorded, as in runs of an earlier version
    path: str = ""
    initiator: str = ""

    @property
    def moments(self) -> tuple[float, float, float, float, float, float]:
        """Six times in ascending order: wanted, handshake began and ended, sent, first byte, last byte.

        What never came is put on the end. Without its own handshake both of its times are those of sending.
        """
        sent = min(max(self.start_s, self.sent_s or self.done_s), self.done_s)
        first = min(max(sent, self.first_byte_s or self.done_s), self.done_s)
        if not self.opened_connection:
            return self.start_s, sent, sent, sent, first, self.done_s
        begun = min(max(self.start_s, self.connect_start_s or sent - self.connect_s), sent)
        return self.start_s, begun, min(begun + self.connect_s, sent), sent, first, self.done_s

    @property
    def opened_connection(self) -> bool:
        """Whether a connection was opened for it."""
        return self.connect_s > 0

    @property
    def queued_s(self) -> float:
        """Time until it was sent, without the handshake of its connection."""
        start, begun, ended, sent, _, _ = self.moments
        return begun - start + sent - ended

    @property
    def connecting_s(self) -> float:
        """Duration of the handshake of the connection that was opened for it."""
        _, begun, ended, *_ = self.moments
        return ended - begun

    @property
    def waiting_s(self) -> float:
        """Time from sending it to the first byte of its answer."""
        *_, sent, first, _ = self.moments
        return first - sent

    @property
    def receiving_s(self) -> float:
        """Time from the first to the last byte of its answer."""
        *_, first, done = self.moments
        return done - first


@dataclass(frozen=True, slots=True)
class PageTrial:
    """A trial of a page with its requests in the order in which they were wanted."""

    result: Result
    requests: tuple[PageRequest, ...]


@dataclass(frozen=True, slots=True)
class PageTrials:
    """The trials of an arm in a condition that stand for all of them, by the primary metric; they may be the same."""

    median: PageTrial
    worst: PageTrial


def requests_of(columns: Mapping[str, Sequence[Any]]) -> tuple[PageRequest, ...]:
    """The requests of a trial from its samples, in the order in which they were wanted; none without such samples."""
    if not all(columns.get(name) for name in _NEEDED):
        return ()
    count = len(columns["request_start_s"])

    def column(name: str, missing: Any = None) -> Sequence[Any]:
        return columns.get(f"request_{name}", (missing,) * count)

    rows = zip(
        column("start_s"), column("sent_s"), column("first_byte_s"), column("took_s"),
        column("connect_start_s", 0.0), column("connect_s"), column("status"), column("protocol"), column("bytes"),
        column("path", ""), column("initiator", ""), strict=True,
    )  # fmt: skip
    requests = (PageRequest(start, sent, first, start + took, *rest) for start, sent, first, took, *rest in rows)
    return tuple(sorted(requests, key=lambda request: (request.start_s, request.done_s)))
