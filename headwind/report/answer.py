"""The answer of a run in sentences: what is settled, what was only seen, what was measured, and what to trust. Pure.

The page, the terminal and summary.md begin with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, measured
from headwind.metric import Better
from headwind.model import DATA_OUTCOMES, Condition, Outcome
from headwind.report.doubts import doubts
from headwind.report.standing import Standing, noise_floor
from headwind.report.verdicts import Word, dependence_text, sides, word_of
from headwind.run.data import RunData, is_data
from headwind.verdicts.assumptions import Concern
from headwind.verdicts.findings import Pair
from headwind.verdicts.stats import fewest_blocks

GOOD, BAD, UNKNOWN, WARNING = "\N{CHECK MARK}", "\N{BALLOT X}", "?", "\N{WARNING SIGN}"
TOLD_ELSEWHERE = (Concern.NETWORK, Concern.FEW_BLOCKS, Concern.UNFINISHED, Concern.LEFT_OUT)
MOST_SAID = 4  # findings in the headline, names in a list; the rest is counted


def place_of(conditions: Sequence[Condition]) -> str:
    """What a condition is called: with one workload, networks tell them apart."""
    return "condition" if len({condition.workload.name for condition in conditions}) > 1 else "network"


def name_of(condition: Condition, conditions: Sequence[Condition]) -> str:
    """A condition's name for people: without its workload where there is only one."""
    return condition.profile.name if place_of(conditions) == "network" else condition.id


def headline(data: RunData) -> str:
    """What is settled by the primary metric, the winner first."""
    if not data.judgement.pairs:
        return "There is one protocol, so nothing to compare."
    if not data.latest:
        return "Nothing has run, so nothing is known."
    total, place = len(data.matrix.conditions), place_of(data.matrix.conditions)
    said = [*_wins(data), *_ties(data)]
    if not said:
        return _nothing_settled(data)
    clauses = [
        " and ".join(f"{what} in {_share(count, total, place) if (number, part) == (0, len(parts) - 1) else count}"
                     for part, (what, count) in enumerate(parts))
        for number, parts in enumerate(said[:MOST_SAID])
    ]  # fmt: skip
    if len(said) > MOST_SAID:
        clauses.append(f"and {len(said) - MOST_SAID} more")
    told = "; ".join(clauses)
    return " ".join([f"{told[0].upper()}{told[1:]}.", *_open_everywhere(data), *_open_conditions(data)])


def _share(count: int, total: int, place: str) -> str:
    if count == total:
        return {1: f"the {place}", 2: f"both {place}s"}.get(total, f"all {counted(total, place)}")
    return f"{count} of {counted(total, place)}"


Clause = list[tuple[str, int]]  # what holds, and in how many conditions


def _wins(data: RunData) -> list[Clause]:
    """`HTTP/3 beats HTTP/2`: a clause for each winner, the most frequent first.

    Arms that are beaten in the same conditions are named together.
    """
    verdicts, order = data.judgement, data.matrix.arms.index
    where: dict[Arm, dict[Arm, list[str]]] = {}
    for line in verdicts.compared:
        if word_of(line.primary, verdicts.rule) is Word.BEATS:
            winner, loser = sides(line.primary)
            where.setdefault(winner, {}).setdefault(loser, []).append(line.condition.id)
    clauses = []
    for winner, beaten in where.items():
        together: dict[tuple[str, ...], list[Arm]] = {}
        for loser in sorted(beaten, key=order):
            together.setdefault(tuple(beaten[loser]), []).append(loser)
        parts = sorted(((enumerated(map(arm_name, losers)), len(ids)) for ids, losers in together.items()),
                       key=lambda part: -part[1])  # fmt: skip
        (first, count), *others = parts
        clauses.append([(f"{arm_name(winner)} beats {first}", count), *others])
    return sorted(clauses, key=lambda clause: -clause[0][1])


