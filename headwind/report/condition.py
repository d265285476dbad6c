"""The report's section on one condition: a table of blocks, figures, and the running intervals."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from headwind.arm import Arm
from headwind.format import link_settings, measured, moment, observed_text
from headwind.metric import Better, Metric, Use
from headwind.model import Block, Condition, Outcome, Result
from headwind.observed import figure, from_best, mean, median
from headwind.report.words import ARROWS
from headwind.run.data import RunData, is_data, latest_of, outcome_text
from headwind.verdicts.ended import complete, ended
from headwind.verdicts.findings import Bounds, Pair, Rows, columns_of, rows_of
from headwind.verdicts.stats import Interval, fewest_samples, interval_steps
from headwind.verdicts.verdict import Rule, interval_of
from impair.profile import Direction

TOTALS = ("median", "mean", "p90", "min", "max")  # of the primary metric, over trials
FEWEST_FOR_TAIL = fewest_samples(0.9)  # trials
RUNNING_ROWS = 5  # of the text under a running interval


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block as a row: its order, its seeds, when it began, and what the latest attempt of each arm gave."""

    anchor: str
    block: Block
    began: str  # time of day (UTC), with the date where that of the block before was another
    results: Mapping[Arm, Result]
    seeded: bool = True  # whether netem took the seeds

    @property
    def order(self) -> str:
        """The arms in the order in which they ran."""
        return " ".join(arm.name for arm in self.block.order)

    @property
    def seeds(self) -> str:
        """netem's seeds in the directions that are impaired, downlink first; others draw no random number."""
        profile = self.block.condition.profile
        if not self.seeded:
            return "the kernel's own"
        used = (side for side in (Direction.DOWNLINK, Direction.UPLINK) if link_settings(profile.link(side)))
        return " ".join(f"{ARROWS[side]}{self.block.seeds[side]}" for side in used) or "none"


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Attempts that did not simply go well, alike in outcome and reason."""

    outcome: str
    reason: str
    trials: tuple[tuple[str, str], ...]  # (anchor of the block's row, block and arm)


@dataclass(frozen=True, slots=True)
class Figures:
    """One arm over all its trials. Texts, because a bound is no number."""

    arm: Arm
    trials: int  # in the figures
    finished: int
    primary: Mapping[str, str]  # each of TOTALS, of the primary metric
    inside: tuple[str, ...]  # the median over trials of each of the other metrics that are shown
    phases: str  # where the time of a trial went, medians


@dataclass(frozen=True, slots=True)
class Running:
    """How the interval of one comparison closed, block by block."""

    pair: Pair
    steps: tuple[Interval, ...]  # after 1, 2, ... blocks

    @property
    def is_closed(self) -> bool:
        """Whether there is an interval at all: below the fewest blocks there is nothing to show."""
        return bool(self.steps) and _is_closed(self.steps[-1])

    @property
    def shown(self) -> list[Interval]:
        """Some of the steps, evenly spaced, the last among them; none that is open on both sides."""
        return [step for step in self.thinned(RUNNING_ROWS)[1] if _is_closed(step)]

    def thinned(self, most: int) -> tuple[int, Sequence[Interval]]:
        """Every so many blocks (the first value), at most `most` steps, the last among them."""
        stride = max(1, -(-len(self.steps) // most))
        return stride, self.steps[::-1][::stride][::-1]


def _is_closed(interval: Interval) -> bool:
    return isfinite(interval.low) or isfinite(interval.high)


@dataclass(frozen=True, slots=True)
class ConditionView:
    """Everything on the page about one condition."""

    anchor: str
    condition: Condition
    name: str  # of the condition, for people
    arms: tuple[Arm, ...]
    rows: tuple[BlockRow, ...]
    complete: int  # blocks in which every arm gave data
    figures: tuple[Figures, ...]
    inside: tuple[Metric, ...]  # of the figures
    otherwise: tuple[Otherwise, ...]
    running: tuple[Running, ...]
    commands: Mapping[str, int]  # how many attempts ran each


def condition_view(
    data: RunData, condition: Condition, anchor: str, pairs: Sequence[Pair], rule: Rule
) -> ConditionView:
    """What there is to show of a condition; `anchor` is its name inside the page."""
    arms = data.matrix.arms_in(condition)
    attempts = [result for arm in arms for result in data.attempts(condition, arm)]
    latest = rows_of(latest_of(attempts)).get(condition.id, {})
    compared, rows = ended(latest), tuple(_block_rows(anchor, latest, seeded=data.was_seeded))
    metric, inside = condition.workload.primary(), inside_of(condition)
    return ConditionView(
        anchor=anchor,
        condition=condition,
        name=data.matrix.name_of(condition),
        arms=arms,
        rows=rows,
        complete=complete(latest),
        figures=tuple(_figures(condition, arm, data.attempts(condition, arm), inside) for arm in arms),
        inside=inside,
        otherwise=tuple(_otherwise(attempts, {row.block.index: row.anchor for row in rows})),
        running=tuple(
            Running(pair, running_intervals(columns_of(compared, pair, metric).bounds, rule)) for pair in pairs
        ),
        commands=Counter(item.command for item in attempts if item.command),
    )


def _block_rows(anchor: str, rows: Rows, *, seeded: bool) -> Iterator[BlockRow]:
    day = ""
    for index, row in rows.items():
        began = moment(min((result.started_at for result in row.values() if result.started_at), default=None))
        date, _, time = began.removesuffix(" UTC").rpartition(" ")
        shown, day = (time if date == day else f"{date} {time}".strip()), date
        yield BlockRow(f"{anchor}b{index}", next(iter(row.values())).trial.block, shown, row, seeded)


def inside_of(condition: Condition) -> tuple[Metric, ...]:
    """What the table of figures shows of a trial besides its primary metric."""
    metrics = condition.workload.with_use(Use.JUDGED, Use.COMPARED, Use.SHOWN)
    return tuple(metric for metric in metrics if metric != condition.workload.primary())


def running_intervals(bounds: Bounds, rule: Rule) -> tuple[Interval, ...]:
    """The interval after each block, of the kind that may be looked at on the way; the last by the verdict's rule."""
    steps = interval_steps(*bounds, rule.confidence)
    return tuple(steps if rule.anytime or not steps else [*steps[:-1], interval_of(*bounds, rule)])


