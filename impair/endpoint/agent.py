"""Agent operations of client and server: join the router, count frames, clear kernel caches, send probes.

Runs inside the endpoint's container with the capabilities NET_ADMIN and NET_RAW. `OPERATIONS` are the agent's
operations; `python3 -m impair.endpoint.agent` is an agent with only these.
"""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from impair import kept, taken
from impair.baseline import deviations
from impair.endpoint.capture import Capture
from impair.endpoint.path import OnlyLink
from impair.endpoint.probe import Listener, attach_filter, send_train
from impair.endpoint.tcp_state import congestion_of, destroy_sockets, flush_metrics
from impair.fingerprint import fingerprint
from impair.interface import (
    AT_AN_ENDPOINT,
    frame_counters,
    odd_offloads,
    set_neighbour,
    turn_ipv6_off,
    turn_offloads_off,
    veth_peers,
)
from impair.messages import EndpointCounters, FarEnds, Hello, Listening, TcpCounters, TrainSeen
from impair.processors import kept_waiting
from impair.profile import FRAME_BYTES, PORT_BIT, Rebind
from impair.pulse import Pulse
from impair.wire import LAB, serve

LOOK_EVERY_S = 0.01  # for a connection
SNMP, NETSTAT = "/proc/net/snmp", "/proc/net/netstat"
SNMP_COUNTERS = {  # group and column of /proc/net/snmp
    "ip_in_receives": ("Ip", "InReceives"),
    "ip_in_hdr_errors": ("Ip", "InHdrErrors"),
    "udp_in_datagrams": ("Udp", "InDatagrams"),
    "udp_rcvbuf_errors": ("Udp", "RcvbufErrors"),
    "udp_sndbuf_errors": ("Udp", "SndbufErrors"),
    "udp_in_csum_errors": ("Udp", "InCsumErrors"),
    "tcp_in_csum_errors": ("Tcp", "InCsumErrors"),
    "tcp_retrans_segs": ("Tcp", "RetransSegs"),
}
TCP_COUNTERS = {  # of TcpExt in /proc/net/netstat
    "rtos": "TCPTimeouts",
    "fast_retransmits": "TCPFastRetrans",
    "loss_probes": "TCPLossProbes",
    "syn_retransmits": "TCPSynRetrans",
    "spurious_rtos": "TCPSpuriousRTOs",
    "spurious_retransmits": "TCPDSACKRecvSegs",  # TCPDSACKRecv also counts copies of what was never retransmitted
}
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23  # linux/if_packet.h
ETH_P_ALL, ETH_P_IP = 3, 0x0800
PACKETS = "packets"


class EndpointError(Exception):
    """The endpoint cannot carry out a request: what was tried, and what is needed."""


# Classic BPF programs, each of which ends with ret 1 (count the frame, keep one byte) and ret 0.
COUNT, PASS = (0x06, 0, 0, 1), (0x06, 0, 0, 0)
OVERSIZE = ((0x80, 0, 0, 0), (0x25, 0, 1, FRAME_BYTES), COUNT, PASS)  # ld len; jgt FRAME_BYTES


def rebound_frames(kind: Rebind, address: str) -> tuple[tuple[int, int, int, int], ...]:
    """The program for frames with IPv4 packets of a client that was rebound: from another address, or from a low port.

    `address` is the one that they come from; low ports are those without PORT_BIT, which no client has by itself.
    """
    source = struct.unpack("!I", socket.inet_aton(address))[0]
    is_ipv4, is_from = ((0x28, 0, 0, 12), (0x15, 0, 8, ETH_P_IP)), ((0x20, 0, 0, 26), (0x15, 0, 6, source))
    if kind is Rebind.ADDRESS:
        return (*is_ipv4, *is_from, COUNT, *[PASS] * 6)
    is_tcp_or_udp = (0x30, 0, 0, 23), (0x15, 1, 0, 6), (0x15, 0, 3, 17)  # ldb protocol; jeq TCP; jeq UDP
    has_no_bit = (0x28, 0, 0, 34), (0x45, 1, 0, PORT_BIT)  # ldh source port, after a header of 20 bytes; jset
    return (*is_ipv4, *is_from, *is_tcp_or_udp, *has_no_bit, COUNT, PASS)


