"""A TCP transfer of known bytes, so that the receiver detects any byte that the network changed.

The network under test may lose everything, so both ends stop at a timeout and report how far they came; only a mistake
in the set-up is an error. Run as a program, it is an endpoint's agent with these operations added: tests copy it into
their containers.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import time
from typing import Any

from impair.endpoint.agent import OPERATIONS
from impair.wire import serve

PORT = 4777
PERIOD_BYTES = 65_521  # a prime, so that a lost or repeated stretch of any usual size shifts everything behind it
_PATTERN = hashlib.shake_128(b"headwind pattern").digest(PERIOD_BYTES)
_CHUNK_BYTES = 64 << 10
_REPEATED = _PATTERN * 3  # a chunk from any offset is one slice
_RESET = struct.pack("@ii", 1, 0)  # SO_LINGER: on close, forget what is unsent


class PatternError(Exception):
    """The transfer could not be tried at all."""


def pattern(offset: int, size_bytes: int) -> bytes:
    """The `size_bytes` (at most 65,536) of the endless pattern that begin at byte `offset`."""
    start = offset % PERIOD_BYTES
    return _REPEATED[start : start + size_bytes]


def serve_pattern(timeout_s: float, port: int = PORT) -> dict[str, Any]:
    """Wait for one `send_pattern`, and check what it delivers.

    Returns {"bytes", "bad_bytes": those that differ from the pattern, "seconds": from the connection to the last byte,
    "complete": the sender's end arrived in time}. Raises PatternError when the port is taken.
    """
    deadline = time.monotonic() + timeout_s
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("", port))
        except OSError as error:
            raise PatternError(f"cannot listen on TCP port {port}: {error.strerror}") from error
        listening.listen(1)
        listening.settimeout(timeout_s)
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            return {"bytes": 0, "bad_bytes": 0, "seconds": 0.0, "complete": False}
    with connection:
        return _receive(connection, deadline)


def _receive(connection: socket.socket, deadline: float) -> dict[str, Any]:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    received = bad = 0
    start = end = time.monotonic()
    complete = False
    while (left_s := deadline - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            chunk = connection.recv(_CHUNK_BYTES)
        except (TimeoutError, ConnectionError):
            break
        if not chunk:
            complete = True
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))  # end it properly: all is here
            break
        expected = pattern(received, len(chunk))
        if chunk != expected:
            bad += sum(a != b for a, b in zip(chunk, expected, strict=True))
        received += len(chunk)
        end = time.monotonic()
    return {"bytes": received, "bad_bytes": bad, "seconds": end - start, "complete": complete}


def send_pattern(peer_ip: str, byte_count: int, timeout_s: float, port: int = PORT) -> dict[str, Any]:
    """Send `byte_count` bytes of the pattern to the peer's `serve_pattern`, which may start a little later.

    Returns {"bytes": handed to the kernel, "seconds": until the peer has read the last one, "complete": it has}.
    """
    start = time.monotonic()
    deadline = start + timeout_s
    sent, complete = 0, False
    connection = _connect(peer_ip, port, deadline)
    if connection:
        with connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            try:
                while sent < byte_count:
                    chunk = pattern(sent, min(_CHUNK_BYTES, byte_count - sent))
                    connection.settimeout(_left_s(deadline))
                    sent += connection.send(chunk)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(_left_s(deadline))
                complete = connection.recv(1) == b""
            except (TimeoutError, ConnectionError):
                pass
    return {"bytes": sent, "seconds": time.monotonic() - start, "complete": complete}


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _connect(peer_ip: str, port: int, deadline: float) -> socket.socket | None:
    """A connection, tried again while nobody listens yet; None when the time is up."""
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            return socket.create_connection((peer_ip, port), left_s)
        except TimeoutError:
            return None
        except ConnectionRefusedError:
            time.sleep(0.01)
        except OSError as error:
            raise PatternError(f"cannot connect to {peer_ip}, TCP port {port}: {error.strerror}") from error
    return None


if __name__ == "__main__":
    serve({**OPERATIONS, "send_pattern": send_pattern, "serve_pattern": serve_pattern})
