"""The agent of the host that a user's own server joins: the endpoint's operations, and those of the server contract.

The program runs in its own container (headwind/testbed/own_server.py), without any code of ours. The contract is
fulfilled as far as it can be from outside: by the sockets that wait on the port, and by handshakes with the program.
"""

from __future__ import annotations

import argparse
import http.client
import ipaddress
import os
import ssl
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impair.endpoint import agent
from impair.endpoint.buffers import tcp_limits
from impair.endpoint.tcp_state import destroy_sockets
from impair.fingerprint import setting
from impair.messages import Answers, Health
from impair.wire import Operation, serve
from servers.contract import Info, NotOfferedError
from servers.objects import make
from servers.own.listeners import listeners
from servers.probes import Probes, ServerIsGone

WWW, CERTIFICATE, KEY = Path("/www"), Path("/certs/cert.pem"), Path("/certs/priv.key")
EVERYWHERE = ipaddress.IPv4Network("0.0.0.0/0")
TRANSPORTS = {"h1": "tcp", "h2": "tcp", "h3": "udp"}
ALPN = {"h1": "http/1.1", "h2": "h2"}
START_TIMEOUT_S = 5.0
HANDSHAKE_TIMEOUT_S = 2.0
CERTIFICATE_TIMEOUT_S = 20.0  # entrypoint.sh makes it
LOOK_EVERY_S = 0.005
UNPRIVILEGED = "ipv4/ip_unprivileged_port_start"


