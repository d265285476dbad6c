"""The client's agent: the endpoint's operations, `run` (one workload over one protocol) and `fetch`."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import platform
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from client.competing import Competition
from client.curl import fetch
from client.h2load import PROGRAMS
from impair import processors
from impair.endpoint import agent
from impair.endpoint.buffers import UdpSocket, smallest, tcp_limits, udp_sockets
from impair.endpoint.packet_gap import Silence
from impair.endpoint.tcp_state import congestion_of
from impair.messages import Machine
from impair.taken import FILES
from impair.wire import LAB, Operation, serve

# setpriv: a program dies with the agent, however that dies. stdbuf: its output is complete even if it is killed.
LEASH = ("setpriv", "--pdeathsig", "KILL", "stdbuf", "-oL")
PATCH = Path(__file__).with_name("h2load.patch")
COMPETITION = Competition()
GRACE_S = 1.0  # between SIGTERM and SIGKILL
START_S = 0.02  # a program's clock begins 5 to 15 ms after its start: one that is stopped had the timeout by its own
LOOK_AFTER_S = 0.05  # into the run: the sockets are there, and there is time to look at them
MEMORY = "/dev/shm"  # noqa: S108 - the only place in the container that can be written to
KEYS, QLOG = "keys.log", "qlog"  # a file and a folder of a captured trial
STDERR_TAIL = 2000  # characters
PACKAGES = (
    "libngtcp2-16",
    "libngtcp2-crypto-ossl0",
    "libnghttp3-9",
    "libssl3t64",
    "libc6",
    "libcurl4t64",
    "nghttp2-client",
)


class LabIsGone(ConnectionAbortedError):
    """The agent's input ended while a program ran; the program was ended, too."""


