"""The agent of the server: the endpoint's operations, and what is read from nginx or reset between trials."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from impair.endpoint import agent
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.wire import Operation, serve
from nginx import answers
from nginx.master import Nginx
from nginx.objects import make
from nginx.probes import PORT

CONFIGURATION = Path(__file__).with_name("nginx.conf")
INCLUDED = ("delayed.conf", "sessions.conf", "delay.js")
SITE = Path("/srv/headwind")
FRESH_STREAM_BUFFER_BYTES = 64 << 10  # http3_stream_buffer_size of a server that does not set it
PACKAGES = ("nginx", "libssl3t64", "libc6")
NGINX = Nginx()


def restart_workers(workers: int | None = None) -> dict[str, Any]:
    """New workers, and an empty log of answers: {"workers": [pids], "took_s": float}; see Nginx.restart_workers."""
    restarted = NGINX.restart_workers(workers)
    answers.forget()
    return restarted


def provide(path: str) -> dict[str, Any]:
    """Make the object of a path that is made on demand (nginx/objects.py), where it is not there yet: {"made": bool}.

    Raises ValueError for any other path.
    """
    return {"made": make(SITE, path)}


def info() -> dict[str, Any]:
    """What serves here: versions, build options, configuration hash, and the buffer that QUIC's sockets really have."""
    told = subprocess.run(["nginx", "-V"], capture_output=True, text=True, check=True).stderr
    version = _find(r"nginx version: nginx/(\S+)", told)
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *PACKAGES],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    # CUBIC came with 1.27.5, in place of New Reno (https://nginx.org/en/CHANGES)
    cubic = tuple(map(int, version.split("."))) >= (1, 27, 5)
    return {
        "nginx": version,
        "tls_library": _find(r"(?:built|running) with (.+)", told),
        "configure_arguments": _find(r"configure arguments: (.*)", told),
        "packages": dict(line.split() for line in listing.splitlines()),
        "kernel": platform.release(),
        "configuration_sha256": _configuration_sha256(),
        "workers": len(NGINX.health().workers),
        "quic_congestion": "cubic" if cubic else "newreno",
        "quic_rcvbuf_wanted_bytes": _wanted_rcvbuf_bytes(CONFIGURATION.read_text()),
        "quic_rcvbuf_bytes": _rcvbuf_bytes(),
        "windows": {str(port): windows(port) for port in _stream_buffers(CONFIGURATION.read_text())},
    }


def _configuration_sha256() -> str:
    files = [CONFIGURATION, *map(CONFIGURATION.with_name, INCLUDED)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def windows(port: int) -> dict[str, int | None]:
    """The buffers behind `port`: {"tcp_rmem_max_bytes", "tcp_wmem_max_bytes", "http3_stream_buffer_bytes", ...}.

    "udp_rcvbuf_bytes" and "udp_sndbuf_bytes" are the kernel's, which counts twice what was asked for. Raises KeyError
    for a port that the configuration does not have.
    """
    return {
        **tcp_limits(),
        **smallest([each for each in udp_sockets() if each.port == port]),
        "http3_stream_buffer_bytes": _stream_buffers(CONFIGURATION.read_text())[port],
    }


def _stream_buffers(configuration: str) -> dict[int, int]:
    """http3_stream_buffer_size of each port that speaks QUIC."""
    found = {}
    for server in configuration.split("server {")[1:]:
        set_ = re.findall(r"^\s*http3_stream_buffer_size (\d+)([km]?);", server, re.MULTILINE)
        port = int(re.findall(r"^\s*listen (\d+) quic", server, re.MULTILINE)[0])
        found[port] = _bytes(*set_[0]) if set_ else FRESH_STREAM_BUFFER_BYTES
    return found


def examine() -> list[str]:
    """What this host has that a plain testbed has not, in words (impair/plain.py); an nginx with another file, too."""
    words = Path(f"/proc/{NGINX.health().master}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return [*agent.OPERATIONS["examine"](), *odd_command(words)]


def odd_command(words: str) -> list[str]:
    """What is wrong with nginx's command line, in words: it names the configuration, as does the master's title."""
    if f" -c {CONFIGURATION} " in words:
        return []
    return [f"nginx obeys another file than {CONFIGURATION}: `{words.strip()}`"]


def _rcvbuf_bytes() -> int | None:
    """The smallest receive buffer of the QUIC sockets, as asked for (the kernel keeps twice that, see socket(7))."""
    told = subprocess.run(
        ["ss", "-H", "-u", "-a", "-n", "-m", f"sport = :{PORT}"], capture_output=True, text=True, check=True
    ).stdout
    return min((int(kept) // 2 for kept in re.findall(r"\brb(\d+)", told)), default=None)


def _wanted_rcvbuf_bytes(configuration: str) -> int:
    return _bytes(*re.findall(r"\bquic\b.*\brcvbuf=(\d+)([km]?)", configuration)[0])


def _bytes(number: str, unit: str) -> int:
    """nginx's way to write a size: `64k`, `16m`."""
    return int(number) << {"": 0, "k": 10, "m": 20}[unit]


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1].strip() if match else "unknown"


OPERATIONS: dict[str, Operation] = {
    **agent.OPERATIONS,
    "answers": answers.read,
    "examine": examine,
    "info": info,
    "provide": provide,
    "restart_workers": restart_workers,
    "health": NGINX.health,
    "windows": windows,
}


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
