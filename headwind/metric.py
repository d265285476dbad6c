"""Data classes of metrics, and of the workloads that give them; they know nothing of networks or of a run.

Each kind of workload is a file in headwind/workloads/; no other file of the host names a metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self


class Better(StrEnum):
    """Which values of a metric are the good ones."""

    LESS = "less"
    MORE = "more"


class Use(StrEnum):
    """What is made of a metric."""

    JUDGED = "judged"  # it has a verdict
    COMPARED = "compared"  # an interval beside the verdicts, and no verdict
    SHOWN = "shown"  # a figure of each arm
    KEPT = "kept"  # in files for other programs only


class Unfinished(StrEnum):
    """What a trial that did not do its work tells of a metric."""

    ABOVE_TIMEOUT = "above the timeout"  # where it was stopped: it would have taken longer; failed, it tells nothing
    BOUNDED = "bounded"  # where it was stopped: what Workload.bounds says; failed, it tells nothing
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a trial, 0 or more, in SI units. The first judged metric of a workload is its primary one."""

    key: str  # in results and files; ends in the unit, where it has one
    label: str  # in sentences: "median time per request"
    heading: str  # over columns: "median request"
    unit: str = ""  # as headwind.format knows them: "s", "bps", "per_s", "ratio"
    better: Better = Better.LESS
    use: Use = Use.KEPT
    unfinished: Unfinished = Unfinished.NOTHING
    meaning: str = ""  # from when to when, in a few words, for the key of a chart
    note: str = ""  # what a reader has to know where it says otherwise than the primary one: "which ..."

    def __post_init__(self) -> None:
        if self.unit and not self.key.endswith(f"_{self.unit}"):
            raise ValueError(f"the name of a metric ends in its unit: {self.key} is not in {self.unit}")

    def __str__(self) -> str:
        return self.label

    @property
    def low_key(self) -> str:
        """Under which a trial that was stopped keeps the least that this can be: `request_p50_low_s`."""
        return self._end_key("low")

    @property
    def high_key(self) -> str:
        """The same for the most."""
        return self._end_key("high")

    def _end_key(self, end: str) -> str:
        return f"{self.key.removesuffix(f'_{self.unit}')}_{end}_{self.unit}" if self.unit else f"{self.key}_{end}"


# What any workload costs the testbed, as the containers' control groups count it.
PROCESSOR_TIMES = tuple(
    Metric(f"{host}_cpu_s", f"processor time of the {host}", f"{host} CPU", "s", use=Use.SHOWN)
    for host in ("client", "router", "server")
)
SERVER_TIME = PROCESSOR_TIMES[-1]
# What any workload took of the network, and where it stood still, as the hosts count it.
SILENCE = Metric("silence_s", "longest time without a packet", "silence", "s")
WIRE_PACKETS = Metric("wire_packets", "packets that both ends sent", "packets")
WIRE_BYTES = Metric("wire_bytes", "bytes that both ends sent, with all headers", "wire bytes")
WIRE_DOWN_BYTES = Metric("wire_down_bytes", "bytes of those that the server sent", "bytes down")
RESENT = Metric("tcp_resent", "TCP segments that both ends sent again", "resent")
TIMEOUTS = Metric("tcp_timeouts", "TCP's retransmission timers that ran out", "timeouts")
FAST_RESENT = Metric("tcp_fast_resent", "TCP segments that acknowledgements had sent again", "fast")
LOSS_PROBES = Metric("tcp_loss_probes", "TCP's tail loss probes", "probes")
SYN_RESENT = Metric("tcp_syn_resent", "TCP's openings that were sent again", "SYN again")
SPURIOUS = Metric("tcp_spurious_timeouts", "TCP's timeouts that were found to be needless", "needless timeouts")
NEEDLESS = Metric("tcp_needless", "TCP segments that were sent again and had arrived", "needless")
BUSY = Metric("processors_busy", "processors that all three kept busy, on average", "processors")
MACHINE = Metric("machine_busy_ratio", "share of the machine's processors in use, niced work not counted", "machine",
                 "ratio")  # fmt: skip
STOLEN = Metric("machine_stolen_ratio", "share of the machine's processors that its own host kept from it", "stolen",
                "ratio")  # fmt: skip
PRESSURE = Metric("pressure_ratio", "share of the time in which something waited for a processor", "pressure", "ratio")


