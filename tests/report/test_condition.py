"""What the page shows of one condition, where to look first, and the trials that travel in the page."""

from __future__ import annotations

import base64
import gzip
import json
import math
import statistics
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3
from headwind.metric import MACHINE, PRESSURE
from headwind.model import Condition
from headwind.proof.processors import WAITED
from headwind.report.condition import ConditionView, condition_view
from headwind.report.drift import usual_times
from headwind.report.html.embedded import ABOUT, STOPPED, embedded
from headwind.report.html.page import render
from headwind.report.html.pictures import condition_pictures, timeline_picture
from headwind.report.trust import doubts
from headwind.run.data import RunData
from headwind.verdicts.assumptions import WarningKind
from headwind.verdicts.pairs import Pair
from headwind.workloads.h2load import TOTAL
from impair.profile import Delay, Direction, Link, Profile
from tests.fake import example_matrix, likely_time_s, metrics_of, trials_of
from tests.golden.runs import RUNS, Golden, took
from tests.pages import parse, words


def data_of(name: str) -> RunData:
    return RUNS[name]().data(name)


def condition_named(data: RunData, name: str) -> Condition:
    return next(item for item in data.matrix.conditions if item.profile.name == name)


def view_of(data: RunData, name: str, *pairs: Pair) -> ConditionView:
    return condition_view(data, condition_named(data, name), "c1", pairs or [Pair(H1, H3)], data.judgement.rule)


def test_figures_of_trials_that_all_finished_are_plain_statistics() -> None:
    data = data_of("sweep")
    view = view_of(data, "loss2%")
    times = [r.metrics["total_s"] for r in data.attempts(view.condition, H2)]
    (figures,) = [item for item in view.figures if item.arm is H2]
    assert (figures.trials, figures.finished) == (12, 12)
    for name, value in (("median", statistics.median(times)), ("mean", statistics.fmean(times)), ("max", max(times))):
        assert float(figures.primary[name].split()[0]) == pytest.approx(value, rel=0.006)
    assert figures.primary["p90"] == "—", "of 12 trials no 90th percentile can be bounded"


def test_a_percentile_over_trials_is_given_where_it_can_be_bounded() -> None:
    matrix = example_matrix(Profile("far", downlink=Link(Delay(0.01))), repeat=60)
    data = Golden(matrix, tuple(took(trial, likely_time_s(trial)) for trial in trials_of(matrix))).data("far")
    condition = condition_named(data, "far")
    view = condition_view(data, condition, "c1", [Pair(H1, H3)], data.judgement.rule)
    times = sorted(result.metrics["total_s"] for result in data.attempts(condition, H1))
    shown = view.figures[0].primary["p90"]
    assert float(shown.removesuffix(" ms")) / 1000 == pytest.approx(times[math.ceil(0.9 * 60) - 1], rel=0.006)


def test_no_figure_is_an_average_over_survivors() -> None:
    view = view_of(data_of("timeouts-half"), "loss-corrupt")
    (h1, *_) = view.figures
    assert (h1.finished, h1.trials) == (2, 4)
    assert h1.primary == {"median": "> 36.5 s", "mean": "> 36 s", "p90": "—", "min": "11.0 s", "max": "> 60 s"}
    told = metrics_of(view.condition.workload, 1.0)
    for metric, text in zip(view.inside, h1.inside, strict=True):
        wanted = "not completed" if metric.key in told else "—"
        assert text == wanted, "nobody knows the times of requests that were never made, or of what was not recorded"


def test_what_did_not_go_well_is_listed_with_its_reason_and_its_blocks() -> None:
    view = view_of(data_of("mixed"), "loss")
    assert [(item.outcome, item.reason, item.trials) for item in view.otherwise] == [
        ("invalid", "impairment not verified: loss", (("c1b2", "2/h1"),)),
        ("failed", "49 of 1000 requests failed", (("c1b1", "1/h2"),)),
    ]


def test_a_trial_that_lacked_cpus_is_named_in_its_condition_too() -> None:
    """It was named among the warnings of the run only."""
    data = data_of("small")
    short = next(each for each in data.results if each.trial.block.condition.profile.name == "loss")
    metrics = {**short.metrics, PRESSURE.key: 0.9, MACHINE.key: 0.95}
    rest = [each for each in data.results if each is not short]
    shown = view_of(replace(data, results=(replace(short, metrics=metrics), *rest)), "loss").otherwise
    trial = short.trial
    assert [(item.outcome, item.reason, item.trials) for item in shown] == [
        ("ok, warning", WAITED, ((f"c1b{trial.block.index}", f"{trial.block.index}/{trial.arm.name}"),))
    ]


