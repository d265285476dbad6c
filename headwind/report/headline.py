"""The answer in few words: each comparison over all networks, the newest protocol first. Pure.

The headline counts in how many networks a protocol is surely faster or slower than each rival. A card for each
comparison names them, with the size of each lead, and of what is unclear the largest difference that is still possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, setting
from headwind.metric import Metric
from headwind.model import Matrix
from headwind.report.certainty import Certainty, certainty_of, most_apart
from headwind.report.networks import Network, placed
from headwind.report.standing import Standing, columns_of, in_order, pair_label
from headwind.report.verdicts import (
    ahead,
    ahead_text,
    apart_text,
    first_judged,
    lead_size,
    leader,
    range_text,
    times,
    toward,
)
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding, Pair
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule

MOST_LISTED = 8  # networks by name
FIRST_LISTED = 4  # of more
MOST_RIVALS = 3  # in the headline
FASTER, SLOWER, TIE, UNCLEAR, TOO_FEW = WORDS = "faster", "slower", "tie", "unclear", "too few blocks"
LEADS = {FASTER: "faster than", SLOWER: "slower than", TIE: "tied with"}


@dataclass(frozen=True, slots=True)
class Point:
    """The networks in which a metric says the same of one comparison."""

    arm: Arm  # that is faster, slower or tied
    metric: Metric | None  # None for the primary one
    certainty: Certainty
    word: str  # of WORDS
    networks: tuple[tuple[Network, Finding], ...]  # the largest lead first

    @property
    def label(self) -> str:
        """`faster` if it is sure, `likely faster`, `unclear`; `faster by mean completion time`."""
        certainty = f"{self.certainty} " if self.certainty is Certainty.LIKELY else ""
        return f"{certainty}{self.word}{f' by {self.metric.label}' if self.metric else ''}"

    @property
    def parts(self) -> list[str]:
        """`30 % loss (2.16x)` and so on; of many the first ones, and the range of the others."""
        most = MOST_LISTED if len(self.networks) <= MOST_LISTED else FIRST_LISTED
        notes = [f"{network.text} ({self._note(finding)})" for network, finding in self.networks[:most]]
        left = [finding for _, finding in self.networks[most:]]
        return [*notes, *([f"and {len(left)} more{self._rest(left)}"] if left else [])]

    def _note(self, finding: Finding) -> str:
        """`2.16x`, `1.18x slower to 1.03x faster`, `3 blocks`."""
        interval, verdict = finding.comparison.interval, finding.verdict
        if self.word == TOO_FEW:
            return counted(interval.n, "block") if interval.n else "not run"
        if self.word == TIE:
            return apart_text(finding)
        if self.word == UNCLEAR or (self.certainty is Certainty.LIKELY and not verdict.is_completion):
            return open_text(toward(interval, 1 if finding.pair.new == self.arm else -1)).removesuffix(f" {self.word}")
        return "finishes more" if verdict.is_completion else ahead_text(finding).partition(" [")[0]

    def _rest(self, left: Sequence[Finding]) -> str:
        """` (1.05x to 1.30x)`, ` (at most 1.19x)`; empty where there is nothing to say."""
        if self.word in (TOO_FEW, UNCLEAR, TIE):
            return f" ({apart_text(max(left, key=_apart))})" if self.word != TOO_FEW else ""
        leads = (ahead(each.comparison.interval) for each in left if not each.verdict.is_completion)
        ratios = [ratio for lead in leads if (ratio := lead.ratios[0] or lead.ratios[1])]
        return f" ({range_text(ratios)})" if ratios else ""


@dataclass(frozen=True, slots=True)
class Card:
    """One comparison over all networks: `arm` is faster, slower or tied."""

    arm: Arm
    rival: Arm
    label: str  # "HTTP/3 against HTTP/2"
    points: tuple[Point, ...]  # those by the primary metric first

    def sure(self, metric: Metric | None) -> Mapping[str, Sequence[str]]:
        """By those of LEADS that are sure by a metric somewhere: the ids of the networks."""
        found = {each.word: each for each in self.points if (each.metric, each.certainty) == (metric, Certainty.SURE)}
        return {word: [finding.condition.id for _, finding in found[word].networks] for word in LEADS if word in found}


def open_text(lead: Interval) -> str:
    """How far the interval of a lead reaches: `1.18x slower to 1.03x faster`, `1.01x to 1.04x faster`."""
    low, high = lead.low, lead.high
    if low > 0 or high < 0:
        least, most = sorted((abs(low), abs(high)))
        return f"{times(least)} to {times(most)} {FASTER if low > 0 else SLOWER}"
    if math.isinf(low) and math.isinf(high):
        return "no limit"
    ends = (SLOWER, abs(low)), (FASTER, high)
    return " to ".join(_reach(word, end) for word, end in ends)


def _reach(word: str, log_ratio: float) -> str:
    size = times(log_ratio) if math.isfinite(log_ratio) else "any times"
    return "equal" if size == times(0.0) else f"{size} {word}"


def _apart(finding: Finding) -> float:
    return most_apart(finding.comparison.interval)


def cards_of(data: RunData, found: Sequence[Standing]) -> list[Card]:
    """A card for each comparison that a row of the table shows at once; none before any has an interval."""
    if not any(known.has_interval for each in found for known in each.known):
        return []
    rule = data.judgement.rule
    return [card_of(data.matrix, pair, found, rule) for pair in columns_of(data.matrix, data.judgement)[0]]


def card_of(matrix: Matrix, pair: Pair, found: Sequence[Standing], rule: Rule) -> Card:
    """One comparison over all networks."""
    arm, rival = in_order(matrix, pair)
    groups: dict[tuple[Metric | None, Certainty, str], list[tuple[Network, Finding]]] = {}
    for standing, known in ((each, known) for each in found for known in each.known if known.line.pair == pair):
        for finding in (known.line.primary, *known.others):
            metric = None if finding is known.line.primary else finding.metric
            key = metric, certainty_of(finding, rule), _word(finding, arm, known.needs, rule)
            groups.setdefault(key, []).append((standing.network, finding))
    judged = dict.fromkeys(metric for each in found for known in each.known for metric in known.line.findings)
    metrics = [None, *judged]
    ranks = {word: number for number, word in enumerate((*Certainty, *WORDS))}
    points = (
        Point(arm, *key, tuple(_ranked(groups[key], key[1], key[2])))
        for key in sorted(groups, key=lambda key: (metrics.index(key[0]), ranks[key[1]], ranks[key[2]]))
    )
    return Card(arm, rival, pair_label(matrix, pair), tuple(points))


def _ranked(group: Sequence[tuple[Network, Finding]], certainty: Certainty, word: str) -> list[tuple[Network, Finding]]:
    size = _apart if certainty is Certainty.UNCLEAR or word == TIE else lead_size
    return sorted(group, key=lambda told: size(told[1]), reverse=True)


def _word(finding: Finding, arm: Arm, needs: int, rule: Rule) -> str:
    if certainty_of(finding, rule) is Certainty.UNCLEAR:
        return UNCLEAR if finding.comparison.interval.n >= needs else TOO_FEW
    return {None: TIE, arm: FASTER}.get(leader(finding, rule), SLOWER)


def headline(data: RunData, found: Sequence[Standing], cards: Sequence[Card]) -> list[str]:
    """In how many networks the newest protocol is surely faster or slower than each rival: a sentence a metric."""
    if not data.judgement.pairs:
        return ["There is one protocol, so nothing to compare."]
    if not data.latest:
        return ["Nothing has run, so nothing is known."]
    if not cards:
        needs = fewest_blocks(data.judgement.rule.confidence, data.judgement.rule.anytime)
        return [f"Nothing is sure yet: no {data.matrix.place} has the {needs} blocks that a verdict needs."]
    told = [card for card in cards if card.arm == cards[0].arm]
    by, name = first_judged(data.judgement.compared), arm_name(cards[0].arm)
    metrics = dict.fromkeys(point.metric for card in told for point in card.points if point.metric)
    first = _sentence(told, None, data, found)
    of = f"of {name} " if any(each.sure(None) for each in cards) else ""
    return [
        f"By {by}, {first}" if first else f"Nothing is sure {of}yet by {by}.",
        *(f"By {_named(metric)}, {_sentence(told, metric, data, found)}" for metric in metrics),
    ]


def _named(metric: Metric) -> str:
    return f"{metric.label} ({metric.note})" if metric.note else metric.label


def _sentence(cards: Sequence[Card], metric: Metric | None, data: RunData, found: Sequence[Standing]) -> str:
    """`HTTP/3 is surely faster than HTTP/2 in 5 of 8 networks, slower in none.`; empty where nothing is sure."""
    known = [card for card in cards if card.sure(metric)]
    if not known:
        return ""
    alike: dict[tuple[frozenset[str], ...], list[Card]] = {}
    for card in known[:MOST_RIVALS]:
        sure = card.sure(metric)
        alike.setdefault(tuple(frozenset(sure.get(word, ())) for word in LEADS), []).append(card)
    clauses = [
        _clause(same, metric, data, found, of_all=f" of {counted(len(found), data.matrix.place)}" if not number else "")
        for number, same in enumerate(alike.values())
    ]
    silent = [arm_name(card.rival) for card in cards if card not in known and not metric]
    left = [f"{counted(len(known) - MOST_RIVALS, 'other rival')} below"] if len(known) > MOST_RIVALS else []
    none = [f"against {enumerated(silent)} nothing is sure"] if silent else []
    return f"{arm_name(cards[0].arm)} is surely {'; '.join((*clauses, *left, *none))}."


def _clause(
    cards: Sequence[Card], metric: Metric | None, data: RunData, found: Sequence[Standing], *, of_all: str
) -> str:
    """`faster than HTTP/2 in 5 of 8 networks, slower in none, likely or unclear in 3`; `cards` say the same."""
    sure, total = cards[0].sure(metric), len(found)
    counts = {word: len(ids) for word, ids in sure.items()}
    first = next(iter(counts))
    within = f" within {setting('margin_ratio', data.judgement.rule.margin_ratio)}" if first == TIE else ""
    told = f"{LEADS[first]} {enumerated(arm_name(card.rival) for card in cards)}{within}"
    if total == 1:
        return f"{told} {placed([found[0].network])}"
    if counts[first] == total:
        return f"{told} in {'both' if total == 2 else f'all {total}'} {data.matrix.place}s"
    opposite = {FASTER: SLOWER, SLOWER: FASTER}.get(first) if not metric else None
    others = [f"{word} in {counts.get(word) or 'none'}" for word in LEADS
              if word != first and (word in counts or word == opposite)]  # fmt: skip
    left = total - sum(counts.values()) if not metric else 0
    return ", ".join(
        (f"{told} in {counts[first]}{of_all}", *others, *([f"likely or unclear in {left}"] if left else []))
    )


def lines_of(cards: Sequence[Card]) -> Iterator[str]:
    """The cards as lines of text: `HTTP/3 against HTTP/2, faster: 30 % loss (2.16x)`."""
    for card in cards:
        for point in card.points:
            yield f"{card.label}, {point.label}: {', '.join(point.parts)}"
