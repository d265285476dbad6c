"""Agreement of the verdicts of several runs on one comparison, and changes between two, in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from headwind.arm import Arm
from headwind.format import arm_name, counted, enumerated, listed
from headwind.model import Condition
from headwind.report.certainty import Certainty, most_apart
from headwind.report.compare.comparison import Only
from headwind.report.verdicts import interval_text, range_text, toward
from headwind.verdicts.changes import WIDE_RATIO, ArmChange, Change, Changes, RatioChange, Shared
from headwind.verdicts.verdict import Verdict

MOST_NAMED = 12  # conditions listed by name among those not compared; the others are counted
MOST_BLOCKS = 300  # of a forecast
NAMED_ENDLESS = 3  # comparisons listed by name among those that need more
_MARKS = {(1, True): "▲", (-1, True): "▼", (1, False): "△", (-1, False): "▽"}


@dataclass(frozen=True, slots=True)
class Accord:
    """The agreement of the runs that decided a comparison; empty if fewer than two did."""

    text: str = ""
    is_contradiction: bool = False


def accord(verdicts: Sequence[tuple[str, Verdict]]) -> Accord:
    """The agreement of several runs on one comparison, from (letter, verdict); runs without a verdict are ignored.

    A contradiction is one run in which the candidate is clearly ahead and one in which it is clearly behind.
    """
    decided = [(letter, verdict) for letter, verdict in verdicts if verdict.is_clear or verdict is Verdict.TIE]
    if len(decided) < 2:
        return Accord()
    kinds = dict.fromkeys(verdict for _, verdict in decided)
    if len(kinds) == 1:
        return Accord("same" if len(decided) == len(verdicts) else "same where sure")
    groups = [f"{_joined([item[0] for item in decided if item[1] is kind])} {kind.value}" for kind in kinds]
    is_contradiction = {kind.favours for kind in kinds} >= {1, -1}
    return Accord("; ".join(groups), is_contradiction)


def _joined(letters: Sequence[str]) -> str:
    return ", ".join(letters[:-1]) + " and " + letters[-1] if len(letters) > 1 else letters[0]


def change_figures(change: Change, side: int = 1) -> str:
    """A change as text: `▼ 0.84x [0.80, 0.88]`. Up is better; hollow if it does not survive e-BH, or is slight.

    For a ratio, the candidate's factor, or the baseline's (side -1). Of a change in how many trials finish no factor.
    """
    favours, settled = change.verdict.favours * side, change.survives and not change.verdict.is_slight
    mark = _MARKS[favours, settled] if favours else "=" if change.verdict is Verdict.TIE else "?"
    if change.verdict.is_completion:
        return f"{mark} {'more' if favours > 0 else 'fewer'} finished"
    return f"{mark} {interval_text(toward(change.interval, side))}"


def toward_changed(change: RatioChange) -> tuple[Arm, Arm, int]:
    """The arm that changed, or else lost ground, its rival, and its side: 1 if it is the candidate.

    Its factor, which is below 1 if it got worse, is that of `toward(change.interval, side)`.
    """
    who = _who(change)[0] if change.verdict.favours else change.pair.new
    return (who, change.pair.base, 1) if who == change.pair.new else (who, change.pair.new, -1)


def headline(changes: Sequence[Change], earlier: str, later: str, what: str) -> str:
    """Headline: `B against A: of 36 comparisons 2 got worse, none got better, 30 show no change above 1.12x`."""
    worse, better = (sum(map(attrgetter(each), changes)) for each in ("is_regression", "is_improvement"))
    bounded = [change for change in changes if change.is_bounded]
    likely, unknown = (sum(map(attrgetter(each), changes)) for each in ("is_likely", "is_unknown"))
    parts = [f"{worse or 'none'} got worse", f"{better or 'none'} got better"]
    parts += [f"{likely} likely changed"] if likely else []
    show = "shows" if len(bounded) == 1 else "show"
    parts += [f"{len(bounded)} {show} no change above {_bound(_largest(bounded)[0][1])}"] if bounded else []
    parts += [f"{unknown or 'none'} {'is' if unknown == 1 else 'are'} unknown"]
    metrics = len({change.metric.key for change in changes})
    by = f" by {metrics} metrics" if metrics > 1 else ""
    return f"{later} against {earlier}: of {counted(len(changes), what)}{by} {', '.join(parts)}."


def only_sentences(found: Sequence[Only]) -> list[str]:
    """Sentences on what is not compared: `only in A, not compared: conditions far/article; protocols h1`."""
    return [_only(each) for each in found]


def _only(only: Only) -> str:
    parts = {"condition": only.conditions, "protocol": only.arms}
    names = [f"{word}{'s' * (len(each) > 1)} {listed(each, MOST_NAMED)}" for word, each in parts.items() if each]
    where = f"only in {only.run}" if only.run else "of the same name in both runs, but set otherwise"
    return f"{where}, so not compared: {'; '.join(names)}"


def change_word(change: Change) -> str:
    """The change of a pair or of an arm in words: which got worse or better, the same, or the possible size."""
    if not change.is_counted:
        return "CPU-bound in one run only"
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
    return "unknown" if change.is_unknown else f"no change above {_bound(most_apart(change.interval))}"


def certainty(change: Change) -> Certainty:
    """The certainty that something changed."""
    return Certainty.SURE if change.favours else Certainty.LIKELY if change.is_likely else Certainty.UNCLEAR


def machine_sentences(changes: Changes, *, is_same_setup: bool = True) -> list[str]:
    """Changes that all arms share: `the machine was 2.2 times slower: all arms alike in 4 of 4 conditions`.

    By the primary metric, or by another if that one does not show it; one sentence for each direction. If a setting
    of the matrix differs (`is_same_setup` is False), that may be the cause as well.
    """
    seen: dict[Condition, Shared] = {}
    for each in changes.shared:
        seen.setdefault(each.condition, each)
    conditions = len({change.condition for change in changes.arms if all(change.trials)})
    return [
        _machine([each for each in seen.values() if each.favours == favours], favours, conditions)
        + ("" if is_same_setup else "; the machine, or a setting that differs")
        for favours in (-1, 1)
        if any(each.favours == favours for each in seen.values())
    ]


def _machine(shared: Sequence[Shared], favours: int, conditions: int) -> str:
    times = sorted(each.ratio**favours for each in shared if each.ratio)
    where = listed([each.condition.id for each in shared])
    alike = f"all arms alike in {len(shared)} of {counted(conditions, 'condition')} ({where})"
    if not times:
        return f"on this machine {'less' if favours < 0 else 'more'} was finished: {alike}"
    least, middle, most = map(_factor, (times[0], median(times), times[-1]))
    spread = f", {least} to {most} times" if least != most else ""
    return f"the machine was {middle} times {'slower' if favours < 0 else 'faster'}: {alike}{spread}"


def _factor(ratio: float) -> str:
    """A factor to one decimal, below 1.1 to two: `2.2`, `1.03`."""
    return f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}"


def outcome(changes: Changes) -> list[str]:
    """The arms that got worse and better: how much, where, against which arms and by which metrics."""
    found = [each for each in changes.ratios if each.favours]
    lines = []
    for word in ("worse", "better"):
        changed = [each for each in found if each.is_regression == (word == "worse")]
        for who in dict.fromkeys(map(_who, changed)):
            own = [each for each in changed if _who(each) == who]
            where = "; ".join(
                _where(condition, [each for each in own if each.condition == condition])
                for condition in dict.fromkeys(each.condition for each in own)
            )
            arm, other = who
            doubt = f", or {arm_name(other)} better (cannot be distinguished here)" if other else ""
            lines.append(f"{arm_name(arm)} {word}{_sizes(own)}{doubt}: {where}")
    return lines


def _sizes(found: Sequence[RatioChange]) -> str:
    """The size of the change, as a factor of the arm that changed: ` (0.66x to 0.84x)`; empty if unknown.

    Of a change in how many trials finish, only its direction.
    """
    timed = [each for each in found if not each.verdict.is_completion]
    sizes = [toward(each.interval, toward_changed(each)[-1]).ratios[0] for each in timed]
    known = [size for size in sizes if size is not None and math.isfinite(size)]
    ended = {each.verdict.favours * toward_changed(each)[-1] for each in found if each.verdict.is_completion}
    parts = [*([range_text(known)] if known else []), *(f"{'more' if up > 0 else 'fewer'} finished" for up in ended)]
    return f" ({', '.join(parts)})" if parts else ""


def rest(changes: Sequence[Change], fewest: int) -> list[str]:
    """Sentences on all that is not sure to have changed: likely changes, the largest possible change, and unknown ones.

    `fewest` is the number of blocks that each run needs for an interval with ends.
    """
    likely = [change for change in changes if change.is_likely]
    unknown = [change for change in changes if change.is_unknown]
    bounded = [change for change in changes if change.is_bounded]
    ambiguous = {change.condition for change in bounded} & {change.condition for change in unknown}
    lines = []
    if likely:
        lines.append(f"likely changed, but not sure among all: {len(likely)} of {len(changes)}")
    if bounded:
        largest = {name: _bound(each) for name, each in _largest(bounded, ambiguous)}
        most = next(iter(largest.values()))
        named = [f"{name} {each}" for name, each in largest.items()] if len(largest) > 1 else [*largest]
        is_clear = len(largest) == 1 and len(bounded) == len(changes)  # it is all that was compared
        where = "" if is_clear else f" ({listed(named)})"
        lines.append(f"no change above {most} in {len(bounded)} of {len(changes)}{where}")
    if unknown:
        lines.append(f"unknown: {len(unknown)} of {len(changes)}; {'; '.join(_lacks(unknown, fewest, ambiguous))}")
    return lines


def _name(change: Change, ambiguous: Collection[Condition]) -> str:
    """The condition of a change, with arms and metric if it is listed with different results."""
    if change.condition not in ambiguous:
        return change.condition.id
    arms = f" {change.pair.new.name} against {change.pair.base.name}" if isinstance(change, RatioChange) else ""
    arms = f" {change.arm.name}" if isinstance(change, ArmChange) else arms
    return f"{change.condition.id}{arms} by {change.metric.label}"


def _bound(ratio: float) -> str:
    """An upper bound to two decimals, rounded up so that it stays one: `1.06x` for 1.0543."""
    return f"{math.ceil(ratio * 100 - 1e-9) / 100:.2f}x"


def _largest(bounded: Sequence[Change], ambiguous: Collection[Condition] = ()) -> list[tuple[str, float]]:
    """The largest possible change in each condition, the largest of all first."""
    found: dict[str, float] = {}
    for change in bounded:
        name = _name(change, ambiguous)
        found[name] = max(most_apart(change.interval), found.get(name, 1.0))
    return sorted(found.items(), key=lambda item: -item[1])


def _lacks(unknown: Sequence[Change], fewest: int, ambiguous: Collection[Condition]) -> Iterator[str]:
    """Why changes are unknown: too few blocks, CPU-bound in one run only, unfinished trials, or noise."""
    short = [change for change in unknown if min(change.trials) < fewest]
    if short:
        yield f"needs {fewest} blocks in each run, has {_counts(short, ambiguous)}"
    others = [change for change in unknown if change not in short]
    bound = [change for change in others if not change.is_counted]
    if bound:
        yield f"CPU-bound in one run only ({_places(bound, ambiguous)})"
    comparable = [change for change in others if change.is_counted]
    wide = [change for change in comparable if _is_wide(change)]
    unfinished = [change for change in comparable if change not in wide]
    if differing := [change for change in unfinished if change.finishing_differs]:
        yield f"more trials did not finish in one run than in the other ({_places(differing, ambiguous)})"
    if both := [change for change in unfinished if not change.finishing_differs]:
        yield f"too many trials did not finish ({_places(both, ambiguous)})"
    if wide:
        largest = max(most_apart(change.interval) for change in wide)
        size = f"too few blocks to rule out a change above {WIDE_RATIO:.2f}x, up to {_bound(largest)} is possible"
        yield f"{size}; needs {_forecast(wide)}, has {_counts(wide, ambiguous)}"


def _forecast(wide: Sequence[Change]) -> str:
    """The blocks that these need: `about 12 to 90 blocks in each run (half at most 20, most in ...)`."""
    needs = sorted((needed, _full_name(change)) for change in wide if (needed := _more(change)))
    endless = [_full_name(change) for change in wide if not _more(change)]
    if not needs:
        return "hundreds of blocks in each run"
    least, middle, (most, name) = needs[0][0], needs[(len(needs) - 1) // 2][0], needs[-1]
    blocks = f"about {least} blocks in each run"
    if least < most:
        blocks = f"about {least} to {most} blocks in each run (half at most {middle}, most in {name})"
    return blocks + (f", hundreds in {len(endless)} ({listed(endless, NAMED_ENDLESS)})" if endless else "")


def _full_name(change: Change) -> str:
    return _name(change, {change.condition})


def blocks_needed(unknown: Sequence[Change], fewest: int) -> int | None:
    """Approximate blocks in each run that settle all of these; None for hundreds, or if blocks do not help one."""
    needs = [_needed(change, fewest) for change in unknown]
    known = [needed for needed in needs if needed is not None]
    return max(known, default=None) if len(known) == len(needs) else None


def _needed(change: Change, fewest: int) -> int | None:
    if min(change.trials) < fewest:
        return fewest
    return _more(change) if _is_wide(change) else None


def _is_wide(change: Change) -> bool:
    """True if its interval has ends, and only they leave it unknown."""
    return change.is_counted and math.isfinite(most_apart(change.interval)) and not change.finishing_differs


def _more(change: Change) -> int | None:
    """Approximate blocks in each run that narrow this to WIDE_RATIO, or show a change; None for hundreds.

    It assumes widths proportional to one over the root of the blocks; that of an interval at any stopping time shrinks
    a little slower.
    """
    low, high, seen = change.interval.low, change.interval.high, abs(change.interval.estimate or 0.0)
    aim = max(math.log(WIDE_RATIO) - seen, seen)
    needed = min(change.trials) * ((high - low) / 2 / aim) ** 2
    return max(math.ceil(needed), change.interval.n + 1) if needed <= MOST_BLOCKS else None


def _counts(found: Sequence[Change], ambiguous: Collection[Condition]) -> str:
    """The blocks of the earlier and the later run, with the conditions: `9 to 20 and 2 (clean/article, far/web)`."""
    earlier, later = zip(*(change.trials for change in found), strict=True)
    return f"{_range(earlier)} and {_range(later)} ({_places(found, ambiguous)})"


def _range(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def _places(found: Sequence[Change], ambiguous: Collection[Condition]) -> str:
    return listed(list(dict.fromkeys(_name(change, ambiguous) for change in found)))


def _who(change: RatioChange) -> tuple[Arm, Arm | None]:
    """The arm that changed and None; or the arm that lost ground and the one that may have gained it."""
    return (change.culprit, None) if change.culprit else (change.loser, change.winner)


def _where(condition: Condition, found: Sequence[RatioChange]) -> str:
    """Place of a change: `clean/article against h1 and h2 (total time, median request)`."""
    metrics: dict[str, list[str]] = {}
    for change in found:
        _, other, _ = toward_changed(change)
        metrics.setdefault(other.name, []).append(change.metric.label)
    others: dict[str, list[str]] = {}
    for name, labels in metrics.items():
        others.setdefault(", ".join(labels), []).append(name)
    parts = (f"against {enumerated(sorted(names))} ({labels})" for labels, names in others.items())
    return f"{condition.id} {', '.join(parts)}"
