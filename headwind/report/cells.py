"""One comparison in one network as a cell: who is ahead, how far, how sure, and what else a reader must know. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, counted, measured, setting
from headwind.report.certainty import Certainty, Known, certainty_of, most_apart
from headwind.report.verdicts import (
    GLYPHS,
    ahead_text,
    apart_text,
    interval_text,
    lead_size,
    leader,
    ratio_text,
    sides,
    stalled_text,
    toward,
    two,
)
from headwind.verdicts.findings import Finding, Key
from headwind.verdicts.verdict import Rule

NEAR = 1.25  # a difference of at most so much is small enough to name the metric that bounds it


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a comparison, in texts."""

    certainty: Certainty
    winner: Arm | None  # None for a tie, and for what is unclear
    text: str  # "HTTP/3 2.27x", "tie", "at most 1.19x apart", "3 of 8 blocks"
    interval: str  # "[1.46, 2.53]"; what is unclear has its ratio with it: "HTTP/3 1.02x [0.92, 1.19]"
    notes: tuple[str, ...]

    @property
    def glyph(self) -> str:
        """The certainty for those who see no weight and no colour."""
        return GLYPHS[self.certainty]

    def __str__(self) -> str:
        """`✓ HTTP/3 2.27x [1.46, 2.53], by mean completion time`."""
        return ", ".join((" ".join(filter(None, (self.glyph, self.text, self.interval))), *self.notes))


@dataclass(frozen=True, slots=True)
class Context:
    """What cells need of the whole run."""

    rule: Rule
    floors: Mapping[str, float]  # noise floors by condition id, where they are known
    more: Mapping[Key, int]  # blocks until a likely verdict is sure, where that can be told


def cell_of(known: Known, context: Context) -> Cell:
    """What is known of one comparison."""
    notes = (
        *_metric(known, context.rule),
        *_reason(known, context),
        *_stalls(known),
        *_noise(known, context),
        *_differing(known),
    )
    text, interval = _unclear(known) if known.certainty is Certainty.UNCLEAR else _claim(known.finding, known.is_tie)
    winner = sides(known.finding)[0] if known.verdict.favours else None
    return Cell(known.certainty, winner, text, interval, notes)


def _unclear(known: Known) -> tuple[str, str]:
    interval = known.finding.comparison.interval
    if not known.has_interval:
        return f"{interval.n} of {counted(known.needs, 'block')}", ""
    if interval.estimate is None or not math.isfinite(interval.estimate):
        return apart_text(
            known.finding
        ), f"{arm_name(known.line.pair.new)} {interval_text(interval).removeprefix('? ')}"
    return apart_text(known.finding), f"{arm_name(sides(known.finding)[0])} {ahead_text(known.finding)}"


def _claim(finding: Finding, is_tie: bool) -> tuple[str, str]:
    """The lead, and behind it its interval."""
    winner = arm_name(sides(finding)[0])
    if finding.verdict.is_completion:
        return f"{winner} finishes more", ahead_text(finding).removeprefix("finished ")
    if is_tie:
        return "tie", interval_text(finding.comparison.interval)
    lead, bracket, ends = ahead_text(finding).partition(" [")
    return f"{winner} {lead}", f"[{ends}" if bracket else ""


def _metric(known: Known, rule: Rule) -> Iterator[str]:
    """Which metric it is by, if not the primary one, and what that one says; or which metric bounds it better."""
    if not known.is_by_primary:
        primary = known.line.primary
        glyph = GLYPHS[certainty_of(primary, rule)]
        said = ahead_text(primary) if leader(primary, rule) else apart_text(primary)
        name = f"{arm_name(sides(primary)[0])} " if leader(primary, rule) else ""
        yield f"by {known.finding.metric.label}"
        yield f"by {primary.metric.label} {glyph} {name}{said}"
    elif known.certainty is Certainty.UNCLEAR:
        apart = most_apart(known.narrowest.comparison.interval)
        if apart <= NEAR < known.most_apart:
            yield f"at most {two(apart)}x by {known.narrowest.metric.label}"


def _reason(known: Known, context: Context) -> Iterator[str]:
    """Why something likely is not sure."""
    if known.certainty is not Certainty.LIKELY:
        return
    finding, more = known.finding, context.more.get(known.finding.key)
    if not finding.network_held:
        yield "not the requested network"
    elif finding.is_processor_bound:
        yield "the processors were the limit"
    elif known.verdict.is_slight:
        yield f"may be under {setting('margin_ratio', context.rule.margin_ratio)}"
    elif more:
        yield f"about {counted(more, 'more block')}"


def _stalls(known: Known) -> Iterator[str]:
    if known.verdict.favours and (stalls := stalled_text(known.finding)):
        yield stalls


def _noise(known: Known, context: Context) -> Iterator[str]:
    """A lead by the primary metric that is smaller than what the lab saw between a protocol and itself."""
    floor = context.floors.get(known.line.condition.id, 0.0)
    is_lead = known.is_by_primary and known.verdict.favours and not known.verdict.is_completion
    if is_lead and lead_size(known.finding) < math.log1p(floor):
        yield f"within noise ({measured('floor_ratio', floor)})"


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
