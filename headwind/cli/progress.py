"""Progress of a run: a line for each block, and on a terminal a bar with what each lane does and the time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwind.arm import Arm
from headwind.format import about, observed_text
from headwind.model import Block, Matrix, Outcome, Result, Trial
from headwind.observed import figure
from headwind.plan.minimum import guessed, what_a_budget_settles
from headwind.plan.scheduler import Scheduler
from headwind.verdicts.findings import Pair

REFRESH_PER_S = 2  # of the bar: more often takes a share of a processor that the trials may want


def console() -> Console:
    """The console that everything for people goes to; wide enough for tables when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=not sys.stdout.isatty())


def line_of(result: Result, matrix: Matrix, number: int, total: int) -> str:
    """`[ 12/72] loss #0 h3  ok  2.13 s  470 req/s`."""
    trial = result.trial
    figures = trial.workload.line(result.metrics)
    reason = f"  {result.reason.splitlines()[0]}" if result.reason else ""
    name = f"{matrix.name_of(trial.block.condition)} #{trial.block.index} {trial.arm.name}"
    return f"[{number:>4}/{total}] {name:<32} {result.outcome.value:<8} {figures}{reason}"


def block_line(block: Block, row: Mapping[Arm, Result], matrix: Matrix) -> str:
    """`delay #49  h1 590 ms  h2 650 ms  h3 600 ms`: the latest attempt of every arm that ran."""
    metric = block.condition.workload.primary()
    told = [f"{matrix.name_of(block.condition)} #{block.index}"]
    for arm in matrix.arms_in(block.condition):
        if result := row.get(arm):
            is_time = result.outcome in (Outcome.OK, Outcome.TIMEOUT)
            told.append(
                f"{arm} {observed_text(metric.key, figure(result, metric)) if is_time else result.outcome.value}"
            )
    return "  ".join(told)


class Reporter:
    """Told of every trial's start and end; it asks the scheduler how far the run is, and tells it nothing.

    Trials have lines of their own where that is asked for (`verbose`), and where they did not go well.
    """

    def __init__(self, out: Console, scheduler: Scheduler, *, verbose: bool = False) -> None:
        self._out, self._scheduler, self._verbose = out, scheduler, verbose
        self._lanes: dict[int, str] = {}  # what runs in each
        self._blocks: dict[int, Block] = {}  # of which block that is
        self._rows: dict[str, dict[Arm, Result]] = {}  # what came of it so far, by the block's id
        self._settled: set[tuple[str, Pair]] = set()  # comparisons that had their line
        self._said = ""  # how far the run is: `settled 9 of 24, 6 min left`
        self._bar: Progress | None = None
        self._task = None
        if out.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("{task.fields[state]}"), console=out, refresh_per_second=REFRESH_PER_S,
            )  # fmt: skip
            done, total = scheduler.counts
            self._task = self._bar.add_task("starting", total=total, completed=done, state="")

    def begun(self, lane: int, trial: Trial) -> None:
        """Show what runs now."""
        block, matrix = trial.block, self._scheduler.matrix
        self._lanes[lane], self._blocks[lane] = f"{matrix.name_of(block.condition)} #{block.index} {trial.arm}", block
        self._show()

    def finished(self, result: Result) -> None:
        """A trial has ended, of which the scheduler was told before; its line scrolls above the bar on a terminal."""
        self._rows.setdefault(result.trial.block.id, {})[result.trial.arm] = result
        if self._verbose or result.outcome is not Outcome.OK:
            self._out.print(escape(line_of(result, self._scheduler.matrix, *self._scheduler.counts)), highlight=False)
        self._show()

    def ended(self, lane: int) -> None:
        """A block has ended: what it settled, how far the run is, and how long it should take yet."""
        matrix = self._scheduler.matrix
        words = f"{about(self._scheduler.expected_s(len(self._lanes)))} left"
        words += f" of {about(matrix.repeat.budget_s)}" if matrix.repeat.budget_s else ""
        self._lanes.pop(lane, None)
        block = self._blocks.pop(lane, None)
        line = block_line(block, self._rows.pop(block.id, {}), matrix) if block else ""
        if matrix.repeat.is_adaptive:
            settled = self._scheduler.settled()
            for comparison, verdict in settled.items():
                if comparison not in self._settled:
                    self._out.print(escape(f"settled: {verdict}"), highlight=False)
            self._settled |= settled.keys()
            words = f"settled {len(settled)} of {self._scheduler.comparisons}, {words}"
        if self._bar is None and words != self._said:
            line = f"{line}  ({words})" if line else words
        if line:
            self._out.print(escape(line), highlight=False)
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
        scheduler = self._scheduler
        guesses = guessed(scheduler.matrix, scheduler.forecast)
        if warning := what_a_budget_settles(scheduler.matrix, scheduler.minimum_s(), scheduler.lanes, guesses):
            self._out.print(escape(warning), highlight=False)
        if self._bar is None:
            yield self
        else:
            with self._bar:
                yield self
