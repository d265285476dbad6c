"""The answer in few words: each comparison over all networks, those of the newest protocol first. Pure.

The headline counts the networks in which a protocol is surely faster or slower than each rival. A card for each
comparison names them, with the size of each lead, and for unclear ones the largest difference that is still possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, setting
from headwind.metric import Metric
from headwind.model import Matrix
from headwind.report.cells import Floors, may_be_noise
from headwind.report.certainty import Certainty, certainty_of, most_apart, slight_text, verdict_of
from headwind.report.networks import Network, placed
from headwind.report.ranking import Standing, columns_of, is_across, pair_label
from headwind.report.trust import noise_floors
from headwind.report.verdicts import (
    ahead,
    ahead_text,
    apart_text,
    lead_size,
    leader,
    possible_text,
    range_text,
    toward,
)
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding
from headwind.verdicts.pairs import Pair

MOST_LISTED = 8  # networks that are listed by name
FIRST_LISTED = 4  # networks that are listed if there are more
MOST_RIVALS = 3  # rivals in the headline
FASTER, SLOWER, TIE, UNCLEAR, TOO_FEW = WORDS = "faster", "slower", "tied", "unclear", "too few blocks"
LEADS = {FASTER: "faster than", SLOWER: "slower than", TIE: "tied with"}
OPPOSITE = {FASTER: SLOWER, SLOWER: FASTER}


@dataclass(frozen=True, slots=True)
class Point:
    """The networks in which a metric gives the same result for one comparison."""

    arm: Arm  # the arm that is faster, slower or tied
    metric: Metric | None  # None for the primary one
    certainty: Certainty
    word: str  # of WORDS
    networks: tuple[tuple[Network, Finding], ...]  # the largest lead first
    floors: Floors

    @property
    def label(self) -> str:
        """Label of the result: `faster` if sure, `likely faster`, `unclear`, `faster by mean completion time`."""
        certainty = f"{self.certainty} " if self.certainty is Certainty.LIKELY else ""
        return f"{certainty}{self.word}{f' by {self.metric.label}' if self.metric else ''}"

    @property
    def parts(self) -> list[str]:
        """The networks with a note, such as `30 % loss (2.16x)`; the first ones if there are many, then a range."""
        most = MOST_LISTED if len(self.networks) <= MOST_LISTED else FIRST_LISTED
        notes = [f"{network.text} ({self._note(finding)})" for network, finding in self.networks[:most]]
        left = [finding for _, finding in self.networks[most:]]
        return [*notes, *([f"and {len(left)} more{self._rest(left)}"] if left else [])]

    def _note(self, finding: Finding) -> str:
        """The note of a network: `2.16x`, `1.18x slower to 1.03x faster, may be noise`, `3 blocks`."""
        size, is_noise = self._size(finding), self.metric is None and may_be_noise(finding, self.floors)
        noise = " or noise" if size.endswith(slight_text(finding)) else ", may be noise"
        return f"{size}{noise if is_noise else ''}"

    def _size(self, finding: Finding) -> str:
        interval, verdict = finding.comparison.interval, finding.verdict
        if self.word == TOO_FEW:
            return counted(interval.n, "block") if interval.n else "no complete block"
        if self.word == TIE:
            return f"{apart_text(finding)} apart"
        if self.word == UNCLEAR or (self.certainty is Certainty.LIKELY and not verdict.is_completion):
            lead = possible_text(toward(interval, 1 if finding.pair.new == self.arm else -1))
            is_small = self.word != UNCLEAR and verdict_of(finding).is_slight
            small = f", {slight_text(finding)}" if is_small else ""
            return f"{lead.removesuffix(f' {self.word}')}{small}"
        return "finishes more" if verdict.is_completion else ahead_text(finding).partition(" [")[0]

    def _rest(self, left: Sequence[Finding]) -> str:
        """Range of the networks that are not listed: ` (1.05x to 1.30x)`, ` (at most 1.19x)`; empty if none."""
        if self.word in (TOO_FEW, UNCLEAR, TIE):
            return f" ({apart_text(max(left, key=_apart))})" if self.word != TOO_FEW else ""
        leads = (ahead(each.comparison.interval) for each in left if not each.verdict.is_completion)
        ratios = [ratio for lead in leads if (ratio := lead.ratios[0] or lead.ratios[1])]
        return f" ({range_text(ratios)})" if ratios else ""


@dataclass(frozen=True, slots=True)
class Card:
    """A comparison over all networks: `arm` is faster, slower or tied."""

    arm: Arm
    rival: Arm
    label: str  # "HTTP/3 against HTTP/2"
    points: tuple[Point, ...]  # those by the primary metric first
    sure: Mapping[str, Mapping[str, Sequence[str]]]  # metric key -> word of LEADS -> ids of networks

    def seen_from(self, arm: Arm) -> Card:
        """The card with one of its two arms as `arm`, for a sentence."""
        if arm == self.arm:
            return self
        turned = {
            key: {word: ids for word in LEADS if (ids := by_word.get(OPPOSITE.get(word, word)))}
            for key, by_word in self.sure.items()
        }
        return replace(self, arm=self.rival, rival=self.arm, sure=turned)


def _apart(finding: Finding) -> float:
    return most_apart(finding.comparison.interval)


def cards_of(data: RunData, found: Sequence[Standing]) -> list[Card]:
    """A card for each comparison that a row of the table shows at once; none before any has an interval."""
    if not any(known.has_interval for each in found for known in each.known):
        return []
    floors = noise_floors(data.judgement.checks)
    return [card_of(pair, found, floors) for pair in columns_of(data.matrix, data.judgement)[0]]


def card_of(pair: Pair, found: Sequence[Standing], floors: Floors) -> Card:
    """The card of one comparison over all networks."""
    arm, rival = pair.new, pair.base
    groups: dict[tuple[Metric | None, Certainty, str], list[tuple[Network, Finding]]] = {}
    for standing, known in ((each, known) for each in found for known in each.known if known.line.pair == pair):
        for finding in (known.line.primary, *known.others):
            metric = None if finding is known.line.primary else finding.metric
            key = metric, certainty_of(finding), _word(finding, arm, known.needs)
            groups.setdefault(key, []).append((standing.network, finding))
    judged = dict.fromkeys(metric for each in found for known in each.known for metric in known.line.findings)
    metrics = [None, *judged]
    ranks = {word: number for number, word in enumerate((*Certainty, *WORDS))}
    points = (
        Point(arm, *key, tuple(_ranked(groups[key], key[1], key[2])), floors)
        for key in sorted(groups, key=lambda key: (metrics.index(key[0]), ranks[key[1]], ranks[key[2]]))
    )
    return Card(arm, rival, pair_label(pair), tuple(points), _sure(pair, found))


def _sure(pair: Pair, found: Sequence[Standing]) -> dict[str, dict[str, list[str]]]:
    """Networks in which the candidate is surely faster, slower or tied, for each metric separately."""
    lines = [known.line for each in found for known in each.known if known.line.pair == pair]
    sure: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        for metric, finding in line.findings.items():
            if certainty_of(finding) is Certainty.SURE:
                word = _word(finding, pair.new, 0)
                sure.setdefault(metric.key, {}).setdefault(word, []).append(line.condition.id)
    return {key: {word: ids[word] for word in LEADS if word in ids} for key, ids in sure.items()}


def _ranked(group: Sequence[tuple[Network, Finding]], certainty: Certainty, word: str) -> list[tuple[Network, Finding]]:
    size = _apart if certainty is Certainty.UNCLEAR or word == TIE else lead_size
    return sorted(group, key=lambda item: size(item[1]), reverse=True)


def _word(finding: Finding, arm: Arm, needs: int) -> str:
    if certainty_of(finding) is Certainty.UNCLEAR:
        return UNCLEAR if finding.comparison.interval.n >= needs else TOO_FEW
    return {None: TIE, arm: FASTER}.get(leader(finding), SLOWER)


def headline(data: RunData, found: Sequence[Standing], cards: Sequence[Card]) -> list[str]:
    """The headline, a sentence for each metric.

    It counts the networks in which the newest protocol is surely faster or slower than each rival. If something
    is sure of another arm of that protocol against older ones, such as on another server, it has its own sentence.
    """
    if not data.judgement.pairs:
        return ["There is one protocol, so nothing to compare."]
    if not data.latest:
        return ["No trials have run yet."]
    if not any(each.blocks for each in found):
        return ["There is no result yet: no block is complete."]
    if not cards:
        needs, repeat = data.judgement.rule.blocks_needed(max(each.blocks for each in found)), data.matrix.repeat
        needs = max(needs, repeat.least) if repeat.is_adaptive else needs  # one number, although fewer may do
        return [f"Nothing is sure yet: no {data.matrix.place} has the {needs} blocks that a sure result takes."]
    compared = data.judgement.compared
    if Certainty.SURE not in {certainty_of(each) for line in compared for each in line.findings.values()}:
        return ["Nothing is sure yet."]
    subject = _subject(data.matrix, cards)
    about = [card for card in cards if subject in (card.arm, card.rival)]
    seen = [card.seen_from(subject) for card in about]
    first = {line.primary.metric.key: line.primary.metric for line in compared}
    others = {point.metric.key: point.metric for card in seen for point in card.points if point.metric}
    sentences = {key: _sentence(seen, key, data, found, is_first=key in first) for key in first | others}
    own = [
        f"Sure by {_named(metric)}: {sentences[key]}"
        if sentences[key]
        else f"Nothing is sure {f'of {arm_name(subject)} ' if _is_sure_by(key, cards) else ''}yet by {metric.label}."
        for key, metric in (first | others).items()
    ]
    variants: dict[Arm, list[Card]] = {}
    for card in cards:
        if card not in about and is_across(card.arm, card.rival, data.matrix):
            arm = max(card.arm, card.rival, key=lambda arm: arm.protocol is data.matrix.newest.protocol)
            variants.setdefault(arm, []).append(card.seen_from(arm))
    return own + [
        f"Sure by {_named(metric)}: {sentence}"
        for same in variants.values()
        for key, metric in first.items()
        if (sentence := _sentence(same, key, data, found, is_first=True))
    ]


def _is_sure_by(key: str, cards: Sequence[Card]) -> bool:
    return any(key in card.sure for card in cards)


def _subject(matrix: Matrix, cards: Sequence[Card]) -> Arm:
    """The subject of the sentences: the newest protocol, if it is compared."""
    is_compared = any(matrix.newest in (card.arm, card.rival) for card in cards)
    return matrix.newest if is_compared else cards[0].arm


def _named(metric: Metric) -> str:
    return f"{metric.label} ({metric.note})" if metric.note else metric.label


def _sentence(cards: Sequence[Card], key: str, data: RunData, found: Sequence[Standing], *, is_first: bool) -> str:
    """A sentence by the metric of this key; empty if nothing is sure.

    Such as `HTTP/3 is faster than HTTP/2 in 5 of 8 networks and slower in none.`

    `is_first`: the metric is the primary one of some comparison.
    """
    known = [card for card in cards if key in card.sure]
    if not known:
        return ""
    judged = [each for each in found if any(metric.key == key for one in each.known for metric in one.line.findings)]
    of_all = counted(len(judged), data.matrix.place) + (" judged by this metric" if len(judged) < len(found) else "")
    alike: dict[tuple[frozenset[str], ...], list[Card]] = {}
    for card in known[:MOST_RIVALS]:
        sure = card.sure[key]
        alike.setdefault(tuple(frozenset(sure.get(word, ())) for word in LEADS), []).append(card)
    margin = f" within {setting('margin_ratio', data.judgement.rule.margin_ratio)}"
    clauses = [
        clause if number == 0 else clause.replace(f" of {of_all}", "")  # once is enough
        for number, same in enumerate(alike.values())
        for clause in [_clause(same, key, judged, of_all, margin, is_first=is_first)]
    ]
    silent = [arm_name(card.rival) for card in cards if card not in known and is_first]
    left = [f"{counted(len(known) - MOST_RIVALS, 'other rival')} below"] if len(known) > MOST_RIVALS else []
    none = [f"against {enumerated(silent)} nothing is sure"] if silent else []
    return f"{arm_name(cards[0].arm)} is {'; '.join((*clauses, *left, *none))}."


def _clause(
    cards: Sequence[Card], key: str, judged: Sequence[Standing], of_all: str, margin: str, *, is_first: bool
) -> str:
    """A clause about `cards`, which have the same results.

    Such as `faster than HTTP/2 in 5 of 8 networks and slower in none (3 not sure)`.
    """
    sure, total = cards[0].sure[key], len(judged)
    counts = {word: len(ids) for word, ids in sure.items()}
    first = next(iter(counts))
    rivals = f"{enumerated(arm_name(card.rival) for card in cards)}{margin if first == TIE else ''}"
    lead = f"{LEADS[first]} {rivals}"
    if total == 1:
        return f"{lead} {placed([judged[0].network])}"
    if counts[first] == total:
        return f"{lead} in {'both' if total == 2 else f'all {total}'} {of_all.partition(' ')[2]}"
    others = [f"{word} in {counts.get(word) or 'none'}" for word in LEADS
              if word != first and (word in counts or (is_first and word == OPPOSITE.get(first)))]  # fmt: skip
    left = total - sum(counts.values()) if is_first else 0
    all_of = {1: "", 2: "both "}.get(len(cards), "each of ")
    clause = enumerated([f"{LEADS[first]} {all_of}{rivals} in {counts[first]} of {of_all}", *others])
    not_run = min(left, sum(not each.blocks for each in judged))
    rest = [f"{number} {what}" for number, what in ((left - not_run, "not sure"), (not_run, "not run")) if number]
    return f"{clause} ({', '.join(rest)})" if rest else clause


def lines_of(cards: Sequence[Card]) -> Iterator[tuple[str, Certainty, str]]:
    """The cards line by line: the comparison, its certainty, and `faster: 30 % loss (2.16x)`."""
    for card in cards:
        for point in card.points:
            yield card.label, point.certainty, f"{point.label}: {', '.join(point.parts)}"
