"""Captures of packets: the file format, and the kernel's ring on the loopback."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from impair import pcapng, taken
from impair.endpoint.capture import BLOCK_BYTES, Capture
from impair.taken import Files

PAYLOAD = b"a datagram that is captured "


def blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each block of a pcapng file, whose two lengths must agree."""
    while content:
        kind, size = struct.unpack_from("<II", content)
        assert size % 4 == 0
        assert struct.unpack_from("<I", content, size - 4) == (size,)
        yield kind, content[8 : size - 4]
        content = content[size:]


def capture(ring_bytes: int) -> Capture:
    try:
        return Capture("lo", ring_bytes)
    except PermissionError:
        pytest.skip("a packet socket needs CAP_NET_RAW")


def sent(count: int, size: int) -> None:
    """Send datagrams over the loopback, to a port of our own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        for number in range(count):
            sink.sendto((PAYLOAD + b"%06d" % number).ljust(size, b"."), sink.getsockname())
            sink.recv(2048)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 61])
def test_a_file_has_section_interface_keys_and_packets_in_this_order(length: int) -> None:
    keys = b"k" * length
    content = pcapng.header("client", "about it", keys) + pcapng.packet((5 << 32) + 9, b"p" * length, 1514)
    (section, about), (interface, _), (secrets, kept), (packet, body) = blocks(content)
    assert (section, interface, secrets, packet) == (0x0A0D0D0A, 1, 10, 6)
    assert about.startswith(struct.pack("<I", 0x1A2B3C4D))
    assert b"about it" in about
    assert struct.unpack_from("<II", kept) == (0x544C534B, length)
    assert kept[8 : 8 + length] == keys
    assert struct.unpack_from("<5I", body) == (0, 5, 9, length, 1514)
    assert body[20 : 20 + length] == b"p" * length


def test_a_file_without_keys_has_no_block_for_them() -> None:
    assert [kind for kind, _ in blocks(pcapng.header("server", ""))] == [0x0A0D0D0A, 1]


def test_every_packet_is_captured_whole_in_order_and_once_in_each_direction() -> None:
    watch = capture(4 * BLOCK_BYTES)
    sent(300, 1400)
    found = watch.finish()
    bodies = [body for kind, body in blocks(found.blocks) if PAYLOAD in body]
    numbers = [int(body.partition(PAYLOAD)[2][:6]) for body in bodies]
    assert found.missed == 0
    assert numbers == [number for number in range(300) for _ in range(2)], "sent and received"
    assert all(body.partition(PAYLOAD)[2].rstrip(b"\0").endswith(b".") for body in bodies)
    times = [(high << 32) + low for high, low in (struct.unpack_from("<II", body, 4) for body in bodies)]
    assert times == sorted(times)


def test_a_full_ring_keeps_the_first_packets_and_counts_the_others() -> None:
    watch = capture(2 * BLOCK_BYTES)
    sent(2000, 1400)
    found = watch.finish()
    assert found.count + found.missed >= 4000
    assert 1000 < found.count < 1600
    assert PAYLOAD + b"000000" in found.blocks
    assert PAYLOAD + b"001999" not in found.blocks


def test_files_are_taken_in_pieces_and_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(taken, "PIECE_BYTES", 10)
    monkeypatch.setattr(taken, "MOST_BYTES", 60)
    (tmp_path / "qlog").mkdir()
    (tmp_path / "qlog" / "a").write_bytes(bytes(range(25)))
    (tmp_path / "empty").touch()
    (tmp_path / "long").write_bytes(bytes(61))
    files = Files()
    files.keep_folder(tmp_path)
    files.keep({"more": bytes(36)})
    assert files.files() == {"sizes": {"qlog/a": 25}, "left_out": ["long", "more"]}
    pieces = [base64.b64decode(files.piece("qlog/a", start)) for start in (0, 10, 20)]
    assert b"".join(pieces) == bytes(range(25))
    files.forget_files()
    assert files.files() == {"sizes": {}, "left_out": []}
