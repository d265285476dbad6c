"""`lab.py plan`: lists what would run, and estimates the duration."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headwind.arm import Role
from headwind.cli.doctor import lacking, lanes_here
from headwind.format import about, blocks_text, counted, duration, listed
from headwind.model import CONTROL_RATIO, Block, Matrix, Result, Trial
from headwind.plan.arms import asked_of_tcp
from headwind.plan.block_order import plan_block, plan_blocks
from headwind.plan.doubts import changes_missed, kept_in_order, notes_of, spells_of, warnings_of
from headwind.plan.forecast import LANE_S, START_S, Forecast, around_s
from headwind.plan.minimum import at_most, guessed, minimum_s, too_few_blocks, what_a_budget_settles
from headwind.plan.scheduler import Scheduler
from headwind.proof import bursts
from headwind.run.earlier import earlier_results
from headwind.verdicts.pairs import pairs_of
from headwind.verdicts.search import fewest_for

MORE_LANES = "The run measures how much CPU its trials need, and may then open more lanes, up to {}."


def print_plan(matrix: Matrix, reports: Path, out: Console) -> None:
    """Print a line for each condition, the order of the first blocks, and the time. Starts nothing."""
    out.print(escape(f"matrix {matrix.path}"), soft_wrap=True, highlight=False)
    if matrix.find:
        _print_search(matrix, reports, out)
        return
    blocks = plan_blocks(matrix)
    trials = [trial for block in blocks for trial in block.trials()]
    known = earlier_results(matrix, reports)
    scheduler = Scheduler(matrix, (), lambda: math.inf, lanes_here(matrix.lanes), os.cpu_count() or 1, earlier=known)
    most = scheduler.lanes
    scheduler.worth(1, most, LANE_S, matrix.repeat.budget_s)
    lanes, forecast = scheduler.lanes, scheduler.forecast
    out.print(_table(matrix, trials, forecast, is_one_lane=lanes == 1))
    arms = ", ".join(arm.name for arm in matrix.arms)
    out.print(escape(f"each block runs, in changing order: {arms}"), soft_wrap=True, highlight=False)
    if twins := _twins_text(matrix):
        out.print(f"self-checks: {twins}", soft_wrap=True, highlight=False)
    _print_notes(matrix, forecast, known, out)
    _print_time(matrix, blocks, scheduler, out)
    if lanes < most:
        out.print(MORE_LANES.format(most))


def _table(matrix: Matrix, trials: Sequence[Trial], forecast: Forecast, *, is_one_lane: bool) -> Table:
    """A row for each condition with its blocks and the time of its minimum on one lane, and the sum."""
    table = Table(title=escape(matrix.title) or None, title_justify="left")
    blocks = "blocks, min to max" if matrix.repeat.least < matrix.repeat.most else "blocks"
    time_for = f"time for {counted(matrix.repeat.least, 'block')}{'' if is_one_lane else ', one testbed (lane)'}"
    for heading in (matrix.place, blocks, time_for, "forecast from"):
        table.add_column(heading, justify="left" if heading in (matrix.place, "forecast from") else "right")
    seconds = []
    for condition in matrix.conditions:
        seconds.append(forecast.trials_s(trial for trial in trials if trial.block.condition == condition))
        learnt = sum(forecast.learnt.get((condition.id, arm), 0) for arm in matrix.arms_in(condition))
        is_partial = any((condition.id, arm) not in forecast.learnt for arm in matrix.arms_in(condition))
        source = counted(learnt, "earlier trial") if learnt else "no earlier run: a guess"
        source += ", partly a guess" if learnt and is_partial else ""
        table.add_row(
            escape(matrix.name_of(condition)),
            blocks_text(matrix.repeat).removesuffix(" blocks"),
            about(seconds[-1]),
            source,
        )
    if len(seconds) > 1:
        table.add_section()
        table.add_row(
            f"{'both' if len(seconds) == 2 else f'all {len(seconds)}'} {matrix.place}s", "", about(sum(seconds)), ""
        )
    return table


def _twins_text(matrix: Matrix) -> str:
    """The meaning of each self-check, and its networks if not all have it, in brackets; empty if there are none."""
    if not matrix.selfcheck:
        return ""
    twins = {each.profile.name: matrix.selfcheck.twins(each) for each in matrix.conditions}
    meanings = {Role.AGAIN: "a second time", Role.SLOWER: f"over a {100 * CONTROL_RATIO:.0f} % slower network"}
    texts = []
    for twin in sorted({*chain.from_iterable(twins.values())}, key=str):
        names = [name for name, own in twins.items() if twin in own]
        only = f", only in {listed(names)}" if len(names) < len(twins) else ""
        texts.append(f"{twin} is {matrix.selfcheck.arm} {meanings[twin.role]}{only}")
    return escape("; ".join(texts))


def _print_notes(matrix: Matrix, forecast: Forecast, earlier: Sequence[Result], out: Console) -> None:
    """Print what is special about the networks, the matrix and this host."""
    for sentence in bursts.describe(condition.profile for condition in matrix.conditions):
        out.print(escape(sentence))
    if note := kept_in_order(matrix):
        out.print(escape(f"{note}."))
    without = [
        f"note: this host's kernel has no congestion control {name} (`lab.py doctor`), so a run would refuse the matrix"
        for name in lacking(asked_of_tcp(matrix))
    ]
    own = (*spells_of(matrix, forecast), *changes_missed(matrix, forecast, earlier))
    notes = (*notes_of(matrix), *own, *filter(None, [too_few_blocks(matrix)]), *without)
    for warning in (*warnings_of(matrix), *notes):
        out.print(escape(warning), soft_wrap=True, highlight=False)


def _print_time(matrix: Matrix, blocks: Sequence[Block], scheduler: Scheduler, out: Console) -> None:
    """Print the time of these blocks on the lanes of this machine, and what the budget can settle."""
    forecast, needs, lanes = scheduler.forecast, scheduler.needs, scheduler.lanes
    trials, start_s = counted(sum(len(block.order) for block in blocks), "trial"), START_S + scheduler.start_s
    each_s = defaultdict[str, float](float)
    for block in blocks:
        each_s[block.condition.id] += forecast.block_s(block) * needs.share(block.condition, lanes)
    whole_s, guesses = start_s + sum(each_s.values()), guessed(matrix, forecast)
    place = f"on {lanes} lanes (testbeds in parallel)" if lanes > 1 else "on one lane"
    if not matrix.repeat.is_adaptive:
        longest_s = start_s + sum(matrix.timeout_s + around_s(trial) for block in blocks for trial in block.trials())
        one = " on one lane" if lanes > 1 else ""
        most = f"; about {about(longest_s)}{one} if every trial times out" if longest_s > whole_s else ""
        out.print(f"{trials}, about {about(whole_s)} {place}{most}")
        return
    checks = ", with self-checks" if matrix.selfcheck else ""
    least = f"{counted(matrix.repeat.least, 'block')} of each {matrix.place}{checks}"
    may_follow = matrix.repeat.least < matrix.repeat.most and any(pairs_of(matrix, each) for each in matrix.conditions)
    more = f"; more blocks follow {_until(matrix)}" if may_follow else ""
    budget_s, longest_s = matrix.repeat.budget_s, start_s + sum(at_most(each_s, guesses).values())
    if budget_s is not None and whole_s > budget_s:
        more = f": more than the budget of {duration(budget_s)}"
    elif budget_s is not None and longest_s > budget_s:
        place += f", or up to {about(longest_s)}{', since it is a guess' if guesses else ''}"
    out.print(f"the minimum is {trials} ({least}), about {about(whole_s)} {place}{more}")
    costs = minimum_s(matrix, forecast, needs, lanes)
    if warning := what_a_budget_settles(matrix, costs, guesses, scheduler.start_s, scheduler.lanes_for(costs)):
        out.print(escape(warning))


def _print_search(matrix: Matrix, reports: Path, out: Console) -> None:
    """Print the values of a search, and the time of a value at which all blocks agree."""
    search, conditions = matrix.find, matrix.conditions
    assert search is not None
    forecast = Forecast(matrix.rules, earlier_results(matrix, reports))
    fewest = fewest_for(len(conditions), matrix.repeat.confidence)
    if fewest > matrix.repeat.most:
        out.print(f"no value can be decided: that takes {fewest} blocks, and `max` is {matrix.repeat.most}")
    ends = [
        forecast.block_s(plan_block(matrix, condition, 0)) * fewest for condition in (conditions[0], conditions[-1])
    ]
    out.print(escape(f"search for the crossover of {search.new} and {search.base} along {search.along}"))
    out.print(escape(f"{len(conditions)} values from {conditions[0].profile.name} to {conditions[-1].profile.name}"))
    out.print(
        f"if all blocks of a value agree, {fewest} decide it: about {about(ends[0])} at the lowest value, "
        f"{about(ends[1])} at the highest; otherwise more blocks follow, at most {matrix.repeat.most} at each value, "
        f"{_until(matrix)}"
    )


def _until(matrix: Matrix) -> str:
    budget_s = matrix.repeat.budget_s
    over = f"the budget of {duration(budget_s)} ends or " if budget_s is not None else ""
    return f"until {over}{'the crossover is found' if matrix.find else 'every comparison is sure'}"
