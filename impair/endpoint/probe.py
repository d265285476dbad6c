"""Probe trains: sends timestamped datagrams, records arrivals, and computes the rate that they show.

Each direction is an independent train: the sender stamps every datagram just before it leaves, and the listener at the
other end is queried afterwards, so that a lost direction never hides the other one. One-way delays are true ones, not
half a round trip: both endpoints are containers on one kernel and share its clocks. The kernel stamps each arrival and
keeps the datagram in the socket until it is read: no process wakes up during a train, and a delay does not include the
time until a reader gets a core.
"""

from __future__ import annotations

import array
import errno
import hashlib
import select
import socket
import struct
import time
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from impair.endpoint.dispersion import estimate_rate
from impair.messages import TrainSeen, TrainSent
from impair.profile import HEADER_BYTES
from impair.sockets import enlarge

PORT = 4777  # of every listener; below the range that the kernel gives to clients
RECEIVE_BUFFER_BYTES = 16 << 20
KEPT_TRAINS = 8  # a listener forgets the oldest
GATHER_S = 0.003  # to gather further arrivals: the kernel stamps them, so no wake-up per datagram is needed
SHORTEST_SLEEP_S = 2e-4  # a sleep ends about 0.1 ms late: shorter waits are spent looking at the clock

# Numbers of asm-generic/socket.h and linux/in.h that Python's socket module does not name.
SO_ATTACH_FILTER, SO_TIMESTAMPNS = 26, 35
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

# A datagram is filler, then nonce, sequence number and send time (ns of CLOCK_MONOTONIC), then the CRC-32 of all that.
# The filler comes first so that its share of the CRC is computed once for a whole train.
_STAMP = struct.Struct("!QIQ")
_CHECK = struct.Struct("!I")
SMALLEST_PAYLOAD_BYTES = _STAMP.size + _CHECK.size
LARGEST_PAYLOAD_BYTES = 65507
_FILLER = hashlib.shake_128(b"headwind").digest(LARGEST_PAYLOAD_BYTES)
_TIMESPEC = struct.Struct("@qq")


class ProbeError(Exception):
    """A probe could not be sent or received for a reason that is not the impairment."""


def attach_filter(sock: socket.socket, instructions: Sequence[tuple[int, int, int, int]]) -> None:
    """Attach a classic BPF program of (code, jt, jf, k) to a socket (linux/filter.h)."""
    program = array.array("B", b"".join(struct.pack("@HBBI", *instruction) for instruction in instructions))
    address, _ = program.buffer_info()
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(instructions), address))


@dataclass(slots=True)
class Train:
    """The arrivals of one train, in order; copies of a datagram are separate arrivals."""

    frame_bytes: int = 0
    sequences: list[int] = field(default_factory=list)
    sent_ns: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)
    distinct: set[int] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    def summary(self, missing_took_time: bool = True) -> TrainSeen:
        """The train as a TrainSeen, without datagrams that were not intact."""
        start_ns = self.arrived_ns[0] if self.arrived_ns else 0
        arrivals_s = [(stamp - start_ns) / 1e9 for stamp in self.arrived_ns]
        firsts = list(dict.fromkeys(self.sequences))
        return TrainSeen(
            received=len(self.sequences),
            unique=len(firsts),
            inversions=sum(after < before for before, after in pairwise(firsts)),
            sequences=self.sequences,
            sources=sorted(self.sources),
            delays_s=[(end - start) / 1e9 for start, end in zip(self.sent_ns, self.arrived_ns, strict=True)],
            arrivals_s=arrivals_s,
            rate=estimate_rate(
                arrivals_s,
                self.sequences,
                self.frame_bytes,
                [(stamp - start_ns) / 1e9 for stamp in self.sent_ns],
                missing_took_time=missing_took_time,
            ),
        )


