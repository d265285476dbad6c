"""Actions at moments: in order, on time, stamped, stopped, and ended by the first that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from impair.messages import Course, RouterReading
from impair.router.schedule import Action, Answer, Schedule, at_once

READ = RouterReading(ports={}, rx_while_read={})


class Log:
    """Actions that note when they are carried out."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def action(self, at_s: float, kind: str, error: str = "") -> Action:
        def report() -> Answer:
            return {"name": kind}

        def carry_out() -> Callable[[], Answer]:
            if error:
                raise ValueError(error)
            self.done.append(kind)
            return report

        return Action(at_s, kind, lambda: carry_out)


@pytest.fixture
def log() -> Log:
    return Log()


def finished(schedule: Schedule, seconds: float = 0.0) -> Course:
    time.sleep(seconds)
    return schedule.stop()


def test_actions_are_carried_out_at_their_moments(log: Log) -> None:
    actions = [log.action(0.02, "a"), log.action(0.05, "b"), log.action(0.05, "c")]
    course = finished(Schedule(actions, at_once, lambda: READ), 0.2)
    assert log.done == ["a", "b", "c"]
    assert [(each.kind, each.at_s, each.answer, each.error) for each in course.carried] == [
        ("a", 0.02, {"name": "a"}, ""), ("b", 0.05, {"name": "b"}, ""), ("c", 0.05, {"name": "c"}, ""),
    ]  # fmt: skip
    for each in course.carried:
        assert each.at_s <= each.began_s <= each.done_s < each.at_s + 0.1
    assert course.stopped_s
    assert course.stopped_s > 0.19


def test_nothing_happens_after_the_end(log: Log) -> None:
    course = finished(Schedule([log.action(0.01, "a"), log.action(5.0, "late")], at_once, lambda: READ), 0.1)
    assert [each.kind for each in course.carried] == ["a"]


def test_what_is_due_at_the_end_is_still_carried_out(log: Log) -> None:
    """A thread that was not woken in time must not lose a change that the client has lived through."""

    def slow() -> RouterReading:
        time.sleep(0.05)
        return READ

    course = finished(Schedule([log.action(0.01, "a"), log.action(0.03, "b")], at_once, slow), 0.04)
    assert [each.kind for each in course.carried] == ["a", "b"]


def test_the_first_failure_ends_it_and_is_reported(log: Log) -> None:
    actions = [log.action(0.01, "a"), log.action(0.02, "b", "no such thing"), log.action(0.03, "c")]
    course = finished(Schedule(actions, at_once, lambda: READ), 0.1)
    assert [(each.kind, each.error) for each in course.carried] == [("a", ""), ("b", "no such thing")]
    assert log.done == ["a"]


def test_the_clock_waits_for_its_start(log: Log) -> None:
    begin = threading.Event()

    def start(_stopped: threading.Event) -> float:
        begin.wait()
        return time.monotonic() - 0.01  # the packet came before it was seen

    schedule = Schedule([log.action(0.03, "a")], start, lambda: READ)
    time.sleep(0.05)
    assert log.done == []
    begin.set()
    course = finished(schedule, 0.1)
    assert course.carried[0].began_s == pytest.approx(0.03, abs=0.05)


def test_a_clock_that_never_started_has_no_course(log: Log) -> None:
    def never(stopped: threading.Event) -> None:
        stopped.wait()

    assert finished(Schedule([log.action(0.0, "a")], never, lambda: READ)) == Course(None)
    assert log.done == []
