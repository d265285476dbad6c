"""What a kernel that can less than others is made of. Real sockets are destroyed in net/test_endpoint.py."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest

from impair.endpoint import tcp_state
from impair.endpoint.tcp_state import INET_DIAG_CONG, SOCK_DESTROY, Leftovers, congestion_of, destroy_sockets
from impair.netlink import Netlink

PEERS = ipaddress.IPv4Network("10.77.2.0/24")


def message(family: int, peer: str, state: int = 1) -> bytes:
    """An inet_diag_msg: family and state, then ports, own address, peer's address, interface and cookie."""
    address = ipaddress.ip_address(peer).packed.ljust(16, b"\0")
    return bytes([family, state, 0, 0]) + bytes(4) + bytes(16) + address + bytes(12) + bytes(20)


@dataclass(slots=True)
class Kernel:
    """Answers netlink requests: has `sockets`, and refuses to destroy them with `refusal` (0: does it)."""

    sockets: dict[int, list[bytes]] = field(default_factory=dict)  # of TCP
    udp: dict[int, list[bytes]] | None = None  # None: it has no udp_diag
    refusal: int = 0
    silent: bool = False
    destroyed: list[bytes] = field(default_factory=list)

    def ask(self, kind: int, flags: int, payload: bytes) -> list[bytes]:
        assert flags
        if self.silent:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if kind != SOCK_DESTROY:
            if payload[1] == socket.IPPROTO_UDP and self.udp is None:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            states = int.from_bytes(payload[4:8], sys.byteorder)
            return [known for known in self._of(payload[1]).get(payload[0], []) if states >> known[1] & 1]
        identity = payload[8:]
        if self.refusal or identity not in [known[4:52] for group in self._of(payload[1]).values() for known in group]:
            raise OSError(self.refusal or errno.ENOENT, "no")
        self.destroyed.append(identity)
        return []

    def _of(self, protocol: int) -> dict[int, list[bytes]]:
        return self.sockets if protocol == socket.IPPROTO_TCP else self.udp or {}


def asking(kernel: object) -> tcp_state.OpenNetlink:
    """Whoever opens netlink speaks to this kernel."""
    return lambda _: nullcontext(cast("Netlink", kernel))


@pytest.fixture
def kernel() -> Kernel:
    return Kernel({
        socket.AF_INET: [message(socket.AF_INET, peer) for peer in ("10.77.2.10", "10.77.1.10", "127.0.0.1")],
        socket.AF_INET6: [message(socket.AF_INET6, peer) for peer in ("::ffff:10.77.2.11", "::1", "::10.77.2.12")],
    })  # fmt: skip


def test_sockets_to_the_peer_go_whatever_their_family_and_no_others(kernel: Kernel) -> None:
    assert destroy_sockets(PEERS, asking(kernel)) == Leftovers(destroyed=2, left=0)
    peers = [identity[20:36].rstrip(b"\0") for identity in kernel.destroyed]
    assert peers == [ipaddress.ip_address("10.77.2.10").packed, ipaddress.ip_address("::ffff:10.77.2.11").packed]


def test_connections_over_quic_to_the_peer_go_as_well(kernel: Kernel) -> None:
    """A browser that stays open keeps them; a listening socket has no peer."""
    kernel.udp = {socket.AF_INET: [message(socket.AF_INET, peer) for peer in ("10.77.2.10", "0.0.0.0")]}  # noqa: S104
    assert destroy_sockets(PEERS, asking(kernel)) == Leftovers(destroyed=3, left=0)


def test_a_udp_socket_without_a_peer_stays_even_if_the_network_is_all_addresses(kernel: Kernel) -> None:
    """A server's own, which listens, and that of the probes."""
    unconnected = message(socket.AF_INET, "0.0.0.0", state=7)  # noqa: S104 (TCP_CLOSE is 7)
    kernel.udp = {socket.AF_INET: [message(socket.AF_INET, "10.77.2.10"), unconnected]}
    assert destroy_sockets(ipaddress.IPv4Network("0.0.0.0/0"), asking(kernel)).left == 0
    assert unconnected[4:52] not in kernel.destroyed


def test_a_kernel_that_cannot_destroy_says_what_is_left(kernel: Kernel) -> None:
    kernel.refusal = errno.EOPNOTSUPP
    assert destroy_sockets(PEERS, asking(kernel)) == Leftovers(destroyed=None, left=2)


def test_a_kernel_that_tells_nothing_is_not_taken_for_an_empty_one(kernel: Kernel) -> None:
    kernel.silent = True
    assert destroy_sockets(PEERS, asking(kernel)) == Leftovers(destroyed=None, left=None)


def test_a_socket_that_stays_is_counted(kernel: Kernel) -> None:
    kernel.refusal = errno.EBUSY
    assert destroy_sockets(PEERS, asking(kernel)) == Leftovers(destroyed=0, left=2)


def test_a_missing_capability_is_an_error(kernel: Kernel) -> None:
    kernel.refusal = errno.EPERM
    with pytest.raises(PermissionError):
        destroy_sockets(PEERS, asking(kernel))


class Rootless:
    """What a container of a rootless Docker is told: it may ask which family tcp_metrics is, and not flush them."""

    def ask(self, kind: int, *_: object) -> list[bytes]:
        if kind == tcp_state.GENL_ID_CTRL:
            return [bytes(4) + struct.pack("@HHHxx", 6, tcp_state.CTRL_ATTR_FAMILY_ID, 27)]
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_where_tcp_learns_nothing_there_is_nothing_to_flush() -> None:
    tcp_state.flush_metrics(lambda: False, asking(Rootless()))
    with pytest.raises(PermissionError):
        tcp_state.flush_metrics(lambda: True, asking(Rootless()))


def with_congestion(family: int, peer: str, name: bytes) -> bytes:
    """A message with the attribute INET_DIAG_CONG; without it, as of a connection in TIME-WAIT, where name is empty."""
    attribute = struct.pack("@HH", 4 + len(name), INET_DIAG_CONG) + name
    return message(family, peer) + (attribute + bytes(-len(attribute) % 4) if name else b"")


def test_the_congestion_control_of_each_connection_with_the_peer_is_told_and_of_no_other(kernel: Kernel) -> None:
    kernel.sockets = {
        socket.AF_INET: [
            with_congestion(socket.AF_INET, "10.77.2.10", b"bbr\0"),
            with_congestion(socket.AF_INET, "10.77.2.10", b""),
            with_congestion(socket.AF_INET, "10.77.1.10", b"reno\0"),
        ],
        socket.AF_INET6: [with_congestion(socket.AF_INET6, "::ffff:10.77.2.11", b"cubic\0")],
    }
    assert congestion_of(PEERS, asking(kernel)) == ["bbr", "cubic"]
    kernel.silent = True
    assert congestion_of(PEERS, asking(kernel)) == []
