"""The benches that read recorded runs, without a lab: a replay, what they knew and when, two revisions compared."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench import answered, same, scheduling
from headwind.metric import BUSY
from headwind.model import AUTO, Outcome, Repetition, Result
from headwind.run.data import RunData
from tests import fake

MATRIX = fake.checked_matrix()
SETTLED_SOON = 9  # blocks: unanimous ones suffice
TRIAL_S = 2.0
QUIET = {BUSY.key: 0.1}  # CPUs that a trial keeps busy


def results() -> list[Result]:
    """Nine blocks of each condition, in which the arms differ by much more than the noise."""
    good = [each for condition in MATRIX.conditions for each in fake.good_blocks(MATRIX, condition, SETTLED_SOON)]
    return [replace(each, phases_s={"client": TRIAL_S}) for each in good]


def data_of(tmp_path: Path, recorded: list[Result]) -> RunData:
    with fake.recorded(tmp_path, MATRIX, recorded) as run:
        return RunData.of(run)


def test_a_replay_takes_recorded_blocks_and_ends_with_its_budget(tmp_path: Path) -> None:
    known = scheduling.recorded(data_of(tmp_path, results()))
    arms = {condition.profile.name: len(MATRIX.arms_in(condition)) for condition in MATRIX.conditions}
    whole = scheduling.Replay(MATRIX, known, 1e6, lanes=1, cores=2, up_s=3.0, seed=1).run()
    assert len(whole.scheduler.settled()) == whole.scheduler.comparisons
    assert set(whole.blocks) == set(arms)
    budget_s = TRIAL_S * 4 * sum(arms.values())
    short = scheduling.Replay(MATRIX, known, budget_s, lanes=1, cores=2, up_s=3.0, seed=1).run()
    spent_s = sum(TRIAL_S * arms[name] * count for name, count in short.blocks.items())
    assert budget_s - TRIAL_S * max(arms.values()) < spent_s == short.now_s <= budget_s


def test_lanes_of_a_replay_come_up_while_none_runs_and_save_time(tmp_path: Path) -> None:
    slow = [replace(each, phases_s={"client": 30.0}, metrics={**each.metrics, **QUIET}) for each in results()]
    known, matrix = scheduling.recorded(data_of(tmp_path, slow)), replace(MATRIX, lanes=AUTO)
    one, four = (
        scheduling.Replay(matrix, known, 1e6, lanes=lanes, cores=8, up_s=3.0, seed=1).run() for lanes in (1, 4)
    )
    assert four.scheduler.settled().keys() == one.scheduler.settled().keys()
    assert one.idle_s == 0
    assert one.now_s / 4 < four.now_s < one.now_s / 2


def test_blocks_with_a_trial_that_is_no_data_are_not_replayed(tmp_path: Path) -> None:
    first, *others = results()
    known = scheduling.recorded(data_of(tmp_path, [replace(first, outcome=Outcome.INVALID, reason="made up"), *others]))
    assert {condition: len(blocks) for condition, blocks in known.items()} == {
        condition.id: SETTLED_SOON - (condition.id == first.trial.block.condition.id) for condition in MATRIX.conditions
    }


def test_the_bench_of_scheduling_prints_what_was_settled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = replace(MATRIX, repeat=Repetition(least=3, most=60))
    with fake.recorded(tmp_path, matrix, results()) as run:
        folder = run.folder
    scheduling.main([str(folder), "--lanes", "1", "--times", "2"])
    *rows, total = capsys.readouterr().out.splitlines()
    assert [row.startswith("6 of 6 settled; ") for row in rows] == [True, True]
    assert total == "median 6.0, mean 6.0"


def test_the_bench_of_answers_counts_what_had_ended_by_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timed = [replace(each, started_at=1e9 + TRIAL_S * number) for number, each in enumerate(results())]
    with fake.recorded(tmp_path, MATRIX, timed) as run:
        folder = run.folder
    half, whole_minutes = len(timed) // 2, TRIAL_S * len(timed) / 60
    answered.main([str(folder), "--minutes", f"{TRIAL_S * half / 60},{whole_minutes}", "--within", "1.01"])
    *_, first, last = ([cell.strip() for cell in row.split("|")[3:-1]] for row in capsys.readouterr().out.splitlines())
    assert [first[1], last[1]] == [str(half), str(len(timed))]
    assert int(first[0]) < int(last[0]) == SETTLED_SOON * len(MATRIX.conditions)
    assert first[2] == last[2] == "6"
    assert int(first[3]) < int(last[3]) == 6, "sure"
    assert int(first[4]) < int(last[4]) == 6, "sure or bounded"


def csv_of(folder: Path, factor: float, blocks: int, outcome: str = "ok") -> Path:
    """A run folder with the given blocks, in which h3 is `factor` times as fast as h2, give or take 4 %."""
    folder.mkdir()
    drawn = random.Random(f"{folder.name} {blocks}")
    lines = ["profile,workload,arm,block,outcome,total_s"]
    for block in range(blocks):
        lines.append(f"clean,page,h2,{block},ok,{factor * drawn.lognormvariate(0, 0.04)}")
        lines.append(f"clean,page,h3,{block},{outcome},1.0")
    (folder / "trials.csv").write_text("\n".join(lines))
    return folder


def test_two_revisions_tie_shift_or_have_too_few_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def verdict(factor: float, blocks: int) -> str:
        before, after = tmp_path / f"before-{factor}-{blocks}", tmp_path / f"after-{factor}-{blocks}"
        same.main(["--before", str(csv_of(before, 1.2, blocks)), "--after", str(csv_of(after, factor, blocks))])
        (line,) = capsys.readouterr().out.splitlines()[2:]
        assert line.startswith(f"| clean/page | h3 against h2 | {blocks}, {blocks} | 1.")
        return line.split("|")[-2].strip()

    assert [verdict(1.2, 100), verdict(1.32, 100), verdict(1.2, 2)] == ["tie", "shift", "unknown"]


def test_trials_that_did_not_finish_are_in_no_ratio(tmp_path: Path) -> None:
    assert same.ratios([csv_of(tmp_path / "run", 1.2, 5, "timeout")], "total_s") == {}
