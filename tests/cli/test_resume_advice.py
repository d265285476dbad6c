"""How to resume a run: what is known of it is not worked out again."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwind.arm import Role
from headwind.cli import resume_advice
from headwind.cli.resume_advice import how_to_resume
from headwind.format import budget_text
from headwind.model import CPU_BOUND, Outcome, Proof, Repetition, Result
from headwind.plan.scheduler import Scheduler
from headwind.proof.spans import UNCHANGED
from headwind.report.trust import trust_line
from headwind.report.verdicts import more_text, without_forecast
from headwind.run.data import LAST_BUDGET, RunData
from headwind.verdicts.judgement import Judge
from headwind.verdicts.outlook import Outlook
from headwind.verdicts.pairs import Pair
from impair.profile import Rebind, Rebinding
from tests import fake

JUDGE = "put `judge: [total_s]` into the matrix of a new run"
MATRIX = fake.example_matrix(*fake.PROFILES[:2], repeat=Repetition(3, 60, budget_s=900.0))


def test_nothing_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(3)))) as run:
        data = RunData.of(run)
        assert len(data.judgement.open) == 2
        for name in ("tell", "_cell"):
            monkeypatch.setattr(Judge, name, None)
        why, *_, command = how_to_resume(run, data)
    assert why.startswith(
        "0 of 6 comparisons are sure by at least one metric; another 15 min may make more comparisons sure in 2 of 2 "
        "networks"
    )
    assert command.endswith(" --budget 15min")


def resumed(folder: Path, budget_s: float) -> list[str]:
    """The lines at the end of a run of three blocks, in which a trial over the first network took 0.1 s, else 20 s."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=budget_s))
    first = matrix.conditions[0]
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(3)))
    results = [fake.ok(trial, 0.1 if trial.block.condition == first else 20.0) for trial in trials]
    with fake.recorded(folder, matrix, results) as run:
        return how_to_resume(run, RunData.of(run))


def test_more_time_is_not_promised_to_a_network_that_was_not_verified(tmp_path: Path) -> None:
    """`7 min will probably complete them` stood below 38 attempts of which none was verified."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=180.0))
    clean, delay = matrix.conditions
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(3)))
    results = [fake.ok(trial, 1.0) for trial in trials]
    results = [
        each if each.trial.block.condition == clean else replace(each, outcome=Outcome.INVALID) for each in results
    ]
    with fake.recorded(tmp_path, matrix, results) as run:
        (line,) = [line for line in how_to_resume(run, RunData.of(run)) if "Blocks still to run" in line]
    names = f"{clean.profile.name}, but hardly {delay.profile.name}"
    assert line.endswith(f"complete {names}, where most trials were not verified.")


def test_nothing_is_sure_in_a_network_that_did_not_change(tmp_path: Path) -> None:
    """`sure: gets worse: h2 beats h1` stood above trials that had all ended before the change."""
    moving = replace(fake.PROFILES[0], rebinding=Rebinding(1.0, Rebind.PORT))
    matrix = fake.example_matrix(moving, repeat=Repetition(9, 60, budget_s=900.0))
    done = {"h1": 4.0, "h2": 2.0, "h3": 1.0}
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(12)))
    results = [fake.ok(trial, done[trial.arm.name] * (1 + trial.block.index / 1000)) for trial in trials]
    assert len(Scheduler(matrix, results).settled()) == 3
    early = (f"{UNCHANGED}: the client had ended by 1 s",)
    unchanged = [replace(each, proof=replace(each.proof, warnings=early)) for each in results]
    scheduler = Scheduler(matrix, unchanged)
    assert scheduler.settled() == {}
    assert scheduler.early == {matrix.conditions[0].id}
    assert scheduler.next() is None, "no blocks beyond the minimum, since they can settle nothing"
    with fake.recorded(tmp_path, matrix, unchanged) as run:
        data = RunData.of(run)
        (said,) = how_to_resume(run, data)
    assert (
        said
        == "No blocks are left to run; nothing can be sure in clean, where trials ended before the network changed."
    )
    assert trust_line(data).startswith(
        "The network of every compared trial was verified; for trials that ended before a change, without it."
    )


def test_a_budget_that_is_too_short_for_the_minimum_is_not_repeated(tmp_path: Path) -> None:
    why, *details, command = resumed(tmp_path, 240.0)
    assert why == "0 of 6 comparisons are sure by at least one metric."
    assert "  Blocks still to run (minimum 9): clean 6, delay 6; 8 min will probably complete them." in details
    assert "  Another 4 min may be too short for the minimum of 9 blocks in delay." in details
    assert command.endswith(" --budget 8min")


def test_further_conditions_of_a_list_are_not_taken_for_blocks(tmp_path: Path) -> None:
    """`hotel/thumbnails 7 and 2 more` was read as two more blocks."""
    profiles = [replace(fake.PROFILES[0], name=f"n{number}") for number in range(8)]
    matrix = fake.example_matrix(*profiles, repeat=Repetition(9, 60, budget_s=240.0))
    results = [fake.ok(trial, 1.0) for trial in fake.trials_of(replace(matrix, repeat=Repetition.fixed(2)))]
    with fake.recorded(tmp_path, matrix, results) as run:
        (line,) = [line for line in how_to_resume(run, RunData.of(run)) if "Blocks still to run" in line]
    assert "n5 7 and 2 more networks; " in line


def test_the_proposed_budget_is_enough_on_the_lanes_that_it_will_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`7 min will probably complete them` was followed by `7 min may be too short`: it opened more lanes than 3 min."""
    matrix = replace(MATRIX, lanes=12, repeat=Repetition(9, 60, budget_s=60.0))
    monkeypatch.setattr(resume_advice, "lanes_here", lambda asked: asked)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(1)))
    with fake.recorded(tmp_path, matrix, [fake.ok(trial, 5.0) for trial in trials]) as run:
        data = RunData.of(run)
        proposed = how_to_resume(run, data)[-1].rpartition(" --budget ")[2]
        budget_s = 60.0 * int(proposed.removesuffix("min"))
        then = resume_advice.More.of(resume_advice._resumed(run, data, budget_s, ()), data.still_open)
    assert budget_s > 60.0
    assert (then.short, then.slow, then.budget_s) == ([], [], budget_s)


