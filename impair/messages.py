"""Reports of the agents to the lab, as data classes that both sides know. Standard library only.

An agent answers with one of them (impair/wire.py makes JSON of it), and the lab reads it by its types
(headwind/testbed/operations.py). Counters are totals since some beginning: only their differences mean something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

from impair.profile import Direction, Link

Counted = TypeVar("Counted", bound="Frames | NetemCounters | TcpCounters | QueueCounters")


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the router: interface name, Ethernet address, MTU in bytes."""

    name: str
    mac: str
    mtu: int


@dataclass(frozen=True, slots=True)
class FarEnds:
    """The far ends of interfaces on the host: its kernel (boot_id), their indices there, and those of the near ends."""

    boot_id: str
    indices: list[int]
    own: list[int]


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames and bytes through an interface."""

    rx_frames: int
    tx_frames: int
    rx_bytes: int
    tx_bytes: int


@dataclass(frozen=True, slots=True)
class PortFrames(Frames):
    """Frames through a router's interface, and its drops."""

    rx_dropped: int
    tx_dropped: int


@dataclass(frozen=True, slots=True)
class Processors:
    """CPU time of a container, in seconds; None for what cannot be seen there.

    `clock_s`: when they were read, on a monotonic clock. `cpu_s`: CPU time of the container; includes interrupts if
    the kernel does not separate them. `throttled_s`: the container had used up its quota of CPU time; with several
    CPUs their times add up. `pressure_s`: every runnable task of the container waited for a CPU (cgroup version 2,
    "full"). `host_pressure_s`: some task of the host waited, a niced one next to the lab as well as the lab's own.
    `working_s`: a user-mode kernel had work (Watch in impair/pulse.py); None for anything else.
    """

    clock_s: float
    cpu_s: float | None = None
    throttled_s: float | None = None
    pressure_s: float | None = None
    host_pressure_s: float | None = None
    working_s: float | None = None


@dataclass(frozen=True, slots=True)
class TcpCounters:
    """Reasons for TCP retransmissions of a host, over all its connections (TcpExt of /proc/net/netstat).

    `rtos`: a retransmission timer expired; `fast_retransmits`: segments retransmitted because of acknowledgements;
    `loss_probes`: tail loss probes (RFC 8985); `syn_retransmits`: retransmitted SYN or SYN-ACK; `spurious_rtos`:
    found unnecessary (F-RTO); `spurious_retransmits`: the peer reported by DSACK that it already had a segment.
    """

    rtos: int
    fast_retransmits: int
    loss_probes: int
    syn_retransmits: int
    spurious_rtos: int
    spurious_retransmits: int


@dataclass(frozen=True, slots=True)
class EndpointCounters(Frames):
    """Counters of client or server: frames and bytes, then errors of IP, UDP and TCP (/proc/net/snmp).

    A datagram counts in udp_in_datagrams when it is read. `oversize_frames` are longer than any frame may be.
    `largest_gap_s` is the longest time since the last look in which this host did not run. `tcp`: None if the
    kernel does not report it.
    """

    ip_in_receives: int
    ip_in_hdr_errors: int
    udp_in_datagrams: int
    udp_rcvbuf_errors: int
    udp_sndbuf_errors: int
    udp_in_csum_errors: int
    tcp_in_csum_errors: int
    tcp_retrans_segs: int
    oversize_frames: int
    processors: Processors
    largest_gap_s: float
    tcp: TcpCounters | None = None


@dataclass(frozen=True, slots=True)
class NetemCounters:
    """The counters of every kernel's netem on its interface."""

    packets: int
    bytes: int
    drops: int
    overlimits: int
    requeues: int
    backlog_packets: int
    backlog_bytes: int


@dataclass(frozen=True, slots=True)
class DecisionCounters(NetemCounters):
    """The counters of netem's decisions: kernel 7.2 and later (struct tc_netem_xstats)."""

    delayed: int
    dropped: int
    corrupted: int
    duplicated: int
    reordered: int
    ecn_marked: int
    allocation_errors: int


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """The counters of a bottleneck's queue: `packets` and `bytes` left it, `drops` did not, `marks` were marked (ECN).

    `backlog_*` are waiting now.
    """

    packets: int
    bytes: int
    drops: int
    marks: int
    backlog_packets: int
    backlog_bytes: int


