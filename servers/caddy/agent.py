"""The agent of a caddy: the endpoint's operations, and those of the server contract."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.wire import serve
from servers.contract import ALT_SVC, WORKERS, Info, packages, sha256
from servers.probes import Probes
from servers.supervised import Supervised

CONFIGURATION = Path(__file__).with_name("caddy.json")
COMMAND = f"caddy run --config {CONFIGURATION}"
SERVER = Supervised(Probes(server="caddy"))
STREAMS = {"h2": 250, "h3": 100}  # Go's http2.Server and quic-go; caddy sets neither


def info() -> Info:
    """Versions, configuration and windows."""
    version = _said("caddy", "version").split()[0].removeprefix("v")
    return Info(
        name="caddy",
        version=version,
        tls_library=go_version(_said("caddy", "build-info")),
        packages=packages(("caddy", "libc6")),
        configuration_sha256=sha256([CONFIGURATION, CONFIGURATION.with_name("entrypoint.sh")]),
        workers=SERVER.workers(),
        quic_congestion="newreno",  # quic-go: NewCubicSender with reno = true (internal/ackhandler)
        offers=(ALT_SVC, WORKERS),
        streams=STREAMS,
        windows={str(port): windows(port) for port in ports()},
    )


def go_version(build_info: str) -> str:
    """The version of Go, which has the TLS library, from the text of `caddy build-info`."""
    found = [line.split()[1] for line in build_info.splitlines() if line.startswith("go\t")]
    return f"crypto/tls of {found[0]}" if found else "unknown"


@lru_cache(maxsize=1)
def ports() -> tuple[int, ...]:
    """The ports of the configuration."""
    servers = json.loads(CONFIGURATION.read_text())["apps"]["http"]["servers"].values()
    return tuple(int(address.rpartition(":")[2]) for server in servers for address in server["listen"])


def windows(port: int) -> dict[str, int | None]:
    """The buffers behind `port`. quic-go has no send buffer: the congestion window alone limits a stream."""
    if port not in ports():
        raise KeyError(port)
    sockets = [each for each in udp_sockets() if each.port == port]
    return {**tcp_limits(), **smallest(sockets), "http3_stream_buffer_bytes": None}


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


OPERATIONS = SERVER.operations(lambda: COMMAND, info=info, windows=windows)


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
