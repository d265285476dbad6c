"""The workload kind `transfer`: one object over a new connection, with its total time and time to first byte.

client/h2load.py carries it out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.workload import CompetedKeys
from headwind.metric import Metric, Rate, Use, Workload
from headwind.workloads.h2load import BODY, FURTHER, GIVEN_UP, TOTAL, H2load
from servers.objects import path_of, size_of

FIRST_BYTE = Metric("ttfb_s", "time to first byte", "first byte", "s", use=Use.JUDGED)
HANDSHAKE = Metric("handshake_s", "time of the handshake", "handshake", "s", use=Use.COMPARED)
GOODPUT = next(metric for metric in FURTHER if metric.key == "goodput_bps")
# Of h2load, whose first byte over HTTP/2 and HTTP/3 may be of the server's settings: `kind: ttfb` has the answer's.
FIRST_BYTE_OF_ANY = replace(
    FIRST_BYTE, note="over HTTP/2 and HTTP/3 maybe of the server's settings, before the answer", use=Use.COMPARED
)
# metric -> column of the client's samples, which have one value for each connection
_COLUMNS = {FIRST_BYTE.key: "ttfb_s", HANDSHAKE.key: "connect_s"}


@dataclass(frozen=True, slots=True)
class Transfer(H2load):
    """Workload of one request over one connection."""

    kind: ClassVar[str] = "transfer"
    metrics: ClassVar[tuple[Metric, ...]] = (
        TOTAL, FIRST_BYTE_OF_ANY, replace(GOODPUT, use=Use.COMPARED), HANDSHAKE, BODY, GIVEN_UP,
    )  # fmt: skip
    rates: ClassVar[tuple[Rate, ...]] = H2load.rates[1:]
    progress: ClassVar[Mapping[float, Metric]] = {}
    handshake: ClassVar[tuple[Metric, ...]] = (HANDSHAKE,)

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Times of handshake and first byte from the opening of the connection, and QUIC's counts."""
        columns = answer.get("samples") or {}
        found = {key: columns[name][0] for key, name in _COLUMNS.items() if columns.get(name)}
        return found | {key: value for key, value in super(Transfer, self).further(answer).items()
                        if key.startswith("quic_")}  # fmt: skip

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """No bounds except the timeout: h2load reports a connection only after it has ended by itself."""
        del answer, timeout_s
        return {}

    def sentence(self, protocols: Collection[str]) -> str:
        """Description of the workload."""
        del protocols
        return f"{self.brief()}."

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "The total time of a transfer is from the start of the client (h2load) to the object's last byte, with the "
            "handshake of its connection. The time to first byte begins with the opening of the connection and ends "
            "with the first byte that can be read after the handshake. Over HTTP/2 and HTTP/3 it may belong to the "
            "server's settings, which come just before the answer. Over TLS a record is read when it is whole; "
            "nginx's have up to 16 KB, more than TCP's first flight holds. Goodput is the bits of the object over "
            "the total time."
        )

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description: `one object of 15,000 bytes over a new connection`."""
        del metrics, protocols
        return self.brief()

    def brief(self) -> str:
        """The object's size as a text."""
        return f"one object of {counted(size_of(self.path) or 0, 'byte')} over a new connection"

    def line(self, metrics: Mapping[str, float]) -> str:
        """Figures of a trial's line: `   2.130 s     470.0 kbit/s`."""
        if TOTAL.key not in metrics:
            return ""
        return f"{metrics[TOTAL.key]:8.3f} s {metrics.get(GOODPUT.key, 0) / 1000:9.1f} kbit/s"


class TransferKeys(CompetedKeys):
    """A single object over a new connection."""

    model: ClassVar[type[Workload]] = Transfer
    same_for_all: ClassVar[frozenset[str]] = CompetedKeys.same_for_all | {"size"}

    kind: Literal["transfer"] = key("the kind of the workload")
    size: values.ObjectBytes = key("of the object, generated on demand")

    def to_model(self, name: str) -> Transfer:
        """Convert the keys to the workload of this name."""
        return Transfer(name, 1, 1, 1, path=path_of(self.size))
