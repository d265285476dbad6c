"""How to resume a run that is not finished, or in which more blocks can settle more: why, the effect, the command."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headwind.cli.doctor import lanes_here
from headwind.format import about, budget_text, counted, listed
from headwind.model import Matrix
from headwind.plan.minimum import affordable, at_most, enough_s, guessed
from headwind.plan.scheduler import Scheduler
from headwind.report.verdicts import LEAST_FOR_FORECAST
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.verdicts.ended import complete
from headwind.verdicts.pending import Open
from headwind.verdicts.stats import fewest_blocks

ROOT = Path(__file__).resolve().parent.parent.parent


def how_to_resume(run: Run, data: RunData, cluster: str | None = None, budget_s: float | None = None) -> list[str]:
    """Two lines, a sentence and a command; none if the run is in progress, or finished with nothing left to run.

    `budget_s` is the last one that was given, if it is not that of the matrix.
    """
    matrix, state = run.matrix, data.status.state
    if budget_s is not None:
        matrix = replace(matrix, repeat=replace(matrix.repeat, budget_s=budget_s))
    if state is State.RUNNING:
        return []
    lanes = lanes_here(matrix.lanes)
    scheduler = Scheduler(matrix, data.results, lambda: math.inf, lanes, os.cpu_count() or 1, judge=data.judge)
    is_done = scheduler.next() is None
    if is_done and state is State.FINISHED:
        return []
    why = _why(matrix, data) if state is State.FINISHED else "Not finished"
    more = More.of(scheduler, data.judgement.open)
    effect = "" if is_done else f"; {_effect(scheduler, more)}"
    return [f"{why}{effect}. Resume with:", f"  {_command(run, more.budget_s, cluster)}"]


@dataclass(frozen=True, slots=True)
class More:
    """What can still be settled, and for how long to go on: the last budget, or one that is long enough.

    `costs` are in seconds by condition id, `short` the ids of those for which the last budget is too short, and
    `beyond` of those that need more blocks than the matrix allows.
    """

    budget_s: float | None
    costs: Mapping[str, float]
    short: Sequence[str] = ()
    beyond: Sequence[str] = ()

    @classmethod
    def of(cls, scheduler: Scheduler, still_open: Sequence[Open]) -> More:
        """A longer budget completes the minimum of every condition, or settles something in one at least."""
        repeat = scheduler.matrix.repeat
        if not repeat.is_adaptive or repeat.budget_s is None or scheduler.matrix.find:
            return cls(repeat.budget_s if repeat.is_adaptive else None, {})
        costs = _costs(scheduler, still_open)
        minimum = at_most(scheduler.minimum_s(), guessed(scheduler.matrix, scheduler.forecast))
        least = {name: cost_s for name, cost_s in minimum.items() if cost_s}
        first = dict(sorted(costs.items(), key=lambda item: item[1])[:1])
        fitting = {*affordable(least, repeat.budget_s), *affordable(first, repeat.budget_s)}
        short = [name for name in {**least, **first} if name not in fitting]
        wanted_s = max(sum(least.values()), *first.values(), 0.0)
        budget_s = enough_s(wanted_s) if short else repeat.budget_s
        beyond = [each.condition.id for each in still_open if _is_beyond(each, repeat.confidence)]
        return cls(budget_s, costs, short, beyond)


def _command(run: Run, budget_s: float | None, cluster: str | None) -> str:
    words = [_from_here(Path(sys.executable)), _from_here(ROOT / "lab.py"), "run", "--resume", str(run.folder)]
    words += ["--budget", budget_text(budget_s)] if budget_s else []
    return shlex.join([*words, *(["--cluster", cluster] if cluster else [])])


def _from_here(path: Path) -> str:
    """The path as typed in the working directory: relative if it is inside."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _why(matrix: Matrix, data: RunData) -> str:
    """What is open after a run that ended by itself."""
    left = [pair for item in data.judgement.open for pair in item.pairs if not pair.is_check]
    if left:
        return f"{len(left)} of {counted(len(data.judgement.compared), 'comparison')} are not settled"
    if matrix.find:
        return "The search is not finished"
    short = [each for each in matrix.conditions if complete(data.rows.get(each.id, {})) < matrix.repeat.least]
    if short:
        of = counted(len(matrix.conditions), matrix.place)
        return f"{len(short)} of {of} have fewer than the {matrix.repeat.least} blocks requested"
    return "Self-checks are not settled"


def _effect(scheduler: Scheduler, more: More) -> str:
    """What the budget may settle; of a fixed number of blocks, what is left."""
    matrix = scheduler.matrix
    if not matrix.repeat.is_adaptive:
        done, total = scheduler.counts
        return f"{counted(total - done, 'trial')} are left, about {about(scheduler.expected_s(1))} on one lane"
    if more.budget_s is None or matrix.repeat.budget_s is None:
        return "it then runs until everything is settled"
    if matrix.find:
        return f"{about(more.budget_s)} more may narrow it"
    names = {condition.id: matrix.name_of(condition) for condition in matrix.conditions}
    fitting = affordable(more.costs, more.budget_s)
    where = listed([names[each] for each in fitting])
    of = counted(len(names), matrix.place)
    settles = f"may settle something in {len(fitting)} of {of} ({where})" if fitting else "will probably settle nothing"
    too_short = f", {about(matrix.repeat.budget_s)} is too short for {listed([names[each] for each in more.short])}"
    beyond = f"; for {listed([names[each] for each in more.beyond])} raise `max` ({matrix.repeat.most}) in a new run"
    return f"{about(more.budget_s)} more {settles}{too_short if more.short else ''}{beyond if more.beyond else ''}"


def _costs(scheduler: Scheduler, still_open: Sequence[Open]) -> dict[str, float]:
    """By condition id, the seconds after which something more is probably settled; absent if it cannot be.

    The forecast is that of the report (headwind/report/verdicts.py, more_text).
    """
    least, repeat = scheduler.minimum_s(), scheduler.matrix.repeat
    costs: dict[str, float] = {}
    for item in still_open:
        name, share = item.condition.id, scheduler.needs.share(item.condition, scheduler.lanes)
        blocks = item.soonest.blocks if item.n >= LEAST_FOR_FORECAST else 0
        if blocks is not None and not _is_beyond(item, repeat.confidence):
            costs[name] = max(least[name], blocks * item.block_s * share)
    return costs


def _is_beyond(item: Open, confidence: float) -> bool:
    """Whether the maximum of the matrix is what keeps its comparisons from being settled."""
    if item.most < fewest_blocks(confidence, anytime=True):
        return True
    blocks = item.soonest.blocks
    return item.n >= LEAST_FOR_FORECAST and blocks is not None and not item.allows(item.soonest)
