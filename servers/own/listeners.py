"""The sockets that wait for clients on a port, of any process: all that is known of a program from outside."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from impair.endpoint.tcp_state import NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
from impair.netlink import NLM_F_DUMP, Netlink, attributes

LISTEN, UNCONNECTED = (
    1 << 10,
    1 << 7,
)  # states (net/tcp_states.h): TCP_LISTEN; TCP_CLOSE, of a UDP socket without a peer
WAITING = {"tcp": (socket.IPPROTO_TCP, LISTEN), "udp": (socket.IPPROTO_UDP, UNCONNECTED)}
INET_DIAG_SKMEMINFO = 7
_REQUEST = struct.Struct("@BBBBI48s")  # inet_diag_req_v2: family, protocol, extensions, padding, states, socket id
_MESSAGE_BYTES, _PORT_AT, _INODE_AT = 72, 4, 68  # inet_diag_msg (linux/inet_diag.h)
_RCVBUF, _SNDBUF = 1, 3  # places in the array of SK_MEMINFO_*


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A socket over IPv4, or IPv6, that waits on a port; buffers as the kernel counts them (socket(7))."""

    transport: str
    inode: int  # another one for each socket
    rcvbuf_bytes: int
    sndbuf_bytes: int


def listeners(port: int) -> list[Listener] | None:
    """All sockets that wait on `port`; None if the kernel cannot list them (built without INET_DIAG or UDP_DIAG)."""
    found = []
    with Netlink(NETLINK_SOCK_DIAG) as sock:
        for transport, (number, states) in WAITING.items():
            for family in (socket.AF_INET, socket.AF_INET6):
                request = _REQUEST.pack(family, number, 1 << (INET_DIAG_SKMEMINFO - 1), 0, states, bytes(48))
                try:
                    messages = sock.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request)
                except FileNotFoundError:
                    return None
                found += [_listener(transport, each) for each in messages if _port(each) == port]
    return sorted(found)


def _port(message: bytes) -> int:
    return int(struct.unpack_from("!H", message, _PORT_AT)[0])


def _listener(transport: str, message: bytes) -> Listener:
    memory = struct.unpack_from("@4I", attributes(message[_MESSAGE_BYTES:])[INET_DIAG_SKMEMINFO])
    return Listener(transport, struct.unpack_from("@I", message, _INODE_AT)[0], memory[_RCVBUF], memory[_SNDBUF])
