"""What takes part in a run, what a worker does when it is asked twice, and what becomes of lanes on a lost host."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from headwind.arm import H1, H2
from headwind.cli.cluster import _opened
from headwind.cluster.admission import admitted
from headwind.cluster.messages import Answer, Asked, Call, Host, Kind, LaneSpec, Question, from_text, to_text
from headwind.cluster.remote_lane import RemoteLane
from headwind.cluster.worker import RunWorker
from headwind.errors import HeadwindError
from headwind.model import Block, Condition, Matrix, Outcome, Repetition, Result, Trial
from headwind.plan.scheduler import Scheduler
from headwind.settings import Settings, TrialRules, Windows
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.trial.lane import HostLost
from headwind.trial.lanes import Lanes
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Loss, Profile
from tests.fake_testbed import AT_ONCE, RULES, Sabotage, World, fake_testbed

CONDITION = Condition(Profile("loss", downlink=Link(loss=Loss(0.1))), H2load("small", 1000, 10, 10))
SPEC = LaneSpec("run", 1, BedSpec({}, profiles=(CONDITION.profile,)), RULES, ("reno",))
FACTS: Mapping[str, Any] = {"kernel": "6.1", "machine": "x86_64", "rmem_max_bytes": 1, "cpu": "fast", "cores": 2}
IMAGES = {"nginx": "tag@sha256:1"}


def host(name: str, code: str = "c0de", images: Mapping[str, str] = IMAGES, **facts: object) -> Host:
    return Host(name, code, images, {**FACTS, **facts}, 2)


def names(hosts: Collection[Host]) -> list[str]:
    return [each.name for each in hosts]


def test_unequal_processors_may_take_part_and_unequal_kernels_may_not() -> None:
    taken, refused = admitted([host("a"), host("b", cpu="slow", cores=8), host("c", kernel="6.12")], "c0de", None)
    assert names(taken) == ["a", "b"]
    assert refused == {"c": "its kernel is 6.12, not 6.1"}


def test_the_largest_group_of_hosts_that_are_alike_takes_part() -> None:
    other = {"nginx": "tag@sha256:2"}
    taken, refused = admitted([host("a", images=other), host("b"), host("c")], "c0de", None)
    assert names(taken) == ["b", "c"]
    assert refused["a"].startswith("its image nginx is tag@sha256:2, not tag@sha256:1")


def test_a_run_that_goes_on_takes_hosts_that_are_as_it_began() -> None:
    began = {"images": {"nginx": "tag@sha256:2"}, "host": FACTS}
    taken, refused = admitted([host("a", images={"nginx": "tag@sha256:2"}), host("b"), host("c")], "c0de", began)
    assert names(taken) == ["a"]
    assert list(refused) == ["b", "c"]


def test_an_image_that_the_run_does_not_use_makes_no_difference() -> None:
    offered = [host("a"), host("b", images={**IMAGES, "other": "tag@sha256:3"})]
    assert names(admitted(offered, "c0de", None)[0]) == ["a"]
    assert names(admitted([each.using(["nginx"]) for each in offered], "c0de", None)[0]) == ["a", "b"]


def test_another_version_of_the_lab_is_refused_first() -> None:
    taken, refused = admitted([host("a", code="0ld"), host("b", code="0ld", kernel="5")], "c0de", None)
    assert taken == []
    assert refused["a"] == "different Headwind version (0ld, not c0de): update it with `git pull`"
    assert admitted([], "c0de", None) == ([], {})


@dataclass
class Bed:
    """Testbeds of a worker under test."""

    sabotage: Sabotage = field(default_factory=Sabotage)
    runs: int = 0
    up_now: int = 0
    frame_s: float = 1e-6  # that a full frame takes on the bare path
    gate: threading.Event = field(default_factory=threading.Event)
    do_run: Callable[..., object] | None = None  # instead of the client's own

    @contextmanager
    def up(self, spec: BedSpec) -> Iterator[testbeds.Testbed]:
        assert spec.engine in ("auto", "fake")
        self.up_now += 1
        with fake_testbed(World(self.sabotage, frame_s=self.frame_s)) as bed:
            run = self.do_run or bed.client.do_run  # type: ignore[attr-defined]

            def counted(**asked: object) -> object:
                self.runs += 1
                self.gate.wait(10)
                return run(**asked)

            bed.client.do_run = counted  # type: ignore[attr-defined]
            yield bed
        self.up_now -= 1


@pytest.fixture
def bed() -> Bed:
    made = Bed()
    made.gate.set()
    return made


@pytest.fixture
def worker(bed: Bed) -> Iterator[RunWorker]:
    made = RunWorker("alpha", lambda _: host("alpha"), bed.up)
    yield made
    bed.gate.set()
    made.close()
    assert bed.up_now == 0


def block(index: int = 0) -> Block:
    return Block(CONDITION, index, (H1, H2), dict.fromkeys(Direction, 11))


def attempt(name: str, number: int = 0, spec: LaneSpec = SPEC) -> Call:
    return Call(name, Asked.ATTEMPT, spec, block().trials()[0], number)


def result_of(answer: Answer) -> Result:
    assert answer.result
    return answer.result


def outcome(answer: Answer) -> Outcome:
    return result_of(answer).outcome


def test_a_call_that_is_asked_twice_is_done_once_and_its_answer_kept(worker: RunWorker, bed: Bed) -> None:
    bed.gate.clear()
    assert worker.hear(attempt("1"), 0.05).kind is Kind.NOT_YET
    assert worker.hear(attempt("1"), 0.05).kind is Kind.NOT_YET
    bed.gate.set()
    first, again = worker.hear(attempt("1"), 10), worker.hear(attempt("1"), 10)
    assert first.kind is Kind.DONE
    assert first == again
    assert outcome(first) is Outcome.OK
    assert bed.runs == 1
    assert result_of(worker.hear(attempt("2", 1), 10)).attempt == 1
    assert bed.runs == 2


def test_what_breaks_there_is_told_as_what_it_is(worker: RunWorker, bed: Bed) -> None:
    bed.sabotage = Sabotage(dies="server")
    answer = worker.hear(attempt("1"), 10)
    assert answer.kind is Kind.LAB_TROUBLE
    assert "server" in answer.text


def test_a_station_works_for_one_run_until_that_is_silent(worker: RunWorker, bed: Bed) -> None:
    other = replace(SPEC, run="another")
    opened = worker.hear(Call("1", Asked.OPEN, SPEC), 10).opened
    assert opened
    assert opened.engine == "fake"
    assert worker.hear(Call("2", Asked.OPEN, other), 10).kind is Kind.BUSY
    worker.busy_s = 0.0
    assert worker.hear(Call("2", Asked.OPEN, other), 10).kind is Kind.DONE
    assert bed.up_now == 1, "that of the first run is gone"


def test_testbeds_of_a_silent_run_go_and_come_again_with_its_next_trial(worker: RunWorker, bed: Bed) -> None:
    worker.hear(attempt("1"), 10)
    worker.rest()
    assert bed.up_now == 1
    worker.idle_s = 0.0
    worker.rest()
    assert bed.up_now == 0
    assert outcome(worker.hear(attempt("1"), 10)) is Outcome.OK, "the last answer is still there"
    assert bed.runs == 1
    assert outcome(worker.hear(attempt("2", 1), 10)) is Outcome.OK
    assert bed.up_now == 1


@dataclass
class Wire:
    """The way to workers in this process; a host can be cut off after some trials."""

    workers: dict[str, RunWorker]
    trials_left: dict[str, int] = field(default_factory=dict)

    def ask(self, host: str, call: Call, check_stop: Callable[[], None], patience_s: float | None = None) -> Answer:
        check_stop()
        assert (patience_s is None) == (call.asked in (Asked.OPEN, Asked.ATTEMPT))
        if call.asked is Asked.ATTEMPT:
            self.trials_left[host] = self.trials_left.get(host, 10**6) - 1
        if self.trials_left.get(host, 1) < 0:
            raise HostLost(f"{host} has not answered for 90 s")
        return self.workers[host].hear(call, 10)


@dataclass
class Book:
    """A run folder."""

    results: list[Result] = field(default_factory=list)

    def begin(self, trial: Trial, attempt: int) -> None:
        assert (trial.id, attempt) not in [(result.trial.id, result.attempt) for result in self.results]

    def append(self, result: Result) -> None:
        self.results.append(result)


def run(blocks: int, trials_left: Mapping[str, int]) -> tuple[list[Result], list[str]]:
    """Results of a fixed number of blocks on two hosts with up to two lanes each, and what was said."""
    matrix = Matrix((H1, H2), (CONDITION,), Repetition.fixed(blocks), 60.0, 1)
    made = {name: RunWorker(name, lambda _: host("any"), open_bed().up) for name in ("alpha", "beta")}
    wire, book, said = Wire(made, dict(trials_left)), Book(), list[str]()
    first, second = (
        RemoteLane(wire, name, replace(SPEC, number=number), number=number) for number, name in enumerate(made, start=1)
    )
    try:
        with Lanes(first, 2, said.append, elsewhere=[(second, 2)], clock=AT_ONCE) as lanes:
            list(lanes.run(Scheduler(matrix, lanes=4, cores=8), book))
    finally:
        for each in made.values():
            each.close()
    return book.results, said


def open_bed(**how: Any) -> Bed:
    made = Bed(**how)
    made.gate.set()
    return made


def test_blocks_of_a_lost_host_run_again_whole_on_the_other() -> None:
    results, said = run(8, {"beta": 3})
    assert said == ["continuing without a host: beta has not answered for 90 s"]
    latest = {result.trial.id: result for result in results}
    assert [result.outcome for result in latest.values()] == [Outcome.OK] * 16
    hosts: dict[str, set[str]] = {}
    for result in latest.values():
        hosts.setdefault(result.trial.block.id, set()).add(result.place.host)
    assert all(len(each) == 1 for each in hosts.values())
    assert sum(result.place.host == "beta" and result.outcome is Outcome.OK for result in results) == 3, "all are kept"


def test_without_any_host_the_run_ends() -> None:
    with pytest.raises(HostLost):
        run(8, {"alpha": 2, "beta": 3})


def test_a_slow_host_is_refused_alone_and_its_lane_is_closed() -> None:
    """Whether it is the first, a later or the only one; all lanes are closed in the end."""
    matrix = Matrix((H1, H2), (CONDITION,), Repetition.fixed(1), 60.0, 1)
    for slow in (["alpha"], ["beta"], ["alpha", "beta"]):
        beds = {name: open_bed(frame_s=1514 * 8 / 10e6 if name in slow else 1e-6) for name in ("alpha", "beta")}
        workers = {name: RunWorker(name, lambda _: host("any"), bed.up) for name, bed in beds.items()}
        refused: dict[str, str] = {}
        with ExitStack() as lanes_up:
            up = _opened(lanes_up, Wire(workers), [host(name) for name in beds], matrix, "auto", refused)
            assert [lane.host for lane, _ in up] == [name for name in beds if name not in slow]
            assert list(refused) == slow
            assert all("carries 10 Mbit/s of full frames" in why for why in refused.values())
            assert {name: bed.up_now for name, bed in beds.items()} == {name: int(name not in slow) for name in beds}
        assert [bed.up_now for bed in beds.values()] == [0, 0]


def test_an_error_that_is_none_of_the_labs_ends_the_run_with_the_hosts_name() -> None:
    lane = RemoteLane(Wire({"alpha": RunWorker("alpha", lambda _: host("alpha"), broken)}), "alpha", SPEC)
    with pytest.raises(HeadwindError, match="alpha: no disk"):
        lane.open()


@contextmanager
def broken(spec: BedSpec) -> Iterator[testbeds.Testbed]:
    raise HeadwindError("no disk")
    yield


def test_what_runs_on_another_host_takes_no_room_here_and_is_not_given_twice() -> None:
    matrix = Matrix((H1, H2), (CONDITION,), Repetition.fixed(2), 60.0, 1)
    scheduler = Scheduler(matrix, lanes=2, cores=1)
    first = scheduler.next()
    assert first
    assert scheduler.next([first]) is None, "a single processor has no room for two that are not known"
    second = scheduler.next([], [first])
    assert second
    assert second.block != first.block
    assert scheduler.next([], [first, second]) is None


def test_what_is_sent_is_read_as_what_it_was(worker: RunWorker) -> None:
    call = attempt("1", 3, replace(SPEC, rules=TrialRules(9.0, Settings(server=Windows.AS_SHIPPED))))
    assert from_text(Question, to_text(Question(call))) == Question(call)
    answer = worker.hear(attempt("1"), 10)
    answer = replace(answer, result=replace(result_of(answer), metrics={"total_s": math.inf}))
    assert from_text(Answer, to_text(answer)) == answer
    opened = worker.hear(Call("2", Asked.OPEN, SPEC), 10)
    assert from_text(Answer, to_text(opened)) == opened
    assert from_text(Host, to_text(host("alpha"))) == host("alpha")
    for odd in ("", "null", '{"kind": "done", "result": {}}', '{"kind": "done", "result": 7}', '{"kind": "undone"}'):
        with pytest.raises((KeyError, TypeError, ValueError)):
            from_text(Answer, odd)


def test_a_timeout_of_the_system_is_an_error_and_not_a_call_that_goes_on_for_ever(worker: RunWorker, bed: Bed) -> None:
    """concurrent.futures raises the builtin TimeoutError as well, if a call has not ended yet."""

    def slow(**_: object) -> object:
        raise TimeoutError(110, "Connection timed out")

    bed.do_run = slow
    answer = worker.hear(attempt("1"), 10)
    assert answer.kind is Kind.ERROR
    assert "Connection timed out" in answer.text
