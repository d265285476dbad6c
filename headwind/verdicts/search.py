"""Searches for the crossover along a network parameter: the value to try next, and what is certain. Pure.

The values are a grid; a search tries few of them. At a value each block shows whether the candidate was ahead. The
claim "the candidate is ahead here" is made if the evidence against a median of 1 or below reaches (number of values) /
(1 - confidence), and its opposite likewise.

The answer holds for any choice of values and any stopping time: blocks of a value are fresh draws with other seeds, so
at each value the evidence is a test martingale (stats.log_e_against), also if blocks of other values come between. By
Ville's inequality it ever reaches 1 / a with probability at most a, if the median is 1 or on the other side (Ville
1939; Howard and Ramdas, Bernoulli 28, 2022). With a = (1 - confidence) / (number of values) the chance that any claim
at any value is false is at most 1 - confidence (Boole's inequality), untried values included. If no claim is false,
then the winner does change between two neighbouring claims for different sides, at least once. Two neighbouring claims
for the same side do not exclude a change between them: a search that skips values cannot know.

It narrows by noisy bisection (Karp and Kleinberg, "Noisy binary search and its applications", SODA 2007), but with
comparisons that may stay open: a middle that is too close to call would take blocks without end, so after a while its
quarters have their turn, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from headwind.model import STEPS_WITHIN, Matrix
from headwind.verdicts.ended import ended
from headwind.verdicts.findings import Rows, columns_of
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import log_e_against

COARSE = 5  # values, evenly spaced, that are tried first to see how often the winner changes


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the blocks at one value."""

    blocks: int = 0
    ahead: int = 0  # blocks in which the candidate surely was
    behind: int = 0

    def side(self, bar: float) -> int:
        """Claim about this value, 1: the candidate is ahead, -1: behind, 0: unknown.

        `bar` is the ln evidence that it needs.
        """
        if _evidence(self.blocks, self.blocks - self.ahead) >= bar:
            return 1
        return -1 if _evidence(self.blocks, self.blocks - self.behind) >= bar else 0


def tallies_of(matrix: Matrix, rows: Callable[[str], Rows]) -> list[Tally]:
    """Counts at each value of the matrix's search, by the primary metric; `rows` returns rows by condition id.

    Raises ValueError for a matrix without a search.
    """
    search = matrix.find
    if search is None:
        raise ValueError("this matrix has no search")
    metric, pair = matrix.judged(matrix.conditions[0])[0], Pair(search.base, search.new)
    found = []
    for _, condition in search.points:
        lows, highs = columns_of(ended(rows(condition)), pair, metric).bounds
        found.append(Tally(len(lows), sum(low > 0 for low in lows), sum(high < 0 for high in highs)))
    return found


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two values, by index in the grid, between which the winner changes; `above` is 1 if to the candidate."""

    low: int
    high: int
    above: int

    @property
    def steps(self) -> int:
        """Its width in grid steps."""
        return self.high - self.low


@lru_cache(maxsize=8192)
def _evidence(blocks: int, against: int) -> float:
    return float(log_e_against(blocks, against))


def bar_of(values: int, confidence: float) -> float:
    """The ln evidence that a claim about one of this many values needs."""
    return math.log(values / (1 - confidence))


@lru_cache(maxsize=64)
def fewest_for(values: int, confidence: float) -> int:
    """Blocks after which a claim can be made, if all are on one side."""
    n = 1
    while _evidence(n, 0) < bar_of(values, confidence):
        n += 1
    return n


def sides_of(tallies: Sequence[Tally], confidence: float) -> list[int]:
    """The claim about each value, as of Tally.side."""
    bar = bar_of(len(tallies), confidence)
    return [tally.side(bar) for tally in tallies]


def brackets(sides: Sequence[int]) -> list[Bracket]:
    """Neighbouring claims for different sides."""
    claimed = [place for place, side in enumerate(sides) if side]
    return [Bracket(low, high, sides[high]) for low, high in pairwise(claimed) if sides[low] != sides[high]]


def next_value(tallies: Sequence[Tally], confidence: float, most: int) -> int | None:
    """Index of the most informative value for the next block; None if the search is done, or as far as `most` allows.

    First come the coarse values, ends before the middle. Then come values within brackets that are too wide, the middle
    first. Last come the coarse values outside of brackets that are still open.
    """
    sides, coarse = sides_of(tallies, confidence), _coarse(len(tallies))
    patience = fewest_for(len(tallies), confidence) + 3
    fresh = [place for place in coarse if not sides[place] and tallies[place].blocks < min(patience, most)]
    if fresh:
        return fresh[0]
    found = brackets(sides)
    inside = [
        (tallies[place].blocks // patience, depth, place)
        for bracket in found if bracket.steps > STEPS_WITHIN
        for place, depth in _by_halves(bracket.low, bracket.high)
        if not sides[place] and tallies[place].blocks < most
    ]  # fmt: skip
    if inside:
        return min(inside)[-1]
    left = [
        place for place in coarse
        if not sides[place] and tallies[place].blocks < most
        and not any(bracket.low < place < bracket.high for bracket in found)
    ]  # fmt: skip
    return min(left, key=lambda place: tallies[place].blocks, default=None)


def _coarse(values: int) -> list[int]:
    """Evenly spaced places of the grid: the ends, the middle, then the quarters."""
    even = dict.fromkeys(round(step * (values - 1) / (COARSE - 1)) for step in range(COARSE))
    ends = [0, values - 1]
    return [*ends, *sorted(even.keys() - set(ends), key=lambda place: (abs(place - (values - 1) / 2), place))]


def _by_halves(low: int, high: int, depth: int = 0) -> Iterator[tuple[int, int]]:
    """Every place between two others, with the number of halvings that reach it."""
    middle = (low + high) // 2
    if middle > low:
        yield middle, depth
        yield from _by_halves(low, middle, depth + 1)
        yield from _by_halves(middle, high, depth + 1)
