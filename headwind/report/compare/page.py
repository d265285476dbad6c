"""Several runs on one page: what each of them found, side by side, and what else was different about them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from markupsafe import Markup

from headwind import format as units
from headwind.arm import Arm
from headwind.errors import UsageError
from headwind.metric import Metric
from headwind.model import Condition
from headwind.observed import Observed
from headwind.report import words
from headwind.report.compare.agreement import Accord, accord, change_figures, change_word, machine_sentences, outcome
from headwind.report.compare.comparison import same_networks
from headwind.report.compare.differences import conditions_apart, differing_facts
from headwind.report.html import charts, templating
from headwind.report.html.pictures import heading, interval_domain, limit, trial_mark
from headwind.report.summary import Row, summary_table
from headwind.run.data import RunData, latest_of
from headwind.verdicts.changes import ArmChange, Changes, RatioChange, changes
from headwind.verdicts.findings import Finding, Pair, judged_metrics
from headwind.verdicts.judgement import Judgement, Line

MOST_PICTURED = 20_000  # trials; above that the distributions would make the page heavy
LONG_VALUE = 24  # characters: a value of more is written once, and then referred to
CURVES = 6  # kinds of curves in charts.css; from the seventh run on they come again, told apart by their letters


@dataclass(frozen=True, slots=True)
class Member:
    """One of the runs, under its letter. Its arms are in the order of their names, so that comparisons match."""

    letter: str
    data: RunData
    verdicts: Judgement
    lines: Mapping[tuple[Condition, Pair], Line]
    rows: Mapping[tuple[Condition, Arm], Row]

    @classmethod
    def of(cls, letter: str, data: RunData) -> Member:
        """Judge the run as its own report does."""
        arms = tuple(sorted(data.matrix.arms, key=str))
        if arms != data.matrix.arms:
            data = replace(data, matrix=replace(data.matrix, arms=arms), judge=None)
        verdicts = data.judgement
        return cls(
            letter=letter,
            data=data,
            verdicts=verdicts,
            lines={(line.condition, line.pair): line for line in verdicts.compared},
            rows={(row.condition, row.arm): row for row in summary_table(data)},
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison in one condition: every run's line with its small interval, in the order of the runs."""

    pair: Pair
    cells: Sequence[tuple[Line | None, Markup]]
    accord: Accord
    changes: Mapping[Metric, RatioChange]  # of two runs


@dataclass(frozen=True, slots=True)
class Timed:
    """One arm in one condition: every run's row, and of two runs what changed, by metric."""

    arm: Arm
    cells: Sequence[Row | None]
    changes: Mapping[Metric, ArmChange]


@dataclass(frozen=True, slots=True)
class Group:
    """Everything about one condition. Runs whose condition is another under the same name have none of it."""

    condition: Condition
    letters: Sequence[str]  # of the runs that have it
    judged: Sequence[Judged]
    timed: Sequence[Timed]
    pictures: Sequence[tuple[str, Markup]]  # with the name of their arm


def render_several(runs: Sequence[RunData], generated_at_s: float) -> str:
    """The page as HTML5, which depends on nothing but the runs, their order and the time (seconds since the epoch).

    The first run is called A. Raises UsageError when there is no run.
    """
    if not runs:
        raise UsageError("no run was given: a report over several needs at least one")
    members = [Member.of(_letter(number), data) for number, data in enumerate(runs)]
    changed = _changes(members)
    groups = list(_groups(members, changed))
    return templating.page(
        "several.html.j2",
        GLOBALS,
        members=members,
        groups=groups,
        facts=differing_facts(runs),
        apart=conditions_apart(runs),
        summary=list(_summary(members, groups, changed)),
        method=list(_method(members)),
        conditions=_conditions(members),
        compared=[line for member in members for line in member.verdicts.compared],
        judged_metrics=_judged_metrics(members),
        generated_at_s=generated_at_s,
    )  # fmt: skip


