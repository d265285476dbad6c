"""One comparison in one network as a cell: who is ahead, how far, how sure, and what else a reader must know. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.format import arm_name, counted, setting
from headwind.report.certainty import Certainty, Known, certainty_of, most_apart, verdict_of
from headwind.report.verdicts import (
    MARKS,
    ahead_text,
    apart_text,
    interval_text,
    lead_size,
    leader,
    reach_text,
    sides,
    stalled_text,
    toward,
    two,
)
from headwind.verdicts.findings import Finding
from headwind.verdicts.stats import fewest_blocks
from headwind.verdicts.verdict import Rule

NEAR = 1.25  # a difference of at most so much is small enough to name the metric that bounds it


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a comparison by one metric, in texts."""

    certainty: Certainty
    winner: Arm | None  # None for a tie, and for what is unclear
    text: str  # "HTTP/3 2.27x", "tie", "HTTP/2 up to 1.09x, HTTP/3 up to 1.19x", "3 of 8 blocks"
    interval: str  # "[1.46, 2.53]"; empty for what is unclear
    metric: str = ""  # "by mean completion time"; empty for the primary one
    notes: tuple[str, ...] = ()
    others: tuple[Cell, ...] = ()  # what other metrics surely say where the primary one is not sure, or otherwise

    @property
    def mark(self) -> str:
        """The certainty before the text."""
        return MARKS[self.certainty]

    def __str__(self) -> str:
        """`unclear: HTTP/2 up to 1.09x, HTTP/3 up to 1.19x; ✓ HTTP/3 1.10x [1.06, 1.14], by mean completion time`."""
        first = " ".join(filter(None, (self.mark, self.text, self.interval)))
        own = ", ".join(filter(None, (first, self.metric, *self.notes)))
        return "; ".join((own, *map(str, self.others)))


@dataclass(frozen=True, slots=True)
class Context:
    """What cells need of the whole run."""

    rule: Rule
    floors: Mapping[str, float]  # noise floors by condition id, where they are known


def cell_of(known: Known, context: Context) -> Cell:
    """What is known of one comparison: by the primary metric first, which the charts show."""
    primary = known.line.primary
    notes = (
        *_reason(primary, context.rule),
        *_stalls(primary, context.rule),
        *_noise(known, context),
        *_narrowest(known),
    )
    return _cell(primary, context.rule, notes, tuple(_by_other(each, context.rule) for each in known.others))


def _by_other(finding: Finding, rule: Rule) -> Cell:
    cell = _cell(finding, rule, tuple(_stalls(finding, rule)))
    return replace(cell, metric=f"by {finding.metric.label}")


def _cell(finding: Finding, rule: Rule, notes: tuple[str, ...], others: tuple[Cell, ...] = ()) -> Cell:
    certainty, winner = certainty_of(finding, rule), leader(finding, rule)
    text, interval = _unclear(finding, rule) if certainty is Certainty.UNCLEAR else _claim(finding, is_tie=not winner)
    return Cell(certainty, winner, text, interval, "", notes, others)


def _unclear(finding: Finding, rule: Rule) -> tuple[str, str]:
    n, needs = finding.comparison.interval.n, fewest_blocks(rule.confidence, rule.anytime)
    return (f"{n} of {counted(needs, 'block')}" if n < needs else reach_text(finding) or apart_text(finding)), ""


def _claim(finding: Finding, *, is_tie: bool) -> tuple[str, str]:
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


def _narrowest(known: Known) -> Iterator[str]:
    """Which other metric bounds a difference better, where none is known to be sure."""
    if known.is_by_primary and known.certainty is Certainty.UNCLEAR:
        apart = most_apart(known.narrowest.comparison.interval)
        if apart <= NEAR < known.most_apart:
            yield f"at most {two(apart)}x by {known.narrowest.metric.label}"


def _reason(finding: Finding, rule: Rule) -> Iterator[str]:
    """Why something likely is not sure."""
    if certainty_of(finding, rule) is not Certainty.LIKELY:
        return
    if not finding.network_held:
        yield "not the requested network"
    elif finding.is_processor_bound:
        yield "limited by this machine's processors"
    elif verdict_of(finding, rule).is_slight:
        yield f"may be under {setting('margin_ratio', rule.margin_ratio)}"
    else:
        yield "may be chance among so many comparisons"


def _stalls(finding: Finding, rule: Rule) -> Iterator[str]:
    if verdict_of(finding, rule).favours and (stalls := stalled_text(finding)):
        yield stalls


def _noise(known: Known, context: Context) -> Iterator[str]:
    """A lead by the primary metric that is smaller than what the lab saw between a protocol and itself."""
    floor, verdict = context.floors.get(known.line.condition.id, 0.0), verdict_of(known.line.primary, context.rule)
    if verdict.favours and not verdict.is_completion and lead_size(known.line.primary) < math.log1p(floor):
        yield f"may be noise (below {two(1 + floor)}x)"