@dataclass(frozen=True, slots=True)
class Own:
    """A program that listens on one port; `ready` is a path that it has to answer over HTTP/1.1, or empty.

    Probes go to the host's own `address`, so that a program that only listens on 127.0.0.1 is found out.
    """

    name: str
    image: str
    port: int
    protocols: tuple[str, ...]
    ready: str = ""
    address: Callable[[], str] = lambda: agent.HERE.interface.ip

    def info(self) -> Info:
        """The identity as far as it is known from outside."""
        return Info(
            name=self.name, version=self.image, tls_library="unknown", packages={}, configuration_sha256="",
            workers=_cpus(), quic_congestion=None, offers=(), streams={},
            windows={str(self.port): self.windows(self.port)},
        )  # fmt: skip

    def fresh(self, workers: int | None = None, timeout_s: float = START_TIMEOUT_S) -> dict[str, Any]:
        """Destroy all TCP connections, and return when the program answers; restarting it is its container's matter.

        Returns {"workers", "took_s"} (servers/contract.py). Raises ServerIsGone with what it does not answer, or
        NotOfferedError for more than one worker.
        """
        if workers and workers > 1:
            raise NotOfferedError(f"the lab cannot tell {self.name} on how many CPUs to run")
        start = time.monotonic()
        self.forget_all()
        self.await_answer(timeout_s)
        return {"workers": self.health().workers, "took_s": time.monotonic() - start}

    def forget_all(self) -> dict[str, int | None]:
        """Destroy all TCP sockets that have a peer, so that the port is free for the program's next start."""
        leftovers = destroy_sockets(EVERYWHERE)
        return {"sockets_destroyed": leftovers.destroyed, "sockets_left": leftovers.left}

    def await_answer(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when the program speaks each of its protocols. Raises ServerIsGone with the first that it does not."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                for protocol in self.protocols:
                    self.check(protocol)
                return
            except ServerIsGone:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(LOOK_EVERY_S)

    def check(self, protocol: str) -> None:
        """Check that the program speaks a protocol now. Raises ServerIsGone."""
        if protocol == "h3":
            probes = Probes(self.port, server=self.name, address=self.address())
            probes.quic(1)
        else:
            self._shake_hands(protocol)

    def _shake_hands(self, protocol: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it may have its own certificate
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols([ALPN[protocol]])
        address = self.address()
        connection = http.client.HTTPSConnection(address, self.port, timeout=HANDSHAKE_TIMEOUT_S, context=context)
        try:
            connection.connect()
            sock: Any = connection.sock
            chosen = sock.selected_alpn_protocol()
            if chosen != ALPN[protocol] and (protocol, chosen) != ("h1", None):
                raise ServerIsGone(f"{self.name} does not negotiate {ALPN[protocol]} on port {self.port}")
            if self.ready and protocol == "h1":
                connection.request("GET", self.ready)
                if not 200 <= (status := connection.getresponse().status) < 400:
                    raise ServerIsGone(f"{self.name} answers {self.ready} with status {status}")
        except (OSError, http.client.HTTPException) as error:
            raise ServerIsGone(f"{self.name} does not answer {protocol} on port {self.port}: {error}") from error
        finally:
            connection.close()

    def health(self) -> Health:
        """A number that stands for the sockets that wait on its port: a program that is started again has others.

        Raises ServerIsGone if nothing waits there.
        """
        found = listeners(self.port)
        if found is None:  # the kernel lists none
            self.await_answer(0.0)
            return Health(0, [0] * _cpus(), 0.0)
        for transport in dict.fromkeys(map(TRANSPORTS.__getitem__, self.protocols)):
            if transport not in {each.transport for each in found}:
                raise ServerIsGone(f"{self.name} does not listen on {transport.upper()} port {self.port}")
        identity = zlib.crc32(repr([each.inode for each in found]).encode())
        return Health(identity, [identity] * _cpus(), 0.0)

    def windows(self, port: int) -> dict[str, int | None]:
        """The kernel's buffers behind the port; the program's own are unknown. Raises KeyError."""
        if port != self.port:
            raise KeyError(port)
        found = [each for each in listeners(port) or () if each.transport == "udp"]
        return {
            **tcp_limits(),
            "udp_rcvbuf_bytes": min((each.rcvbuf_bytes for each in found), default=None),
            "udp_sndbuf_bytes": min((each.sndbuf_bytes for each in found), default=None),
            "http3_stream_buffer_bytes": None,
        }

    def answers(self) -> Answers:
        """Raise NotOfferedError: the program's log, if it has one, is unknown."""
        raise NotOfferedError(f"{self.name} has no log of its answers that the lab could read")

    def examine(self) -> list[str]:
        """Deviations from a fresh testbed, and a port that the program, without capabilities, may not have."""
        return [*agent.OPERATIONS["examine"](), *self.closed_port(setting(UNPRIVILEGED))]

    def closed_port(self, first: str) -> Iterator[str]:
        """A deviation if the program's port is below `first`, the first one that needs no capability."""
        if first.isdigit() and int(first) > self.port:
            yield f"net.ipv4.ip_unprivileged_port_start = {first}: {self.name} cannot listen on port {self.port}"

    @property
    def operations(self) -> dict[str, Operation]:
        """All operations of the agent."""
        return {
            **agent.OPERATIONS,
            "answers": self.answers,
            "await_answer": self.await_answer,
            "examine": self.examine,
            "forget_all": self.forget_all,
            "fresh": self.fresh,
            "health": self.health,
            "info": self.info,
            "log": log,
            "provide": provide,
            "windows": self.windows,
        }


def provide(path: str) -> dict[str, Any]:
    """Create the object of an on-demand path unless it exists: {"made": bool}."""
    return {"made": make(WWW, path)}


def log() -> str:
    """An empty text: the program's log is the output of its container."""
    return ""


def _cpus() -> int:
    return os.cpu_count() or 1


def parsed(arguments: Sequence[str]) -> Own:
    """The program that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--image", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--protocols", required=True, help="such as h1,h2")
    parser.add_argument("--ready", default="")
    given = parser.parse_args(arguments)
    return Own(given.name, given.image, given.port, tuple(given.protocols.split(",")), given.ready)


def main() -> None:
    """Answer on standard input and output, once the program's certificate exists."""
    own, deadline = parsed(sys.argv[1:]), time.monotonic() + CERTIFICATE_TIMEOUT_S
    while not KEY.exists() and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    serve(own.operations, sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
