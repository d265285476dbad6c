"""How sure a comparison is: sure, likely or unclear; the same three words in page, terminal and files. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Line
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule, Verdict, ended


class Certainty(StrEnum):
    """How much is known of a comparison."""

    SURE = "sure"  # a difference beyond the margin, or a tie, that survives e-BH among all comparisons
    LIKELY = "likely"  # either of them that does not survive (yet), or a lead that may be within the margin
    UNCLEAR = "unclear"  # the rest: the interval says how large a difference is still possible


def verdict_of(finding: Finding, rule: Rule) -> Verdict:
    """The verdict if no more blocks came: during a run, too, an interval that excludes 1 is a slight lead."""
    return ended(finding.comparison, rule).verdict


def certainty_of(finding: Finding, rule: Rule) -> Certainty:
    """How sure a comparison is by one metric. A self-check is judged alone, not among the comparisons."""
    verdict = verdict_of(finding, rule)
    if not verdict.says_something:
        return Certainty.UNCLEAR
    is_sure = (finding.survives or finding.pair.is_check) and not verdict.is_slight
    return Certainty.SURE if is_sure else Certainty.LIKELY


def most_apart(interval: Interval) -> float:
    """The largest ratio, of whichever side is ahead, that an interval leaves possible: `[0.92, 1.19]` is 1.19.

    Infinite where the interval is open, as below the fewest blocks.
    """
    reach = max(-interval.low, interval.high)
    return math.exp(reach) if math.isfinite(reach) else math.inf


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one comparison in one condition, over all judged metrics."""

    line: Line
    finding: Finding  # what speaks for it: by the primary metric, or the first that is sure where that one is not
    certainty: Certainty
    by_primary: Certainty  # how sure it is by the primary metric
    verdict: Verdict  # of `finding`, if no more blocks came
    differing: tuple[Finding, ...]  # sure by other metrics, and other than `verdict`: a reversal, or a lead in a tie
    needs: int  # blocks that any verdict takes

    @property
    def is_by_primary(self) -> bool:
        """Whether the primary metric speaks for it."""
        return self.finding is self.line.primary

    @property
    def others(self) -> tuple[Finding, ...]:
        """What other metrics than the primary one surely say where that one is not sure, or says otherwise."""
        speaks = () if self.is_by_primary else (self.finding,)
        return tuple(dict.fromkeys(each for each in (*speaks, *self.differing) if each is not self.line.primary))

    @property
    def is_tie(self) -> bool:
        """Whether both are equal within the margin, as far as is known."""
        return self.verdict is Verdict.TIE

    @property
    def has_interval(self) -> bool:
        """Whether there are enough blocks for an interval: without, nothing is claimed at all."""
        return self.finding.comparison.interval.n >= self.needs

    @property
    def most_apart(self) -> float:
        """The largest ratio that is still possible by the metric that speaks for it."""
        return most_apart(self.finding.comparison.interval)

    @property
    def narrowest(self) -> Finding:
        """The judged metric that leaves the smallest difference open; the primary one among equals."""
        return min(self.line.findings.values(), key=lambda finding: most_apart(finding.comparison.interval))


def known_of(line: Line, rule: Rule) -> Known:
    """What is known of a comparison: by the primary metric, or if that one is not sure, by the first that is.

    One that contradicts a likely verdict by the primary metric does not speak for it, but differs.
    """
    sure = [finding for finding in line.findings.values() if certainty_of(finding, rule) is Certainty.SURE]
    certainty, primary = certainty_of(line.primary, rule), verdict_of(line.primary, rule)
    agreeing = [finding for finding in sure if not primary.says_something or finding.verdict.favours == primary.favours]
    is_by_other = certainty is not Certainty.SURE and agreeing and not line.pair.is_check
    finding = agreeing[0] if is_by_other else line.primary
    verdict = verdict_of(finding, rule)
    differing = tuple(each for each in sure if verdict.says_something and each.verdict.favours != verdict.favours)
    needs = fewest_blocks(rule.confidence, rule.anytime)
    return Known(line, finding, Certainty.SURE if is_by_other else certainty, certainty, verdict, differing, needs)
