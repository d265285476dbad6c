"""The search for the value at which the winner changes: it finds what is there, and spends little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from headwind.model import STEPS_WITHIN
from headwind.verdicts.search import Bracket, Tally, brackets, fewest_for, next_value, sides_of

VALUES, CONFIDENCE, MOST = 41, 0.95, 60


@dataclass
class Found:
    """What a search came to."""

    brackets: list[Bracket]
    sides: list[int]
    blocks: int
    tried: int


def search(chance: Callable[[float], float], seed: int, values: int = VALUES, most: int = MOST) -> Found:
    """Against a world in which the candidate is ahead in a block at x (0 to 1) with this chance."""
    generator = np.random.default_rng(seed)
    tallies = [Tally()] * values
    while (place := next_value(tallies, CONFIDENCE, most)) is not None:
        before, ahead = tallies[place], bool(generator.random() < chance(place / (values - 1)))
        tallies[place] = Tally(before.blocks + 1, before.ahead + ahead, before.behind + (not ahead))
    sides = sides_of(tallies, CONFIDENCE)
    return Found(brackets(sides), sides, sum(each.blocks for each in tallies), sum(each.blocks > 0 for each in tallies))


def across(at: float, steep: float = 12.0) -> Callable[[float], float]:
    """The candidate falls behind at `at`: a fair coin there, and less and less of one away from it."""
    return lambda x: 1 / (1 + np.exp(steep * (x - at)))


@pytest.mark.parametrize(("steep", "seeds"), [(100.0, 100), (40.0, 30)])
def test_a_crossover_lies_in_the_stated_interval_in_95_of_100_seeds(steep: float, seeds: int) -> None:
    """Wherever it is, and however slowly the coin turns; the interval is as narrow as asked, if blocks suffice."""
    right = narrow = 0
    for seed in range(seeds):
        at = float(np.random.default_rng(1000 + seed).uniform(0.1, 0.9))
        found = search(across(at, steep), seed, most=200)
        right += len(found.brackets) == 1 and found.brackets[0].low <= at * (VALUES - 1) <= found.brackets[0].high
        narrow += len(found.brackets) == 1 and found.brackets[0].steps <= STEPS_WITHIN
    assert right >= 0.95 * seeds
    assert narrow >= (0.95 if steep > 50 else 0.5) * seeds


def test_it_takes_a_fraction_of_what_a_grid_of_the_same_precision_takes_at_least() -> None:
    grid = ((VALUES - 1) // STEPS_WITHIN + 1) * fewest_for(VALUES, CONFIDENCE)
    blocks = [search(across(0.37, 400.0), seed).blocks for seed in range(20)]
    assert np.median(blocks) < grid / 2
    assert all(search(across(0.37, 400.0), seed).tried < VALUES / 2 for seed in range(5))


def test_where_one_side_is_always_ahead_there_is_no_crossover() -> None:
    for seed, chance in ((1, 0.95), (2, 0.05)):
        found = search(lambda _, chance=chance: chance, seed)  # type: ignore[misc]
        assert found.brackets == []
        assert {side for side in found.sides if side} == {1 if chance > 0.5 else -1}


def test_two_changes_are_two_brackets() -> None:
    found = search(lambda x: 0.97 if 0.3 < x < 0.8 else 0.03, 3)
    assert [(each.above, each.steps <= STEPS_WITHIN) for each in found.brackets] == [(1, True), (-1, True)]
    for bracket, at in zip(found.brackets, (0.3, 0.8), strict=True):
        assert bracket.low <= at * (VALUES - 1) <= bracket.high


def test_equals_are_never_told_apart_more_often_than_stated_and_the_search_ends() -> None:
    claims = [search(lambda _: 0.5, seed) for seed in range(40)]
    assert sum(any(found.sides) for found in claims) <= 3
    assert all(found.blocks <= VALUES * MOST for found in claims)


def test_a_block_in_which_neither_was_ahead_speaks_against_both() -> None:
    assert sides_of([Tally(20, 10, 0)] * 2, CONFIDENCE) == [0, 0]
    assert sides_of([Tally(20, 20, 0), Tally(20, 0, 20)], CONFIDENCE) == [1, -1]


def test_never_more_blocks_at_a_value_than_allowed() -> None:
    tallies = [Tally(5, 5, 0)] * VALUES
    assert next_value(tallies, CONFIDENCE, 5) is None


def test_few_values_are_a_search_too() -> None:
    found = search(lambda x: 0.02 if x > 0.5 else 0.98, 4, values=3)
    assert [(each.low, each.high) for each in found.brackets] == [(1, 2)]
