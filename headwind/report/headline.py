"""The headline of a run: what is sure in each network, by rule, and how much is open in the others. Pure.

In each network: who surely beats every other is fastest; who is surely beaten by every other is slowest; else the sure
leads and ties are named, those of the newest protocol first. Networks with the same claim share a clause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, setting
from headwind.model import Matrix
from headwind.report.certainty import Certainty, Known
from headwind.report.networks import Network, placed, share_of
from headwind.report.standing import Standing, pair_label
from headwind.report.verdicts import first_judged, sides, sizes_text, two
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding
from headwind.verdicts.stats import fewest_blocks

MOST_LISTED = 3  # networks by name; of more their number
MOST_CLAUSES = 4
MOST_NAMED = 2  # rivals by name


class Kind(IntEnum):
    """What a claim says of an arm, the most telling first."""

    FASTEST = 1
    SLOWEST = 2
    BEATS = 3
    TIES = 4


@dataclass(frozen=True, slots=True)
class Claim:
    """What is sure of one arm in a network. Equal claims share a clause of the headline."""

    kind: Kind
    arm: Arm
    rivals: tuple[Arm, ...]
    metric: str = ""  # what it is by, if not by the primary metric


Leads = Mapping[Claim, Sequence[Finding]]  # what each claim rests on, in the order of its rivals or of the arms
Wins = Mapping[Arm, Mapping[Arm, Finding]]  # sure leads, by winner and loser


def claims_of(known: Sequence[Known], arms: Sequence[Arm], newest: Arm) -> dict[Claim, Sequence[Finding]]:
    """What is sure in one network, with the findings behind each claim; empty where nothing is."""
    sure = [each for each in known if each.certainty is Certainty.SURE]
    wins = _wins(each.finding for each in sure if each.is_by_primary)
    return _leads(wins, arms, newest) or _ties(sure, arms) | _by_others(sure, arms, newest)


def _wins(findings: Iterable[Finding]) -> Wins:
    wins: dict[Arm, dict[Arm, Finding]] = {}
    for finding in findings:
        if finding.verdict.favours:
            winner, loser = sides(finding)
            wins.setdefault(winner, {})[loser] = finding
    return wins


def _leads(wins: Wins, arms: Sequence[Arm], newest: Arm, metric: str = "") -> dict[Claim, Sequence[Finding]]:
    """The fastest of more than two, or else the slowest; or else the leads over and of the newest protocol.

    If there are none of those, the leads of who beats most.
    """
    for arm in arms if len(arms) > 2 else ():
        if all(other in wins.get(arm, {}) for other in arms if other != arm):
            return {Claim(Kind.FASTEST, arm, (), metric): [wins[arm][other] for other in arms if other != arm]}
    for arm in arms if len(arms) > 2 else ():
        if all(arm in wins.get(other, {}) for other in arms if other != arm):
            return {Claim(Kind.SLOWEST, arm, (), metric): [wins[other][arm] for other in arms if other != arm]}
    first = newest if newest in wins or not wins else max(wins, key=lambda arm: len(wins[arm]))
    over_newest = {arm: {newest: beaten[newest]} for arm, beaten in wins.items() if newest in beaten}
    of = over_newest if newest not in wins and over_newest else {first: wins.get(first, {})} | over_newest
    return {
        Claim(Kind.BEATS, arm, tuple(beaten), metric): list(beaten.values()) for arm, beaten in of.items() if beaten
    }


def _by_others(sure: Iterable[Known], arms: Sequence[Arm], newest: Arm) -> dict[Claim, Sequence[Finding]]:
    """What is sure by the first other metric that has a lead where the primary one is unclear."""
    leads = [each.finding for each in sure if not each.is_by_primary and each.finding.verdict.favours]
    mine = [finding for finding in leads if finding.metric == leads[0].metric]
    return _leads(_wins(mine), arms, newest, leads[0].metric.label) if mine else {}


def _ties(sure: Sequence[Known], arms: Sequence[Arm]) -> dict[Claim, Sequence[Finding]]:
    ties = [each for each in sure if each.is_tie]
    for each in ties[:1]:
        pair, is_all = each.line.pair, len(ties) == len(arms) * (len(arms) - 1) / 2 > 1
        metric = "" if each.is_by_primary else each.finding.metric.label
        return {Claim(Kind.TIES, pair.new, () if is_all else (pair.base,), metric): ()}
    return {}


def headline(data: RunData, found: Sequence[Standing]) -> list[str]:
    """The headline by the primary metric, what is sure by others, and how much is open: a sentence each."""
    if not data.judgement.pairs:
        return ["There is one protocol, so nothing to compare."]
    if not data.latest:
        return ["Nothing has run, so nothing is known."]
    places = [condition.id for condition in data.matrix.conditions]
    claims = {
        each.network: claims_of(each.known, data.matrix.arms, data.matrix.newest)
        for each in sorted(found, key=lambda each: places.index(each.condition.id))
    }
    metrics = dict.fromkeys(claim.metric for found in claims.values() for claim in found if claim.metric)
    clauses, *by_others = (_clauses(_by(claims, metric), data) for metric in ("", *metrics))
    has_interval = any(known.has_interval for each in found for known in each.known)
    needs = fewest_blocks(data.judgement.rule.confidence, data.judgement.rule.anytime)
    few = "" if has_interval else f": no {data.matrix.place} has the {needs} blocks that a verdict needs"
    by = f" by {first_judged(data.judgement.compared)}"
    sure = _capital(f"{'; '.join(clauses)}.") if clauses else f"Nothing is sure yet{few or by}."
    further = [f"By {metric}, {'; '.join(told)}." for metric, told in zip(metrics, by_others, strict=True)]
    return [sure, *further, *(_open(found, data.matrix) if clauses or has_interval else ())]


def _by(claims: Mapping[Network, Leads], metric: str) -> dict[Network, Leads]:
    """The claims by a metric; by the primary one, which has no name here."""
    return {
        network: {claim: leads for claim, leads in found.items() if claim.metric == metric}
        for network, found in claims.items()
    }


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _clauses(claims: Mapping[Network, Leads], data: RunData) -> list[str]:
    """One for each claim, the newest protocol's first, then the most frequent; what is too much is counted."""
    where: dict[Claim, dict[Network, Sequence[Finding]]] = {}
    for network, found in claims.items():
        for claim, leads in found.items():
            where.setdefault(claim, {})[network] = leads
    newest = data.matrix.newest

    def rank(claim: Claim) -> tuple[bool, bool, int, int]:
        return claim.kind is Kind.TIES, newest not in (claim.arm, *claim.rivals), -len(where[claim]), claim.kind

    clauses, left = [], set[Network]()
    for number, claim in enumerate(sorted(where, key=rank)):
        if number < MOST_CLAUSES or len(where) == MOST_CLAUSES + 1:
            clauses.append(_clause(claim, where[claim], data))
        else:
            left |= where[claim].keys()
    return [*clauses, *([f"more is sure in {counted(len(left), data.matrix.place)}"] if left else [])]


