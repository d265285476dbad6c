"""The server contract: the operations of a server's agent besides those of an endpoint (impair/endpoint/agent.py)."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from impair.messages import Answers, Health

SITE = Path("/srv/headwind")
LOG_TAIL_LINES = 20

# Features that some servers lack (Info.offers). A matrix that needs one of them cannot use the others.
ALT_SVC = "alt-svc"  # ports 445 and 8445, on which every answer offers HTTP/3; with SESSIONS also 446 and 8446
DELAY = "delay"  # answers after a delay that the path states: servers/objects.py, after
OFFER_IF = "offer-if"  # operation `offer`: HTTP/3 is offered by the state of each connection (servers/offer.py)
SESSIONS = "sessions"  # ports 444 and 8444, where connections resume sessions and send early data
WINDOWS = "windows"  # port 8443 has the windows of a fresh installation, port 443 larger ones
PUSH = "push"  # sends the picture of a page of one picture without being asked, if the client accepts pushes
WORKERS = "workers"  # any number of CPUs; one without it


@dataclass(frozen=True, slots=True)
class Info:
    """The identity of a server, recorded with each run.

    `behind`: the server that this one is a proxy of, with its version; empty if it serves files itself.
    `quic_congestion`: None if unknown. `streams`: the most concurrent streams of a connection that it allows, by
    protocol. `windows`: what `windows` returns, by port.
    """

    name: str
    version: str
    tls_library: str
    packages: Mapping[str, str]
    configuration_sha256: str
    workers: int
    quic_congestion: str | None
    offers: tuple[str, ...]
    streams: Mapping[str, int]
    windows: Mapping[str, Mapping[str, int | None]]
    behind: str = ""
    kernel: str = field(default_factory=platform.release)


class NotOfferedError(ValueError):
    """The server lacks a feature: it is not among Info.offers."""


class Server(Protocol):
    """A server: it serves SITE on port 443 and 8443, over HTTP/1.1, HTTP/2 and HTTP/3 with one certificate.

    One that lacks a protocol (headwind/servers.py) lacks port 8443, too.

    It only speaks TLS 1.3, with a full handshake for each connection. A UDP datagram is a frame: no segmentation
    offload. It keeps no log that costs time for each request, unless the workload asks for one.
    """

    def info(self) -> Any:
        """An Info; a server can add fields."""

    def fresh(self, workers: int | None = None) -> dict[str, Any]:
        """End all connections, and forget sessions and caches of clients; return when the server answers again.

        It then answers over all that it speaks, on `workers` CPUs (None: as before), and its logs are empty. Returns
        {"workers": as in Health, "took_s": float}. Raises ServerIsGone, or NotOfferedError for a number of workers.
        """

    def health(self) -> Health:
        """The processes: equal to an earlier Health if none of them died in between. Raises ServerIsGone.

        `workers` has one entry for each CPU that the server can use: pids, or the pid of its only process repeated.
        `memory_bytes` is theirs, without the processes that `fresh` keeps.
        """

    def windows(self, port: int) -> dict[str, int | None]:
        """Sizes of the windows and buffers behind `port`, in bytes; None if unknown. Raises KeyError for other ports.

        At least "tcp_rmem_max_bytes", "tcp_wmem_max_bytes", "udp_rcvbuf_bytes", "udp_sndbuf_bytes" (the kernel's,
        which counts twice the requested size) and "http3_stream_buffer_bytes", the most that a stream has in flight.
        """

    def answers(self) -> Answers:
        """The log of the answers since `fresh`, for workloads with a delay or sessions. Raises NotOfferedError."""

    def provide(self, path: str) -> dict[str, Any]:
        """Create the object of an on-demand path (servers/objects.py) unless it exists: {"made": bool}.

        Raises ValueError for any other path.
        """

    def log(self) -> str:
        """The last lines of its error log since `fresh`; empty if it logged nothing."""

    def examine(self) -> list[str]:
        """Deviations from a fresh testbed (impair/baseline.py), and an unexpected command line of the server."""


OPERATIONS = ("answers", "examine", "fresh", "health", "info", "log", "provide", "windows")


def packages(names: Iterable[str]) -> dict[str, str]:
    """The installed versions of Debian packages."""
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *names],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return dict(line.split() for line in listing.splitlines())


def sha256(files: Iterable[Path]) -> str:
    """The hash of all files together, in their order."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a log; empty if there is none."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
