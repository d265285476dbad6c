"""Which conditions get the minimum of the matrix within the time: as many as fit, the shortest first. Pure.

A budget that is too short for all, spread over all, ends one block short everywhere, and nothing is settled. So the
minimum goes to those for which it can be completed; blocks of the others are chosen like any beyond the minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, takewhile

from headwind.format import about, counted
from headwind.model import Block, Matrix
from headwind.plan.forecast import Forecast
from headwind.plan.needs import Needs
from headwind.verdicts.stats import fewest_blocks

MOST_NAMED = 6  # conditions in a sentence


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


def what_a_budget_settles(matrix: Matrix, costs: Mapping[str, float]) -> str:
    """A warning that the budget is too short for something to be settled everywhere; empty if it is not.

    `costs` are those of minimum_s.
    """
    budget_s = matrix.repeat.budget_s
    if budget_s is None or matrix.find or not matrix.repeat.is_adaptive or sum(costs.values()) <= budget_s:
        return ""
    names = {condition.id: matrix.name_of(condition) for condition in matrix.conditions}
    fitting, all_s = affordable(costs, budget_s), about(sum(costs.values()))
    place = counted(len(costs), matrix.place)
    if not fitting:
        first = min(costs, key=lambda name: costs[name])
        least = f"about {about(costs[first])} would do for {names[first]}"
        every = f", {all_s} for all {place}" if len(costs) > 1 else ""
        return f"nothing can be settled in {about(budget_s)}; {least}{every}"
    told = ", ".join(names[each] for each in fitting[:MOST_NAMED])
    told += f" and {len(fitting) - MOST_NAMED} more" if len(fitting) > MOST_NAMED else ""
    return f"{about(budget_s)} can settle something in {len(fitting)} of {place} ({told}); about {all_s} would in all"