def test_a_block_that_was_cut_short_is_missing(tmp_path: Path) -> None:
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=240.0))
    trials = [*fake.trials_of(replace(matrix, repeat=Repetition.fixed(3)))]
    begun = [each for each in trials if each.block.index < 2 or each.position == 0]
    assert 0 < len(trials) - len(begun) < len(trials) / 3
    with fake.recorded(tmp_path, matrix, [fake.ok(trial, 1.0) for trial in begun]) as run:
        told = how_to_resume(run, RunData.of(run))
    assert "  Blocks still to run (minimum 9): clean 7, delay 7; 4 min will probably complete them." in told


def test_a_budget_that_is_long_enough_is_repeated(tmp_path: Path) -> None:
    why, *details, command = resumed(tmp_path, 480.0)
    assert why == "0 of 6 comparisons are sure by at least one metric.", (
        "nothing is promised from less than the minimum"
    )
    assert not any(word in line for line in details for word in ("soonest", "Probably"))
    assert not any("too short" in line for line in details)
    assert command.endswith(" --budget 8min")


def test_the_budget_that_was_given_last_is_the_one_that_is_proposed(tmp_path: Path) -> None:
    facts = {**fake.ENVIRONMENT, LAST_BUDGET: 1200.0}
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(3))), facts) as run:
        why, *_, command = how_to_resume(run, RunData.of(run))
    assert "; another 20 min may make more comparisons sure in 2 of 2 networks" in why
    assert command.endswith(" --budget 20min")


def ended(folder: Path, repeat: Repetition, first: Outlook | None, **second: Any) -> tuple[RunData, list[str]]:
    """A run of nine blocks and its last lines; `first` is the forecast for `clean`, None if all of it is settled.

    `second` are fields of what is open in `delay`.
    """
    matrix = replace(MATRIX, repeat=repeat)
    with fake.recorded(folder, matrix, fake.ok_results(replace(MATRIX, repeat=Repetition.fixed(9)))) as run:
        data = RunData.of(run)
        clean, delay = data.judgement.open
        left = (replace(clean, soonest=first, outlook=first),) if first else ()
        opened = (*left, replace(delay, **second))
        object.__setattr__(data, "judgement", replace(data.judgement, open=opened))
        return data, how_to_resume(run, data)


@pytest.mark.parametrize(
    ("outlook", "most", "promised"),
    [
        (Outlook(5, 1, None), 60, "another 15 min may make more comparisons sure in 2 of 2 networks."),
        (Outlook(60, 1, None), 60, "another 15 min may make more comparisons sure in 1 of 2 networks (clean)."),
        (Outlook(None, 1, None), 60, "another 15 min may make more comparisons sure in 1 of 2 networks (clean)."),
        (Outlook(5, 1, None), 9, "another 15 min may make more comparisons sure in 1 of 2 networks (clean)."),
    ],
)
def test_only_what_the_forecast_of_the_report_allows_is_promised(
    tmp_path: Path, outlook: Outlook, most: int, promised: str
) -> None:
    """`3 min more may settle something` stood beside a forecast of hundreds of blocks."""
    _, (why, *details, command) = ended(
        tmp_path, MATRIX.repeat, Outlook(1, 1, 1), soonest=outlook, outlook=outlook, most=most
    )
    assert why.endswith(f"; {promised}")
    raised = [line for line in details if "raise `max`" in line]
    assert raised == (["  For delay, raise `max` (60) in a new run."] if most == 9 else []), "blocks are left below it"
    is_later = most == 60 and "(clean)" in promised
    later = "  In delay, no further sure results are expected within 15 min."
    assert (later in details) == is_later, "no comparison that is open goes unnamed"
    assert command.endswith(" --budget 15min")


