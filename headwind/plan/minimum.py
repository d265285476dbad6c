"""Chooses the conditions that get the matrix's minimum within the time: as many as fit, the shortest first. Pure.

If a budget that is too short for all were spread over all, each would end one block short, and nothing would be
settled. So the minimum goes to conditions for which it can be completed; blocks of the others are chosen like any
beyond the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import accumulate, takewhile

from headwind.format import about, budget_text, listed
from headwind.model import Matrix, Repetition
from headwind.plan.cpu_demand import CpuDemand
from headwind.plan.forecast import START_S, Forecast, block_seconds
from headwind.verdicts.findings import fewest_for_sure

GUESSED = 1.5  # maximum factor of a guess: of the networks of matrix.yaml the slowest took 1.4 and 1.6 times as long
LEARNT = 1.2  # of a forecast from earlier trials: a timeout in a lossy network, or other work on the machine
ROUND_S, LONG_S, LONG_ROUND_S = 60, 1_800, 300  # steps of suggested budgets; longer ones use the last
LONGEST_S = 7 * 86_400.0  # of a budget


def affordable(costs: Mapping[str, float], left_s: float) -> list[str]:
    """The keys of as many costs, in seconds, as fit into left_s together, the smallest first."""
    names = sorted(costs, key=lambda name: costs[name])
    spent = accumulate(costs[name] for name in names)
    return [name for name, _ in takewhile(lambda item: item[1] <= left_s, zip(names, spent, strict=True))]


def enough_s(seconds: float) -> float:
    """A round budget in seconds that suffices for work of this duration, including the start."""
    step_s = ROUND_S if seconds < LONG_S else LONG_ROUND_S
    return min(step_s * math.ceil((seconds + START_S) / step_s), LONGEST_S)


def blocks_needed(matrix: Matrix) -> int:
    """Blocks of a condition after which a comparison can be settled, if the matrix allows that many."""
    fewest = fewest_for_sure(matrix.repeat.confidence, anytime=True)
    return max(matrix.repeat.least, min(fewest, matrix.repeat.most))


def needed_text(matrix: Matrix) -> str:
    """The blocks of blocks_needed: `the minimum of 9 blocks`, `the 8 blocks that a sure result takes`."""
    needed = blocks_needed(matrix)
    is_minimum = needed == matrix.repeat.least
    return f"the minimum of {needed} blocks" if is_minimum else f"the {needed} blocks that a sure result takes"


def minimum_s(
    matrix: Matrix, forecast: Forecast, needs: CpuDemand, lanes: int, done: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Seconds for which each condition, by id, occupies this host until a comparison in it can be settled.

    `done` are the blocks that it has already.
    """
    found, block_s = {}, block_seconds(matrix, forecast)
    for condition in matrix.conditions:
        left = max(0, blocks_needed(matrix) - (done or {}).get(condition.id, 0))
        found[condition.id] = left * block_s(condition) * needs.share(condition, lanes)
    return found


def guessed(matrix: Matrix, forecast: Forecast) -> frozenset[str]:
    """The ids of the conditions without known trials."""
    known = {name for name, _ in forecast.learnt}
    return frozenset(condition.id for condition in matrix.conditions if condition.id not in known)


def at_most(costs: Mapping[str, float], guesses: Collection[str]) -> dict[str, float]:
    """Costs with a margin for forecasts that are too short; `guesses` are the ids of guessed costs."""
    return {name: cost_s * (GUESSED if name in guesses else LEARNT) for name, cost_s in costs.items()}


def too_few_blocks(matrix: Matrix) -> str:
    """A note that the matrix has fewer blocks than any verdict needs, with a sufficient setting; else empty."""
    repeat = matrix.repeat
    fewest = fewest_for_sure(repeat.confidence, anytime=repeat.is_adaptive)
    if repeat.most >= fewest or len(matrix.arms) < 2 or matrix.find:
        return ""
    return (
        f"note: a sure result takes {fewest} blocks{'' if repeat.is_adaptive else ' if their number is fixed'}, and "
        f"this matrix has {repeat.most}: nothing can be sure; `repeat: {{min: {Repetition().least}, max: "
        f"{Repetition().most}}}` runs until everything is sure, the budget ends, or each network has "
        f"{Repetition().most} blocks"
    )


def what_a_budget_settles(
    matrix: Matrix, costs: Mapping[str, float], guesses: Collection[str] = (), start_s: float = 0.0, lanes: int = 1,
    unverified: Collection[str] = (),
) -> str:  # fmt: skip
    """A warning that names the conditions whose minimum may not fit into the budget, and a sufficient budget.

    Empty if all fit, or if the number of blocks allows no verdict (too_few_blocks). `costs` are those of minimum_s,
    `guesses` the ids of those that are guessed and may be too short, `start_s` the seconds before the first trial in
    which further testbeds start, `lanes` the number of lanes for which the costs hold, `unverified` the ids of those of
    which most trials so far were not verified.
    """
    repeat, budget_s = matrix.repeat, matrix.repeat.budget_s
    if budget_s is None or matrix.find or not repeat.is_adaptive or too_few_blocks(matrix):
        return ""
    longest, left_s = at_most(costs, guesses), budget_s - start_s
    fitting, names = affordable(longest, left_s), {each.id: matrix.name_of(each) for each in matrix.conditions}
    short = [name for name in costs if name not in fitting]
    if not short:
        return ""
    is_known = set(short).isdisjoint(affordable(costs, left_s))
    first = min(longest, key=lambda name: longest[name])
    alone = f" ({names[first]} alone may need {about(start_s + longest[first])})"
    left, more = (" left", " more") if len(costs) < len(matrix.conditions) else ("", "")  # of a resumed run
    where = (
        f" in {listed([names[name] for name in short])}, so nothing{more} would be sure there" if fitting
        else f" in any {matrix.place}{left}{alone}, so nothing{more} would be sure" if len(costs) > 1
        else f", so nothing{more} would be sure"
    )  # fmt: skip
    every = f" for {'both' if len(costs) == 2 else f'all {len(costs)}'} {matrix.place}s{left}" if len(costs) > 1 else ""
    doubtful = [names[name] for name in costs if name in unverified]
    but = f", but hardly for {listed(doubtful)}, where most trials were not verified" if doubtful else ""
    return (
        f"{about(budget_s)} {'is probably' if is_known else 'may be'} too short for {needed_text(matrix)}{where}; "
        f"`--budget {budget_text(enough_s(start_s + sum(longest.values())))}` is probably enough"
        f"{'' if but else every}{on_lanes(lanes)}{but}."
    )


def on_lanes(lanes: int) -> str:
    """Note on the number of lanes for which a forecast holds; empty for one."""
    return f" (with {lanes} testbeds in parallel)" if lanes > 1 else ""