@dataclass(frozen=True, slots=True)
class Rate:
    """What a finished trial moves in a second, when it takes the median time of many: `times` the metric `amount`."""

    key: str  # ends in the unit, as a metric's
    heading: str
    amount: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Workload(ABC):
    """What is fetched and how. Each kind of workload is a file in headwind/workloads/, with settings of its own."""

    kind: ClassVar[str]
    program: ClassVar[str]  # the file in client/ that carries it out
    metrics: ClassVar[tuple[Metric, ...]]
    rates: ClassVar[tuple[Rate, ...]] = ()
    progress: ClassVar[Mapping[float, Metric]] = {}  # in s: when so large a share of it was done, from few to all
    handshake: ClassVar[tuple[Metric, ...]] = ()  # in s: the median and the slowest of a trial, if it has any
    given_up: ClassVar[Metric | None] = None  # packets that a client took for lost, where the kernel knows of none
    payload: ClassVar[Metric | None] = None  # the bytes that it is about
    resumes: ClassVar[bool] = False  # whether its connections may resume sessions

    name: str
    server_delay_s: float = field(default=0.0, kw_only=True)  # between a request's arrival and its answer's beginning
    workers: int = field(default=1, kw_only=True)  # of the server
    tcp_congestion: str = field(default="", kw_only=True)  # of both ends; empty: as the matrix says
    quic_congestion: str = field(default="", kw_only=True)

    @property
    def is_logged(self) -> bool:
        """Whether the server keeps a log of its answers (impair/messages.py, Answers)."""
        return self.resumes or self.server_delay_s > 0

    @classmethod
    def with_use(cls, *uses: Use) -> tuple[Metric, ...]:
        """The metrics of which this is made, in their order."""
        return tuple(metric for metric in cls.metrics if metric.use in uses)

    @classmethod
    def primary(cls) -> Metric:
        """The metric that tables, sweeps and charts go by."""
        return cls.with_use(Use.JUDGED)[0]

    @classmethod
    def judged(cls, keys: Collection[str] | None) -> tuple[Metric, ...]:
        """The metrics that have a verdict where a matrix names these (None: those that usually have), in their order.

        Only what is judged or compared otherwise can be named.
        """
        if keys is None:
            return cls.with_use(Use.JUDGED)
        return tuple(metric for metric in cls.with_use(Use.JUDGED, Use.COMPARED) if metric.key in keys)

    def over(self, protocol: str) -> Self:
        """As it is carried out over `h1`, `h2` or `h3`, for a kind in which that depends on the protocol."""
        del protocol
        return self

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """What the client's operation `run` is asked for, besides program, protocol, server and timeout."""

    @abstractmethod
    def object_path(self) -> str:
        """Path and query of an object that it fetches: of this one the content is compared."""

    @abstractmethod
    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """How the bytes that a client counted differ from what objects of this size have; empty where they do not."""

    @abstractmethod
    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """What a client that ended in time left undone, from its answer: the trial failed. Empty: nothing."""

    def wrong_session(self, answer: Mapping[str, Any], *, orderly: bool) -> str:
        """How the session that both ends saw is not the asked one, for kinds that resume any; empty where it is.

        `orderly`: what the client sends arrives whole, once, and in order.
        """
        del answer, orderly
        return ""

    @abstractmethod
    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """What in a client's answer does not add up: then the lab cannot trust it. Empty when all does."""

    def answered(self, answer: Mapping[str, Any]) -> int:
        """How many answers the client counted, of those that the server logs. For kinds that can be logged."""
        del answer
        return 0

    @abstractmethod
    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """What the answer of a client that was stopped after `timeout_s` tells of its metrics.

        The ends that are known, under `low_key` and `high_key` of metrics of which Unfinished.BOUNDED is said.
        """

    @abstractmethod
    def further(self, answer: Mapping[str, Any]) -> dict[str, float]:
        """Metrics that the answer of a client that ended by itself holds besides its own: those of `progress`."""

    @abstractmethod
    def size(self) -> float:
        """About how many requests it makes: for the first guess of how long it takes."""

    @abstractmethod
    def at_once(self) -> tuple[int, int]:
        """How many connections it uses side by side, and how many answers come at once on each."""

    @abstractmethod
    def processors(self) -> int:
        """On how many processors at once its client works at most."""

    @abstractmethod
    def sentence(self, protocols: Collection[str]) -> str:
        """What the client fetches over these protocols, for the method of a report."""

    @classmethod
    @abstractmethod
    def method(cls) -> str:
        """How it measures, for the method of a report."""

    @abstractmethod
    def in_short(self, metrics: Sequence[Mapping[str, float]], protocols: Collection[str]) -> str:
        """What it is in plain words, and what it is not, for the top of a report.

        `metrics` are those of its trials, `protocols` those that are compared.
        """

    @abstractmethod
    def brief(self) -> str:
        """Every setting, in a few words."""

    @abstractmethod
    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """What trials that failed got done, from their metrics; empty where none of them says."""

    @abstractmethod
    def line(self, metrics: Mapping[str, float]) -> str:
        """The figures of a trial while the run goes on; empty where it measured none."""
