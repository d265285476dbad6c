"""What is not settled yet, and what it would take: for the choice of the next block, and for people. Pure.

A comparison is settled when one of the judged metrics has a verdict that survives e-BH over the whole matrix. One that
is decided in its own condition only is not settled: the headline may not count it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from headwind.findings import FALSE_SHARE, Columns, Pair, columns_of, pairs_of, rows_of, rule_of
from headwind.model import Condition, Matrix, Result
from headwind.stats import e_bh_bar, fewest_blocks
from headwind.verdict import CLAIMS, Comparison, Outlook, Rule, Verdict, blocks_needed, compare

NO_MARGIN = 1e-6  # a control is found when its interval excludes 1
Bounds = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Open:
    """A condition with comparisons that are not settled, after `n` blocks, and what it would take."""

    condition: Condition
    undecided: tuple[Pair, ...]  # have no verdict
    unconfirmed: tuple[Pair, ...]  # have one that does not survive e-BH over the matrix yet
    n: int
    fewest: int | None  # blocks until the first of them is settled, if all goes well; None: hundreds
    rate: float  # of them settled per block, at best
    outlook: Outlook  # for the one that takes longest
    most: int  # blocks that the matrix allows
    block_s: float  # expected wall time of one more block

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All that is not settled."""
        return self.undecided + self.unconfirmed


def still_open(matrix: Matrix, results: Iterable[Result], block_s: Callable[[Condition], float]) -> list[Open]:
    """Every condition with comparisons that are not settled, in the matrix's order."""
    rule, rows = rule_of(matrix, complete=False), rows_of(results)
    judged = [
        _Judged(condition, pair, [_judge(columns_of(rows.get(condition.id, {}), pair, each), rule)
                                  for each in pair.metrics])
        for condition in matrix.conditions
        for pair in pairs_of(matrix, condition)
    ]  # fmt: skip
    evidence = [comparison.log_e_value for item in judged if not item.pair.is_check for comparison, _ in item.metrics]
    found = []
    for condition in matrix.conditions:
        mine = [item for item in judged if item.condition is condition]
        needs = {item.pair: need for item in mine if (need := item.need(rule, evidence))}
        if needs:
            outlooks = sorted((need.outlook for need in needs.values()), key=_longest)
            fewest = min((outlook.low for outlook in outlooks if outlook.low), default=None)
            rate = sum(outlook.rate for outlook in outlooks)
            undecided = tuple(pair for pair, need in needs.items() if need.verdict)
            unconfirmed = tuple(pair for pair in needs if pair not in undecided)
            n = len(rows.get(condition.id, {}))
            found.append(
                Open(
                    condition,
                    undecided,
                    unconfirmed,
                    n,
                    fewest,
                    rate,
                    outlooks[-1],
                    matrix.repeat.most,
                    block_s(condition),
                )
            )
    return found


def _judge(columns: Columns, rule: Rule) -> tuple[Comparison, Bounds]:
    return compare(columns.base, columns.new, rule, exhausted=False), columns.bounds


@dataclass(frozen=True, slots=True)
class _Need:
    """What a comparison lacks: a verdict, or else only evidence for the one it has."""

    outlook: Outlook
    verdict: bool


@dataclass(frozen=True, slots=True)
class _Judged:
    """One comparison in one condition, by each metric that can decide it."""

    condition: Condition
    pair: Pair
    metrics: Sequence[tuple[Comparison, Bounds]]

    def need(self, rule: Rule, evidence: Sequence[float]) -> _Need | None:
        """None when it is settled; `evidence` are the ln e-values of all comparisons of protocols."""
        decided = [comparison for comparison, _ in self.metrics if self._is_decided(comparison)]
        if decided and self.pair.is_check:
            return None
        lacks = [_until(one, _missing(one.log_e_value, evidence)) for one in decided]
        if any(outlook is None for outlook in lacks):
            return None
        if outlooks := [outlook for outlook in lacks if outlook]:
            return _Need(_nearest(outlooks), verdict=False)
        wanted = replace(rule, margin_ratio=NO_MARGIN) if self.pair.is_control else rule
        return _Need(_nearest([_outlook(*each, wanted) for each in self.metrics]), verdict=True)

    def _is_decided(self, comparison: Comparison) -> bool:
        found = self.pair.is_control and comparison.interval.high < 0
        return comparison.verdict is not Verdict.UNDECIDED or found


def _longest(outlook: Outlook) -> float:
    return math.inf if outlook.blocks is None else outlook.blocks


def _nearest(outlooks: Sequence[Outlook]) -> Outlook:
    """One metric is enough: the shortest, with the best rate of any."""
    return replace(min(outlooks, key=_longest), rate=max(outlook.rate for outlook in outlooks))


def _missing(log_e_value: float, evidence: Sequence[float]) -> float:
    """How much ln e-value a comparison lacks to survive beside the others; 0 or less: nothing."""
    others = list(evidence)
    if log_e_value in others:
        others.remove(log_e_value)
    return e_bh_bar(others, FALSE_SHARE) - log_e_value


def _until(comparison: Comparison, missing: float) -> Outlook | None:
    """Blocks until the evidence suffices, if blocks go on falling as they did; None: it does.

    By Stirling's formula ln e of n blocks is n times a rate, less ln(n + 1) (stats.log_e_of_count) and ln CLAIMS.
    """
    if missing <= 0:
        return None
    n = comparison.interval.n
    rate = (comparison.log_e_value + math.log(CLAIMS * (n + 1))) / n
    blocks = ceil(missing / rate) + 1
    return Outlook(blocks, blocks, blocks, 1 / blocks)


def _outlook(comparison: Comparison, bounds: Bounds, rule: Rule) -> Outlook:
    if comparison.withheld is None:
        return _forecast(*bounds, rule)
    # Stalls hold the verdict back: either they go on until completion is decided, or they stop and become few.
    finishing = comparison.completion
    excess = abs(finishing.only_base - finishing.only_new)
    go_on = (fewest_blocks(rule.confidence, rule.anytime) - excess) * finishing.n / excess
    stop = excess / rule.stall_ratio - finishing.n if rule.stall_ratio else go_on
    low, high = sorted(max(1, ceil(blocks)) for blocks in (go_on, stop))
    return Outlook(low, low, high, 1 / low)


_forecast = lru_cache(maxsize=4096)(blocks_needed)  # a condition that has no new blocks need not be forecast again
