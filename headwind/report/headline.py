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
from headwind.report.networks import Network, placed
from headwind.report.standing import Standing
from headwind.report.verdicts import first_judged, lead_size, sides, two
from headwind.run.data import RunData
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


Leads = Mapping[Claim, float]  # ln of the lead over the nearest rival; infinite where that is about finishing


def claims_of(known: Sequence[Known], arms: Sequence[Arm], newest: Arm) -> dict[Claim, float]:
    """What is sure in one network, with the size of each claim; empty where nothing is."""
    wins: dict[Arm, dict[Arm, float]] = {}
    sure = [each for each in known if each.certainty is Certainty.SURE]
    for each in sure:
        if each.is_by_primary and each.verdict.favours:
            winner, loser = sides(each.finding)
            wins.setdefault(winner, {})[loser] = math.inf if each.verdict.is_completion else lead_size(each.finding)
    return _extreme(wins, arms) or _leads(wins, newest) or _ties(sure, arms) | _by_others(sure)


def _extreme(wins: Mapping[Arm, Mapping[Arm, float]], arms: Sequence[Arm]) -> dict[Claim, float]:
    """The fastest of all, or else the slowest; of two arms there is neither."""
    for arm in arms if len(arms) > 2 else ():
        others = [other for other in arms if other != arm]
        if set(others) == set(wins.get(arm, {})):
            return {Claim(Kind.FASTEST, arm, ()): min(wins[arm].values())}
    for arm in arms if len(arms) > 2 else ():
        others = [other for other in arms if other != arm]
        if all(arm in wins.get(other, {}) for other in others):
            return {Claim(Kind.SLOWEST, arm, ()): min(wins[other][arm] for other in others)}
    return {}


def _leads(wins: Mapping[Arm, Mapping[Arm, float]], newest: Arm) -> dict[Claim, float]:
    """Those over and of the newest protocol; if there are none, those of who beats most."""
    found = {Claim(Kind.BEATS, newest, tuple(wins[newest])): min(wins[newest].values())} if newest in wins else {}
    found |= {Claim(Kind.BEATS, arm, (newest,)): beaten[newest] for arm, beaten in wins.items() if newest in beaten}
    if not found and wins:
        first = max(wins, key=lambda arm: len(wins[arm]))
        found = {Claim(Kind.BEATS, first, tuple(wins[first])): min(wins[first].values())}
    return found


def _by_others(sure: Iterable[Known]) -> dict[Claim, float]:
    """The first arm that leads by another metric where the primary one is unclear or a tie; the newest's come first."""
    leads = [finding for each in sure for finding in (each.finding, *each.differing) if finding.verdict.favours]
    if not leads:
        return {}
    first, metric = sides(leads[0])[0], leads[0].metric
    mine = [finding for finding in leads if sides(finding)[0] == first and finding.metric == metric]
    claim = Claim(Kind.BEATS, first, tuple(sides(finding)[1] for finding in mine), metric.label)
    return {claim: min(map(lead_size, mine))}


def _ties(sure: Sequence[Known], arms: Sequence[Arm]) -> dict[Claim, float]:
    ties = [each for each in sure if each.is_tie]
    for each in ties[:1]:
        pair, is_all = each.line.pair, len(ties) == len(arms) * (len(arms) - 1) / 2 > 1
        metric = "" if each.is_by_primary else each.finding.metric.label
        return {Claim(Kind.TIES, pair.new, () if is_all else (pair.base,), metric): 0.0}
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
    clauses = _clauses(_by(claims, primary=True), data)
    by_others = _clauses(_by(claims, primary=False), data)
    has_interval = any(known.has_interval for each in found for known in each.known)
    needs = fewest_blocks(data.judgement.rule.confidence, data.judgement.rule.anytime)
    few = "" if has_interval else f": no {data.matrix.place} has the {needs} blocks that a verdict needs"
    by = f" by {first_judged(data.judgement.compared)}"
    sure = _capital(f"{'; '.join(clauses)}.") if clauses else f"Nothing is sure yet{few or by}."
    further = [_capital(f"{'; '.join(by_others)}.")] if by_others else []
    return [sure, *further, *(_open(found, data.matrix) if clauses or has_interval else ())]