def _conditions(members: Sequence[Member]) -> list[Condition]:
    return [condition for member in members for condition in member.data.matrix.conditions]


def _judged_metrics(members: Sequence[Member]) -> list[Metric]:
    return list(dict.fromkeys(metric for member in members for metric in judged_metrics(member.data.matrix)))


def _letter(number: int) -> str:
    """A to Z, then AA, AB, and so on."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _groups(members: Sequence[Member], changed: Changes) -> Iterator[Group]:
    """Every condition of any run, those of the same name next to each other."""
    conditions = dict.fromkeys(chain.from_iterable(member.data.matrix.conditions for member in members))
    names = list(dict.fromkeys(condition.id for condition in conditions))
    ratios: dict[tuple[Condition, Pair], dict[Metric, RatioChange]] = {}
    for ratio in changed.ratios:
        ratios.setdefault((ratio.condition, ratio.pair), {})[ratio.metric] = ratio
    values: dict[tuple[Condition, Arm], dict[Metric, ArmChange]] = {}
    for value in changed.arms:
        values.setdefault((value.condition, value.arm), {})[value.metric] = value
    domain = _domain(members)
    pictured = len(members) > 1 and sum(len(member.data.results) for member in members) <= MOST_PICTURED
    for number, condition in enumerate(sorted(conditions, key=lambda item: names.index(item.id)), 1):
        pairs = dict.fromkeys(pair for member in members for item, pair in member.lines if item == condition)
        arms = sorted({arm for member in members for item, arm in member.rows if item == condition}, key=str)
        holders = [member for member in members if condition in member.data.matrix.conditions]
        yield Group(
            condition=condition,
            letters=[member.letter for member in holders],
            judged=[
                _judged(f"i{number}-{index}", members, condition, pair, domain, ratios.get((condition, pair), {}))
                for index, pair in enumerate(pairs, 1)
            ],
            timed=[
                Timed(
                    arm,
                    [member.rows.get((condition, arm)) for member in members],
                    values.get((condition, arm), {}),
                )
                for arm in arms
            ],
            pictures=_pictures(f"e{number}", members, condition, arms) if pictured and len(holders) > 1 else (),
        )


def _judged(
    anchor: str,
    members: Sequence[Member],
    condition: Condition,
    pair: Pair,
    domain: tuple[float, float],
    changed: Mapping[Metric, RatioChange],
) -> Judged:
    cells, verdicts = [], []
    for member in members:
        line, picture = member.lines.get((condition, pair)), Markup()
        if line and line.blocks:
            finding = line.primary
            verdicts.append((member.letter, finding.counted))
            picture = _interval(f"{anchor}-{member.letter}", member, finding, domain)
        cells.append((line, picture))
    return Judged(pair, cells, accord(verdicts), changed)


def _interval(anchor: str, member: Member, finding: Finding, domain: tuple[float, float]) -> Markup:
    estimate, low, high = finding.comparison.interval.ratios
    return charts.interval(
        anchor, estimate, low, high, margin_ratio=member.verdicts.rule.margin_ratio, domain=domain,
        label=f"Run {member.letter}, {finding.pair} in {finding.condition.id}: {finding.verdict.value}",
    )  # fmt: skip


def _domain(members: Sequence[Member]) -> tuple[float, float]:
    """The same for all small intervals."""
    lines = (line for member in members for line in member.lines.values() if line.blocks)
    return interval_domain(line.primary.comparison.interval for line in lines)


def _changes(members: Sequence[Member]) -> Changes:
    """Of two runs: what changed in the second, as `lab.py compare` finds it."""
    if len(members) != 2:
        return Changes((), (), ())
    before, after = (member.data for member in members)
    return changes(after.matrix, same_networks(before, after), after.latest)


def _pictures(
    anchor: str, members: Sequence[Member], condition: Condition, arms: Sequence[Arm]
) -> Sequence[tuple[str, Markup]]:
    """For each arm that more than one run has tried: the distribution of the primary metric, a curve for each."""
    found, metric = [], condition.workload.primary()
    for arm in arms:
        series = [
            charts.DotSeries(
                f"c{number % CURVES + 1}", member.letter, _marks(member.data, condition, arm), metric.better
            )
            for number, member in enumerate(members)
        ]
        rows = [(member.letter, member.rows.get((condition, arm))) for member in members]
        medians = [f"{letter} {words.median_text(row)}" for letter, row in rows if row and row.time]
        if len(medians) > 1:
            name = units.arm_name(arm)
            picture = charts.ecdf(
                f"{anchor}-{arm}", series,
                title=f"{name} in {condition.id}, run by run",
                description=f"Share of trials that had finished, by {metric.label}. Medians: {', '.join(medians)}.",
                metric=metric, timeout_s=limit(metric, max(member.data.matrix.timeout_s for member in members)),
            )  # fmt: skip
            found.append((name, picture))
    return found


def _marks(data: RunData, condition: Condition, arm: Arm) -> list[Observed | None]:
    if condition not in data.matrix.conditions:
        return []
    results = latest_of(data.attempts(condition, arm))
    return [mark for result in results if (mark := trial_mark(result))]


def _summary(members: Sequence[Member], groups: Sequence[Group], changed: Changes) -> Iterator[str]:
    """What came of the comparison, in plain words."""
    if len(members) == 1:
        yield "There is one run only, so nothing to compare it with."
        return
    together = sum(len(group.letters) > 1 for group in groups)
    if not together:
        yield "These runs have no condition in common: nothing in them can be compared."
        return
    yield f"{units.counted(len(members), 'run')}, {units.counted(together, 'condition')} in more than one of them."
    metric = words.primaries(_conditions(members))
    told_by_two = [item.accord for group in groups for item in group.judged if item.accord.text]
    against = sum(item.is_contradiction for item in told_by_two)
    same = sum(item.text.startswith("same") for item in told_by_two)
    if told_by_two:
        yield (
            f"By {metric}, {units.counted(len(told_by_two), 'comparison')} got a verdict in two runs or more: "
            f"the same in {same}, a contradiction in {against}, and something between in "
            f"{len(told_by_two) - same - against}."
        )
    else:
        yield f"No comparison got a verdict by {metric} in two runs or more."
    if changed.ratios:
        yield f"From run {members[0].letter} to run {members[1].letter}: {'. '.join(outcome(changed))}."
    for sentence in machine_sentences(changed):
        yield f"All protocols alike, so no regression: {sentence}."


def _method(members: Sequence[Member]) -> Iterator[str]:
    yield (
        "Each run was made by itself, and its verdicts compare protocols inside its own blocks, as in its own report. "
        "They carry from run to run as far as the conditions are the same."
    )
    if len(members) > 1:
        yield (
            "Absolute times do not: the runs share no blocks, so a difference between two of them holds whatever else "
            "was changed, and the drift of the machine from one time to another. A change is therefore no proof of its "
            "cause. To compare two settings without that, put both into one matrix."
        )
        yield (
            "A contradiction is a comparison in which the same protocol is clearly ahead in one run and clearly behind "
            "in another. Which is right cannot be seen here: look at the impairment truth of both first."
        )
    if len(members) == 2:
        yield (
            "A change of a ratio is free of the machine's speed: it compares two independent samples, the paired "
            "ratios of one run's blocks with those of the other's, by intervals that hold whenever a run stopped. "
            "Worse or better counts where it survives e-BH at 10 % over all of them. Who of a pair changed is told by "
            "its own values, or by third arms where all share a change, which is called the machine's. Times of an arm "
            "change with the machine, too, and are no regression by themselves."
        )
    margins = {(member.verdicts.rule.margin_ratio, member.verdicts.rule.confidence) for member in members}
    if len(margins) > 1:
        yield "The runs were judged by different margins or confidence, each by its own: see what differs."


GLOBALS = {
    "change_figures": change_figures,
    "change_word": change_word,
    "long": LONG_VALUE,
    "heading": heading,
}
