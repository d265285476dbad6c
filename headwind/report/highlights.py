"""The report's list of findings to look at first: the strongest differences, and those that do not fit the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from headwind.format import arm_name
from headwind.report.verdicts import ratio_text
from headwind.verdicts.assumptions import Concern
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Highlight:
    """A cell worth looking at, and why."""

    condition_id: str
    text: str


def highlights(verdicts: Judgement) -> list[Highlight]:
    """The largest proven advantage of either side in each comparison, then what is surprising."""
    return [*_strongest(verdicts), *_against_the_rest(verdicts), *_torn(verdicts)]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning about comparisons, and the conditions that it concerns."""

    concern: Concern
    comparisons: int
    condition_ids: tuple[str, ...]


def doubts(verdicts: Judgement) -> list[Doubt]:
    """What is to be said before any verdict: that the network was another one, then the most frequent first."""
    concerned: dict[Concern, list[str]] = {}
    for line in verdicts.lines:
        for concern in dict.fromkeys(caveat.concern for caveat in line.caveats):
            concerned.setdefault(concern, []).append(line.condition.id)
    found = [Doubt(concern, len(ids), tuple(dict.fromkeys(ids))) for concern, ids in concerned.items()]
    return sorted(found, key=lambda doubt: (doubt.concern is not Concern.NETWORK, -doubt.comparisons))


def _clear(line: Line) -> bool:
    return line.primary.counted.is_clear


def _strongest(verdicts: Judgement) -> Iterator[Highlight]:
    """By the end of the interval that is nearer to 1: what is proven, not what is estimated."""
    for pair in verdicts.pairs:
        clear = [line for line in verdicts.compared if line.pair == pair and _clear(line)]
        for favours in (1, -1):
            side = [line for line in clear if line.primary.verdict.favours == favours]
            if side:
                line = max(side, key=lambda one: _proven(one.primary))
                yield Highlight(line.condition.id, f"strongest, {_said(line, line.primary)}")


def _proven(finding: Finding) -> float:
    interval = finding.comparison.interval
    bound = interval.low if finding.verdict.favours > 0 else -interval.high
    return math.inf if finding.verdict.is_completion else bound


def _against_the_rest(verdicts: Judgement) -> Iterator[Highlight]:
    """A clear difference that points against most clear ones of the same comparison, if those are two or more."""
    for pair in verdicts.pairs:
        clear = [line for line in verdicts.compared if line.pair == pair and _clear(line)]
        sides = Counter(line.primary.verdict.favours for line in clear)
        usual, count = sides.most_common(1)[0] if sides else (0, 0)
        for line in clear:
            if count >= 2 * sides[-usual] and count > 1 and line.primary.verdict.favours != usual:
                yield Highlight(line.condition.id, f"unlike most conditions, {_said(line, line.primary)}")


def _torn(verdicts: Judgement) -> Iterator[Highlight]:
    """Another metric points in the opposite direction."""
    for line in verdicts.compared:
        for other in line.others if _clear(line) else ():
            if other.counted.is_clear and line.primary.verdict.favours == -other.verdict.favours:
                said = f"{_said(line, line.primary)}, but {other.verdict.value} by {other.metric.label}"
                yield Highlight(line.condition.id, f"torn, {said}: {ratio_text(other)}")


def _said(line: Line, finding: Finding) -> str:
    names = f"{arm_name(line.pair.new)} against {arm_name(line.pair.base)}"
    return f"{names} is {_verb(finding.verdict)} by {finding.metric.label}: {ratio_text(finding)} n={line.blocks}"


def _verb(verdict: Verdict) -> str:
    return {Verdict.COMPLETES_MORE: "more often complete", Verdict.COMPLETES_LESS: "less often complete"}.get(
        verdict, verdict.value
    )
