"""Measures the cost of building the images of two revisions from nothing, each with a separate Docker daemon, in turn.

    sudo .venv/bin/python bench/images.py BEFORE AFTER [--rounds 3]

BEFORE and AFTER are revisions of git: a branch, a tag, a commit. The daemon begins with an empty folder, so that the
base is also pulled or built, and no image of this machine is used or touched. Its CPU time is that of its control
group: daemon, storage driver and everything that runs in the builds. Wall times need an otherwise idle machine; CPU
times are comparable on a busy one if there are several rounds. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Runs next to the machine's daemon: no firewall rules, so builds share the host's network; and a separate bridge,
# because a daemon with the bridge `none` removes docker0, even another daemon's.
DAEMON = {"iptables": False, "ip-forward": False, "ip-masq": False}
BRIDGE_ADDRESS = "169.254.231.1/24"  # link-local addresses: no traffic is routed there
SHIM = '#!/bin/sh\nif [ "$1" = build ]; then shift; exec {docker} build --network host "$@"; fi\nexec {docker} "$@"\n'
START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Group:
    """A control group, of version 1 or 2."""

    name: str

    @property
    def folder(self) -> Path:
        """Its folder in the file system."""
        first = Path("/sys/fs/cgroup/cpuacct")
        return (first if first.exists() else Path("/sys/fs/cgroup")) / self.name

    def enter(self) -> None:
        """Move this process into it; child processes stay there."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def cpu_s(self) -> float:
        """The CPU time of everything that ever ran in it and below, in seconds."""
        usage = self.folder / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text()) / 1e9
        return int((self.folder / "cpu.stat").read_text().split()[1]) / 1e6

    @contextmanager
    def made(self) -> Iterator[Group]:
        """Create it for the code inside, with a group for containers below."""
        (self.folder / "daemon").mkdir(parents=True)
        try:
            yield self
        finally:
            for top in {
                self.folder,
                *Path("/sys/fs/cgroup").glob(f"*/{self.name}"),
            }:  # of version 1: one per controller
                for folder in (*sorted(top.rglob("*/"), reverse=True), top):
                    folder.rmdir()


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def bridge() -> Iterator[str]:
    """Create a bridge for the code inside. Yields its name."""
    name = f"hwb{os.getpid()}"
    subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", BRIDGE_ADDRESS, "dev", name], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


@contextmanager
def daemon(place: Path, group: Group, bridge: str) -> Iterator[dict[str, str]]:
    """Run an empty Docker daemon for the code inside. Yields the environment with which `docker` connects to it."""
    name, inside = group.name, Group(f"{group.name}/daemon")
    driver, docker = _output("docker", "info", "--format", "{{.Driver}}"), _output("which", "docker")
    settings = {
        **DAEMON,
        "bridge": bridge,
        "storage-driver": driver,
        "data-root": f"{place}/data",
        "exec-root": f"{place}/run",
    }
    (place / "daemon.json").write_text(json.dumps(settings))
    command: list[str | Path] = [
        "dockerd", "--config-file", place / "daemon.json", "--pidfile", place / "pid", "--host", f"unix://{place}/socket",
        "--cgroup-parent", f"/{name}", "--containerd-namespace", name,
        "--containerd-plugins-namespace", f"{name}-plugins",
    ]  # fmt: skip
    (place / "bin").mkdir()
    (place / "bin" / "docker").write_text(SHIM.format(docker=docker))
    (place / "bin" / "docker").chmod(0o755)
    environment = {
        **os.environ, "DOCKER_HOST": f"unix://{place}/socket", "PATH": f"{place}/bin:{os.environ['PATH']}",
    }  # fmt: skip
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=inside.enter)  # noqa: PLW1509 - no threads
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while subprocess.run([docker, "info"], env=environment, capture_output=True, check=False).returncode:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"dockerd does not start:\n{(place / 'log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield environment
        finally:
            process.terminate()
            process.wait()
            for left in (place / "run" / "netns").glob("*"):
                subprocess.run(["umount", left], check=False)


def build(tree: Path, number: int) -> tuple[float, float]:
    """Build the images of a source tree from nothing. Returns (wall, CPU) seconds; prints each step with its time."""
    with (
        tempfile.TemporaryDirectory(prefix="headwind-bench-") as folder,
        Group(f"headwind-bench-{os.getpid()}-{number}").made() as group,
        bridge() as name,
        daemon(Path(folder), group, name) as environment,
    ):
        start, before_s = time.monotonic(), group.cpu_s()
        process = subprocess.Popen(
            [sys.executable, "-m", "headwind.testbed.images"], cwd=tree, env=environment,
            text=True, stdout=subprocess.PIPE,
            preexec_fn=Group(f"{group.name}/daemon").enter,  # noqa: PLW1509 - no threads
        )  # fmt: skip
        for line in process.stdout or ():
            print(
                f"{time.monotonic() - start:8.1f} s {group.cpu_s() - before_s:8.1f} cpu s  {line}", end="", flush=True
            )
        if process.wait():
            sys.exit("the build failed")
        return time.monotonic() - start, group.cpu_s() - before_s


def main() -> None:
    """Build both revisions in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs=2, metavar="REVISION")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    taken: dict[str, list[tuple[float, float]]] = {revision: [] for revision in options.revisions}
    with tempfile.TemporaryDirectory(prefix="headwind-trees-") as folder:
        for number in range(options.rounds * len(taken)):
            revision = options.revisions[number % len(taken)]
            tree = Path(folder) / str(number)
            tree.mkdir()
            archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True)
            print(f"{revision}, round {number // len(taken) + 1}", flush=True)
            taken[revision].append(build(tree, number))
    middles = [[statistics.median(column) for column in zip(*rounds, strict=True)] for rounds in taken.values()]
    print(f"\n{'from nothing to the images':30} {'wall':>9} {'CPU':>11}   (medians of {options.rounds})")
    for revision, (wall_s, cpu_s) in zip(taken, middles, strict=True):
        print(f"{revision:30} {wall_s:7.1f} s {cpu_s:9.1f} s")
    (wall, cpu), (wall_then, cpu_then) = middles
    print(f"{'ratio':30} {wall_then / wall:9.2f} {cpu_then / cpu:11.2f}")


if __name__ == "__main__":
    main()
