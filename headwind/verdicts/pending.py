"""Open comparisons, and how many more blocks they probably need: for the scheduler and for the report. Pure.

A comparison is settled when one of the judged metrics has a verdict that survives e-BH over the whole matrix. One that
is decided in its own condition only is not settled: the headline may not count it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil

from headwind.model import Condition, Matrix
from headwind.verdicts.findings import FALSE_SHARE, Finding, Pair
from headwind.verdicts.stats import e_bh_bar, fewest_blocks
from headwind.verdicts.verdict import CLAIMS, Comparison, Outlook, Rule, blocks_needed

NO_MARGIN = 1e-6  # a control is found when its interval excludes 1


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


def still_open(
    matrix: Matrix,
    findings: Mapping[str, Sequence[Finding]],
    blocks: Mapping[str, int],
    rule: Rule,
    block_s: Callable[[Condition], float],
) -> list[Open]:
    """Every condition with comparisons that are not settled, in the matrix's order.

    `findings` are those of findings.find_in by condition id, judged as long as more blocks can come, and `blocks` how
    many blocks each condition has.
    """
    every = [finding for found in findings.values() for finding in found]
    evidence = [finding.comparison.log_e_value for finding in every if not finding.pair.is_check]
    left = []
    for condition in matrix.conditions:
        needs = {
            pair: need
            for pair, mine in groupby(findings[condition.id], key=lambda finding: finding.pair)
            if (need := _need(pair, list(mine), rule, evidence))
        }
        if needs:
            left.append(_open(condition, needs, blocks.get(condition.id, 0), matrix.repeat.most, block_s(condition)))
    return left


@dataclass(frozen=True, slots=True)
class _Need:
    """What a comparison lacks: a verdict, or else only evidence for the one it has."""

    outlook: Outlook
    verdict: bool


def _open(condition: Condition, needs: Mapping[Pair, _Need], n: int, most: int, block_s: float) -> Open:
    outlooks = sorted((need.outlook for need in needs.values()), key=_longest)
    fewest = min((outlook.low for outlook in outlooks if outlook.low), default=None)
    rate = sum(outlook.rate for outlook in outlooks)
    undecided = tuple(pair for pair, need in needs.items() if need.verdict)
    unconfirmed = tuple(pair for pair in needs if pair not in undecided)
    return Open(condition, undecided, unconfirmed, n, fewest, rate, outlooks[-1], most, block_s)


def _need(pair: Pair, findings: Sequence[Finding], rule: Rule, evidence: Sequence[float]) -> _Need | None:
    """None when a comparison is settled; `evidence` are the ln e-values of all comparisons of protocols."""
    deciding = pair.deciding(findings[0].condition)
    mine = [finding for finding in findings if finding.metric in deciding]
    decided = [finding.comparison for finding in mine if finding.is_decided]
    if decided and pair.is_check:
        return None
    lacks = [_until(one, _missing(one.log_e_value, evidence)) for one in decided]
    if any(outlook is None for outlook in lacks):
        return None
    if outlooks := [outlook for outlook in lacks if outlook]:
        return _Need(_nearest(outlooks), verdict=False)
    wanted = replace(rule, margin_ratio=NO_MARGIN) if pair.is_control else rule
    return _Need(_nearest([_outlook(finding, wanted) for finding in mine]), verdict=True)


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


def _outlook(finding: Finding, rule: Rule) -> Outlook:
    if finding.comparison.withheld is None:
        return blocks_needed(*finding.bounds, rule)
    # Stalls hold the verdict back: either they go on until completion is decided, or they stop and become few.
    finishing = finding.comparison.completion
    excess = abs(finishing.only_base - finishing.only_new)
    go_on = (fewest_blocks(rule.confidence, rule.anytime) - excess) * finishing.n / excess
    stop = excess / rule.stall_ratio - finishing.n if rule.stall_ratio else go_on
    low, high = sorted(max(1, ceil(blocks)) for blocks in (go_on, stop))
    return Outlook(low, low, high, 1 / low)
