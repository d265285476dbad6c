"""The headline: in how many networks a protocol is surely faster or slower than each rival, by each metric. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, setting
from headwind.metric import Metric
from headwind.model import Matrix
from headwind.report.certainty import Certainty, certainty_of, verdict_of
from headwind.report.networks import placed
from headwind.report.ranking import Standing, columns_of, is_across
from headwind.report.verdicts import leader
from headwind.run.data import RunData
from headwind.verdicts.findings import fewest_for_sure
from headwind.verdicts.pairs import Pair

MOST_RIVALS = 3  # rivals in the headline
FASTER, SLOWER, TIE = "faster", "slower", "tied"
MORE, LESS = "more reliable", "less reliable"  # by how many trials finish
LEADS = {
    FASTER: "faster than", SLOWER: "slower than", TIE: "tied with", MORE: "more reliable than",
    LESS: "less reliable than",
}  # fmt: skip
OPPOSITE = {FASTER: SLOWER, SLOWER: FASTER, MORE: LESS, LESS: MORE}


@dataclass(frozen=True, slots=True)
class Tally:
    """A comparison over all networks: where `arm` is surely faster than its rival, slower or tied."""

    arm: Arm
    rival: Arm
    sure: Mapping[str, Mapping[str, Sequence[str]]]  # metric key -> word of LEADS -> ids of networks
    judged: Mapping[str, frozenset[str]]  # metric key -> ids of networks in which it has a verdict
    differing: frozenset[Metric]  # that are sure somewhere in which the primary metric is not, or differs

    def seen_from(self, arm: Arm) -> Tally:
        """The tally with one of its two arms as `arm`, for a sentence."""
        if arm == self.arm:
            return self
        turned = {
            key: {word: ids for word in LEADS if (ids := by_word.get(OPPOSITE.get(word, word)))}
            for key, by_word in self.sure.items()
        }
        return replace(self, arm=self.rival, rival=self.arm, sure=turned)


def tallies_of(data: RunData, found: Sequence[Standing]) -> list[Tally]:
    """A tally for each comparison that a row of the table shows at once; none before any has an interval."""
    if not any(known.has_interval for each in found for known in each.known):
        return []
    return [tally_of(pair, found) for pair in columns_of(data.matrix, data.judgement)[0]]


def tally_of(pair: Pair, found: Sequence[Standing]) -> Tally:
    """The tally of one comparison over all networks."""
    every = [known for each in found for known in each.known if known.line.pair == pair]
    sure: dict[str, dict[str, list[str]]] = {}
    judged: dict[str, set[str]] = {}
    for line in (known.line for known in every):
        for metric, finding in line.findings.items():
            judged.setdefault(metric.key, set()).add(line.condition.id)
            if certainty_of(finding) is Certainty.SURE:
                ahead, behind = (MORE, LESS) if verdict_of(finding).is_completion else (FASTER, SLOWER)
                word = {None: TIE, pair.new: ahead}.get(leader(finding), behind)
                sure.setdefault(metric.key, {}).setdefault(word, []).append(line.condition.id)
    ordered = {key: {word: ids[word] for word in LEADS if word in ids} for key, ids in sure.items()}
    differing = frozenset(finding.metric for known in every for finding in known.others)
    return Tally(
        pair.new, pair.base, ordered, {key: frozenset(ids) for key, ids in judged.items()}, differing
    )  # fmt: skip


def headline(data: RunData, found: Sequence[Standing], tallies: Sequence[Tally]) -> list[str]:
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
    if not tallies:
        rule, repeat = data.judgement.rule, data.matrix.repeat
        needs = fewest_for_sure(rule.confidence, rule.anytime and not rule.fixed)
        is_minimum = repeat.is_adaptive and repeat.least > needs
        blocks = f"minimum of {repeat.least} blocks" if is_minimum else f"{needs} blocks that a sure result takes"
        return [f"Nothing is sure yet: no {data.matrix.place} has the {blocks}."]
    compared = data.judgement.compared
    if Certainty.SURE not in {certainty_of(each) for line in compared for each in line.findings.values()}:
        return ["Nothing is sure yet."]
    subject = _subject(data.matrix, tallies)
    about = [tally for tally in tallies if subject in (tally.arm, tally.rival)]
    seen = [tally.seen_from(subject) for tally in about]
    first = {line.primary.metric.key: line.primary.metric for line in compared}
    judged = dict.fromkeys(metric for each in found for known in each.known for metric in known.line.findings)
    others = _differing(seen, judged)
    sentences = {key: _sentence(seen, key, data, found) for key in first | others}
    own = [
        f"By {_named(metric)}, {sentences[key]}"
        if sentences[key]
        else _nothing(metric, _named_among(subject, data.matrix) if _is_sure_by(key, tallies) else "")
        for key, metric in (first | others).items()
    ]
    variants: dict[Arm, list[Tally]] = {}
    for tally in tallies:
        if tally not in about and is_across(tally.arm, tally.rival, data.matrix):
            arm = max(tally.arm, tally.rival, key=lambda arm: arm.protocol is data.matrix.newest.protocol)
            variants.setdefault(arm, []).append(tally.seen_from(arm))
    return own + [
        f"By {_named(metric)}, {sentence}"
        for same in variants.values()
        for key, metric in (first | _differing(same, judged)).items()
        if (sentence := _sentence(same, key, data, found))
    ]


def _differing(tallies: Sequence[Tally], judged: Iterable[Metric]) -> dict[str, Metric]:
    """By key, the metrics other than the primary one by which a comparison is sure where that one is not or differs."""
    return {metric.key: metric for metric in judged if any(metric in tally.differing for tally in tallies)}


def _nothing(metric: Metric, subject: str) -> str:
    """The sentence that nothing is sure by a metric; of `subject`, if something is sure of other arms."""
    if not subject:
        return f"Nothing is sure yet by {metric.label}."
    return f"Nothing is sure of {subject} yet by {metric.label}; the table has what is sure of other arms."


def _named_among(arm: Arm, matrix: Matrix) -> str:
    """An arm's name; its short name if other arms have the same protocol."""
    return arm.name if [each.protocol for each in matrix.arms].count(arm.protocol) > 1 else arm_name(arm)


