"""The TCP transfer that notices every changed byte, and ends whatever the network does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.net.pattern import PERIOD_BYTES, PatternError, pattern, send_pattern, serve_pattern


@pytest.fixture
def port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        number: int = sock.getsockname()[1]
    return number


@contextmanager
def serving(port: int, timeout_s: float = 10.0) -> Iterator[dict[str, Any]]:
    """Serve the pattern beside the test; what came of it is in the dictionary afterwards."""
    answer: dict[str, Any] = {}
    thread = threading.Thread(target=lambda: answer.update(serve_pattern(timeout_s, port)))
    thread.start()
    yield answer
    thread.join()


def connected(port: int) -> socket.socket:
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("nobody listens")


def test_the_pattern_has_no_seams() -> None:
    whole = b"".join(pattern(offset, 1000) for offset in range(0, 3 * PERIOD_BYTES, 1000))
    for offset in (0, 1, PERIOD_BYTES - 1, PERIOD_BYTES, 100_003):
        assert pattern(offset, 65_536) == whole[offset : offset + 65_536]


@pytest.mark.parametrize("byte_count", [0, 1, 65_536, 3_000_001])
def test_what_was_sent_arrives(port: int, byte_count: int) -> None:
    with serving(port) as served:
        sent = send_pattern("127.0.0.1", byte_count, 10.0, port)
    assert (sent["bytes"], sent["complete"]) == (byte_count, True)
    assert (served["bytes"], served["bad_bytes"], served["complete"]) == (byte_count, 0, True)


def test_every_changed_byte_is_counted(port: int) -> None:
    content = bytearray(pattern(0, 60_000) + pattern(60_000, 60_000))
    for place in (0, 59_999, 60_000, 119_999):
        content[place] ^= 0x10
    with serving(port) as served, connected(port) as connection:
        connection.sendall(content)
    assert (served["bytes"], served["bad_bytes"], served["complete"]) == (120_000, 4, True)


def test_a_missing_stretch_spoils_what_follows(port: int) -> None:
    with serving(port) as served, connected(port) as connection:
        connection.sendall(pattern(0, 10_000) + pattern(11_460, 10_000))
    assert 9_800 < served["bad_bytes"] <= 10_000


def test_a_server_without_a_sender_ends_at_its_timeout(port: int) -> None:
    start_s = time.monotonic()
    assert serve_pattern(0.2, port) == {"bytes": 0, "bad_bytes": 0, "seconds": 0.0, "complete": False}
    assert time.monotonic() - start_s >= 0.2


def test_a_sender_without_a_server_ends_at_its_timeout(port: int) -> None:
    start_s = time.monotonic()
    sent = send_pattern("127.0.0.1", 1000, 0.2, port)
    assert (sent["bytes"], sent["complete"]) == (0, False)
    assert time.monotonic() - start_s >= 0.2


def test_a_transfer_that_stalls_ends_at_its_timeout_on_both_sides(port: int) -> None:
    with serving(port, 0.3) as served, connected(port) as connection:
        connection.sendall(pattern(0, 5000))
        while not served:
            time.sleep(0.01)
    assert (served["bytes"], served["bad_bytes"], served["complete"]) == (5000, 0, False)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", port))
        silent.listen(1)
        sent = send_pattern("127.0.0.1", 50_000_000, 0.3, port)
    assert not sent["complete"]
    assert 0.3 <= sent["seconds"] < 5


def test_a_taken_port_is_said(port: int) -> None:
    with socket.socket() as sock:
        sock.bind(("", port))
        with pytest.raises(PatternError, match=f"TCP port {port}"):
            serve_pattern(0.1, port)


def test_an_impossible_peer_is_said() -> None:
    with pytest.raises(PatternError, match=r"to 255\.255\.255\.255"):
        send_pattern("255.255.255.255", 1, 1.0)