def _clause(claim: Claim, leads: Mapping[Network, Sequence[Finding]], data: RunData) -> str:
    name, rivals = arm_name(claim.arm), _names(claim.rivals)
    others = [arm for arm in data.matrix.arms if arm != claim.arm]
    margin = setting("margin_ratio", data.judgement.rule.margin_ratio)
    every = "both" if len(others) == 1 else "all"
    claimed = {
        Kind.FASTEST: f"{name} is fastest",
        Kind.SLOWEST: f"{_names(others)} beat {name}" if len(others) <= MOST_NAMED else f"{name} is slowest",
        Kind.BEATS: f"{name} beats {rivals}",
        Kind.TIES: f"{f'{name} and {rivals}' if rivals else every} are equal within {margin}",
    }[claim.kind]
    return f"{claimed} {_where(leads, data.matrix)}"


def _names(arms: Sequence[Arm]) -> str:
    if len(arms) > MOST_NAMED:
        return f"{len(arms)} others"
    return enumerated(map(arm_name, arms)) if arms else ""


def _where(leads: Mapping[Network, Sequence[Finding]], matrix: Matrix) -> str:
    """`under 30 % loss (by 2.10x) and on lte (by 1.30x)`, or `in 6 of 8 networks (by 1.20x to 2.60x)`."""
    if len(leads) <= MOST_LISTED:
        return placed({network: sizes_text(found) for network, found in leads.items()})
    sizes = sizes_text([finding for found in leads.values() for finding in found])
    return f"{share_of(leads, matrix)}{f' ({sizes})' if sizes else ''}"


def _open(found: Sequence[Standing], matrix: Matrix) -> Iterator[str]:
    """In which networks nothing is sure, and how large a difference is still possible, there and elsewhere."""
    likely = [each for each in found if each.certainty is Certainty.LIKELY]
    if likely:
        notes = {each.network: _likely(each) for each in likely}
        yield f"Likely, not sure: {placed(notes) if len(notes) <= MOST_LISTED else share_of(notes, matrix)}."
    unclear = {
        each.network: max((_bound(known) for known in each.known), default=0.0)
        for each in found
        if each.certainty is Certainty.UNCLEAR
    }
    if unclear:
        yield f"Unclear: {_limits(unclear, matrix)}."
    others: dict[str, dict[Network, float]] = {}
    for each in found:
        for known in each.known if each.network not in unclear else ():
            if known.certainty is Certainty.UNCLEAR:
                others.setdefault(pair_label(matrix, known.line.pair), {})[each.network] = _bound(known)
    clauses = [f"{pair} {_limits(bounds, matrix)}" for pair, bounds in others.items()]
    left = [f"{counted(len(clauses) - MOST_CLAUSES, 'other comparison')}"] if len(clauses) > MOST_CLAUSES else []
    if clauses:
        yield f"Unclear pairs{' elsewhere' if unclear else ''}: {'; '.join((*clauses[:MOST_CLAUSES], *left))}."


def _bound(known: Known) -> float:
    """The largest ratio that is possible; 0 if there are too few blocks, infinite if there is no limit."""
    return known.most_apart if known.has_interval else 0.0


def _limits(bounds: Mapping[Network, float], matrix: Matrix) -> str:
    """`on lte (at most 1.19x)`, or `in 5 of 8 networks (at most 1.19x, no upper limit in 2)`."""
    words = {0.0: "too few blocks", math.inf: "no upper limit"}
    if len(bounds) <= MOST_LISTED:
        return placed({network: words.get(each) or f"at most {two(each)}x" for network, each in bounds.items()})
    known = [each for each in bounds.values() if each not in words]
    counts = [(word, list(bounds.values()).count(each)) for each, word in words.items()]
    notes = [f"at most {two(max(known))}x"] if known else []
    notes += [f"{word} in {count}" for word, count in counts if count]
    return f"{share_of(bounds, matrix)} ({', '.join(notes)})"


def _likely(standing: Standing) -> str:
    """`HTTP/3 1.11x over HTTP/2`: the first likely lead."""
    for known in standing.known:
        if known.certainty is Certainty.LIKELY:
            first, second = map(arm_name, sides(known.finding))
            if known.is_tie:
                return f"{first} and {second} tie"
            has_size = known.finding.comparison.interval.has_estimate
            link = "than" if known.verdict.is_completion else "over" if has_size else "of"
            return f"{standing.cells[known.line.pair].text} {link} {second}"
    return ""
