"""The workload kind `objects`: a number of objects of one size, fetched as a browser does.

It uses a budget of connections for each protocol, and requests all objects at once. client/h2load.py carries it out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from headwind.arm import BROWSER_CONNECTIONS
from headwind.format import arm_name, counted, enumerated
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake
from headwind.matrix.values import whole
from headwind.matrix.workload import CompetedKeys
from headwind.metric import Metric, Use, Workload
from headwind.workloads.h2load import DONE, FURTHER, MOST_CONNECTIONS, MOST_STREAMS, REQUEST, TAIL, TOTAL, H2load
from servers.objects import path_of, size_of

WAIT = "HTTP/1.1 sends a request only when a connection is free, and leaves that wait out"
UNLIKE = f"from sending to last byte; {WAIT}"
AS_BROWSERS = 0  # value of Objects.connections and Objects.streams for the protocol's budget


@dataclass(frozen=True, slots=True)
class Objects(H2load):
    """Workload of `requests` objects of one size, each fetched once, all requested as soon as connections allow."""

    kind: ClassVar[str] = "objects"
    metrics: ClassVar[tuple[Metric, ...]] = (
        TOTAL,
        DONE,
        *(replace(each, use=Use.COMPARED, note=UNLIKE, meaning=f"{each.meaning}; {WAIT}") for each in (REQUEST, TAIL)),
        *FURTHER,
    )

    def over(self, protocol: str) -> Self:
        """The workload over the protocol's connections.

        HTTP/1.1 has one request at a time on each: no browser pipelines.
        """
        connections = self.connections or min(BROWSER_CONNECTIONS[protocol], self.requests)
        return replace(self, connections=connections, streams=1 if protocol == "h1" else self.requests)

    def at_once(self) -> tuple[int, int]:
        """Connections, and concurrent requests on each; before a protocol is known, as over one connection."""
        return super(Objects, self if self.connections else self.over("h2")).at_once()

    def sentence(self, protocols: Collection[str]) -> str:
        """Description of the workload with its connections."""
        one = " Over HTTP/1.1 each connection has one request at a time." if "h1" in protocols else ""
        return f"{self._brief(protocols)}, all requested at once.{one}"

    @classmethod
    def method(cls) -> str:
        """Definition of its times, and the differences from a browser."""
        return (
            "The total time of objects is from the start of the client (h2load) to the last byte of the last of them, "
            "connections opened within it. They are assigned to connections beforehand, while a browser gives the next "
            "one to the first free connection. Nothing is parsed, and no object waits for another one."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description: `60 objects of 10,000 bytes over 1 new connection; not a page load`."""
        del metrics
        return f"{self._brief(protocols)}; not a page load"

    def brief(self) -> str:
        """Objects, size and connections as a text."""
        return self._brief(BROWSER_CONNECTIONS)

    def _brief(self, protocols: Collection[str]) -> str:
        size = counted(size_of(self.path) or 0, "byte")
        return f"{counted(self.requests, 'object')} of {size} over {self._over(protocols)}"

    def _over(self, protocols: Collection[str]) -> str:
        if self.connections:
            return counted(self.connections, "new connection")
        alike: dict[int, list[str]] = {}
        for protocol in (each for each in BROWSER_CONNECTIONS if each in protocols):
            alike.setdefault(min(BROWSER_CONNECTIONS[protocol], self.requests), []).append(arm_name(protocol))
        first, *others = alike.items()
        over = counted(first[0], "new connection")
        if others:
            over = f"{over} ({enumerated(first[1])})" + "".join(f" or {n} ({enumerated(names)})" for n, names in others)
        return over


class ObjectsKeys(CompetedKeys):
    """Objects of one size, fetched as a browser does: all at once, over few connections."""

    model: ClassVar[type[Workload]] = Objects
    same_for_all: ClassVar[frozenset[str]] = CompetedKeys.same_for_all | {"size"}

    kind: Literal["objects"] = key("the kind of the workload")
    requests: Annotated[int, whole(1, MOST_STREAMS)] = key("number of objects, each fetched once")
    size: values.ObjectBytes = key("of each object, generated on demand")
    connections: Annotated[int, whole(1, MOST_CONNECTIONS)] | None = key(
        f"new connections of every protocol; default: {BROWSER_CONNECTIONS['h1']} for h1 and "
        f"{BROWSER_CONNECTIONS['h2']} for h2 and h3",
        None,
    )

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise Slips if there are more connections than objects."""
        if self.connections and self.connections > self.requests:
            message = f"{self.connections} connections are more than the {counted(self.requests, 'object')}"
            raise Slips([Slip(("connections",), Mistake(message, "at most one for each"))])

    def to_model(self, name: str) -> Objects:
        """Convert the keys to the workload of this name."""
        return Objects(name, self.requests, self.connections or AS_BROWSERS, AS_BROWSERS, path=path_of(self.size))
