"""Several runs on one page: the findings of each, next to each other, and other differences between them. Pure."""

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
from headwind.report import row_text
from headwind.report.compare.agreement import (
    Accord,
    accord,
    change_figures,
    change_word,
    machine_sentences,
    outcome,
    rest,
)
from headwind.report.compare.comparison import Comparison, changes_between
from headwind.report.compare.differences import differing_facts, kept_apart
from headwind.report.html import charts, templating
from headwind.report.html.pictures import heading, interval_domain, limit, trial_mark
from headwind.report.times_table import Row, summary_table
from headwind.report.verdicts import first_judged
from headwind.run.data import RunData, latest_of
from headwind.verdicts.changes import ArmChange, Changes, RatioChange
from headwind.verdicts.findings import Finding, judged_metrics
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.pairs import Pair
from headwind.verdicts.verdict import Verdict

MOST_PICTURED = 20_000  # trials; with more, the distributions would make the page heavy
LONG_VALUE = 24  # characters: a longer value is written once, and then referred to
CURVES = 6  # kinds of curves in charts.css; from the seventh run on they repeat, distinguished by their letters


@dataclass(frozen=True, slots=True)
class Member:
    """A run under its letter. Its arms are sorted by name, so that comparisons match."""

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
    """A comparison in one condition: every run's line with its small interval, in the order of the runs."""

    pair: Pair
    cells: Sequence[tuple[Line | None, Markup]]
    accord: Accord
    changes: Mapping[Metric, RatioChange]  # of two runs


@dataclass(frozen=True, slots=True)
class Timed:
    """An arm in one condition: every run's row, and for two runs the changes by metric."""

    arm: Arm
    cells: Sequence[Row | None]
    changes: Mapping[Metric, ArmChange]


@dataclass(frozen=True, slots=True)
class Group:
    """The content about one condition. Runs with a different condition of the same name have none of it."""

    condition: Condition
    letters: Sequence[str]  # of the runs that have it
    judged: Sequence[Judged]
    timed: Sequence[Timed]
    pictures: Sequence[tuple[str, Markup]]  # with the name of their arm


