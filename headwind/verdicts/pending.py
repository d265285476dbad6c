"""Open comparisons, and how many more blocks they probably need: for the scheduler and for the report. Pure.

A comparison is settled when one of the judged metrics has a verdict that survives e-BH over the whole matrix. One that
is decided in its own condition only is not settled: the headline may not count it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil

from headwind.metric import Metric
from headwind.model import Condition, Matrix
from headwind.verdicts.findings import FALSE_SHARE, Finding, Key, Pair
from headwind.verdicts.outlook import Outlook, blocks_needed
from headwind.verdicts.stats import fewest_blocks
from headwind.verdicts.verdict import Comparison, Rule, share_of

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
    outlook: Outlook  # for the one that takes longest; of self-checks only if nothing else is open
    most: int  # blocks that the matrix allows
    block_s: float  # expected wall time of one more block
    soonest: Outlook  # for the one that takes least; of self-checks only if nothing else is open
    judged: tuple[Metric, ...]  # any of them may settle a comparison
    is_fixed: bool  # the matrix asks for a number of blocks, and has no `max`

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All that is not settled."""
        return self.undecided + self.unconfirmed

    def allows(self, outlook: Outlook) -> bool:
        """Whether a forecast can come true within the blocks of the matrix."""
        return outlook.blocks is not None and self.n + outlook.blocks <= self.most

    @property
    def is_of_checks(self) -> bool:
        """Whether every comparison of protocols is settled."""
        return all(pair.is_check for pair in self.pairs)

    @property
    def undecided_by(self) -> tuple[Metric, ...]:
        """The metrics by none of which the undecided have a verdict."""
        return tuple(dict.fromkeys(metric for pair in self.undecided for metric in pair.deciding(self.judged)))


def still_open(
    matrix: Matrix,
    findings: Mapping[str, Sequence[Finding]],
    held: Collection[Key],
    blocks: Mapping[str, int],
    rule: Rule,
    block_s: Callable[[Condition], float],
) -> list[Open]:
    """Every condition with comparisons that are not settled, in the matrix's order.

    `findings` are those of findings.find_in by condition id, judged as long as more blocks can come, `held` is what is
    settled (headwind/verdicts/settled.py), and `blocks` how many blocks each condition has.
    """
    every = [finding for found in findings.values() for finding in found if not finding.pair.is_check]
    joining = sum(finding.key not in held and finding.is_decided for finding in every)
    bar = joining_bar(len(every), len(held), joining)
    left = []
    for condition in matrix.conditions:
        needs = {
            pair: need
            for pair, mine in groupby(findings[condition.id], key=lambda finding: finding.pair)
            if (need := _need(pair, list(mine), held, rule, bar))
        }
        if needs:
            left.append(_open(matrix, condition, needs, blocks.get(condition.id, 0), block_s(condition)))
    return left


@dataclass(frozen=True, slots=True)
class _Need:
    """What a comparison lacks: a verdict, or else only evidence for the one it has."""

    outlook: Outlook
    verdict: bool


def _open(matrix: Matrix, condition: Condition, needs: Mapping[Pair, _Need], n: int, block_s: float) -> Open:
    outlooks = sorted((need.outlook for need in needs.values()), key=_longest)
    fewest = min((outlook.low for outlook in outlooks if outlook.low), default=None)
    rate = sum(outlook.rate for outlook in outlooks)
    undecided = tuple(pair for pair, need in needs.items() if need.verdict)
    unconfirmed = tuple(pair for pair in needs if pair not in undecided)
    protocols = [need.outlook for pair, need in needs.items() if not pair.is_check]
    soonest, longest = (pick(protocols or outlooks, key=_longest) for pick in (min, max))
    return Open(
        condition, undecided, unconfirmed, n, fewest, rate, longest, matrix.repeat.most, block_s, soonest,
        matrix.judged(condition), not matrix.repeat.is_adaptive,
    )  # fmt: skip


def _need(pair: Pair, findings: Sequence[Finding], held: Collection[Key], rule: Rule, bar: float) -> _Need | None:
    """None when a comparison is settled; `bar` is the ln e-value that a verdict needs to stand among all."""
    deciding = pair.deciding(finding.metric for finding in findings)
    mine = [finding for finding in findings if finding.metric in deciding]
    decided = [finding.comparison for finding in mine if finding.is_decided]
    if any(finding.key in held for finding in mine) or (decided and pair.is_check):
        return None
    if decided:
        return _Need(_nearest([_until(comparison, bar) for comparison in decided]), verdict=False)
    wanted = replace(rule, margin_ratio=NO_MARGIN) if pair.is_control else rule
    return _Need(_nearest([_outlook(finding, wanted) for finding in mine]), verdict=True)


def _longest(outlook: Outlook) -> float:
    return math.inf if outlook.blocks is None else outlook.blocks


def _nearest(outlooks: Sequence[Outlook]) -> Outlook:
    """One metric is enough: the shortest, with the best rate of any."""
    return replace(min(outlooks, key=_longest), rate=max(outlook.rate for outlook in outlooks))


def joining_bar(comparisons: int, held: int, joining: int) -> float:
    """The ln e-value with which comparisons are held, if all that are decided and not held come to have it.

    What stats.e_bh asks of the smallest e-values, of equal ones; those that are held have more than enough.
    """
    return math.log(max(1, comparisons - held) / (FALSE_SHARE * (held + max(1, joining))))


def blocks_to_stand(findings: Iterable[Finding]) -> dict[Key, int]:
    """About how many more blocks it takes until what is decided in its own condition stands among all.

    `findings` are those of all comparisons of a run by every judged metric; of what stands already nothing is said, nor
    of what cannot, because the processors were the limit or the network was another one.
    """
    every = [finding for finding in findings if not finding.pair.is_check]
    joining = [each for each in every if each.is_decided and not each.survives and not each.is_processor_bound]
    bar = joining_bar(len(every), sum(finding.survives for finding in every), len(joining))
    return {finding.key: _until(finding.comparison, bar).blocks or 1 for finding in joining}


def _until(comparison: Comparison, bar: float) -> Outlook:
    """Blocks until the evidence suffices, if blocks go on falling as they did.

    By Stirling's formula ln e of n blocks is n times a rate, less ln(n + 1) (stats.log_e_of_count); then comes the
    claim's share (verdict.share_of).
    """
    n = comparison.interval.n
    rate = (comparison.log_e_value + math.log((n + 1) / share_of(comparison.verdict))) / n
    blocks = max(0, ceil((bar - comparison.log_e_value) / rate)) + 1
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
