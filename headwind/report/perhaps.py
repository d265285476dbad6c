"""Why a comparison is only perhaps won or tied, and what is missing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headwind.format import arm_name, counted, enumerated, measured, setting
from headwind.model import Condition
from headwind.report.verdicts import Word, lead_size, sides, word_of
from headwind.verdicts.findings import Finding, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.pending import blocks_to_stand
from headwind.verdicts.verdict import Rule


def why_perhaps(judgement: Judgement, lines: Sequence[Line]) -> Iterator[str]:
    """For the `lines` of one condition, a note for each reason.

    `perhaps: clear by itself, but not yet among all 72 comparisons; about 4 more blocks may do`. It begins with names
    where it is not about all that is perhaps so. Another tells where as large a difference could be the lab's own.
    """
    found = [line.primary for line in lines if word_of(line.primary, judgement.rule) is Word.PERHAPS]
    why: dict[str, list[Finding]] = {}
    for finding in found:
        why.setdefault(_reason(finding, judgement.rule), []).append(finding)
    for reason, findings in why.items():
        who = "perhaps" if len(why) == 1 else enumerated(map(_names, findings))
        yield f"{who}: {reason or _not_among_all(judgement, findings)}"
    yield from _below_floor(judgement, found)


def _reason(finding: Finding, rule: Rule) -> str:
    """Empty where a verdict that stands by itself does not yet stand among all."""
    if not finding.network_held:
        return "the network was not the requested one"
    if finding.is_processor_bound:
        return "the machine's processors were the limit"
    if finding.verdict.is_slight:
        return f"the lead may be less than {setting('margin_ratio', rule.margin_ratio)}"
    return ""


def _not_among_all(judgement: Judgement, findings: Sequence[Finding]) -> str:
    every = [finding for line in judgement.compared for finding in line.findings.values()]
    more = blocks_to_stand(every)
    most = max(more[finding.key] for finding in findings)
    among = f"clear by itself, but not yet among all {counted(len(every), 'comparison')}"
    return f"{among}; about {counted(most, 'more block')} may do"


def _names(finding: Finding) -> str:
    return " against ".join(map(arm_name, sides(finding)))


def _below_floor(judgement: Judgement, found: Sequence[Finding]) -> Iterator[str]:
    if not found or (floor := noise_floor(judgement.checks, found[0].condition)) is None:
        return
    below = [each for each in found if lead_size(each) < math.log1p(floor)]
    if below:
        yield f"{enumerated(map(_names, below))}: below the noise floor, {measured('floor_ratio', floor)}"


def noise_floor(checks: Sequence[SelfCheckFinding], condition: Condition) -> float | None:
    """How far from 1 a protocol was seen from itself in this condition; None where that is not known."""
    check = floor_check(checks, condition)
    return check.noise_floor_ratio if check else None


def floor_check(checks: Sequence[SelfCheckFinding], condition: Condition) -> SelfCheckFinding | None:
    """The self-check that tells the noise floor of a condition, where that is known."""
    floors = ((check, check.noise_floor_ratio) for check in checks if check.finding.condition.id == condition.id)
    return next((check for check, floor in floors if floor is not None and math.isfinite(floor)), None)


def floor_text(check: SelfCheckFinding) -> str:
    """`44.0 %, HTTP/2 against itself`: the noise floor, and whom it is of."""
    return f"{measured('floor_ratio', check.noise_floor_ratio)}, {arm_name(check.finding.pair.base)} against itself"
