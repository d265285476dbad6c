"""Measures the CPU time of the lab's programs for each block, of one revision or of several in turn.

    .venv/bin/python bench/processors.py [--trees .,../other] [--rounds 2] [--budget 3min] [--matrix matrix.yaml]

Each tree (a checkout with an environment) runs its matrix for the budget, once per round, in turn. The figures count
the lab, the generation of its report, the agents in its containers, their child programs, user-mode kernels, and the
Docker clients that carry the agents' wire. The blocks are those of the trials that began after all lanes were up; the
time from the start of the lab to that moment is in a separate table, in seconds. A busy machine takes more time for the
same work, so compare only measurements made in turn. The last table lists the networks of the trials: those over slow
ones cost more.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.model import Result
from headwind.run.data import RunData
from headwind.run.journal import Run

ROOT = Path(__file__).resolve().parent.parent
LOOK_EVERY_S = 0.5
SECOND = os.sysconf("SC_CLK_TCK")
LAB, DRAWING, DOCKER, TOOLS = "lab.py", "report generation", "docker exec", "other programs of the lab"
KERNEL, GUEST, OTHER = "user-mode kernels", "agents in user-mode kernels", "others in containers"
STEAL = "steal"
AGENTS = {kind: f"agents of the {kind}" for kind in ("client", "server", "router")}
LAUNCHERS, CLIENTS, SERVERS = "launchers of kernels", "clients", "servers"
# By a word of the command line, the first that fits. The programs inside a user-mode kernel are processes of the host;
# the kernel's work for them is in its time.
IN_CONTAINERS = {
    "uml-userspace": GUEST, "linux.uml": KERNEL, "impair.router.uml": LAUNCHERS,
    "client.agent": AGENTS["client"], "nginx.agent": AGENTS["server"], "impair.router.": AGENTS["router"],
    "h2load": CLIENTS, "client.curl": CLIENTS, "nginx:": SERVERS,
}  # fmt: skip
CHILDREN = {"headwind.cli.redrawing": DRAWING, "docker exec": DOCKER}
PYTHON = (LAB, DRAWING, *AGENTS.values(), LAUNCHERS, GUEST)


@dataclass(frozen=True, slots=True)
class Process:
    """A process as /proc shows it: identity, parent, and CPU time so far."""

    identity: tuple[int, int]  # process ID and start time
    parent: int
    words: str
    used_s: float

    @classmethod
    def read(cls, pid: int) -> Process:
        """Read it from /proc. Raises OSError if the process has ended."""
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        fields = tail.split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        name = head.partition("(")[2]
        text = f"{name} {words}" if name == "uml-userspace" else words
        return cls((pid, int(fields[19])), int(fields[1]), text, (int(fields[11]) + int(fields[12])) / SECOND)


@dataclass(slots=True)
class Meter:
    """Samples the CPU time of a lab and its containers; `used_s` returns what each kind used between two times."""

    lab: int  # process ID
    _kinds: dict[tuple[int, int], str | None] = field(default_factory=dict)  # None: not a program of the lab
    _containers: set[str] = field(default_factory=set)
    _latest: dict[tuple[int, int], float] = field(default_factory=dict)
    _times: list[float] = field(default_factory=list)  # since the epoch
    _totals: list[defaultdict[str, float]] = field(default_factory=list)

    def look(self) -> None:
        """Sum up the CPU time of each kind so far; a process that has ended counts with its last sample."""
        found = []
        for pid in (int(name.name) for name in Path("/proc").iterdir() if name.name.isdigit()):
            try:
                found.append(Process.read(pid))
            except OSError:
                continue
        self._know(found)
        for process in found:
            if self._kinds.get(process.identity):
                self._latest[process.identity] = process.used_s
        total: defaultdict[str, float] = defaultdict(float)
        for identity, used_s in self._latest.items():
            if kind := self._kinds.get(identity):
                total[kind] += used_s
        total[STEAL] = _stolen_s()
        self._times.append(time.time())
        self._totals.append(total)

    def _know(self, found: Sequence[Process]) -> None:
        """Classify new processes: the lab's children first, since they name its containers."""
        parents = {process.identity[0]: process.parent for process in found}
        for process in found:
            if process.identity not in self._kinds and self.lab in _line(process.identity[0], parents):
                self._kinds[process.identity] = _kind_of_child(process, self.lab)
                if held := re.search(r"exec -i ([0-9a-f]{12,64}) ", process.words):
                    self._containers.add(held[1])
                    self._kinds = {identity: kind for identity, kind in self._kinds.items() if kind}
        for process in found:
            if self._kinds.get(process.identity, OTHER) == OTHER:  # it may have been about to start a program
                groups = _read(f"/proc/{process.identity[0]}/cgroup")
                kind = next((kind for word, kind in IN_CONTAINERS.items() if word in process.words), OTHER)
                self._kinds[process.identity] = kind if any(name in groups for name in self._containers) else None

    def used_s(self, begin: float, end: float) -> dict[str, float]:
        """CPU time of each kind between two times, in seconds."""
        first = max(0, bisect(self._times, begin) - 1)
        last = min(len(self._times) - 1, bisect(self._times, end))
        return {kind: used_s - self._totals[first][kind] for kind, used_s in self._totals[last].items()}


