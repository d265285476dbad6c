"""Blocks are judged once they are whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwind.model import Outcome, Proof, Repetition
from headwind.plan.block_order import plan_blocks
from headwind.plan.scheduler import Scheduler, WholeBlocks
from headwind.verdicts.judgement import Judge, Judgement
from impair.profile import Profile
from tests import fake

MATRIX = fake.example_matrix(Profile("clean"), repeat=Repetition(2, 60))
RESULTS = [[fake.ok(trial, 1.0) for trial in block.trials()] for block in plan_blocks(MATRIX)]


def test_results_are_given_with_the_last_of_their_block() -> None:
    (first, *more), (other, *rest) = RESULTS[0], RESULTS[1]
    blocks = WholeBlocks()
    assert blocks.completed([first, other]) == []
    assert blocks.completed(more[:-1]) == []
    assert blocks.completed(more[-1:]) == [first, *more]
    assert blocks.completed(rest) == [other, *rest]


def test_an_attempt_that_replaces_another_is_given_at_once_in_a_whole_block_and_waits_in_half_a_one() -> None:
    first, *more = RESULTS[0]
    lost = replace(first, outcome=Outcome.INVALID, reason="not proven", proof=Proof())
    again = replace(first, attempt=1)
    blocks = WholeBlocks()
    assert blocks.completed([lost, again]) == []
    assert blocks.completed(more) == [lost, again, *more]
    assert blocks.completed([replace(first, attempt=2)]) == [replace(first, attempt=2)]


def test_a_scheduler_judges_once_for_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    judged, judgement = list[int](), Judge.judgement

    def counted(judge: Judge, *arguments: Any, **more: Any) -> Judgement:
        judged.append(1)
        return judgement(judge, *arguments, **more)

    monkeypatch.setattr(Judge, "judgement", counted)
    scheduler = Scheduler(MATRIX)
    scheduler.settled()
    for results in RESULTS:
        for result in results:
            scheduler.tell([result])
            scheduler.settled()
    assert len(judged) == 1 + len(RESULTS)
    assert list(scheduler.judge.counted_rows(MATRIX.conditions[0].id)) == [0, 1]
