"""The answer of a run in sentences: what is settled, what was only seen, and what was measured. Pure.

The page, the terminal and summary.md begin with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, served_text
from headwind.metric import Better, Workload
from headwind.model import Matrix
from headwind.report.standing import Standing
from headwind.report.verdicts import Word, is_own, sides, word_of
from headwind.report.words import named
from headwind.run.data import RunData
from headwind.verdicts.findings import Pair
from headwind.verdicts.judgement import Line
from headwind.verdicts.stats import fewest_blocks

MOST_SAID = 4  # clauses of a sentence, and names of conditions in it; the rest is counted
MOST_IN_PASSING = 2  # names where more is said in the same breath


@dataclass(frozen=True, slots=True)
class Score:
    """What is settled between two arms by the primary metric; names of conditions, of which each is in one list.

    The first is the one that beats more often.
    """

    first: Arm
    second: Arm
    beats: tuple[str, ...]
    loses: tuple[str, ...]
    ties: tuple[str, ...]
    open: tuple[str, ...]  # nothing is settled
    ratios: tuple[float, ...]  # of the first's wins, where they are about speed and known
    lost: tuple[float, ...]  # of the second's


def headline(data: RunData) -> str:
    """What is settled by the primary metric, the winner first."""
    return " ".join(headline_sentences(data))


def headline_sentences(data: RunData) -> list[str]:
    """The headline: who wins where, of the newest protocol against each of its rivals; then where it is otherwise.

    Then the same of the others among themselves, and what is not compared.
    """
    matrix = data.matrix
    if not data.judgement.pairs:
        return ["There is one protocol, so nothing to compare."]
    if not data.latest:
        return ["Nothing has run, so nothing is known."]
    found = scores(data)
    if all(len(score.open) == len(matrix.conditions) for score in found):
        return [_nothing_settled(data)]
    if len(found) > 1 and all(len(score.ties) == len(matrix.conditions) for score in found):
        return [f"All tie in {_share(len(matrix.conditions), len(matrix.conditions), matrix.place)}."]
    of_newest = [score for score in found if matrix.newest in (score.first, score.second)]
    others = [score for score in found if score not in of_newest]
    first = _clauses(of_newest, matrix)
    second = _clauses(others, matrix)
    clauses = [first, _elsewhere(of_newest, len(first) == 1), second, _elsewhere(others, len(second) == 1)]
    for number in (2, 3):
        if len(clauses[number]) > MOST_SAID:
            left = len(clauses[number]) - MOST_SAID + 1
            clauses[number] = [*clauses[number][: MOST_SAID - 1], f"{left} more below"]
    return [f"{'; '.join(each)}." for each in [*clauses, _not_compared(data)] if each]


def _not_compared(data: RunData) -> list[str]:
    """The arms of the newest protocol, each with those of other protocols that a matrix does not compare it with."""
    newest, told = data.matrix.newest, []
    met = {frozenset((pair.new, pair.base)) for pair in data.judgement.pairs}
    for arm in sorted(data.matrix.arms, key=lambda arm: arm != newest):
        others = [other for other in data.matrix.arms if other.protocol is not arm.protocol]
        left = [arm_name(other) for other in others if frozenset((arm, other)) not in met]
        if arm.protocol is newest.protocol and left:
            names = [*left[: MOST_SAID - 1], f"{len(left) - MOST_SAID + 1} more"] if len(left) > MOST_SAID else left
            is_none = len(left) == len(others) > 1
            told.append(f"{arm_name(arm)} with {'any other protocol' if is_none else enumerated(names)}")
    return [f"Not compared: {told[0]}", *told[1:]] if told else []


def scores(data: RunData) -> list[Score]:
    """One for each pair of arms that is compared, those of the newest arm as it if nobody beats more often."""
    matrix, lines = data.matrix, dict[Pair, list[Line]]()
    for line in data.judgement.compared:
        lines.setdefault(line.pair, []).append(line)
    return [_score(pair, lines.get(pair, []), data) for pair in data.judgement.pairs] if matrix.conditions else []


def _score(pair: Pair, lines: Sequence[Line], data: RunData) -> Score:
    matrix, rule = data.matrix, data.judgement.rule
    where: dict[Arm | Word, list[str]] = {}
    ratios: dict[Arm, list[float]] = {}
    for line in lines:
        word, name = word_of(line.primary, rule), matrix.name_of(line.condition)
        winner, verdict = sides(line.primary)[0], line.primary.verdict
        where.setdefault(winner if word is Word.BEATS else word, []).append(name)
        estimate = line.primary.comparison.interval.estimate
        if word is Word.BEATS and not verdict.is_completion and estimate is not None and math.isfinite(estimate):
            ratios.setdefault(winner, []).append(math.exp(verdict.favours * estimate))
    first, second = (pair.base, pair.new) if pair.base == matrix.newest else (pair.new, pair.base)
    if len(where.get(second, ())) > len(where.get(first, ())):
        first, second = second, first
    beats, loses, ties = (tuple(where.get(key, ())) for key in (first, second, Word.TIE))
    left = tuple(name for name in map(matrix.name_of, matrix.conditions) if name not in (*beats, *loses, *ties))
    by_first, by_second = (tuple(ratios.get(arm, ())) for arm in (first, second))
    return Score(first, second, beats, loses, ties, left, by_first, by_second)


def _clauses(found: Sequence[Score], matrix: Matrix) -> list[str]:
    """`HTTP/3 beats HTTP/1.1 in 6 of 8 networks (1.2x to 3.1x) and HTTP/2 in 2: delay, loss (...)`, for each winner.

    Then who ties, then what is open everywhere. Arms of which the same holds are named together.
    """
    in_full = _Counting(len(matrix.conditions), matrix.place)
    clauses = []
    winning = _winning(found)
    for winner in dict.fromkeys(score.first for score in winning):
        told = [
            f"{_rivals(alike)} in {_with_names(alike[0].beats, in_full)}{_ratios(alike)}"
            for alike in _alike(score for score in winning if score.first == winner)
        ]
        clauses.append(f"{arm_name(winner)} beats {(', and ' if ': ' in told[0] else ' and ').join(told)}")
    for score in found:
        if score.ties and not score.beats:
            names = f"{arm_name(score.first)} and {arm_name(score.second)}"
            left = f" (open in {named(score.open, MOST_IN_PASSING)})" if score.open else ""
            clauses.append(f"{names} tie in {_with_names(score.ties, in_full)}{left}")
    closed = [score for score in found if not score.beats and not score.ties]
    for first in dict.fromkeys(score.first for score in closed):
        names = enumerated(arm_name(score.second) for score in closed if score.first == first)
        clauses.append(
            f"{arm_name(first)} against {names} is open in {in_full(list(map(matrix.name_of, matrix.conditions)))}"
        )
    return clauses


def _winning(found: Iterable[Score]) -> list[Score]:
    """Those with a winner, who wins most first, and against variants of its own last."""
    return sorted(
        (score for score in found if score.beats),
        key=lambda score: (is_own(score.second, score.first), -len(score.beats)),
    )


def _alike(found: Iterable[Score]) -> list[list[Score]]:
    """Those of which the same holds in the same conditions, together; variants of the winner's own by themselves."""
    groups: dict[tuple[object, ...], list[Score]] = {}
    for score in found:
        groups.setdefault((score.beats, score.loses, score.ties, is_own(score.second, score.first)), []).append(score)
    return list(groups.values())


