"""Blocks that run side by side count in the order in which they began, so that slow ones are not seen too late."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headwind.model import Outcome, Proof, Repetition, Result
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.verdicts.ended import complete
from headwind.verdicts.judgement import Judge, Judgement
from headwind.verdicts.stats import Floats, narrowed
from tests import fake

MATRIX = fake.example_matrix(fake.PROFILES[0], repeat=Repetition(least=9, most=60))
(CONDITION,) = MATRIX.conditions
SIDE_BY_SIDE = 3  # as many of one condition as a Latin square of three arms has
BLOCKS, RUNS = 40, 1500


def fast_or_slow(chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Times of two arms: one waits for a timer in every second block; which of them is faster is a fair coin."""
    slow = chance.random(BLOCKS) < 0.5
    return np.where(slow, 10.0, 0.5) * np.exp(chance.normal(0, 0.05, BLOCKS)), np.exp(chance.normal(0, 0.05, BLOCKS))


def order_of_ends(durations: Floats) -> Sequence[int]:
    """Each of SIDE_BY_SIDE lanes takes the next block as soon as it is free."""
    free, ends = [0.0] * SIDE_BY_SIDE, []
    for duration in durations:
        lane = free.index(min(free))
        free[lane] += duration
        ends.append(free[lane])
    return list(np.argsort(ends))


def ever_wrong(by_end: bool) -> float:
    """Share of runs in which the interval excludes a tie after any block, though the median ratio is 1."""
    chance, wrong = np.random.default_rng(1), 0
    for _ in range(RUNS):
        first, second = fast_or_slow(chance)
        order = order_of_ends(first + second) if by_end else range(BLOCKS)
        differences = np.log(first / second)[list(order)].tolist()
        wrong += any(low > 0 or high < 0 for low, high in narrowed(differences, differences, 0.95))
    return wrong / RUNS


def test_in_the_order_of_their_beginning_intervals_are_wrong_as_rarely_as_stated() -> None:
    assert ever_wrong(by_end=False) <= 0.04


def test_in_the_order_of_their_ends_they_would_not_be() -> None:
    """Which is why the order matters; one block at a time ends in the order in which it began."""
    assert ever_wrong(by_end=True) > 0.05


def blocks(count: int) -> list[list[Result]]:
    results = fake.good_blocks(MATRIX, CONDITION, count, fake.usual(noise=0.4))
    size = len(MATRIX.arms)
    return [results[start : start + size] for start in range(0, len(results), size)]


def said(judge: Judge) -> Judgement:
    return judge.judgement(fake.one_second, complete=False, exhausted=False)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_run_says_does_not_depend_on_the_order_in_which_its_blocks_ended(seed: int) -> None:
    every, chance = blocks(20), random.Random(seed)
    late = sorted(range(20), key=lambda index: index + chance.uniform(0, SIDE_BY_SIDE))
    judge = Judge(MATRIX)
    for index in late:
        judge.tell(every[index])
        said(judge)
    assert said(judge) == said(Judge(MATRIX, [result for block in every for result in block]))


