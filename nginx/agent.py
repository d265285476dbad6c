"""The server's agent: the endpoint's operations, and what is read from nginx or reset between trials."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from impair import kept
from impair.endpoint import agent
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.wire import Operation, serve
from nginx import answers
from nginx.master import Nginx
from servers.contract import ALT_SVC, DELAY, OFFER_IF, SESSIONS, SITE, WINDOWS, WORKERS, Info, packages, sha256, tail
from servers.objects import make
from servers.offer import OfferIf
from servers.probes import PORT

CONFIGURATION = Path(__file__).with_name("nginx.conf")
ALWAYS = CONFIGURATION.with_name("offer-always.conf")
INCLUDED = ("delayed.conf", "offer.conf", ALWAYS.name, "sessions.conf", "delay.js")
ERROR_LOG = Path("/dev/shm/error.log")  # noqa: S108 - memory of the container
FRESH_STREAM_BUFFER_BYTES = 64 << 10  # http3_stream_buffer_size of a server that does not set it
PACKAGES = ("nginx", "libssl3t64", "libc6")
NGINX = Nginx()
OFFER = "'h3=\":$server_port\"; ma=2592000'"  # for longer than any run


def fresh(workers: int | None = None) -> dict[str, Any]:
    """Start new workers and empty the logs: {"workers": [pids], "took_s": float} (Nginx)."""
    restarted = NGINX.fresh(workers)
    answers.forget()
    answers.forget(ERROR_LOG)  # which says that the old workers were killed
    return restarted


def offer(condition: str = "") -> dict[str, Any]:
    """Offer HTTP/3 in answers to which a condition applies (servers/offer.py), or in all: {"changed": bool}.

    Only on the ports whose answers have an Alt-Svc. Raises ValueError for another condition.
    """
    text = OfferIf.parse(condition).nginx_map("h3_offer", OFFER) if condition else ALWAYS.read_text()
    return {"changed": NGINX.offer(text)}


def provide(path: str) -> dict[str, Any]:
    """Create the object of an on-demand path (servers/objects.py) unless it exists: {"made": bool}.

    Raises ValueError for any other path.
    """
    return {"made": make(SITE, path)}


def info() -> dict[str, Any]:
    """An Info (servers/contract.py), build options, and the receive buffer that QUIC's sockets really have."""
    output = subprocess.run(["nginx", "-V"], capture_output=True, text=True, check=True).stderr
    version = _find(r"nginx version: nginx/(\S+)", output)
    # CUBIC came with 1.27.5, in place of New Reno (https://nginx.org/en/CHANGES)
    cubic = tuple(map(int, version.split("."))) >= (1, 27, 5)
    configuration = CONFIGURATION.read_text()
    common = Info(
        name="nginx",
        version=version,
        tls_library=_find(r"(?:built|running) with (.+)", output),
        packages=packages(PACKAGES),
        configuration_sha256=sha256([CONFIGURATION, *map(CONFIGURATION.with_name, INCLUDED)]),
        workers=len(NGINX.health().workers),
        quic_congestion="cubic" if cubic else "newreno",
        offers=(ALT_SVC, DELAY, OFFER_IF, SESSIONS, WINDOWS, WORKERS),
        streams={
            f"h{number}": int(_find(rf"http{number}_max_concurrent_streams (\d+)", configuration)) for number in (2, 3)
        },
        windows={str(port): windows(port) for port in _stream_buffers(configuration)},
    )
    return {
        **asdict(common),
        "nginx": version,
        "configure_arguments": _find(r"configure arguments: (.*)", output),
        "quic_rcvbuf_wanted_bytes": _wanted_rcvbuf_bytes(configuration),
        "quic_rcvbuf_bytes": _rcvbuf_bytes(),
    }


def windows(port: int) -> dict[str, int | None]:
    """The buffers behind `port`: {"tcp_rmem_max_bytes", "tcp_wmem_max_bytes", "http3_stream_buffer_bytes", ...}.

    "udp_rcvbuf_bytes" and "udp_sndbuf_bytes" are the kernel's, which counts twice the requested size. Raises
    KeyError for a port that the configuration does not have.
    """
    return {
        **tcp_limits(),
        **smallest([each for each in udp_sockets() if each.port == port]),
        "http3_stream_buffer_bytes": _stream_buffers(kept.read_new(str(CONFIGURATION)))[port],
    }


@lru_cache(maxsize=1)
def _stream_buffers(configuration: str) -> dict[int, int]:
    """http3_stream_buffer_size of each port that speaks QUIC."""
    found = {}
    for server in configuration.split("server {")[1:]:
        set_ = re.findall(r"^\s*http3_stream_buffer_size (\d+)([km]?);", server, re.MULTILINE)
        port = int(re.findall(r"^\s*listen (\d+) quic", server, re.MULTILINE)[0])
        found[port] = _bytes(*set_[0]) if set_ else FRESH_STREAM_BUFFER_BYTES
    return found


def examine() -> list[str]:
    """Deviations from a fresh testbed (impair/baseline.py), and an nginx with another configuration."""
    words = Path(f"/proc/{NGINX.health().master}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return [*agent.OPERATIONS["examine"](), *odd_command(words)]


def odd_command(words: str) -> list[str]:
    """Unexpected parts of nginx's command line: it names the configuration, as the master's title does."""
    if f" -c {CONFIGURATION} " in words:
        return []
    return [f"nginx uses another configuration than {CONFIGURATION}: `{words.strip()}`"]


def log() -> str:
    """The last lines of nginx's errors since `fresh`."""
    return tail(ERROR_LOG)


def _rcvbuf_bytes() -> int | None:
    """The smallest receive buffer of the QUIC sockets, as requested (the kernel keeps twice that, socket(7))."""
    listing = subprocess.run(
        ["ss", "-H", "-u", "-a", "-n", "-m", f"sport = :{PORT}"], capture_output=True, text=True, check=True
    ).stdout
    return min((int(kept) // 2 for kept in re.findall(r"\brb(\d+)", listing)), default=None)


def _wanted_rcvbuf_bytes(configuration: str) -> int:
    return _bytes(*re.findall(r"\bquic\b.*\brcvbuf=(\d+)([km]?)", configuration)[0])


def _bytes(number: str, unit: str) -> int:
    """A size as nginx writes it: `64k`, `16m`."""
    return int(number) << {"": 0, "k": 10, "m": 20}[unit]


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1].strip() if match else "unknown"


OPERATIONS: dict[str, Operation] = {
    **agent.OPERATIONS,
    "answers": answers.read,
    "examine": examine,
    "fresh": fresh,
    "health": NGINX.health,
    "info": info,
    "log": log,
    "offer": offer,
    "provide": provide,
    "windows": windows,
}


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
