"""HTTP archives of page loads: as the format requires, the same at each report, and true to the recorded requests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headwind.arm import PLAIN
from headwind.model import Outcome
from headwind.report.condition import condition_view
from headwind.report.files import write_files
from headwind.report.formats.har import har, har_name
from headwind.report.html.page import REPORT
from headwind.report.html.waterfalls import Waterfall, waterfalls
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.page_requests import PageRequest, PageTrial
from headwind.workloads.page import LOAD
from headwind.workloads.streams import Streams
from tests.fake import recorded
from tests.report.page_runs import ANSWERED, OBJECTS, PAGE, page_run

# The objects of HAR 1.2 with their required fields: a type, or the object that it is, or a list of.
TIME = (int, float)
PAIR = {"name": str, "value": str}
MESSAGE = {"httpVersion": str, "cookies": [PAIR], "headers": [PAIR], "headersSize": int, "bodySize": int}
REQUIRED: dict[str, Any] = {
    "log": {
        "version": str,
        "creator": {"name": str, "version": str},
        "browser": {"name": str, "version": str},
        "pages": [{"startedDateTime": str, "id": str, "title": str, "pageTimings": {}}],
        "entries": [
            {
                "startedDateTime": str,
                "time": TIME,
                "request": {"method": str, "url": str, "queryString": [PAIR], **MESSAGE},
                "response": {
                    "status": int, "statusText": str, "content": {"size": int, "mimeType": str}, "redirectURL": str,
                    **MESSAGE,
                },
                "cache": {},
                "timings": {"send": TIME, "wait": TIME, "receive": TIME},
            }
        ],
    }
}  # fmt: skip


def examine(found: Any, required: Any, place: str = "") -> None:
    """Every required field is there, and of its type."""
    if isinstance(required, dict):
        assert isinstance(found, dict), place
        for name, inner in required.items():
            assert name in found, f"{place}: {name} is missing"
            examine(found[name], inner, f"{place}.{name}")
        for name in set(found) - set(required):
            assert name[0] == "_" or name in OPTIONAL, f"{place}: {name} is no field of HAR 1.2"
    elif isinstance(required, list):
        assert isinstance(found, list), place
        for each in found:
            examine(each, required[0], f"{place}[]")
    else:
        assert isinstance(found, required), f"{place}: {found!r}"


OPTIONAL = {"comment", "pageref", "onLoad", "blocked", "dns", "connect", "ssl"}


def archive(tmp_path: Path, *requests: PageRequest) -> dict[str, Any]:
    _, results = page_run(tmp_path)
    found: dict[str, Any] = har(PageTrial(results[0], requests), "median", {})["log"]
    return found


def test_a_run_of_pages_has_the_median_and_the_worst_trial_of_each_arm_as_archives(tmp_path: Path) -> None:
    matrix, results = page_run(tmp_path)
    names = [har_name(matrix, PAGE, arm.name, which) for arm in PLAIN for which in ("median", "worst")]
    with recorded(tmp_path, matrix, results) as run:
        write_files(run)
        first = {name: (run.folder / name).read_text() for name in names}
        page = (run.folder / REPORT).read_text()
        assert sorted(file.name for file in (run.folder / "har").iterdir()) == sorted(name[4:] for name in names)
        write_files(run)
        assert {name: (run.folder / name).read_text() for name in names} == first, "from the stored rows alone"
        of_a_run_in_progress = replace(RunData.of(run), status=replace(run.status, state=State.RUNNING))
    for name, text in first.items():
        archived = json.loads(text)
        examine(archived, REQUIRED)
        assert len(archived["log"]["entries"]) == 13
        assert f'<a href="{name}">' in page
    assert "har/" not in "".join(each.chart for each in shown(of_a_run_in_progress))
    assert not any(each.archives for each in shown(of_a_run_in_progress)), "they are written at its end"


def shown(data: RunData) -> list[Waterfall]:
    return waterfalls(data, condition_view(data, PAGE, "c1", [], data.judgement.rule))


def test_the_times_of_an_entry_are_those_of_the_request_and_add_up(tmp_path: Path) -> None:
    request = replace(ANSWERED, start_s=0.01, connect_start_s=0.03, connect_s=0.05, path="/a.png?1&b=c", status=404,
                      protocol="h3", body_bytes=77)  # fmt: skip
    log = archive(tmp_path, request, replace(ANSWERED, status=0, body_bytes=None))
    examine({"log": log}, REQUIRED)
    entry, other = log["entries"]
    times = entry["timings"]
    assert times | {"blocked": 40, "connect": 50, "wait": 200, "receive": 300, "dns": -1, "ssl": -1} == times
    assert sum(time for time in times.values() if time > 0) == pytest.approx(entry["time"])
    assert entry["request"]["url"] == "https://server/a.png?1&b=c"
    assert entry["request"]["queryString"] == [{"name": "1", "value": ""}, {"name": "b", "value": "c"}]
    assert (entry["response"]["statusText"], entry["response"]["content"]["size"]) == ("Not Found", 77)
    assert (other["timings"]["connect"], other["response"]["bodySize"], other["response"]["statusText"]) == (-1, -1, "")
    began = [datetime.fromisoformat(each["startedDateTime"]) for each in (log["pages"][0], entry)]
    assert (began[1] - began[0]).total_seconds() == pytest.approx(0.01, abs=0.002)


def test_other_hosts_keep_their_addresses_and_streams_have_no_load_event(tmp_path: Path) -> None:
    elsewhere = replace(ANSWERED, path="https://cdn.example/x.js")
    numbered = replace(ANSWERED, path="/bytes/500000 (2)")
    (result, *_) = page_run(tmp_path)[1]
    trial = replace(
        result.trial,
        block=replace(
            result.trial.block, condition=replace(PAGE, workload=Streams("many", 2, 0, 0, path="/bytes/500000"))
        ),
    )
    result = replace(result, trial=trial, metrics={"total_s": 2.0})
    log = har(PageTrial(result, (elsewhere, numbered)), "worst", {})["log"]
    assert [entry["request"]["url"] for entry in log["entries"]] == [
        "https://cdn.example/x.js", "https://server/bytes/500000",
    ]  # fmt: skip
    assert log["pages"][0]["pageTimings"]["onLoad"] == -1
    assert log["comment"].endswith("timed by libcurl. Headers are not recorded.")


def test_an_archive_names_its_trial_and_a_page_that_was_not_loaded_has_no_load_event(tmp_path: Path) -> None:
    _, results = page_run(tmp_path)
    late = replace(results[0], outcome=Outcome.TIMEOUT, metrics={"timeout_s": 30.0})
    for result, on_load in ((results[0], round(1000 * results[0].metrics[LOAD.key], 3)), (late, -1)):
        log = har(PageTrial(result, (ANSWERED,)), "worst", {})["log"]
        assert log["pages"][0]["pageTimings"]["onLoad"] == on_load
        assert result.trial.id in log["comment"]
        assert f"outcome {result.outcome.value}" in log["comment"]


def test_names_of_networks_are_no_paths(tmp_path: Path) -> None:
    matrix, _ = page_run(tmp_path)
    odd = replace(PAGE, profile=replace(PAGE.profile, name="../../Straße / 3 %"))
    name = har_name(replace(matrix, conditions=(OBJECTS, odd)), odd, "h2-bbr", "median")
    assert name == "har/2-.._.._Stra_e_3_-page-h2_bbr-median.har"
