"""Metrics are data: of any scale, zero and more-is-better among them, named in one file and shown everywhere."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench import judging
from headwind import workloads
from headwind.arm import Protocol
from headwind.metric import Better, Metric, Use
from headwind.model import Condition, Outcome, Repetition, Result
from headwind.observed import NOTHING, Kind, Observed, from_best, median, observed
from headwind.plan.doubts import notes_of
from headwind.report import RunData, render
from headwind.report.compare.page import render_several
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.terminal import print_summary
from headwind.report.formats.verdicts_json import verdicts_json
from headwind.run.codec import (
    State,
    Status,
    matrix_from_json,
    matrix_to_json,
    result_from_json,
    result_to_json,
)
from headwind.verdicts import judgement
from headwind.verdicts.findings import find_in
from headwind.verdicts.judgement import Judge, Judgement
from headwind.verdicts.outlook import blocks_needed
from headwind.verdicts.stats import paired_bounds
from headwind.verdicts.two_samples import gain, speeds
from headwind.verdicts.verdict import Rule, Verdict, compare, completion, ended, interval_of
from headwind.workloads.h2load import DONE, PROGRESS, REQUEST, TAIL, TOTAL, H2load
from tests.fake import (
    ARTICLE,
    ENVIRONMENT,
    PROFILES,
    STARTED_AT,
    example_matrix,
    found,
    ok,
    timeout,
    trials_csv,
    trials_of,
)
from tests.matrix_files import load
from tests.workloads.album import MISSES, PACE, SIZE, Album

ROOT = Path(__file__).resolve().parent.parent.parent
RULE = Rule()
values = st.one_of(st.just(0.0), st.floats(0.01, 100)).map(Observed.finished)
anything = st.one_of(values, st.floats(0.01, 100).map(Observed.unfinished), st.just(NOTHING))


# ---- one noun for what a trial tells


@given(st.lists(anything, min_size=1, max_size=12), st.sampled_from(Better))
def test_whoever_finished_is_before_whoever_did_not_and_the_median_lies_between(
    given_values: list[Observed], better: Better
) -> None:
    ordered = from_best(given_values, better)
    kinds = [tuple(Kind).index(value.kind) for value in ordered]
    assert kinds == sorted(kinds)
    finished = [value.known for value in ordered if value.is_finished]
    assert finished == sorted(finished, reverse=better is Better.MORE)
    middle = median(ordered)
    assert median(from_best([*given_values, middle], better)) == middle or middle.kind is not Kind.FINISHED


def test_an_upper_bound_is_a_bound_too() -> None:
    most = Observed(0.0, 5.0)
    assert (most.kind, most.known) == (Kind.BOUND, 5.0)
    assert median([Observed.finished(9.0), most]) == Observed(0.0, 7.0)


# ---- comparisons at any scale


@given(st.lists(st.tuples(anything, anything), max_size=30))
def test_more_of_a_good_thing_is_less_of_its_inverse(blocks: list[tuple[Observed, Observed]]) -> None:
    base, new = ([pair[side] for pair in blocks] for side in (0, 1))
    less, more = paired_bounds(base, new), paired_bounds(new, base, Better.MORE)
    assert [list(side) for side in less] == [list(side) for side in more]
    assert all(low <= high for low, high in zip(*less, strict=True)), "no nan, whatever was zero or unfinished"


@pytest.mark.parametrize(
    ("base", "new", "low", "high"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 3.0, -math.inf, -math.inf),
        (3.0, 0.0, math.inf, math.inf),
    ],
)
def test_zero_equals_zero_and_is_further_from_anything_else_than_any_margin(
    base: float, new: float, low: float, high: float
) -> None:
    lows, highs = paired_bounds([Observed.finished(base)], [Observed.finished(new)])
    assert (lows[0], highs[0]) == (low, high)


def test_against_a_zero_who_did_not_finish_can_only_be_worse_or_equal() -> None:
    lows, highs = paired_bounds([Observed.finished(0.0), NOTHING], [NOTHING, Observed.finished(0.0)])
    assert list(lows) == [-math.inf, 0.0]
    assert list(highs) == [0.0, math.inf]


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ([0.0] * 12, [0.0] * 12, Verdict.TIE),
        ([4.0] * 12, [0.0] * 12, Verdict.FASTER),
        ([0.0] * 12, [1.0] * 12, Verdict.SLOWER),
        ([0.0, 1.0] * 6, [1.0, 0.0] * 6, Verdict.UNDECIDED),
    ],
)
def test_verdicts_of_counts_that_may_be_zero(base: list[float], new: list[float], verdict: Verdict) -> None:
    one, other = ([Observed.finished(value) for value in side] for side in (base, new))
    comparison = compare(one, other, RULE, exhausted=False)
    assert comparison.verdict is verdict
    if verdict is Verdict.UNDECIDED:
        assert comparison.interval.estimate is None, "half-way between two infinities there is nothing"
        assert blocks_needed(*paired_bounds(one, other), RULE).blocks is None, "and nothing will be decided"


def test_two_samples_of_zeros_are_equal_and_more_is_better_turns_them_round() -> None:
    zeros, ones, twos = ([Observed.finished(value)] * 12 for value in (0.0, 1.0, 2.0))
    assert gain(speeds(zeros), speeds(zeros), 0.95)[0].estimate == 0.0
    less = gain(speeds(twos), speeds(ones), 0.95)[0]
    more = gain(speeds(ones, Better.MORE), speeds(twos, Better.MORE), 0.95)[0]
    assert less == more
    assert less.estimate == pytest.approx(math.log(2))


@given(st.lists(st.tuples(anything, anything), max_size=40), st.booleans())
def test_the_end_of_a_budget_says_what_judging_afresh_would(
    blocks: list[tuple[Observed, Observed]], anytime: bool
) -> None:
    base, new, rule = [b for b, _ in blocks], [n for _, n in blocks], Rule(anytime=anytime)
    going_on, (lows, highs) = compare(base, new, rule, exhausted=False), paired_bounds(base, new)
    assert ended(going_on, rule) == compare(base, new, rule, exhausted=True)
    assert going_on.completion == completion([b.is_finished for b in base], [n.is_finished for n in new], rule)
    assert going_on.interval == interval_of(lows.tolist(), highs.tolist(), rule)


# ---- one judgement, taught as results come


def said(judge: Judge) -> Judgement:
    return judge.judgement(lambda _: 1.0, complete=False, exhausted=False)


def noisy(seed: int) -> tuple[Any, list[Result]]:
    matrix = example_matrix(*PROFILES[:3], repeat=Repetition(least=9, most=30))
    chance = random.Random(seed)
    results = [
        timeout(trial) if chance.random() < 0.03 else ok(trial, math.exp(chance.gauss(0, 0.05)))
        for trial in trials_of(matrix)
    ]
    return matrix, results


def test_a_judge_who_is_told_bit_by_bit_says_what_one_says_who_is_told_all() -> None:
    matrix, results = noisy(1)
    judge, chance, told = Judge(matrix), random.Random(2), 0
    while told < len(results):
        some = results[told : told + chance.randint(1, 9)]
        judge.tell(some)
        told += len(some)
        assert said(judge) == said(Judge(matrix, results[:told]))


def test_what_got_no_new_block_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    real = find_in

    def counted(matrix: Any, condition: Condition, *more: Any) -> Any:
        judged.append(condition.id)
        return real(matrix, condition, *more)

    monkeypatch.setattr(judgement, "find_in", counted)
    matrix, results = noisy(3)
    judge = Judge(matrix, results[:-9])
    said(judge)
    assert sorted(judged) == sorted(condition.id for condition in matrix.conditions)
    judged.clear()
    judge.tell(results[-3:])
    said(judge)
    said(judge)
    assert judged == [results[-1].trial.block.condition.id]


def test_a_run_is_judged_once_for_page_files_and_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, results = noisy(4)
    calls: list[bool] = []
    real = Judge.judgement

    def counted(judge: Judge, *given: Any, **more: Any) -> Judgement:
        calls.append(True)
        return real(judge, *given, **more)

    monkeypatch.setattr(Judge, "judgement", counted)
    data = RunData("once", matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT))
    render(data, 0.0)
    summary_md(data, data.judgement, "report.html")
    print_summary(data, Console(file=StringIO()))
    assert len(calls) == 1


# ---- a kind of workload that only one file names


def leafed(trial: Any, pace: float) -> Result:
    misses = 0.0 if trial.protocol is Protocol.H3 else 1.0 + trial.block.index % 3
    metrics = {"pages_per_s": pace, "misses": misses, "picture_bytes": 1000 * pace}
    return Result(trial, Outcome.OK, metrics=metrics, command="leaf https://10.0.0.10/album")


def album_run(name: str) -> RunData:
    """h3 is twice as good as the others in the album, and all are alike in the article beside it."""
    base = example_matrix(PROFILES[0], repeat=12)
    conditions = (Condition(PROFILES[0], Album("album", 10)), Condition(PROFILES[0], ARTICLE))
    matrix = replace(base, conditions=conditions)
    chance, results = random.Random(name), []
    for index, trial in enumerate(trials_of(matrix)):
        shaken = math.exp(chance.gauss(0, 0.01))
        pace = shaken * (2.0 if trial.protocol is Protocol.H3 else 1.0)
        album = isinstance(trial.block.condition.workload, Album)
        results.append(replace(leafed(trial, pace) if album else ok(trial, shaken), started_at=STARTED_AT + index))
    return RunData(name, matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> RunData:
    monkeypatch.setitem(workloads.KINDS, Album.kind, Album)
    return album_run("albums")


def test_more_is_better_is_judged_as_that(run: RunData) -> None:
    (line,) = [
        line for line in run.judgement.compared
        if line.condition.workload.name == "album" and str(line.pair) == "h3 against h1"
    ]  # fmt: skip
    assert line.primary.metric is PACE
    assert line.primary.verdict is Verdict.FASTER
    estimate, low, high = line.primary.comparison.interval.ratios
    assert estimate == pytest.approx(2, rel=0.03)
    assert 1.9 < low < high < 2.1
    assert line.findings[MISSES].verdict.favours > 0, "no misses are better than some"
    assert list(line.intervals) == [SIZE]


def test_every_file_and_table_shows_the_metrics_of_every_kind(run: RunData) -> None:
    console = Console(width=220, record=True, file=StringIO())
    print_summary(run, console)
    several = render_several([run, album_run("b")], 0.0)
    assert "2.00 /s" in console.export_text(), "the terminal goes by the primary metric alone"
    shown = {"page": render(run, 0.0), "several": several}
    for name, text in shown.items():
        for metric in (PACE, MISSES, *H2load.with_use(Use.JUDGED)):
            assert metric.heading in text.lower() or metric.label in text.lower(), f"{metric} is not in the {name}"
    assert "Albums were leafed through." in shown["page"]
    whole = json.loads(json.dumps(verdicts_json(run, run.judgement), allow_nan=False))
    by_workload = {item["workload"]: set(item["metrics"]) for item in whole["comparisons"]}
    assert by_workload["album"] == {"pages_per_s", "misses", "picture_bytes"}
    assert by_workload["article"] == {"total_s", "mean_done_s", "request_p50_s", "request_p95_s"}
    header = trials_csv(run.trials).splitlines()[0].split(",")
    assert {"pages_per_s", "misses", "total_s"} <= set(header)


def test_a_result_of_any_kind_comes_back_as_it_was(run: RunData) -> None:
    for result in run.results[:6]:
        again = result_from_json(result_to_json(result), result.samples)
        assert again.trial == result.trial
        assert again.metrics == result.metrics


def test_an_unfinished_trial_bounds_what_its_metric_says_and_nothing_else() -> None:
    trial = next(trials_of(example_matrix()))
    stopped = timeout(trial, 60.0)
    ends = {"mean_done_low_s": 20.0, "request_p50_low_s": 0.5, "request_p50_high_s": 0.7}
    known = {DONE: Observed.unfinished(20.0), REQUEST: Observed(0.5, 0.7), TOTAL: Observed.unfinished(60.0)}
    for metric in H2load.metrics:
        told = observed(replace(stopped, metrics={**stopped.metrics, **ends}), metric)
        assert told == known.get(metric, NOTHING)
        assert observed(stopped, metric) == (known[TOTAL] if metric is TOTAL else NOTHING), "a run of before"
        assert observed(replace(stopped, outcome=Outcome.FAILED, metrics=ends), metric) == NOTHING


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.001, 5)), min_size=1, max_size=30), st.floats(1, 10))
def test_what_a_stopped_client_tells_of_its_requests_holds_however_they_would_have_gone_on(
    requests: list[tuple[float, float]], timeout_s: float
) -> None:
    """Whole trials that are stopped: what they would have given lies within the bounds."""
    done = [(start_s, took_s) for start_s, took_s in requests if start_s + took_s <= timeout_s]
    columns = {
        "request_start_s": [start_s for start_s, _ in done], "request_took_s": [took_s for _, took_s in done],
        "request_status": [200] * len(done),
    }  # fmt: skip
    workload = H2load("any", len(requests), 1, 1)
    metrics = {"timeout_s": timeout_s, **workload.bounds({"samples": columns}, timeout_s)}
    stopped = replace(timeout(next(trials_of(example_matrix()))), metrics=metrics)
    whole = {
        DONE: sum(start_s + took_s for start_s, took_s in requests) / len(requests),
        REQUEST: statistics.median(took_s for _, took_s in requests),
        **{
            metric: sorted(map(sum, requests))[math.ceil(share * len(requests)) - 1]
            for share, metric in PROGRESS.items()
        },
    }
    for metric, value in whole.items():
        bounds = observed(stopped, metric)
        assert bounds is not None
        assert bounds.low <= value * (1 + 1e-12) + (1e-6 if metric in PROGRESS.values() else 0), "to the microsecond"
        assert value <= bounds.high + 1e-6
    known = observed(stopped, REQUEST)
    assert known is not None
    if len(done) > len(requests) / 2:
        assert known.high < math.inf
        assert known.low > 0


def test_a_request_that_failed_is_not_one_that_was_answered() -> None:
    columns = {"request_start_s": [0.0, 0.0, 0.0], "request_took_s": [1.0, 1.0, 1.0], "request_status": [200, -1, 503]}
    found = H2load("any", 3, 1, 1).bounds({"samples": columns}, 10.0)
    assert found.pop("mean_done_low_s") == pytest.approx(7.0)
    assert found == {metric.low_key: 10.0 for metric in PROGRESS.values()}, "half of three are two"


def test_when_which_share_was_done_is_when_the_last_of_so_many_was() -> None:
    columns = {
        "request_start_s": [0.0] * 10, "request_took_s": [10.0, *range(1, 10)], "request_status": [200] * 10,
        "connect_s": [0.1, 0.7], "packets_lost": [3, 4], "packets_sent": [10, 10], "packets_received": [20, 21],
    }  # fmt: skip
    found = H2load("any", 10, 2, 5).further({"samples": columns})
    assert found == {
        "done_p50_s": 5.0, "done_p90_s": 9.0, "done_p99_s": 10.0, "done_all_s": 10.0, "connect_max_s": 0.7,
        "quic_packets_lost": 7, "quic_packets_sent": 20, "quic_packets_received": 41,
    }  # fmt: skip
    assert H2load("any", 10, 2, 5).further({}) == {}


def test_a_stopped_trial_counts_as_unfinished_even_where_its_bounds_meet() -> None:
    matrix = example_matrix(PROFILES[0], repeat=9)
    ends = {"mean_done_low_s": 1.0, "request_p50_low_s": 0.5, "request_p50_high_s": 0.5}
    results = [
        timeout(trial, 60.0, ends) if trial.protocol is Protocol.H1 else ok(trial, 5.0) for trial in trials_of(matrix)
    ]
    findings = {finding.metric: finding for finding in found(matrix, results, complete=True, exhausted=True)[:3]}
    assert findings[REQUEST].comparison.interval.estimate == 0.0
    assert {finding.comparison.completion.only_new for finding in findings.values()} == {9}


def test_a_matrix_says_what_is_judged_and_the_rest_is_compared_beside() -> None:
    base = example_matrix(PROFILES[0], repeat=12)
    results = [ok(trial, 1.0) for trial in trials_of(base)]
    said = {None: [TOTAL, DONE, REQUEST], ("mean_done_s",): [DONE], ("request_p95_s", "total_s"): [TOTAL, TAIL]}
    for judge, judged in said.items():
        matrix = replace(base, judge=judge)
        line = Judge(matrix, results).judgement(lambda _: 1.0, complete=True, exhausted=True).lines[0]
        assert list(line.findings) == judged
        assert set(line.intervals) == {TOTAL, DONE, REQUEST, TAIL} - set(judged)
        assert line.primary.metric is judged[0]
        assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))).judge == judge


UNEQUAL = """
protocols: [h2, h3]
arms: {{h1-one: {{protocol: h1, streams: 1}}, h2-one: {{protocol: h2, streams: 1}}}}
compare: [[h3, h2], [h3, h1-one], [h2-one, h1-one]]
profiles: {{clean: {{}}}}
workloads: {{api: {{requests: 60, connections: 2, streams: 30}}}}
judge: [{judge}]
"""


@pytest.mark.parametrize(
    ("judge", "fair", "unfair", "note"),
    [
        ("total_s, request_p50_s", [TOTAL, REQUEST], [TOTAL],
         "note: `api` gets no verdict by `request_p50_s` between arms such as h1-one (2 requests in flight) and h2"),
        ("request_p95_s", [TAIL], [TAIL],
         "note: `api` is judged by `request_p95_s` alone, which favours the first of h1-one (2 requests in flight)"),
        ("total_s", [TOTAL], [TOTAL], ""),
    ],
)  # fmt: skip
def test_times_per_request_compare_arms_with_equally_many_requests_in_flight(
    judge: str, fair: list[Metric], unfair: list[Metric], note: str, tmp_path: Path
) -> None:
    """`HTTP/1.1 (one) 3.12x` by the median request, which left out that it had waited for the one before."""
    matrix = load(UNEQUAL.format(judge=judge), tmp_path)
    results = [ok(trial, 1.0) for trial in trials_of(replace(matrix, repeat=Repetition.fixed(9)))]
    lines = Judge(matrix, results).judgement(lambda _: 1.0, complete=True, exhausted=True).lines
    found = {str(line.pair): list(line.findings) for line in lines}
    assert found == {"h3 against h2": fair, "h3 against h1-one": unfair, "h2-one against h1-one": fair}
    assert all({*line.findings, *line.intervals} >= {TOTAL, DONE, REQUEST, TAIL} for line in lines)
    notes = [each for each in notes_of(matrix) if "in flight" in each]
    assert len(notes) == bool(note)
    assert all(each.startswith(note) for each in notes)


@pytest.mark.parametrize(
    ("protocols", "written", "is_noted"),
    [
        ("[h1, h2]", "requests: 60, connections: 2, streams: 30", True),
        ("[h1, h2]", "requests: 60, connections: 2", False),
        ("[h1, h2]", "requests: 2, connections: 2, streams: 30", False),
        ("[h1, h2]\narms: {h1-one: {protocol: h1, streams: 1}}", "requests: 60, connections: 2, streams: 30", False),
        ("[h2, h3]", "requests: 60, connections: 2, streams: 30", False),
        ("[h1, h2]", "kind: objects, requests: 60, size: 10kB", False),
        ("[h1, h2]", "kind: page, requests: 60, size: 10kB", False),
    ],
)
def test_a_workload_that_http1_pipelines_has_a_note(
    protocols: str, written: str, is_noted: bool, tmp_path: Path
) -> None:
    text = f"protocols: {protocols}\nprofiles: {{clean: {{}}}}\nworkloads: {{api: {{{written}}}}}\n"
    notes = [each for each in notes_of(load(text, tmp_path)) if "pipelines" in each]
    assert len(notes) == is_noted
    assert all(
        each.startswith("note: HTTP/1.1 pipelines the requests of the workload `api`, because") for each in notes
    )


def test_no_other_file_of_the_host_names_a_metric() -> None:
    names = re.compile(r"""["'.]({})\b""".format("|".join(metric.key for metric in H2load.metrics)))
    files = [file for file in (ROOT / "headwind").rglob("*") if file.suffix in (".py", ".j2", ".js")]
    found = [
        f"{file.relative_to(ROOT)}: {hit.group()}"
        for file in files
        if file.parent.name != "workloads" and file.name not in ("metric.py", "spelling.py")  # words for hints
        for hit in names.finditer(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_name_of_a_metric_ends_in_its_unit() -> None:
    with pytest.raises(ValueError, match="ends in its unit"):
        Metric("pages", "pages", "pages", "per_s")


def test_the_bench_of_judging_judges(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "CONDITIONS", (4, 6))
    judging.main(["--trials", "60", "--times", "1"])
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in rows] == [["4", "60"], ["6", "54"]]
