"""Captures the packets of an interface into memory, without a program that reads them meanwhile.

The kernel copies each frame into a ring (packet(7), TPACKET_V3), which is read once the capture has ended: nothing
wakes up for a packet. When the ring is full, later frames are counted and not kept.
"""

from __future__ import annotations

import mmap
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from impair import pcapng
from impair.endpoint.probe import attach_filter

RING_BYTES = 32 << 20  # 21,000 full frames
BLOCK_BYTES = 1 << 20
FRAME_SLOT_BYTES = 2048  # more than any frame of the testbed with its header
LONGEST_BLOCK_MS = 60_000  # a block that is not full is handed over after that
ETH_P_ALL = 3
SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, TPACKET_V3 = 263, 5, 6, 10, 2  # linux/if_packet.h
# Version, offset of private data, status, packets, offset of the first packet, length, number of the block
BLOCK_HEAD = struct.Struct("@6IQ")
PACKET_HEAD = struct.Struct("@6I2H")  # next, seconds, nanoseconds, kept, length, status; offsets of link and network
NOTHING = [(0x06, 0, 0, 0)]  # the filter `ret 0`


@dataclass(frozen=True, slots=True)
class Packets:
    """The packets of a capture as blocks of a pcapng file, their number, and how many came after the ring was full."""

    blocks: bytes
    count: int
    missed: int


class Capture:
    """A capture, from its creation until `finish`. Raises OSError if the kernel refuses."""

    def __init__(self, interface: str, ring_bytes: int = RING_BYTES) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
            slots = ring_bytes // FRAME_SLOT_BYTES
            ring = struct.pack("@7I", BLOCK_BYTES, ring_bytes // BLOCK_BYTES, FRAME_SLOT_BYTES, slots,
                               LONGEST_BLOCK_MS, 0, 0)  # fmt: skip
            self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), ring_bytes)
            self._socket.bind((interface, ETH_P_ALL))
        except BaseException:
            self._socket.close()
            raise

    def finish(self) -> Packets:
        """End the capture, and return what it has."""
        attach_filter(self._socket, NOTHING)
        try:
            _, missed, _ = struct.unpack("@3I", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 12))
            found = [pcapng.packet(*each) for each in self._packets()]
        finally:
            self.close()
        return Packets(b"".join(found), len(found), missed)

    def close(self) -> None:
        """Give the memory back."""
        self._ring.close()
        self._socket.close()

    def _packets(self) -> Iterator[tuple[int, bytes, int]]:
        """Time in nanoseconds since 1970, content and length of each packet."""
        blocks = []
        for start in range(0, len(self._ring), BLOCK_BYTES):
            _, _, _, count, first, _, number = BLOCK_HEAD.unpack_from(self._ring, start)
            blocks.append((number, start, count, first))
        for _, start, count, first in sorted(blocks):
            at = start + first
            for _ in range(count):
                following, seconds, nanoseconds, kept, length, _, link, _ = PACKET_HEAD.unpack_from(self._ring, at)
                yield seconds * 10**9 + nanoseconds, self._ring[at + link : at + link + kept], length
                at += following