def _rivals(alike: Iterable[Score]) -> str:
    return enumerated(arm_name(score.second) for score in alike)


def _ratios(alike: Sequence[Score]) -> str:
    """` (1.20x to 3.10x)`: by how much rivals are beaten; of several, in one condition, ` (HTTP/1.1 6.68x, ...)`.

    Where a win is about finishing, which has no ratio, the rows tell it.
    """
    if any(len(each.ratios) < len(each.beats) for each in alike):
        return ""
    if len(alike) > 1 and len(alike[0].beats) == 1:
        return f" ({', '.join(f'{arm_name(each.second)} {each.ratios[0]:.2f}x' for each in alike)})"
    return _range([ratio for each in alike for ratio in each.ratios])


def _lost(alike: Sequence[Score]) -> str:
    """` (1.20x to 3.10x)`: by how much rivals are ahead where they are."""
    known = all(len(each.lost) == len(each.loses) for each in alike)
    return _range([ratio for each in alike for ratio in each.lost]) if known else ""


def _range(ratios: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{ratio:.2f}x" for ratio in (min(ratios), max(ratios)))
    return f" ({' to '.join(ends)})"


def _elsewhere(found: Sequence[Score], is_alone: bool) -> list[str]:
    """`Elsewhere: against HTTP/1.1 beaten in clean (1.42x), tied in 2, open in 3`: where who wins does not.

    Only what is settled counts as beaten, and what holds nowhere is not said. A winner that `is_alone` in the sentence
    before has no name here.
    """
    winning, told = _winning(found), []
    for winner in dict.fromkeys(score.first for score in winning):
        groups = _alike(score for score in winning if score.first == winner)
        for alike in groups:
            score, rivals = alike[0], _rivals(alike)
            who = f"{arm_name(winner)} against {rivals} " if not is_alone else ""
            against = f"against {rivals} " if is_alone and len(groups) > 1 else who
            beaten = [f"beaten in {named(score.loses, MOST_SAID)}{_lost(alike)}"] if score.loses else []
            others = [f"{word} in {named(names, MOST_IN_PASSING)}" for word, names in (
                ("tied", score.ties), ("open", score.open)) if names]  # fmt: skip
            where = ", ".join(beaten + others)
            told += [against + where] if where else []
    return [f"Elsewhere: {told[0]}", *told[1:]] if told else []


def _with_names(where: Sequence[str], in_full: _Counting) -> str:
    """`3 of 8 networks: clean, delay, loss`: how many, and which where they are few and not all."""
    is_all = len(where) == in_full.total
    return in_full(where) + ("" if is_all or len(where) > MOST_SAID else f": {', '.join(where)}")


class _Counting:
    """Says in how many conditions something holds: `6 of 8 networks`, and from then on `4`."""

    def __init__(self, total: int, place: str) -> None:
        self.total, self._place, self._said = total, place, False

    def __call__(self, where: Sequence[str]) -> str:
        in_full, self._said = not self._said, True
        if in_full or self.total == 1:
            return _share(len(where), self.total, self._place)
        return {2: "both"}.get(self.total, "all") if len(where) == self.total else str(len(where))


def _share(count: int, total: int, place: str) -> str:
    if count == total:
        return {1: f"the {place}", 2: f"both {place}s"}.get(total, f"all {counted(total, place)}")
    return f"{count} of {counted(total, place)}"


def _nothing_settled(data: RunData) -> str:
    verdicts, total, place = data.judgement, len(data.matrix.conditions), data.matrix.place
    if all(word_of(line.primary, verdicts.rule) is Word.FEW for line in verdicts.compared):
        return f"Nothing is settled: no {place} has the {_fewest(data)} blocks that a verdict needs."
    where = f"the {place}" if total == 1 else f"any of {counted(total, place)}"
    return f"Nothing is settled: no protocol is shown to beat another, or to tie with it, in {where}."


def _fewest(data: RunData) -> int:
    return fewest_blocks(data.judgement.rule.confidence, data.judgement.rule.anytime)


def seen(data: RunData, found: Sequence[Standing]) -> str:
    """What was seen and is not proven: who perhaps beats whom, whose median is the best where; and too few blocks."""
    matrix = data.matrix
    in_full = _Counting(len(found), matrix.place)
    told = ["; ".join(filter(None, (_perhaps(data, in_full), _lowest(data, found, in_full))))]
    few = sum(standing.word is Word.FEW for standing in found)
    if 0 < few < len(found):
        have = "has" if few == 1 else "have"
        needs = f"fewer than the {_fewest(data)} blocks that a verdict needs"
        told.append(f"{counted(few, matrix.place)} {have} {needs}")
    return " ".join(f"{'' if number else 'Seen, not proven: '}{text}." for number, text in enumerate(told) if text)


def _perhaps(data: RunData, in_full: _Counting) -> str:
    """`HTTP/3 perhaps beats HTTP/2 in 5 of 8 networks and HTTP/1.1 in 4`, the newest arm's first."""
    matrix, rule = data.matrix, data.judgement.rule
    where: dict[Arm, dict[Arm, list[str]]] = {}
    for line in data.judgement.compared:
        if word_of(line.primary, rule) is Word.PERHAPS and line.primary.verdict.favours:
            winner, loser = sides(line.primary)
            where.setdefault(winner, {}).setdefault(loser, []).append(matrix.name_of(line.condition))
    clauses = []
    for winner in sorted(where, key=lambda arm: (arm != matrix.newest, -sum(map(len, where[arm].values())))):
        losers = sorted(where[winner], key=lambda arm: (arm != matrix.newest, -len(where[winner][arm])))[:MOST_SAID]
        parts = " and ".join(f"{arm_name(loser)} in {_few_or(where[winner][loser], in_full)}" for loser in losers)
        clauses.append(f"{arm_name(winner)} perhaps beats {parts}")
    return "; ".join(
        [*clauses[:MOST_SAID], *([f"{len(clauses) - MOST_SAID} more"] if len(clauses) > MOST_SAID else [])]
    )


def _few_or(names: Sequence[str], counted_: _Counting) -> str:
    """One or two by their names, more of them as a number."""
    return enumerated(names) if len(names) <= MOST_IN_PASSING else counted_(names)


def _lowest(data: RunData, found: Sequence[Standing], in_full: _Counting) -> str:
    """`HTTP/3 has the lowest median in 6, HTTP/1.1 in clean and loss-duplicate`; nothing of where all tie for sure."""
    matrix, leads = data.matrix, dict[Arm, list[str]]()
    compared = data.judgement.compared
    no_tie = {line.condition.id for line in compared if word_of(line.primary, data.judgement.rule) is not Word.TIE}
    found = [standing for standing in found if standing.condition.id in no_tie]
    for standing in found:
        if arm := standing.lowest:
            leads.setdefault(arm, []).append(matrix.name_of(standing.condition))
    if not leads:
        return ""
    best = "lowest" if matrix.conditions[0].workload.primary().better is Better.LESS else "highest"
    first, *others = sorted(leads.items(), key=lambda item: -len(item[1]))
    parts = [f"{arm_name(first[0])} has the {best} median in {in_full(first[1])}"]
    parts += [f"{arm_name(arm)} in {named(names)}" for arm, names in others]
    nobody = len(found) - sum(map(len, leads.values()))
    return ", ".join([*parts, *([f"nobody in {nobody}"] if nobody else [])])


def workloads(data: RunData) -> list[str]:
    """What was measured, in plain words: a sentence for all workloads that go by the same metric.

    Those of which the same is said are named together; where the server waits differently, from what to what.
    """
    alike: dict[tuple[str, str, str], list[Workload]] = {}  # by what they go by, what they are, and the server
    for workload in dict.fromkeys(condition.workload for condition in data.matrix.conditions):
        metrics = [
            result.metrics
            for result in data.latest
            if result.trial.block.condition.workload == workload and not result.trial.arm.overrides.workload
        ]
        asked = served_text(replace(workload, server_delay_s=0.0))
        alike.setdefault((workload.primary().label, workload.in_short(metrics), asked), []).append(workload)
    told: dict[tuple[str, str, str], list[str]] = {}  # by what they go by, what they are not, and the server
    for (metric, short, _), mine in alike.items():
        what, _, limit = short.partition("; ")
        names = [workload.name for workload in mine]
        text = f"{names[0]}, {what}" if len(mine) == 1 else f"{what} ({enumerated(names)})"
        told.setdefault((metric, limit, served_text(*mine)), []).append(
            what if data.matrix.place == "network" else text
        )
    return [
        f"By {metric}: {'; '.join(parts)}{f'; {limit}' if limit else ''}.{served}"
        for (metric, limit, served), parts in told.items()
    ]
