"""What a bad network costs against the clean one, whether the machine drifted, and what another metric says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.model import Result
from headwind.report import RunData, render
from headwind.report.cost import costs
from headwind.report.drift import drift_text, usual_times
from headwind.report.html import charts
from headwind.report.html.page import FIRST_FACTS, first_facts
from headwind.report.standing import standings
from tests.drawn import Drawn
from tests.fake import ENVIRONMENT, PROFILES, STARTED_AT, example_matrix, timeout, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words


def run(*results: Result, repeat: int = 12) -> RunData:
    return Golden(example_matrix(*PROFILES[:2], repeat=repeat), results).data("x")


def times(slow: dict[Arm, float], *, repeat: int = 12) -> list[Result]:
    """Over the delay each protocol takes so many times as long as over the clean network, where it takes 1 s."""
    return [
        took(trial, shaken(trial) ** 0.1 * (slow[trial.arm] if trial.profile.name == "delay" else 1.0))
        for trial in trials_of(example_matrix(*PROFILES[:2], repeat=repeat))
    ]


def test_the_cost_is_the_median_over_the_clean_median() -> None:
    (cost,) = costs(standings(run(*times({H1: 4.0, H2: 3.0, H3: 2.0}))))
    assert cost.reference.profile.name == "clean"
    ((condition, found),) = cost.rows
    assert condition.profile.name == "delay"
    assert {arm: each.ratio for arm, each in found.items()} == pytest.approx({H1: 4, H2: 3, H3: 2}, rel=0.01)
    assert str(found[H1]) in ("3.99x", "4.00x", "4.01x", "3.98x", "4.02x")


def test_a_median_that_is_only_bounded_costs_at_least_so_much() -> None:
    results = [
        timeout(each.trial) if each.trial.profile.name == "delay" and each.trial.arm is H1 else each
        for each in times({H1: 4.0, H2: 3.0, H3: 2.0})
    ]
    ((_, found),) = costs(standings(run(*results)))[0].rows
    assert (found[H1].at_least, found[H2].at_least) == (True, False)
    assert str(found[H1]).startswith("> ")


@pytest.mark.parametrize("name", ["all-failed", "one-trial", "killed-at-once", "timeouts-half"])
def test_without_a_clean_median_there_is_no_cost(name: str) -> None:
    data = RUNS[name]().data(name)
    assert costs(standings(data)) == []
    assert 'id="cost"' not in render(data, 0.0)


def test_the_section_calls_itself_a_description() -> None:
    text = words(section(parse(render(RUNS["small"]().data("small"), 0.0)), "cost"))
    assert "is no verdict" in text


def test_marks_of_a_cost_are_where_the_ratios_are() -> None:
    axis = charts.cost_axis([2.0, 8.0])
    drawn = Drawn(charts.cost_row(axis, [("h1", 2.0, False), ("h3", 8.0, True)]))
    assert drawn.marks("h1", 520)[0][0] == pytest.approx(axis(2.0), abs=0.06)
    (arrow,) = drawn.paths("h3", "onward")
    assert min(x for x, _ in arrow) < axis(8.0) < max(x for x, _ in arrow)


def drifting(slower: dict[Arm, float]) -> RunData:
    """A run whose last tenth is so many times as slow."""
    results = times({H1: 1.0, H2: 1.0, H3: 1.0}, repeat=30)
    ordered = sorted(results, key=lambda each: (each.trial.block.index, each.trial.id))
    late = len(ordered) * 9 // 10
    return run(
        *(
            replace(
                each,
                started_at=STARTED_AT + 10 * number,
                metrics={
                    **each.metrics,
                    "total_s": each.metrics["total_s"] * (slower[each.trial.arm] if number >= late else 1),
                },
            )
            for number, each in enumerate(ordered)
        ),
        repeat=30,
    )


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (
            {H1: 1.0, H2: 1.0, H3: 1.0},
            "No drift seen: the median of each tenth of the run was within 10 % of the usual.",
        ),
        ({H1: 1.5, H2: 1.5, H3: 1.5}, "all protocols together."),
        ({H1: 1.5, H2: 1.5, H3: 0.9}, "not all protocols alike."),
    ],
)
def test_drift_is_told_in_words(slower: dict[Arm, float], said: str) -> None:
    data = drifting(slower)
    assert drift_text(data, usual_times(data)).endswith(said)


def test_of_few_trials_no_drift_is_told() -> None:
    data = RUNS["one-trial"]().data("x")
    assert drift_text(data, usual_times(data)) == "Too few trials to see a drift."


def test_twelve_facts_come_first_and_only_those_that_were_noted() -> None:
    assert len(FIRST_FACTS) == 12
    assert list(first_facts({})) == []
    named = dict(first_facts(ENVIRONMENT))
    assert named["Engine"] == "uml"
