"""The user-mode kernel as a process: it says why it cannot boot, takes long lines, and leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwind.proof.stability import LARGEST_GAP_S
from headwind.testbed.agent import Agent, AgentError
from headwind.testbed.docker import docker
from tests.net.impaired import Project, start_agent

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.beside]  # the first test may build the images

ROUTE = ("-m", "impair.router.uml", "--client-subnet", "127.0.0.0/8", "--server-subnet", "127.0.0.0/8")
GONE_S = 60.0  # of patience


@contextmanager
def booted(project: Project, logs: Path) -> Iterator[tuple[str, Agent]]:
    """A container, and a router's agent in a user-mode kernel that has its loopback interface (twice)."""
    container = project.container(networks={}, router=True)
    with ExitStack() as stack:
        yield container, start_agent(stack, logs, "router", container, *ROUTE)


def kernels(container: str) -> list[str]:
    """The processes of user-mode kernels and their launchers."""
    return [line for line in docker("top", container, "-eo", "pid,args").splitlines() if "uml" in line]


def wait_until_gone(container: str) -> None:
    deadline = time.monotonic() + GONE_S
    while kernels(container) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not kernels(container)


def test_lines_of_any_length_pass_both_ways(project: Project, tmp_path: Path) -> None:
    with booted(project, tmp_path) as (_, router):
        for length in (5_000, 65_536, 1_000_000):  # the console alone stops listening for good at 4096
            name = "x" * length
            with pytest.raises(AgentError) as refused:
                router.call(name)
            assert f"no operation '{name}'" in str(refused.value)
        for number in range(1, 200):  # more requests than a console line, none answered in between
            router.start("hello", nothing="y" * number)
        assert router.call("hello")["engine"] == "uml"


@pytest.mark.timed
def test_the_machine_goes_off_when_its_input_ends(project: Project, tmp_path: Path) -> None:
    with booted(project, tmp_path) as (container, router):
        assert kernels(container)
        router.close()
        assert router._process.returncode == 0, "it had to be killed"
        wait_until_gone(container)


@pytest.mark.parametrize("victim", ["docker exec", "launcher"])
def test_nothing_is_left_of_a_killed_one(project: Project, tmp_path: Path, victim: str) -> None:
    with booted(project, tmp_path) as (container, router):
        if victim == "docker exec":
            router._process.kill()
        else:
            docker("exec", container, "python3", "-c", send("impair.router.uml", signal.SIGKILL))
        wait_until_gone(container)


def test_a_kernel_that_dies_says_so(project: Project, tmp_path: Path) -> None:
    with booted(project, tmp_path) as (container, router):
        docker("exec", container, "python3", "-c", send("linux.uml", signal.SIGKILL))
        wait_until_gone(container)
        assert not router.alive
        assert "ended by itself with status" in router._refusal


@pytest.mark.timed
@pytest.mark.parametrize("how", ["docker pause", "SIGSTOP"])
def test_a_stopped_kernel_is_found_and_a_working_one_is_not(project: Project, tmp_path: Path, how: str) -> None:
    with booted(project, tmp_path) as (container, router):
        router.call("hello")
        before = router.call("show")
        for stops in (True, False):
            if how == "docker pause":
                docker("pause" if stops else "unpause", container)
            else:
                number = signal.SIGSTOP if stops else signal.SIGCONT
                docker("exec", container, "python3", "-c", send("linux.uml", number))
            time.sleep(1.0 if stops else 0.0)
        stopped, after = (router.call("show") for _ in range(2))
    assert before["largest_gap_s"] < LARGEST_GAP_S
    assert stopped["largest_gap_s"] > 0.9
    assert after["largest_gap_s"] < LARGEST_GAP_S
    assert stopped["processors"]["cpu_s"] > before["processors"]["cpu_s"] > 0
    assert stopped["processors"]["working_s"] >= before["processors"]["working_s"]


def send(words: str, number: int) -> str:
    """A program that sends a signal to the first process with `words` in its command line."""
    return (f"import os, pathlib; pids = [int(p.name) for p in pathlib.Path('/proc').iterdir() if p.name.isdigit() and "
            f"{words!r} in (p / 'cmdline').read_bytes().decode().replace(chr(0), ' ') and int(p.name) != os.getpid()]; "
            f"os.kill(min(pids), {int(number)})")  # fmt: skip


REFUSALS = {
    "no-place": ([], "/run/uml is missing: mount it"),
    "noexec": (["--tmpfs", "/run/uml:noexec,size=400m"], "mounted noexec"),
    "too-small": (["--tmpfs", "/run/uml:exec,size=100m"], "MB free, the user-mode kernel needs"),
    "no-capability": (["--tmpfs", "/run/uml:exec,size=400m", "--cap-drop", "NET_RAW"], "needs NET_RAW and NET_ADMIN"),
    "no-module": (["--tmpfs", "/run/uml:exec,size=400m", "--tmpfs", "/usr/lib/uml"], "install the package user-mode"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_stops_the_boot_is_said_with_what_to_do(project: Project, name: str) -> None:
    options, words = REFUSALS[name]
    refused = run_once(project, *options, "--cap-add", "NET_ADMIN", command=("python3", *ROUTE))
    assert words in refused["error"]


def test_a_missing_interface_is_said(project: Project) -> None:
    command = ("python3", "-m", "impair.router.uml", "--client-subnet", "10.0.0.0/30", "--server-subnet", "10.0.0.0/30")
    refused = run_once(project, command=command)
    assert "0 interfaces have an address in 10.0.0.0/30" in refused["error"]


def run_once(project: Project, *options: str, command: tuple[str, ...]) -> dict[str, Any]:
    """The JSON line of a container that ends by itself."""
    container = ("docker", "run", "--rm", "--network", "none", *options, project.image, *command)
    done = subprocess.run(container, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said