def trial_text(result: Result) -> str:
    """A trial in the table of blocks: its time, its bound, or in a word what became of it."""
    if result.outcome in (Outcome.OK, Outcome.TIMEOUT):
        metric = result.trial.block.condition.workload.primary()
        return observed_text(metric.key, figure(result, metric))
    return outcome_text(result)


def _figures(condition: Condition, arm: Arm, attempts: Sequence[Result], inside: Iterable[Metric]) -> Figures:
    latest = latest_of(attempts)
    analysed = [result for result in latest if is_data(result)]
    return Figures(
        arm=arm,
        trials=len(analysed),
        finished=sum(result.outcome is Outcome.OK for result in analysed),
        primary=_primary(analysed, condition.workload.primary()),
        inside=tuple(_inside(analysed, metric) for metric in inside),
        phases=", ".join(f"{name} {measured('phase_s', value)}" for name, value in _phases(latest).items()),
    )


def _primary(analysed: Sequence[Result], metric: Metric) -> dict[str, str]:
    """Over trials. One that did not finish is worse than all that did, so with one among them the mean is a bound."""
    values = from_best((figure(result, metric) for result in analysed), metric.better)
    if not values:
        return {name: observed_text(metric.key, None) for name in TOTALS}
    tail = values[ceil(0.9 * len(values)) - 1] if len(values) >= FEWEST_FOR_TAIL else None
    least, most = (values[0], values[-1]) if metric.better is Better.LESS else (values[-1], values[0])
    figures = (median(values), mean(values), tail, least, most)
    return {name: observed_text(metric.key, value) for name, value in zip(TOTALS, figures, strict=True)}


def _inside(analysed: Sequence[Result], metric: Metric) -> str:
    """The median over trials of one figure of each; a trial that did not finish has none, and counts as the worst.

    Nothing where no trial that finished has it on record.
    """
    finished = [result for result in analysed if result.outcome is Outcome.OK]
    if finished and not any(metric.key in result.metrics for result in finished):
        return observed_text(metric.key, None)
    values = from_best((figure(result, metric) for result in analysed), metric.better)
    return observed_text(metric.key, median(values) if values else None)


def _phases(results: Sequence[Result]) -> dict[str, float]:
    """The median of each phase, in the order in which they first appear."""
    names = dict.fromkeys(name for result in results for name in result.phases_s)
    return {
        name: statistics.median(result.phases_s[name] for result in results if name in result.phases_s)
        for name in names
    }


def _otherwise(attempts: Sequence[Result], anchors: Mapping[int, str]) -> Iterator[Otherwise]:
    """Attempts that are not plainly ok, or that the proof warns of, those alike together."""
    latest = {id(result) for result in latest_of(attempts)}
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for result in attempts:
        outcome = outcome_text(result) + ("" if id(result) in latest else " (made again)")
        trial = result.trial
        place = (anchors[trial.block.index], f"{trial.block.index}/{trial.arm.name}")
        if result.outcome is not Outcome.OK:
            alike.setdefault((outcome, result.reason), []).append(place)
        for warning in result.proof.warnings:
            alike.setdefault((f"{outcome}, warning", warning), []).append(place)
    for (outcome, reason), trials in alike.items():
        yield Otherwise(outcome, reason, tuple(trials))
