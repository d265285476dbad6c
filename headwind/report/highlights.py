"""Where to look first: the strongest differences, and those that do not fit the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from headwind.findings import METRIC_NAMES, REQUEST, TOTAL, Finding
from headwind.format import arm_name
from headwind.report.verdicts import Line, Verdicts, ratio_text
from headwind.soundness import Concern
from headwind.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Highlight:
    """A cell worth looking at, and why."""

    condition_id: str
    text: str


def highlights(verdicts: Verdicts) -> list[Highlight]:
    """The largest proven advantage of either side in each comparison, then what is surprising."""
    return [*_strongest(verdicts), *_against_the_rest(verdicts), *_torn(verdicts)]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning about comparisons, and the conditions that it concerns."""

    concern: Concern
    comparisons: int
    condition_ids: tuple[str, ...]


def doubts(verdicts: Verdicts) -> list[Doubt]:
    """What is to be said before any verdict: that the network was another one, then the most frequent first."""
    concerned: dict[Concern, list[str]] = {}
    for line in verdicts.lines:
        for concern in dict.fromkeys(caveat.concern for caveat in line.caveats):
            concerned.setdefault(concern, []).append(line.condition.id)
    found = [Doubt(concern, len(ids), tuple(dict.fromkeys(ids))) for concern, ids in concerned.items()]
    return sorted(found, key=lambda doubt: (doubt.concern is not Concern.NETWORK, -doubt.comparisons))


def _clear(line: Line, metric: str = TOTAL) -> bool:
    return line.findings[metric].counted.is_clear


def _strongest(verdicts: Verdicts) -> Iterator[Highlight]:
    """By the end of the interval that is nearer to 1: what is proven, not what is estimated."""
    for pair in verdicts.pairs:
        clear = [line for line in verdicts.compared if line.pair == pair and _clear(line)]
        for favours in (1, -1):
            side = [line for line in clear if line.findings[TOTAL].verdict.favours == favours]
            if side:
                line = max(side, key=lambda one: _proven(one.findings[TOTAL]))
                yield Highlight(line.condition.id, f"strongest, {_said(line, line.findings[TOTAL])}")


def _proven(finding: Finding) -> float:
    interval = finding.comparison.interval
    bound = interval.low if finding.verdict.favours > 0 else -interval.high
    return math.inf if finding.verdict.is_completion else bound


def _against_the_rest(verdicts: Verdicts) -> Iterator[Highlight]:
    """A clear difference that points against most clear ones of the same comparison, if those are two or more."""
    for pair in verdicts.pairs:
        clear = [line for line in verdicts.compared if line.pair == pair and _clear(line)]
        sides = Counter(line.findings[TOTAL].verdict.favours for line in clear)
        usual, count = sides.most_common(1)[0] if sides else (0, 0)
        for line in clear:
            if count >= 2 * sides[-usual] and count > 1 and line.findings[TOTAL].verdict.favours != usual:
                yield Highlight(line.condition.id, f"unlike most conditions, {_said(line, line.findings[TOTAL])}")


def _torn(verdicts: Verdicts) -> Iterator[Highlight]:
    """The two metrics point in opposite directions."""
    for line in verdicts.compared:
        total, request = line.findings[TOTAL], line.findings[REQUEST]
        sure = _clear(line, TOTAL) and _clear(line, REQUEST)
        if sure and total.verdict.favours == -request.verdict.favours:
            said = f"{_said(line, total)}, but {request.verdict.value} by {METRIC_NAMES[REQUEST]}"
            yield Highlight(line.condition.id, f"torn, {said}: {ratio_text(request)}")


def _said(line: Line, finding: Finding) -> str:
    names = f"{arm_name(line.pair.new)} against {arm_name(line.pair.base)}"
    return (
        f"{names} is {_verb(finding.verdict)} by {METRIC_NAMES[finding.metric]}: {ratio_text(finding)} n={line.blocks}"
    )


def _verb(verdict: Verdict) -> str:
    return {Verdict.COMPLETES_MORE: "more often complete", Verdict.COMPLETES_LESS: "less often complete"}.get(
        verdict, verdict.value
    )
