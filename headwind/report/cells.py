"""A comparison in one network as a cell: leader, size, certainty and notes. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.format import arm_name
from headwind.proof.spans import TOO_EARLY
from headwind.report.certainty import Certainty, Known, certainty_of, most_apart, slight_text, verdict_of
from headwind.report.verdicts import (
    MARKS,
    ahead_text,
    apart_text,
    end,
    few_text,
    interval_text,
    lead_size,
    leader,
    possible_text,
    reach_text,
    sides,
    stalled_text,
    withheld_text,
)
from headwind.verdicts.assumptions import WarningKind
from headwind.verdicts.findings import Finding
from headwind.verdicts.verdict import Verdict

NEAR = 1.25  # an unclear cell names a metric by which it is likely, if its interval ends below this ratio


@dataclass(frozen=True, slots=True)
class Cell:
    """A comparison by one metric, as texts."""

    certainty: Certainty
    winner: Arm | None  # None for a tie, and if unclear
    text: str  # "HTTP/3 2.27x", "tie", "HTTP/3 is 1.09x slower to 1.19x faster", "only 3 blocks"
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

        Such as `unclear: HTTP/3 is 1.09x slower to 1.19x faster; by mean completion time: ✓ HTTP/3 1.10x [1.06, 1.14]`.
        """
        metric = f"{self.metric}:" if self.metric else ""
        first = " ".join(filter(None, (metric, self.mark, self.text, self.interval)))
        own = ", ".join(filter(None, (first, *self.notes)))
        return "; ".join((own, *map(str, self.others)))


Floors = Mapping[str, float]  # noise floors by condition id, if known


def cell_of(known: Known, floors: Floors) -> Cell:
    """The cell of a comparison: first by the primary metric, which the charts show."""
    primary = known.line.primary
    notes = (
        *reasons_of(primary),
        *_stalls(primary),
        *_noise(known, floors),
        *_drift(primary),
        *_likely(known),
    )
    return _cell(primary, notes, tuple(_by_others(known.others, leader(primary))))


def cell_by(finding: Finding) -> Cell:
    """The cell of a comparison by one metric."""
    return _cell(finding, (*reasons_of(finding), *_stalls(finding), *_drift(finding)))


def _by_others(findings: Iterable[Finding], first: Arm | None) -> Iterator[Cell]:
    """The cells of other metrics than the primary one, by which `first` leads, if any arm does."""
    for finding in findings:
        cell = cell_by(finding)
        is_another = first and cell.winner and first != cell.winner
        first = first or cell.winner
        yield replace(cell, metric=f"{'but ' if is_another else ''}by {finding.metric.label}")


def _cell(finding: Finding, notes: tuple[str, ...], others: tuple[Cell, ...] = ()) -> Cell:
    certainty, winner = certainty_of(finding), leader(finding)
    text, interval = _unclear(finding) if certainty is Certainty.UNCLEAR else _claim(finding, is_tie=not winner)
    return Cell(certainty, winner, text, interval, notes=notes, others=others)


def _unclear(finding: Finding) -> tuple[str, str]:
    n = finding.comparison.interval.n
    needs = finding.rule.blocks_needed(n)
    return (few_text(n) if n < needs else reach_text(finding) or apart_text(finding)), ""


def _claim(finding: Finding, *, is_tie: bool) -> tuple[str, str]:
    """The lead and its interval; `at least 1.98x faster` and no interval if unfinished trials leave the size open."""
    winner, interval = arm_name(sides(finding)[0]), finding.comparison.interval
    if finding.verdict.is_completion:
        return f"{winner} finishes more", ahead_text(finding).removeprefix("finished ")
    if is_tie:
        return "tie", interval_text(interval).removeprefix("? ")
    lead, bracket, ends = ahead_text(finding).partition(" [")
    return f"{winner} {lead}", f"[{ends}" if bracket else ""


def _narrowest(known: Known) -> Finding | None:
    """The narrowest of the likely findings by other metrics, if no metric is sure.

    If the primary one is likely, only those by which another arm leads, or any arm where it is a tie.
    """
    if not known.is_by_primary or known.certainty is Certainty.SURE:
        return None
    likely = [each for each in known.line.findings.values() if certainty_of(each) is Certainty.LIKELY]
    if known.certainty is Certainty.LIKELY:
        likely = [each for each in likely if leader(each) not in (None, leader(known.line.primary))]
    best = min(likely, key=lambda each: most_apart(each.comparison.interval), default=None)
    return best if best and most_apart(best.comparison.interval) <= NEAR else None


def _likely(known: Known) -> Iterator[str]:
    """Another metric by which a comparison is likely, if it is unclear or another result by the primary one."""
    if (best := _narrowest(known)) is None:
        return
    why = "".join(f" ({reason})" for reason in reasons_of(best))
    if verdict_of(best).favours:
        yield f"likely {arm_name(sides(best)[0])} {ahead_text(best)} by {best.metric.label}{why}"
    elif verdict_of(best) is Verdict.TIE:
        yield f"likely a tie by {best.metric.label}: {possible_text(best.comparison.interval)}{why}"


def reasons_of(finding: Finding) -> Iterator[str]:
    """Every reason for which a likely result is not sure."""
    if certainty_of(finding) is not Certainty.LIKELY:
        return
    if finding.is_cpu_bound:
        yield "CPU-bound"
    if verdict_of(finding).is_slight:
        yield slight_text(finding)
    if not finding.network_held:
        deviations = [each.message for each in finding.warnings if each.kind is WarningKind.NETWORK]
        is_early = all(each.endswith(TOO_EARLY) for each in deviations)
        yield f"trials {TOO_EARLY}" if is_early else "not the requested network"
    elif not finding.is_cpu_bound and not verdict_of(finding).is_slight:
        yield "not significant after correction"


def _stalls(finding: Finding) -> Iterator[str]:
    if withheld := withheld_text(finding):
        yield withheld
    if verdict_of(finding).favours and (stalls := stalled_text(finding)):
        yield stalls


def _drift(finding: Finding) -> Iterator[str]:
    """A note if the ratio changed during the run."""
    if verdict_of(finding).favours and finding.ratio_drifts:
        still = "still sure, although " if certainty_of(finding) is Certainty.SURE else ""
        yield f"{still}the ratio drifted during the run"


def _noise(known: Known, floors: Floors) -> Iterator[str]:
    """A note if the lead by the primary metric is smaller than the noise floor."""
    floor = floors.get(known.line.condition.id, 0.0)
    if may_be_noise(known.line.primary, floors):
        yield f"may be noise: under the noise floor of {end(1 + floor)}x"


def may_be_noise(finding: Finding, floors: Floors) -> bool:
    """True if a finding has a lead by its primary metric that is smaller than the noise floor of its condition."""
    verdict = verdict_of(finding)
    floor = floors.get(finding.condition.id, 0.0)
    return bool(verdict.favours) and not verdict.is_completion and lead_size(finding) < math.log1p(floor)
