"""The waterfall of a page: one row for each request of the median trial, all arms on one axis."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.arm import PLAIN
from headwind.model import Condition, Outcome, Repetition
from headwind.report.html import charts
from headwind.report.html.page import REPORT, render, write_report
from headwind.run.data import RunData
from headwind.run.page_requests import PageRequest, PageTrial, PageTrials, requests_of
from headwind.workloads.page import LOAD
from headwind.workloads.streams import Streams
from tests.fake import example_matrix, ok, recorded, trials_of
from tests.golden.runs import Golden
from tests.report.page_runs import ANSWERED, FAR, PAGE, page_run


def drawn(*requests: PageRequest, end_s: float = 1.0) -> str:
    chart = charts.waterfall("w", "h2", requests, end_s=end_s, load_s=None, title="a", description="b")
    return str(chart)


def lengths(svg: str) -> dict[str, list[float]]:
    """The lengths of the lines of each part of a request."""
    paths = re.findall(r'<path class="h2 (\w+)" d="([^"]*)" stroke-width="[\d.]+"', svg)
    return {part: [float(length) for length in re.findall(r"h([\d.]+)", line)] for part, line in paths}


def test_a_request_is_lines_as_long_as_its_times() -> None:
    found = lengths(drawn(ANSWERED))
    assert found.keys() == {"queued", "waiting", "receiving"}
    assert found["waiting"][0] == pytest.approx(2 * found["queued"][0], abs=0.2)
    assert found["receiving"][0] == pytest.approx(3 * found["queued"][0], abs=0.2)


def test_the_handshake_of_a_new_connection_has_a_line_of_its_own() -> None:
    found = lengths(drawn(replace(ANSWERED, connect_start_s=0.02, connect_s=0.06)))
    (connecting,), queued = found["connecting"], found["queued"]
    assert connecting == pytest.approx(3 * queued[0], abs=0.2)
    assert queued[1] == pytest.approx(queued[0], abs=0.2), "until it was sent on the new connection"
    assert connecting + sum(queued) == pytest.approx(lengths(drawn(ANSWERED))["queued"][0], abs=0.2)


def test_a_request_that_was_never_answered_only_waits() -> None:
    assert lengths(drawn(PageRequest(0.2, 0.3, 0.0, 0.7))).keys() == {"queued", "waiting"}
    assert lengths(drawn(PageRequest(0.2, 0.0, 0.0, 0.7))).keys() == {"queued"}


def test_an_answer_that_came_at_once_is_seen() -> None:
    assert lengths(drawn(PageRequest(0.0, 0.1, 0.3, 0.3)))["receiving"][0] > 1


def test_many_requests_fit_into_one_chart() -> None:
    svg = drawn(*[PageRequest(0.1, 0.2, 0.3, 0.4)] * 1000)
    height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[0])
    assert height < 400
    assert {len(each) for each in lengths(svg).values()} == {1000}


@given(st.tuples(*[st.floats(0, 10)] * 6))
def test_the_times_of_a_request_are_in_order_and_add_up(times: tuple[float, ...]) -> None:
    start, sent, first, took, begun, connected = times
    request = PageRequest(start, sent, first, start + took, begun, connected)
    assert list(request.moments) == sorted(request.moments)
    parts = request.queued_s + request.connecting_s + request.waiting_s + request.receiving_s
    assert parts == pytest.approx(took, abs=1e-9)


def test_the_report_has_the_median_trial_of_each_arm_of_a_page_and_of_no_other_workload(tmp_path: Path) -> None:
    matrix, results = page_run(tmp_path)
    with recorded(tmp_path, matrix, results) as run:
        data = RunData.of(run)
        write_report(run, data)
        page = (run.folder / REPORT).read_text()
    assert set(data.page_trials) == {(PAGE.id, arm.name) for arm in PLAIN}
    for arm in PLAIN:
        times = sorted(result.metrics[LOAD.key] for result in results
                       if result.trial.arm == arm and result.trial.block.condition == PAGE)  # fmt: skip
        trials = data.page_trials[PAGE.id, arm.name]
        for trial, load_s in ((trials.median, times[2]), (trials.worst, times[-1])):
            assert trial.result.metrics[LOAD.key] == load_s
            assert len(trial.requests) == 13
            assert trial.requests[-1].done_s == pytest.approx(load_s, abs=1e-4), "the fake's page ends with it"
    shown = re.findall(r'<svg id="[^"]*-waterfall-\d"[^>]*data-x="([^"]*)"', page)
    assert len(shown) == 3
    assert len(set(shown)) == 1, "one axis for all"
    assert page.count("Requests of the median trial of") == 3
    assert key_of(page)[-1] == "load event"


def key_of(page: str) -> list[str]:
    """The meanings in the key of the waterfalls."""
    (key,) = re.findall(r'<p class="key">One row for each request.*?</p>', page, re.DOTALL)
    return [text.strip() for text in re.findall(r"</svg>&nbsp;([^<]*)</span>", key)]


def test_the_key_of_streams_speaks_of_no_browser() -> None:
    """It had `waits in the browser until it is sent` and `load event`."""
    condition = Condition(FAR, Streams("streams", 4, 0, 0, path="/bytes/10000"))
    matrix = replace(example_matrix(FAR), arms=PLAIN, conditions=(condition,), repeat=Repetition.fixed(3))
    golden = Golden(matrix, tuple(ok(trial, 1.0) for trial in trials_of(matrix)))
    trials = {arm.name: PageTrial(golden.results[0], (ANSWERED,)) for arm in PLAIN}
    drawn = {(condition.id, name): PageTrials(trial, trial) for name, trial in trials.items()}
    (first, *_, last) = key_of(render(replace(golden.data("streams"), page_trials=drawn), 0.0))
    assert (first, last) == ("waits until it is sent", "total time")


def test_a_page_that_was_not_loaded_is_the_worst_and_may_be_the_median(tmp_path: Path) -> None:
    matrix, results = page_run(tmp_path)
    late = [replace(result, outcome=Outcome.TIMEOUT, reason="not in time", metrics={"timeout_s": 30.0})
            if result.trial.block.index in indexes and result.trial.block.condition == PAGE else result
            for indexes in [{1, 2, 4}] for result in results]  # fmt: skip
    with recorded(tmp_path, matrix, late) as run:
        data = RunData.of(run)
        write_report(run, data)
        page = (run.folder / REPORT).read_text()
    trials = data.page_trials[PAGE.id, "h2"]
    assert (trials.median.result.outcome, trials.worst.result.outcome) == (Outcome.TIMEOUT, Outcome.TIMEOUT)
    assert re.search(r"<figcaption>.*HTTP/2</span>, <a[^>]*>block 1</a>: &gt; 30 s", page)


def test_a_trial_of_an_earlier_version_is_drawn_without_what_it_did_not_record() -> None:
    columns: dict[str, list[Any]] = {
        "request_start_s": [0.0, 0.1], "request_took_s": [0.2, 0.3], "request_status": [200, 200],
        "request_sent_s": [0.12, 0.1], "request_first_byte_s": [0.15, 0.3], "request_connect_s": [0.1, 0.0],
        "request_protocol": ["h3", "h3"],
    }  # fmt: skip
    first, second = requests_of(columns)
    assert first.moments == pytest.approx((0.0, 0.02, 0.12, 0.12, 0.15, 0.2))
    assert (first.body_bytes, second.opened_connection) == (None, False)
    assert requests_of({name: columns[name] for name in list(columns)[:3]}) == (), "as those of other workloads"
