"""Progress of a run: a bar with the time left on a terminal, else one plain line per trial."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwind.model import Matrix, Outcome, Result, Trial
from headwind.plan.forecast import Forecast
from headwind.plan.schedule import finished_ids, plan_blocks, remaining


def console() -> Console:
    """The console that everything for people goes to; wide enough for tables when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=not sys.stdout.isatty())


def line_of(result: Result, number: int, total: int) -> str:
    """`[ 12/72] loss/article#0 h3  ok  2.13 s  470 req/s  (proof ok)`."""
    trial = result.trial
    figures = trial.block.condition.workload.line(result.metrics)
    reason = f"  {result.reason.splitlines()[0]}" if result.reason else ""
    name = f"{trial.block.condition.id}#{trial.block.index} {trial.arm.value}"
    return f"[{number:>4}/{total}] {name:<32} {result.outcome.value:<8} {figures}{reason}"


class Reporter:
    """Told of every trial's start and end."""

    def __init__(self, out: Console, forecast: Forecast, matrix: Matrix, results: Sequence[Result]) -> None:
        done = finished_ids(results)
        self._out, self._forecast = out, forecast
        self._trials = [trial for block in remaining(plan_blocks(matrix), done) for trial in block]
        self._done, self._total = len(done), len(done) + len(self._trials)
        self._bar: Progress | None = None
        self._task = None
        if out.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"), console=out,
            )  # fmt: skip
            self._task = self._bar.add_task("starting", total=self._total, completed=self._done, left="")

    def starting(self, trial: Trial) -> None:
        """Show what runs now and how long the rest should take; a trial beyond the plan makes the plan longer."""
        planned = {planned.id for planned in self._trials}
        if trial.id not in planned:
            later = [other for other in trial.block.trials() if other.position >= trial.position]
            more = [other for other in later if other.id not in planned]
            self._trials += more
            self._total += len(more)
        if self._bar is not None and self._task is not None:
            left_s = self._forecast.trials_s(self._trials)
            name = f"{trial.block.condition.id}#{trial.block.index} {trial.arm.value}"
            self._bar.update(self._task, description=name, left=f"about {duration(left_s)} left")

    def finished(self, result: Result) -> None:
        """One line per trial; it scrolls above the bar on a terminal."""
        self._forecast.learn(result)
        self._trials = [trial for trial in self._trials if trial.id != result.trial.id]
        if result.outcome is not Outcome.LAB_ERROR:
            self._done += 1
        self._out.print(escape(line_of(result, self._done, self._total)), highlight=False)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, total=self._total)

    @contextmanager
    def showing(self) -> Iterator[Reporter]:
        """The bar is on screen inside."""
        if self._bar is None:
            yield self
        else:
            with self._bar:
                yield self


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
