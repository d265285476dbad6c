"""The experiment nouns: what is measured, in which order, and what came of it.

Frozen dataclasses, SI units, parsed once at the edge (matrix.py). The network nouns are in impair/profile.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from impair.profile import Direction, Profile


class HeadwindError(Exception):
    """The root of every error that the lab explains to a person: what was tried, where, and what to do next."""

    exit_code = 1


class UsageError(HeadwindError):
    """A mistake in matrix.yaml or on the command line; nothing was started."""

    exit_code = 2


class Protocol(StrEnum):
    """h1, h2, h3: HTTP/1.1, HTTP/2 and HTTP/3, all over TLS 1.3."""

    H1 = "h1"
    H2 = "h2"
    H3 = "h3"

    @property
    def alpn(self) -> str:
        """The ALPN identifier (RFC 7301) that proves the protocol was spoken."""
        return {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[self.value]


@dataclass(frozen=True, slots=True)
class Workload:
    """What h2load fetches: `requests` in total over `connections`, at most `streams` at once on each."""

    name: str
    requests: int
    connections: int
    streams: int  # requests in flight at once on each connection: streams of h2 and h3, pipelined on h1
    threads: int = 1
    path: str = "/"  # the object that every request fetches


@dataclass(frozen=True, slots=True)
class Condition:
    """One cell of the matrix: protocols are compared inside it."""

    profile: Profile
    workload: Workload

    @property
    def id(self) -> str:
        """`profile/workload`, unique inside a matrix."""
        return f"{self.profile.name}/{self.workload.name}"


@dataclass(frozen=True, slots=True)
class Congestion:
    """Congestion control of both endpoints: the kernel's for TCP, the libraries' for QUIC."""

    tcp: str = "cubic"
    quic: str = "cubic"


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole experiment. `source` is the text it was parsed from, `path` where that was."""

    protocols: tuple[Protocol, ...]
    conditions: tuple[Condition, ...]
    repeat: int  # blocks per condition
    timeout_s: float  # of one trial
    seed: int
    congestion: Congestion = Congestion()
    title: str = ""
    source: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One condition, one seed for each direction, every protocol once, in `order`."""

    condition: Condition
    index: int  # 0, 1, ... within the condition
    order: tuple[Protocol, ...]
    seeds: Mapping[Direction, int]

    def trials(self) -> tuple[Trial, ...]:
        """The block's trials, in the order in which they run."""
        return tuple(Trial(self, position, protocol) for position, protocol in enumerate(self.order))


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of one protocol in one block."""

    block: Block
    position: int  # 0 is the first of its block
    protocol: Protocol

    @property
    def id(self) -> str:
        """`profile/workload#block/protocol`, unique inside a run."""
        return f"{self.block.condition.id}#{self.block.index}/{self.protocol.value}"


class Outcome(StrEnum):
    """What came of a trial. Only `invalid`, `lab-error` and `skipped` may leave the analysis; all are counted."""

    OK = "ok"  # every request succeeded
    FAILED = "failed"  # the client finished, but some requests failed
    TIMEOUT = "timeout"  # the client was stopped at timeout_s: its time is above it
    WRONG_PROTOCOL = "wrong-protocol"  # another protocol than the asked one was negotiated
    INVALID = "invalid"  # the impairment was not proven
    LAB_ERROR = "lab-error"  # the lab failed; retried and counted
    SKIPPED = "skipped"  # never started


DATA_OUTCOMES = frozenset({Outcome.OK, Outcome.FAILED, Outcome.TIMEOUT, Outcome.WRONG_PROTOCOL})


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the proof: requested, configured (read back) and measured values of one impairment."""

    direction: Direction
    quantity: str  # "delay_s", "loss_ratio", "corrupt_ratio", "unexplained_loss_ratio", ...
    requested: float | None
    configured: float | None  # None where nothing can be read back
    measured: float | None  # None where there was too little traffic to measure
    tolerance: float | None  # largest accepted |measured - requested|
    passed: bool
    note: str = ""  # what was counted, or why there is no measurement


@dataclass(frozen=True, slots=True)
class Proof:
    """Evidence that the network of a trial was the requested one."""

    checks: tuple[Check, ...] = ()
    counters: Mapping[str, Any] = field(default_factory=dict)  # raw: before, after, trains, configured
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True when there are checks and every one of them passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True)
class Result:
    """What one attempt at a trial gave. Metric names carry their unit; a metric that was not measured is absent.

    Metrics of a client that finished: total_s, requests_per_s, goodput_bps, requests_succeeded, requests_failed,
    request_p50_s, request_p95_s, request_p99_s, ttfb_p50_s, connect_p50_s, bytes_total, bytes_body.
    """

    trial: Trial
    outcome: Outcome
    reason: str = ""  # for people; empty only when the outcome is ok
    metrics: Mapping[str, float] = field(default_factory=dict)
    proof: Proof = Proof()
    samples: Mapping[str, Any] = field(default_factory=dict)  # the client's raw JSON, kept whole
    command: str = ""  # what the client ran
    phases_s: Mapping[str, float] = field(
        default_factory=dict
    )  # where the trial's time went: apply, probe, client, ...
    attempt: int = 0
    started_at: float = 0.0  # seconds since the epoch

    @property
    def lower_bound_s(self) -> float | None:
        """The time that an unfinished trial took at least; None when it finished."""
        return self.metrics.get("timeout_s") if self.outcome is Outcome.TIMEOUT else None


def to_json(value: Any) -> dict[str, Any]:
    """A dataclass as a JSON object."""
    return asdict(value)
