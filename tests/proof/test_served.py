"""What the server's log must say of a trial's answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.model import Check
from headwind.proof.served import LATE_S, check_served
from headwind.workloads.transfer import Transfer
from impair.messages import Answers

SLOW = Transfer("slow", 1, 1, 1, path="/bytes/1000", server_delay_s=0.03)
WAITED = Answers(60, 0, 0, 0, 60, 0.030, 0.031, 0.050)


def checked(served: Answers, succeeded: int = 60, busy_s: float = 0.0) -> Check:
    (check,) = check_served(SLOW, served, succeeded, 1, busy_s)
    return check


def test_answers_that_all_waited_pass() -> None:
    check = checked(WAITED)
    assert check.passed
    assert (check.quantity, check.requested, check.measured) == ("server_delay_s", 0.03, 0.031)
    assert check.note == "60 of 60 answers waited, 30 to 50 ms, by the server's log; the client counted 60"
    assert checked(replace(WAITED, shortest_wait_s=0.029)).passed, "a millisecond is what nginx's clock can show"
    assert checked(WAITED, succeeded=58).passed, "two were lost on the way"


@pytest.mark.parametrize(
    "served",
    [
        replace(WAITED, shortest_wait_s=0.028),
        replace(WAITED, median_wait_s=0.031 + LATE_S),
        replace(WAITED, waited=59),
        replace(WAITED, count=59, waited=59),
        Answers(60, 0, 0, 0, 0),
        Answers(0, 0, 0, 0, 0),
    ],
)
def test_one_that_did_not_or_that_nobody_logged_fails(served: Answers) -> None:
    assert not checked(served).passed


def test_requests_that_come_at_once_wait_for_the_servers_work_and_for_no_more() -> None:
    crowded = replace(WAITED, median_wait_s=0.060, longest_wait_s=0.080)
    assert not checked(crowded).passed
    assert checked(crowded, busy_s=0.021).passed
    assert not checked(crowded, busy_s=0.019).passed
    assert not checked(replace(crowded, shortest_wait_s=0.028), busy_s=0.021).passed


def test_without_an_answer_there_is_nothing_to_check() -> None:
    check = checked(Answers(0, 3, 0, 0, 0), succeeded=0)
    assert check.passed
    assert check.measured is None


def test_without_a_delay_nothing_is_checked() -> None:
    assert list(check_served(replace(SLOW, server_delay_s=0.0), WAITED, 60, 1)) == []


def test_the_server_has_the_workers_that_were_asked_for() -> None:
    two = replace(SLOW, server_delay_s=0.0, workers=2)
    for asked, seen, passed in ((two, 2, True), (two, 1, False), (replace(two, workers=1), 2, False)):
        (check,) = check_served(asked, None, 60, seen)
        assert (check.quantity, check.requested, check.measured) == ("workers", asked.workers, seen)
        assert check.passed == passed
    assert list(check_served(replace(two, workers=1), None, 60, 1)) == [], "what is usual is no line of the proof"
