"""The networks with their comparisons, the surest first. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import PLAIN, Arm
from headwind.format import arm_name, counted
from headwind.model import Condition, Matrix, Outcome
from headwind.observed import Kind, Observed, figure, from_best, median
from headwind.report.cells import Cell, Floors, cell_of
from headwind.report.certainty import Certainty, Known, known_of
from headwind.report.networks import Network, networks_of
from headwind.report.sweeps import sweeps_of
from headwind.report.trust import met_spells, noise_floors
from headwind.report.verdicts import has_forecast, is_own
from headwind.run.data import RunData, is_data, was_stopped
from headwind.verdicts.ended import complete
from headwind.verdicts.findings import Rows
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.pairs import Pair
from headwind.verdicts.pending import Open
from impair.profile import Link

MOST_COLUMNS = 3  # comparisons with a separate column
MOST_SHOWN = 6  # comparisons named by the matrix that a row shows at once
MOST_NAMED = 3  # arms in a sentence; for more their number


@dataclass(frozen=True, slots=True)
class Standing:
    """A condition in a row."""

    condition: Condition
    network: Network
    known: tuple[Known, ...]  # every comparison, those of the newest protocol first
    cells: Mapping[Pair, Cell]
    rows: Rows  # without blocks of which every trial was stopped with the run
    medians: Mapping[Arm, Observed]  # of the primary metric, for every arm that gave data
    timeouts: Mapping[Arm, int]  # number of timeouts
    untimed: Mapping[Arm, int]  # number of trials that ended without doing their work
    more: str  # "about 9 more until all are sure by some metric", by the forecast; empty if all are settled

    @property
    def blocks(self) -> int:
        """Number of blocks in which every arm gave data."""
        return complete(self.rows)

    @property
    def unfinished_text(self) -> str:
        """The arms with unfinished trials: `unfinished trials: 2 (HTTP/2), 1 (HTTP/3)`; empty if all finished."""
        arms = dict.fromkeys((*self.medians, *self.timeouts, *self.untimed))
        counts = ((arm, self.timeouts.get(arm, 0) + self.untimed.get(arm, 0)) for arm in arms)
        found = ", ".join(f"{count} ({arm_name(arm)})" for arm, count in counts if count)
        return f"unfinished trials: {found}" if found else ""

    @property
    def spells_text(self) -> str:
        """The trials in which a bad spell began: `a bad spell began in 3 of 84 trials`; empty without spells."""
        met, of = met_spells(self.condition, (result for row in self.rows.values() for result in row.values()))
        return f"a bad spell began in {met} of {counted(of, 'trial')}" if of else ""

    @property
    def certainty(self) -> Certainty:
        """Certainty of the surest comparison, by the primary metric."""
        return min((each.by_primary for each in self.known), key=[*Certainty].index, default=Certainty.UNCLEAR)


def is_reference(condition: Condition) -> bool:
    """True if it is unimpaired: the reference for the others."""
    profile = condition.profile
    return profile.is_steady and profile.uplink == profile.downlink == Link()


def ordered_pairs(matrix: Matrix, judgement: Judgement) -> list[Pair]:
    """Every comparison once: those of the newest protocol first, and those with its own variants behind them.

    Variants of the newest protocol against an older one on the same server come between the two.
    """

    def rank(pair: Pair) -> tuple[bool, bool, bool, bool]:
        has_newest = matrix.newest in (pair.new, pair.base)
        rival = pair.base if pair.new == matrix.newest else pair.new
        return (
            not is_across(pair.new, pair.base, matrix),
            not has_newest,
            is_own(rival, matrix.newest),
            rival not in PLAIN,
        )

    return sorted(judgement.pairs, key=rank)


def is_across(arm: Arm, other: Arm, matrix: Matrix) -> bool:
    """True for the newest protocol against an older one on the same server, both with any other settings."""
    newest = [each.protocol is matrix.newest.protocol for each in (arm, other)]
    return any(newest) and not all(newest) and arm.server == other.server


def pair_label(pair: Pair) -> str:
    """Name of a comparison, as in the matrix the candidate first: `HTTP/3 against HTTP/2`."""
    return f"{arm_name(pair.new)} against {arm_name(pair.base)}"


def columns_of(matrix: Matrix, judgement: Judgement) -> tuple[list[Pair], list[Pair]]:
    """The comparisons that a row shows at once, and those on demand.

    Up to six that the matrix names are all shown. If there are more, the newest protocol's come first.
    """
    pairs = ordered_pairs(matrix, judgement)
    if len(pairs) <= (MOST_SHOWN if matrix.compare else MOST_COLUMNS):
        return pairs, []
    first = [pair for pair in pairs if is_across(pair.new, pair.base, matrix) or matrix.newest in (pair.new, pair.base)]
    shown = first or pairs[:MOST_COLUMNS]
    return shown, [pair for pair in pairs if pair not in shown]


def standings(data: RunData) -> list[Standing]:
    """The rows of all conditions: the surest first, then unimpaired ones, then by the median of all arms.

    Conditions of a sweep are in the order of the matrix instead.
    """
    judgement, networks = data.judgement, networks_of(data.matrix)
    places = {pair: number for number, pair in enumerate(ordered_pairs(data.matrix, judgement))}
    known: dict[str, list[Known]] = {}
    for line in sorted(judgement.compared, key=lambda line: places[line.pair]):
        known.setdefault(line.condition.id, []).append(known_of(line))
    floors = noise_floors(judgement.checks)
    more = {item.condition.id: forecast_of(item) for item in data.still_open if not item.is_of_checks}
    found = [
        _standing(data, each, networks[each.id], known.get(each.id, []), floors, more.get(each.id, ""))
        for each in data.matrix.conditions
    ]
    if sweeps_of(data.matrix):
        return sorted(found, key=lambda each: list(Certainty).index(each.certainty))
    return sorted(found, key=_rank)


def forecast_of(item: Open) -> str:
    """The blocks that a condition still needs, without the details of more_text; empty before there is a forecast."""
    if item.missing:
        return f"{item.missing} more for the minimum"
    if not has_forecast(item):
        return ""
    until = f"more until all are sure{' by some metric' if len(item.judged) > 1 else ''}"
    if item.outlook.blocks:
        return f"about {item.outlook.blocks:,} {until}"
    least = item.outlook.low
    return f"{f'at least {least:,}' if least else 'hundreds'} {until}"


def _rank(standing: Standing) -> tuple[int, bool, bool, float]:
    values = from_best(standing.medians.values(), standing.condition.workload.primary().better)
    middle = median(values).known if values else math.inf
    return list(Certainty).index(standing.certainty), not is_reference(standing.condition), not values, middle


def _standing(
    data: RunData, condition: Condition, network: Network, known: Sequence[Known], floors: Floors, more: str
) -> Standing:
    rows = {
        index: row for index, row in data.rows.get(condition.id, {}).items() if not all(map(was_stopped, row.values()))
    }
    metric = condition.workload.primary()
    marks: dict[Arm, list[Observed]] = {}
    stopped, untimed = Counter[Arm](), Counter[Arm]()
    for arm in data.matrix.arms:
        results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
        figures = [figure(result, metric) for result in results]
        if results:
            marks[arm] = from_best(figures, metric.better)
        for result, value in zip(results, figures, strict=True):
            stopped[arm] += result.outcome is Outcome.TIMEOUT
            untimed[arm] += result.outcome is not Outcome.TIMEOUT and value.kind is Kind.NOTHING
    return Standing(
        condition, network, tuple(known), {each.line.pair: cell_of(each, floors) for each in known}, rows,
        {arm: median(values) for arm, values in marks.items()},
        {arm: count for arm, count in stopped.items() if count},
        {arm: count for arm, count in untimed.items() if count},
        more,
    )  # fmt: skip