def _ties(data: RunData) -> list[Clause]:
    """`all tie` in the conditions in which every comparison is one; then the other ties."""
    verdicts, ties = data.judgement, dict[str, list[Pair]]()
    for line in verdicts.compared:
        if word_of(line.primary, verdicts.rule) is Word.TIE:
            ties.setdefault(line.condition.id, []).append(line.pair)
    whole = sum(len(pairs) == len(verdicts.pairs) > 1 for pairs in ties.values())
    others = Counter(pair for pairs in ties.values() if not len(pairs) == len(verdicts.pairs) > 1 for pair in pairs)
    found: list[Clause] = [[("all tie", whole)]] if whole else []
    return found + [
        [(f"{arm_name(pair.new)} and {arm_name(pair.base)} tie", count)] for pair, count in others.most_common()
    ]


def _nothing_settled(data: RunData) -> str:
    verdicts, total, place = data.judgement, len(data.matrix.conditions), place_of(data.matrix.conditions)
    if all(word_of(line.primary, verdicts.rule) is Word.FEW for line in verdicts.compared):
        return f"Nothing is settled: no {place} has the {_fewest(data)} blocks that a verdict needs."
    where = f"the {place}" if total == 1 else f"any of {counted(total, place)}"
    return f"Nothing is settled: no protocol is shown to beat another, or to tie with it, in {where}."


def _fewest(data: RunData) -> int:
    return fewest_blocks(data.judgement.rule.confidence, data.judgement.rule.anytime)


def _open_everywhere(data: RunData) -> Iterator[str]:
    """Pairs of which nothing is settled anywhere."""
    verdicts = data.judgement
    settled = {line.pair for line in verdicts.compared if line.primary.survives}
    left = [pair for pair in verdicts.pairs if pair not in settled]
    if len(left) > MOST_SAID:
        yield f"{len(left)} of {len(verdicts.pairs)} comparisons are open."
    elif left:
        names = enumerated(f"{arm_name(pair.new)} against {arm_name(pair.base)}" for pair in left)
        yield f"{names} {'is' if len(left) == 1 else 'are'} open."


def _open_conditions(data: RunData) -> Iterator[str]:
    """Conditions in which nothing is settled: by name where they are few."""
    conditions = data.matrix.conditions
    settled = {line.condition.id for line in data.judgement.compared if line.primary.survives}
    left = [name_of(condition, conditions) for condition in conditions if condition.id not in settled]
    if 0 < len(left) <= MOST_SAID:
        yield f"Nothing is settled in {enumerated(left)}."
    elif left:
        yield f"Nothing is settled in {_share(len(left), len(conditions), place_of(conditions))}."


def seen(data: RunData, found: Sequence[Standing]) -> str:
    """What was seen and is not proven: whose median is the best where; and where there are too few blocks."""
    conditions, place = data.matrix.conditions, place_of(data.matrix.conditions)
    leads: dict[Arm, list[str]] = {}
    for standing in found:
        if data.judgement.pairs and (arm := standing.lowest):
            leads.setdefault(arm, []).append(name_of(standing.condition, conditions))
    told = []
    if leads:
        best = "lowest" if conditions[0].workload.primary().better is Better.LESS else "highest"
        first, *others = sorted(leads.items(), key=lambda item: -len(item[1]))
        parts = [f"{arm_name(first[0])} has the {best} median in {_share(len(first[1]), len(found), place)}"]
        parts += [f"{arm_name(arm)} in {_named(names)}" for arm, names in others]
        told.append(f"Seen, not proven: {', '.join(parts)}.")
    few = sum(standing.word is Word.FEW for standing in found)
    if 0 < few < len(found):
        have = "has" if few == 1 else "have"
        needs = f"fewer than the {_fewest(data)} blocks that a verdict needs"
        told.append(f"{counted(few, place)} {have} {needs}.")
    return " ".join(told)


