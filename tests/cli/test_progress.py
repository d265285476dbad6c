"""What a person sees while a run goes on."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from headwind.cli.progress import Reporter, console, duration, line_of
from headwind.model import Result
from headwind.plan.forecast import Forecast
from headwind.plan.schedule import plan_block, plan_blocks
from impair.profile import Profile
from tests import fake

MATRIX = fake.example_matrix(Profile("clean [b]"), repeat=1)
(BLOCK,) = plan_blocks(MATRIX)
FIRST, SECOND, THIRD = BLOCK.trials()


def showing(*, terminal: bool, results: Sequence[Result] = ()) -> tuple[Reporter, io.StringIO]:
    out = io.StringIO()
    screen = Console(file=out, width=140, force_terminal=terminal, color_system=None)
    return Reporter(screen, Forecast(60.0), MATRIX, results), out


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (40.4, "40 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (720.0, "12 min"),
        (5340.0, "89 min"),
        (5400.0, "1 h 30 min"),
        (11_100.0, "3 h 05 min"),
    ],
)
def test_a_duration_is_as_exact_as_it_is_useful(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_trials_line_has_what_it_was_and_what_came_of_it() -> None:
    line = line_of(fake.ok(FIRST, 2.0), 12, 72)
    assert line.startswith(f"[  12/72] clean [b]/article#0 {FIRST.arm.value} ")
    assert line.split()[-5:] == ["ok", "2.000", "s", "500.0", "req/s"]


def test_a_trial_without_a_time_shows_none_and_says_why_in_one_line() -> None:
    line = line_of(fake.lab_error(FIRST, "the router died\n  router: kernel panic"), 1, 3)
    assert line.endswith("the router died")
    assert "req/s" not in line
    assert "\n" not in line
    assert "stopped after 60.0 s" in line_of(fake.timeout(FIRST), 1, 3)


def test_without_a_terminal_every_trial_is_one_plain_line() -> None:
    show, out = showing(terminal=False)
    with show.showing():
        for trial in (FIRST, SECOND, THIRD):
            show.starting(trial)
            show.finished(fake.ok(trial, 1.0))
    lines = out.getvalue().splitlines()
    assert [line[:8] for line in lines] == ["[   1/3]", "[   2/3]", "[   3/3]"]
    assert all("clean [b]/article#0" in line for line in lines)
    assert "\x1b" not in out.getvalue()


def test_a_resumed_run_counts_on_from_what_is_finished() -> None:
    show, out = showing(terminal=False, results=[fake.ok(FIRST, 1.0), fake.lab_error(SECOND)])
    show.starting(SECOND)
    show.finished(fake.ok(SECOND, 1.0))
    assert out.getvalue().startswith("[   2/3]")


def test_a_block_beyond_the_plan_makes_the_plan_longer() -> None:
    show, out = showing(terminal=False, results=[fake.ok(trial, 1.0) for trial in BLOCK.trials()])
    for trial in plan_block(MATRIX, MATRIX.conditions[0], 1).trials():
        show.starting(trial)
        show.finished(fake.ok(trial, 1.0))
    assert [line[:8] for line in out.getvalue().splitlines()] == ["[   4/6]", "[   5/6]", "[   6/6]"]


def test_a_broken_attempt_is_shown_and_not_counted() -> None:
    show, out = showing(terminal=False)
    show.finished(fake.lab_error(FIRST))
    show.finished(fake.ok(FIRST, 1.0))
    assert [line[:8] for line in out.getvalue().splitlines()] == ["[   0/3]", "[   1/3]"]


def test_on_a_terminal_a_bar_says_what_runs_and_how_long_the_rest_takes() -> None:
    show, out = showing(terminal=True)
    with show.showing():
        show.starting(FIRST)
        show.finished(fake.ok(FIRST, 1.0))
    assert f"clean [b]/article#0 {FIRST.arm.value}" in out.getvalue()
    assert "left" in out.getvalue()
    assert "1/3" in out.getvalue()


def test_the_time_left_follows_what_was_learnt() -> None:
    show, out = showing(terminal=True)
    with show.showing():
        show.finished(fake.ok(FIRST, 1.0))
        for trial in (SECOND, THIRD):
            show._forecast.learn(fake.timeout(trial, 600.0))
        show.starting(SECOND)
    assert "about 20 min left" in out.getvalue()


def test_a_log_file_is_wide_enough_for_tables() -> None:
    assert console().width >= 140
