"""Data classes of metrics, and of the workloads that produce them, independent of networks and runs.

Each kind of workload is a file in headwind/workloads/; no other file of the host names a metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from headwind.servers import Offer
from headwind.site import SiteFile


class Better(StrEnum):
    """The direction of a metric: whether low or high values are better."""

    LESS = "less"
    MORE = "more"


class Use(StrEnum):
    """The use of a metric."""

    JUDGED = "judged"  # it has a verdict
    COMPARED = "compared"  # an interval next to the verdicts, and no verdict
    SHOWN = "shown"  # one figure per arm
    KEPT = "kept"  # in files for other programs only


class Unfinished(StrEnum):
    """The value of a metric in a trial that did not finish."""

    ABOVE_TIMEOUT = "above the timeout"  # stopped: it would have taken longer; failed: unknown
    BOUNDED = "bounded"  # stopped: see Workload.bounds; failed: unknown
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a trial, 0 or more, in SI units. The first judged metric of a workload is its primary one."""

    key: str  # in results and files; ends in the unit, where it has one
    label: str  # in sentences: "median time per request"
    heading: str  # over columns: "median request"
    unit: str = ""  # as headwind.format knows them: "s", "bps", "per_s", "ratio"
    better: Better = Better.LESS
    use: Use = Use.KEPT
    unfinished: Unfinished = Unfinished.NOTHING
    meaning: str = ""  # from when to when, in a few words, for the key of a chart
    note: str = ""  # explanation if its order differs from the primary one's: "which ..."
    is_after_loss: bool = False  # see Workload.after_loss: other networks give none
    is_from_sending: bool = False  # counts from when a request is sent, so without its wait before that

    def __post_init__(self) -> None:
        if self.unit and not self.key.endswith(f"_{self.unit}"):
            raise ValueError(f"the name of a metric ends in its unit: {self.key} is not in {self.unit}")

    def __str__(self) -> str:
        return self.label

    @property
    def low_key(self) -> str:
        """The key of its lower bound in a trial that was stopped: `request_p50_low_s`."""
        return self._end_key("low")

    @property
    def high_key(self) -> str:
        """The key of its upper bound in a trial that was stopped."""
        return self._end_key("high")

    def _end_key(self, end: str) -> str:
        return f"{self.key.removesuffix(f'_{self.unit}')}_{end}_{self.unit}" if self.unit else f"{self.key}_{end}"


# CPU use of any workload, from the containers' control groups.
CPU_TIMES = tuple(
    Metric(f"{host}_cpu_s", f"CPU time of the {host}", f"{host} CPU", "s", use=Use.SHOWN)
    for host in ("client", "router", "server")
)
SERVER_TIME = CPU_TIMES[-1]
MEMORY = Metric("server_memory_bytes", "peak memory of the server's processes", "server memory", "bytes", use=Use.SHOWN)
# Network use of any workload, and its pauses, from the hosts' counters. A gap may be longer by the time between two
# looks at them, twice (impair/endpoint/packet_gap.py): 0 is no gap above that.
GAP_ERROR_S = 0.1
PACKET_GAP = Metric("packet_gap_max_s", "longest time without a packet", "longest packet gap", "s")
WIRE_PACKETS = Metric("wire_packets", "packets sent by both ends", "packets")
WIRE_BYTES = Metric("wire_bytes", "bytes sent by both ends, with all headers", "wire bytes")
WIRE_DOWN_BYTES = Metric("wire_down_bytes", "bytes sent by the server, with all headers", "bytes down")
RETRANSMITS = Metric("tcp_retransmits", "TCP segments that either end retransmitted", "retransmits")
RTOS = Metric("tcp_rtos", "TCP retransmission timers that expired", "RTOs")
FAST_RETRANSMITS = Metric(
    "tcp_fast_retransmits", "TCP segments retransmitted because of acknowledgements", "fast retransmits"
)
LOSS_PROBES = Metric("tcp_loss_probes", "tail loss probes of TCP", "tail loss probes")
SYN_RETRANSMITS = Metric("tcp_syn_retransmits", "retransmitted SYN and SYN-ACK segments", "SYN retransmits")
SPURIOUS_RTOS = Metric("tcp_spurious_rtos", "RTOs of TCP that were found to be spurious", "spurious RTOs")
SPURIOUS_RETRANSMITS = Metric(
    "tcp_spurious_retransmits", "TCP segments retransmitted although they had arrived", "spurious retransmits"
)
BUSY = Metric("cpus_busy", "CPUs that all three hosts kept busy, on average", "CPUs")
MACHINE = Metric("machine_busy_ratio", "share of the machine's CPUs in use, without niced work", "machine",
                 "ratio")  # fmt: skip
