"""A real scheduler and real workers, each its own process, with fake testbeds: what is finished is never lost.

All are forks of one process that has imported the lab; nothing is shared after that.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwind.errors import HeadwindError
from headwind.model import Outcome, Result
from headwind.run.codec import State
from headwind.run.journal import Run
from tests.forks import Fork, Forks, forks_of

MATRIX = """
protocols: [h1, h2, h3]
timeout: 60s
repeat: 4
lanes: 2
profiles:
  a: {downlink: {loss: 20%}}
  b: {downlink: {loss: 30%}}
workloads:
  small: {requests: 300, connections: 5, streams: 5}
"""
TRIALS = 24
PATIENT_S, HASTY_S = 60, 10  # of the run, for a host that does not answer
LAB = """
import lab, sys
from headwind.cli.dependencies import Dependencies
from headwind.cli.redrawing import Redrawing
from tests.fake_testbed import AT_ONCE, NoRedrawing
redrawing = Redrawing if "--redrawing" in sys.argv else NoRedrawing
deps = Dependencies(patience_s=float(sys.argv[1]), clock=AT_ONCE, redrawing=redrawing)
sys.exit(lab.main([argument for argument in sys.argv[2:] if argument != "--redrawing"], deps))
"""
IMPORTED = (
    "distributed.cli.dask_scheduler", "lab", "headwind.cli.cluster", "headwind.cli.dependencies",
    "headwind.cluster.connection", "headwind.matrix.reader", "headwind.plan.scheduler", "headwind.report",
    "tests.fake_testbed",
)  # fmt: skip
START_S = 60.0  # what a process may take to be there, on a busy machine

pytestmark = pytest.mark.timeout(240)
pytest.importorskip("distributed", reason="the extra `cluster` is not installed")


class Cluster:
    """A scheduler, workers and runs, each a process."""

    def __init__(self, folder: Path, forks: Forks) -> None:
        self.folder, self.forks, self.processes = folder, forks, list[Fork]()
        (folder / "matrix.yaml").write_text(MATRIX)
        self.scheduler, self.address = self.start_scheduler("0")

    def start(self, name: str, *command: str) -> Fork:
        started = self.forks.start(self.folder / f"{name}.log", *command)
        self.processes.append(started)
        return started

    def said(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def await_words(self, name: str, words: str, times: int = 1) -> None:
        end = time.monotonic() + START_S
        while self.said(name).count(words) < times:
            assert time.monotonic() < end, f"{name} never said {words!r}: {self.said(name)}"
            time.sleep(0.1)

    def start_scheduler(self, port: str) -> tuple[Fork, str]:
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        process = self.start(
            "scheduler", "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port,
            "--no-dashboard", "--scheduler-file", str(file),
        )  # fmt: skip
        end = time.monotonic() + START_S
        while not file.exists() or not file.read_text():
            assert time.monotonic() < end, self.said("scheduler")
            time.sleep(0.1)
        return process, json.loads(file.read_text())["address"]

    def worker(self, name: str, *options: str) -> Fork:
        process = self.start(
            name, "tests/cluster/fake_worker.py", self.address, name, f"log={self.folder / 'ran'}", *options
        )
        self.await_words(name, f"{name} serves")
        return process

    def run(self, *arguments: str, patience_s: float = PATIENT_S) -> Fork:
        return self.start(
            "run", "-c", LAB, str(patience_s), "run", str(self.folder / "matrix.yaml"), "--cluster", self.address,
            "--reports", str(self.folder / "reports"), *arguments,
        )  # fmt: skip

    def await_trials(self, count: int) -> None:
        end = time.monotonic() + START_S
        while self.ran().total() < count or self.finished() < count:
            assert time.monotonic() < end, self.said("run")
            time.sleep(0.1)

    def finished(self) -> int:
        """How many trials are on record as done; none while the folder is being made."""
        try:
            return sum(result.outcome is Outcome.OK for result in self.results())
        except HeadwindError:
            return 0

    @property
    def journal(self) -> Path:
        (found,) = (self.folder / "reports").glob("*/")
        return found

    def results(self) -> list[Result]:
        with Run.open(self.journal) as run:
            return run.results()

    def ran(self) -> Counter[str]:
        """How many clients ran on each host."""
        file = self.folder / "ran"
        return Counter(line.split()[0] for line in file.read_text().splitlines()) if file.exists() else Counter()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with forks_of(*IMPORTED) as parent:
        yield parent


@pytest.fixture
def cluster(tmp_path: Path, forks: Forks) -> Iterator[Cluster]:
    made = Cluster(tmp_path, forks)
    yield made
    for process in reversed(made.processes):
        with_signal(process, signal.SIGCONT)
        process.kill()
        process.wait()


def with_signal(process: Fork, number: signal.Signals) -> None:
    if process.poll() is None:
        os.kill(process.pid, number)


def latest(results: list[Result]) -> dict[str, Result]:
    return {result.trial.id: result for result in results}


def hosts_of_blocks(results: list[Result]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in latest(results).values():
        found.setdefault(result.trial.block.id, set()).add(result.place.host)
    return found


def test_two_workers_run_whole_blocks_of_one_run_and_one_with_other_images_is_refused(cluster: Cluster) -> None:
    cluster.worker("alpha")
    cluster.worker("beta")
    cluster.worker("gamma", "nginx=sha256:9")
    assert cluster.run("--redrawing").wait() == 0, cluster.said("run")
    results = cluster.results()
    assert [result.outcome for result in results] == [Outcome.OK] * TRIALS
    blocks = hosts_of_blocks(results)
    assert all(len(hosts) == 1 for hosts in blocks.values()), "a block never spans hosts"
    assert set.union(*blocks.values()) == {"alpha", "beta"}
    with Run.open(cluster.journal) as run:
        environment = run.environment
    assert list(environment["hosts"]) == ["alpha", "beta"]
    assert "without gamma: its image nginx is tag@sha256:9, not tag@sha256:1" in cluster.said("run")
    assert "its image nginx" in environment["hosts refused"]["gamma"]
    assert "its image nginx" in (cluster.journal / "report.html").read_text()
    assert {life["host"] for life in environment["testbeds"]} == {"alpha", "beta"}
    assert {result.place.testbed for result in results} == {life["testbed"] for life in environment["testbeds"]}
    assert all(life["why"] == "the end of the run" for life in environment["testbeds"])
    for result in results:  # company is that of the own host only
        assert {name for name in result.place.beside if blocks[name] != {result.place.host}} == set()


def test_a_worker_that_is_killed_loses_no_finished_trial_and_its_blocks_run_again_elsewhere(cluster: Cluster) -> None:
    cluster.worker("alpha", "trial_s=0.5")
    doomed = cluster.worker("beta", "trial_s=0.5")
    run = cluster.run(patience_s=HASTY_S)
    cluster.await_trials(6)
    doomed.kill()
    assert run.wait() == 0, cluster.said("run")
    assert "continuing without a host: beta has not answered" in cluster.said("run")
    results = cluster.results()
    assert {result.outcome for result in latest(results).values()} == {Outcome.OK}
    assert len(latest(results)) == TRIALS
    assert all(len(hosts) == 1 for hosts in hosts_of_blocks(results).values())
    broken = [result for result in results if result.outcome is Outcome.LAB_ERROR]
    assert {result.place.host for result in broken} == {"beta"}
    on_record = Counter(result.place.host for result in results if result.outcome is Outcome.OK)
    assert cluster.ran()["beta"] - on_record["beta"] <= len(broken), "only what ran at that moment is lost"
    assert cluster.ran()["alpha"] == on_record["alpha"]


def test_a_scheduler_that_comes_back_interrupts_nothing(cluster: Cluster) -> None:
    cluster.worker("alpha", "trial_s=0.5")
    cluster.worker("beta", "trial_s=0.5")
    run = cluster.run()
    cluster.await_trials(4)
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    cluster.scheduler, _ = cluster.start_scheduler(cluster.address.rpartition(":")[2])
    assert run.wait() == 0, cluster.said("run")
    results = cluster.results()
    assert [result.outcome for result in results] == [Outcome.OK] * TRIALS, "nothing ran twice"
    assert sum(cluster.ran().values()) == TRIALS


def test_a_scheduler_that_stays_away_ends_the_run_and_resume_does_the_rest(cluster: Cluster) -> None:
    cluster.worker("alpha", "trial_s=0.5")
    run = cluster.run(patience_s=HASTY_S)
    cluster.await_trials(4)
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    assert run.wait() == 1
    assert "--resume" in cluster.said("run")
    before = [result for result in cluster.results() if result.outcome is Outcome.OK]
    assert 4 <= len(before) < TRIALS
    cluster.start_scheduler(cluster.address.rpartition(":")[2])
    cluster.await_words("alpha", "alpha serves", 2)
    assert cluster.run("--resume", str(cluster.journal)).wait() == 0, cluster.said("run")
    results = cluster.results()
    assert {result.outcome for result in latest(results).values()} == {Outcome.OK}
    assert len(latest(results)) == TRIALS
    whole = {name for name, count in Counter(each.trial.block.id for each in before).items() if count == 3}
    again = {result.trial.id for result in results[len(before) :] if result.trial.block.id in whole}
    assert not again - {result.trial.id for result in before if result.trial.block.id not in whole}


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_laptop_that_is_closed_loses_no_finished_trial(cluster: Cluster, number: signal.Signals) -> None:
    """Stopped for a while, or for good: then the run is gone on with, by another process."""
    cluster.worker("alpha", "trial_s=0.5")
    run = cluster.run()
    cluster.await_trials(4)
    with_signal(run, number)
    time.sleep(3)
    before = [result for result in cluster.results() if result.outcome is Outcome.OK]
    if number is signal.SIGSTOP:
        with_signal(run, signal.SIGCONT)
        assert run.wait() == 0, cluster.said("run")
        assert [result.outcome for result in cluster.results()] == [Outcome.OK] * TRIALS
        assert cluster.ran()["alpha"] == TRIALS, "what ended meanwhile was kept, and did not run again"
    else:
        run.wait()
        assert cluster.run("--resume", str(cluster.journal)).wait() == 0, cluster.said("run")
    results = cluster.results()
    assert {result.outcome for result in latest(results).values()} == {Outcome.OK}
    kept = {(result.trial.id, result.attempt) for result in results if result.outcome is Outcome.OK}
    assert {(result.trial.id, result.attempt) for result in before} <= kept


def test_ctrl_c_takes_the_far_testbeds_down_and_a_second_run_can_have_them_and_another(cluster: Cluster) -> None:
    cluster.worker("alpha", "trial_s=0.5")
    run = cluster.run()
    cluster.await_trials(2)
    with_signal(run, signal.SIGINT)
    assert run.wait() == 130
    with Run.open(cluster.journal) as stopped:
        assert stopped.status.state is State.INTERRUPTED
        names = {life["testbed"] for life in stopped.environment["testbeds"]}
    assert names
    assert all(f"down: {name}" in cluster.said("alpha") for name in names)
    cluster.worker("beta", "trial_s=0.5")
    assert cluster.run("--resume", str(cluster.journal)).wait() == 0, cluster.said("run")
    with Run.open(cluster.journal) as resumed:
        assert set(resumed.environment["hosts"]) == {"alpha", "beta"}, "a machine that joined later is on record"
    assert {result.outcome for result in latest(cluster.results()).values()} == {Outcome.OK}


def test_without_a_scheduler_or_a_worker_it_is_said_what_to_do(cluster: Cluster) -> None:
    assert cluster.run().wait() == 1
    assert "no usable worker" in cluster.said("run")
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    assert cluster.run().wait() == 2
    assert "no scheduler answers there" in cluster.said("run")


def test_what_a_hostile_worker_sends_is_never_run_by_the_lab_that_leads(cluster: Cluster) -> None:
    """The scheduler may run it, as it unpickles by itself."""
    ran = cluster.folder / "payloads"
    cluster.worker("alpha")
    kinds = ("bytes", "object", "serialized", "pickled", "twice", "json", "raised", "extra")
    cluster.start("mallory", "tests/cluster/hostile_worker.py", cluster.address, str(ran))
    cluster.await_words("mallory", "all serve")
    run = cluster.run("--smoke")
    assert run.wait() == 0, cluster.said("run")
    assert {result.outcome for result in cluster.results()} == {Outcome.OK}
    assert str(run.pid) not in {file.name for file in ran.iterdir()}
    assert all(f"without {kind}: " in cluster.said("run") for kind in kinds)
    assert "Traceback" not in cluster.said("run")
