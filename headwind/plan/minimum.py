"""Which conditions get the minimum of the matrix within the time: as many as fit, the shortest first. Pure.

A budget that is too short for all, spread over all, ends one block short everywhere, and nothing is settled. So the
minimum goes to those for which it can be completed; blocks of the others are chosen like any beyond the minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, takewhile

from headwind.format import about, counted, listed
from headwind.model import Block, Matrix
from headwind.plan.forecast import Forecast
from headwind.plan.needs import Needs
from headwind.verdicts.stats import fewest_blocks


def affordable(costs: Mapping[str, float], left_s: float) -> list[str]:
    """The keys of as many costs, in seconds, as fit into what is left together, the smallest first."""
    names = sorted(costs, key=lambda name: costs[name])
    spent = accumulate(costs[name] for name in names)
    return [name for name, _ in takewhile(lambda item: item[1] <= left_s, zip(names, spent, strict=True))]


def minimum_s(
    matrix: Matrix, forecast: Forecast, needs: Needs, lanes: int, done: Mapping[str, int] | None = None
) -> dict[str, float]:
    """For how long each condition, by its id, keeps this host until something in it can be settled.

    `done` are the blocks that it has already.
    """
    repeat, found = matrix.repeat, {}
    blocks = max(repeat.least, fewest_blocks(repeat.confidence, anytime=True))
    for condition in matrix.conditions:
        block = Block(condition, 0, tuple(matrix.arms_in(condition)), {})
        left = max(0, blocks - (done or {}).get(condition.id, 0))
        found[condition.id] = left * forecast.block_s(block) * needs.share(condition, lanes)
    return found


def what_a_budget_settles(matrix: Matrix, costs: Mapping[str, float], lanes: int = 1) -> str:
    """A warning that something cannot be settled in every condition, by budget or by number of blocks; or empty.

    `costs` are those of minimum_s on so many lanes.
    """
    repeat, budget_s = matrix.repeat, matrix.repeat.budget_s
    if budget_s is None or matrix.find or not repeat.is_adaptive:
        return ""
    needs = fewest_blocks(repeat.confidence, anytime=True)
    if repeat.most < needs:
        return f"Nothing can be settled: a verdict needs {needs} blocks, and the matrix allows {repeat.most}."
    if sum(costs.values()) <= budget_s:
        return ""
    names = {condition.id: matrix.name_of(condition) for condition in matrix.conditions}
    fitting, all_s = affordable(costs, budget_s), about(sum(costs.values()))
    place = counted(len(costs), matrix.place)
    where = f" on up to {lanes} lanes" if lanes > 1 else ""
    if not fitting:
        first = min(costs, key=lambda name: costs[name])
        every = f", all {place} together about {all_s}{where}" if len(costs) > 1 else ""
        need = f"{names[first]} needs about {about(costs[first])}"
        return f"Within {about(budget_s)} nothing can be settled: {need}{every}."
    some = f"{len(fitting)} of {place} ({listed([names[each] for each in fitting])})"
    return f"Within {about(budget_s)} something can be settled in {some}; all of them need about {all_s}{where}."
