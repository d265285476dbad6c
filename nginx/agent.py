"""The agent of the server: the endpoint's operations, and what is read from nginx or reset between trials."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from impair.endpoint import agent
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.messages import Health
from impair.wire import Operation, serve
from nginx import answers
from nginx.objects import make

CONFIGURATION = Path(__file__).with_name("nginx.conf")
INCLUDED = ("delayed.conf", "sessions.conf", "delay.js")
SITE = Path("/srv/headwind")
PID_FILE = Path("/run/nginx.pid")
WORKERS_FILE = Path("/run/headwind/workers.conf")
PORT = 443
FRESH_STREAM_BUFFER_BYTES = 64 << 10  # http3_stream_buffer_size of a server that does not set it
PACKAGES = ("nginx", "libssl3t64", "libc6")
RESTART_TIMEOUT_S = 5.0
PROBE_TIMEOUT_S = 1.0
LOOK_EVERY_S = 0.0005
PROBES_PER_WORKER = 8  # with n workers a socket is missed by all of 8 n random source ports once in e^8 = 3,000 times

# A version that no server knows (RFC 9000, section 15), in a datagram long enough to be a client's first one (14.1):
# the answer is a Version Negotiation packet, without any state on the server.
UNKNOWN_VERSION = bytes.fromhex("1a2a3a4a")
FIRST_DATAGRAM_BYTES = 1200


class NginxIsGone(RuntimeError):
    """No nginx master runs, or it has not brought up its workers in time."""


def health() -> Health:
    """nginx's processes, as pids; raises NginxIsGone."""
    master = _master()
    return Health(master, _workers(master), _stat(master)[1])


def restart_workers(workers: int | None = None) -> dict[str, Any]:
    """End all workers, and with them every connection, and return when the new ones answer over TCP and QUIC.

    There are so many `workers` then; without it as many as before. The listening sockets are the master's and stay
    bound throughout; the log of answers is empty then. Returns {"workers": [pids], "took_s": float}; raises
    NginxIsGone.
    """
    start, master = time.monotonic(), _master()
    old = _workers(master)
    for worker in old:
        os.kill(worker, signal.SIGKILL)
    new = _await_workers(master, old, max(1, len(old)))
    if workers and len(new) != workers:
        new = _reconfigure(master, new, workers)
    _prove_tcp()
    _prove_quic(PROBES_PER_WORKER * len(new) if len(new) > 1 else 1)
    answers.forget()
    return {"workers": new, "took_s": time.monotonic() - start}


def _reconfigure(master: int, old: list[int], workers: int) -> list[int]:
    """Have the master read how many workers there are to be; those of before have no connection, and end at once."""
    WORKERS_FILE.write_text(f"worker_processes {workers};\n")
    os.kill(master, signal.SIGHUP)
    new = _await_workers(master, old, workers)
    _prove_sockets(workers)
    return new


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
        "workers": len(_workers(_master())),
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
    words = Path(f"/proc/{_master()}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return [*agent.OPERATIONS["examine"](), *odd_command(words)]


def odd_command(words: str) -> list[str]:
    """What is wrong with nginx's command line, in words: it names the configuration, as does the master's title."""
    if f" -c {CONFIGURATION} " in words:
        return []
    return [f"nginx obeys another file than {CONFIGURATION}: `{words.strip()}`"]


def _master() -> int:
    try:
        pid = int(PID_FILE.read_text())
        _stat(pid)
    except (OSError, ValueError) as error:
        raise NginxIsGone(f"nginx does not run here: {error}") from error
    return pid


def _stat(pid: int) -> tuple[int, float]:
    """(parent's pid, start in seconds after boot) of a living process; raises OSError for any other."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    return int(fields[1]), int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _workers(master: int) -> list[int]:
    """The pids of the master's living children, ascending."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if _stat(int(entry.name))[0] == master:
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended while we looked
    return sorted(found)


def _await_workers(master: int, old: list[int], count: int) -> list[int]:
    deadline = time.monotonic() + RESTART_TIMEOUT_S
    while time.monotonic() < deadline:
        new = _workers(master)
        if len(new) == count and not set(new) & set(old):
            return new
        time.sleep(LOOK_EVERY_S)
    raise NginxIsGone(f"nginx (master {master}) started no new workers within {RESTART_TIMEOUT_S:g} s")


def _prove_sockets(workers: int) -> None:
    """Each worker has a QUIC socket of its own, where the kernel tells: of more, some would be read by nobody."""
    sockets = sum(each.port == PORT for each in udp_sockets())
    if sockets not in (0, workers):
        raise NginxIsGone(f"nginx has {sockets} QUIC sockets on port {PORT} for {workers} workers")


def _prove_tcp() -> None:
    """A worker answers on the TCP port: plain HTTP is refused with a 400, which needs no handshake."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), RESTART_TIMEOUT_S) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = connection.recv(64)
    except OSError as error:
        raise NginxIsGone(f"nginx does not answer on TCP port {PORT}: {error}") from error
    if b"400" not in answer:
        raise NginxIsGone(f"nginx answers {answer!r} to plain HTTP on port {PORT}")


def _prove_quic(count: int) -> None:
    """Every QUIC socket is served: `count` first datagrams from different ports are all answered."""
    with ExitStack() as stack:
        probes = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            probe.settimeout(PROBE_TIMEOUT_S)
            probe.connect(("127.0.0.1", PORT))
            probe.send(_unknown_initial())
            probes.append(probe)
        for probe in probes:
            try:
                answer = probe.recv(2048)
            except OSError as error:
                raise NginxIsGone(f"nginx does not answer QUIC on UDP port {PORT}: {error}") from error
            if answer[1:5] != bytes(4):
                raise NginxIsGone(f"not a Version Negotiation packet from UDP port {PORT}: {answer[:16].hex()}")


def _unknown_initial() -> bytes:
    """A long-header packet (RFC 8999, section 5.1) of an unknown version with fresh 8-byte connection ids."""
    identities = b"".join(bytes([8]) + secrets.token_bytes(8) for _ in ("destination", "source"))
    return (b"\xc0" + UNKNOWN_VERSION + identities).ljust(FIRST_DATAGRAM_BYTES, b"\0")


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
    "health": health,
    "windows": windows,
}


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