STEAL = Metric("machine_steal_ratio", "share of the machine's CPUs that its hypervisor gave to others", "CPU steal",
                "ratio")  # fmt: skip
PRESSURE = Metric("pressure_ratio", "share of the time in which a task waited for a CPU", "pressure", "ratio")


# The division of a bottleneck between the measured client and competing downloads.
SHARE = Metric(
    "download_share_ratio", "share of the bytes delivered to it and to competing downloads", "share", "ratio",
    Better.MORE,
)  # fmt: skip
FAIRNESS = Metric("jain_ratio", "Jain's fairness index", "Jain's index", "ratio", Better.MORE)
COMPETING = Metric("competing_bps", "goodput of the competing downloads", "competing", "bps", Better.MORE)
KEPT = Metric(
    "competing_kept_ratio", "share of their goodput that the competing downloads kept", "kept by competitors", "ratio",
    Better.MORE,
)  # fmt: skip
SHARED = (SHARE, FAIRNESS, COMPETING, KEPT)


@dataclass(frozen=True, slots=True)
class Losses:
    """Packets of the downlink that the schedule of a network dropped between two moments.

    Times in s since the client's first packet. `until_s`: the end of the loss, `from_s` if only one packet was to be
    lost. `latency_s`: the longest time that the path can hold a packet.
    """

    from_s: float
    until_s: float
    packets: int
    latency_s: float


