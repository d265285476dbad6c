"""A run that takes faults and is resumed after each, with the checks of what must hold. Needs root."""

from __future__ import annotations

import math
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from statistics import median
from typing import Self

from headwind.errors import HeadwindError
from headwind.model import DATA_OUTCOMES, Outcome, Result
from headwind.run.journal import JOURNAL, MATRIX_RESOLVED, Run
from headwind.testbed.docker import docker
from tests.faults import labs
from tests.faults.disk import Disk
from tests.faults.labs import POLL_S, Cluster, Container, Process
from tests.faults.scenes import Scene
from tests.net.host_state import changes, host_state

IN_TRIALS = 0.7  # of all faults: later than the first trial of a lab that was started
TRIAL = re.compile(r"^\[ *\d+/", re.MULTILINE)  # a line for a trial that is over
END_S = 45.0  # that a lab has to end by itself, on a busy machine
STUCK_S = 240.0  # without a finished trial, a lab counts as one that hangs
CHILDREN_S = 15.0  # that processes have to follow their lab
SUBNET = re.compile(r"\b10\.\d+\.\d+\.0/24")
OF_DISKS = re.compile(r"/run/(blkid|mount)\b")  # what mounting writes there

Key = tuple[str, int]  # a trial, and the number of its attempt
Results = dict[Key, Result]


class Then(StrEnum):
    """What the lab does after a fault."""

    WENT_ON = "went on"
    RESUMED = "ended, was resumed"
    REFUSED = "refused"


class Broken(StrEnum):
    """What must not happen."""

    LOST = "finished trials lost"
    WRONG = "wrong results"
    LEFT = "left after down"
    STUCK = "needed kill -9"
    TRACEBACK = "tracebacks"
    OTHER = "not resumable"


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that was injected: what it hit, in words, and the testbeds and the time in which trials may be wrong."""

    what: str
    testbeds: frozenset[str] = frozenset()
    began_at: float = -math.inf
    ended_at: float = math.inf
    destroyed: frozenset[Key] = frozenset()  # the records that the fault itself removed from the disk
    has_ended: bool = False  # the lab, by force
    then: Then | None = None  # if the fault has its own answer


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault. `inject` does it, and returns None if it is impossible at this moment.

    `ends`: the lab must end because of it. `repairs` is called before the lab is resumed.
    """

    name: str
    inject: Callable[[Session], Hit | None]
    weight: float
    fits: Callable[[Scene], bool] = lambda _: True
    ends: bool = False
    within_s: float = 8.0  # of a random moment
    repairs: Callable[[Session], None] = lambda _: None


