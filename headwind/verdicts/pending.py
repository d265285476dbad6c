"""Open comparisons, and forecasts of the blocks they need: for the scheduler and for the report. Pure.

A comparison is settled if one of the judged metrics has a verdict that survives e-BH over the whole matrix. One that is
decided in its own condition only is not settled: the headline may not count it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil

from headwind.metric import Metric
from headwind.model import Condition, Matrix
from headwind.verdicts.ended import complete, ended
from headwind.verdicts.findings import FALSE_SHARE, Finding, Key, Rows
from headwind.verdicts.outlook import Outlook, blocks_needed
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import fewest_blocks
from headwind.verdicts.verdict import Comparison, Rule, share_of

NO_MARGIN = 1e-6  # a control is detected if its interval excludes 1


@dataclass(frozen=True, slots=True)
class Open:
    """A condition with comparisons that are not settled after `n` blocks, and the forecasts for them."""

    condition: Condition
    undecided: tuple[Pair, ...]  # comparisons without a verdict
    unconfirmed: tuple[Pair, ...]  # comparisons whose verdict does not survive e-BH over the matrix yet
    n: int
    fewest: int | None  # blocks until the first of them is settled, if all goes well; None: hundreds
    rate: float  # of them settled per block, at best
    outlook: Outlook  # for the one that takes longest; of self-checks only if nothing else is open
    most: int  # blocks that the matrix allows
    block_s: float  # expected wall time of one more block
    soonest: Outlook  # for the one that takes least; of self-checks only if nothing else is open
    judged: tuple[Metric, ...]  # each of them may settle a comparison
    missing: int  # complete blocks that the minimum lacks; forecasts from fewer mislead

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All comparisons that are not settled."""
        return self.undecided + self.unconfirmed

    @property
    def counted(self) -> tuple[Pair, ...]:
        """The comparisons that the forecasts are about: those of protocols, or if there are none, self-checks."""
        return tuple(pair for pair in self.pairs if self.is_of_checks or not pair.is_check)

    @property
    def first(self) -> Outlook:
        """The forecast for the comparison that takes least; for a single one `outlook`, also after `without`."""
        return self.soonest if self.counted[1:] else self.outlook

    def without(self, pairs: Collection[Pair]) -> Open:
        """The same condition without these comparisons; its forecasts stay as they are."""
        undecided, unconfirmed = (
            tuple(pair for pair in own if pair not in pairs) for own in (self.undecided, self.unconfirmed)
        )
        return replace(self, undecided=undecided, unconfirmed=unconfirmed)

    def allows(self, outlook: Outlook) -> bool:
        """True if a forecast can come true within the blocks of the matrix."""
        return outlook.blocks is not None and self.n + outlook.blocks <= self.most

    @property
    def is_of_checks(self) -> bool:
        """True if only self-checks are not settled."""
        return all(pair.is_check for pair in self.pairs)


def still_open(
    matrix: Matrix,
    findings: Mapping[str, Sequence[Finding]],
    held: Collection[Key],
    rows: Mapping[str, Rows],
    rule: Rule,
    block_s: Callable[[Condition], float],
) -> list[Open]:
    """Every condition with comparisons that are not settled, in the matrix's order.

    `findings` are those of findings.find_in by condition id, judged while more blocks can come, `held` are the settled
    comparisons (headwind/verdicts/settled.py), and `rows` has the blocks of each condition.
    """
    every = [finding for found in findings.values() for finding in found if not finding.pair.is_check]
    joining = sum(finding.key not in held and finding.is_decided for finding in every)
    bar = joining_bar(len(every), len(held), joining)
    left = []
    for condition in matrix.conditions:
        needs = {
            pair: need
            for pair, own in groupby(findings[condition.id], key=lambda finding: finding.pair)
            if (need := _need(pair, list(own), held, rule, bar))
        }
        if needs:
            left.append(_open(matrix, condition, needs, rows.get(condition.id, {}), block_s(condition)))
    return left


@dataclass(frozen=True, slots=True)
class _Need:
    """The need of an open comparison: a verdict, or only evidence for the one it has."""

    outlook: Outlook
    verdict: bool


def _open(matrix: Matrix, condition: Condition, needs: Mapping[Pair, _Need], rows: Rows, block_s: float) -> Open:
    outlooks = sorted((need.outlook for need in needs.values()), key=_longest)
    fewest = min((outlook.low for outlook in outlooks if outlook.low), default=None)
    rate = sum(outlook.rate for outlook in outlooks)
    undecided = tuple(pair for pair, need in needs.items() if need.verdict)
    unconfirmed = tuple(pair for pair in needs if pair not in undecided)
    protocols = [need.outlook for pair, need in needs.items() if not pair.is_check]
    soonest, longest = (pick(protocols or outlooks, key=_longest) for pick in (min, max))
    return Open(
        condition, undecided, unconfirmed, len(ended(rows)), fewest, rate, longest, matrix.repeat.most, block_s,
        soonest, matrix.judged(condition), max(0, matrix.repeat.least - complete(rows)),
    )  # fmt: skip


def _need(pair: Pair, findings: Sequence[Finding], held: Collection[Key], rule: Rule, bar: float) -> _Need | None:
    """The need of a comparison, None if it is settled; `bar` is the ln e-value that a verdict needs to survive e-BH."""
    deciding = pair.deciding(finding.metric for finding in findings)
    own = [finding for finding in findings if finding.metric in deciding]
    decided = [finding for finding in own if finding.is_decided]
    if any(finding.key in held for finding in own) or (decided and pair.is_check):
        return None
    if decided:
        return _Need(
            _nearest([replace(_until(each.comparison, bar), metric=each.metric) for each in decided]), verdict=False
        )
    wanted = replace(rule, margin_ratio=NO_MARGIN) if pair.is_control else rule
    return _Need(_nearest([replace(_outlook(each, wanted), metric=each.metric) for each in own]), verdict=True)


def _longest(outlook: Outlook) -> float:
    return math.inf if outlook.blocks is None else outlook.blocks


def _nearest(outlooks: Sequence[Outlook]) -> Outlook:
    """The shortest outlook, with the best rate of any, since one metric is enough."""
    return replace(min(outlooks, key=_longest), rate=max(outlook.rate for outlook in outlooks))


def joining_bar(comparisons: int, held: int, joining: int) -> float:
    """The ln e-value with which comparisons are held, if all that are decided and not held come to have it.

    It is the threshold of stats.e_bh for the smallest e-values, if they are equal; those that are held have more than
    enough.
    """
    return math.log(max(1, comparisons - held) / (FALSE_SHARE * (held + max(1, joining))))


def _until(comparison: Comparison, bar: float) -> Outlook:
    """Blocks until the evidence suffices, if the shares of blocks stay the same.

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