def otherwise(data: RunData) -> list[str]:
    """Where another judged metric says the opposite of the primary one, both of them settled: what that means."""
    verdicts, conditions = data.judgement, data.matrix.conditions
    where: dict[tuple[str, str, str, str], list[str]] = {}
    for line in verdicts.compared:
        for other in line.others if word_of(line.primary, verdicts.rule) is Word.BEATS else ():
            if word_of(other, verdicts.rule) is Word.BEATS and sides(other) != sides(line.primary):
                winner, loser = map(arm_name, sides(other))
                key = (other.metric.label, winner, loser, line.primary.metric.label)
                where.setdefault(key, []).append(name_of(line.condition, conditions))
    return [
        f"By {metric}, {winner} beats {loser} in {_named(names)}, where by {primary} it is the other way round: the "
        f"lead by {primary} is in the slowest requests."
        for (metric, winner, loser, primary), names in where.items()
    ]


def _named(names: Sequence[str]) -> str:
    return enumerated(names) if len(names) <= MOST_SAID else str(len(names))


def workloads(data: RunData) -> list[str]:
    """What was measured, in plain words: a sentence for each workload."""
    conditions = data.matrix.conditions
    many = place_of(conditions) == "condition"
    told = []
    for workload in dict.fromkeys(condition.workload for condition in conditions):
        metrics = [result.metrics for result in data.latest if result.trial.block.condition.workload == workload]
        name = f"{workload.name}, by" if many else "By"
        told.append(f"{name} {workload.primary().label}: {workload.in_short(metrics)}.")
    return told


@dataclass(frozen=True, slots=True)
class Trust:
    """One thing that says how far the figures can be believed."""

    mark: str  # for those who see no colour
    text: str

    @property
    def tone(self) -> str:
        """`good`, `bad`, or neither."""
        return {GOOD: "good", BAD: "bad"}.get(self.mark, "")


def trust(data: RunData) -> list[Trust]:
    """Checks of the network, of the lab by itself with its noise, and trials that did not go well."""
    return [*_network_checks(data), *_self_checks(data), *_not_ok(data), *_warnings(data)]


def _network_checks(data: RunData) -> Iterator[Trust]:
    checks = [check for result in data.latest if is_data(result) for check in result.proof.checks]
    failed = sum(not check.passed for check in checks)
    if failed:
        yield Trust(BAD, f"{failed:,} of {counted(len(checks), 'network check')} failed")
    elif checks:
        yield Trust(GOOD, f"{counted(len(checks), 'network check')} passed")
    if data.network_doubts:
        yield Trust(BAD, f"not the requested network in {_named(list(data.network_doubts))}")


def _self_checks(data: RunData) -> Iterator[Trust]:
    checks, conditions = data.judgement.checks, data.matrix.conditions
    for passed, mark, words in ((False, BAD, "FAILED"), (None, UNKNOWN, "open"), (True, GOOD, "passed")):
        mine = dict.fromkeys(check.finding.condition for check in checks if check.passed is passed)
        names = []
        for condition in mine:
            floor = noise_floor(checks, condition)
            noise = f" (noise floor {measured('floor_ratio', floor)})" if floor is not None else ""
            names.append(name_of(condition, conditions) + noise)
        if names:
            yield Trust(mark, f"self-checks {words} in {_named(names)}")


def _not_ok(data: RunData) -> Iterator[Trust]:
    for outcome in Outcome:
        arms = [result.trial.arm for result in data.latest if result.outcome is outcome]
        if arms and outcome is not Outcome.OK:
            names = _named([arm_name(arm) for arm in dict.fromkeys(arms)])
            where = "" if outcome in DATA_OUTCOMES else ", in no figure"
            yield Trust(WARNING, f"{len(arms):,} {outcome.value}{where} ({names})")


def _warnings(data: RunData) -> Iterator[Trust]:
    """What the proofs of trials and the assumptions behind verdicts warn of; what has its own place is left out."""
    warned = sum(bool(result.proof.warnings) for result in data.latest)
    if warned:
        yield Trust(WARNING, f"{counted(warned, 'trial')} with a warning")
    if data.judgement.dependence.is_excessive:
        yield Trust(WARNING, dependence_text(data.judgement.dependence))
    concerns = [doubt.concern for doubt in doubts(data.judgement) if doubt.concern not in TOLD_ELSEWHERE]
    if concerns:
        yield Trust(WARNING, f"comparisons with a warning: {enumerated(concern.value for concern in concerns)}")
