"""Why a page took its time: only what the times of its requests show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H1, H2
from headwind.model import Check, Condition, Proof
from headwind.report.attribution import whys
from headwind.report.page_waits import connection_waits, standstill, waits
from headwind.report.ranking import standings
from headwind.run.data import RunData
from headwind.run.page_requests import PageRequest, PageTrial
from headwind.workloads.page import Page
from impair.profile import Direction
from tests.fake import recorded
from tests.report.page_runs import FAR, PAGE, page_run


def one(start: float, sent: float, first: float, done: float, *, connect_s: float = 0.0, over: str = "http/1.1",
        ) -> PageRequest:  # fmt: skip
    return PageRequest(start, sent, first, done, sent - connect_s, connect_s, protocol=over)


# Two connections: the second opens while the first is in use, and then each request waits for one of them.
TURNS = (
    one(0.0, 0.1, 0.2, 0.3, connect_s=0.1),
    one(0.3, 0.3, 0.4, 0.5),
    one(0.3, 0.4, 0.5, 0.6, connect_s=0.1),
    one(0.3, 0.5, 0.6, 0.7),
    one(0.3, 0.6, 0.7, 0.8),
)


def test_requests_wait_as_long_as_all_connections_are_in_use() -> None:
    connections, waited = connection_waits(TURNS)
    assert connections == 2
    assert waited == pytest.approx([0.2, 0.3])


def test_a_request_that_is_not_sent_although_a_connection_is_free_waits_for_something_else() -> None:
    late = one(0.8, 1.0, 1.1, 1.2)
    assert connection_waits((*TURNS, late)) == connection_waits(TURNS)


def test_an_end_that_is_recorded_late_is_no_further_connection() -> None:
    late = [replace(request, done_s=request.done_s + 0.005) for request in TURNS]
    connections, waited = connection_waits(late)
    assert connections == 2
    assert waited == pytest.approx([0.2, 0.3])


def test_only_http_1_waits_for_connections() -> None:
    assert connection_waits([replace(request, protocol="h2") for request in TURNS]) == (0, [])
    assert connection_waits([]) == (0, [])


def test_a_page_stands_still_while_requests_wait_and_no_answer_is_on_its_way() -> None:
    requests = (one(0, 0.1, 0.2, 0.3), one(0.6, 0.7, 0.9, 1.0))
    assert standstill(requests) == (0.7, 0.9), "from 0.3 to 0.7 nothing was asked"
    assert standstill([]) == (0.0, 0.0)
    unanswered = replace(requests[1], first_byte_s=0.0)
    assert standstill((requests[0], unanswered)) == (0.1, 0.2), "its times are unknown"
    large = one(0, 0.1, 0.2, 5.0)
    assert standstill((large, one(0, 0.1, 4.0, 4.1))) == (0.1, 0.2), "its bytes may come all the time"


def said(*requests: PageRequest, condition: Condition = PAGE, tmp_path: Path, proof: Proof | None = None) -> list[str]:
    _, results = page_run(tmp_path)
    return list(waits(condition, H2, PageTrial(replace(results[0], proof=proof or Proof()), requests)))


def test_a_standstill_is_told_with_what_ended_it_and_what_the_network_dropped(tmp_path: Path) -> None:
    still = [one(0, 0.1, first, first, over="h2") for first in (0.3, 0.7, 0.701, 0.7015)]
    lost = Check(Direction.DOWNLINK, "loss_ratio", 0.02, 0.02, 0.0133, 0.01, passed=True, note="5 of 376 packets")
    (told,) = said(*still, tmp_path=tmp_path, proof=Proof((lost,)))
    assert told == (
        "In the median trial of HTTP/2, nothing of any answer came for 400 ms while 3 requests waited; then the "
        "answers to 3 of them began within 2 ms; in the whole trial the network dropped 5 of 376 packets to the client."
    )
    (sentence,) = said(*still, tmp_path=tmp_path, proof=Proof((replace(lost, measured=0.0),)))
    assert "dropped" not in sentence
    spans = (lost, replace(lost, span="2s"))
    (sentence,) = said(*still, tmp_path=tmp_path, proof=Proof(spans))
    assert "dropped" not in sentence, "each is of a part of the trial"


def test_an_ordinary_wait_for_an_answer_is_no_standstill(tmp_path: Path) -> None:
    trip_s = 0.04  # of FAR
    usual = [one(0, 0.1, 0.1 + 3 * trip_s - 0.01, 0.3, over="h2"), one(0, 0.1, 0.21, 0.32, over="h2")]
    assert said(*usual, tmp_path=tmp_path) == []
    slow = Condition(FAR, Page("slow", 12, 10_000, server_delay_s=0.5))
    later = [replace(request, first_byte_s=1.5, done_s=1.6) for request in usual]
    assert said(*later, tmp_path=tmp_path, condition=slow) == [], "the server waits"
    assert said(*later, tmp_path=tmp_path) != []


def test_the_report_says_what_the_requests_of_a_page_waited_for(tmp_path: Path) -> None:
    matrix, results = page_run(tmp_path)
    columns = {
        "request_start_s": [each.start_s for each in TURNS], "request_sent_s": [each.sent_s for each in TURNS],
        "request_took_s": [each.done_s - each.start_s for each in TURNS], "request_status": [200] * len(TURNS),
        "request_first_byte_s": [each.first_byte_s for each in TURNS], "request_protocol": ["http/1.1"] * len(TURNS),
        "request_connect_s": [each.connect_s for each in TURNS],
    }  # fmt: skip
    turns = [replace(each, samples={"samples": columns}) if each.trial.arm == H1 else each for each in results]
    with recorded(tmp_path, matrix, turns) as run:
        data = RunData.of(run)
    by_condition = {why.condition: why.sentences for why in whys(data, standings(data))}
    expected = (
        "In the median trial of HTTP/1.1, 2 of 5 requests waited while both connections were in use (median 250 ms)."
    )
    assert expected in by_condition[PAGE]
    assert not any("median trial" in text for of, texts in by_condition.items() if of != PAGE for text in texts)
