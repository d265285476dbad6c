"""The kernel's state of connections: clears sockets and TCP metrics of earlier ones, reads congestion controls.

Uses netlink directly (linux/inet_diag.h, linux/tcp_metrics.h), because every trial pays for it: below a millisecond,
while `ss -K` and `ip tcp_metrics flush` cost a process each.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from impair.netlink import NLM_F_ACK, NLM_F_DUMP, Netlink, attributes

NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16
SOCK_DIAG_BY_FAMILY, SOCK_DESTROY = 20, 21
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TCP_METRICS_CMD_DEL = 2
NO_METRICS_SAVE = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
ALL_STATES_BUT_LISTEN = 0xFFFF & ~(1 << 10)  # TCP_LISTEN is 10
ESTABLISHED = 1 << 1  # TCP_ESTABLISHED
INET_DIAG_CONG = 4

_REQUEST = struct.Struct("@BBBBI48s")  # inet_diag_req_v2: family, protocol, extensions, padding, states, socket id
_MESSAGE_BYTES = 72  # inet_diag_msg
_SOCKET_ID = slice(4, 52)  # inside inet_diag_msg
_PEER_ADDRESS = slice(4 + 20, 4 + 36)
OpenNetlink = Callable[[int], AbstractContextManager[Netlink]]  # takes the protocol
_MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address inside an IPv6 socket (RFC 4291, 2.5.5.2)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Sockets of earlier connections: how many were destroyed, and how many are left."""

    destroyed: int | None  # None: this kernel cannot (it is built without INET_DIAG_DESTROY)
    left: int | None  # None: this kernel cannot list them (it is built without INET_DIAG)


def destroy_sockets(network: ipaddress.IPv4Network, netlink: OpenNetlink = Netlink) -> Leftovers:
    """Destroy every TCP socket whose peer is in `network`, whatever its state; listening ones have no peer.

    And every UDP socket that is connected to such a peer, as a browser's are that keeps connections over QUIC; a kernel
    without udp_diag has none to list. Raises OSError without the capability NET_ADMIN.
    """
    with netlink(NETLINK_SOCK_DIAG) as sock:
        try:
            found = list(_towards(sock, socket.IPPROTO_TCP, network))
        except FileNotFoundError:
            return Leftovers(None, None)
        with suppress(FileNotFoundError):
            found += _towards(sock, socket.IPPROTO_UDP, network)
        if not _can_destroy(sock):
            return Leftovers(None, len(found))
        destroyed = left = 0
        for each in found:
            code = _destroy(sock, *each)
            destroyed += code == 0
            left += code not in (0, errno.ENOENT)  # ENOENT: it went by itself meanwhile
        return Leftovers(destroyed, left)


def _towards(sock: Netlink, protocol: int, network: ipaddress.IPv4Network) -> Iterator[tuple[int, int, bytes]]:
    """Protocol, family and identity of each socket whose peer is in `network`; one without a peer is in none."""
    states = ESTABLISHED if protocol == socket.IPPROTO_UDP else ALL_STATES_BUT_LISTEN
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(family, protocol, 0, 0, states, bytes(48))
        for message in sock.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request):
            if _is_towards(message, family, network):
                yield protocol, family, message[_SOCKET_ID]


def _is_towards(message: bytes, family: int, network: ipaddress.IPv4Network) -> bool:
    address = message[_PEER_ADDRESS]
    if family == socket.AF_INET6 and address[:12] != _MAPPED:
        return False
    number = int.from_bytes(address[:4] if family == socket.AF_INET else address[12:])
    return number & int(network.netmask) == int(network.network_address)  # a fifth of what an IPv4Address takes


def _destroy(sock: Netlink, protocol: int, family: int, identity: bytes) -> int:
    """Destroy one socket; 0 or the kernel's errno."""
    try:
        sock.ask(SOCK_DESTROY, NLM_F_ACK, _REQUEST.pack(family, protocol, 0, 0, 0xFFFF, identity))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise
        return error.errno or errno.EIO
    return 0


def _can_destroy(sock: Netlink) -> bool:
    """Request a socket that cannot exist: the error shows whether this kernel can destroy sockets."""
    nowhere = bytes(40) + b"\xff" * 8  # no ports, no addresses, and the cookie that means "any"
    return _destroy(sock, socket.IPPROTO_TCP, socket.AF_INET, nowhere) != errno.EOPNOTSUPP


def congestion_of(network: ipaddress.IPv4Network, netlink: OpenNetlink = Netlink) -> list[str]:
    """The congestion control of every established TCP connection to a peer in `network`.

    A socket that is still connecting may yet have the host's default: tcp_v4_connect() puts it where a listing finds it
    (inet_hash_connect) before tcp_connect_init() takes the route's setting (tcp_ca_dst_init). A socket that is accepted
    has the route's before it can be found (tcp_ca_openreq_child). The kernel writes a socket's state into the listing
    before its congestion control, so that the latter is that of the connection. Empty if the kernel cannot list sockets
    (it is built without INET_DIAG).
    """
    extension = 1 << (INET_DIAG_CONG - 1)
    found = []
    with netlink(NETLINK_SOCK_DIAG) as sock:
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, extension, 0, ESTABLISHED, bytes(48))
            try:
                messages = sock.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request)
            except FileNotFoundError:
                return []
            found += [attributes(message[_MESSAGE_BYTES:]).get(INET_DIAG_CONG, b"") for message in messages
                      if _is_towards(message, family, network)]  # fmt: skip
    return [name.rstrip(b"\0").decode() for name in found if name]


def _learns() -> bool:
    return NO_METRICS_SAVE.read_text().strip() == "0"


def flush_metrics(learns: Callable[[], bool] = _learns, netlink: OpenNetlink = Netlink) -> None:
    """Flush TCP's metrics of its peers (round-trip times, windows). Raises OSError if the kernel refuses.

    A rootless Docker has no permission for it (GENL_ADMIN_PERM is a right of the first user namespace). It is not
    needed if TCP never `learns` in this network namespace, as compose.yaml has it.
    """
    try:
        _flush_metrics(netlink)
    except PermissionError:
        if learns():
            raise


def _flush_metrics(netlink: OpenNetlink) -> None:
    with netlink(NETLINK_GENERIC) as sock:
        name = b"tcp_metrics\0"
        attribute = struct.pack("@HH", 4 + len(name), CTRL_ATTR_FAMILY_NAME) + name
        command = struct.pack("@BBH", CTRL_CMD_GETFAMILY, 1, 0)
        answer = sock.ask(GENL_ID_CTRL, NLM_F_ACK, command + attribute)[0]
        family = attributes(answer[4:])[CTRL_ATTR_FAMILY_ID]
        # Without an address it means all of them (tcp_metrics_nl_cmd_del in net/ipv4/tcp_metrics.c).
        sock.ask(struct.unpack("@H", family)[0], NLM_F_ACK, struct.pack("@BBH", TCP_METRICS_CMD_DEL, 1, 0))
