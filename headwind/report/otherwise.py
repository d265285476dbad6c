"""Where another judged metric says something else than the primary one, both settled: what that means. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwind.arm import Arm
from headwind.format import arm_name, enumerated
from headwind.observed import Observed
from headwind.report.tracks import track_of
from headwind.report.verdicts import Word, sides, word_of
from headwind.report.words import named
from headwind.run.data import RunData
from headwind.verdicts.judgement import Line

Part = tuple[str, str]
# What is done by a share of PROGRESS (headwind/workloads/h2load.py), and what is left then.
PARTS = {0.99: ("99 %", "last hundredth"), 0.9: ("nine tenths", "last tenth"), 0.5: ("half", "later half")}


def otherwise(data: RunData) -> list[str]:
    """What the headline, which goes by the primary metric, does not tell: a sentence for all that mean the same.

    `By mean completion time, HTTP/3 and HTTP/2 tie in loss, where HTTP/3 beats by total time: nine tenths of the
    requests were done as early over HTTP/2, or earlier; the lead is in the last tenth.`
    """
    rule, alike = data.judgement.rule, dict[tuple[str, str, Arm, Part | None], dict[tuple[Arm, str], list[str]]]()
    for line in data.judgement.compared:
        if word_of(line.primary, rule) is not Word.BEATS:
            continue
        winner, loser = sides(line.primary)
        for other in line.others:
            word, primary = word_of(other, rule), line.primary.metric.label
            if word is Word.TIE:
                said = f"{arm_name(winner)} and {arm_name(loser)} tie", f"{arm_name(winner)} beats by {primary}"
            elif word is Word.BEATS and sides(other)[0] == loser:
                said = f"{arm_name(loser)} beats {arm_name(winner)}", f"by {primary} it is the other way round"
            else:
                continue
            start = ", ".join(filter(None, (f"By {other.metric.label}", other.metric.note)))
            where = alike.setdefault((start, said[1], winner, _part(data, line, winner, loser)), {})
            where.setdefault((loser, said[0]), []).append(data.matrix.name_of(line.condition))
    return [
        f"{start}, {', and '.join(f'{said} in {named(names)}' for (_, said), names in where.items())}, "
        f"where {end}{_meaning(part, [loser for loser, _ in where])}."
        for (start, end, _, part), where in alike.items()
    ]


def _meaning(part: Part | None, losers: Iterable[Arm]) -> str:
    """What it means that the lead by the primary metric is in this part of the requests."""
    if part is None:
        return ""
    over = enumerated(dict.fromkeys(map(arm_name, losers)))
    return f": {part[0]} of the requests were done as early over {over}, or earlier; the lead is in the {part[1]}"


def _part(data: RunData, line: Line, winner: Arm, loser: Arm) -> Part | None:
    """In which part of the requests the lead by the primary metric is; None where the figures do not show it."""
    rows = data.rows.get(line.condition.id, {})
    fast, slow = (track_of(line.condition, rows, arm).reached for arm in (winner, loser))
    margin = 1 + data.judgement.rule.margin_ratio
    return next((part for share, part in PARTS.items() if _as_early(fast, slow, share, margin)), None)


def _as_early(fast: Mapping[float, Observed], slow: Mapping[float, Observed], share: float, margin: float) -> bool:
    """Whether the slower arm had this share of its requests done within the margin of when the faster one had."""
    if share not in fast or share not in slow or not (fast[share].is_finished and slow[share].is_finished):
        return False
    return slow[share].known <= margin * fast[share].known