@dataclass(frozen=True, slots=True)
class QueueState:
    """A direction's bottleneck before netem, as read back: a queue, and its rate.

    `kind` and `settings` are in the kernel's words and units (impair/queue_options.py); `tokens_ns` is how long the
    shaper may send without a pause; `delay_s` the wait of recent packets, if the discipline reports it.
    """

    kind: str
    settings: dict[str, int]
    rate_bps: int
    tokens_ns: int
    counters: QueueCounters
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class NetemState:
    """A direction's netem as read back from the kernel; `unverified` names what the kernel does not report.

    With a `queue` the link's rate and queue are those of the bottleneck before netem.
    """

    link: Link
    limit: int  # packets
    counters: DecisionCounters | NetemCounters
    unverified: list[str] = field(default_factory=list)
    seed: int | None = None  # None: this kernel has none
    queue: QueueState | None = None  # a separate bottleneck, if the link has one


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterReading:
    """netem of both directions (None: absent), and the ports' frames by side.

    `rx_while_read`: by side, the frames that came in after the ports were read and before netem's counters were.
    """

    ports: dict[str, PortFrames]
    rx_while_read: dict[str, int]
    uplink: NetemState | None = None
    downlink: NetemState | None = None

    def netem(self, direction: Direction) -> NetemState | None:
        """The counters of one direction."""
        return self.uplink if direction is Direction.UPLINK else self.downlink


@dataclass(frozen=True, slots=True)
class Rebound:
    """Packets that a rebinding rewrote, by direction, and those to the client's old address that it dropped."""

    uplink: int
    downlink: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterCounters(RouterReading):
    """A reading of the router with the host's other figures; `rebound`: of a rebinding, if there is to be one."""

    processors: Processors
    largest_gap_s: float
    rebound: Rebound | None = None
    container: Processors | None = None  # around a router with a separate kernel


@dataclass(frozen=True, slots=True)
class Carried:
    """An action of a schedule that the router carried out; times in s since the start of the schedule's clock.

    `at_s`: as requested; `began_s` and `done_s`: just before and after it was carried out; `before` and `after`: the
    router as it was read shortly before, and right after. `answer`: what the kind of action reports.
    """

    kind: str
    at_s: float
    began_s: float
    done_s: float
    before: RouterReading
    after: RouterReading
    direction: Direction | None = None  # the one that it is about; None: both
    answer: dict[str, str | int | float] = field(default_factory=dict)
    error: str = ""  # why it was not carried out; nothing after it was


@dataclass(frozen=True, slots=True)
class Traced:
    """A direction's rate trace as the router replayed it; the lists have an entry for each step, in s as in Carried.

    `rates_bps` were read back after each change. `frames` and `bytes` had left the bottleneck's queue just before the
    change, and `waiting` bytes were in it then; these have one more entry, of the end at ended_s.
    """

    direction: Direction
    at_s: list[float] = field(default_factory=list)
    began_s: list[float] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)
    rates_bps: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    ended_s: float | None = None
    error: str = ""  # why it did not go on


@dataclass(frozen=True, slots=True)
class Course:
    """A schedule as the router carried it out until it was stopped; None if its clock did not start."""

    stopped_s: float | None = None
    carried: list[Carried] = field(default_factory=list)
    traced: list[Traced] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ContainerCounters:
    """Counters of the container around a router with a separate kernel."""

    processors: Processors


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """The rate of the slowest link that a back-to-back train passed, in bit/s of frames; None: too little arrived."""

    rate_bps: float | None = None  # the one to use
    gap_rate_bps: float | None = None  # from the median gap between neighbours
    span_rate_bps: float | None = None  # from everything between the first and the last arrival
    pairs: int = 0  # of arrivals, that were compared
    agreeing: int = 0  # of these, that agree on rate_bps; 0: too few did, and it is the median


