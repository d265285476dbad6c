"""What is read of a run folder: small in memory, and it says what the whole results say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.model import Result
from headwind.proof.spans import UNCHANGED
from headwind.report import RunData
from headwind.report.compare.comparison import warnings
from headwind.run.codec import State, Status
from headwind.run.data import Reading
from headwind.verdicts.judgement import Judge, in_short
from tests.fake import ENVIRONMENT, STARTED_AT, example_matrix, lab_error, ok_results, recorded
from tests.golden.runs import RUNS


@pytest.mark.parametrize("name", sorted({*RUNS} - {"in-progress", "killed-at-once", "hostile"}))
def test_a_run_that_was_read_without_counters_says_what_it_says_with_them(name: str, tmp_path: Path) -> None:
    golden = RUNS[name]()
    whole = golden.data(name)
    with recorded(tmp_path, golden.matrix, golden.results, ENVIRONMENT) as run:
        read = RunData.of(run)
    assert read.judgement == whole.judgement
    assert read.pooled == whole.pooled
    assert read.trials.equals(whole.trials)
    assert [seen.passages for seen in read.seen.values()] == [seen.passages for seen in whole.seen.values()]


def test_neither_samples_nor_counters_stay_in_memory(tmp_path: Path) -> None:
    matrix = example_matrix()
    results = ok_results(matrix)
    assert all(result.samples and result.proof.counters for result in results)
    judge = Judge(matrix, results)
    kept = [
        result for condition in matrix.conditions
        for row in judge.rows_of(condition.id).values() for result in row.values()
    ]  # fmt: skip
    assert len(kept) == len(results)
    assert not any(result.samples or result.proof.counters or len(result.proof.checks) > 1 for result in kept)
    with recorded(tmp_path, matrix, results) as run:
        read = RunData.of(run)
    assert not any(result.samples for result in read.results)
    assert {key for result in read.results for key in result.proof.counters} == {"configured"}


def test_a_result_in_short_says_the_same_of_its_network() -> None:
    for make in RUNS.values():
        for result in make().results:
            short = in_short(result)
            assert short.proof.passed == result.proof.passed
            assert short.is_cpu_bound == result.is_cpu_bound
            assert (short.outcome, short.metrics, short.trial) == (result.outcome, result.metrics, result.trial)


def test_reading_on_gives_what_reading_all_at_once_gives(tmp_path: Path) -> None:
    matrix = example_matrix()
    first, *others = ok_results(matrix)
    results = [lab_error(first.trial), replace(first, attempt=1), *others]
    with recorded(tmp_path, matrix, results[:5]) as run:
        reading = Reading(run)
        assert reading.read() == 5
        with run.recording():
            run.begin(results[5].trial, 0)  # goes on
            for result in results[6:20]:
                run.append(result)
            assert reading.read() == 14
            assert reading.read() == 0
            run.append(results[5])
            for result in results[20:]:
                run.append(result)
        assert reading.read() == len(results) - 19
        at_once = RunData.of(run)
        assert reading.data.results == at_once.results
        assert reading.data.judgement.lines == at_once.judgement.lines


def test_a_network_that_did_not_change_is_a_doubt_and_a_possible_cause_of_a_difference_between_runs() -> None:
    matrix, early = example_matrix(), f"{UNCHANGED}: the client had ended by 1 s"
    results = ok_results(matrix)

    def run_data(name: str, results: list[Result]) -> RunData:
        return RunData(
            name, matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60)
        )

    before = run_data("before", results)
    unchanged = [replace(each, proof=replace(each.proof, warnings=(early,))) for each in results]
    after = run_data("after", unchanged)
    assert before.network_doubts == {}
    assert {*after.network_doubts} == {condition.id for condition in matrix.conditions}
    name, first = next(iter(after.network_doubts.items()))
    assert first[0].endswith("trials ended before the network changed")
    assert f"{after.id}: the network of {name} was not as requested: {first[0]}" in [*warnings(before, after)]
    kept = [each if index % 3 else results[index] for index, each in enumerate(unchanged)]
    assert len(run_data("kept", kept).unchanged) == len(matrix.conditions), "most of them still ended before"
