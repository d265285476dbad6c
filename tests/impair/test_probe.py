"""Trains, and what a listener sees of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence

import pytest

from impair.endpoint import probe
from impair.endpoint.probe import KEPT_TRAINS, Listener, ProbeError, send_train
from impair.messages import RateEstimate, TrainSeen


def test_a_late_datagram_moves_the_next_ones_instead_of_crowding_them() -> None:
    now_s = time.monotonic()
    next_s, late_s = probe._wait(now_s - 1.0, 0.01)
    assert late_s >= 1.0
    assert next_s - now_s >= 0.005
    next_s, late_s = probe._wait(now_s + 0.02, 0.01)
    assert time.monotonic() - now_s >= 0.02
    assert next_s - now_s >= 0.03 - 1e-9


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A listener on a free port of this machine."""
    try:
        listener = Listener(port=0)
    except ProbeError as error:
        pytest.skip(str(error))
    yield listener
    listener.close()


@pytest.fixture
def wire() -> Iterator[socket.socket]:
    """What is sent here ends here, and can be delivered by the test in its own way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(5)
        yield sock


def datagrams(wire: socket.socket, nonce: int, count: int, size_bytes: int = 64) -> list[bytes]:
    send_train("127.0.0.1", nonce, count, 0.0, size_bytes, wire.getsockname()[1])
    return [wire.recv(2048) for _ in range(count)]


def deliver(wire: socket.socket, listener: Listener, contents: Sequence[bytes]) -> None:
    for content in contents:
        wire.sendto(content, ("127.0.0.1", listener.port))


def test_the_listener_has_the_buffer_it_asked_for(listener: Listener) -> None:
    assert listener.receive_buffer_bytes >= probe.RECEIVE_BUFFER_BYTES


@pytest.mark.parametrize(("interval_s", "size_bytes"), [(0.001, 64), (0.0, 1472), (0.00005, 24)])
def test_a_train_arrives_whole_and_timed(listener: Listener, interval_s: float, size_bytes: int) -> None:
    start_s = time.monotonic()
    sent = send_train("127.0.0.1", 2**64 - 1, 40, interval_s, size_bytes, listener.port)
    seen = listener.seen(2**64 - 1, 40, 5.0)
    whole_s = time.monotonic() - start_s
    assert sent.sent == seen.received == seen.unique == 40
    assert seen.sequences == list(range(40))
    assert (seen.inversions, seen.bad_payloads, seen.sources) == (0, 0, ["127.0.0.1"])
    assert all(0 < delay_s <= whole_s for delay_s in seen.delays_s)
    assert seen.arrivals_s == sorted(seen.arrivals_s)
    assert seen.arrivals_s[0] == 0
    assert sent.seconds >= 38.5 * interval_s  # the first one may be late by half an interval


def test_copies_and_wrong_order_are_seen(listener: Listener, wire: socket.socket) -> None:
    train = datagrams(wire, 5, 4)
    deliver(wire, listener, [train[place] for place in (0, 2, 1, 1, 3)])
    seen = listener.seen(5, 4, 5.0)
    assert seen.sequences == [0, 2, 1, 1, 3]
    assert (seen.received, seen.unique, seen.inversions) == (5, 4, 1)
    assert len(seen.delays_s) == len(seen.arrivals_s) == 5


def test_a_straggler_of_an_earlier_train_is_not_counted(listener: Listener, wire: socket.socket) -> None:
    earlier, later = datagrams(wire, 1, 3), datagrams(wire, 2, 3)
    deliver(wire, listener, [earlier[0], later[0], earlier[1], later[1], later[2]])
    assert listener.seen(2, 3, 5.0).sequences == [0, 1, 2]
    assert listener.seen(1, 2, 5.0).sequences == [0, 1]


def test_any_flipped_bit_is_noticed(listener: Listener, wire: socket.socket) -> None:
    (content,) = datagrams(wire, 7, 1)
    for bit in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        deliver(wire, listener, [bytes(flipped)])
    deliver(wire, listener, [content, b"", b"short"])
    seen = listener.seen(7, 2, 0.2)
    assert seen.received == 1
    assert seen.bad_payloads == len(content) * 8 + 2
    assert listener.seen(7, 1, 0.0).bad_payloads == 0  # told once


def test_only_the_newest_trains_are_kept(listener: Listener, wire: socket.socket) -> None:
    for nonce in range(KEPT_TRAINS + 1):
        deliver(wire, listener, datagrams(wire, nonce, 1))
    assert listener.seen(KEPT_TRAINS, 1, 5.0).received == 1
    assert listener.seen(1, 1, 0.0).received == 1
    assert listener.seen(0, 1, 0.0).received == 0


def test_the_answer_comes_when_all_is_there_and_else_at_the_timeout(listener: Listener) -> None:
    send_train("127.0.0.1", 3, 5, 0.0, 64, listener.port)
    assert listener.seen(3, 5, 3600.0).unique == 5  # it would not come in the time of a test
    start_s = time.monotonic()
    assert listener.seen(3, 6, 0.2).unique == 5
    assert time.monotonic() - start_s >= 0.2
    assert listener.seen(4, 1, 0.0) == TrainSeen(0, 0, 0, [], [], [], [], RateEstimate())


def test_a_taken_port_is_said(listener: Listener) -> None:
    with pytest.raises(ProbeError, match=f"UDP port {listener.port}.*in use"):
        Listener(listener.port)


def test_a_train_to_nobody_is_said(wire: socket.socket) -> None:
    port = wire.getsockname()[1]
    wire.close()
    with pytest.raises(ProbeError, match=f"127.0.0.1, UDP port {port}: no listener"):
        send_train("127.0.0.1", 1, 100, 0.001, 64, port)


@pytest.mark.parametrize(("count", "size_bytes"), [(0, 64), (1, probe.SMALLEST_PAYLOAD_BYTES - 1), (1, 65508)])
def test_a_train_that_cannot_be_is_refused(count: int, size_bytes: int) -> None:
    with pytest.raises(ProbeError, match="at least 1 of"):
        send_train("127.0.0.1", 1, count, 0.0, size_bytes)
