"""The certainty of a comparison: sure, likely or unclear; the same three words in page, terminal and files. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from headwind.format import setting
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Line
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Verdict, ended


class Certainty(StrEnum):
    """Certainty of a comparison."""

    SURE = "sure"  # a difference beyond the margin, or a tie, that survives e-BH over all comparisons
    LIKELY = "likely"  # one of the two if it does not survive (yet), or a lead that may be within the margin
    UNCLEAR = "unclear"  # the rest: the interval bounds the difference

    @property
    def hedge(self) -> str:
        """The word before a claim: `likely `; empty if it is sure."""
        return "" if self is Certainty.SURE else f"{self} "


def verdict_of(finding: Finding) -> Verdict:
    """The verdict if no more blocks came; so during a run too, an interval that excludes 1 is a slight lead."""
    return ended(finding.comparison, finding.rule).verdict


def certainty_of(finding: Finding) -> Certainty:
    """Certainty of a comparison by one metric. A self-check is judged alone, not among the comparisons."""
    verdict = verdict_of(finding)
    if not verdict.says_something:
        return Certainty.UNCLEAR
    is_sure = (finding.survives or finding.pair.is_check) and not verdict.is_slight
    return Certainty.SURE if is_sure else Certainty.LIKELY


def slight_text(finding: Finding) -> str:
    """That a lead may be within the margin: `may lead by less than 5 %`; `just less` if its end rounds to it."""
    interval, margin = finding.comparison.interval, finding.rule.margin_ratio
    nearest = math.exp(min(abs(interval.low), abs(interval.high)))
    just = "just " if f"{nearest:.2f}" == f"{1 + margin:.2f}" else ""
    return f"may lead by {just}less than {setting('margin_ratio', margin)}"


def most_apart(interval: Interval) -> float:
    """The largest ratio, of whichever side is ahead, that an interval leaves possible: `[0.92, 1.19]` is 1.19.

    Infinite if the interval is open, as below the fewest blocks.
    """
    reach = max(-interval.low, interval.high)
    return math.exp(reach) if math.isfinite(reach) else math.inf


@dataclass(frozen=True, slots=True)
class Known:
    """A comparison in one condition, over all judged metrics."""

    line: Line
    finding: Finding  # the deciding one: by the primary metric, or the first sure one if that one is not sure
    certainty: Certainty
    by_primary: Certainty  # certainty by the primary metric
    verdict: Verdict  # verdict of `finding`, if no more blocks came
    differing: tuple[Finding, ...]  # sure by other metrics, and not as `verdict`: a reversal, or a lead in a tie
    needs: int  # blocks that any verdict needs

    @property
    def is_by_primary(self) -> bool:
        """True if the deciding finding is by the primary metric."""
        return self.finding is self.line.primary

    @property
    def others(self) -> tuple[Finding, ...]:
        """Sure findings of other metrics, if the primary one is not sure, or if they differ from it."""
        deciding = () if self.is_by_primary else (self.finding,)
        return tuple(dict.fromkeys(each for each in (*deciding, *self.differing) if each is not self.line.primary))

    @property
    def has_interval(self) -> bool:
        """True if there are enough blocks for an interval; otherwise there is no claim."""
        return self.finding.comparison.interval.n >= self.needs


def known_of(line: Line) -> Known:
    """The knowledge about a comparison: by the primary metric, or by the first sure metric if that one is not sure.

    A metric that contradicts a likely verdict by the primary one does not decide, but is listed as differing.
    """
    sure = [finding for finding in line.findings.values() if certainty_of(finding) is Certainty.SURE]
    certainty, primary = certainty_of(line.primary), verdict_of(line.primary)
    agreeing = [finding for finding in sure if not primary.says_something or finding.verdict.favours == primary.favours]
    is_by_other = certainty is not Certainty.SURE and agreeing and not line.pair.is_check
    finding = agreeing[0] if is_by_other else line.primary
    verdict = verdict_of(finding)
    differing = tuple(each for each in sure if verdict.says_something and each.verdict.favours != verdict.favours)
    needs = finding.rule.blocks_needed(finding.comparison.interval.n)
    return Known(line, finding, Certainty.SURE if is_by_other else certainty, certainty, verdict, differing, needs)