@dataclass(frozen=True, slots=True)
class TrainSeen:
    """The arrivals of a train of datagrams; the sequences have one entry per arrival, in order of arrival.

    `received`: arrivals with copies; `unique`: different datagrams; `inversions`: neighbours in the wrong order,
    copies apart; `sources`: addresses that they came from; `delays_s`: one way; `arrivals_s`: since the first one;
    `bad_payloads`: datagrams of any train whose content was wrong although their checksum was right.
    """

    received: int
    unique: int
    inversions: int
    sequences: list[int]
    sources: list[str]
    delays_s: list[float]
    arrivals_s: list[float]
    rate: RateEstimate
    bad_payloads: int = 0


@dataclass(frozen=True, slots=True)
class Listening:
    """The UDP port of a train listener, and the size of its socket's buffer."""

    port: int
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class Hello:
    """The identity of an endpoint: its only address, its network (CIDR), its interface, its kernel's release."""

    ip: str
    network: str
    mac: str
    interface: str
    mtu: int
    kernel: str
    probe: Listening


@dataclass(frozen=True, slots=True)
class RouterHello:
    """The identity of the router: its kernel's release, its engine, its netem's capabilities, ports by side."""

    kernel: str
    engine: str
    netem_counters: bool  # of its decisions
    netem_seed: bool
    ports: dict[str, Port]


@dataclass(frozen=True, slots=True)
class Health:
    """A server's processes. A crash between two looks shows as another master or other workers.

    `memory_bytes`: the most that each worker has had resident since its start, added up; None if unknown.
    """

    master: int
    workers: list[int]
    master_started_s: float  # after the host's boot
    memory_bytes: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Answers:
    """The server's log of a trial's answers, for workloads with a log (nginx/answers.py).

    `count` had a status of 2xx or 3xx, and `others` another one, or their client had gone. Of `count` the
    connections had `resumed` a session, the request came `early`, before the handshake's end, or had to wait
    (`waited`): the time from its arrival to the beginning of its answer, by the server's clock.
    """

    count: int
    others: int
    resumed: int
    early: int
    waited: int
    shortest_wait_s: float | None = None
    median_wait_s: float | None = None
    longest_wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The number of CPUs of the host, and their total busy time; niced work does not count.

    In a virtual machine it includes CPU steal, `steal_s`.
    """

    cpus: int
    busy_s: float
    steal_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientRun:
    """The result of one run of a client program; its kind of workload knows the rest of the answer.

    `exit_code` is minus the signal's number when it was killed; `cpu_s` is its CPU time, `machine` the use of all
    CPUs meanwhile; `packet_gap_max_s` the longest time without a frame; `windows` the limits that it had, in bytes;
    `negotiated` has at least "alpn", None if unknown; `metrics` are those of the kind of workload. `clock_step_s` is by
    how much the machine's clock was set meanwhile (or slept): times of requests are by that clock.
    """

    command: list[str]
    exit_code: int
    timed_out: bool
    wall_s: float
    cpu_s: float
    machine: Machine
    packet_gap_max_s: float
    stderr_tail: str
    windows: dict[str, int | None]
    negotiated: dict[str, str | None]
    metrics: dict[str, int | float]
    congestion: list[str] = field(default_factory=list)  # what TCP's sockets had, where they were seen
    warnings: list[str] = field(default_factory=list)  # about the run, for people
    clock_step_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Competed:
    """The bytes that each competing download received before, while and after the measured client ran.

    Before: in the last `alone_s`; while it ran: in `during_s`. `error`: why a flow did not go on; empty if all did.
    """

    protocol: str
    alone_s: float
    during_s: float
    alone_bytes: list[int]
    during_bytes: list[int]
    after_bytes: list[int]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching one object: `error` is empty on success; `alpn` is the protocol used."""

    status: int
    alpn: str | None
    bytes: int
    sha256: str
    error: str


@dataclass(frozen=True, slots=True)
class TrainSent:
    """`seconds` from the first to the last datagram; `latest_s`: how far the schedule was missed at worst."""

    sent: int
    seconds: float
    latest_s: float


def gained(before: Counted, after: Counted) -> Counted:
    """The growth of each count; other fields are those of `after`."""
    grown = {}
    for item in fields(after):
        old, new = getattr(before, item.name), getattr(after, item.name)
        if isinstance(new, TcpCounters) and isinstance(old, TcpCounters):
            new = gained(old, new)
        grown[item.name] = new - old if isinstance(new, int) and isinstance(old, int) else new
    return type(after)(**grown)