def test_the_forecast_is_that_of_the_report_and_the_budget_is_long_enough_for_it(tmp_path: Path) -> None:
    """`1 min more may settle something` stood beside `about 24 more blocks, 2 min 16 s`."""
    far = Outlook(24, 10, 40)
    slow: dict[str, Any] = {"soonest": far, "outlook": far, "block_s": 10.0}
    repeat = Repetition(3, 60, budget_s=60.0)
    data, (_, detail, *_) = ended(tmp_path / "one", repeat, Outlook(1, 1, 1), **slow)
    assert detail == f"  Soonest in clean: {more_text(data.judgement.open[0])}."
    _, (why, detail, *_, command) = ended(tmp_path / "other", repeat, None, **slow)
    assert why.endswith("; another 5 min may make more comparisons sure in 1 of 2 networks (delay).")
    assert detail == "  Soonest in delay: about 24 more blocks (likely 10 to 40), which take 4 min."
    assert command.endswith(" --budget 5min")


def test_the_condition_that_is_settled_soonest_is_named_with_the_forecast_that_makes_it_so(tmp_path: Path) -> None:
    """`Soonest in 5g: about 29 more blocks, 2 min 15 s` stood beside another network with 48 s in the report."""
    late: dict[str, Any] = {"soonest": Outlook(1, 1, 4), "outlook": Outlook(29, 7, None), "block_s": 5.0}
    data, (_, detail, *_) = ended(tmp_path, MATRIX.repeat, Outlook(7, 4, 55), **late)
    first, every = (
        "about 1 more block (likely 1 to 4), which takes 5 s",
        "about 29 more blocks (likely 7 to hundreds; the matrix file allows 51), which take 2 min 25 s",
    )
    said = f"the first probably sure after {first}; all 3 comparisons: {every}"
    assert detail == f"  Soonest in delay: {said}."
    assert more_text(data.judgement.open[1]) == said, "the report names another time"


def test_self_checks_are_no_comparison_that_more_time_settles(tmp_path: Path) -> None:
    """`mobile` was named for its open self-check, between comparisons that were open elsewhere."""
    _, (why, *_) = ended(tmp_path, MATRIX.repeat, Outlook(1, 1, 1), undecided=(), unconfirmed=())
    assert why.endswith("; another 15 min may make more comparisons sure in 1 of 2 networks (clean).")


def test_more_time_for_nothing_but_self_checks_promises_no_comparison(tmp_path: Path) -> None:
    """`may make more comparisons sure` stood where every comparison was sure, or could never be."""
    arm = MATRIX.arms[1]
    check = (Pair(arm, arm.twin(Role.AGAIN)),)
    one = Outlook(1, 1, 1)
    _, (why, *_) = ended(
        tmp_path, MATRIX.repeat, None, undecided=(), unconfirmed=check, soonest=one, outlook=one, block_s=5.0
    )
    assert "; another 15 min may settle self-checks in 1 of 2 networks (delay)" in why


@pytest.mark.parametrize(
    ("seconds", "said"), [(900.0, "15min"), (7200.0, "2h"), (90.0, "90s"), (231.7123, "232s"), (0.4, "1s")]
)
def test_a_budget_is_written_in_whole_seconds(seconds: float, said: str) -> None:
    assert budget_text(seconds) == said


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (
            60,
            (
                "every comparison is sure by at least one metric; "
                "for total time, put `judge: [total_s]` into the matrix of a new run."
            ),
        ),
        (3, "3 comparisons are not sure within `max` (3); raise it in a new run."),
    ],
)
def test_a_run_that_has_nothing_left_to_run_says_why(tmp_path: Path, most: int, said: str) -> None:
    """It ended minutes before its budget, and resuming it did nothing, both without a word."""
    matrix = fake.example_matrix(fake.PROFILES[0], repeat=Repetition(3, most, budget_s=900.0))
    rng, results = random.Random(3), []
    for good in fake.ok_results(replace(matrix, repeat=Repetition.fixed(min(most, 20)))):
        done_s = {"h1": 4.0, "h2": 2.0, "h3": 1.0}[good.trial.arm.name] * (1 + good.trial.block.index / 1000)
        results.append(replace(good, metrics={**good.metrics, "total_s": rng.uniform(1, 3), "mean_done_s": done_s}))
    with fake.recorded(tmp_path, matrix, results) as run:
        assert how_to_resume(run, RunData.of(run)) == [f"No blocks are left to run: {said}"]


