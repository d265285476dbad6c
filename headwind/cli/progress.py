"""Progress of a run: a line for each block, and on a terminal a bar with the state of each lane and the time left.

Also other labs on this machine: the first is printed, and each is recorded with the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from headwind.arm import Arm
from headwind.clock import Clock
from headwind.format import about, counted, observed_text
from headwind.model import Block, Condition, Matrix, Outcome, Result, Trial
from headwind.observed import figure
from headwind.plan.cpu_demand import changes_in_time
from headwind.plan.doubts import changes_missed
from headwind.plan.minimum import guessed, what_a_budget_settles
from headwind.plan.scheduler import Scheduler
from headwind.proof.spans import earlier_moment
from headwind.report.trust import OTHER_LABS
from headwind.run.journal import Run
from headwind.testbed.docker import DockerError, Say
from headwind.verdicts.findings import judged_metrics
from headwind.verdicts.pairs import Pair

REFRESH_PER_S = 2  # of the bar: a higher rate uses CPU time that trials may need


def line_of(result: Result, matrix: Matrix, number: int, total: int) -> str:
    """The line of a trial: `[ 12/72] loss #0 h3  ok  2.13 s  470 req/s`; `trial` if their number is not fixed."""
    trial = result.trial
    figures = trial.workload.line(result.metrics)
    reason = f"  {result.reason.splitlines()[0]}" if result.reason else ""
    name = f"{matrix.name_of(trial.block.condition)} #{trial.block.index} {trial.arm.name}"
    begin = "trial" if matrix.repeat.is_adaptive else f"[{number:>4}/{total}]"
    return f"{begin} {name:<32} {result.outcome.value:<8} {figures}{reason}"


def block_line(block: Block, row: Mapping[Arm, Result], matrix: Matrix) -> str:
    """The line of a block, with the latest attempt of every arm: `delay #49  h1 590 ms  h2 650 ms  h3 600 ms`."""
    metric = block.condition.workload.primary()

    def shown(result: Result | None) -> str:
        if result is None:
            return "not run"  # the block is repeated on another testbed
        is_time = result.outcome in (Outcome.OK, Outcome.TIMEOUT)
        return observed_text(metric.key, figure(result, metric)) if is_time else result.outcome.value

    parts = [f"{arm} {shown(row.get(arm))}" for arm in matrix.arms_in(block.condition)]
    return "  ".join([f"{matrix.name_of(block.condition)} #{block.index}", *parts])


class Reporter:
    """Prints the progress of a run from its events. It reads the scheduler and changes nothing in it.

    Trials have their own lines with `verbose`, and if their outcome is not `ok`.
    """

    def __init__(self, out: Console, scheduler: Scheduler, *, verbose: bool = False) -> None:
        self._out, self._scheduler, self._verbose = out, scheduler, verbose
        self._lanes: dict[int, str] = {}  # lane -> text on what it runs
        self._blocks: dict[int, Block] = {}  # lane -> its current block
        self._rows: dict[str, dict[Arm, Result]] = {}  # block id -> its results so far
        self._settled: set[tuple[str, Pair]] = set()  # comparisons that were printed as sure
        self._state = ""  # progress of the run when the last block ended: `9 of 24 comparisons sure, 6 min left`
        self._sure = ""  # its first part
        self._by = " by at least one metric" if len(judged_metrics(scheduler.matrix)) > 1 else ""
        self._is_explained = False  # the lines of blocks
        self._alone: set[str] = set()  # ids of conditions that were printed as running alone
        self._early: set[str] = set()  # ids of conditions that were printed as not changing during their trials
        self._bar: Progress | None = None
        self._task = None
        if out.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                _Live(self._now), console=out, refresh_per_second=REFRESH_PER_S, transient=True,
            )  # fmt: skip
            done, total = scheduler.counts
            self._state = self._time()
            self._task = self._bar.add_task("starting", total=total, completed=done)

    def begun(self, lane: int, trial: Trial) -> None:
        """Show the trial that now runs in a lane."""
        block, matrix = trial.block, self._scheduler.matrix
        self._lanes[lane], self._blocks[lane] = f"{matrix.name_of(block.condition)} #{block.index} {trial.arm}", block
        self._show()

    def finished(self, result: Result) -> None:
        """Record a result that the scheduler already has; on a terminal its line scrolls above the bar."""
        self._rows.setdefault(result.trial.block.id, {})[result.trial.arm] = result
        if self._verbose or result.outcome is not Outcome.OK:
            self._out.print(escape(line_of(result, self._scheduler.matrix, *self._scheduler.counts)), highlight=False)
        self._show()

    def _print_alone(self, condition: Condition) -> None:
        """Print why a condition's next blocks run without others, or that they no longer do."""
        needs, where = self._scheduler.needs, self._scheduler.matrix.name_of(condition)
        was_short = condition.id in self._alone
        is_short = needs.is_short(condition) or (was_short and needs.runs_alone(condition))
        if self._scheduler.lanes == 1 or is_short == was_short:
            return
        self._alone ^= {condition.id}
        alone = (
            f"{where}: further blocks run without others next to them, because CPUs were short in half of its trials"
        )
        again = f"{where}: further blocks may run next to others, because CPUs sufficed in most of its trials"
        self._out.print(escape(alone if is_short else again), highlight=False)

    def _print_early(self, condition: Condition) -> None:
        """Print once that a condition's trials end before its network changes."""
        if condition.id in self._scheduler.early and condition.id not in self._early:
            self._early.add(condition.id)
            name = self._scheduler.matrix.name_of(condition)
            advice = f"stop, and {earlier_moment(condition.workload)}"
            text = f"most trials of {name} ended before the network changed, so nothing can be sure there: {advice}"
            self._out.print(escape(text), highlight=False)

    def ended(self, lane: int) -> None:
        """Record the end of a block: print its newly settled comparisons, the progress and the time left."""
        matrix = self._scheduler.matrix
        state = self._time()
        self._lanes.pop(lane, None)
        block = self._blocks.pop(lane, None)
        line = block_line(block, self._rows.pop(block.id, {}), matrix) if block else ""
        if matrix.repeat.is_adaptive:
            settled = self._scheduler.settled()
            for comparison, verdict in settled.items():
                if comparison not in self._settled:
                    shown = _compared_by(matrix, comparison[0])
                    is_by_other = " by " in verdict.rpartition(": ")[2] and not verdict.endswith(f" by {shown}")
                    other = f" ({shown} not sure yet)" if is_by_other else ""
                    self._out.print(escape(f"sure: {verdict}{other}"), highlight=False)
            self._settled |= settled.keys()
            by = " by some metric" if self._by else ""
            self._sure = f"{len(settled)} of {self._scheduler.comparisons} comparisons sure{by}, "
            state = f"{self._sure}{state}"
        if self._bar is None and state != self._state:
            line = f"{line}  ({state})" if line else state
        if line:
            self._explain_lines()
            self._out.print(escape(line), highlight=False)
        if block:
            self._print_alone(block.condition)
            self._print_early(block.condition)
        self._state = state
        self._show()

    def _explain_lines(self) -> None:
        """Print once which metric the lines of blocks have."""
        if self._is_explained:
            return
        self._is_explained, matrix = True, self._scheduler.matrix
        labels = dict.fromkeys(item.workload.primary().label for item in matrix.conditions)
        of = f"one trial of each {matrix.arms_word}"
        text = f"each line is a block that has ended ({of}): {matrix.place}, number, {' or '.join(labels)}"
        if matrix.selfcheck:
            name = matrix.selfcheck.arm.name
            checks = [f"{name}-again repeats {name}"] * bool(matrix.selfcheck.again)
            checks += [f"{name}-slower has a network made slower"] * bool(matrix.selfcheck.slower)
            text += f" (self-checks: {', '.join(checks)})" if checks else ""
        self._out.print(escape(text), highlight=False)

    def _now(self) -> str:
        """The progress at this moment; without a budget, when the last block ended."""
        return f"{self._sure}{self._time()}" if self._scheduler.matrix.repeat.budget_s is not None else self._state

    def _time(self) -> str:
        """Time left, of a budget as the scheduler counts it, else the forecast: `40 s left`."""
        scheduler, budget_s = self._scheduler, self._scheduler.matrix.repeat.budget_s
        if budget_s is None:
            return f"{about(scheduler.expected_s(scheduler.lanes))} left"
        left_s = max(0, math.ceil(min(scheduler.left_s(), budget_s)))  # no block begins when 0 s are left
        return f"{about(left_s)} left"

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            done, total = self._scheduler.counts
            running = "\n".join(name for _, name in sorted(self._lanes.items()))
            self._bar.update(self._task, description=running, completed=done, total=total)

    @contextmanager
    def showing(self) -> Iterator[Reporter]:
        """Show the bar for the code inside, after a warning about what will not fit into the time."""
        scheduler = self._scheduler
        matrix, start_s, costs = scheduler.matrix, scheduler.start_s, scheduler.minimum_s()
        guesses, unverified = guessed(matrix, scheduler.forecast), scheduler.unverified
        lanes = scheduler.lanes_for([name for name, cost_s in costs.items() if cost_s])
        if warning := what_a_budget_settles(matrix, costs, guesses, start_s, lanes, unverified):
            self._out.print(escape(warning), highlight=False)
        rows = (row for each in matrix.conditions for row in scheduler.judge.rows_of(each.id).values())
        for note in changes_missed(matrix, scheduler.forecast, (result for row in rows for result in row.values())):
            self._out.print(escape(note), highlight=False)
        if matrix.repeat.is_adaptive and (earlier := scheduler.settled()):
            self._settled |= earlier.keys()
            self._out.print(
                f"already sure{self._by}: {len(self._settled)} of {scheduler.comparisons} comparisons",
                highlight=False,
            )
        if self._bar is None:
            yield self
        else:
            with self._bar:
                yield self


