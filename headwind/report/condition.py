"""The report's section on one condition: a table of blocks, figures, and the running intervals."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from headwind.arm import Arm
from headwind.format import measured, moment, network_settings, observed_text
from headwind.metric import SHARED, Better, Metric, Use
from headwind.model import Block, Condition, Outcome, Result
from headwind.observed import figure, from_best, mean, median, typical
from headwind.proof.processors import WAITED, lacked_cpus
from headwind.report.row_text import ARROWS
from headwind.run.data import RunData, is_data, latest_of, outcome_text
from headwind.verdicts.ended import complete, ended
from headwind.verdicts.findings import Bounds, Rows, columns_of, rows_of
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import Interval, fewest_samples, interval_steps
from headwind.verdicts.verdict import Rule, interval_of
from impair.profile import Direction

TOTALS = ("median", "mean", "p90", "min", "max")  # of the primary metric, over trials
FEWEST_FOR_TAIL = fewest_samples(0.9)  # trials
RUNNING_ROWS = 5  # in the text under a running interval


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block as a row: its order, its seeds, its start, and the latest attempt of each arm."""

    anchor: str
    block: Block
    began: str  # time of day (UTC), with the date if it differs from the block before
    results: Mapping[Arm, Result]
    seeded: bool = True  # True if netem took the seeds

    @property
    def order(self) -> str:
        """The arms in the order in which they ran."""
        return " ".join(arm.name for arm in self.block.order)

    @property
    def seeds(self) -> str:
        """netem's seeds in the impaired directions, downlink first; other directions draw no random numbers."""
        profile = self.block.condition.profile
        if not self.seeded:
            return "the kernel's own"
        used = (side for side in (Direction.DOWNLINK, Direction.UPLINK) if network_settings(profile, side))
        return " ".join(f"{ARROWS[side]}{self.block.seeds[side]}" for side in used) or "none used"


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Failures and warnings with the same outcome and reason."""

    outcome: str
    reason: str
    trials: tuple[tuple[str, str], ...]  # (anchor of the block's row, block and arm)


@dataclass(frozen=True, slots=True)
class Figures:
    """An arm over all its trials, as texts, because a bound is not a number."""

    arm: Arm
    trials: int  # in the figures
    finished: int
    primary: Mapping[str, str]  # each of TOTALS, of the primary metric
    inside: tuple[str, ...]  # the median over trials of each other metric that is shown
    phases: str  # medians of the phases of a trial


@dataclass(frozen=True, slots=True)
class Running:
    """The interval of one comparison after each block."""

    pair: Pair
    steps: tuple[Interval, ...]  # after 1, 2, ... blocks

    @property
    def is_closed(self) -> bool:
        """True if there is an interval; below the fewest blocks there is none."""
        return bool(self.steps) and _is_closed(self.steps[-1])

    @property
    def shown(self) -> list[Interval]:
        """Some of the steps, evenly spaced, including the last; none that is open on both sides."""
        return [step for step in self.thinned(RUNNING_ROWS)[1] if _is_closed(step)]

    def thinned(self, most: int) -> tuple[int, Sequence[Interval]]:
        """The stride, and every stride-th step, at most `most` of them, including the last."""
        stride = max(1, -(-len(self.steps) // most))
        return stride, self.steps[::-1][::stride][::-1]


def _is_closed(interval: Interval) -> bool:
    return isfinite(interval.low) or isfinite(interval.high)


@dataclass(frozen=True, slots=True)
class ConditionView:
    """The page's content about one condition."""

    anchor: str
    condition: Condition
    name: str  # of the condition, for readers
    arms: tuple[Arm, ...]
    rows: tuple[BlockRow, ...]
    complete: int  # blocks in which every arm gave data
    figures: tuple[Figures, ...]
    inside: tuple[Metric, ...]  # of the figures
    otherwise: tuple[Otherwise, ...]
    running: tuple[Running, ...]
    commands: Mapping[str, int]  # command -> number of attempts that ran it
    ratio_of: str  # "ratio by mean completion time"; "ratio", if it is of the primary metric


