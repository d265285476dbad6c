"""A supervised server: it is restarted truthfully, by the real loop, with a sleeping stand-in for the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from servers.probes import Probes, ServerIsGone
from servers.processes import children, peak_memory_bytes
from servers.supervised import ERROR_LOG, Supervised

ROOT = Path(__file__).resolve().parent.parent.parent
STAND_IN = "import os, sys, time; print(os.environ['HEADWIND_WORKERS'], file=sys.stderr, flush=True); time.sleep(60)"

FILL = "filled = b'x' * 100_000_000; del filled; print('given back', flush=True); import sys; sys.stdin.read()"


@dataclass(frozen=True, slots=True)
class Sent(Probes):
    """Probes that note what is sent; each fails as often as there are `failures`."""

    failures: list[str] = field(default_factory=list)
    all: list[str] = field(default_factory=list)

    def tcp(self) -> None:
        self.all.append("tcp")
        if self.failures:
            raise ServerIsGone(self.failures.pop())

    def quic(self, count: int) -> None:
        self.all.append(f"quic {count}")


@pytest.fixture
def sent() -> Sent:
    return Sent(server="stand-in")


@pytest.fixture
def server(tmp_path: Path, sent: Sent) -> Iterator[Supervised]:
    """The loop of servers/supervise.sh in a folder, which starts the stand-in."""
    script = (ROOT / "servers/supervise.sh").read_text().replace("/run/headwind", str(tmp_path))
    loop = tmp_path / "supervise.sh"
    loop.write_text(script.replace(str(ERROR_LOG.parent), str(tmp_path)))
    found = Supervised(sent, tmp_path / "supervisor.pid", tmp_path / "workers", tmp_path / "error.log")
    found.workers_file.write_text("1\n")
    process = subprocess.Popen(["bash", loop, sys.executable, "-c", STAND_IN], start_new_session=True)
    try:
        wait_for(lambda: found.log.exists() and found.log.read_text() == "1\n")
        yield found
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_fresh_server_is_another_process_under_the_same_loop(server: Supervised, sent: Sent) -> None:
    before = server.health()
    restarted = server.fresh()
    after = server.health()
    assert (before.master, before.master_started_s) == (after.master, after.master_started_s)
    assert before.workers != after.workers == restarted["workers"]
    assert sent.all == ["tcp", "quic 1"]


def test_a_fresh_server_can_use_as_many_cpus_as_are_wanted(server: Supervised) -> None:
    restarted = server.fresh(3)
    assert len(restarted["workers"]) == len(server.health().workers) == 3
    assert len(set(restarted["workers"])) == 1
    wait_for(lambda: server.log.read_text() == "3\n")  # of the new process alone: the log is emptied
    assert len(server.fresh()["workers"]) == 3


def test_the_peak_memory_is_that_of_the_process_not_of_its_cpus(server: Supervised) -> None:
    server.fresh(3)
    wait_for(lambda: server.log.read_text() == "3\n")  # until then it is another program
    memory = server.health().memory_bytes
    assert memory
    assert 10**6 < memory < 10**8
    larger = subprocess.Popen([sys.executable, "-c", FILL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with larger:  # its end of file ends it
        assert larger.stdout
        assert larger.stdout.readline() == b"given back\n"
        peak = peak_memory_bytes([larger.pid, larger.pid])
    assert peak
    assert 100e6 < peak < 150e6, "the peak stays, and a process counts once"
    assert peak_memory_bytes([os.getpid(), 999999999]) is None


def test_a_server_that_is_not_yet_ready_is_asked_again(server: Supervised, sent: Sent) -> None:
    sent.failures.extend(["not yet"] * 3)
    server.fresh()
    assert sent.all == ["tcp"] * 4 + ["quic 1"]


def test_a_server_that_never_answers_is_an_error_with_the_end_of_its_log(server: Supervised, sent: Sent) -> None:
    sent.failures.extend(["no answer"] * 1000)
    with pytest.raises(ServerIsGone, match="no answer; the end of its log: 1"):
        replace(server, timeout_s=1.0).fresh()


def test_a_crash_shows_in_the_health_and_the_loop_starts_the_server_again(server: Supervised) -> None:
    before = server.health()
    os.kill(before.workers[0], signal.SIGSEGV)
    wait_for(lambda: children(before.master) not in ([], before.workers))
    assert server.health() != before


def test_a_loop_that_is_gone_is_an_error(server: Supervised) -> None:
    os.kill(server.health().master, signal.SIGKILL)
    server.pid_file.write_text("999999999\n")
    with pytest.raises(ServerIsGone, match="stand-in is not running"):
        server.health()


def test_another_command_line_is_a_deviation(server: Supervised) -> None:
    assert server.odd_command(f"{sys.executable} -c {STAND_IN}") == []
    (odd,) = server.odd_command("caddy run")
    assert "instead of `caddy run`" in odd