class _Live(ProgressColumn):
    """A text that is made at each refresh of the bar."""

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        """The text, whatever the task."""
        del task
        return Text(self._text())


SHARED = (
    "times are longer and vary more, so verdicts need more blocks; if both must run at once, start each with `LANES=1`"
)
LOOK_EVERY_S = 30.0  # `docker ps` and `docker inspect` take a tenth of a second


@dataclass(slots=True)
class Beside:
    """Checks for other labs (`look`). The run's environment records each, with the times it was first and last seen."""

    run: Run
    other_labs: Callable[[], Mapping[str, int]]  # owner -> number of testbeds
    say: Say
    clock: Clock
    _due_s: float = float("-inf")

    def look(self) -> None:
        """Check again if the next check is due. If Docker does not answer, the next check is the next attempt."""
        if self.clock.monotonic() < self._due_s:
            return
        self._due_s = self.clock.monotonic() + LOOK_EVERY_S
        with suppress(DockerError):
            if found := self.other_labs():
                self._note(found)

    def _note(self, found: Mapping[str, int]) -> None:
        now = time.time()
        known = {lab["owner"]: lab for lab in self.run.environment.get(OTHER_LABS, ())}
        for owner, testbeds in found.items():
            if not known:
                host, pid, *_ = [*owner.split(":"), "?"]
                has = f"(process {pid} on host {host}) has {counted(testbeds, 'testbed')} on this machine"
                changes = any(map(changes_in_time, self.run.matrix.conditions))
                late = "; networks that change may miss their moments, and such trials are invalid" if changes else ""
                self.say(f"another Headwind run {has}; {SHARED}{late}")
            before = known.get(owner, {"from": now, "testbeds": 0})
            most = max(before["testbeds"], testbeds)
            known[owner] = {"owner": owner, "testbeds": most, "from": before["from"], "to": now}
        self.run.note_environment(**{OTHER_LABS: list(known.values())})


def _compared_by(matrix: Matrix, condition: str) -> str:
    """Label of the metric by which a condition's protocols are compared first."""
    return next(matrix.judged(item)[0].label for item in matrix.conditions if item.id == condition)
