"""The workload kind `streams`: an object several times at once, with the time at which each piece of payload came.

client/streams.py carries it out with libcurl: h2load only reports when a response ended. So the pauses of a transfer
show, and which streams stood still when a packet was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from headwind.arm import BROWSER_CONNECTIONS
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.values import whole
from headwind.matrix.workload import DelayedKeys
from headwind.metric import PACKET_GAP, Losses, Metric, Use, Workload
from headwind.workloads.h2load import DONE, FURTHER, REQUEST, TOTAL
from headwind.workloads.objects import AS_BROWSERS, Objects
from servers.objects import path_of

MOST_STREAMS = 100
PAYLOAD_GAP = Metric(
    "payload_gap_max_s", "longest time without payload", "longest payload gap", "s", use=Use.JUDGED,
    meaning="longest time between two pieces of payload that the client could read, on any stream",
    note="between two pieces of payload",
)  # fmt: skip

RECONNECTS = Metric("reconnects", "new connections after one that broke", "reconnects", use=Use.SHOWN)


BLOCKED = Metric(
    "blocked_stream_s", "stream-seconds blocked per lost packet", "blocked per lost packet", "s", use=Use.JUDGED,
    meaning="how long streams between their first and last payload got none, beyond their usual pauses: the sum over "
    "them, divided by the packets that a change of the network dropped", is_after_loss=True,
)  # fmt: skip
BLOCKED_STREAMS = Metric(
    "blocked_streams", "streams that lost packets blocked", "blocked streams", use=Use.SHOWN, is_after_loss=True
)
AROUND_S = 0.3  # before a loss: pauses that are usual; after its end: pauses that it may have caused
LEAST_S = 0.02  # a shorter one is no block: a busy client reads that much late


@dataclass(frozen=True, slots=True)
class Streams(Objects):
    """Workload of `requests` equal objects, all requested at once, whose payload is watched as it comes."""

    kind: ClassVar[str] = "streams"
    program: ClassVar[str] = "streams"
    metrics: ClassVar[tuple[Metric, ...]] = (
        TOTAL, PAYLOAD_GAP, BLOCKED, BLOCKED_STREAMS, replace(DONE, use=Use.COMPARED), replace(REQUEST, use=Use.SHOWN),
        replace(PACKET_GAP, use=Use.SHOWN), RECONNECTS, *FURTHER,
    )  # fmt: skip
    is_drawn: ClassVar[bool] = True
    has_client_windows: ClassVar[bool] = False  # those windows are libcurl's

    reconnect: bool = field(default=False, kw_only=True)  # request what is missing again if the connection breaks

    def after_loss(self, answer: Mapping[str, Any], losses: Sequence[Losses]) -> dict[str, float]:
        """Stream-seconds blocked for each packet that was lost, and the number of streams that were; see `blocks`.

        Losses during which no stream was in progress are left out: nothing is known of them. So are those that dropped
        no packet.
        """
        streams = [[moment / 1000 for moment, _ in stream] for stream in answer.get("arrivals") or ()]
        met = [each for each in losses if each.packets > 0 and any(_is_in_progress(each, own) for own in streams)]
        if not met:
            return {}
        found, lost = [blocks(moments, met) for moments in streams], sum(each.packets for each in met)
        return {BLOCKED.key: sum(found) / lost, BLOCKED_STREAMS.key: sum(block_s > 0 for block_s in found)}

    def asked(self) -> dict[str, Any]:
        """The request as client/streams.py takes it."""
        return {
            "path": self.object_path(),
            "streams": self.requests,
            "connections": self.connections,
            "reconnect": self.reconnect,
        }

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """Bounds as those of h2load, and of the total time: times begin a moment after the program's start."""
        had_s = timeout_s - answer.get("began_s", 0.0)
        return {TOTAL.low_key: had_s, **super(Streams, self).bounds(answer, had_s)}

    def processors(self) -> int:
        """CPUs that the client can use."""
        return 1

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "Streams are equal objects that libcurl requests at once: over HTTP/2 and HTTP/3 on one connection, over "
            "HTTP/1.1 on six, of which each that becomes free takes the next. The client notes to the millisecond when "
            "it could read payload of each. The longest payload gap is the longest time in which it could read none "
            "on any stream, between the first and the last piece."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description."""
        del metrics
        return self._brief(protocols)

    def _brief(self, protocols: Collection[str]) -> str:
        return super(Streams, self)._brief(protocols).replace("object", "stream", 1)


def _is_in_progress(lost: Losses, moments: Sequence[float]) -> bool:
    """Whether payload of a stream came before and after the beginning of a loss."""
    return bool(moments) and moments[0] < lost.from_s < moments[-1]


def blocks(moments: Sequence[float], losses: Iterable[Losses]) -> float:
    """How long a stream stood still because of losses, beyond its usual pauses, in seconds.

    `moments` are those at which payload of it came; losses before or after them are left out. Around a loss are
    AROUND_S, or two latencies if that is longer: the path still delivers what it held. Each pause that ends after the
    beginning and begins before the time around the end is counted once, however many losses are in it, less the longest
    usual one; at least LEAST_S, else 0. Usual are pauses in the time around before the beginning that no earlier loss
    caused.
    """
    pauses = [(begun, ended - begun) for begun, ended in pairwise(moments)]
    found: dict[float, float] = {}  # by the beginning of the pause
    for lost in losses:
        if not _is_in_progress(lost, moments):
            continue
        around_s = max(AROUND_S, 2 * lost.latency_s)
        first_s, last_s = lost.from_s - around_s, lost.until_s + around_s
        before = (took for begun, took in pauses if first_s <= begun and begun + took <= lost.from_s
                  and begun not in found)  # fmt: skip
        usual_s = max(before, default=0.0)
        for begun, took in pauses:
            if begun + took > lost.from_s and begun < last_s and took - usual_s >= LEAST_S:
                found.setdefault(begun, took - usual_s)
    return sum(found.values())


class StreamsKeys(DelayedKeys):
    """Equal objects at once, with the time at which each piece of payload came."""

    model: ClassVar[type[Workload]] = Streams
    same_for_all: ClassVar[frozenset[str]] = DelayedKeys.same_for_all | {"size", "streams"}

    kind: Literal["streams"] = key("the kind of the workload")
    streams: Annotated[int, whole(1, MOST_STREAMS)] = key("number of objects at once", 1)
    size: values.ObjectBytes = key("of each object, generated on demand")
    connections: Annotated[int, whole(1, MOST_STREAMS)] | None = key(
        f"new connections of every protocol; default: {BROWSER_CONNECTIONS['h1']} for h1 and "
        f"{BROWSER_CONNECTIONS['h2']} for h2 and h3",
        None,
    )
    reconnect: values.Truth = key("whether a broken connection is replaced, which requests what is missing", False)

    def to_model(self, name: str) -> Streams:
        """Convert the keys to the workload of this name."""
        return Streams(
            name, self.streams, self.connections or AS_BROWSERS, AS_BROWSERS, path=path_of(self.size),
            reconnect=self.reconnect,
        )  # fmt: skip
