"""Checks the assumptions behind verdicts. A violation becomes a warning that stays with its data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from headwind.format import setting
from headwind.observed import Observed
from headwind.verdicts.stats import Floats, Interval, fewest_blocks, paired_bounds, ratio_interval
from headwind.verdicts.verdict import Rule

ALARM_PROBABILITY = (
    0.001  # of a false alarm in one check: 24 comparisons by 3 metrics with 2 checks each give one in 7 runs
)
FEWEST_NEIGHBOURS = 6  # blocks of a comparison, for a correlation of neighbours
IMBALANCE_SHARE = 0.1  # of the blocks: allowed difference in how often a protocol runs at two positions


class WarningKind(StrEnum):
    """Subject of a warning."""

    NETWORK = "network not as requested"
    FEW_BLOCKS = "few blocks"
    UNFINISHED = "unfinished trials"
    EXCLUDED = "excluded blocks"
    DRIFT = "drift of times"
    RATIO_DRIFT = "drift of the ratio"
    IMBALANCE = "imbalance"
    HOSTS = "hosts disagree"
    PROCESSORS = "CPU-bound"
    CONTENTION = "contention"


@dataclass(frozen=True, slots=True)
class ComparisonWarning:
    """A warning: its kind, and a sentence for people."""

    kind: WarningKind
    message: str


@dataclass(frozen=True, slots=True)
class Balance:
    """How often every protocol ran at every position of its block: counts[protocol][position]."""

    counts: Mapping[str, tuple[int, ...]]

    @property
    def spread(self) -> int:
        """Largest difference between two positions of one protocol: 0 after whole squares, at most 1 in between."""
        return max((max(row) - min(row) for row in self.counts.values()), default=0)


def latin_balance(orders: Sequence[Sequence[str]]) -> Balance:
    """Count positions over the analysed blocks: one sequence of protocols per block, first to last.

    A cyclic Latin square puts every protocol at every position once (Fisher, The Design of Experiments, 1935), which
    cancels the cost of running first or last.
    """
    names = sorted({name for order in orders for name in order})
    positions = range(max((len(order) for order in orders), default=0))
    placed = [(name, position) for order in orders for position, name in enumerate(order)]
    return Balance({name: tuple(placed.count((name, position)) for position in positions) for name in names})


def lag1_correlation(differences: ArrayLike) -> float:
    """Rank correlation of every difference with the next one, shape (blocks,) in run order; 0 without any spread.

    Verdicts take blocks as independent: a value well above 0 means that neighbours share something (the machine, the
    hour), so that n blocks carry less than n blocks. Infinite differences are fine. Expected -1/n, spread about
    1/sqrt(n) when independent. Source: serial correlation of ranks, Wald and Wolfowitz, Ann. Math. Statist. 14, 1943.
    """
    values = np.asarray(differences, dtype=np.float64)
    # the rank among equals is their mean rank, counted from the middle
    ranks = (values[:, None] > values).sum(axis=1) - (values[:, None] < values).sum(axis=1).astype(np.float64)
    power = float(ranks @ ranks)
    return float(ranks[:-1] @ ranks[1:]) / power if power else 0.0


@dataclass(frozen=True, slots=True)
class Dependence:
    """Lag-1 rank correlation of neighbouring blocks of a run, pooled over comparisons."""

    correlation: float  # 0 if blocks are independent
    blocks: int

    @property
    def error(self) -> float:
        """Its standard error if blocks are independent; infinite without blocks."""
        return 1 / math.sqrt(self.blocks) if self.blocks else math.inf

    @property
    def is_excessive(self) -> bool:
        """True if chance gives as much in fewer than ALARM_PROBABILITY of runs."""
        return self.correlation > -float(ndtri(ALARM_PROBABILITY)) * self.error

    @property
    def too_narrow(self) -> float:
        """Factor by which intervals would have to be wider.

        It is the spread of a count of signs over that of independent ones: the root of 1 + (4 / pi) * the sum of
        arcsin(r^k) for a normal process in which each block keeps r of the last (Sheppard, Phil. Trans. A 192, 1899).
        """
        kept = min(max(self.correlation, 0.0), 0.95) ** np.arange(1, 200)
        return math.sqrt(1 + 4 / math.pi * float(np.arcsin(kept).sum()))


def dependence(conditions: Iterable[Sequence[tuple[ArrayLike, ArrayLike]]]) -> Dependence:
    """Pool the comparisons of each condition (the bounds of its blocks), then conditions by their blocks.

    Comparisons of one condition share their blocks: their mean is no more certain than each, so blocks count once.
    """
    total, blocks = 0.0, 0
    for comparisons in conditions:
        known = [
            differences for bounds in comparisons if len(differences := _differences(*bounds)) >= FEWEST_NEIGHBOURS
        ]
        if known:
            n = max(map(len, known))
            # by chance it is -1/n on average
            total += n * sum(lag1_correlation(each) + 1 / len(each) for each in known) / len(known)
            blocks += n
    return Dependence(total / blocks if blocks else 0.0, blocks)


def _differences(lows: ArrayLike, highs: ArrayLike) -> Floats:
    """A value for each block with a known bound: one bound counts as the infinite end that it leaves open."""
    low, high = np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)
    known: NDArray[np.bool_] = np.isfinite(low) | np.isfinite(high) | (low == high)
    return np.where(np.isfinite(low), high, low)[known]


@dataclass(frozen=True, slots=True)
class Drift:
    """A trend over the run: its change from first to last block in ln units, and its p-value."""

    change: float
    p_value: float


def drift(values: ArrayLike) -> Drift:
    """Look for a trend in ln times or in differences, shape (blocks,) in run order; infinite ones are left out.

    Change: the median slope of all pairs times the length of the run (Theil 1950; Sen, JASA 63, 1968).
    p-value: two-sided, from the signs of the same slopes (Mann, Econometrica 13, 1945; Kendall 1975) with the normal
    approximation and continuity correction, good from about 8 blocks. Fewer than 3 values show no trend. scipy.stats
    has both, and tests compare with it. But its kendalltau has no continuity correction, which understates the p-value
    for few blocks, and theilslopes would compute all slopes a second time, with limits that are not needed.
    """
    series = np.asarray(values, dtype=np.float64)
    index = np.flatnonzero(np.isfinite(series))
    n = len(index)
    if n < 3:
        return Drift(0.0, 1.0)
    first, second = _pairs(n)
    rise = series[index[second]] - series[index[first]]
    slope = float(np.median(rise / (index[second] - index[first])))
    score = abs(float(np.sign(rise).sum()))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return Drift(slope * (len(series) - 1), math.erfc(max(score - 1, 0.0) / deviation / math.sqrt(2)))


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[np.intp], ...]:
    """Every pair of different indices below n, the smaller first."""
    return tuple(np.triu_indices(n, k=1))


def noise_floor(same_against_same: Interval) -> float:
    """The smallest |ln ratio| that this lab can distinguish from 0: far end of an A/A interval, infinite if open."""
    return max(abs(same_against_same.low), abs(same_against_same.high))


def warnings(
    base: Sequence[Observed],
    new: Sequence[Observed],
    orders: Sequence[Sequence[str]],
    rule: Rule,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    finished: tuple[Sequence[bool], Sequence[bool]] | None = None,
    names: tuple[str, str] = ("baseline", "candidate"),
) -> tuple[ComparisonWarning, ...]:
    """Every warning about one comparison, from both protocols' times and the orders of the same blocks, in run order.

    `bounds` replaces stats.paired_bounds of the times, if it is already computed or from another metric. `finished`
    lists which trials did their work, if their values do not show it. `names` are those of the arms.

    Drift and ratio drift each give a false alarm with at most ALARM_PROBABILITY on sound data.
    """
    lows, highs = (np.asarray(side, dtype=np.float64) for side in bounds or paired_bounds(base, new))
    with np.errstate(divide="ignore"):
        level = np.log([_level(b, c) for b, c in zip(base, new, strict=True)])
    found = (
        _few_blocks(len(lows), rule),
        _unfinished(*(finished or ([time.is_finished for time in times] for times in (base, new))), names=names),
        _drift(level),
        _ratio_drift(lows, highs),
        _imbalance(latin_balance(orders), len(orders)),
    )
    return tuple(warning for warning in found if warning is not None)


def disagreement(
    hosts: Sequence[str], lows: Sequence[float], highs: Sequence[float], rule: Rule
) -> Iterator[ComparisonWarning]:
    """A warning if the intervals of two hosts' blocks have nothing in common, because the verdict mixes them.

    `hosts`, `lows` and `highs` have one value for each block. Disjoint intervals take far more than one wrong interval.
    """
    found = {}
    for host in sorted(set(hosts)) if len(set(hosts)) > 1 else ():
        numbers = [number for number, other in enumerate(hosts) if other == host]
        found[host] = ratio_interval(
            [lows[n] for n in numbers], [highs[n] for n in numbers], rule.confidence, anytime=True
        )
    if found and max(each.low for each in found.values()) > min(each.high for each in found.values()):
        ends = ((host, *each.ratios[1:]) for host, each in found.items())
        ranges = ", ".join(f"{low:.2f}x to {high:.2f}x on {host}" for host, low, high in ends)
        yield ComparisonWarning(WarningKind.HOSTS, f"hosts disagree, the verdict mixes them: {ranges}")


def _level(base: Observed, new: Observed) -> float:
    """The geometric mean of both, infinite if one of them is not known."""
    return math.sqrt(base.high * new.high) if base.is_finished and new.is_finished else math.inf


def _few_blocks(n: int, rule: Rule) -> ComparisonWarning | None:
    fewest = fewest_blocks(rule.confidence, rule.anytime)
    if not 0 < n < fewest:
        return None
    return ComparisonWarning(
        WarningKind.FEW_BLOCKS,
        f"{n} of the {fewest} blocks that a {setting('confidence_ratio', rule.confidence)} interval needs",
    )


def _unfinished(base: Sequence[bool], new: Sequence[bool], *, names: tuple[str, str]) -> ComparisonWarning | None:
    stalled = [len(finished) - sum(finished) for finished in (base, new)]
    if not any(stalled):
        return None
    arms = (f"{name} {count} of {len(base)}" for name, count in zip(reversed(names), reversed(stalled), strict=True))
    return ComparisonWarning(
        WarningKind.UNFINISHED, f"unfinished trials: {', '.join(arms)}; counted as above the timeout"
    )


def _drift(level: Floats) -> ComparisonWarning | None:
    trend = drift(level)
    if trend.p_value >= ALARM_PROBABILITY:
        return None
    return ComparisonWarning(
        WarningKind.DRIFT,
        f"drift over the run: both times changed by {math.expm1(trend.change):+.1%}; "
        "the protocols of a block ran right after one another, so the ratio stands",
    )


def _ratio_drift(lows: Floats, highs: Floats) -> ComparisonWarning | None:
    trend = drift(np.where(lows == highs, lows, np.inf))
    if trend.p_value >= ALARM_PROBABILITY:
        return None
    return ComparisonWarning(
        WarningKind.RATIO_DRIFT,
        f"the ratio changed by {math.expm1(trend.change):+.1%} over the run: the verdict mixes early and late ratios",
    )


def _imbalance(balance: Balance, blocks: int) -> ComparisonWarning | None:
    if balance.spread <= max(1, IMBALANCE_SHARE * blocks):
        return None
    name, row = max(balance.counts.items(), key=lambda item: max(item[1]) - min(item[1]))
    return ComparisonWarning(
        WarningKind.IMBALANCE,
        f"positions are not balanced: of {blocks} blocks {name} ran "
        + ", ".join(f"{count} at position {position}" for position, count in enumerate(row, start=1)),
    )