class FrameCounter:
    """Counts the frames that arrive on an interface and that a classic BPF program chooses."""

    def __init__(self, interface: str, program: Sequence[tuple[int, int, int, int]]) -> None:
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError as error:
            raise EndpointError("cannot count frames: a packet socket needs CAP_NET_RAW") from error
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        attach_filter(self._socket, program)  # nothing is ever read from the socket
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # a full buffer counts as well
        self._socket.bind((interface, ETH_P_ALL))
        self._total = 0

    def close(self) -> None:
        """Stop counting."""
        self._socket.close()

    def read(self) -> int:
        """The number since the counter was made (the kernel's own count restarts with every reading)."""
        packets, _ = struct.unpack("@II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._total += packets  # includes those that the full buffer dropped
        return self._total


class Endpoint:
    """An end of the path; its methods are the agent's operations. `hello` opens its instruments."""

    def __init__(self) -> None:
        self._peer_network: ipaddress.IPv4Network | None = None
        self._rebound: FrameCounter | None = None
        self._peer = ("", "")  # its address, and the gateway to it
        self._capture: Capture | None = None

    @cached_property
    def interface(self) -> OnlyLink:
        """The link to the router."""
        return OnlyLink.find()

    @cached_property
    def listener(self) -> Listener:
        """Where the peer's trains arrive."""
        return Listener()

    @cached_property
    def oversize(self) -> FrameCounter:
        """The counter of frames that are too long: with all offloads off there are none."""
        return FrameCounter(self.interface.name, OVERSIZE)

    @cached_property
    def pulse(self) -> Pulse:
        """The detector of standstills of this host."""
        return Pulse()

    def hello(self) -> Hello:
        """Open the instruments; the host's addresses, interface and kernel.

        Raises InterfaceError, EndpointError or ProbeError when one cannot be opened.
        """
        link = self.interface
        self.oversize.read()
        self.pulse.largest_gap_s()
        listening = Listening(self.listener.port, self.listener.receive_buffer_bytes)
        return Hello(link.ip, str(link.network), link.mac, link.name, link.mtu, os.uname().release, listening)

    def join(self, gateway: str, gateway_mac: str, peer_network: str, peer_ip: str, congestion: str) -> dict[str, Any]:
        """Make the router the only way out, TCP use `congestion`, and every packet leave as one plain frame.

        Returns what was read back: {"congestion", "route" to the peer, "routes" (all), "neighbour", "offloads", "ipv6",
        "tcp_no_metrics_save"}. Raises InterfaceError on any difference.
        """
        link = self.interface
        link.check_mtu()
        self.hello()
        turn_ipv6_off(link.name)
        joined = {
            "ipv6": "off",
            "offloads": turn_offloads_off(link.name, AT_AN_ENDPOINT),
            "neighbour": set_neighbour(link.name, gateway, gateway_mac),
            "routes": link.set_routes(gateway, peer_network, congestion),
            "route": link.route_to(peer_ip, gateway, congestion),
            "congestion": congestion,  # as route_to has found it
            "tcp_no_metrics_save": Path("/proc/sys/net/ipv4/tcp_no_metrics_save").read_text().strip() == "1",
        }
        self._peer_network = ipaddress.IPv4Network(peer_network)
        self._peer = (peer_ip, gateway)
        return joined

    def use_congestion(self, congestion: str) -> dict[str, Any]:
        """Set TCP's congestion control towards the peer: {"congestion", "route"} as read back.

        Raises InterfaceError.
        """
        network, (peer_ip, gateway) = self._joined(), self._peer
        self.interface.set_route(gateway, str(network), congestion)
        return {"congestion": congestion, "route": self.interface.route_to(peer_ip, gateway, congestion)}

    def congestion_seen(self, timeout_s: float) -> list[str]:
        """The congestion control of TCP connections with the peer; empty if none is seen.

        It looks until there is one, but for at most `timeout_s`, and not beyond the lab's next request. Raises
        EndpointError.
        """
        network, deadline = self._joined(), time.monotonic() + timeout_s
        while True:
            found = congestion_of(network) if connections(kept.read(SNMP)) else []
            if found or time.monotonic() >= deadline or select.select([LAB], [], [], LOOK_EVERY_S)[0]:
                return found

    def _joined(self) -> ipaddress.IPv4Network:
        """The peer's network."""
        if self._peer_network is None:
            raise EndpointError("the peer is not known before `join` has said who it is")
        return self._peer_network

    def sent(self) -> int:
        """The number of frames that this host has sent since the network was made."""
        return int(kept.read(f"/sys/class/net/{self.interface.name}/statistics/tx_packets"))

    def counters(self) -> EndpointCounters:
        """Counters since the network was made; `oversize_frames` and the gap are counted from `hello` on."""
        frames = frame_counters()[self.interface.name]
        return EndpointCounters(
            frames.rx_frames, frames.tx_frames, frames.rx_bytes, frames.tx_bytes,
            **snmp_counters(kept.read(SNMP)),
            oversize_frames=self.oversize.read(),
            processors=kept_waiting(),
            largest_gap_s=self.pulse.largest_gap_s(),
            tcp=tcp_counters(kept.read(NETSTAT)),
        )  # fmt: skip

    def await_rebound(self, kind: str, address: str) -> None:
        """Count from now on the packets of a client that was rebound, from `address`, to another `kind` of source."""
        if self._rebound:
            self._rebound.close()
        self._rebound = FrameCounter(self.interface.name, rebound_frames(Rebind(kind), address))

    def rebound(self) -> int:
        """The packets since `await_rebound`. Raises LookupError without it."""
        if self._rebound is None:
            raise LookupError("no rebinding was awaited")
        seen = self._rebound.read()
        self._rebound.close()
        self._rebound = None
        return seen

    def examine(self) -> list[str]:
        """Deviations of this host from a plain testbed, as text (impair/baseline.py)."""
        link = self.interface
        networks = [str(network) for network in (link.network, self._peer_network) if network]
        return [*deviations([link.name], networks, endpoint=True), *odd_offloads([link.name], AT_AN_ENDPOINT)]

    def veth_peers(self) -> FarEnds:
        """The far ends of the link, on the host."""
        return veth_peers([self.interface.name])

    def forget(self) -> dict[str, int | None]:
        """Destroy the TCP and UDP sockets to the peer's network, and flush TCP's metrics of its peers.

        Returns {"sockets_destroyed": count, or None if the kernel cannot, "sockets_left": count, or None if the
        kernel does not report it}. Raises EndpointError.
        """
        network = self._joined()
        try:
            leftovers = destroy_sockets(network)
            flush_metrics()
        except OSError as error:
            raise EndpointError(f"the kernel refused to flush {network}: {error.strerror}") from error
        return {"sockets_destroyed": leftovers.destroyed, "sockets_left": leftovers.left}

    def capture_packets(self) -> None:
        """Capture the frames of the link until `finish_capture`. Raises EndpointError."""
        self.finish_capture()
        try:
            self._capture = Capture(self.interface.name)
        except OSError as error:
            raise EndpointError(f"the kernel refused to capture packets: {error.strerror}") from error

    def finish_capture(self) -> dict[str, int]:
        """End the capture, and keep its packets as the file PACKETS: {"packets", "missed", as the ring was full}."""
        capture, self._capture = self._capture, None
        if capture is None:
            return {"packets": 0, "missed": 0}
        found = capture.finish()
        taken.FILES.keep({PACKETS: found.blocks})
        return {"packets": found.count, "missed": found.missed}

    def train_seen(self, nonce: int, expect: int, timeout_s: float, missing_took_time: bool = True) -> TrainSeen:
        """The arrivals of a train: `Listener.seen`."""
        return self.listener.seen(nonce, expect, timeout_s, missing_took_time)


def snmp_counters(text: str) -> dict[str, int]:
    """The counters of SNMP_COUNTERS, from the text of /proc/net/snmp. Raises KeyError if one is missing."""
    lines = text.splitlines()
    groups = {group: _group(lines, group) for group in {group for group, _ in SNMP_COUNTERS.values()}}
    return {name: int(groups[group][column]) for name, (group, column) in SNMP_COUNTERS.items()}


def connections(text: str) -> int:
    """The number of established TCP connections, from the text of /proc/net/snmp.

    Listing them takes ten times as long, however few: the kernel walks the table of the whole host.
    """
    return int(_group(text.splitlines(), "Tcp")["CurrEstab"])


def tcp_counters(text: str) -> TcpCounters | None:
    """The counters of TCP_COUNTERS, from the text of /proc/net/netstat; None if this kernel lacks one."""
    extended = _group(text.splitlines(), "TcpExt")
    if not extended.keys() >= set(TCP_COUNTERS.values()):
        return None
    return TcpCounters(**{name: int(extended[column]) for name, column in TCP_COUNTERS.items()})


def _group(lines: Sequence[str], group: str) -> dict[str, str]:
    """The columns of a group, which has two lines that begin with its name: first the names, then the numbers."""
    pair = [line.split()[1:] for line in lines if line.startswith(f"{group}:")]
    return dict(zip(*pair, strict=True)) if pair else {}


HERE = Endpoint()
OPERATIONS: dict[str, Callable[..., Any]] = {
    "hello": HERE.hello,
    "join": HERE.join,
    "use_congestion": HERE.use_congestion,
    "congestion_seen": HERE.congestion_seen,
    "sent": HERE.sent,
    "counters": HERE.counters,
    "fingerprint": fingerprint,
    "await_rebound": HERE.await_rebound,
    "rebound": HERE.rebound,
    "examine": HERE.examine,
    "veth_peers": HERE.veth_peers,
    "forget": HERE.forget,
    "capture_packets": HERE.capture_packets,
    "finish_capture": HERE.finish_capture,
    **taken.OPERATIONS,
    "train_seen": HERE.train_seen,
    "send_train": send_train,
}


def main() -> None:
    """Answer on standard input and output until the input ends."""
    serve(OPERATIONS)


if __name__ == "__main__":
    main()
