"""The workload kind `ttfb`: time to first byte over a new connection, a resumed one, or one with early data.

client/curl.py carries it out with libcurl, since h2load sends no early data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.metric import Better, Metric, Rate, Unfinished, Use, Workload
from headwind.workloads.discovery import (
    SHARE,
    Discovering,
    DiscoveringKeys,
    Discovery,
    discovered_text,
    share,
)
from headwind.workloads.h2load import BODY, TOTAL
from headwind.workloads.transfer import FIRST_BYTE, HANDSHAKE
from servers.objects import after, path_of, size_of

USUAL_BYTES = 1000
EARLY = Metric("early_bytes", "bytes of early data that the server accepted", "early data", better=Better.MORE,
               use=Use.SHOWN)  # fmt: skip


class Session(StrEnum):
    """Session of an earlier connection that a connection uses."""

    NEW = "new"  # no session: a full handshake
    RESUMED = "resumed"  # the TLS session
    EARLY = "early"  # the TLS session; the request is sent before the handshake ends (0-RTT, RFC 8446, section 2.3)


SESSION_WORDS = {
    Session.NEW: "a new connection",
    Session.RESUMED: "a connection that resumes a session",
    Session.EARLY: "a connection that resumes a session, with the request as early data",
}


@dataclass(frozen=True, slots=True)
class Ttfb(Discovering):
    """Workload of one request over one connection."""

    kind: ClassVar[str] = "ttfb"
    program: ClassVar[str] = "curl"
    metrics: ClassVar[tuple[Metric, ...]] = (
        replace(FIRST_BYTE, unfinished=Unfinished.BOUNDED),
        replace(TOTAL, use=Use.COMPARED, unfinished=Unfinished.BOUNDED),
        replace(HANDSHAKE, use=Use.SHOWN), EARLY, SHARE, BODY,
    )  # fmt: skip
    rates: ClassVar[tuple[Rate, ...]] = ()
    handshake: ClassVar[tuple[Metric, ...]] = (HANDSHAKE,)
    payload: ClassVar[Metric | None] = BODY
    has_client_windows: ClassVar[bool] = False  # those windows are libcurl's

    path: str
    session: str = Session.NEW.value
    discovery: str = field(default=Discovery.FORCED.value, kw_only=True)

    @property
    def resumes(self) -> bool:
        """True: each trial opens a connection that leaves a session."""
        return True

    def spoken(self, answer: Mapping[str, Any]) -> Collection[str]:
        """The ALPN identifier of the measured request."""
        return [answer["negotiated"]["alpn"]]

    def asked(self) -> dict[str, Any]:
        """The request as client/curl.py takes it."""
        return {"path": self.object_path(), "session": str(self.session), "discovers": self.discovers}

    def object_path(self) -> str:
        """Path of the only object."""
        return after(self.server_delay_s, self.path)

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Mismatch of the bytes of the body; empty if none."""
        measured = answer.get("measured") or {}
        if measured.get("status") != 200 or measured["error"] or measured["bytes"] == object_bytes:
            return ""
        return f"the answer had {measured['bytes']} bytes instead of {object_bytes}"

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """Error of one of the two connections; empty if both gave an answer."""
        for name, connection in (
            ("prepared", "the connection that leaves a session"),
            ("measured", "the measured connection"),
        ):
            reply = answer.get(name) or {"error": "not opened"}
            if reply["error"]:
                return f"{connection}: {reply['error']}"
            if not 200 <= reply["status"] < 300:
                return f"{connection}: status {reply['status']}"
        return ""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """Number of answers: 1 or 0."""
        return int((answer.get("measured") or {}).get("status") == 200)

    def wrong_session(self, answer: Mapping[str, Any], *, orderly: bool) -> str:
        """Deviation of the session from the requested one, according to client and server; empty if none.

        Early data that is lost in the network is retransmitted, sometimes after the handshake: that is the network's
        effect. A discovered HTTP/3 has no session, since the first connection was over TCP.
        """
        served, early_bytes = answer["served"], answer["measured"]["early_bytes"]
        if self.session == Session.NEW:
            return "the server resumed a session although none was offered" if served["resumed"] else ""
        if self.discovers:
            return ""
        if not served["resumed"]:
            return "the server resumed no session"
        if self.session == Session.EARLY and early_bytes <= 0:
            refused = (
                f"refused {counted(-early_bytes, 'byte')} of early data" if early_bytes else "was sent no early data"
            )
            return f"the session was resumed, and the server {refused}"
        if self.session == Session.EARLY and orderly and not served["early"]:
            return "early data was accepted, but the server had the request only after the handshake"
        if self.session == Session.RESUMED and early_bytes:
            return "early data was sent although none was requested"
        return ""

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Difference between the answers of the server and of the client; empty if they agree."""
        served = answer["served"]
        if served["count"] != 1:
            return f"the server's log has {counted(served['count'], 'answer')}, the client had one"
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """Lower bounds: the time that the measured connection had; none if it was not opened.

        The time to first byte is known if that came: the rest of the object did not.
        """
        if "began_s" not in answer:
            return {}
        waited_s = max(0.0, timeout_s - answer["began_s"])
        first_s = answer.get("first_byte_s")
        known = {} if first_s is None else {FIRST_BYTE.low_key: first_s, FIRST_BYTE.high_key: first_s}
        return {**{each.low_key: waited_s for each in self.metrics if each.unfinished is Unfinished.BOUNDED}, **known}

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Whether the request was over HTTP/3, if that is discovered: 1 or 0."""
        return share([answer["negotiated"]["alpn"]]) if self.discovers else {}

    def size(self) -> float:
        """Number of requests: two, one of which leaves a session."""
        return 2.0

    def least(self) -> tuple[int, int]:
        """Rounds: two connections, one after the other. Bytes: the object once."""
        return 2, size_of(self.path) or 0

    @classmethod
    def method(cls) -> str:
        """Definition of its time."""
        return (
            "The time to first byte is libcurl's, from before its connection is opened to the first line of the "
            "answer. Over TLS a record is read when it is whole, and HTTP/1.1's first line is in one with up to 16 KB "
            "of its body. Each trial opens two connections, one after the other, for every kind of session: the "
            "first leaves a session and is not measured. The server reports that a session was resumed; both ends "
            "report that early data was accepted."
        )

    def brief(self) -> str:
        """The object's size and the session as a text."""
        words = SESSION_WORDS[Session(self.session)]
        found = f" ({discovered_text(self.offer_if)})" if self.discovers else ""
        return f"one object of {counted(size_of(self.path) or 0, 'byte')} over {words}{found}"

    def line(self, metrics: Mapping[str, float]) -> str:
        """Figures of a trial's line: `   0.201 s to the first byte`."""
        first = self.primary().key
        return f"{metrics[first]:8.3f} s to the first byte" if first in metrics else ""


SessionKey = Annotated[str, values.choice([each.value for each in Session], "a kind of session")]


class TtfbKeys(DiscoveringKeys):
    """Time to first byte, over a new connection or one that resumes a session."""

    model: ClassVar[type[Workload]] = Ttfb
    same_for_all: ClassVar[frozenset[str]] = DiscoveringKeys.same_for_all | {"size"}

    kind: Literal["ttfb"] = key("the kind of the workload")
    size: values.ObjectBytes = key("of the object, generated on demand", USUAL_BYTES, "1kB")
    session: SessionKey = key("`new`, `resumed`, or `early`: resumed, with the request as early data", "new", "new")

    def to_model(self, name: str) -> Ttfb:
        """Convert the keys to the workload of this name."""
        return Ttfb(name, path_of(self.size), self.session)
