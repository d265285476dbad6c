"""Who leads in each condition, how sure that is, and on how many blocks it rests. Pure.

A claim names the winner first, and its ratio is above 1. `beats` and `tie` are said only of what stands among all
comparisons of the matrix; `perhaps` marks the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated
from headwind.metric import Better, Metric
from headwind.model import Condition, Outcome
from headwind.observed import Observed, figure, from_best, median, observed
from headwind.report.perhaps import why_perhaps
from headwind.report.verdicts import Word, ahead_text, claim_text, is_own, lead_size, sides, stalled_text, word_of
from headwind.run.data import RunData, is_data
from headwind.verdicts.findings import Finding, Rows
from headwind.verdicts.judgement import Line
from headwind.verdicts.stats import fewest_blocks
from headwind.verdicts.verdict import Rule
from impair.profile import Link

MOST_NAMED = 3  # arms or claims in a row of text; the rest is counted


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of one arm against others, or of a pair that ties."""

    word: Word
    winner: Arm | None  # None for a tie
    text: str  # "HTTP/3 beats HTTP/2 1.23x [1.10, 1.34]"
    is_of_newest: bool  # whether it is about the arm that a reader asks about first


@dataclass(frozen=True, slots=True)
class Standing:
    """One condition in a line."""

    condition: Condition
    word: Word | None  # of the strongest claim; None where nothing was compared
    leader: Arm | None
    claim: str
    notes: tuple[str, ...]  # the other claims
    stopped: str  # "stopped at the timeout: HTTP/1.1 3, HTTP/2 1 of 12"; empty where no trial was
    seen: str  # "HTTP/3 fastest in 17 of 28 blocks", or in how many nobody was more often; empty where none can be told
    blocks_text: str  # "28 blocks", or "3 of 8 blocks" where a verdict needs more
    rows: Rows
    medians: Mapping[Arm, Observed]  # of the primary metric, of every arm that gave data

    @property
    def lowest(self) -> Arm | None:
        """Whose median is the best, where that is known and nobody shares it. It is no verdict."""
        return _lowest(self.medians, self.condition.workload.primary())


def _lowest(medians: Mapping[Arm, Observed], metric: Metric) -> Arm | None:
    best = from_best(medians.values(), metric.better)[:2]
    if not best or not best[0].is_finished or (len(best) > 1 and best[0] == best[1]):
        return None
    return next(arm for arm, value in medians.items() if value is best[0])


def is_reference(condition: Condition) -> bool:
    """Whether nothing is impaired in it: what the others are compared with."""
    return condition.profile.uplink == condition.profile.downlink == Link()


def standings(data: RunData) -> list[Standing]:
    """One for each condition: those with nothing impaired first, then by the median time of all their arms."""
    judgement = data.judgement
    lines: dict[str, list[Line]] = {}
    for line in judgement.compared:
        lines.setdefault(line.condition.id, []).append(line)
    found = [
        _standing(data, condition, lines.get(condition.id, []), data.rows.get(condition.id, {}))
        for condition in data.matrix.conditions
    ]
    return sorted(found, key=_rank)


def _rank(standing: Standing) -> tuple[bool, bool, float]:
    values = from_best(standing.medians.values(), standing.condition.workload.primary().better)
    return not is_reference(standing.condition), not values, median(values).known if values else math.inf


def _standing(data: RunData, condition: Condition, lines: Sequence[Line], rows: Rows) -> Standing:
    rule, newest = data.judgement.rule, data.matrix.newest
    found = claims(lines, rule, newest)
    words = {word_of(line.primary, rule) for line in lines}
    word = next((word for word in Word if word in words), None) if rows else None
    notes = [*_others(found), *_left(lines, rule, newest)]
    notes += why_perhaps(data.judgement, lines)
    claim = (found[0].text if found else str(word or "")) if rows else "not run"
    medians = _medians(data, condition, rows)
    named = {_lowest(medians, condition.workload.primary())} - {None} | {claim.winner for claim in found[:1]}
    return Standing(
        condition, word, found[0].winner if found else None, claim, tuple(notes), _stopped(data, rows),
        _fastest(data, condition, rows, named), _blocks(word, lines, rows, rule), rows, medians,
    )  # fmt: skip


