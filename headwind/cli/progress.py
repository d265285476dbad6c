"""Progress of a run: a bar with the time left on a terminal, else one plain line per trial."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwind.format import about
from headwind.model import Result, Trial
from headwind.plan.forecast import short_of_time
from headwind.plan.scheduler import Scheduler


def console() -> Console:
    """The console that everything for people goes to; wide enough for tables when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=not sys.stdout.isatty())


def line_of(result: Result, number: int, total: int) -> str:
    """`[ 12/72] loss/article#0 h3  ok  2.13 s  470 req/s  (proof ok)`."""
    trial = result.trial
    figures = trial.workload.line(result.metrics)
    reason = f"  {result.reason.splitlines()[0]}" if result.reason else ""
    name = f"{trial.block.condition.id}#{trial.block.index} {trial.arm.name}"
    return f"[{number:>4}/{total}] {name:<32} {result.outcome.value:<8} {figures}{reason}"


class Reporter:
    """Told of every trial's start and end; it asks the scheduler how far the run is, and tells it nothing."""

    def __init__(self, out: Console, scheduler: Scheduler) -> None:
        self._out, self._scheduler = out, scheduler
        self._lanes: dict[int, str] = {}  # what runs in each
        self._settled: list[str] = []
        self._said = ""  # how far the run is: `settled 9 of 24, 6 min left`
        self._bar: Progress | None = None
        self._task = None
        if out.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("{task.fields[state]}"), console=out,
            )  # fmt: skip
            done, total = scheduler.counts
            self._task = self._bar.add_task("starting", total=total, completed=done, state="")

    def begun(self, lane: int, trial: Trial) -> None:
        """Show what runs now."""
        self._lanes[lane] = f"{trial.block.id} {trial.arm.name}"
        self._show()

    def finished(self, result: Result) -> None:
        """One line per trial, of which the scheduler was told before; it scrolls above the bar on a terminal."""
        self._out.print(escape(line_of(result, *self._scheduler.counts)), highlight=False)
        self._show()

    def ended(self, lane: int) -> None:
        """A block has ended: what it settled, how far the run is, and how long it should take yet."""
        words = f"{about(self._scheduler.expected_s(len(self._lanes)))} left"
        self._lanes.pop(lane, None)
        if self._scheduler.matrix.repeat.is_adaptive:
            settled = self._scheduler.settled()
            for verdict in settled:
                if verdict not in self._settled:
                    self._out.print(escape(f"settled: {verdict}"), highlight=False)
            self._settled = settled
            words = f"settled {len(settled)} of {self._scheduler.comparisons}, {words}"
        if self._bar is None and words != self._said:
            self._out.print(words, highlight=False)
        self._said = words
        self._show()

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            done, total = self._scheduler.counts
            running = "\n".join(name for _, name in sorted(self._lanes.items()))
            self._bar.update(self._task, description=running, completed=done, total=total, state=self._said)

    @contextmanager
    def showing(self) -> Iterator[Reporter]:
        """The bar is on screen inside; before that, what will not fit into the time."""
        if warning := short_of_time(self._scheduler.matrix, self._scheduler.forecast, self._scheduler.lanes):
            self._out.print(escape(warning), highlight=False)
        if self._bar is None:
            yield self
        else:
            with self._bar:
                yield self
