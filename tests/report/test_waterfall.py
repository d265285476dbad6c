"""The waterfall of a page: one row for each request of the median trial, all arms on one axis."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import PLAIN
from headwind.model import Condition, Repetition
from headwind.plan.block_order import plan_blocks
from headwind.report.html import charts
from headwind.report.html.page import REPORT, write_report
from headwind.run.data import RunData
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from headwind.workloads.page import LOAD, Page
from impair.profile import Delay, Link, Profile
from tests.fake import recorded
from tests.fake_testbed import RULES, World, fake_path
from tests.matrix_files import MINIMAL, load

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
PAGE, OBJECTS = Condition(FAR, Page("page", 12, 10_000)), Condition(FAR, H2load("many", 20, 2, 2))


def drawn(*requests: charts.Request, end_s: float = 1.0) -> str:
    return str(charts.waterfall("w", "h2", requests, end_s=end_s, title="a", description="b"))


def lengths(svg: str) -> list[list[float]]:
    """The lengths of the lines of each width, thinnest first."""
    paths = re.findall(r'<path class="h2 bar" d="([^"]*)" stroke-width="([\d.]+)"', svg)
    ordered = sorted(paths, key=lambda found: float(found[1]))
    return [[float(length) for length in re.findall(r"h([\d.]+)", line)] for line, _ in ordered]


def test_a_request_is_three_lines_as_long_as_its_times() -> None:
    queued, waited, received = lengths(drawn(charts.Request(0.0, 0.1, 0.3, 0.6)))
    assert waited[0] == pytest.approx(2 * queued[0], abs=0.2)
    assert received[0] == pytest.approx(3 * queued[0], abs=0.2)


def test_a_request_that_was_never_answered_is_one_line() -> None:
    (found,) = lengths(drawn(charts.Request(0.2, 0.0, 0.0, 0.7)))
    assert len(found) == 1


def test_many_requests_fit_into_one_chart() -> None:
    svg = drawn(*[charts.Request(0.1, 0.2, 0.3, 0.4)] * 1000)
    height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[0])
    assert height < 400
    assert [len(each) for each in lengths(svg)] == [1000] * 3


def test_the_report_has_the_median_trial_of_each_arm_of_a_page_and_of_no_other_workload(tmp_path: Path) -> None:
    matrix = replace(load(MINIMAL, tmp_path), arms=PLAIN, conditions=(PAGE, OBJECTS), repeat=Repetition.fixed(5))
    with fake_path(World()) as path:
        results = [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
    with recorded(tmp_path, matrix, results) as run:
        data = RunData.of(run)
        write_report(run, data)
        page = (run.folder / REPORT).read_text()
    assert set(data.requests) == {(PAGE.id, arm.name) for arm in PLAIN}
    for arm in PLAIN:
        times = sorted(result.metrics[LOAD.key] for result in results
                       if result.trial.arm == arm and result.trial.block.condition == PAGE)  # fmt: skip
        columns = data.requests[PAGE.id, arm.name]
        assert len(columns["request_took_s"]) == 13
        last_s = columns["request_start_s"][-1] + columns["request_took_s"][-1]
        assert last_s == pytest.approx(times[2], abs=1e-4), "the fake's page ends with its last request"
    shown = re.findall(r'<svg id="[^"]*-waterfall-\d"[^>]*data-x="([^"]*)"', page)
    assert len(shown) == 3
    assert len(set(shown)) == 1, "one axis for all"
    assert page.count("Requests of the median trial") >= 3
