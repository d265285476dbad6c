"""Probes whether a server answers: replies that need no handshake, over TCP and over QUIC."""

from __future__ import annotations

import secrets
import socket
import ssl
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from impair.endpoint.buffers import udp_sockets

PORT = 443
TCP_TIMEOUT_S = 5.0
QUIC_TIMEOUT_S = 1.0

# A version that no server knows (RFC 9000, section 15), in a datagram long enough to be a client's first one (14.1):
# the answer is a Version Negotiation packet, without any state on the server.
UNKNOWN_VERSION = bytes.fromhex("1a2a3a4a")
FIRST_DATAGRAM_BYTES = 1200


class ServerIsGone(RuntimeError):
    """The server is not running, did not start in time, or does not answer."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Probes of the port that every measurement uses first; each raises ServerIsGone.

    `asked` is sent over TCP, and part of the answer has to be `expected`: nginx and caddy answer plain HTTP with 400.
    """

    port: int = PORT
    tcp_timeout_s: float = TCP_TIMEOUT_S
    quic_timeout_s: float = QUIC_TIMEOUT_S
    server: str = "nginx"
    asked: bytes = b"GET / HTTP/1.0\r\n\r\n"
    expected: bytes = b"400"
    address: str = "127.0.0.1"

    def sockets(self, workers: int) -> None:
        """Check that each worker has a QUIC socket, if the kernel lists them: nothing would read extra ones."""
        sockets = sum(each.port == self.port for each in udp_sockets())
        if sockets not in (0, workers):
            raise ServerIsGone(f"{self.server} has {sockets} QUIC sockets on port {self.port} for {workers} workers")

    def tcp(self) -> None:
        """Check that the server answers on the TCP port, without a handshake."""
        try:
            with socket.create_connection((self.address, self.port), self.tcp_timeout_s) as connection:
                connection.sendall(self.asked)
                answer = connection.recv(64)
        except OSError as error:
            raise ServerIsGone(f"{self.server} does not answer on TCP port {self.port}: {error}") from error
        if self.expected not in answer:
            raise ServerIsGone(f"{self.server} answers {answer!r} to a probe on TCP port {self.port}")

    def quic(self, count: int) -> None:
        """Check that every QUIC socket is served: `count` first datagrams from different ports are all answered."""
        with ExitStack() as stack:
            probes = []
            for _ in range(count):
                probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                probe.settimeout(self.quic_timeout_s)
                probe.connect((self.address, self.port))
                probe.send(unknown_initial())
                probes.append(probe)
            for probe in probes:
                try:
                    answer = probe.recv(2048)
                except OSError as error:
                    raise ServerIsGone(
                        f"{self.server} does not answer QUIC on UDP port {self.port}: {error}"
                    ) from error
                if answer[1:5] != bytes(4):
                    raise ServerIsGone(
                        f"not a Version Negotiation packet from UDP port {self.port}: {answer[:16].hex()}"
                    )


def unknown_initial() -> bytes:
    """A long-header packet (RFC 8999, section 5.1) of an unknown version with fresh 8-byte connection ids."""
    identities = b"".join(bytes([8]) + secrets.token_bytes(8) for _ in ("destination", "source"))
    return (b"\xc0" + UNKNOWN_VERSION + identities).ljust(FIRST_DATAGRAM_BYTES, b"\0")


def old_hello() -> bytes:
    """A ClientHello of TLS 1.2, to which a server of TLS 1.3 answers with an alert, without a key exchange."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    hello = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="server").do_handshake()
    return hello.read()
