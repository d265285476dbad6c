"""Matrix -> blocks in the order in which they run. Pure: the same matrix always gives the same plan.

Every decision is the sha256 of its subject, so that no decision depends on another: a new condition leaves the seeds,
the protocol orders and the relative order of all other conditions unchanged, and a resumed run follows the same plan
with any version of Python.
"""

from __future__ import annotations

import hashlib
import json

from headwind.arm import Arm
from headwind.model import Block, Condition, Matrix
from impair.profile import Direction


def plan_blocks(matrix: Matrix) -> list[Block]:
    """The minimum blocks of every condition, pass by pass: each pass visits all conditions, in its own order.

    A drift of the machine over a run therefore affects all conditions equally. With adaptive repetition,
    headwind/plan/adaptive.py chooses the later blocks.
    """
    plan: list[Block] = []
    for index in range(matrix.repeat.least):
        plan += [plan_block(matrix, condition, index) for condition in _pass_order(matrix, index)]
    return plan


def plan_block(matrix: Matrix, condition: Condition, index: int) -> Block:
    """A block of a condition, by its index (0, 1, ...): its order of arms and its two seeds for netem."""
    seeds = {direction: netem_seed(matrix.seed, condition.id, index, direction) for direction in Direction}
    return Block(condition, index, _order(matrix, condition, index), seeds)


def netem_seed(run_seed: int, condition_id: str, index: int, direction: Direction) -> int:
    """A seed from 1 to 2^63 - 1: netem's attribute is an unsigned 64-bit number, of which 0 may stand for no seed."""
    return _draw(run_seed, "netem", condition_id, index, direction.value) % (2**63 - 1) + 1


def _pass_order(matrix: Matrix, index: int) -> list[Condition]:
    return sorted(matrix.conditions, key=lambda condition: _draw(matrix.seed, "pass", index, condition.id))


def _order(matrix: Matrix, condition: Condition, index: int) -> tuple[Arm, ...]:
    """A row of a randomised Latin square; every second square is the one before with reversed rows.

    Of n arms each is once in every position within n blocks, and within 2 n blocks each runs equally often right after
    each other one (n even: within n), so that after-effects of an arm also cancel out (Williams, Australian Journal of
    Scientific Research A 2, 1949). The places of the arms and the order of the rows are random.
    """
    arms = matrix.arms_in(condition)
    square, row = divmod(index, len(arms))

    def draw(purpose: str, of_square: int, value: object) -> int:
        return _draw(matrix.seed, purpose, condition.id, of_square, str(value))

    places = sorted(arms, key=lambda arm: draw("column", square - square % 2, arm))
    shift = sorted(range(len(places)), key=lambda rotation: draw("row", square, rotation))[row]
    order = tuple(places[(place + shift) % len(places)] for place in _zigzag(len(places)))
    return order[::-1] if square % 2 else order


def _zigzag(size: int) -> list[int]:
    """The sequence 0, 1, n - 1, 2, n - 2, ... for n places.

    Neighbours differ by every number from 1 to n - 1 (n even), or by each pair of them.

    So the n rotations of this row have each arm right after each other one, or do so together with their reverses.
    """
    return [0, *(place // 2 + 1 if place % 2 == 0 else size - 1 - place // 2 for place in range(size - 1))]


def _draw(*parts: str | int) -> int:
    """A number from 0 to 2^256 - 1 that depends only on the parts."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest())
