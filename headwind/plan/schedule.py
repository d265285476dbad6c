"""Matrix -> blocks in the order in which they run. Pure: the same matrix always gives the same plan.

Every decision is the sha256 of what it is about, so that no decision depends on another: a new condition leaves the
seeds, the protocol orders and the relative order of all other conditions as they were, and a resumed run follows the
same plan with any version of Python.
"""

from __future__ import annotations

import hashlib
import json

from headwind.arm import Arm
from headwind.model import Block, Condition, Matrix
from impair.profile import Direction


def plan_blocks(matrix: Matrix) -> list[Block]:
    """The blocks that every condition gets at least, pass by pass: each visits all conditions, in an order of its own.

    A drift of the machine over a run therefore meets all conditions alike. What comes after, where repetition is
    adaptive, is chosen by headwind/plan/adaptive.py.
    """
    plan: list[Block] = []
    for index in range(matrix.repeat.least):
        plan += [plan_block(matrix, condition, index) for condition in _pass_order(matrix, index)]
    return plan


def plan_block(matrix: Matrix, condition: Condition, index: int) -> Block:
    """One block of a condition, by its index (0, 1, ...): its order of arms and its two seeds for netem."""
    seeds = {direction: netem_seed(matrix.seed, condition.id, index, direction) for direction in Direction}
    return Block(condition, index, _order(matrix, condition, index), seeds)


def netem_seed(run_seed: int, condition_id: str, index: int, direction: Direction) -> int:
    """From 1 to 2^63 - 1: netem's attribute is an unsigned 64-bit number, of which 0 may stand for no seed."""
    return _draw(run_seed, "netem", condition_id, index, direction.value) % (2**63 - 1) + 1


def _pass_order(matrix: Matrix, index: int) -> list[Condition]:
    return sorted(matrix.conditions, key=lambda condition: _draw(matrix.seed, "pass", index, condition.id))


def _order(matrix: Matrix, condition: Condition, index: int) -> tuple[Arm, ...]:
    """A row of a randomised cyclic Latin square.

    Of n arms each stands once in every position within n blocks; a square's first row and the order of its rows
    are random, and every n blocks begin a new square.
    """
    arms = matrix.arms_in(condition)
    square, row = divmod(index, len(arms))

    def draw(purpose: str, value: object) -> int:
        return _draw(matrix.seed, purpose, condition.id, square, str(value))

    first = sorted(arms, key=lambda arm: draw("column", arm))
    shift = sorted(range(len(first)), key=lambda rotation: draw("row", rotation))[row]
    return tuple(first[shift:] + first[:shift])


def _draw(*parts: str | int) -> int:
    """A number from 0 to 2^256 - 1 that depends on nothing but the parts."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest())