def test_a_block_counts_once_those_before_it_have_ended() -> None:
    every = blocks(12)
    judge = Judge(MATRIX, [result for index in (0, 1, 3, 4) for result in every[index]])
    assert list(judge.counted_rows(CONDITION.id)) == [0, 1]
    assert list(judge.rows_of(CONDITION.id)) == [0, 1, 3, 4]
    judge.tell(every[2][:2])
    assert list(judge.counted_rows(CONDITION.id)) == [0, 1]
    judge.tell(every[2][2:])
    assert list(judge.counted_rows(CONDITION.id)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("outcome", [None, Outcome.LAB_ERROR, Outcome.INVALID])
def test_a_block_that_has_not_ended_counts_in_no_comparison(outcome: Outcome | None) -> None:
    """A run that was stopped had 11, 10 and 8 blocks of one network, by the comparison."""
    every = blocks(12)
    cut = [*every[11][:2], *([replace(every[11][2], outcome=outcome, reason="stopped")] if outcome else [])]
    judge = Judge(MATRIX, [*(result for block in every[:11] for result in block), *cut])
    assert [line.blocks for line in said(judge).lines] == [11, 11, 11]
    assert len(judge.counted_rows(CONDITION.id)) == 11
    assert said(judge).lines == said(Judge(MATRIX, [result for block in every[:11] for result in block])).lines
    judge.tell([replace(every[11][2], attempt=1)])
    assert [line.blocks for line in said(judge).lines] == [12, 12, 12]
    assert said(judge) == said(Judge(MATRIX, [result for block in every for result in block]))


def test_a_trial_that_was_never_proven_takes_its_block_from_its_own_comparisons_only() -> None:
    every = blocks(12)
    lost = replace(every[11][2], outcome=Outcome.INVALID, reason="not proven", attempt=MOST_ATTEMPTS - 1)
    rows = Judge(MATRIX, [*(result for block in every for result in block), lost])
    assert sorted(line.blocks for line in said(rows).lines) == [11, 11, 12]
    assert complete(rows.rows_of(CONDITION.id)) == 11


def test_nothing_is_settled_by_blocks_that_overtook_another() -> None:
    far: dict[str, Any] = {"time_s": lambda trial: fake.usual()(trial) * (3 if str(trial.arm) == "h3" else 1)}
    results = fake.good_blocks(MATRIX, CONDITION, 20, **far)
    first, others = results[:3], results[3:]
    assert any(line.primary.survives for line in said(Judge(MATRIX, results)).compared)
    judge = Judge(MATRIX, others)
    assert not any(line.primary.survives for line in said(judge).compared)
    judge.tell(first)
    assert said(judge) == said(Judge(MATRIX, results))


def test_an_unproven_attempt_says_nothing_and_the_one_that_replaces_it_counts_once() -> None:
    every = blocks(12)
    lost = [replace(every[1][0], outcome=Outcome.INVALID, reason="not proven", proof=Proof()), *every[1][1:]]
    judge = Judge(MATRIX, [*every[0], *lost, *(result for block in every[2:] for result in block)])
    said(judge)
    judge.tell([replace(every[1][0], attempt=1)])
    assert said(judge) == said(Judge(MATRIX, [result for block in every for result in block]))
    assert len(judge.rows_of(CONDITION.id)) == 12


THREE = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(least=9, most=60))


def side_by_side(seed: int) -> list[Result]:
    """Blocks of three networks in the order in which they began; those of the last end up to a minute late."""
    chance, found = random.Random(seed), list[Result]()
    for number, condition in enumerate(THREE.conditions):
        leads = {str(arm): chance.uniform(0.8, 1.2) for arm in THREE.arms}
        for result in fake.good_blocks(THREE, condition, 12):
            total_s = leads[str(result.trial.arm)] * chance.lognormvariate(0, 0.1)
            begun = fake.STARTED_AT + 10 * result.trial.block.index + number
            ended = begun + 5 + 60 * number * chance.random()
            metrics = {**result.metrics, "total_s": total_s}
            found.append(replace(result, metrics=metrics, started_at=begun, ended_at=ended))
    return sorted(found, key=lambda result: result.started_at)


def sure(judge: Judge) -> set[tuple[str, str, str]]:
    findings = [finding for line in said(judge).compared for finding in line.findings.values() if finding.survives]
    return {(finding.condition.id, str(finding.pair), finding.metric.key) for finding in findings}


@pytest.mark.parametrize(("seed", "order_matters"), [(0, False), (19, True)])
def test_what_was_sure_during_the_run_is_sure_when_its_results_are_read_again(seed: int, order_matters: bool) -> None:
    """A run printed `23 of 36 comparisons sure`, and ended with 17: they were read in the order of their beginning."""
    results, judge, ever = side_by_side(seed), Judge(THREE), set[tuple[str, str, str]]()
    for result in sorted(results, key=lambda result: result.ended_at):
        judge.tell([result])
        ever |= sure(judge)
    assert sure(judge) == ever
    assert said(Judge(THREE, results)) == said(judge)
    by_beginning = [replace(result, ended_at=0.0) for result in results]
    assert (sure(Judge(THREE, by_beginning)) != ever) == order_matters
