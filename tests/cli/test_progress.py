"""What a person sees while a run goes on."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from headwind.cli.console import console
from headwind.cli.progress import Reporter, line_of
from headwind.metric import BUSY, MACHINE, PRESSURE
from headwind.model import Matrix, Repetition, Result
from headwind.plan.block_order import plan_block, plan_blocks
from headwind.plan.scheduler import Scheduler
from headwind.proof.spans import UNMOVED
from headwind.verdicts.pairs import pairs_of
from impair.profile import Profile, Rebind, Rebinding
from tests import fake

MATRIX = fake.example_matrix(Profile("clean [b]"), repeat=1)
(BLOCK,) = plan_blocks(MATRIX)
FIRST, SECOND, THIRD = BLOCK.trials()


EXPLAINED = "each line is a block that has ended (one trial of each protocol): network, number, "


class Shown:
    """A scheduler and what is shown of it: told of a result in the order in which the lab does it."""

    def __init__(
        self,
        *,
        terminal: bool,
        matrix: Matrix = MATRIX,
        results: Sequence[Result] = (),
        left_s: float = math.inf,
        verbose: bool = True,
    ) -> None:
        self.out = io.StringIO()
        self.scheduler = Scheduler(matrix, results, lambda: left_s)
        screen = Console(file=self.out, width=140, force_terminal=terminal, color_system=None)
        self.reporter = Reporter(screen, self.scheduler, verbose=verbose)

    def finished(self, result: Result) -> None:
        """A trial ended."""
        self.scheduler.tell([result])
        self.reporter.finished(result)

    @property
    def lines(self) -> list[str]:
        """What is printed, without the line that explains the blocks."""
        return [line for line in self.out.getvalue().splitlines() if not line.startswith(EXPLAINED)]

    @property
    def counts(self) -> list[str]:
        """How the lines begin."""
        return [line[:8] for line in self.out.getvalue().splitlines()]


def test_a_trials_line_has_what_it_was_and_what_came_of_it() -> None:
    line = line_of(fake.ok(FIRST, 2.0), MATRIX, 12, 72)
    assert line.startswith(f"[  12/72] clean [b] #0 {FIRST.arm.name} ")
    assert line.split()[-5:] == ["ok", "2.000", "s", "500.0", "req/s"]


def test_a_trial_without_a_time_shows_none_and_says_why_in_one_line() -> None:
    line = line_of(fake.lab_error(FIRST, "the router died\n  router: kernel panic"), MATRIX, 1, 3)
    assert line.endswith("the router died")
    assert "req/s" not in line
    assert "\n" not in line
    assert "stopped after 60.0 s" in line_of(fake.timeout(FIRST), MATRIX, 1, 3)


def test_where_it_is_asked_for_every_trial_is_one_plain_line() -> None:
    shown = Shown(terminal=False)
    with shown.reporter.showing():
        for trial in (FIRST, SECOND, THIRD):
            shown.reporter.begun(1, trial)
            shown.finished(fake.ok(trial, 1.0))
    assert shown.counts == ["[   1/3]", "[   2/3]", "[   3/3]"]
    assert all("clean [b] #0" in line for line in shown.lines)
    assert "\x1b" not in shown.out.getvalue()


def test_a_resumed_run_counts_on_from_what_is_finished() -> None:
    shown = Shown(terminal=False, results=[fake.ok(FIRST, 1.0), fake.lab_error(SECOND)])
    shown.finished(fake.ok(SECOND, 1.0, attempt=1))
    assert shown.counts == ["[   2/3]"]


def test_while_more_may_follow_a_line_has_no_total() -> None:
    noisy = [fake.ok(trial, 1.0) for trial in BLOCK.trials()]
    shown = Shown(terminal=False, matrix=replace(MATRIX, repeat=Repetition(1, 9)), results=noisy)
    task = shown.scheduler.next()
    assert task
    for trial in task.trials:
        shown.finished(fake.ok(trial, 1.0))
    assert [line[:11] for line in shown.lines] == ["trial clean"] * 3


def test_trials_that_end_before_their_network_changes_are_named_once() -> None:
    moving = replace(MATRIX.conditions[0].profile, rebinding=Rebinding(1.0, Rebind.PORT))
    matrix = fake.example_matrix(moving, repeat=Repetition(2, 9))
    shown = Shown(terminal=False, matrix=matrix, verbose=False)
    for _ in range(2):
        task = shown.scheduler.next()
        assert task
        for trial in task.trials:
            shown.reporter.begun(0, trial)
            result = fake.ok(trial, 0.5)
            early = replace(result.proof, warnings=(f"{UNMOVED}: the client had ended by 1 s",))
            shown.finished(replace(result, proof=early))
        shown.reporter.ended(0)
    named = [line for line in shown.lines if "ended before the network changed" in line]
    assert len(named) == 1


def test_a_broken_attempt_is_shown_and_not_counted() -> None:
    shown = Shown(terminal=False)
    shown.finished(fake.lab_error(FIRST))
    shown.finished(fake.ok(FIRST, 1.0, attempt=1))
    assert shown.counts == ["[   0/3]", "[   1/3]"]


def test_the_time_left_goes_on_while_nothing_is_reported() -> None:
    """It stood still while further testbeds came up, and then jumped by 22 s."""
    left = [90.0]
    matrix = replace(MATRIX, repeat=Repetition(1, 9, budget_s=90.0))
    out = io.StringIO()
    screen = Console(file=out, width=140, force_terminal=True, color_system=None)
    with Reporter(screen, Scheduler(matrix, (), lambda: left[0])).showing() as shown:
        assert shown._bar
        shown._bar.refresh()
        left[0] = 67.0
        shown._bar.refresh()
    assert "1 min 30 s left" in out.getvalue()
    assert "1 min 7 s left" in out.getvalue()


def test_the_end_of_a_block_says_when_its_condition_begins_and_ceases_to_run_without_others() -> None:
    matrix = replace(MATRIX, repeat=Repetition(3, 9))
    shown = Shown(terminal=False, matrix=matrix, verbose=False)
    enough = {BUSY.key: 0.1, MACHINE.key: 0.2, PRESSURE.key: 0.1}
    short = {**enough, MACHINE.key: 0.9, PRESSURE.key: 0.8}
    shown.scheduler.lanes = 3
    trials = list(fake.trials_of(matrix))
    # the first block's trials: short, enough, enough; half of the first two say nothing yet
    of_blocks = [[short, enough, enough], [short, short, short], [enough] * 3]
    for index, block in enumerate(of_blocks):
        for metrics, trial in zip(block, [each for each in trials if each.block.index == index], strict=True):
            shown.reporter.begun(1, trial)
            shown.finished(replace(fake.ok(trial, 1.0), metrics=metrics))
        shown.reporter.ended(1)
    alone = "clean [b]: further blocks run without others next to them, because CPUs were short in half of its trials"
    again = "clean [b]: further blocks may run next to others, because CPUs sufficed in most of its trials"
    lines = [line for line in shown.lines if ": further blocks " in line]
    assert lines == [alone, again]
    assert shown.lines.index(alone) > 1, "not before the second block has ended"


def test_on_a_terminal_a_bar_says_what_runs_and_how_long_the_rest_takes() -> None:
    shown = Shown(terminal=True)
    with shown.reporter.showing():
        shown.reporter.begun(1, FIRST)
        shown.finished(fake.ok(FIRST, 1.0))
        shown.reporter.ended(1)
    assert f"clean [b] #0 {FIRST.arm.name}" in shown.out.getvalue()
    assert "left" in shown.out.getvalue()
    assert "1/3" in shown.out.getvalue()


def test_nothing_of_the_bar_is_left_when_the_run_ends() -> None:
    """Its `64/84` stood above the sentence that counts the trials of the minimum."""
    shown = Shown(terminal=True)
    with shown.reporter.showing():
        shown.finished(fake.ok(FIRST, 1.0))
    assert "\x1b[2K" in shown.out.getvalue().rpartition("1/3")[2]


def test_the_time_left_follows_what_was_learnt() -> None:
    matrix = replace(MATRIX, repeat=Repetition.fixed(2))
    shown = Shown(terminal=True, matrix=matrix)
    with shown.reporter.showing():
        shown.finished(fake.ok(FIRST, 1.0))
        for trial in (SECOND, THIRD):
            shown.finished(fake.timeout(trial, 600.0))
        shown.reporter.ended(1)
    assert "20 min left" in shown.out.getvalue()


def test_with_several_lanes_the_bar_says_what_runs_in_each() -> None:
    shown = Shown(terminal=True)
    with shown.reporter.showing():
        shown.reporter.begun(2, SECOND)
        shown.reporter.begun(1, FIRST)
        shown.finished(fake.ok(FIRST, 1.0))
        shown.reporter.ended(1)
    for trial in (FIRST, SECOND):
        assert f"clean [b] #0 {trial.arm.name}" in shown.out.getvalue()


def run_block(shown: Shown, *results: Result) -> list[str]:
    """The lines of a block with these results, on lane 1."""
    for result in results:
        shown.reporter.begun(1, result.trial)
        shown.finished(result)
    shown.reporter.ended(1)
    return shown.lines


def test_the_lines_of_blocks_are_explained_once_before_the_first() -> None:
    """`h2 beats h3 by median time per request` stood below total times in which h3 was ahead."""
    shown = Shown(terminal=False, verbose=False)
    for block in (BLOCK, plan_block(MATRIX, BLOCK.condition, 1)):
        run_block(shown, *(fake.ok(trial, 1.0) for trial in block.trials()))
    first, *others = shown.out.getvalue().splitlines()
    assert first == f"{EXPLAINED}total time"
    assert len(others) == 2
    assert not any(EXPLAINED in line for line in others)


def test_a_block_is_a_line_with_every_time_and_no_claim_of_who_was_first() -> None:
    shown = Shown(terminal=False, verbose=False)
    took_s = {"h1": 0.59, "h2": 0.65, "h3": 0.6}
    (line,) = run_block(shown, *(fake.ok(trial, took_s[trial.arm.name]) for trial in BLOCK.trials()))
    assert line.startswith("clean [b] #0  h1 590 ms  h2 650 ms  h3 600 ms  (0 s left")
    assert len(line) <= 100


def test_a_trial_that_did_not_go_well_has_its_line_and_its_word_in_the_blocks() -> None:
    shown = Shown(terminal=False, verbose=False)
    timed_out, failed, went_well = sorted(BLOCK.trials(), key=lambda trial: trial.arm.name)
    results = {
        "h1": fake.timeout(timed_out), "h2": fake.failed(failed, 2.0, 990), "h3": fake.ok(went_well, 2.0),
    }  # fmt: skip
    *lines, last = run_block(shown, *(results[trial.arm.name] for trial in BLOCK.trials()))
    assert sorted(line.split("#0 ")[1].split()[1] for line in lines) == ["failed", "timeout"]
    assert last.startswith("clean [b] #0  h1 > 60 s  h2 failed  h3 2.00 s  (0 s left")


def test_of_an_attempt_that_was_made_again_the_last_one_counts() -> None:
    shown = Shown(terminal=False, verbose=False)
    again = [fake.ok(trial, 1.0 if trial == FIRST else 2.0, attempt=1) for trial in BLOCK.trials()]
    last = run_block(shown, fake.lab_error(FIRST), *again)[-1]
    assert f"{FIRST.arm} 1.00 s" in last


def test_two_lanes_keep_their_blocks_apart() -> None:
    matrix = replace(MATRIX, repeat=Repetition.fixed(2))
    one, other = (plan_block(matrix, matrix.conditions[0], index) for index in range(2))
    shown = Shown(terminal=False, matrix=matrix, verbose=False)
    for trial, beside in zip(one.trials(), other.trials(), strict=True):
        shown.reporter.begun(1, trial)
        shown.reporter.begun(2, beside)
        shown.finished(fake.ok(trial, 1.0))
        shown.finished(fake.ok(beside, 3.0))
    shown.reporter.ended(2)
    shown.reporter.ended(1)
    first, second = shown.lines
    assert first.startswith("clean [b] #1  h1 3.00 s  h2 3.00 s  h3 3.00 s")
    assert second.startswith("clean [b] #0  h1 1.00 s  h2 1.00 s  h3 1.00 s")


def test_what_is_left_of_a_budget_is_what_the_scheduler_has() -> None:
    """It was the forecast of when everything is settled, which is another time."""
    shown = Shown(terminal=False, matrix=replace(MATRIX, repeat=Repetition(1, 3)), left_s=600.0, verbose=False)
    (*_, line) = run_block(shown, *(fake.ok(trial, 1.0) for trial in BLOCK.trials()))
    assert shown.scheduler.expected_s(1) < 60
    assert line.endswith(", 10 min left)")


def test_no_block_begins_after_no_seconds_were_left() -> None:
    shown = Shown(terminal=False, matrix=replace(MATRIX, repeat=Repetition(1, 3)), left_s=0.4, verbose=False)
    (*_, line) = run_block(shown, *(fake.ok(trial, 1.0) for trial in BLOCK.trials()))
    assert line.endswith(", 1 s left)")


@pytest.mark.parametrize(("left_s", "words"), [(360.0, "6 min left"), (45.0, "45 s left")])
def test_after_a_block_a_plain_line_says_how_much_is_settled_and_what_time_is_left(left_s: float, words: str) -> None:
    matrix = replace(MATRIX, repeat=Repetition(1, 60))
    shown = Shown(terminal=False, matrix=matrix, left_s=left_s)
    for trial in BLOCK.trials():
        shown.reporter.begun(1, trial)
        shown.finished(fake.timeout(trial, 60.0))
    shown.reporter.ended(1)
    shown.reporter.ended(1)
    sure = "0 of 3 comparisons sure by some metric"
    assert shown.lines[3:] == [f"clean [b] #0  h1 > 60 s  h2 > 60 s  h3 > 60 s  ({sure}, {words})"]


def test_what_a_block_settles_is_said_once_with_its_verdict() -> None:
    matrix = replace(MATRIX, repeat=Repetition(1, 60))
    results = [
        fake.ok(trial, {"h1": 4.0, "h2": 2.0, "h3": 1.0}[trial.arm.name] * (1 + index / 1000))
        for index in range(30)
        for trial in plan_block(matrix, matrix.conditions[0], index).trials()
    ]
    assert Scheduler(matrix, results[:6]).settled() == {}
    shown = Shown(terminal=False, matrix=matrix, results=results)
    shown.reporter.ended(1)
    shown.reporter.ended(1)
    said = shown.lines
    assert "sure: clean [b]: h3 beats h1 by total time" in said
    assert len([line for line in said if line.startswith("sure: ")]) == 3
    assert said[-1].startswith("3 of 3 comparisons sure by some metric, ")


def test_a_comparison_that_a_second_metric_settles_has_no_second_line(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = replace(MATRIX, repeat=Repetition(1, 60))
    shown = Shown(terminal=False, matrix=matrix)
    name, (pair, other) = matrix.conditions[0].id, pairs_of(matrix, matrix.conditions[0])[:2]
    for said in (
        {(name, pair): "clean: h3 beats h1 by mean completion time"},
        {(name, pair): "clean: h3 beats h1", (name, other): "clean: h3 beats h2"},
    ):
        monkeypatch.setattr(Scheduler, "settled", lambda _, said=said: said)
        shown.reporter.ended(1)
    first, count, second, last = shown.lines
    assert (first, second) == (
        "sure: clean: h3 beats h1 by mean completion time (total time not sure yet)", "sure: clean: h3 beats h2",
    )  # fmt: skip
    assert count.startswith("1 of 3 comparisons sure by some metric, ")
    assert last.startswith("2 of 3 comparisons sure by some metric, ")


def test_the_metric_that_settled_a_comparison_is_named() -> None:
    matrix = replace(MATRIX, repeat=Repetition(1, 60))
    rng = random.Random(3)
    results = []
    for index in range(12):
        for trial in plan_block(matrix, matrix.conditions[0], index).trials():
            good = fake.ok(trial, rng.uniform(1, 3))  # the total time says nothing, another metric all
            done_s = {"h1": 4.0, "h2": 2.0, "h3": 1.0}[trial.arm.name] * (1 + index / 1000)
            results.append(replace(good, metrics={**good.metrics, "mean_done_s": done_s}))
    said = list(Scheduler(matrix, results).settled().values())
    assert len(said) == 3
    assert all(line.endswith(" by mean completion time") for line in said)


def test_a_budget_that_is_too_short_for_the_minimum_says_beforehand_what_can_be_settled() -> None:
    matrix = fake.example_matrix(Profile("clean"), fake.PROFILES[2], repeat=Repetition(9, 60, budget_s=60.0))
    once = replace(matrix, repeat=Repetition.fixed(1))
    results = [fake.ok(trial, 4.0 if "clean" in trial.id else 0.01) for trial in fake.trials_of(once)]
    shown = Shown(terminal=False, matrix=matrix, results=results)
    with shown.reporter.showing():
        pass
    said = " ".join(shown.out.getvalue().split())
    # Each has a block already.
    assert said == (
        "1 min is probably too short for the minimum of 9 blocks in clean, so nothing would be sure there; "
        "`--budget 3min` is probably enough for both networks."
    )
    roomy = Shown(terminal=False, matrix=replace(matrix, repeat=Repetition(9, 60, budget_s=6000.0)))
    with roomy.reporter.showing():
        pass
    assert roomy.out.getvalue() == ""


def test_a_network_in_which_everything_is_settled_has_no_minimum_left() -> None:
    matrix = fake.example_matrix(Profile("clean"), fake.PROFILES[2], repeat=Repetition(9, 60, budget_s=60.0))
    clean = replace(matrix, conditions=matrix.conditions[:1], repeat=Repetition.fixed(12))
    done = {"h1": 4.0, "h2": 2.0, "h3": 1.0}
    results = [fake.ok(trial, done[trial.arm.name] * (1 + trial.block.index / 1000)) for trial in fake.trials_of(clean)]
    scheduler = Scheduler(matrix, results)
    assert len(scheduler.settled()) == 3
    assert scheduler.minimum_s().keys() == {matrix.conditions[1].id}


def test_a_resumed_run_counts_what_was_settled_before_and_prints_only_what_is_new() -> None:
    """`--resume` printed each earlier `settled: ...` again, as if it were new."""
    matrix = replace(MATRIX, repeat=Repetition(least=9, most=60))
    done = {"h1": 4.0, "h2": 2.0, "h3": 1.0}
    results = [
        fake.ok(trial, done[trial.arm.name] * (1 + index / 1000))
        for index in range(30)
        for trial in plan_block(matrix, matrix.conditions[0], index).trials()
    ]
    shown = Shown(terminal=False, matrix=matrix, results=results)
    with shown.reporter.showing():
        shown.reporter.ended(1)
    said = shown.lines
    assert f"already sure by at least one metric: 3 of {shown.scheduler.comparisons} comparisons" in said
    assert not any(line.startswith("sure: ") for line in said)


def test_what_is_shown_teaches_nothing() -> None:
    shown = Shown(terminal=False)
    shown.reporter.finished(fake.ok(FIRST, 50.0))
    assert shown.scheduler.forecast.learnt == {}


def test_a_log_file_is_wide_enough_for_tables() -> None:
    assert console().width >= 140
