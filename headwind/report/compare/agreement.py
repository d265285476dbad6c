"""Whether the verdicts of several runs on one comparison agree, and what changed between two, in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, listed
from headwind.model import Condition
from headwind.report.certainty import Certainty, most_apart
from headwind.report.verdicts import interval_text, two
from headwind.verdicts.changes import WIDE_RATIO, ArmChange, Change, Changes, RatioChange, Shared
from headwind.verdicts.verdict import Verdict

_MARKS = {(1, True): "▲", (-1, True): "▼", (1, False): "△", (-1, False): "▽"}


@dataclass(frozen=True, slots=True)
class Accord:
    """Whether the runs that decided a comparison agree; empty where fewer than two did."""

    text: str = ""
    is_contradiction: bool = False


def accord(verdicts: Sequence[tuple[str, Verdict]]) -> Accord:
    """What the runs say together of one comparison, from (letter, verdict); those without a verdict have no say.

    A contradiction is one run in which the candidate is clearly ahead and one in which it is clearly behind.
    """
    decided = [(letter, verdict) for letter, verdict in verdicts if verdict.is_clear or verdict is Verdict.TIE]
    if len(decided) < 2:
        return Accord()
    kinds = dict.fromkeys(verdict for _, verdict in decided)
    if len(kinds) == 1:
        return Accord("same" if len(decided) == len(verdicts) else "same where decided")
    told_apart = [f"{_joined([item[0] for item in decided if item[1] is kind])} {kind.value}" for kind in kinds]
    is_contradiction = {kind.favours for kind in kinds} >= {1, -1}
    return Accord("; ".join(told_apart), is_contradiction)


def _joined(letters: Sequence[str]) -> str:
    return ", ".join(letters[:-1]) + " and " + letters[-1] if len(letters) > 1 else letters[0]


def change_figures(change: Change) -> str:
    """`▼ 0.84x [0.80, 0.88]`: up is better; hollow where it would not survive e-BH over the matrix, or is slight."""
    favours, settled = change.verdict.favours, change.survives and not change.verdict.is_slight
    mark = _MARKS[favours, settled] if favours else "=" if change.verdict is Verdict.TIE else "?"
    return f"{mark} {interval_text(change.interval)}"


def change_word(change: Change) -> str:
    """What became of a pair or of an arm: who got worse or better, the same, or how much of a change is possible."""
    if not change.is_counted:
        return "processors were the limit in one run only"
    if isinstance(change, RatioChange):
        if change.is_improvement:
            return f"{change.winner} better"
        if change.is_regression:
            return f"{change.loser} worse" + ("" if change.culprit else f", or {change.winner} better")
        if change.is_likely:
            return f"{change.loser} lost ground"
    elif isinstance(change, ArmChange) and change.verdict.favours:
        return ("worse" if change.verdict.favours < 0 else "better") + (" like all" if change.is_shared else "")
    if change.verdict is Verdict.TIE:
        return "the same"
    return "cannot tell" if change.is_unknown else f"no change larger than {most_apart(change.interval):.2f}x"


def certainty(change: Change) -> Certainty:
    """How sure it is that something changed."""
    return Certainty.SURE if change.favours else Certainty.LIKELY if change.is_likely else Certainty.UNCLEAR


def machine_sentences(changes: Changes) -> list[str]:
    """What all arms of a condition share: `the machine was 2.2 times slower: all arms alike in 4 of 4 conditions ...`.

    By the primary metric, or another where that one does not show it; one sentence for each direction.
    """
    seen: dict[Condition, Shared] = {}
    for each in changes.shared:
        seen.setdefault(each.condition, each)
    conditions = len({change.condition for change in changes.arms})
    return [
        _machine([each for each in seen.values() if each.favours == favours], favours, conditions)
        for favours in (-1, 1)
        if any(each.favours == favours for each in seen.values())
    ]


def _machine(shared: Sequence[Shared], favours: int, conditions: int) -> str:
    times = sorted(each.ratio**favours for each in shared if each.ratio)
    where = listed([each.condition.id for each in shared])
    alike = f"all arms alike in {len(shared)} of {counted(conditions, 'condition')} ({where})"
    if not times:
        return f"on this machine {'less' if favours < 0 else 'more'} was finished: {alike}"
    spread = f", {times[0]:.1f} to {times[-1]:.1f} times" if f"{times[0]:.1f}" != f"{times[-1]:.1f}" else ""
    return f"the machine was {median(times):.1f} times {'slower' if favours < 0 else 'faster'}: {alike}{spread}"


def outcome(changes: Changes) -> list[str]:
    """Who got worse and who better: where, against whom and by which metrics; then the `rest` of all ratios."""
    found = [each for each in changes.ratios if each.favours]
    lines = []
    for word in ("worse", "better"):
        mine = [each for each in found if each.is_regression == (word == "worse")]
        for who in dict.fromkeys(map(_who, mine)):
            told = [each for each in mine if _who(each) == who]
            where = "; ".join(
                _where(condition, [each for each in told if each.condition == condition])
                for condition in dict.fromkeys(each.condition for each in told)
            )
            arm, other = who
            doubt = f", or {arm_name(other)} better (two arms alone do not tell)" if other else ""
            lines.append(f"{arm_name(arm)} {word}{doubt}: {where}")
    return [*lines, *rest(changes.ratios, changes.fewest)]


def rest(changes: Sequence[Change], fewest: int) -> list[str]:
    """All that did not surely change: what likely did, how large a change is possible, and what is unknown.

    `fewest` is how many blocks each run needs for an interval with ends.
    """
    likely = [change for change in changes if change.is_likely]
    unknown = [change for change in changes if change.is_unknown]
    bounded = [change for change in changes if not (change.favours or change.is_likely or change.is_unknown)]
    lines = []
    if likely:
        lines.append(f"likely changed, but not sure among all: {len(likely)} of {len(changes)}")
    if bounded:
        largest = {name: f"{each:.2f}x" for name, each in _largest(bounded)}
        most = next(iter(largest.values()))
        where = f" ({listed([f'{name} {each}' for name, each in largest.items()])})" if len(largest) > 1 else ""
        lines.append(f"no change larger than {most} in {len(bounded)} of {len(changes)}{where}")
    if unknown:
        lines.append(f"cannot tell: {len(unknown)} of {len(changes)}; {'; '.join(_lacks(unknown, fewest))}")
    return lines


def _largest(bounded: Sequence[Change]) -> list[tuple[str, float]]:
    """The largest change that is possible in each condition, the largest of all first."""
    found: dict[str, float] = {}
    for change in bounded:
        found[change.condition.id] = max(most_apart(change.interval), found.get(change.condition.id, 1.0))
    return sorted(found.items(), key=lambda item: -item[1])


def _lacks(unknown: Sequence[Change], fewest: int) -> Iterator[str]:
    """Why nothing is known of them: too few blocks, CPU-bound in one run only, unfinished trials, or noise."""
    short = [change for change in unknown if min(change.trials) < fewest]
    if short:
        counts = dict.fromkeys(change.trials for change in short)
        pairs = listed([f"{earlier} and {later}" for earlier, later in counts])
        yield f"needs {fewest} blocks in each run, has {pairs} ({_places(short)})"
    others = [change for change in unknown if change not in short]
    bound = [change for change in others if not change.is_counted]
    if bound:
        yield f"processors were the limit in one run only ({_places(bound)})"
    comparable = [change for change in others if change.is_counted]
    wide = [each for each in comparable if math.isfinite(most_apart(each.interval)) and not each.finishing_differs]
    if unfinished := [change for change in comparable if change not in wide]:
        yield f"too many trials did not finish, or more in one run than in the other ({_places(unfinished)})"
    if wide:
        largest = max(most_apart(change.interval) for change in wide)
        size = f"changes of up to {two(largest)}x are possible, above {WIDE_RATIO:.2f}x"
        yield f"{size}; needs more blocks ({_places(wide)})"


def _places(found: Sequence[Change]) -> str:
    return listed(list(dict.fromkeys(change.condition.id for change in found)))


def _who(change: RatioChange) -> tuple[Arm, Arm | None]:
    """The arm that changed; or the one that lost ground, and the other one that may have gained it."""
    return (change.culprit, None) if change.culprit else (change.loser, change.winner)


def _where(condition: Condition, found: Sequence[RatioChange]) -> str:
    """`clean/article against h1 and h2 (total time, median request)`."""
    metrics: dict[str, list[str]] = {}
    for change in found:
        other = change.pair.base if change.pair.new == _who(change)[0] else change.pair.new
        metrics.setdefault(other.name, []).append(change.metric.label)
    others: dict[str, list[str]] = {}
    for name, labels in metrics.items():
        others.setdefault(", ".join(labels), []).append(name)
    told = (f"against {enumerated(sorted(names))} ({labels})" for labels, names in others.items())
    return f"{condition.id} {', '.join(told)}"