def _by(claims: Mapping[Network, Leads], *, primary: bool) -> dict[Network, Leads]:
    """The claims by the primary metric, which the headline is about, or those by others, which follow it."""
    return {
        network: {claim: lead for claim, lead in found.items() if bool(claim.metric) is not primary}
        for network, found in claims.items()
    }


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _clauses(claims: Mapping[Network, Leads], data: RunData) -> list[str]:
    """One for each claim, the newest protocol's first, then the most frequent; what is too much is counted."""
    where: dict[Claim, dict[Network, float]] = {}
    for network, found in claims.items():
        for claim, lead in found.items():
            where.setdefault(claim, {})[network] = lead
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


def _clause(claim: Claim, leads: Mapping[Network, float], data: RunData) -> str:
    by = f"by {claim.metric} " if claim.metric else ""
    name, rivals = arm_name(claim.arm), _rivals(claim.rivals)
    margin = setting("margin_ratio", data.judgement.rule.margin_ratio)
    every = "both" if len(data.matrix.arms) == 2 else "all"
    said = {
        Kind.FASTEST: f"{name} is fastest",
        Kind.SLOWEST: f"{name} is slowest",
        Kind.BEATS: f"{name} beats {rivals}",
        Kind.TIES: f"{f'{name} and {rivals}' if rivals else every} are equal within {margin}",
    }[claim.kind]
    return f"{by}{said} {_where(leads, data.matrix)}"


def _rivals(rivals: Sequence[Arm]) -> str:
    if len(rivals) > MOST_NAMED:
        return f"{len(rivals)} others"
    return enumerated(map(arm_name, rivals)) if rivals else ""


def _where(leads: Mapping[Network, float], matrix: Matrix) -> str:
    """`under 30 % loss (by 2.10x) and 70 % duplication (by 1.30x)`, or `in 6 of 8 networks (by 1.2x to 2.6x)`."""
    sizes = {network: f"by {two(math.exp(lead))}x" for network, lead in leads.items() if 0 < lead < math.inf}
    total, place = len(matrix.conditions), matrix.place
    if len(leads) <= MOST_LISTED:
        return placed({network: sizes.get(network, "") for network in leads})
    share = f"all {counted(total, place)}" if len(leads) == total else f"{len(leads)} of {counted(total, place)}"
    known = [math.exp(lead) for lead in leads.values() if 0 < lead < math.inf]
    return f"in {share}{f' (by {_range(known)})' if known else ''}"


def _range(ratios: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{two(ratio)}x" for ratio in (min(ratios), max(ratios))))


def _open(found: Sequence[Standing], matrix: Matrix) -> Iterator[str]:
    """In which networks nothing is sure, and how large a difference is still possible there."""
    likely = [each for each in found if each.certainty is Certainty.LIKELY]
    if likely:
        yield f"Likely, not sure: {_in({each.network: _likely(each) for each in likely}, matrix)}."
    unclear = [each for each in found if each.certainty is Certainty.UNCLEAR]
    if not unclear:
        return
    most = {each.network: max((known.most_apart for known in each.known), default=math.inf) for each in unclear}
    bounds = [ratio for ratio in most.values() if ratio < math.inf]
    if len(unclear) <= MOST_LISTED:
        yield f"Unclear: {_in({each.network: _bound(each, most[each.network]) for each in unclear}, matrix)}."
        return
    told = [f"at most {_range(bounds)} apart in {len(bounds)}"] if bounds else []
    told += [f"no upper limit in {len(most) - len(bounds)}"] if len(bounds) < len(most) else []
    yield f"Unclear {_in(dict.fromkeys(most, ''), matrix)}: {', '.join(told)}."


def _in(notes: Mapping[Network, str], matrix: Matrix) -> str:
    if len(notes) <= MOST_LISTED:
        return placed(notes)
    rest = "all" if len(notes) == len(matrix.conditions) else f"{len(notes)} of"
    return f"in {rest} {counted(len(matrix.conditions), matrix.place)}"


def _bound(standing: Standing, ratio: float) -> str:
    if not any(known.has_interval for known in standing.known):
        return "too few blocks"
    return f"at most {two(ratio)}x apart" if ratio < math.inf else "no upper limit"


def _likely(standing: Standing) -> str:
    """`HTTP/3 1.11x over HTTP/2`: the first likely lead."""
    for known in standing.known:
        if known.certainty is Certainty.LIKELY:
            loser = arm_name(sides(known.finding)[1])
            pair = f"{arm_name(known.line.pair.new)} and {arm_name(known.line.pair.base)} tie"
            return pair if known.is_tie else f"{standing.cells[known.line.pair].text} over {loser}"
    return ""
