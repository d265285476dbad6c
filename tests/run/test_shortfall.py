"""When a run has what it was for: every condition its data, and few attempts that were not proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headwind.arm import H2, H3
from headwind.model import Matrix, Place, Repetition, Result, Search
from headwind.run.codec import State, Status
from headwind.run.data import LAST_BUDGET, RunData, measured_of
from headwind.run.journal import STOPPED
from headwind.run.shortfall import FAULTS, UNPROVEN, shortfalls, unfinished
from impair.profile import Profile
from tests.fake import PROFILES, example_matrix, failed, invalid, lab_error, ok, ok_results, timeout, trials_of

LOSS = PROFILES[2]
MATRIX = example_matrix(LOSS, repeat=2)
FIRST, SECOND, *OTHERS = trials_of(MATRIX)
FIND = Search(H3, H2, "downlink.loss", ((0.0, "loss/article"), (0.1, "far/article")))
GOOD = [ok(trial, 1.0) for trial in OTHERS]


def ended(matrix: Matrix, results: Sequence[Result], **environment: object) -> RunData:
    """A run that ended by itself."""
    measured, searched = measured_of(matrix, results)
    status = Status(State.FINISHED, "", 0.0, 60.0)
    return RunData("a", measured, tuple(results), environment, status, searched=searched)


def shortfall(matrix: Matrix, results: Sequence[Result]) -> str:
    """The only reason for status 1; empty if there is none."""
    reasons = shortfalls(ended(matrix, results))
    assert len(reasons) <= 1
    return "".join(reasons)


def test_failures_and_timeouts_are_data() -> None:
    assert shortfall(MATRIX, [failed(FIRST, 1.0, 990), timeout(SECOND), *GOOD]) == ""


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ((), "the time ended before"),
        ((lab_error(FIRST, STOPPED),), "the time ended before"),  # by Ctrl-C, and no time was left to resume it
        ((lab_error(FIRST),), "the only attempt at loss/article#0/h1 gave no data: the router died"),
        (
            [invalid(FIRST, 1.0, attempt=number) for number in range(3)],
            "the last of 3 attempts at loss/article#0/h1 gave no data: impairment",
        ),
    ],
)
def test_a_fixed_number_of_blocks_must_be_complete(lost: list[Result], why: str) -> None:
    said = shortfall(MATRIX, [*lost, ok(SECOND, 1.0), *GOOD])
    assert said.startswith("loss has 1 complete block of the 2 that it needs: ")
    assert why in said


def test_an_attempt_that_was_made_again_takes_nothing_from_a_condition() -> None:
    assert shortfall(MATRIX, [invalid(FIRST, 1.0), ok(SECOND, 1.0), *GOOD, ok(FIRST, 1.0, attempt=1)]) == ""


@pytest.mark.parametrize(("budget_s", "enough"), [(60.0, True), (None, False)])
def test_under_a_budget_one_complete_block_of_a_condition_is_enough(budget_s: float, *, enough: bool) -> None:
    matrix = example_matrix(LOSS, repeat=Repetition(2, 60, budget_s=budget_s))
    one_block = [ok(trial, 1.0) for trial in list(trials_of(matrix))[:3]]
    assert (shortfall(matrix, one_block) == "") == enough
    assert shortfall(matrix, one_block[:2]).startswith("loss has 0 complete blocks of the ")


def test_conditions_that_a_budget_left_no_time_for_are_named() -> None:
    matrix = example_matrix(LOSS, Profile("far"), Profile("near"), repeat=Repetition(2, 60, budget_s=60.0))
    some = [result for result in ok_results(matrix) if "loss/" in result.trial.id]
    assert shortfall(matrix, some) == "the budget left no time for far and near"
    assert shortfall(matrix, []) == "nothing was measured"
    assert shortfall(replace(matrix, find=FIND), some) == "", "a search needs only some of its conditions"


def test_each_reason_has_a_sentence_of_its_own() -> None:
    """A run that ended with too little data and too many unproven attempts named only the first."""
    matrix = example_matrix(LOSS, Profile("far"), Profile("near"), repeat=Repetition(2, 60, budget_s=60.0))
    begun = [trial for trial in trials_of(matrix) if "near/" not in trial.id]
    lost = [invalid(trial, 1.0, attempt=number) for trial in begun if "loss/" in trial.id for number in range(3)]
    results = [*(ok(trial, 1.0) for trial in begun if "far/" in trial.id), *lost]
    data, slow = ended(matrix, results, **{FAULTS: ["testbed 1 was slow"]}), ended(MATRIX, [], **{FAULTS: ["slow"]})
    starts = ("loss has 0 complete blocks of the 1", "the budget left no time for near", "the network was not verified")
    *reasons, fault = shortfalls(data)
    assert all(reason.startswith(start) for reason, start in zip(reasons, starts, strict=True))
    assert fault == "testbed 1 was slow"
    assert shortfalls(slow) == ["nothing was measured", "slow"]


def test_the_budget_of_a_resumed_run_counts() -> None:
    one_block = [ok(trial, 1.0) for trial in list(trials_of(MATRIX))[:3]]
    assert shortfalls(ended(MATRIX, one_block, **{LAST_BUDGET: 60.0})) == []
    assert shortfalls(ended(MATRIX, one_block)) != []


def test_a_condition_in_which_nothing_finished_is_named_and_has_its_data() -> None:
    results = [timeout(trial) for trial in (FIRST, SECOND)] + [failed(trial, 1.0, 990) for trial in OTHERS]
    assert unfinished(ended(MATRIX, results)) == list(MATRIX.conditions)
    assert shortfall(MATRIX, results) == ""
    assert unfinished(ended(MATRIX, [*results[:-1], GOOD[-1]])) == []
    assert unfinished(ended(replace(MATRIX, find=FIND), results)) == []


def test_the_first_condition_without_its_data_is_named_and_the_others_are_counted() -> None:
    matrix = example_matrix(LOSS, Profile("far"), Profile("near"), repeat=1)
    said = shortfall(matrix, [result for result in ok_results(matrix) if "loss/" in result.trial.id])
    assert said.startswith("far has 0 complete blocks of the 1 that it needs, and 1 further condition too few")


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(("trials", "most"), [(30, UNPROVEN), (900, 9)])
def test_a_share_of_the_attempts_may_be_unproven(trials: int, most: int, more: int) -> None:
    matrix = example_matrix(LOSS, repeat=trials // 3)
    good = [ok(trial, 1.0) for trial in trials_of(matrix)]
    lost = [invalid(result.trial, 1.0) for result in good[: most + more]]
    again = [replace(result, attempt=1) for result in good[: most + more]]
    said = shortfall(matrix, [*lost, *good[most + more :], *again])
    assert bool(said) == bool(more)
    if more:
        assert f"not verified in {most + 1} of {trials + most + 1:,} attempts, above the limit of {most}" in said
        assert "downlink loss_ratio" in said
        assert ". These attempts ran again and are excluded from all figures, but so many make" in said
        assert said.endswith("; the report lists what each of them measured")


@pytest.mark.parametrize(("late", "quantity", "enough"), [(10, "change_late_s", True), (11, "change_late_s", False),
                                                          (10, "standstill_s", False)])  # fmt: skip
def test_changes_that_came_late_and_ran_again_may_be_a_tenth(late: int, quantity: str, *, enough: bool) -> None:
    matrix = example_matrix(LOSS, repeat=Repetition(30, 60, budget_s=60.0))
    good = [ok(trial, 1.0) for trial in trials_of(matrix)]
    check = replace(good[0].proof.checks[0], quantity=quantity, measured=1.0, passed=False)
    proof = replace(good[0].proof, checks=(check,))
    lost = [replace(invalid(result.trial, 1.0), proof=proof) for result in good[:late]]
    again = [replace(result, attempt=1) for result in good[:late]]
    assert len(good) == 90
    assert (shortfall(matrix, [*lost, *good[late:], *again]) == "") == enough
    assert shortfall(matrix, [*lost, *good[late:], *again[1:]]) != "", "one of them did not run again"


def test_attempts_in_which_a_host_stood_still_ask_for_a_quieter_machine() -> None:
    matrix = example_matrix(LOSS, repeat=Repetition(2, 60, budget_s=60.0))
    results = [ok(trial, 1.0) for trial in trials_of(matrix)]
    proof = results[0].proof
    check = replace(proof.checks[0], quantity="standstill_s", measured=1.0, passed=False)
    still = [
        replace(invalid(each.trial, 1.0), attempt=number, proof=replace(proof, checks=(check,)))
        for each in results[:2] for number in (1, 2)
    ]  # fmt: skip
    said = shortfall(matrix, [*results, *still])
    assert ". These attempts are excluded" in said, "some are the last at their trials"
    assert said.endswith("; CPUs were probably short: run again on a quieter machine")
    several = [replace(each, place=Place(lane=number)) for number, each in enumerate([*results, *still])]
    assert shortfall(matrix, several) == f"{said}, or with `--lanes 1`"
    late = replace(check, quantity="change_late_s")
    changing = [replace(each, proof=replace(each.proof, checks=(late,))) if each.attempt else each for each in several]
    assert shortfall(matrix, changing).endswith("on a quieter machine"), "a network that changes runs alone anyway"
