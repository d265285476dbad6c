"""`lab.py plan`: lists what would run, and about how long it takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headwind.cli.doctor import lanes_here
from headwind.errors import HeadwindError
from headwind.format import about, blocks_text, counted, duration
from headwind.model import Block, Matrix, Result
from headwind.plan.forecast import START_S, Forecast
from headwind.plan.minimum import guessed, minimum_s, what_a_budget_settles
from headwind.plan.needs import Needs
from headwind.plan.schedule import plan_block, plan_blocks
from headwind.proof import bursts
from headwind.run import disk
from headwind.run.journal import Run
from headwind.verdicts.search import fewest_for


def print_plan(matrix: Matrix, reports: Path, out: Console) -> None:
    """A line for each condition, the order of the first blocks, and the time; nothing is started."""
    out.print(escape(f"matrix {matrix.path}"), soft_wrap=True, highlight=False)
    if matrix.find:
        _print_search(matrix, reports, out)
        return
    blocks = plan_blocks(matrix)
    trials = [trial for block in blocks for trial in block.trials()]
    known, lanes = earlier_results(matrix, reports), lanes_here(matrix.lanes)
    forecast = Forecast(matrix.timeout_s, known)
    table = Table(title=escape(matrix.title) or None, title_justify="left")
    time_for = f"time for {counted(matrix.repeat.least, 'block')}{' on one lane' if lanes > 1 else ''}"
    for heading in (matrix.place, "blocks", time_for, "from"):
        table.add_column(heading, justify="left" if heading in (matrix.place, "from") else "right")
    for condition in matrix.conditions:
        mine = [trial for trial in trials if trial.block.condition == condition]
        learnt = sum(forecast.learnt.get((condition.id, arm), 0) for arm in matrix.arms_in(condition))
        source = counted(learnt, "earlier trial") if learnt else "a guess"
        table.add_row(
            escape(matrix.name_of(condition)), blocks_text(matrix.repeat), about(forecast.trials_s(mine)), source
        )
    out.print(table)
    out.print(f"the first block of each {matrix.place}, and the order inside it:")
    for block in blocks[: len(matrix.conditions)]:
        order = " ".join(arm.name for arm in block.order)
        out.print(escape(f"  {matrix.name_of(block.condition)} #{block.index}: {order}"), highlight=False)
    for sentence in bursts.describe(condition.profile for condition in matrix.conditions):
        out.print(escape(sentence))
    _print_time(matrix, blocks, forecast, Needs(os.cpu_count() or 1, known), lanes, out)


def _print_time(
    matrix: Matrix, blocks: Sequence[Block], forecast: Forecast, needs: Needs, lanes: int, out: Console
) -> None:
    """The time of these blocks on the lanes of this machine, and what the budget can settle."""
    trials = counted(sum(len(block.order) for block in blocks), "trial")
    whole_s = START_S + sum(forecast.block_s(block) * needs.share(block.condition, lanes) for block in blocks)
    where = f"on this machine (up to {lanes} lanes)" if lanes > 1 else "on one lane"
    if not matrix.repeat.is_adaptive:
        longest_s = START_S + matrix.timeout_s * sum(len(block.order) for block in blocks)
        out.print(f"{trials}, about {about(whole_s)} {where}; never more than {about(longest_s)} plus repairs")
        return
    least = f"{counted(matrix.repeat.least, 'block')} of each {matrix.place}"
    more = f"; further blocks follow {_until(matrix)}" if matrix.repeat.least < matrix.repeat.most else ""
    if matrix.repeat.budget_s is not None and whole_s > matrix.repeat.budget_s:
        more = f": more than the budget of {duration(matrix.repeat.budget_s)}"
    out.print(f"the minimum is {trials} ({least}), about {about(whole_s)} {where}{more}")
    costs = minimum_s(matrix, forecast, needs, lanes)
    if warning := what_a_budget_settles(matrix, costs, lanes, guessed(matrix, forecast)):
        out.print(escape(warning))


def _print_search(matrix: Matrix, reports: Path, out: Console) -> None:
    """What a search looks at, and what a value costs that is as clear as can be."""
    search, conditions = matrix.find, matrix.conditions
    assert search is not None
    forecast = Forecast(matrix.timeout_s, earlier_results(matrix, reports))
    fewest = fewest_for(len(conditions), matrix.repeat.confidence)
    ends = [
        forecast.block_s(plan_block(matrix, condition, 0)) * fewest for condition in (conditions[0], conditions[-1])
    ]
    out.print(escape(f"a search along {search.along}: where do {search.new} and {search.base} change places?"))
    out.print(escape(f"{len(conditions)} values from {conditions[0].profile.name} to {conditions[-1].profile.name}"))
    out.print(
        f"a value at which all blocks agree takes {fewest} of them: about {about(ends[0])} at the lowest, "
        f"{about(ends[1])} at the highest; at most {matrix.repeat.most} blocks at each, {_until(matrix)}"
    )


def _until(matrix: Matrix) -> str:
    budget_s = matrix.repeat.budget_s
    over = f", or the budget of {duration(budget_s)} is over" if budget_s is not None else ""
    return f"until everything is settled{over}"


def earlier_results(matrix: Matrix, reports: Path) -> list[Result]:
    """Results of the latest run in `reports` that had the same conditions; empty when there is none."""
    conditions = set(matrix.conditions)
    for folder in disk.newest_folders(reports):
        try:
            with Run.open(folder) as run:
                if conditions & set(run.matrix.conditions):
                    return [result for result in run.results() if result.trial.block.condition in conditions]
        except HeadwindError:
            continue  # not a run, or one that cannot be read: the plan can do without
    return []
