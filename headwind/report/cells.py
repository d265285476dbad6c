"""One comparison in one network as a cell: who is ahead, how far, how sure, and what else a reader must know. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, counted, setting
from headwind.report.certainty import Certainty, Known, certainty_of, most_apart
from headwind.report.verdicts import (
    MARKS,
    ahead_text,
    apart_text,
    interval_text,
    lead_size,
    leader,
    ratio_text,
    reach_text,
    sides,
    stalled_text,
    toward,
    two,
)
from headwind.verdicts.findings import Finding
from headwind.verdicts.verdict import Rule

NEAR = 1.25  # a difference of at most so much is small enough to name the metric that bounds it


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a comparison, in texts."""

    certainty: Certainty
    winner: Arm | None  # None for a tie, and for what is unclear
    text: str  # "HTTP/3 2.27x", "tie", "at most 1.19x", "3 of 8 blocks"
    interval: str  # "[1.46, 2.53]"; of what is unclear who may be how far ahead: "HTTP/2 1.09x to HTTP/3 1.19x"
    metric: str  # "by mean completion time"; empty for the primary one
    notes: tuple[str, ...]

    @property
    def mark(self) -> str:
        """The certainty before the text."""
        return MARKS[self.certainty]

    def __str__(self) -> str:
        """`✓ HTTP/3 2.27x [1.46, 2.53], by mean completion time`."""
        first = " ".join(filter(None, (self.mark, self.text, self.interval)))
        return ", ".join(filter(None, (first, self.metric, *self.notes)))


@dataclass(frozen=True, slots=True)
class Context:
    """What cells need of the whole run."""

    rule: Rule
    floors: Mapping[str, float]  # noise floors by condition id, where they are known


def cell_of(known: Known, context: Context) -> Cell:
    """What is known of one comparison."""
    notes = (
        *_by_primary(known, context.rule),
        *_reason(known, context.rule),
        *_stalls(known),
        *_noise(known, context),
        *_differing(known),
    )
    text, interval = _unclear(known) if known.certainty is Certainty.UNCLEAR else _claim(known.finding, known.is_tie)
    winner = sides(known.finding)[0] if known.verdict.favours else None
    metric = "" if known.is_by_primary else f"by {known.finding.metric.label}"
    return Cell(known.certainty, winner, text, interval, metric, notes)


def _unclear(known: Known) -> tuple[str, str]:
    if not known.has_interval:
        return f"{known.finding.comparison.interval.n} of {counted(known.needs, 'block')}", ""
    return apart_text(known.finding), reach_text(known.finding)


def _claim(finding: Finding, is_tie: bool) -> tuple[str, str]:
    """The lead, and behind it its interval, which is all that there is if unfinished trials leave the size open."""
    winner, interval = arm_name(sides(finding)[0]), finding.comparison.interval
    if finding.verdict.is_completion:
        return f"{winner} finishes more", ahead_text(finding).removeprefix("finished ")
    if is_tie:
        return "tie", interval_text(interval)
    if not interval.has_estimate:
        return f"{winner} ahead", interval_text(toward(interval, finding.verdict.favours)).removeprefix("? ")
    lead, bracket, ends = ahead_text(finding).partition(" [")
    return f"{winner} {lead}", f"[{ends}" if bracket else ""


def _by_primary(known: Known, rule: Rule) -> Iterator[str]:
    """What the primary metric says if another one speaks; or which other one bounds a difference better."""
    if not known.is_by_primary:
        primary = known.line.primary
        certainty = certainty_of(primary, rule)
        is_unclear = certainty is Certainty.UNCLEAR
        lead = apart_text(primary) if is_unclear else " ".join(_claim(primary, not leader(primary, rule)))
        yield f"{primary.metric.label}: {certainty}, {lead}"
    elif known.certainty is Certainty.UNCLEAR:
        apart = most_apart(known.narrowest.comparison.interval)
        if apart <= NEAR < known.most_apart:
            yield f"at most {two(apart)}x by {known.narrowest.metric.label}"


def _reason(known: Known, rule: Rule) -> Iterator[str]:
    """Why something likely is not sure."""
    if known.certainty is not Certainty.LIKELY:
        return
    if not known.finding.network_held:
        yield "not the requested network"
    elif known.finding.is_processor_bound:
        yield "the processors were the limit"
    elif known.verdict.is_slight:
        yield f"may be under {setting('margin_ratio', rule.margin_ratio)}"
    else:
        yield "not significant among all"


def _stalls(known: Known) -> Iterator[str]:
    if known.verdict.favours and (stalls := stalled_text(known.finding)):
        yield stalls


def _noise(known: Known, context: Context) -> Iterator[str]:
    """A lead by the primary metric that is smaller than what the lab saw between a protocol and itself."""
    floor = context.floors.get(known.line.condition.id, 0.0)
    is_lead = known.is_by_primary and known.verdict.favours and not known.verdict.is_completion
    if is_lead and lead_size(known.finding) < math.log1p(floor):
        yield f"may be noise (below {two(1 + floor)}x)"


def _differing(known: Known) -> Iterator[str]:
    """`by median time per request HTTP/2 1.40x`: what another metric surely says otherwise."""
    for finding in known.differing:
        yield f"by {finding.metric.label} {differing_text(finding)}"


def differing_text(finding: Finding) -> str:
    """`HTTP/2 1.40x`, or `a tie`."""
    if not finding.verdict.favours:
        return "a tie"
    if finding.verdict.is_completion:
        return f"{arm_name(sides(finding)[0])} finishes more"
    lead = ratio_text(toward(finding.comparison.interval, finding.verdict.favours)).partition(" [")[0]
    return f"{arm_name(sides(finding)[0])} {lead}"
