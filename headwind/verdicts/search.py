"""Where the winner changes along a parameter of the network: which value to try next, and what is certain. Pure.

The values are a grid; a search looks at few of them. At a value each block says whether the candidate was ahead. The
claim "the candidate is ahead here" is made when the evidence against a median of 1 or below reaches
(number of values) / (1 - confidence), and its opposite likewise.

Why the answer holds, whatever decided which value was tried how often and when one stopped: blocks of a value are
fresh draws of its own seeds, so at each value the evidence is a test martingale (stats.log_e_against), also if blocks
of others come between. By Ville's inequality it ever reaches 1 / a with probability at most a, if the median is 1 or on
the other side (Ville 1939; Howard and Ramdas, Bernoulli 28, 2022). With a = (1 - confidence) / (number of values) the
chance that any claim at any value is false is at most 1 - confidence (Boole's inequality), those never tried included.
If no claim is false, then between two neighbouring claims for different sides the winner does change, at least once.
That between two claims for the same side it does not change is no claim: a search that skips values cannot know.

How it narrows: a middle that is too close to call would take blocks without end, so after a while its quarters have
their turn, and so on: noisy bisection (Karp and Kleinberg, "Noisy binary search and its applications", SODA 2007), but
with comparisons that may stay open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from headwind.model import STEPS_WITHIN, Matrix
from headwind.verdicts.ended import ended
from headwind.verdicts.findings import Pair, Rows, columns_of
from headwind.verdicts.stats import log_e_against

COARSE = 5  # values, evenly spaced, that are tried first: how often the winner changes is seen on these


@dataclass(frozen=True, slots=True)
class Tally:
    """What the blocks at one value said."""

    blocks: int = 0
    ahead: int = 0  # in which the candidate was, for sure
    behind: int = 0

    def side(self, bar: float) -> int:
        """1: the candidate is ahead here, -1: behind, 0: not known; `bar` is the ln evidence that a claim needs."""
        if _evidence(self.blocks, self.blocks - self.ahead) >= bar:
            return 1
        return -1 if _evidence(self.blocks, self.blocks - self.behind) >= bar else 0


def tallies_of(matrix: Matrix, rows: Callable[[str], Rows]) -> list[Tally]:
    """What the blocks said at each value of the matrix's search, by the primary metric; `rows` by a condition's id."""
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
    """Two values, by their place in the grid, between which the winner changes; `above` is 1 if to the candidate."""

    low: int
    high: int
    above: int

    @property
    def steps(self) -> int:
        """How wide it is."""
        return self.high - self.low


@lru_cache(maxsize=8192)
def _evidence(blocks: int, against: int) -> float:
    return float(log_e_against(blocks, against))


def bar_of(values: int, confidence: float) -> float:
    """The ln evidence that a claim about one of so many values needs."""
    return math.log(values / (1 - confidence))


@lru_cache(maxsize=64)
def fewest_for(values: int, confidence: float) -> int:
    """Blocks after which a claim can be made, if all are on one side."""
    n = 1
    while _evidence(n, 0) < bar_of(values, confidence):
        n += 1
    return n


def sides_of(tallies: Sequence[Tally], confidence: float) -> list[int]:
    """What is claimed of each value."""
    bar = bar_of(len(tallies), confidence)
    return [tally.side(bar) for tally in tallies]


def brackets(sides: Sequence[int]) -> list[Bracket]:
    """Neighbouring claims for different sides."""
    claimed = [place for place, side in enumerate(sides) if side]
    return [Bracket(low, high, sides[high]) for low, high in pairwise(claimed) if sides[low] != sides[high]]


def next_value(tallies: Sequence[Tally], confidence: float, most: int) -> int | None:
    """The place of the value at which the next block says most; None: the answer is there, or as near as `most` allows.

    First the coarse values, ends before the middle. Then what lies within brackets that are too wide, the middle first.
    At last the coarse values outside of brackets that are still open.
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
    """Every place between two others, with how often they must be halved to meet it."""
    middle = (low + high) // 2
    if middle > low:
        yield middle, depth
        yield from _by_halves(low, middle, depth + 1)
        yield from _by_halves(middle, high, depth + 1)