def _stopped(data: RunData, rows: Rows) -> str:
    """`stopped at the timeout: HTTP/1.1 3, HTTP/2 1 of 12`, of the trials in figures."""
    stops: dict[Arm, int] = {}
    ran: dict[Arm, int] = {}
    for arm in data.matrix.arms:
        results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
        if count := sum(result.outcome is Outcome.TIMEOUT for result in results):
            stops[arm], ran[arm] = count, len(results)
    if not stops:
        return ""
    *others, last = stops
    told = [
        *(f"{arm_name(arm)} {stops[arm]}" + (f" of {ran[arm]}" if ran[arm] != ran[last] else "") for arm in others),
        f"{arm_name(last)} {stops[last]} of {ran[last]}",
    ]
    return f"stopped at the timeout: {', '.join(told)}"


def claims(lines: Sequence[Line], rule: Rule, newest: Arm) -> list[Claim]:
    """Everything that one condition's comparisons say by the primary metric, the surest first.

    What one arm has over several others is one claim; of two arms that beat as many, the one with the larger lead comes
    first.
    Of the arm `newest` everything is said, of the others in few words where they are many.
    """
    return [
        *_leads(lines, rule, newest, Word.BEATS),
        *_ties(lines, rule, newest, Word.TIE),
        *_leads(lines, rule, newest, Word.PERHAPS),
        *_ties(lines, rule, newest, Word.PERHAPS),
    ]


def _leads(lines: Sequence[Line], rule: Rule, newest: Arm, word: Word) -> Iterator[Claim]:
    over: dict[Arm, list[Finding]] = {}
    for line in lines:
        if word_of(line.primary, rule) is word and line.primary.verdict.favours:
            over.setdefault(sides(line.primary)[0], []).append(line.primary)
    verb = "beats" if word is Word.BEATS else "perhaps beats"
    for winner, findings in sorted(over.items(), key=lambda item: (-len(item[1]), -max(map(_size, item[1])))):
        is_of_newest = any(newest in (finding.pair.new, finding.pair.base) for finding in findings)
        yield Claim(word, winner, f"{arm_name(winner)} {verb} {_over(findings, newest)}", is_of_newest)


def _size(finding: Finding) -> float:
    """Of a lead, as ln; the largest is that of who finished more often."""
    return math.inf if finding.verdict.is_completion else lead_size(finding)


def _over(findings: Sequence[Finding], newest: Arm) -> str:
    """`HTTP/1.1 1.82x [1.60, 2.05] and HTTP/2 2.10x [1.94, 2.20]`; of many how many there are.

    `newest` is named all the same, and whom it is ahead of.
    """
    told = [finding for finding in findings if len(findings) <= MOST_NAMED or newest in sides(finding)]
    told.sort(key=lambda finding: is_own(*sides(finding)[::-1]))
    left = len(findings) - len(told)
    others = [f"{left} others" if left > 1 else "another"] if left else []
    stalled = dict.fromkeys(filter(None, map(stalled_text, told)))
    return ", ".join([enumerated([*map(_lead, told), *others]), *stalled])


def _lead(finding: Finding) -> str:
    """`HTTP/2 1.23x [1.10, 1.34]`, or `HTTP/2 (finished 12 against 0 of 12)`."""
    loser, lead = sides(finding)[1], ahead_text(finding)
    return f"{arm_name(loser)} {f'({lead})' if finding.verdict.is_completion else lead}"


def _ties(lines: Sequence[Line], rule: Rule, newest: Arm, word: Word) -> Iterator[Claim]:
    found = [line for line in lines if word_of(line.primary, rule) is word and not line.primary.verdict.favours]
    if len(found) == len(lines) > 1:
        yield Claim(word, None, "all tie" if word is Word.TIE else "all perhaps tie", is_of_newest=True)
        return
    for line in found:
        yield Claim(word, None, claim_text(line.primary, rule), newest in (line.pair.new, line.pair.base))