def _line(pid: int, parents: Mapping[int, int]) -> list[int]:
    """A process and its ancestors."""
    line = [pid]
    while (above := parents.get(line[-1])) and above not in line:
        line.append(above)
    return line


def _kind_of_child(process: Process, lab: int) -> str:
    if process.identity[0] == lab:
        return LAB
    return next((kind for word, kind in CHILDREN.items() if word in process.words), TOOLS)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _stolen_s() -> float:
    return int(_read("/proc/stat").split()[8]) / SECOND


@dataclass(frozen=True, slots=True)
class Measured:
    """The trials of one run since all lanes were up, and the CPU time of each kind before and since."""

    results: Sequence[Result]
    starting_s: Mapping[str, float]
    used_s: Mapping[str, float]

    @property
    def blocks(self) -> float:
        """Number of blocks; a block that is not whole counts with its share."""
        return sum(1 / len(result.trial.block.order) for result in self.results)


def measure(tree: Path, options: argparse.Namespace, number: int) -> Measured:
    """Make one run of a tree."""
    reports = Path(options.reports) / str(number)
    reports.mkdir(parents=True, exist_ok=True)
    command = [tree / ".venv/bin/python", tree / "lab.py", "run", tree / options.matrix, "--engine", options.engine,
               "--reports", reports]  # fmt: skip
    for name in ("budget", "lanes"):
        command += [f"--{name}", getattr(options, name)] if getattr(options, name) else []
    before = set(reports.glob("*/"))
    with (reports / "log").open("a") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=tree) as lab:
        meter, over = Meter(lab.pid), threading.Event()
        meter.look()

        def watch() -> None:
            while not over.wait(LOOK_EVERY_S):
                meter.look()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            code = lab.wait()
        except BaseException:
            lab.send_signal(signal.SIGINT)
            raise
        finally:
            over.set()
            watcher.join()
    if code not in (0, 1):  # 1: a trial gave no data
        raise SystemExit(f"{tree}: the lab ended with {code}; see {reports / 'log'}")
    (folder,) = set(reports.glob("*/")) - before
    with Run.open(folder) as run:
        data = RunData.of(run)
    all_up = max(life["began_at"] for life in data.environment["testbeds"])
    later = [result for result in data.results if result.started_at > all_up]
    if not later:
        raise SystemExit(f"{tree}: the lanes were up too late; give a longer budget")
    begin, end = later[0].started_at, max(result.started_at + sum(result.phases_s.values()) for result in later)
    return Measured(later, meter.used_s(0.0, begin), meter.used_s(begin, end))


def print_tables(names: Sequence[str], found: Sequence[Measured]) -> None:
    """Print a column for each run: milliseconds of each kind per block, seconds before, and trials."""
    for head, uses in (
        ("ms per block", [{kind: used / run.blocks * 1e3 for kind, used in run.used_s.items()} for run in found]),
        ("s until all lanes were up", [run.starting_s for run in found]),
    ):
        print(f"\n| {head} | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
        for kind in (*PYTHON, DOCKER, KERNEL, CLIENTS, SERVERS, OTHER, TOOLS, STEAL):
            print(f"| {kind} | {' | '.join(f'{used.get(kind, 0.0):.3g}' for used in uses)} |")
        sums = [sum(used.get(kind, 0.0) for kind in PYTHON) for used in uses]
        print(f"| all Python | {' | '.join(f'{total:.3g}' for total in sums)} |")
    networks = [Counter(each.trial.block.condition.id for each in run.results) for run in found]
    print(f"\n| trials | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for name in sorted(set().union(*networks)):
        print(f"| {name} | {' | '.join(str(network[name]) for network in networks)} |")
    print(f"| blocks | {' | '.join(f'{run.blocks:.1f}' for run in found)} |")


def main() -> None:
    """Measure each tree in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", default=str(ROOT), help="checkouts, separated by commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget", default="3min", help="empty: the matrix's own")
    parser.add_argument("--matrix", default="matrix.yaml", help="matrix file in each tree")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--lanes", default="", help="empty: the matrix's own")
    parser.add_argument("--reports", default=str(ROOT / "reports" / ".processors"))
    options = parser.parse_args()
    trees = [Path(name).resolve() for name in options.trees.split(",")]
    names: list[str] = []
    found: list[Measured] = []
    for number in range(options.rounds):
        for tree in trees:
            names.append(f"{tree.name} {number + 1}")
            found.append(measure(tree, options, len(found)))
            print_tables(names, found)


if __name__ == "__main__":
    main()