def render_several(runs: Sequence[RunData], generated_at_s: float) -> str:
    """The page as HTML5, which depends only on the runs, their order and the time (seconds since the epoch).

    The first run is called A. Raises UsageError without a run.
    """
    if not runs:
        raise UsageError("no run given: a combined report needs at least one")
    members = [Member.of(_letter(number), data) for number, data in enumerate(runs)]
    changed = _changes(members)
    groups = list(_groups(members, changed))
    return templating.page(
        "several.html.j2",
        GLOBALS,
        members=members,
        groups=groups,
        facts=differing_facts(runs),
        apart=kept_apart(runs),
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
    """Letters for numbers: A to Z, then AA, AB, and so on."""
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
    cells, found = [], dict[Metric, list[tuple[str, Verdict]]]()
    for member in members:
        line, picture = member.lines.get((condition, pair)), Markup()
        if line and line.blocks:
            finding = line.primary
            found.setdefault(finding.metric, []).append((member.letter, finding.counted))
            picture = _interval(f"{anchor}-{member.letter}", member, finding, domain)
        cells.append((line, picture))
    return Judged(pair, cells, accord(*found.values()) if len(found) == 1 else Accord(), changed)


def _interval(anchor: str, member: Member, finding: Finding, domain: tuple[float, float]) -> Markup:
    estimate, low, high = finding.comparison.interval.ratios
    return charts.interval(
        anchor, estimate, low, high, margin_ratio=member.verdicts.rule.margin_ratio, domain=domain,
        label=f"Run {member.letter}, {finding.pair} in {finding.condition.id}: {finding.verdict.value}",
    )  # fmt: skip


def _domain(members: Sequence[Member]) -> tuple[float, float]:
    """Common domain of all small intervals."""
    lines = (line for member in members for line in member.lines.values() if line.blocks)
    return interval_domain(line.primary.comparison.interval for line in lines)


def _changes(members: Sequence[Member]) -> Changes:
    """For two runs, the changes in the second, as `lab.py compare` finds them."""
    if len(members) != 2:
        return Changes((), (), ())
    return changes_between(*(member.data for member in members))


def _pictures(
    anchor: str, members: Sequence[Member], condition: Condition, arms: Sequence[Arm]
) -> Sequence[tuple[str, Markup]]:
    """For each arm with trials in several runs: the distribution of the primary metric, a curve for each run."""
    found, metric = [], condition.workload.primary()
    for arm in arms:
        series = [
            charts.DotSeries(
                f"c{number % CURVES + 1}", member.letter, _marks(member.data, condition, arm), metric.better
            )
            for number, member in enumerate(members)
        ]
        rows = [(member.letter, member.rows.get((condition, arm))) for member in members]
        medians = [f"{letter} {row_text.median_text(row)}" for letter, row in rows if row and row.time]
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
    """The result of the comparison, in plain words."""
    if len(members) == 1:
        yield "There is only one run, so there is nothing to compare."
        return
    together = sum(len(group.letters) > 1 for group in groups)
    if not together:
        yield "These runs have no condition in common: nothing in them can be compared."
        return
    yield f"{units.counted(len(members), 'run')}, {units.counted(together, 'condition')} in more than one of them."
    metric = first_judged(line for member in members for line in member.verdicts.compared)
    agreed = [item.accord for group in groups for item in group.judged if item.accord.text]
    against = sum(item.is_contradiction for item in agreed)
    same = sum(item.text.startswith("same") for item in agreed)
    if agreed:
        yield (
            f"By {metric}, {units.counted(len(agreed), 'comparison')} got a verdict in two runs or more: "
            f"the same in {same}, a contradiction in {against}, and something between in "
            f"{len(agreed) - same - against}."
        )
    else:
        yield f"No comparison got a verdict by {metric} in two runs or more."
    if changed.ratios:
        found = ". ".join((*outcome(changed), *rest(changed.ratios, changed.fewest)))
        yield f"From run {members[0].letter} to run {members[1].letter}: {found}."
    before, after = members[0].data, members[-1].data
    is_same_setup = Comparison(before, after, changed, absolute=False).is_same_setup
    for sentence in machine_sentences(changed, is_same_setup=is_same_setup):
        yield f"All protocols alike, so not counted: {sentence}."


def _method(members: Sequence[Member]) -> Iterator[str]:
    yield (
        "The verdicts of each run compare protocols inside its own blocks, as in its own report. They are comparable "
        "between runs if the conditions are the same."
    )
    if len(members) > 1:
        yield (
            "Absolute times are not: the runs share no blocks, so a difference between two of them includes all other "
            "changes, and the drift of the machine from one time to another. A change is therefore not proof of its "
            "cause. To compare two settings without this, put both into one matrix."
        )
        yield (
            "A contradiction is a comparison in which the same protocol is clearly ahead in one run and clearly behind "
            "in another. This page cannot show which is right: look at the impairment checks of both first."
        )
    if len(members) == 2:
        yield (
            "A change of a ratio does not depend on the machine's speed: it compares two independent samples, the "
            "paired ratios of one run's blocks with those of the other's, by intervals that hold at any stopping "
            "time. Worse or better counts if it survives e-BH at 10 % over all of them. Its own values show which arm "
            "of a pair changed, or third arms if all share a change, which is attributed to the machine. Times of an "
            "arm also change with the machine, and are not a regression on their own."
        )
    margins = {(member.verdicts.rule.margin_ratio, member.verdicts.rule.confidence) for member in members}
    if len(margins) > 1:
        yield "The runs were judged by different margins or confidence, each by its own: see the differences."


GLOBALS = {
    "change_figures": change_figures,
    "change_word": change_word,
    "long": LONG_VALUE,
    "heading": heading,
}
