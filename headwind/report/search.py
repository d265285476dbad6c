"""What a search came to, in sentences: where the winner changes, how sure that is, and what it took. Pure."""

from __future__ import annotations

from headwind.format import counted, enumerated, setting
from headwind.model import STEPS_WITHIN, Matrix, Search
from headwind.report.sweeps import parameter_name
from headwind.run.data import RunData
from headwind.verdicts.search import Bracket, Tally, brackets, sides_of, tallies_of
from impair.profile import Direction

UNITS = {"delay": "delay_s", "jitter": "jitter_s", "rate": "rate_bps"}  # every other number is a ratio


def searched(data: RunData) -> list[str]:
    """`search_text`, if there is one."""
    return [text for text in [search_text(data)] if text]


def search_text(data: RunData) -> str:
    """The answer, its certainty and its cost; empty where nothing was searched."""
    matrix = data.searched
    if matrix is None or matrix.find is None:
        return ""
    tallies = tallies_of(matrix, lambda name: data.rows.get(name, {}))
    sides = sides_of(tallies, matrix.repeat.confidence)
    return " ".join([_answer(matrix, matrix.find, sides), _cost(matrix, tallies, sides)])


def _answer(matrix: Matrix, search: Search, sides: list[int]) -> str:
    found = brackets(sides)
    sure = f"({setting('confidence_ratio', matrix.repeat.confidence)} sure, whenever one looks)"
    if found:
        places = enumerated(_place(search, each) for each in found)
        wide = any(each.steps > STEPS_WITHIN for each in found)
        open_ = (
            "; not as narrow as asked: values between could not be told apart in the blocks there were" if wide else ""
        )
        times = "" if len(found) == 1 else f" {len(found)} times"
        return f"{search.new} and {search.base} change places{times} along {_name(search)}: {places} {sure}{open_}."
    told = [place for place, side in enumerate(sides) if side]
    if not told:
        return f"Along {_name(search)} it is not known anywhere whether {search.new} or {search.base} is ahead."
    ahead = search.new if sides[told[0]] > 0 else search.base
    values = enumerated(_value(search, place) for place in told)
    rest = "" if {0, len(sides) - 1} <= set(told) else "; at the other values that were tried nothing is known"
    return (
        f"No change of places was found along {_name(search)}: {ahead} is ahead at {values} {sure}{rest}. What lies "
        "between values that were tried, this does not say."
    )


def _place(search: Search, bracket: Bracket) -> str:
    above, below = (search.new, search.base) if bracket.above > 0 else (search.base, search.new)
    low, high = _value(search, bracket.low), _value(search, bracket.high)
    return f"between {low}, where {below} is ahead, and {high}, where {above} is"


def _cost(matrix: Matrix, tallies: list[Tally], sides: list[int]) -> str:
    """What was spent, and what a grid of the same precision takes at the pace that was seen."""
    arms = len(matrix.arms)
    tried = [place for place, each in enumerate(tallies) if each.blocks]
    blocks = sum(each.blocks for each in tallies)
    took = f"This took {counted(blocks * arms, 'trial')} at {counted(len(tried), 'value')}"
    if not tried:
        return f"{took}."
    grid, cost = grid_blocks(tallies, sides, matrix.repeat.most)
    return (
        f"{took}; a grid of the same precision, {counted(grid, 'value')}, would take about "
        f"{counted(cost * arms, 'trial')}: at each as many as at the nearest one here, and the "
        f"{matrix.repeat.most} blocks that are allowed where nobody is known to be ahead."
    )


def grid_blocks(tallies: list[Tally], sides: list[int], most: int) -> tuple[int, int]:
    """The values and the blocks of a grid of the same precision, at the pace that was seen; some value was tried."""
    tried = [place for place, each in enumerate(tallies) if each.blocks]
    grid = range(0, len(tallies), STEPS_WITHIN)
    nearest = [min((abs(place - at), place) for place in tried)[1] for at in grid]
    return len(grid), sum(tallies[place].blocks if sides[place] else most for place in nearest)


def _name(search: Search) -> str:
    direction = search.along.partition(".")[0]
    return parameter_name(tuple(Direction) if direction == "both" else (Direction(direction),), _quantity(search))


def _quantity(search: Search) -> str:
    key = search.along.partition(".")[2]
    return UNITS.get(key, f"{key}_ratio")


def _value(search: Search, place: int) -> str:
    return setting(_quantity(search), search.points[place][0])
