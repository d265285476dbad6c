"""The workload kind `ttfb`: how soon an answer begins over a new connection, a resumed one, or one that asks early.

client/curl.py carries it out: libcurl, since h2load sends no early data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.direction import key
from headwind.matrix.workload import DelayedKeys
from headwind.metric import Better, Metric, Rate, Unfinished, Use, Workload
from headwind.workloads.h2load import BODY, TOTAL
from headwind.workloads.transfer import FIRST_BYTE, HANDSHAKE
from nginx.objects import after, path_of, size_of

USUAL_BYTES = 1000
EARLY = Metric("early_bytes", "bytes of early data that the server accepted", "early data", better=Better.MORE,
               use=Use.SHOWN)  # fmt: skip


class Session(StrEnum):
    """What a connection has of an earlier one."""

    NEW = "new"  # nothing: a full handshake
    RESUMED = "resumed"  # its TLS session
    EARLY = "early"  # its TLS session, and the request goes before the handshake's end (0-RTT, RFC 8446, section 2.3)


SESSION_WORDS = {
    Session.NEW: "a new connection",
    Session.RESUMED: "a connection that resumes a session",
    Session.EARLY: "a connection that resumes a session, with the request as early data",
}


@dataclass(frozen=True, slots=True)
class Ttfb(Workload):
    """One request over one connection."""

    kind: ClassVar[str] = "ttfb"
    program: ClassVar[str] = "curl"
    metrics: ClassVar[tuple[Metric, ...]] = (
        replace(FIRST_BYTE, unfinished=Unfinished.BOUNDED),
        replace(TOTAL, use=Use.COMPARED, unfinished=Unfinished.BOUNDED),
        replace(HANDSHAKE, use=Use.SHOWN), EARLY, BODY,
    )  # fmt: skip
    rates: ClassVar[tuple[Rate, ...]] = ()
    payload: ClassVar[Metric | None] = BODY
    resumes: ClassVar[bool] = True

    path: str
    session: str = Session.NEW.value

    def asked(self) -> dict[str, Any]:
        """As client/curl.py takes it."""
        return {"path": self.object_path(), "session": str(self.session)}

    def object_path(self) -> str:
        """There is only one."""
        return after(self.server_delay_s, self.path)

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Of the one body."""
        measured = answer.get("measured") or {}
        if measured.get("status") != 200 or measured["error"] or measured["bytes"] == object_bytes:
            return ""
        return f"the answer had {measured['bytes']} bytes instead of {object_bytes}"

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """Both connections must have given an answer."""
        for name, what in (
            ("prepared", "the connection that leaves a session"),
            ("measured", "the measured connection"),
        ):
            told = answer.get(name) or {"error": "it was not opened"}
            if told["error"]:
                return f"{what}: {told['error']}"
            if not 200 <= told["status"] < 300:
                return f"{what}: status {told['status']}"
        return ""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """One, or none."""
        return int((answer.get("measured") or {}).get("status") == 200)

    def wrong_session(self, answer: Mapping[str, Any], *, orderly: bool) -> str:
        """What client and server say of the session, where it is not the asked one.

        Early data that is lost on the way comes again, at times after the handshake: that is the network's doing.
        """
        served, early_bytes = answer["served"], answer["measured"]["early_bytes"]
        if self.session == Session.NEW:
            return "the server resumed a session where none was offered" if served["resumed"] else ""
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
            return "early data was sent where none was to be"
        return ""

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """The server answered as often as the client was answered; early only where data was sent early."""
        served = answer["served"]
        if served["count"] != 1:
            return f"the server's log has {counted(served['count'], 'answer')}, the client had one"
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """It takes longer than the measured connection was given; nothing where that did not begin."""
        if "began_s" not in answer:
            return {}
        waited_s = max(0.0, timeout_s - answer["began_s"])
        return {metric.low_key: waited_s for metric in self.metrics if metric.unfinished is Unfinished.BOUNDED}

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Nothing."""
        del answer
        return {}

    def size(self) -> float:
        """Two requests, one of which leaves a session."""
        return 2.0

    def at_once(self) -> tuple[int, int]:
        """One after the other."""
        return 1, 1

    def processors(self) -> int:
        """One."""
        return 1

    def sentence(self, protocols: Collection[str]) -> str:
        """Its object and its session."""
        del protocols
        return f"{self.brief()}."

    @classmethod
    def method(cls) -> str:
        """Where its time begins and ends."""
        return (
            "The time to first byte is libcurl's, from before its connection is opened to the first line of the "
            "answer. Over TLS a record is read when it is whole, and HTTP/1.1's first line is in one with up to 16 KB "
            "of its body. Each trial opens two connections, one after the other, whatever the session: the first "
            "leaves a session and is not measured. That a session was resumed is the server's word, that early data "
            "was accepted is both ends'."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """`one object of 1,000 bytes over a new connection`."""
        del metrics, protocols
        return self.brief()

    def brief(self) -> str:
        """Its size and its session."""
        words = SESSION_WORDS[Session(self.session)]
        return f"one object of {counted(size_of(self.path) or 0, 'byte')} over {words}"

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """Nothing: there is one request."""
        del metrics
        return ""

    def line(self, metrics: Mapping[str, float]) -> str:
        """`   0.201 s to the first byte`."""
        first = self.primary().key
        return f"{metrics[first]:8.3f} s to the first byte" if first in metrics else ""


SessionKey = Annotated[str, values.choice([each.value for each in Session], "a kind of session")]


class TtfbKeys(DelayedKeys):
    """How soon an answer begins, over a new connection or one that resumes a session."""

    model: ClassVar[type[Workload]] = Ttfb
    same_for_all: ClassVar[frozenset[str]] = DelayedKeys.same_for_all | {"size"}

    kind: Literal["ttfb"] = key("the kind of the workload")
    size: values.ObjectBytes = key("of the object, made on demand", USUAL_BYTES, "1kB")
    session: SessionKey = key("`new`, `resumed`, or `early`: resumed, with the request as early data", "new", "new")

    def to_model(self, name: str) -> Ttfb:
        """The workload of this name."""
        return Ttfb(name, path_of(self.size), self.session)
