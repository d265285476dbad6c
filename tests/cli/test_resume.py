"""How to resume a run: what is known of it is not worked out again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.cli.resume import how_to_resume
from headwind.format import budget_text
from headwind.model import Repetition
from headwind.run.data import RunData
from headwind.verdicts.judgement import Judge
from headwind.verdicts.outlook import Outlook
from tests import fake

MATRIX = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(3, 60, budget_s=900.0))


def test_nothing_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(3)))) as run:
        data = RunData.of(run)
        assert len(data.judgement.open) == 2
        for name in ("tell", "_cell"):
            monkeypatch.setattr(Judge, name, None)
        why, command = how_to_resume(run, data)
    assert why.startswith("6 of 6 comparisons are not settled; 15 min more may settle something in 2 of 2 networks")
    assert command.endswith(" --budget 15min")


def resumed(folder: Path, budget_s: float) -> list[str]:
    """The lines at the end of a run of three blocks, in which a trial over the first network took 0.1 s, else 20 s."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=budget_s))
    first = matrix.conditions[0]
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(3)))
    results = [fake.ok(trial, 0.1 if trial.block.condition == first else 20.0) for trial in trials]
    with fake.recorded(folder, matrix, results) as run:
        return how_to_resume(run, RunData.of(run))


def test_a_budget_that_is_too_short_for_the_minimum_is_not_repeated(tmp_path: Path) -> None:
    why, command = resumed(tmp_path, 240.0)
    assert "; 7 min more may settle something in 2 of 2 networks (clean, delay), 4 min is too short for delay." in why
    assert command.endswith(" --budget 7min")


def test_a_budget_that_is_long_enough_is_repeated(tmp_path: Path) -> None:
    why, command = resumed(tmp_path, 480.0)
    assert "; 8 min more may settle something in 2 of 2 networks (clean, delay). Resume with:" in why
    assert command.endswith(" --budget 8min")


def test_the_budget_that_was_given_last_is_the_one_that_is_proposed(tmp_path: Path) -> None:
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(3)))) as run:
        why, command = how_to_resume(run, RunData.of(run), budget_s=1200.0)
    assert "; 20 min more may settle something in 2 of 2 networks" in why
    assert command.endswith(" --budget 20min")


@pytest.mark.parametrize(
    ("blocks", "promised"),
    [
        (5, "15 min more may settle something in 2 of 2 networks (clean, delay)."),
        (60, "15 min more may settle something in 1 of 2 networks (clean); for delay raise `max` (60) in a new run."),
        (None, "15 min more may settle something in 1 of 2 networks (clean)."),
    ],
)
def test_only_what_the_forecast_of_the_report_allows_is_promised(
    tmp_path: Path, blocks: int | None, promised: str
) -> None:
    """`3 min more may settle something` stood beside `probably never: it would take hundreds of blocks more`."""
    outlook = Outlook(blocks, 1, None)
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(9)))) as run:
        data = RunData.of(run)
        clean, delay = data.judgement.open
        clean = replace(clean, soonest=Outlook(1, 1, 1))
        judgement = replace(data.judgement, open=(clean, replace(delay, soonest=outlook, outlook=outlook)))
        object.__setattr__(data, "judgement", judgement)
        why, command = how_to_resume(run, data)
    assert f"; {promised} Resume with:" in why
    assert command.endswith(" --budget 15min")


@pytest.mark.parametrize(
    ("seconds", "said"), [(900.0, "15min"), (7200.0, "2h"), (90.0, "90s"), (231.7123, "232s"), (0.4, "1s")]
)
def test_a_budget_is_written_in_whole_seconds(seconds: float, said: str) -> None:
    assert budget_text(seconds) == said
