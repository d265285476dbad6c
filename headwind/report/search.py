"""The result of a search in sentences: where the winner changes, the certainty, and the cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwind.format import counted, enumerated, setting
from headwind.model import STEPS_WITHIN, Matrix, Search
from headwind.report.sweeps import parameter_name
from headwind.run.data import RunData
from headwind.verdicts.search import Bracket, Tally, brackets, sides_of, tallies_of
from impair.profile import Direction

UNITS = {"delay": "delay_s", "jitter": "jitter_s", "rate": "rate_bps"}  # every other quantity is a ratio


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of a search: tallies and leaders of all its values, in their order."""

    matrix: Matrix  # with all values
    search: Search
    tallies: Sequence[Tally]
    sides: Sequence[int]  # leader: 1 the candidate, -1 the baseline, 0 unknown

    @property
    def trials(self) -> int:
        """Number of trials."""
        return sum(each.blocks for each in self.tallies) * len(self.matrix.arms)

    def grid(self) -> tuple[int, int] | None:
        """The values and the trials of a grid of the same precision, at the observed pace; None if none."""
        tried = [place for place, each in enumerate(self.tallies) if each.blocks]
        if not tried:
            return None
        values = range(0, len(self.tallies), STEPS_WITHIN)
        nearest = [min((abs(place - at), place) for place in tried)[1] for at in values]
        blocks = sum(self.tallies[at].blocks if self.sides[at] else self.matrix.repeat.most for at in nearest)
        return len(values), blocks * len(self.matrix.arms)

    def text(self) -> str:
        """The answer with its certainty and its cost."""
        return f"{_answer(self)} {_cost(self)}"


def answer_of(data: RunData) -> Answer | None:
    """The state of the run's search; None if it has no search."""
    matrix = data.searched
    if matrix is None or matrix.find is None:
        return None
    tallies = tallies_of(matrix, lambda name: data.rows.get(name, {}))
    return Answer(matrix, matrix.find, tallies, sides_of(tallies, matrix.repeat.confidence))


def search_text(data: RunData) -> str:
    """The answer in sentences; empty if the run has no search."""
    answer = answer_of(data)
    return answer.text() if answer else ""


def _answer(answer: Answer) -> str:
    search, sides = answer.search, answer.sides
    found = brackets(sides)
    sure = f"with {setting('confidence_ratio', answer.matrix.repeat.confidence)} confidence at any stopping time"
    if found:
        places = enumerated(_place(search, each) for each in found)
        wide = any(each.steps > STEPS_WITHIN for each in found)
        open_ = " This is wider than requested: the blocks do not decide the values between them." if wide else ""
        crossover = "Crossover" if len(found) == 1 else f"{len(found)} crossovers"
        return f"{crossover} of {search.new} and {search.base} along {_name(search)}: {places}, {sure}.{open_}"
    known = [place for place, side in enumerate(sides) if side]
    if not known:
        return (
            f"It is not known yet at any value along {_name(search)} which of {search.new} and {search.base} is ahead."
        )
    ahead = search.new if sides[known[0]] > 0 else search.base
    values = enumerated(_value(search, place) for place in known)
    tried = [side for tally, side in zip(answer.tallies, sides, strict=True) if tally.blocks]
    rest = f"; unclear at {tried.count(0)} of {counted(len(tried), 'value')} tried" if 0 in tried else ""
    uncovered = "the values between" if len(known) > 1 else "other values"
    return (
        f"No crossover was found along {_name(search)}: {ahead} is ahead at {values}, {sure}{rest}. This "
        f"does not cover {uncovered}."
    )


def _place(search: Search, bracket: Bracket) -> str:
    above, below = (search.new, search.base) if bracket.above > 0 else (search.base, search.new)
    low, high = _value(search, bracket.low), _value(search, bracket.high)
    return f"between {low} ({below} is ahead) and {high} ({above} is ahead)"


def _cost(answer: Answer) -> str:
    """Sentence on the cost of the search, and on that of a grid of the same precision at the observed pace."""
    tried = sum(bool(each.blocks) for each in answer.tallies)
    took = f"This took {counted(answer.trials, 'trial')} at {counted(tried, 'value')}"
    grid = answer.grid()
    if grid is None:
        return f"{took}."
    values, trials = grid
    return (
        f"{took}. A grid of the same precision ({counted(values, 'value')}) would take about "
        f"{counted(trials, 'trial')}: at each value as many as at the nearest one here, or the maximum of "
        f"{answer.matrix.repeat.most} blocks if it is unclear which protocol is ahead."
    )


def _name(search: Search) -> str:
    direction = search.along.partition(".")[0]
    return parameter_name(tuple(Direction) if direction == "both" else (Direction(direction),), _quantity(search))


def _quantity(search: Search) -> str:
    key = search.along.partition(".")[2]
    return UNITS.get(key, f"{key}_ratio")


def _value(search: Search, place: int) -> str:
    return setting(_quantity(search), search.points[place][0])
