"""Labs, workers and schedulers in processes of their own, the containers of each, and everything that they leave."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headwind.testbed.containers import OWNER_LABEL
from headwind.testbed.docker import docker
from headwind.testbed.images import IMAGES, NGINX, Sources
from headwind.testbed.owner import owner_of

ROOT = Path(__file__).resolve().parent.parent.parent
MARK = "HEADWIND_FAULTS"  # in the environment of every process that a lab starts on this host
POLL_S = 0.2
# The lab with another patience for workers that do not answer.
PATIENT = """
import lab, sys
from headwind.cli.dependencies import Dependencies
sys.exit(lab.main(sys.argv[2:], Dependencies(patience_s=float(sys.argv[1]))))
"""
# The lab with a wall clock that is off by the seconds in a file. (libfaketime makes Python's time.sleep fail.)
SHIFTED = """
import lab, pathlib, sys, time
offset, real = pathlib.Path(sys.argv[1]), time.time
time.time = lambda: real() + float(offset.read_text() or 0)
sys.exit(lab.main(sys.argv[2:]))
"""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a lab: its id, the service of the compose file, and the testbed."""

    id: str
    service: str
    testbed: str

    def processes(self) -> dict[int, tuple[int, str, str]]:
        """The host's number of each process, with its parent's, its name and its command."""
        found = {}
        for line in docker("top", self.id, "-eo", "pid,ppid,comm,args", check=False).splitlines()[1:]:
            pid, parent, name, command = line.split(None, 3)
            found[int(pid)] = (int(parent), name, command)
        return found


@dataclass(slots=True)
class Process:
    """A program of the lab on this host, with its output in a file."""

    command: Sequence[str | Path]
    log: Path
    tree: Path = ROOT
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    _process: subprocess.Popen[bytes] = field(init=False, repr=False)
    owner: str = field(init=False)

    def __post_init__(self) -> None:
        environment = {**os.environ, MARK: self.mark, "TMPDIR": str(self.log.parent)}
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-u", *self.command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                cwd=self.tree, start_new_session=True, env=environment,
            )  # fmt: skip
        self.owner = owner_of(self._process.pid)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """Everything that it printed."""
        return self.log.read_text(errors="replace")

    def send(self, number: int) -> None:
        """Signal it, if it runs."""
        if self.code is None:
            os.kill(self.pid, number)

    def ended(self, limit_s: float) -> bool:
        """Wait for its end; False if it still runs after that time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)
        return self.code is not None

    def containers(self) -> list[Container]:
        """Its containers that run."""
        columns = '{{.ID}} {{.Label "com.docker.compose.service"}} {{.Label "headwind.project"}}'
        lines = docker("ps", *self._filter, "--format", columns).splitlines()
        return [Container(*words) for line in lines if len(words := line.split()) == 3]

    def networks(self) -> list[str]:
        """The ids of its networks."""
        return docker("network", "ls", "-q", *self._filter).split()

    def left(self) -> list[str]:
        """The ids of its containers, in any state, and of its networks."""
        return [*docker("ps", "-aq", *self._filter).split(), *self.networks()]

    @property
    def _filter(self) -> tuple[str, str]:
        return "--filter", f"label={OWNER_LABEL}={self.owner}"

    def children(self) -> Iterator[tuple[int, str]]:
        """Number and command of each process on this host that it started, also of those that outlived it."""
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(path.name) != self.pid and f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes():
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if command:
                        yield int(path.name), command

    def outlived(self, limit_s: float) -> list[tuple[int, str]]:
        """Its children that still run after that time."""
        end = time.monotonic() + limit_s
        while (found := list(self.children())) and time.monotonic() < end:
            time.sleep(POLL_S)
        return found


def lab(folder: Path, *arguments: str | Path, tree: Path = ROOT, clock: Path | None = None) -> Process:
    """`lab.py ARGUMENTS`, with its output in a new file in `folder`; `clock`: the file with its clock's offset."""
    program = ["-c", SHIFTED, clock] if clock else [tree / "lab.py"]
    return Process([*program, *arguments], _log(folder), tree)


def finished_lab(folder: Path, *arguments: str | Path, limit_s: float = 60) -> Process:
    """The same, when it has ended, or has been killed after that time."""
    process = lab(folder, *arguments)
    if not process.ended(limit_s):
        process.send(signal.SIGKILL)
        process.ended(10)
    return process


def _log(folder: Path) -> Path:
    return folder / f"{time.monotonic():.3f}-{secrets.token_hex(2)}.log"


def subnets(networks: Sequence[str]) -> list[str]:
    """The subnets of Docker networks."""
    form = "{{range .IPAM.Config}}{{.Subnet}} {{end}}"
    return docker("network", "inspect", *networks, "--format", form, check=False).split() if networks else []


class Cluster:
    """A scheduler and workers on this host; those that ended are started again by `complete`."""

    def __init__(self, folder: Path, workers: int, patience_s: float = 15) -> None:
        self._folder, self._patience_s = folder, patience_s
        self._number = workers
        self.workers: list[Process] = []
        self.gone: list[Process] = []
        self._port = "0"
        self.scheduler = self._schedule()

    def _schedule(self) -> Process:
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        scheduler = Process(
            ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", self._port, "--no-dashboard",
             "--scheduler-file", file], _log(self._folder),
        )  # fmt: skip
        while not (file.exists() and file.read_text()):
            if scheduler.code is not None:
                raise RuntimeError(scheduler.output)
            time.sleep(POLL_S)
        self.address = json.loads(file.read_text())["address"]
        self._port = self.address.rpartition(":")[2]
        return scheduler

    def complete(self) -> None:
        """Start what is missing, and wait until it serves."""
        if self.scheduler.code is not None:
            self.scheduler = self._schedule()
        self.gone += [each for each in self.workers if each.code is not None]
        self.workers = [each for each in self.workers if each.code is None]
        names = {f"machine-{number}" for number in range(self._number)}
        for name in sorted(names - {str(each.command[-1]) for each in self.workers}):
            self.workers.append(lab(self._folder, "worker", self.address, "--name", name))
        end = time.monotonic() + 60
        while not all("serves" in each.output for each in self.workers) and time.monotonic() < end:
            time.sleep(POLL_S)

    def controller(self, folder: Path, *arguments: str | Path) -> Process:
        """`lab.py ARGUMENTS --cluster`."""
        return Process(
            ["-c", PATIENT, str(self._patience_s), *arguments, "--cluster", self.address], _log(folder)
        )  # fmt: skip

    def stop(self) -> None:
        """End everything, as Ctrl-C does."""
        for each in (*self.workers, self.scheduler):
            each.send(signal.SIGINT)
        for each in (*self.workers, self.scheduler):
            if not each.ended(30):
                each.send(signal.SIGKILL)


def copy_of_tree(folder: Path) -> Path:
    """A copy of the source tree whose image of nginx has its own tag, and differs in one comment."""
    copy = folder / "tree"
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if name.startswith(("headwind/", "impair/", "client/", "nginx/", "servers/", "browsers/", "compose", "lab.py")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
            shutil.copymode(ROOT / name, copy / name)
    with (copy / "nginx/agent.py").open("a") as file:
        file.write(f"# a copy for tests of faults: {secrets.token_hex(4)}\n")
    return copy


def image_of(tree: Path) -> str:
    """The reference of the image of nginx that a source tree builds."""
    return Sources.read(IMAGES[NGINX], tree).reference
