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
from headwind.format import arm_name, counted, enumerated, measured
from headwind.model import Condition
from headwind.observed import Observed, figure, from_best, median, observed
from headwind.report.verdicts import Word, claim_text, lead_text, sides, word_of
from headwind.run.data import RunData, is_data
from headwind.verdicts.findings import Finding, Rows, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
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


@dataclass(frozen=True, slots=True)
class Standing:
    """One condition in a line."""

    condition: Condition
    word: Word | None  # of the strongest claim; None where nothing was compared
    leader: Arm | None
    claim: str
    notes: tuple[str, ...]  # the other claims, and what was only seen
    blocks_text: str  # "28 blocks", or "3 of 8 blocks" where a verdict needs more
    rows: Rows
    medians: Mapping[Arm, Observed]  # of the primary metric, of every arm that gave data

    @property
    def lowest(self) -> Arm | None:
        """Whose median is the best, where that is known and nobody shares it. It is no verdict."""
        better = self.condition.workload.primary().better
        best = from_best(self.medians.values(), better)[:2]
        if not best or not best[0].is_finished or (len(best) > 1 and best[0] == best[1]):
            return None
        return next(arm for arm, value in self.medians.items() if value is best[0])


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
    rule = data.judgement.rule
    found = claims(lines, rule)
    words = {word_of(line.primary, rule) for line in lines}
    word = next((word for word in Word if word in words), None) if rows else None
    first, *others = [claim.text for claim in found] or [str(word or "")]
    notes = [*others[:MOST_NAMED], *_left(others, lines, words), *_first_in(data, rows)]
    if found and found[0].word is Word.PERHAPS:
        notes += _below_floor(data.judgement, lines, rule)
    return Standing(
        condition, word, found[0].winner if found else None, first if rows else "not run", tuple(notes),
        _blocks(word, lines, rows, rule), rows, _medians(data, condition, rows),
    )  # fmt: skip


def claims(lines: Sequence[Line], rule: Rule) -> list[Claim]:
    """Everything that one condition's comparisons say by the primary metric, the surest first.

    What one arm has over several others is one claim; of two arms that have as much, the one named first comes first.
    """
    return [
        *_leads(lines, rule, Word.BEATS),
        *_ties(lines, rule, Word.TIE),
        *_leads(lines, rule, Word.PERHAPS),
        *_ties(lines, rule, Word.PERHAPS),
    ]


def _leads(lines: Sequence[Line], rule: Rule, word: Word) -> Iterator[Claim]:
    over: dict[Arm, list[Finding]] = {}
    for line in lines:
        if word_of(line.primary, rule) is word and line.primary.verdict.favours:
            over.setdefault(sides(line.primary)[0], []).append(line.primary)
    verb = "beats" if word is Word.BEATS else "perhaps beats"
    for winner, findings in sorted(over.items(), key=lambda item: -len(item[1])):
        yield Claim(word, winner, f"{arm_name(winner)} {verb} {_over(findings)}")


def _over(findings: Sequence[Finding]) -> str:
    """`HTTP/2 1.23x [1.10, 1.34]`, `HTTP/1.1 1.82x, HTTP/2 2.10x`, or how many there are."""
    told = [(arm_name(sides(finding)[1]), lead_text(finding)) for finding in findings]
    if len(told) == 1:
        return " ".join(told[0])
    if len(told) > MOST_NAMED:
        return f"{len(told)} others"
    return ", ".join(f"{name} {text.partition(' [')[0]}" for name, text in told)


def _ties(lines: Sequence[Line], rule: Rule, word: Word) -> Iterator[Claim]:
    found = [line for line in lines if word_of(line.primary, rule) is word and not line.primary.verdict.favours]
    if len(found) == len(lines) > 1:
        yield Claim(word, None, "all tie" if word is Word.TIE else "all perhaps tie")
        return
    for line in found:
        yield Claim(word, None, claim_text(line.primary, rule))


def _blocks(word: Word | None, lines: Sequence[Line], rows: Rows, rule: Rule) -> str:
    """How many there are: of those in which both arms of a comparison gave data, where they are too few."""
    if word is Word.FEW:
        return (
            f"{max(line.blocks for line in lines)} of {counted(fewest_blocks(rule.confidence, rule.anytime), 'block')}"
        )
    return counted(len(rows), "block") if rows else ""


def _left(others: Sequence[str], lines: Sequence[Line], words: set[Word]) -> Iterator[str]:
    """Claims that are not named, and comparisons that are open where others are not."""
    if len(others) > MOST_NAMED:
        yield f"{len(others) - MOST_NAMED} more"
    still = [line for line in lines if not line.primary.verdict.says_something]
    if still and words - {Word.OPEN, Word.FEW}:
        pair = still[0].pair
        yield f"{arm_name(pair.new)} against {arm_name(pair.base)} open" if len(still) == 1 else "others open"


def _first_in(data: RunData, rows: Rows) -> Iterator[str]:
    """`HTTP/3 first in 17 of 28`: of the blocks in which every arm has a value or a bound. It is no verdict."""
    firsts, blocks = first_in(rows, data.matrix.arms)
    best = firsts.most_common(2)
    if best and len({count for _, count in best}) == len(best):
        yield f"{arm_name(best[0][0])} first in {best[0][1]} of {blocks}"


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


def _below_floor(judgement: Judgement, lines: Sequence[Line], rule: Rule) -> Iterator[str]:
    """Where as large a difference could be of the lab's own making."""
    floor = noise_floor(judgement.checks, lines[0].condition)
    perhaps = {
        line.pair: line.primary.comparison.interval.estimate
        for line in lines
        if word_of(line.primary, rule) is Word.PERHAPS
    }
    if floor is None:
        return
    below = [pair for pair, estimate in perhaps.items() if estimate is not None and abs(estimate) < math.log1p(floor)]
    if below:
        who = enumerated(f"{arm_name(pair.new)} against {arm_name(pair.base)}" for pair in below)
        yield f"{who + ': ' if len(perhaps) > 1 else ''}below the noise floor, {measured('floor_ratio', floor)}"


def noise_floor(checks: Sequence[SelfCheckFinding], condition: Condition) -> float | None:
    """How far from 1 a protocol was seen from itself in this condition; None where that is not known."""
    floors = (check.noise_floor_ratio for check in checks if check.finding.condition.id == condition.id)
    return next((floor for floor in floors if floor is not None and math.isfinite(floor)), None)


def _medians(data: RunData, condition: Condition, rows: Rows) -> dict[Arm, Observed]:
    metric = condition.workload.primary()
    found: dict[Arm, Observed] = {}
    for arm in data.matrix.arms:
        results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
        if results:
            found[arm] = median(from_best((figure(result, metric) for result in results), metric.better))
    return found