class Listener:
    """A UDP socket that collects trains. Raises ProbeError if it cannot be opened as required."""

    def __init__(self, port: int = PORT) -> None:
        self._trains: OrderedDict[int, Train] = OrderedDict()
        self._bad_payloads = 0
        self._buffer = bytearray(65536)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._open(port)
        except OSError as error:
            self.close()
            raise ProbeError(
                f"cannot listen for probes on UDP port {port} with a buffer of {RECEIVE_BUFFER_BYTES >> 20} MiB: "
                f"{error.strerror or error} (it needs CAP_NET_ADMIN, and the loopback interface up)"
            ) from error
        self.port: int = self._socket.getsockname()[1]

    @property
    def receive_buffer_bytes(self) -> int:
        """The socket's receive buffer, in the kernel's accounting of memory."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2  # the kernel reports twice the request

    def _open(self, port: int) -> None:
        sock = self._socket
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # With any filter the kernel checks the UDP checksum on arrival instead of at recv(): a corrupted datagram is
        # counted when it comes, and never waits in the socket.
        attach_filter(sock, [(0x06, 0, 0, 0xFFFFFFFF)])  # ret: keep everything
        enlarge(sock, RECEIVE_BUFFER_BYTES)
        sock.bind(("", port))
        if not any(_is_stamped(sock) for _ in range(200)):
            raise OSError("the kernel does not timestamp arrivals")

    def seen(self, nonce: int, expect: int, timeout_s: float, missing_took_time: bool = True) -> TrainSeen:
        """The arrivals of train `nonce`, as soon as `expect` different datagrams are there, else after `timeout_s`.

        Bad payloads are those of any train since the last call (`missing_took_time`: see estimate_rate). To
        wait for late copies as well, expect more than was sent. The buffer holds about 14,000 full frames, or
        40,000 of 106 bytes: query a longer train while it is in flight.
        """
        deadline = time.monotonic() + timeout_s
        self._drain()
        while len(self._train(nonce).distinct) < expect:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._socket], [], [], left_s)[0]:
                break
            if expect - len(self._train(nonce).distinct) > 1:
                time.sleep(min(GATHER_S, left_s))
            self._drain()
        bad, self._bad_payloads = self._bad_payloads, 0
        return replace(self._train(nonce).summary(missing_took_time), bad_payloads=bad)

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _train(self, nonce: int) -> Train:
        return self._trains.get(nonce) or Train()

    def _drain(self) -> None:
        """Take all waiting datagrams out of the socket."""
        offset_ns = _realtime_minus_monotonic_ns()  # the kernel's stamps are CLOCK_REALTIME, which may be set any time
        receive, buffer, into = self._socket.recvmsg_into, self._buffer, [self._buffer]
        while True:
            try:
                size, ancillary, _, source = receive(into, 64)
            except BlockingIOError:
                return
            datagram = memoryview(buffer)[:size]
            if size < SMALLEST_PAYLOAD_BYTES or not _is_intact(datagram):
                self._bad_payloads += 1
                continue
            nonce, sequence, sent_ns = _STAMP.unpack_from(datagram, size - SMALLEST_PAYLOAD_BYTES)
            train = self._trains.get(nonce) or self._begin(nonce, size)
            train.sequences.append(sequence)
            train.distinct.add(sequence)
            train.sources.add(source[0])
            train.sent_ns.append(sent_ns)
            train.arrived_ns.append(_stamp_ns(ancillary) - offset_ns)

    def _begin(self, nonce: int, size_bytes: int) -> Train:
        train = self._trains[nonce] = Train(frame_bytes=size_bytes + HEADER_BYTES)
        if len(self._trains) > KEPT_TRAINS:
            self._trains.popitem(last=False)
        return train


def _is_intact(datagram: memoryview) -> bool:
    content = datagram[: -_CHECK.size]
    return bool(_CHECK.unpack_from(datagram, len(content))[0] == zlib.crc32(content))


def _is_stamped(sock: socket.socket) -> bool:
    """Send the socket a datagram, and check that its stamp is its arrival time and not the time of reading.

    The kernel starts to stamp a moment after the request; until then recvmsg() makes the stamp up.
    """
    sock.sendto(b"", ("127.0.0.1", sock.getsockname()[1]))
    sent_ns = time.time_ns()
    time.sleep(0.005)
    came = select.select([sock], [], [], 1.0)[0]
    return bool(came) and _stamp_ns(sock.recvmsg(1, 64)[1]) < sent_ns + 2_000_000


def _stamp_ns(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    """The kernel's time of arrival, in ns of CLOCK_REALTIME, from the result of recvmsg()."""
    seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
    return int(seconds * 1_000_000_000 + nanoseconds)