class Fetch(Protocol):
    """A fetch: its settings, and how to run it. Each program file in client/ has a dataclass of this name."""

    protocol: str
    host: str

    def command(self) -> list[str]:
        """The command line; its working directory is empty, and outlives it."""

    def logs(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Further options and variables of the command, to have QUIC's events logged into a folder (qlog)."""

    def windows(self) -> dict[str, int]:
        """The flow-control windows that the program grants, in bytes, if known (headwind/proof/windows.py)."""

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """The result, from `stdout`, `stderr` and the other files in `directory`; it began at `started_at`.

        At least "negotiated" and "metrics" (impair/messages.py, ClientRun), and what its kind of workload
        requires.
        """


def fetch_of(program: str, asked: Mapping[str, Any]) -> Fetch:
    """The Fetch of `program`, from the file of this name. Raises ValueError for unsupported settings."""
    try:
        fetch: Fetch = import_module(f"client.{program}").Fetch(**asked)
    except (ModuleNotFoundError, AttributeError, TypeError) as error:
        raise ValueError(f"client/{program}.py cannot carry this out: {error}") from error
    return fetch


def run(timeout_s: float, program: str = "h2load", *, captured: bool = False, **asked: Any) -> dict[str, Any]:
    """Run a fresh `program` for the settings in `asked`, and return the result; kill it START_S after `timeout_s`.

    If it is `captured`, TLS keys and qlogs are kept for the lab (impair/taken.py).

    A ClientRun (impair/messages.py) without its longest packet gap, and what the program's file finds in its
    output. Raises ValueError for unsupported settings, LabIsGone.
    """
    asked_for = fetch_of(program, asked)
    watch = Watch() if asked_for.protocol == "h3" else CongestionWatch(asked_for.host)
    with tempfile.TemporaryDirectory(prefix=f"{program}-", dir=MEMORY) as name:
        directory = Path(name)
        command, started_at = asked_for.command(), time.time()
        with ExitStack() as logging:
            options, variables = logging.enter_context(logged(asked_for)) if captured else ([], {})
            execution = execute([*command, *options], directory, timeout_s + START_S, watch, variables)
        return {
            "command": command,
            **asdict(execution),
            **asked_for.answer(directory, started_at),
            "windows": {
                **tcp_limits(),
                **asked_for.windows(),
                **smallest(watch.found if isinstance(watch, Watch) else []),
            },
            "congestion": watch.found if isinstance(watch, CongestionWatch) else [],
            "stderr_tail": (directory / "stderr").read_text(errors="replace")[-STDERR_TAIL:].strip(),
        }


@contextmanager
def logged(fetch: Fetch) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Options and variables of a program that logs its keys and QUIC's events; at the end its logs are kept."""
    with tempfile.TemporaryDirectory(prefix="logs-", dir=MEMORY) as name:
        folder = Path(name)
        (folder / QLOG).mkdir()
        options, variables = fetch.logs(folder / QLOG)
        yield options, {"SSLKEYLOGFILE": str(folder / KEYS), **variables}
        FILES.keep_folder(folder)


class Watch:
    """Looks for the UDP sockets of a program that was started after it; `look` until some are `found`."""

    def __init__(self) -> None:
        self._known = {each.inode for each in udp_sockets()}
        self.found: list[UdpSocket] = []

    def look(self) -> None:
        """Update `found`."""
        self.found = [each for each in udp_sockets() if each.inode not in self._known]


@dataclass(frozen=True, slots=True)
class Execution:
    """The end of a program: exit code (minus the signal's number if killed), its CPU time and the machine's.

    `clock_step_s`: by how much the machine's clock was set meanwhile, or slept.
    """

    exit_code: int
    timed_out: bool
    wall_s: float
    cpu_s: float
    machine: Machine
    clock_step_s: float


class CongestionWatch:
    """Reads the congestion control of TCP connections to `host`; `look` until some are `found`."""

    def __init__(self, host: str) -> None:
        self._network = ipaddress.IPv4Network(host)
        self.found: list[str] = []

    def look(self) -> None:
        """Update `found`."""
        self.found = sorted(set(congestion_of(self._network)))


def execute(
    command: list[str], directory: Path, timeout_s: float, watch: Watch | CongestionWatch | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Execution:  # fmt: skip
    """Run `command` in `directory`, its output into `stdout` and `stderr` there, for at most `timeout_s`.

    `variables` are added to its environment. `watch` looks LOOK_AFTER_S later, and in steps that double until it has
    found something. Raises LabIsGone.
    """
    used_s, machine, start = _children_s(), processors.machine(), time.monotonic()
    offset_s = time.time() - start
    with (directory / "stdout").open("wb") as stdout, (directory / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [*LEASH, *command], cwd=directory, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True, env={**os.environ, **variables},
        )  # fmt: skip
    try:
        pause_s = min(LOOK_AFTER_S, timeout_s)
        while watch and not watch.found and time.monotonic() + pause_s < start + timeout_s:
            if _wait(process.pid, pause_s):
                break
            watch.look()
            pause_s *= 2
        ended = _wait(process.pid, max(0.0, start + timeout_s - time.monotonic()))
    finally:
        _end(process)
    wall_s, after = time.monotonic() - start, processors.machine()
    step_s = time.time() - time.monotonic() - offset_s
    busy = Machine(after.cpus, after.busy_s - machine.busy_s, after.steal_s - machine.steal_s)
    return Execution(process.returncode, not ended, wall_s, _children_s() - used_s, busy, step_s)


def _children_s() -> float:
    """CPU time of all programs that ran here and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait(pid: int, timeout_s: float) -> bool:
    """True when the process ended within the time. Raises LabIsGone when the lab hung up before."""
    process = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(process, select.POLLIN)
        poller.register(LAB, 0)  # no event requested: a hang-up is always reported
        ready = dict(poller.poll(timeout_s * 1000))
    finally:
        os.close(process)
    if LAB in ready and process not in ready:
        raise LabIsGone("the lab hung up while the program ran")
    return process in ready


def _end(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the process and its group are gone, and collect its exit code."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                continue
    process.wait()


def info() -> dict[str, Any]:
    """Versions of h2load, its libraries and the kernel, and QUIC's congestion control."""
    version = subprocess.run(["h2load", "--version"], capture_output=True, text=True, check=True).stdout
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *PACKAGES],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {
        "h2load": version.strip(),
        "packages": dict(line.split() for line in listing.splitlines()),
        "kernel": platform.release(),
        # The program of each setting, and what it was built from beyond nghttp2's source (client/h2load.patch).
        "programs": {
            setting: hashlib.sha256(Path("/usr/local/bin", name).read_bytes()).hexdigest()
            for setting, name in PROGRAMS.items()
        },
        "patch_sha256": hashlib.sha256(PATCH.read_bytes()).hexdigest(),
        "quic_congestion": "cubic",  # ngtcp2's default (ngtcp2_settings_default); h2load neither changes nor offers it
    }


def run_watched(**asked: Any) -> dict[str, Any]:
    """`run`, and "packet_gap_max_s": a lower bound of the longest time in it without a frame."""
    with Silence(agent.HERE.interface.name) as silence, agent.HERE.pulse.along(silence.look), COMPETITION.measured():
        answer = run(**asked)
    return {**answer, "packet_gap_max_s": silence.longest_s}


OPERATIONS: dict[str, Operation] = {
    **agent.OPERATIONS, "run": run_watched, "fetch": fetch, "info": info, "compete": COMPETITION.start,
    "end_competition": COMPETITION.stop,
}  # fmt: skip


def main() -> None:
    """Serve until the lab closes the input."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a program inherits it: one descriptor per connection
    serve(OPERATIONS, sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