@dataclass(frozen=True, slots=True)
class Competing:
    """Bulk downloads during a trial, from the same server: `flows` connections over `protocol`, h1 or h2."""

    protocol: str
    flows: int = 1

    def __str__(self) -> str:
        return f"{self.flows} competing download{'s' if self.flows > 1 else ''} over {self.protocol}"


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of finished trials: `times` the metric `amount`, divided by the median time."""

    key: str  # ends in the unit, as a metric's does
    heading: str
    amount: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Workload(ABC):
    """Base class of workloads. Each kind is a file in headwind/workloads/, with its own settings."""

    kind: ClassVar[str]
    written: ClassVar[str] = ""  # how a matrix has the kind, if not by its name
    program: ClassVar[str] = ""  # the file in client/ that carries it out; empty: `browser` does
    metrics: ClassVar[tuple[Metric, ...]]
    rates: ClassVar[tuple[Rate, ...]] = ()
    progress: ClassVar[Mapping[float, Metric]] = {}  # in s: when each share of it was done, ascending
    handshake: ClassVar[tuple[Metric, ...]] = ()  # in s: median and slowest of a trial, or the only one
    is_drawn: ClassVar[bool] = False  # whether the report shows the requests of a trial one by one
    payload: ClassVar[Metric | None] = None  # the bytes of its content
    has_client_windows: ClassVar[bool] = True  # whether its client's windows and buffers can be set
    protocols: ClassVar[tuple[str, ...]] = ()  # over which its client can carry it out; empty: all

    name: str
    server_delay_s: float = field(default=0.0, kw_only=True)  # between a request's arrival and the start of its answer
    workers: int = field(default=1, kw_only=True)  # of the server
    tcp_congestion: str = field(default="", kw_only=True)  # of both ends; empty: as the matrix says
    quic_congestion: str = field(default="", kw_only=True)
    browser: str = field(default="", kw_only=True)  # that carries it out, next to the client; empty: `program` does
    competing: Competing | None = field(default=None, kw_only=True)
    offer_if: str = field(default="", kw_only=True)  # when the server offers HTTP/3 (servers/offer.py); empty: always
    files: tuple[SiteFile, ...] = field(default=(), kw_only=True)  # of the user's site; empty: one of the lab's objects

    @classmethod
    def kind_key(cls) -> str:
        """The word that a matrix has after `kind:`, such as `page` for a page with parts."""
        return cls.written.partition("`kind: ")[2].partition("`")[0] or cls.kind

    @property
    def resumes(self) -> bool:
        """Whether its connections may resume sessions."""
        return False

    @property
    def discovers(self) -> bool:
        """Whether it starts over TCP and follows the server's offer of HTTP/3."""
        return False

    @property
    def is_repeat(self) -> bool:
        """Whether a trial loads its page before, with the same browser and network, and measures the second load."""
        return False

    @property
    def is_logged(self) -> bool:
        """Whether the server keeps a log of its answers (impair/messages.py, Answers)."""
        return self.resumes or self.server_delay_s > 0

    @property
    def needs(self) -> frozenset[Offer]:
        """Features of the server without which the workload cannot be carried out."""
        needed = {
            Offer.ALT_SVC: self.discovers, Offer.DELAY: self.server_delay_s > 0,
            Offer.OFFER_IF: self.discovers and bool(self.offer_if), Offer.SESSIONS: self.resumes,
            Offer.WORKERS: self.workers > 1,
        }  # fmt: skip
        return frozenset(offer for offer, is_needed in needed.items() if is_needed)

    @classmethod
    def with_use(cls, *uses: Use) -> tuple[Metric, ...]:
        """The metrics with this use, in order."""
        return tuple(metric for metric in cls.metrics if metric.use in uses)

    @classmethod
    def primary(cls) -> Metric:
        """The metric that tables, sweeps and charts use."""
        return cls.with_use(Use.JUDGED)[0]

    @classmethod
    def judged(cls, keys: Collection[str] | None) -> tuple[Metric, ...]:
        """The metrics with a verdict, in order; `named` by a matrix, else (None) the default ones.

        Only judged metrics and otherwise compared ones can be named.
        """
        if keys is None:
            return cls.with_use(Use.JUDGED)
        return tuple(metric for metric in cls.with_use(Use.JUDGED, Use.COMPARED) if metric.key in keys)

    def over(self, protocol: str) -> Self:
        """The workload over `h1`, `h2` or `h3`, for kinds that depend on the protocol."""
        del protocol
        return self

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """Arguments of the client's operation `run`, besides program, protocol, server and timeout."""

    @abstractmethod
    def object_path(self) -> str:
        """Path and query of an object that it fetches, whose size `wrong_size` takes."""

    def object_paths(self) -> tuple[str, ...]:
        """The paths of all objects that it fetches."""
        return (self.object_path(),)

    def compared_path(self, block: int) -> str:
        """The path of the object whose content is compared after the trials of a block, counted from 0."""
        del block
        return self.object_path()

    @abstractmethod
    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """How the bytes that a client counted differ from the objects' size; empty if they do not."""

    @abstractmethod
    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """The work that a client left undone although it ended in time: the trial failed. Empty: none."""

    def wrong_session(self, answer: Mapping[str, Any], *, orderly: bool) -> str:
        """How the session that both ends saw differs from the requested one; empty if it does not.

        `orderly`: what the client sends arrives whole, once, and in order.
        """
        del answer, orderly
        return ""

    @abstractmethod
    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Inconsistency in a client's answer, which makes it unusable; empty if there is none."""

    def is_over(self, alpn: str, answer: Mapping[str, Any]) -> bool:
        """Whether all requests of a client's answer used the protocol with this ALPN identifier."""
        return bool(answer["negotiated"]["alpn"] == alpn)

    def answered(self, answer: Mapping[str, Any]) -> int:
        """The number of answers that the client counted and the server logs, for kinds with a log."""
        del answer
        return 0

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """Bounds of metrics, from the answer of a client that was stopped after `timeout_s`.

        The known ends, under `low_key` and `high_key` of the metrics with Unfinished.BOUNDED; none by default: the
        client reports only when it ends by itself.
        """
        del answer, timeout_s
        return {}

    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Further metrics in the answer of a client that ended by itself, such as those of `progress`."""
        del answer
        return {}

    def after_loss(self, answer: Mapping[str, Any], losses: Sequence[Losses]) -> dict[str, float]:
        """Metrics of what followed when the schedule of a network dropped packets of the downlink.

        Only for kinds that watch the payload as it comes.
        """
        del answer, losses
        return {}

    @abstractmethod
    def size(self) -> float:
        """Approximate number of requests, for the first estimate of its duration."""

    def at_once(self) -> tuple[int, int]:
        """Number of parallel connections, and of concurrent answers on each; by default one."""
        return 1, 1

    def pipelines(self) -> bool:
        """True if a connection of HTTP/1.1 gets a further request before the answer to the one before."""
        return False

    def least(self) -> tuple[int, int]:
        """Minimum work of any trial: sequential requests (each waits for an answer), and bytes of bodies."""
        return 1, 0

    def processors(self) -> int:
        """The largest number of CPUs that its client can use; by default one."""
        return 1

    def sentence(self, protocols: Collection[str]) -> str:
        """The requests over these protocols, as a sentence for the method of a report."""
        del protocols
        return f"{self.brief()}."

    @classmethod
    @abstractmethod
    def method(cls) -> str:
        """How it measures, for the method of a report."""

    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """A short description for the top of a report, with what it does not represent; `brief` by default.

        `metrics` are those of its trials, `protocols` those that are compared.
        """
        del metrics, protocols
        return self.brief()

    @abstractmethod
    def brief(self) -> str:
        """Every setting, in a few words."""

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """Completed work of trials that failed, from their metrics; empty if unknown, as it is by default."""
        del metrics
        return ""

    @abstractmethod
    def line(self, metrics: Mapping[str, float]) -> str:
        """The figures of a trial during the run; empty if it measured none."""