def test_without_seeds_no_seed_is_shown_as_if_it_had_been_applied() -> None:
    data = data_of("small")
    router = {"kernel": "6.1.176", "netem_seed": False}
    unseeded = replace(data, environment={**data.environment, "testbed": {"router": router}})
    for run, seeded in ((data, True), (unseeded, False)):
        page = words(parse(render(run, 0.0)))
        assert ("with the same seeds" in page) is seeded
        assert (" seed 1" in page) is seeded, "of the tc commands"
        assert ("cannot be repeated packet by packet" in page) is not seeded
        (row, *_) = view_of(run, "loss").rows
        assert row.seeds == (f"↓{row.block.seeds[Direction.DOWNLINK]}" if seeded else "the kernel's own")


def test_the_running_interval_ends_at_the_verdicts_own() -> None:
    data = data_of("checked")
    verdicts = data.judgement
    for line in verdicts.lines:
        view = view_of(data, line.condition.profile.name, line.pair)
        (running,) = view.running
        final = line.findings[TOTAL].comparison.interval
        assert running.steps[-1] == final
        assert [step.n for step in running.steps] == list(range(1, line.blocks + 1))
        assert running.shown[-1] == final
        assert len(running.shown) <= 8


def test_an_interval_that_is_open_on_both_sides_is_neither_drawn_nor_told() -> None:
    few = data_of("small")
    for condition in few.matrix.conditions:
        pairs = [line.pair for line in few.judgement.lines if line.condition == condition]
        view = condition_view(few, condition, "c1", pairs, few.judgement.rule)
        assert view.running
        assert condition_pictures(view, few.matrix.timeout_s, few.judgement.rule).running == ()
    closed = data_of("checked")
    line = closed.judgement.lines[0]
    (running,) = view_of(closed, "clean", line.pair).running
    assert running.is_closed
    assert running.shown
    assert all(math.isfinite(step.low) or math.isfinite(step.high) for step in running.shown)


def test_a_date_is_said_where_it_changes() -> None:
    data = data_of("small")
    late = [replace(result, started_at=result.started_at + 86_400 * (result.trial.block.index == 2))
            for result in data.results]  # fmt: skip
    view = view_of(replace(data, results=tuple(late)), "clean")
    began = [row.began for row in view.rows]
    assert [len(text.split()) for text in began] == [2, 1, 2]


@pytest.mark.parametrize("name", RUNS)
def test_every_trial_in_a_figure_is_a_mark_of_its_chart(name: str) -> None:
    data = data_of(name)
    for condition in data.matrix.conditions:
        view = condition_view(data, condition, "c1", [], data.judgement.rule)
        pictures = condition_pictures(view, data.matrix.timeout_s, data.judgement.rule)
        assert pictures.dots.count("<svg") == pictures.ecdf.count("<svg") == pictures.violin.count("<svg") == 1
    assert timeline_picture(data, usual_times(data)).count("<svg") == 1


def unpacked(data: RunData) -> dict[str, object]:
    views = [
        condition_view(data, condition, f"c{number}", [], data.judgement.rule)
        for number, condition in enumerate(data.matrix.conditions, 1)
    ]
    assert embedded(data, views) == embedded(data, views)
    found = json.loads(gzip.decompress(base64.b64decode(embedded(data, views))))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_attempt_travels_in_the_page(name: str) -> None:
    data = data_of(name)
    whole = unpacked(data)
    columns = whole["trials"]
    assert isinstance(columns, dict)
    measured = (
        "total_s", "mean_done_s", "request_p50_s", "request_p95_s", "request_p99_s", "ttfb_p50_s", "connect_p50_s",
    )  # fmt: skip
    assert tuple(columns) == (*ABOUT, *measured, STOPPED, "command")
    shown = whole["metrics"]
    assert isinstance(shown, list)
    assert {metric["key"] for metrics in shown for metric in metrics} == set(measured)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert len(rows) == len(data.results)
    assert sum(row["latest"] for row in rows) == len(data.latest)
    for row, result in zip(rows, data.results, strict=True):
        assert (row["outcome"], row["attempt"]) == (result.outcome.value, result.attempt)
        exact = result.metrics.get("total_s")
        assert row["total_s"] == (None if exact is None else pytest.approx(exact, rel=0.6e-4))


def test_warnings_of_comparisons_are_said_with_their_conditions() -> None:
    """Three blocks of five conditions: too few for all fifteen comparisons."""
    data = data_of("small")
    (doubt,) = [item for item in doubts(data.judgement) if item.kind is WarningKind.FEW_BLOCKS]
    assert doubt.comparisons == 15
    assert doubt.condition_ids == tuple(condition.id for condition in data.matrix.conditions)
    page = render(data, 0.0)
    assert "15 comparisons</strong> with a warning: few blocks" in page
    assert "No warnings" not in page