def _blocks(word: Word | None, lines: Sequence[Line], rows: Rows, rule: Rule) -> str:
    """How many there are: of those in which both arms of a comparison gave data, where they are too few."""
    if word is Word.FEW:
        return (
            f"{max(line.blocks for line in lines)} of {counted(fewest_blocks(rule.confidence, rule.anytime), 'block')}"
        )
    return counted(len(rows), "block") if rows else ""


def _others(found: Sequence[Claim]) -> Iterator[str]:
    """All claims but the first: those of the newest arm, and of the others as many as there is room for."""
    room = MOST_NAMED - sum(claim.is_of_newest for claim in found[1:])
    left = 0
    for claim in found[1:]:
        room -= not claim.is_of_newest
        if claim.is_of_newest or room >= 0:
            yield claim.text
        else:
            left += 1
    if left:
        yield f"{left} more"


def _left(lines: Sequence[Line], rule: Rule, newest: Arm) -> Iterator[str]:
    """Comparisons that say nothing yet, where others do: those of the newest arm by name."""
    still = [line for line in lines if not line.primary.verdict.says_something]
    if len(still) == len(lines):
        return
    for is_of_newest in (True, False):
        mine = [line for line in still if (newest in (line.pair.new, line.pair.base)) is is_of_newest]
        words = {word_of(line.primary, rule) for line in mine}
        word = Word.FEW if words == {Word.FEW} else Word.OPEN
        if mine and is_of_newest:
            rivals = (line.pair.base if line.pair.new == newest else line.pair.new for line in mine)
            yield f"{arm_name(newest)} against {enumerated(map(arm_name, rivals))}: {word}"
        elif len(mine) == 1:
            yield f"{arm_name(mine[0].pair.new)} against {arm_name(mine[0].pair.base)}: {word}"
        elif mine:
            yield f"{len(mine)} others: {word}"


def _fastest(data: RunData, condition: Condition, rows: Rows, named: set[Arm | None]) -> str:
    """`HTTP/3 fastest in 17 of 28 blocks`: of those in which every arm has a value or a bound. It is no verdict.

    Where another arm is `named` by the claim or the medians, and where two are as often the fastest: `nobody is fastest
    in more than 9 of 28 blocks`.
    """
    firsts, blocks = first_in(rows, data.matrix.arms)
    best = firsts.most_common(2)
    if not best:
        return ""
    word = "fastest" if condition.workload.primary().better is Better.LESS else "best"
    share = f"{best[0][1]} of {counted(blocks, 'block' if blocks == len(rows) else 'complete block')}"
    if len({count for _, count in best}) == len(best) and named <= {best[0][0]}:
        return f"{arm_name(best[0][0])} {word} in {share}"
    return f"nobody is {word} in more than {share}" if best[0][1] < blocks else ""


def first_in(rows: Rows, arms: Sequence[Arm]) -> tuple[Counter[Arm], int]:
    """How often each arm was first, and in how many blocks that can be said: those in which each arm gave data.

    Nobody is first where the best two are equal, or none finished.
    """
    firsts: Counter[Arm] = Counter()
    blocks = 0
    for row in rows.values():
        metric = next(iter(row.values())).trial.block.condition.workload.primary()
        values = {arm: value for arm in arms if (value := observed(row.get(arm), metric))}
        if len(values) < len(arms) or len(arms) < 2:
            continue
        blocks += 1
        best, second = from_best(values.values(), metric.better)[:2]
        if best.is_finished and best != second:
            firsts[next(arm for arm, value in values.items() if value is best)] += 1
    return firsts, blocks


def _medians(data: RunData, condition: Condition, rows: Rows) -> dict[Arm, Observed]:
    metric = condition.workload.primary()
    found: dict[Arm, Observed] = {}
    for arm in data.matrix.arms:
        results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
        if results:
            found[arm] = median(from_best((figure(result, metric) for result in results), metric.better))
    return found
