"""What a bad network costs against the clean one, whether the machine drifted, and what another metric says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.model import Condition, Result
from headwind.report import RunData, render
from headwind.report.drift import drift_text, usual_times
from headwind.report.html.page import FIRST_FACTS, first_facts, ratio_to_clean
from headwind.report.times_table import summary_table
from impair.profile import Link, Loss, Spells
from tests.fake import ENVIRONMENT, PROFILES, STARTED_AT, example_matrix, lab_error, timeout, trials_of
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


def costs(data: RunData) -> dict[tuple[str, Arm], str]:
    return ratio_to_clean(summary_table(data))


def test_the_cost_is_the_median_over_the_clean_median() -> None:
    found = costs(run(*times({H1: 4.0, H2: 3.0, H3: 2.0})))
    assert {condition for condition, _ in found} == {"delay/article"}
    assert {arm: float(text.removesuffix("x")) for (_, arm), text in found.items()} == pytest.approx(
        {H1: 4, H2: 3, H3: 2}, rel=0.01
    )


def test_a_median_that_is_only_bounded_costs_at_least_so_much() -> None:
    results = [
        timeout(each.trial) if each.trial.profile.name == "delay" and each.trial.arm is H1 else each
        for each in times({H1: 4.0, H2: 3.0, H3: 2.0})
    ]
    found = {arm: text for (_, arm), text in costs(run(*results)).items()}
    assert (found[H1].startswith("> "), found[H2].startswith("> ")) == (True, False)


@pytest.mark.parametrize("name", ["all-failed", "one-trial", "killed-at-once", "timeouts-half"])
def test_without_a_clean_median_there_is_no_cost(name: str) -> None:
    data = RUNS[name]().data(name)
    assert costs(data) == {}
    assert "Ratio to clean" not in words(section(parse(render(data, 0.0)), "results"))


def test_the_column_calls_itself_a_description() -> None:
    text = words(section(parse(render(RUNS["small"]().data("small"), 0.0)), "results"))
    assert "Ratio to clean: the median divided by the protocol's median on the unimpaired network." in text


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
            "times did not drift: their median in each tenth of the run was within ",
        ),
        ({H1: 1.5, H2: 1.5, H3: 1.5}, ", trials, over all protocols together, took 50.1 % longer than usual."),
        ({H1: 1.5, H2: 1.5, H3: 0.9}, " took 50.0 % longer than usual (but not those of every protocol)."),
    ],
)
def test_drift_is_told_in_words(slower: dict[Arm, float], said: str) -> None:
    data = drifting(slower)
    assert said in drift_text(data, usual_times(data))


def test_the_tenth_that_deviates_is_named_by_its_time_on_the_axis_of_the_timeline() -> None:
    """180 trials, one every 10 s; before them an attempt that failed, where the timeline begins."""
    data = drifting({H1: 1.5, H2: 1.5, H3: 1.5})
    said = "In the tenth of the run that deviates most, from 26 min 51 s to 29 min 50 s after the start, trials, "
    assert drift_text(data, usual_times(data)).startswith(said)
    first = min(data.results, key=lambda result: result.started_at)
    early = replace(lab_error(first.trial), started_at=STARTED_AT - 60)
    later = replace(first, attempt=1)
    data = replace(data, results=(early, *(later if each is first else each for each in data.results)))
    said = said.replace("26 min 51 s to 29 min 50 s", "27 min 51 s to 30 min 50 s")
    assert drift_text(data, usual_times(data)).startswith(said)


def test_bad_spells_are_no_drift_of_the_machine() -> None:
    data = drifting({H1: 1.5, H2: 1.5, H3: 1.5})
    spells = Spells(2.0, 0.3, Link(loss=Loss(1.0)))

    def over(condition: Condition) -> Condition:
        return replace(condition, profile=replace(condition.profile, downlink_changes=spells))

    blocks = [replace(each.trial.block, condition=over(each.trial.block.condition)) for each in data.results]
    results = [replace(each, trial=replace(each.trial, block=block))
               for each, block in zip(data.results, blocks, strict=True)]  # fmt: skip
    data = replace(data, results=tuple(results))
    assert drift_text(data, usual_times(data)) == "Too few trials without spells to see a drift."


def test_of_few_trials_no_drift_is_told() -> None:
    data = RUNS["one-trial"]().data("x")
    assert drift_text(data, usual_times(data)) == "Too few trials to see a drift."


def test_twelve_facts_come_first_and_only_those_that_were_noted() -> None:
    assert len(FIRST_FACTS) == 12
    assert list(first_facts({})) == []
    named = dict(first_facts(ENVIRONMENT))
    assert named["Engine"] == "uml"