def condition_view(
    data: RunData, condition: Condition, anchor: str, pairs: Sequence[Pair], rule: Rule
) -> ConditionView:
    """The view of a condition; `anchor` is its name inside the page."""
    arms = data.matrix.arms_in(condition)
    attempts = [result for arm in arms for result in data.attempts(condition, arm)]
    latest = rows_of(latest_of(attempts)).get(condition.id, {})
    compared, rows = ended(latest), tuple(_block_rows(anchor, latest, seeded=data.was_seeded))
    metric, inside = data.matrix.judged(condition)[0], inside_of(condition)
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
        ratio_of="ratio" if metric == condition.workload.primary() else f"ratio by {metric.label}",
    )


def _block_rows(anchor: str, rows: Rows, *, seeded: bool) -> Iterator[BlockRow]:
    day = ""
    for index, row in rows.items():
        began = moment(min((result.started_at for result in row.values() if result.started_at), default=None))
        date, _, time = began.removesuffix(" UTC").rpartition(" ")
        shown, day = (time if date == day else f"{date} {time}".strip()), date
        yield BlockRow(f"{anchor}b{index}", next(iter(row.values())).trial.block, shown, row, seeded)


def inside_of(condition: Condition) -> tuple[Metric, ...]:
    """The metrics of a trial in the table of figures, besides the primary one."""
    workload = condition.workload
    shared = SHARED if workload.competing else ()
    metrics = (*condition.metrics(Use.JUDGED, Use.COMPARED, Use.SHOWN), *shared)
    return tuple(metric for metric in metrics if metric != workload.primary())


def running_intervals(bounds: Bounds, rule: Rule) -> tuple[Interval, ...]:
    """The interval after each block, of the anytime-valid kind; the last by the verdict's rule."""
    steps = interval_steps(*bounds, rule.confidence)
    return tuple(steps if rule.anytime or not steps else [*steps[:-1], interval_of(*bounds, rule)])


def trial_text(result: Result) -> str:
    """A trial in the table of blocks: its time, its bound, or its outcome."""
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
        inside=tuple(observed_text(metric.key, typical(analysed, metric)) for metric in inside),
        phases=", ".join(f"{name} {measured('phase_s', value)}" for name, value in _phases(latest).items()),
    )


def _primary(analysed: Sequence[Result], metric: Metric) -> dict[str, str]:
    """The primary metric's TOTALS over trials.

    An unfinished trial is worse than all finished ones, so with one among them the mean is a bound.
    """
    values = from_best((figure(result, metric) for result in analysed), metric.better)
    if not values:
        return {name: observed_text(metric.key, None) for name in TOTALS}
    tail = values[ceil(0.9 * len(values)) - 1] if len(values) >= FEWEST_FOR_TAIL else None
    least, most = (values[0], values[-1]) if metric.better is Better.LESS else (values[-1], values[0])
    figures = (median(values), mean(values), tail, least, most)
    return {name: observed_text(metric.key, value) for name, value in zip(TOTALS, figures, strict=True)}


def _phases(results: Sequence[Result]) -> dict[str, float]:
    """The median of each phase, in the order in which they first appear."""
    names = dict.fromkeys(name for result in results for name in result.phases_s)
    return {
        name: statistics.median(result.phases_s[name] for result in results if name in result.phases_s)
        for name in names
    }


def _otherwise(attempts: Sequence[Result], anchors: Mapping[int, str]) -> Iterator[Otherwise]:
    """Attempts that are not ok or have a warning, grouped by outcome and reason."""
    latest = {id(result) for result in latest_of(attempts)}
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for result in attempts:
        outcome = outcome_text(result) + ("" if id(result) in latest else " (repeated)")
        trial = result.trial
        place = (anchors[trial.block.index], f"{trial.block.index}/{trial.arm.name}")
        if result.outcome is not Outcome.OK:
            alike.setdefault((outcome, result.reason), []).append(place)
        waited = [WAITED] if id(result) in latest and is_data(result) and lacked_cpus(result) else []
        for warning in (*result.proof.warnings, *waited):
            alike.setdefault((f"{outcome}, warning", warning), []).append(place)
    for (outcome, reason), trials in alike.items():
        yield Otherwise(outcome, reason, tuple(trials))