def _is_sure_by(key: str, tallies: Sequence[Tally]) -> bool:
    return any(key in tally.sure for tally in tallies)


def _subject(matrix: Matrix, tallies: Sequence[Tally]) -> Arm:
    """The subject of the sentences: the newest protocol, if it is compared."""
    is_compared = any(matrix.newest in (tally.arm, tally.rival) for tally in tallies)
    return matrix.newest if is_compared else tallies[0].arm


def _named(metric: Metric) -> str:
    return f"{metric.label} ({metric.note})" if metric.note else metric.label


def _sentence(tallies: Sequence[Tally], key: str, data: RunData, found: Sequence[Standing]) -> str:
    """A sentence by the metric of this key; empty if nothing is sure.

    Such as `HTTP/3 is faster than HTTP/2 in 5 of 8 networks and slower in none (3 not sure).`
    """
    known = [tally for tally in tallies if key in tally.sure]
    if not known:
        return ""
    judged = [each for each in found if any(metric.key == key for one in each.known for metric in one.line.findings)]
    of_all = counted(len(judged), data.matrix.place) + (" judged by this metric" if len(judged) < len(found) else "")
    alike: dict[tuple[frozenset[str] | int, ...], list[Tally]] = {}
    for tally in known[:MOST_RIVALS]:
        sure = tally.sure[key]
        words = (frozenset(sure.get(word, ())) for word in LEADS)
        alike.setdefault((*words, len(tally.judged[key])), []).append(tally)
    margin = f" within {setting('margin_ratio', data.judgement.rule.margin_ratio)}"
    clauses = [
        clause if number == 0 else clause.replace(f" of {of_all}", "")  # once is enough
        for number, same in enumerate(alike.values())
        for clause in [_clause(same, key, judged, of_all, margin)]
    ]
    silent = [arm_name(tally.rival) for tally in tallies if tally not in known]
    left = [f"{counted(len(known) - MOST_RIVALS, 'other rival')} in the table"] if len(known) > MOST_RIVALS else []
    none = [f"against {enumerated(silent)} nothing is sure"] if silent else []
    return f"{arm_name(tallies[0].arm)} is {'; '.join((*clauses, *left, *none))}."


def _clause(tallies: Sequence[Tally], key: str, judged: Sequence[Standing], of_all: str, margin: str) -> str:
    """A clause about `tallies`, which have the same results.

    Such as `faster than HTTP/2 in 5 of 8 networks and slower in none (3 not sure)`.
    """
    sure, total = tallies[0].sure[key], len(judged)
    counts = {word: len(ids) for word, ids in sure.items()}
    first = next(iter(counts))
    rivals = f"{enumerated(arm_name(tally.rival) for tally in tallies)}{margin if first == TIE else ''}"
    lead = f"{LEADS[first]} {rivals}"
    if total == 1:
        return f"{lead} {placed([judged[0].network])}"
    if counts[first] == total:
        return f"{lead} in {'both' if total == 2 else f'all {total}'} {of_all.partition(' ')[2]}"
    others = [f"{word} in {counts.get(word) or 'none'}" for word in LEADS
              if word != first and (word in counts or word == OPPOSITE.get(first))]  # fmt: skip
    unjudged = total - len(tallies[0].judged[key] & {each.condition.id for each in judged})
    left = total - unjudged - sum(counts.values())
    both = "both " if len(tallies) == 2 else ""  # in the same ones
    clause = enumerated([f"{LEADS[first]} {both}{rivals} in {counts[first]} of {of_all}", *others])
    not_run = min(left, sum(not each.rows for each in judged))
    missing = ((left - not_run, "not sure"), (not_run, "not run"), (unjudged, "not judged"))
    rest = [f"{number} {what}" for number, what in missing if number]
    return f"{clause} ({', '.join(rest)})" if rest else clause
