"""The agent of a haproxy in front of nginx: the endpoint's operations, and those of the server contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from impair import kept
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.messages import Health
from impair.wire import serve
from servers.contract import ALT_SVC, WINDOWS, WORKERS, Info, packages, sha256
from servers.probes import Probes, ServerIsGone, old_hello
from servers.processes import children
from servers.supervised import Supervised

CONFIGURATION = Path(__file__).with_name("haproxy.cfg")
BEHIND = Path(__file__).with_name("behind.conf")
BEHIND_PID_FILE = Path("/run/nginx.pid")
COMMAND = f"haproxy -db -f {CONFIGURATION}"
SHIPPED_WINDOW_BYTES = 480 << 10  # tune.quic.frontend.default-max-window-size
ALERT = b"\x15\x03"  # a TLS record (RFC 8446, section 5.1): haproxy closes the connection on plain HTTP without a word


class Haproxy:
    """haproxy, and the nginx behind it, whose processes must stay the same from one `fresh` to the next."""

    def __init__(self) -> None:
        self.server = Supervised(Probes(server="haproxy", asked=old_hello(), expected=ALERT))
        self._behind: list[int] = []

    def fresh(self, workers: int | None = None) -> dict[str, Any]:
        """Restart haproxy; nginx only has connections with haproxy, so it is kept (servers/contract.py)."""
        restarted = self.server.fresh(workers)
        self._behind = behind()
        return restarted

    def health(self) -> Health:
        """The processes. Raises ServerIsGone if nginx, or a worker of it, ended since `fresh`."""
        if self._behind and self._behind != behind():
            raise ServerIsGone("a process of nginx behind haproxy died")
        return self.server.health()

    def info(self) -> Info:
        """Versions, configuration and windows."""
        version = _said("haproxy", "-vv")
        return Info(
            name="haproxy",
            version=_find(r"HAProxy version (\S+)", version),
            tls_library=_find(r"Running on SSL library version : (.+)", version),
            packages=packages(("haproxy", "nginx", "libssl3t64", "libc6")),
            configuration_sha256=sha256([CONFIGURATION, BEHIND, CONFIGURATION.with_name("entrypoint.sh")]),
            workers=self.server.workers(),
            quic_congestion=congestion(CONFIGURATION.read_text()),
            offers=(ALT_SVC, WINDOWS, WORKERS),
            streams=streams(CONFIGURATION.read_text()),
            windows={str(port): windows(port) for port in congestion_windows(CONFIGURATION.read_text())},
            behind=f"nginx {packages(['nginx'])['nginx']}",
        )


def behind() -> list[int]:
    """The processes of nginx: its master, and its workers. Raises ServerIsGone."""
    try:
        master = int(kept.read_new(str(BEHIND_PID_FILE)))
    except (OSError, ValueError) as error:
        raise ServerIsGone(f"nginx behind haproxy is not running: {error}") from error
    return [master, *children(master)]


def congestion(configuration: str) -> str:
    """QUIC's congestion control; haproxy's default is cubic."""
    return _find(r"quic-cc-algo (\w+)", configuration)


def streams(configuration: str) -> dict[str, int]:
    """The most concurrent streams of a connection."""
    limits = {
        "h2": r"tune\.h2\.fe\.max-concurrent-streams (\d+)",
        "h3": r"tune\.quic\.frontend\.max-streams-bidi (\d+)",
    }
    return {protocol: int(_find(pattern, configuration)) for protocol, pattern in limits.items()}


def congestion_windows(configuration: str) -> dict[int, int]:
    """The largest congestion window of each port that speaks QUIC, in bytes: it also limits the send buffer."""
    binds = re.findall(
        r"^\s*bind quic4@\S+:(\d+) .* alpn h3(?: quic-cc-algo \w+\((\d+)m\))?$", configuration, re.MULTILINE
    )
    return {int(port): int(size) << 20 if size else SHIPPED_WINDOW_BYTES for port, size in binds}


def windows(port: int) -> dict[str, int | None]:
    """The buffers behind `port`. The UDP buffers are the listener's; a connection's socket has the kernel's default."""
    window = congestion_windows(CONFIGURATION.read_text())[port]
    sockets = [each for each in udp_sockets() if each.port == port]
    return {**tcp_limits(), **smallest(sockets), "http3_stream_buffer_bytes": window}


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1].strip() if match else "unknown"


HAPROXY = Haproxy()
OPERATIONS = HAPROXY.server.operations(
    lambda: COMMAND, fresh=HAPROXY.fresh, health=HAPROXY.health, info=HAPROXY.info, windows=windows
)


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
