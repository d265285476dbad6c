"""Socket buffers: as large as requested, or as large as the kernel grants. Standard library only."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path

# asm-generic/socket.h: with and beyond net.core.rmem_max and wmem_max
_RECEIVE, _SEND = (socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)
CAP_NET_ADMIN = 12  # linux/capability.h
LEAST_BUFFER_BYTES = 4 << 20  # holds what arrives at 1 Gbit/s while this process is kept waiting for 30 ms


def is_admin() -> bool:
    """Whether this process has CAP_NET_ADMIN, in whatever user namespace (capabilities(7), proc(5): CapEff)."""
    _, _, capabilities = Path("/proc/self/status").read_text().partition("CapEff:")
    return bool(int(capabilities.split()[0], 16) >> CAP_NET_ADMIN & 1)


def enlarge(
    sock: socket.socket, wanted_bytes: int, *, send: bool = False, is_admin: Callable[[], bool] = is_admin
) -> int:
    """Give a socket a receive buffer (with `send` also a send buffer) of this many bytes; the smaller size granted.

    Beyond the host's net.core.rmem_max and wmem_max the kernel grants it only to CAP_NET_ADMIN of the first user
    namespace, which a rootless Docker does not have (sock_setsockopt in net/core/sock.c): then it is as much as
    they allow. Bytes as requested: the kernel's accounting shows twice as many. Raises PermissionError without
    CAP_NET_ADMIN of any namespace, and OSError, with a fix, below LEAST_BUFFER_BYTES.
    """
    wanted = (_RECEIVE, _SEND) if send else (_RECEIVE,)
    granted = min(_enlarge(sock, wanted_bytes, *options, is_admin) for options in wanted)
    if granted < min(wanted_bytes, LEAST_BUFFER_BYTES):
        limits = " ".join(f"net.core.{name}={LEAST_BUFFER_BYTES}" for name in ("rmem_max", "wmem_max"))
        raise OSError(
            errno.ENOBUFS,
            f"the kernel grants a socket {granted >> 10} KiB, and {LEAST_BUFFER_BYTES >> 10} are needed: "
            f"allow it on the host (sysctl -w {limits}), or use a Docker that is not rootless",
        )
    return granted


def _enlarge(sock: socket.socket, wanted_bytes: int, plain: int, forced: int, is_admin: Callable[[], bool]) -> int:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, wanted_bytes)
    except PermissionError:
        if not is_admin():
            raise
        sock.setsockopt(socket.SOL_SOCKET, plain, wanted_bytes)
    return sock.getsockopt(socket.SOL_SOCKET, plain) // 2
