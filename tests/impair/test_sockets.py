"""Socket buffers are as large as asked for, or as large as the kernel grants, and never silently small."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from impair import sockets

FORCED = (32, 33)  # SO_SNDBUFFORCE, SO_RCVBUFFORCE


class Unprivileged(socket.socket):
    """A socket of a process whom the kernel grants `limit` bytes, as net.core.rmem_max and wmem_max would."""

    limit = 4 << 20

    def setsockopt(self, level: int, option: int, value: Any) -> None:  # type: ignore[override]
        if option in FORCED:
            raise PermissionError(1, "Operation not permitted")
        super().setsockopt(level, option, min(value, self.limit))


class NearlyNothing(Unprivileged):
    """One with the limits of a fresh kernel."""

    limit = 212992


def rootless() -> bool:
    """With CAP_NET_ADMIN, but of another user namespace than the first."""
    return True


def test_without_the_capability_of_any_namespace_it_is_an_error() -> None:
    with Unprivileged(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(PermissionError):
        sockets.enlarge(sock, 64 << 20, is_admin=lambda: False)


def test_without_the_right_to_more_a_socket_has_what_the_host_allows() -> None:
    allowed = min(int(Path("/proc/sys/net/core", name).read_text()) for name in ("rmem_max", "wmem_max"))
    if allowed < sockets.LEAST_BUFFER_BYTES:
        pytest.skip(f"this host allows {allowed} bytes")
    with Unprivileged(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert sockets.enlarge(sock, 64 << 20, send=True, is_admin=rootless) == Unprivileged.limit


def test_too_small_a_buffer_is_refused_with_what_to_do() -> None:
    with NearlyNothing(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(OSError, match="208 KiB") as raised:
        sockets.enlarge(sock, 64 << 20, is_admin=rootless)
    assert "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304" in str(raised.value)


def test_a_small_buffer_that_was_asked_for_is_enough() -> None:
    with Unprivileged(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert sockets.enlarge(sock, 100_000, is_admin=rootless) == 100_000
