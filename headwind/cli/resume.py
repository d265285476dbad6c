"""How to resume a run that is not finished, or in which more blocks can settle more: why, the effect, the command."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from headwind.cli.doctor import lanes_here
from headwind.format import about, counted, listed
from headwind.model import Matrix
from headwind.plan.minimum import affordable
from headwind.plan.scheduler import Scheduler
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.verdicts.ended import complete
from headwind.verdicts.pending import Open
from headwind.verdicts.stats import fewest_blocks

ROOT = Path(__file__).resolve().parent.parent.parent


def how_to_resume(run: Run, data: RunData, cluster: str | None = None) -> list[str]:
    """Two lines, a sentence and a command; none if the run is in progress, or finished with nothing left to run."""
    matrix, state = run.matrix, data.status.state
    if state is State.RUNNING:
        return []
    lanes = lanes_here(matrix.lanes)
    scheduler = Scheduler(matrix, data.results, lambda: math.inf, lanes, os.cpu_count() or 1, judge=data.judge)
    is_done = scheduler.next() is None
    if is_done and state is State.FINISHED:
        return []
    why = _why(matrix, data) if state is State.FINISHED else "Not finished"
    effect = "" if is_done else f"; {_effect(scheduler, data.judgement.open)}"
    return [f"{why}{effect}. Resume with:", f"  {_command(run, cluster)}"]


def _command(run: Run, cluster: str | None) -> str:
    repeat = run.matrix.repeat
    words = [_from_here(Path(sys.executable)), _from_here(ROOT / "lab.py"), "run", "--resume", str(run.folder)]
    words += ["--budget", budget_text(repeat.budget_s)] if repeat.is_adaptive and repeat.budget_s else []
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


def _effect(scheduler: Scheduler, still_open: Sequence[Open]) -> str:
    """What the budget of the matrix, once more, may settle; of a fixed number of blocks, what is left."""
    matrix = scheduler.matrix
    budget_s = matrix.repeat.budget_s
    if not matrix.repeat.is_adaptive:
        done, total = scheduler.counts
        return f"{counted(total - done, 'trial')} are left, about {about(scheduler.expected_s(1))} on one lane"
    if budget_s is None:
        return "it then runs until everything is settled"
    if matrix.find:
        return f"{about(budget_s)} more may narrow it"
    costs = _costs(scheduler, still_open)
    names = {condition.id: matrix.name_of(condition) for condition in matrix.conditions}
    fitting = affordable(costs, budget_s)
    if fitting:
        of = counted(len(names), matrix.place)
        where = listed([names[each] for each in fitting])
        return f"{about(budget_s)} more may settle something in {len(fitting)} of {of} ({where})"
    if not costs:
        return f"{about(budget_s)} more will probably settle nothing"
    first = min(costs, key=lambda name: costs[name])
    return (
        f"{about(budget_s)} more is probably too short to settle any: {names[first]} needs about {about(costs[first])}"
    )


def _costs(scheduler: Scheduler, still_open: Sequence[Open]) -> dict[str, float]:
    """By condition id, the seconds after which something more is settled if all goes well; absent if it cannot be."""
    least, repeat = scheduler.minimum_s(), scheduler.matrix.repeat
    costs: dict[str, float] = {}
    if repeat.most < fewest_blocks(repeat.confidence, anytime=True):
        return costs
    for item in still_open:
        name, share = item.condition.id, scheduler.needs.share(item.condition, scheduler.lanes)
        if least[name]:
            costs[name] = least[name]
        elif item.fewest is not None and item.n + item.fewest <= item.most:
            costs[name] = item.fewest * item.block_s * share
    return costs


def budget_text(seconds: float) -> str:
    """A budget as `--budget` takes it, in whole seconds: 900.0 -> `15min`."""
    whole = math.ceil(seconds)
    size, unit = next((each for each in ((3600, "h"), (60, "min")) if whole % each[0] == 0), (1, "s"))
    return f"{whole // size}{unit}"