def _realtime_minus_monotonic_ns() -> int:
    """The offset between the two clocks, from the least disturbed of several readings."""
    readings = []
    for _ in range(3):
        before, realtime, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, realtime - (before + after) // 2))
    return min(readings)[1]


def send_train(peer_ip: str, nonce: int, count: int, interval_s: float, size_bytes: int, port: int = PORT) -> TrainSent:
    """Send `count` datagrams of `size_bytes` payload to the peer's listener, `interval_s` apart (0: back to back).

    `nonce` (below 2^64) names the train: a straggler of an earlier one is never counted for it. A datagram that is late
    shifts the ones behind it, so that two are never less than half an interval apart. Raises ProbeError when a datagram
    cannot leave or there is no listener.
    """
    if not SMALLEST_PAYLOAD_BYTES <= size_bytes <= LARGEST_PAYLOAD_BYTES or count < 1:
        raise ProbeError(f"cannot send {count} datagrams of {size_bytes} bytes: at least 1 of "
                         f"{SMALLEST_PAYLOAD_BYTES} to {LARGEST_PAYLOAD_BYTES} bytes")  # fmt: skip
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)  # refuse rather than send fragments
        try:
            sock.connect((peer_ip, port))
            return _send_paced(sock, nonce, count, interval_s, size_bytes)
        except OSError as error:
            raise ProbeError(f"cannot send {count} datagrams of {size_bytes} bytes to {peer_ip}, UDP port {port}: "
                             f"{_why(error)}") from error  # fmt: skip


def _why(error: OSError) -> str:
    hints = {
        errno.ECONNREFUSED: "no listener there (the peer's agent opens it with `hello`)",
        errno.EMSGSIZE: "larger than the interface's MTU",
        errno.ENETUNREACH: "no route (`join` makes it)",
    }
    return hints.get(error.errno or 0, str(error.strerror or error))


def _send_paced(sock: socket.socket, nonce: int, count: int, interval_s: float, size_bytes: int) -> TrainSent:
    filler = _FILLER[: size_bytes - SMALLEST_PAYLOAD_BYTES]
    datagram, filler_check = bytearray(filler) + bytearray(SMALLEST_PAYLOAD_BYTES), zlib.crc32(filler)
    stamp_at, check_at = len(filler), size_bytes - _CHECK.size
    stamp = memoryview(datagram)[stamp_at:check_at]
    first_ns = now_ns = 0
    due_s, latest_s = time.monotonic(), 0.0
    for sequence in range(count):
        if interval_s:
            due_s, late_s = _wait(due_s, interval_s)
            latest_s = max(latest_s, late_s)
        now_ns = time.monotonic_ns()
        _STAMP.pack_into(datagram, stamp_at, nonce, sequence, now_ns)
        _CHECK.pack_into(datagram, check_at, zlib.crc32(stamp, filler_check))
        sock.send(datagram)
        first_ns = first_ns or now_ns
    return TrainSent(count, (now_ns - first_ns) / 1e9, latest_s)


def _wait(due_s: float, interval_s: float) -> tuple[float, float]:
    """Wait until `due_s`; returns the next deadline, and by how much this one was missed."""
    now_s = time.monotonic()
    if due_s - now_s > SHORTEST_SLEEP_S:
        time.sleep(due_s - now_s)
        now_s = time.monotonic()
    while now_s < due_s:
        now_s = time.monotonic()
    return max(due_s + interval_s, now_s + interval_s / 2), max(0.0, now_s - due_s)
