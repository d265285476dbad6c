"""A comparison in one network as a cell: leader, size, certainty and notes. Pure."""

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
from headwind.verdicts.verdict import Rule

NEAR = 1.25  # up to this difference, the cell names the metric that bounds it


@dataclass(frozen=True, slots=True)
class Cell:
    """A comparison by one metric, as texts."""

    certainty: Certainty
    winner: Arm | None  # None for a tie, and if unclear
    text: str  # "HTTP/3 2.27x", "tie", "HTTP/2 up to 1.09x, HTTP/3 up to 1.19x", "3 of 8 blocks"
    interval: str  # "[1.46, 2.53]"; empty if unclear
    metric: str = ""  # "by mean completion time"; empty for the primary one
    notes: tuple[str, ...] = ()
    others: tuple[Cell, ...] = ()  # sure results of other metrics, if the primary one is not sure or differs

    @property
    def mark(self) -> str:
        """The mark of the certainty, before the text."""
        return MARKS[self.certainty]

    def __str__(self) -> str:
        """The cell as text.

        Such as `unclear: HTTP/2 up to 1.09x, HTTP/3 up to 1.19x; ✓ HTTP/3 1.10x [1.06, 1.14], by mean completion time`.
        """
        first = " ".join(filter(None, (self.mark, self.text, self.interval)))
        own = ", ".join(filter(None, (first, self.metric, *self.notes)))
        return "; ".join((own, *map(str, self.others)))


@dataclass(frozen=True, slots=True)
class Context:
    """Facts of the whole run that cells need."""

    rule: Rule
    floors: Mapping[str, float]  # noise floors by condition id, if known


def cell_of(known: Known, context: Context) -> Cell:
    """The cell of a comparison: first by the primary metric, which the charts show."""
    primary = known.line.primary
    notes = (
        *_reason(primary, context.rule),
        *_stalls(primary, context.rule),
        *_noise(known, context),
        *_narrowest(known),
    )
    return _cell(primary, context.rule, notes, tuple(_by_other(each, context.rule) for each in known.others))


def cell_by(finding: Finding, rule: Rule) -> Cell:
    """The cell of a comparison by one metric."""
    return _cell(finding, rule, tuple(_stalls(finding, rule)))


def _by_other(finding: Finding, rule: Rule) -> Cell:
    return replace(cell_by(finding, rule), metric=f"by {finding.metric.label}")


def _cell(finding: Finding, rule: Rule, notes: tuple[str, ...], others: tuple[Cell, ...] = ()) -> Cell:
    certainty, winner = certainty_of(finding, rule), leader(finding, rule)
    text, interval = _unclear(finding, rule) if certainty is Certainty.UNCLEAR else _claim(finding, is_tie=not winner)
    return Cell(certainty, winner, text, interval, "", notes, others)


def _unclear(finding: Finding, rule: Rule) -> tuple[str, str]:
    n = finding.comparison.interval.n
    needs = rule.blocks_needed(n)
    return (f"{n} of {counted(needs, 'block')}" if n < needs else reach_text(finding) or apart_text(finding)), ""


def _claim(finding: Finding, *, is_tie: bool) -> tuple[str, str]:
    """The lead and its interval; only the interval if unfinished trials leave the size open."""
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
    """Another metric that bounds the difference better, if no metric is sure."""
    if known.is_by_primary and known.certainty is Certainty.UNCLEAR:
        apart = most_apart(known.narrowest.comparison.interval)
        if apart <= NEAR < known.most_apart:
            yield f"at most {two(apart)}x by {known.narrowest.metric.label}"


def _reason(finding: Finding, rule: Rule) -> Iterator[str]:
    """Why a likely result is not sure."""
    if certainty_of(finding, rule) is not Certainty.LIKELY:
        return
    if not finding.network_held:
        yield "not the requested network"
    elif finding.is_cpu_bound:
        yield "CPU-bound"
    elif verdict_of(finding, rule).is_slight:
        yield f"may be under {setting('margin_ratio', rule.margin_ratio)}"
    else:
        yield "not significant after correction for all comparisons"


def _stalls(finding: Finding, rule: Rule) -> Iterator[str]:
    if verdict_of(finding, rule).favours and (stalls := stalled_text(finding)):
        yield stalls


def _noise(known: Known, context: Context) -> Iterator[str]:
    """A note if the lead by the primary metric is smaller than the noise floor."""
    floor, verdict = context.floors.get(known.line.condition.id, 0.0), verdict_of(known.line.primary, context.rule)
    if verdict.favours and not verdict.is_completion and lead_size(known.line.primary) < math.log1p(floor):
        yield f"may be noise (below {two(1 + floor)}x)"
