"""Socket buffers of this host, as the kernel reports them: TCP's limits, and the sizes of UDP sockets.

Uses netlink (linux/inet_diag.h, linux/sock_diag.h), because a client is being measured meanwhile: a dump of a hundred
sockets takes well below a millisecond, while `ss -m` costs a process.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from impair import kept
from impair.endpoint.tcp_state import NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
from impair.netlink import NLM_F_DUMP, Netlink, attributes

_REQUEST = struct.Struct("@BBBBI48s")  # inet_diag_req_v2: family, protocol, extensions, padding, states, socket id
_MESSAGE_BYTES = 72  # inet_diag_msg
_PORT, _INODE = struct.Struct("!H"), struct.Struct("@I")
_PORT_AT, _INODE_AT = 4, 68  # inside inet_diag_msg
INET_DIAG_SKMEMINFO = 7
_RCVBUF, _SNDBUF = 1, 3  # places in the array of SK_MEMINFO_*
TCP_LIMITS = {"tcp_rmem_max_bytes": "tcp_rmem", "tcp_wmem_max_bytes": "tcp_wmem"}


@dataclass(frozen=True, slots=True)
class UdpSocket:
    """A UDP socket and its buffers as the kernel counts them: twice the requested SO_RCVBUF (socket(7))."""

    inode: int
    port: int
    rcvbuf_bytes: int
    sndbuf_bytes: int


def udp_sockets() -> list[UdpSocket]:
    """Every UDP socket over IPv4 of this network namespace; none if the kernel cannot list them (no udp_diag)."""
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_UDP, 1 << (INET_DIAG_SKMEMINFO - 1), 0, 0xFFFF, bytes(48))
    with Netlink(NETLINK_SOCK_DIAG) as sock:
        try:
            messages = sock.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request)
        except FileNotFoundError:
            return []
    return [_udp_socket(message) for message in messages]


def _udp_socket(message: bytes) -> UdpSocket:
    memory = struct.unpack_from("@4I", attributes(message[_MESSAGE_BYTES:])[INET_DIAG_SKMEMINFO])
    port, inode = _PORT.unpack_from(message, _PORT_AT)[0], _INODE.unpack_from(message, _INODE_AT)[0]
    return UdpSocket(inode, port, memory[_RCVBUF], memory[_SNDBUF])


def smallest(sockets: list[UdpSocket]) -> dict[str, int | None]:
    """{"udp_rcvbuf_bytes", "udp_sndbuf_bytes"}: the smallest of all these sockets; None without any."""
    return {
        "udp_rcvbuf_bytes": min((each.rcvbuf_bytes for each in sockets), default=None),
        "udp_sndbuf_bytes": min((each.sndbuf_bytes for each in sockets), default=None),
    }


def tcp_limits() -> dict[str, int]:
    """The limits of TCP's buffer autotuning: the third number of tcp_rmem and of tcp_wmem."""
    return {name: int(kept.read(f"/proc/sys/net/ipv4/{file}").split()[2]) for name, file in TCP_LIMITS.items()}
