"""What the agents tell the lab, as data classes that both sides know. Standard library only.

An agent answers with one of them (impair/wire.py makes JSON of it), and the lab reads it by its types
(headwind/testbed/operations.py). Counters are totals since some beginning: only their differences mean something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

from impair.profile import Direction, Link

Counted = TypeVar("Counted", bound="Frames | NetemCounters | TcpCounters")


@dataclass(frozen=True, slots=True)
class Port:
    """One of the router's interfaces: name, Ethernet address, MTU in bytes."""

    name: str
    mac: str
    mtu: int


@dataclass(frozen=True, slots=True)
class FarEnds:
    """Where interfaces end on the host: the kernel that this is (boot_id), and their numbers there."""

    boot_id: str
    indices: list[int]


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames and bytes through an interface."""

    rx_frames: int
    tx_frames: int
    rx_bytes: int
    tx_bytes: int


@dataclass(frozen=True, slots=True)
class PortFrames(Frames):
    """... of the router, with what the interface itself dropped."""

    rx_dropped: int
    tx_dropped: int


@dataclass(frozen=True, slots=True)
class Processors:
    """Processor time of a container, in seconds; None for what cannot be seen there.

    `clock_s`: when they were read, on a clock that only runs.
    `cpu_s`: processor time that the container used; with that of interrupts where the kernel does not keep it apart.
    `throttled_s`: the container had used up its quota of processor time; with several processors their times add up.
    `pressure_s`: every task of the container that could run waited for a processor (cgroup version 2, "full").
    `host_pressure_s`: some task of the host waited, a niced one beside the lab as well as the lab's own.
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
    """Why TCP of a host sent anything again, over all its connections (TcpExt of /proc/net/netstat).

    `timeouts`: a retransmission timer ran out; `fast_resent`: segments sent again because of acknowledgements;
    `loss_probes`: tail loss probes (RFC 8985); `syn_resent`: SYN or SYN-ACK again; `spurious_timeouts`: found to have
    been needless (F-RTO); `needless`: the peer said by DSACK that it had a segment already.
    """

    timeouts: int
    fast_resent: int
    loss_probes: int
    syn_resent: int
    spurious_timeouts: int
    needless: int


@dataclass(frozen=True, slots=True)
class EndpointCounters(Frames):
    """Of client or server: frames and bytes, then errors of IP, UDP and TCP (/proc/net/snmp).

    A datagram counts in udp_in_datagrams when it is read. `oversize_frames` are longer than any frame may be.
    `largest_gap_s` is the longest time since the last look in which this host did not run. `tcp`: None where the
    kernel does not tell, and in runs from before it was asked.
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
    """What every netem counts on its interface."""

    packets: int
    bytes: int
    drops: int
    overlimits: int
    requeues: int
    backlog_packets: int
    backlog_bytes: int


@dataclass(frozen=True, slots=True)
class DecisionCounters(NetemCounters):
    """... and its decisions: kernel 7.2 and later (struct tc_netem_xstats)."""

    delayed: int
    dropped: int
    corrupted: int
    duplicated: int
    reordered: int
    ecn_marked: int
    allocation_errors: int


@dataclass(frozen=True, slots=True)
class NetemState:
    """A direction's netem as the kernel reads it back, but for what `unverified` names: it does not tell that."""

    link: Link
    limit: int  # packets
    counters: DecisionCounters | NetemCounters
    unverified: list[str] = field(default_factory=list)
    seed: int | None = None  # None: this kernel has none


@dataclass(frozen=True, slots=True)
class RouterCounters:
    """netem of both directions (None: there is none), the ports' frames by side, and what else is seen there.

    `rx_while_read`: by side, the frames that came in after the ports were read and before netem's counters were.
    """

    ports: dict[str, PortFrames]
    rx_while_read: dict[str, int]
    processors: Processors
    largest_gap_s: float
    container: Processors | None = None  # around a router that is a kernel of its own
    uplink: NetemState | None = None
    downlink: NetemState | None = None

    def netem(self, direction: Direction) -> NetemState | None:
        """Of one direction."""
        return self.uplink if direction is Direction.UPLINK else self.downlink


@dataclass(frozen=True, slots=True)
class ContainerCounters:
    """Of the container around a router that is a kernel of its own."""

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
    """What arrived of a train of datagrams; the sequences have one entry per arrival, in order of arrival.

    `received`: arrivals with copies; `unique`: different datagrams; `inversions`: neighbours in the wrong order, copies
    apart; `sources`: addresses that they came from; `delays_s`: one way; `arrivals_s`: since the first one;
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
    """The UDP port where trains are awaited, and how much may wait in its socket."""

    port: int
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class Hello:
    """Who an endpoint is: its only address, its network (CIDR), its interface, its kernel's release."""

    ip: str
    network: str
    mac: str
    interface: str
    mtu: int
    kernel: str
    probe: Listening


@dataclass(frozen=True, slots=True)
class RouterHello:
    """What the router is: its kernel's release, its engine, what its netem can do, and its ports by side."""

    kernel: str
    engine: str
    netem_counters: bool  # of its decisions
    netem_seed: bool
    ports: dict[str, Port]


@dataclass(frozen=True, slots=True)
class Health:
    """nginx's processes. A crash between two looks shows as another master or other workers."""

    master: int
    workers: list[int]
    master_started_s: float  # after the host's boot


@dataclass(frozen=True, slots=True)
class Answers:
    """What the server's log says of a trial's answers, for workloads of which it keeps one (nginx/answers.py).

    `count` had a status of 2xx or 3xx, and `others` another one, or their client had gone. Of `count` the connections
    had `resumed` a session, the request came `early`, before the handshake's end, or had to wait (`waited`): so long
    from its arrival to the beginning of its answer, by the server's clock.
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
    """How many processors the host has, and how long they were busy, all together; niced work counts as none.

    In a virtual machine the time is among it for which its own host kept them from it: `stolen_s`.
    """

    cpus: int
    busy_s: float
    stolen_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientRun:
    """What came of one run of a client program, whichever it is; its kind of workload knows the rest of the answer.

    `exit_code` is minus the signal's number when it was killed; `cpu_s` is processor time that it took, `machine` what
    all processors did meanwhile; `silence_s` the longest time without a frame; `windows` the limits that it had, in
    bytes; `negotiated` has at least "alpn", None where it did not say; `metrics` are those of the kind of workload.
    """

    command: list[str]
    exit_code: int
    timed_out: bool
    wall_s: float
    cpu_s: float
    machine: Machine
    silence_s: float
    stderr_tail: str
    windows: dict[str, int | None]
    negotiated: dict[str, str | None]
    metrics: dict[str, int | float]
    congestion: list[str] = field(default_factory=list)  # what TCP's sockets had, where they were seen


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of one object: `error` says why nothing came, and is empty otherwise; `alpn` is what was spoken."""

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
    """How much each count grew; what is no count is that of `after`."""
    grown = {}
    for item in fields(after):
        old, new = getattr(before, item.name), getattr(after, item.name)
        if isinstance(new, TcpCounters) and isinstance(old, TcpCounters):
            new = gained(old, new)
        grown[item.name] = new - old if isinstance(new, int) and isinstance(old, int) else new
    return type(after)(**grown)