@dataclass(slots=True)
class Session:
    """The run of a scene: `with` it, inject faults by `fault`, and read `done`, `broken` and `checked`."""

    scene: Scene
    work: Path
    disk: Disk
    chance: Random
    say: Callable[[str], None]
    lab: Process | None = None
    cluster: Cluster | None = None
    known: Results = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    done: list[tuple[str, Then]] = field(default_factory=list)
    broken: list[tuple[str, Broken, str]] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    tree: Path = labs.ROOT
    subnets: set[str] = field(default_factory=set)  # of all testbeds so far
    _ended: list[Process] = field(default_factory=list)
    _judged: set[Key] = field(default_factory=set)  # attempts whose results were looked at
    _before: dict[str, set[str]] = field(default_factory=dict)  # the state of the host

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True)
        (self.work / "matrix.yaml").write_text(self.scene.matrix)
        if self.scene.copy:
            self.tree = labs.copy_of_tree(self.work)
        if self.scene.workers:
            self.cluster = Cluster(self.logs, self.scene.workers)
        self.set_clock(0)
        self._before = host_state()
        return self

    def __exit__(self, *_: object) -> None:
        for each in filter(None, (self.lab,)):
            each.send(signal.SIGINT)
            if not each.ended(END_S):
                each.send(signal.SIGKILL)
        if self.cluster:
            self.cluster.stop()
        self.down()
        if self.scene.copy:
            docker("rmi", "-f", labs.image_of(self.tree), check=False)
        shutil.rmtree(self.reports, ignore_errors=True)

    @property
    def logs(self) -> Path:
        """The folder of all output."""
        return self.work / "logs"

    @property
    def reports(self) -> Path:
        """Where run folders are made: on the small disk."""
        return self.disk.path / "reports"

    @property
    def clock(self) -> Path:
        """The file from which the lab's wall clock takes its offset."""
        return self.work / "clock"

    def set_clock(self, offset_s: int) -> None:
        """Change the lab's wall clock, if the scene's can be changed."""
        self.clock.write_text(f"{offset_s}")

    def run_folder(self) -> Path | None:
        """The newest run that was begun."""
        found = [path.parent for path in self.reports.glob(f"*/{MATRIX_RESOLVED}") if (path.parent / JOURNAL).exists()]
        return max(found, default=None)

    def owners(self) -> list[Process]:
        """The processes that own containers."""
        return self.cluster.workers if self.cluster else [self.lab] if self.lab else []

    def containers(self) -> list[Container]:
        """Those that run."""
        return [container for owner in self.owners() for container in owner.containers()]

    def networks(self) -> list[str]:
        """Those of all testbeds."""
        return [network for owner in self.owners() for network in owner.networks()]

    def down(self) -> Process:
        """`lab.py down`, when it has ended."""
        return labs.finished_lab(self.logs, "down")

    def results(self) -> Results:
        """All attempts on record that are over."""
        folder = self.run_folder()
        if not folder:
            return {}
        try:
            return read(folder)
        except HeadwindError:
            if self.lab and self.lab.code is None:  # it is making the folder
                return {}
            raise

    # --- Faults ---

    def fault(self, kind: Fault) -> bool:
        """Inject one at a random moment, wait for the effect, and check. False if it was impossible now."""
        self.run()
        assert self.lab
        if self.chance.random() < IN_TRIALS:
            while self.lab.code is None and not TRIAL.search(self.lab.output):
                time.sleep(POLL_S)
        time.sleep(self.chance.uniform(0, kind.within_s))
        self.subnets.update(labs.subnets(self.networks()))
        if self.lab.code is None:
            self.known = {**self.results(), **self.known}  # what is known stays as it was
        hit = kind.inject(self)
        if hit is None:
            return False
        self.say(f"{self.scene.name}: {kind.name}: {hit.what}")
        self.hits.append(hit)
        if gone := [key for key in hit.destroyed if self.known.pop(key, None)]:
            self.checked["destroyed"] += len(gone)
        if hit.has_ended or kind.ends:
            if not self.lab.ended(END_S):
                self.violation(kind.name, Broken.STUCK, f"the lab still ran {END_S:g} s later")
                self.lab.send(signal.SIGKILL)
                self.lab.ended(10)
            kind.repairs(self)
            self._check_end(kind.name, is_killed=hit.has_ended)
            then = Then.RESUMED
        else:
            then = self._await_progress(kind.name)
        self.check(kind.name)
        self.done.append((kind.name, hit.then or then))
        return True

    def run(self) -> None:
        """Start or resume the run, unless it runs."""
        if self.lab and self.lab.code is None and not self.cluster:
            return
        if self.cluster:
            self.cluster.complete()
            self._ended += self.cluster.gone
            if self.lab and self.lab.code is None:
                return
        if self.lab:
            self._check_end("between faults", is_killed=False)
        self.lab = self._start()

    def _start(self) -> Process:
        folder, matrix = self.run_folder(), self.work / "matrix.yaml"
        what = ("--resume", folder) if folder else (matrix, "--reports", self.reports)
        if self.cluster:
            return self.cluster.controller(self.logs, "run", "-v", *what)
        clock = self.clock if self.scene.clock else None
        return labs.lab(self.logs, "run", "-v", *what, tree=self.tree, clock=clock)

    def _await_progress(self, kind: str) -> Then:
        """Wait until trials that began after the fault are done, or the lab has ended."""
        assert self.lab
        wanted, end = self._sound() + self.scene.lanes * max(1, self.scene.workers) + 1, time.monotonic() + STUCK_S
        while self.lab.code is None:
            if self._sound() >= wanted:
                return Then.WENT_ON
            if time.monotonic() > end:
                self.violation(kind, Broken.STUCK, f"no trial in {STUCK_S:g} s")
                self.lab.send(signal.SIGINT)
                if not self.lab.ended(END_S):
                    self.lab.send(signal.SIGKILL)
                break
            time.sleep(1.0)
        self._check_end(kind, is_killed=False)
        return Then.RESUMED

    def _sound(self) -> int:
        return sum(result.outcome is Outcome.OK for result in self.results().values())

    # --- Checks ---

    def violation(self, kind: str, what: Broken, details: str) -> None:
        """Record one."""
        self.broken.append((kind, what, details))
        self.say(f"VIOLATION: {self.scene.name}: {kind}: {what}: {details}")

    def _check_end(self, kind: str, *, is_killed: bool) -> None:
        """The lab has ended: it gave a reason, and left nothing (one that was killed: nothing after `down`)."""
        lab = self.lab
        if lab is None or lab in self._ended:
            return
        self._ended.append(lab)
        self._check_output(kind, lab)
        if not is_killed and "lab.py: " not in lab.output:
            self.violation(kind, Broken.OTHER, f"ended with {lab.code} without a reason:\n{lab.output[-2000:]}")
        if is_killed:
            self._check_output(kind, self.down())
        else:
            reasons = re.findall(r"^lab\.py: .*", lab.output, re.MULTILINE)
            self.say(f"{self.scene.name}: ended with {lab.code}: {' / '.join(reasons)[:300]}")
        for pid, command in lab.outlived(CHILDREN_S):
            self.violation(kind, Broken.STUCK, f"process {pid} is still there: {command[:200]}")
        if left := lab.left():
            self.violation(kind, Broken.LEFT, f"{left} of a lab that {'was killed' if is_killed else 'ended'}")
            self.down()

    def check_refusal(self, kind: str, process: Process) -> None:
        """It must have ended with an error and a reason."""
        self._check_output(kind, process)
        if process.code not in (1, 2) or "lab.py: " not in process.output:
            self.violation(kind, Broken.OTHER, f"not refused: ended with {process.code}: {process.output[-1000:]}")

    def _check_output(self, kind: str, process: Process) -> None:
        if found := re.search(r"Traceback .*|Exception ignored.*|Segmentation fault", process.output, re.DOTALL):
            self.violation(kind, Broken.TRACEBACK, found[0][-3000:])

    def check(self, kind: str) -> None:
        """Nothing that was on record is gone or another one now, and no trial that was hit has a wrong result."""
        try:
            now = self.results()
        except HeadwindError as error:
            self.violation(kind, Broken.OTHER, str(error))
            return
        self.checked["attempts"] += len(self.known)
        for key, result in self.known.items():
            if now.get(key) != result:
                self.violation(kind, Broken.LOST, f"{key}: {now.get(key)} instead of {result}"[:1000])
        for key in now.keys() - self._judged:
            if problem := self._wrong(now[key], now):
                self.violation(kind, Broken.WRONG, problem)
        self.known = now
        self._judged |= now.keys()

    def _wrong(self, result: Result, results: Results) -> str:
        """What is wrong with a result that counts; empty if nothing is."""
        if result.outcome not in DATA_OUTCOMES:
            return ""
        self.checked["results"] += 1
        name = f"{result.trial.id}, attempt {result.attempt}"
        if result.outcome is not Outcome.OK:
            return f"{name}: {result.outcome}: {result.reason}"
        if not any(_overlap(result, hit) for hit in self.hits):
            return ""
        self.checked["hit"] += 1
        value, usual = _value(result), self._usual(result, results)
        if usual and not 0.5 * usual <= value <= 1.5 * usual + 1.0:
            return f"{name}: {value:.3f} s during a fault, usually {usual:.3f} s"
        return ""

    def _usual(self, result: Result, results: Results) -> float:
        """The median of the trials of its kind that no fault hit; 0 if there are fewer than two."""
        like = [
            _value(each)
            for each in results.values()
            if each.outcome is Outcome.OK and each.trial.arm == result.trial.arm
            and each.trial.block.condition.id == result.trial.block.condition.id
            and (self.scene.clock or not any(_overlap(each, hit) for hit in self.hits))
        ]  # fmt: skip
        return median(like) if len(like) > 1 else 0.0

    def finish(self) -> None:
        """Resume the run once more, end it, and check report and host."""
        kind = "the end of the session"
        self.run()
        self._await_progress(kind)
        assert self.lab
        self.lab.send(signal.SIGINT)
        if not self.lab.ended(END_S):
            self.violation(kind, Broken.STUCK, "the lab did not end after Ctrl-C")
            self.lab.send(signal.SIGKILL)
            self.lab.ended(10)
        self._check_end(kind, is_killed=False)
        self.check(kind)
        folder = self.run_folder()
        report = labs.finished_lab(self.logs, "report", str(folder), limit_s=120)
        self._check_output(kind, report)
        if report.code != 0:
            self.violation(kind, Broken.OTHER, f"lab.py report ended with {report.code}: {report.output[-1000:]}")
        if self.cluster:
            self.cluster.stop()
            for worker in self.cluster.workers:
                self._check_output(kind, worker)
        self._check_output(kind, self.down())
        for process in (*self._ended, *self.owners()):
            if left := process.left():
                self.violation(kind, Broken.LEFT, str(left))
        for folder in self.logs.glob("headwind-*"):  # where the labs keep temporary files
            self.violation(kind, Broken.LEFT, str(folder))
        for line in self._host_changes():
            self.violation(kind, Broken.LEFT, line)

    def _host_changes(self) -> Iterator[str]:
        """Changes of the host that outlast those of other programs."""
        end = time.monotonic() + 20
        found = changes(self._before, host_state(), set())
        while found and time.monotonic() < end:
            time.sleep(2)
            found = changes(self._before, host_state(), set())
        of_others = (line for line in found if not self.subnets.issuperset(SUBNET.findall(line)))
        return (line for line in found if not OF_DISKS.search(line) and line not in {*of_others})


def read(folder: Path) -> Results:
    """All attempts of a run folder that are over. Raises HeadwindError."""
    with Run.open(folder) as run:
        return {(result.trial.id, result.attempt): result for result in run.results()}


def _value(result: Result) -> float:
    """The time of the whole workload, or of its first byte."""
    workload = result.trial.block.condition.workload
    return result.metrics.get("total_s") or result.metrics[workload.primary().key]


def _overlap(result: Result, hit: Hit) -> bool:
    end_at = result.started_at + sum(result.phases_s.values())
    is_place = "*" in hit.testbeds or result.place.testbed in hit.testbeds
    return is_place and result.started_at <= hit.ended_at and end_at >= hit.began_at