def test_a_cpu_bound_comparison_is_never_said_to_be_sure(tmp_path: Path) -> None:
    """The lines of a run said `sure: ...` of what its report called likely, and the list of open ones left it out."""
    matrix, results = fake.example_matrix(fake.PROFILES[0], repeat=Repetition(12, 60, budget_s=60.0)), []
    for good in fake.ok_results(replace(matrix, repeat=Repetition.fixed(12))):
        took_s = {"h1": 4.0, "h2": 2.0, "h3": 1.0}[good.trial.arm.name] * (1 + good.trial.block.index / 1000)
        warnings = (f"{CPU_BOUND}: the router",) if good.trial.arm.name == "h1" else ()
        metrics = {**good.metrics, "total_s": took_s, "mean_done_s": took_s}
        results.append(replace(good, metrics=metrics, proof=replace(good.proof, warnings=warnings)))
    with fake.recorded(tmp_path, matrix, results) as run:
        data = RunData.of(run)
        said = how_to_resume(run, data)
    assert list(Scheduler(matrix, results).settled().values()) == ["clean: h3 beats h2 by total time"]
    (bound,) = without_forecast(data)
    pairs = "HTTP/3 against HTTP/1.1, and HTTP/2 against HTTP/1.1"
    assert bound.startswith(f"clean: {pairs} are CPU-bound, so at most likely: ")
    assert data.still_open == ()
    assert said == ["No blocks are left to run; 2 comparisons are CPU-bound, so at most likely."]


def test_a_cpu_bound_condition_is_missing_its_minimum_like_any_other(tmp_path: Path) -> None:
    """A condition with one block of eight was in no list of blocks still to run, since that block was CPU-bound."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=60.0))
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(1)))
    bound = Proof(warnings=(f"{CPU_BOUND}: the router",))
    results = [replace(good, proof=bound) for good in (fake.ok(trial, 1.0) for trial in trials)]
    with fake.recorded(tmp_path, matrix, results) as run:
        said = how_to_resume(run, RunData.of(run))
    assert any("Blocks still to run (minimum 9): clean 8, delay 8; " in line for line in said)


def test_what_was_hardly_ever_verified_is_promised_in_no_time(tmp_path: Path) -> None:
    """`6 min will probably complete them, but hardly outage`, which was all that `them` meant."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=180.0))
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(3)))
    results = [replace(fake.ok(trial, 1.0), outcome=Outcome.INVALID) for trial in trials]
    with fake.recorded(tmp_path, matrix, results) as run:
        (line,) = [line for line in how_to_resume(run, RunData.of(run)) if "Blocks still to run" in line]
    assert line.endswith("; hardly any time will complete them, because most trials were not verified.")


def test_the_budget_is_enough_for_the_soonest_result_after_a_minimum_that_is_hardly_completed(tmp_path: Path) -> None:
    """`1 min will probably not be enough` stood above `--budget 1min`."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=5.0))
    clean, delay = matrix.conditions
    results = list[Result]()
    for trial in fake.trials_of(replace(matrix, repeat=Repetition.fixed(9))):
        index, is_h1 = trial.block.index, trial.arm.name == "h1"
        good = fake.ok(trial, 1.0 + (0.1 + 0.05 * (index % 3)) * is_h1 * (-1) ** index)
        if trial.block.condition == delay and index < 8:
            results += [replace(good, outcome=Outcome.INVALID, attempt=attempt) for attempt in (0, 1)]
            results.append(replace(good, attempt=2))
        elif trial.block.condition == clean:
            results.append(good)
    with fake.recorded(tmp_path, matrix, results) as run:
        why, *details, _, command = how_to_resume(run, RunData.of(run))
    assert clean.profile.name in why.partition("may make more comparisons sure in ")[2]
    assert not any("no further sure results" in line and clean.profile.name in line for line in details)
    assert command.endswith(" --budget 5s"), "the condition that was hardly verified comes last"


def test_what_an_earlier_run_measured_is_no_guess(tmp_path: Path) -> None:
    """`a guess: no trial has run in clean` stood below a plan that had read 40 earlier trials of it."""
    matrix = replace(MATRIX, repeat=Repetition(9, 60, budget_s=60.0))
    trials = fake.trials_of(replace(matrix, repeat=Repetition.fixed(1)))
    with fake.recorded(tmp_path, matrix, [fake.ok(trial, 1.0) for trial in trials]):
        pass
    first = [fake.ok(trial, 1.0) for trial in trials if trial.block.condition == matrix.conditions[0]]
    with fake.recorded(tmp_path, matrix, first) as run:
        (line,) = [line for line in how_to_resume(run, RunData.of(run)) if "Blocks still to run" in line]
    assert "a guess" not in line
