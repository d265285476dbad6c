"""The article's own table: what each protocol did in each condition. Pure; used by the page and by the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from headwind.arm import Arm
from headwind.format import arm_name
from headwind.metric import Rate
from headwind.model import DATA_OUTCOMES, Condition, Outcome, Result
from headwind.observed import Observed, figure, from_best, median, observed
from headwind.proof.attempts import MOST_ATTEMPTS, is_unproven
from headwind.proof.processors import lacked_processors
from headwind.run.codec import State
from headwind.run.data import RunData, is_data, latest_of, was_stopped
from headwind.run.tables import CELL


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, best and worst of one metric of one condition and arm."""

    median: Observed
    best: Observed
    worst: Observed


@dataclass(frozen=True, slots=True)
class Row:
    """One condition and arm. Figures are None where there is nothing to tell."""

    condition: Condition
    arm: Arm
    planned: int  # trials at least
    running: bool  # more of them are to come
    outcomes: Mapping[Outcome, int]  # of the latest attempts; outcomes that did not happen are absent
    stopped: int  # of those outcomes, what was cut short with the run
    repeated: int  # attempts that were made again because the lab had failed
    time: Spread | None  # by the primary metric
    rates: Mapping[Rate, float | None]  # of a trial that takes the median time; None as well where that is a bound
    got_done: str  # what failed trials got done, in words

    @property
    def analysed(self) -> int:
        """Trials that the figures are made of, unfinished ones among them."""
        return sum(self.outcomes.get(outcome, 0) for outcome in DATA_OUTCOMES)

    @property
    def finished(self) -> int:
        """Trials whose every request succeeded."""
        return self.outcomes.get(Outcome.OK, 0)


_NUMBER = re.compile(r"(?<![\w./])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")  # none of HTTP/1.1 and h2


def summary_table(data: RunData) -> list[Row]:
    """One row for every condition and arm of the matrix, in its order, also for those not run yet."""
    trials, by_cell = data.trials, list(CELL)
    latest = trials[trials["latest"]]
    counts = latest.groupby([*by_cell, "outcome"], observed=True).size().to_dict()
    attempts = trials.groupby(by_cell, observed=True).size().to_dict()
    rates = {rate.amount for condition in data.matrix.conditions for rate in condition.workload.rates}
    finished = latest[latest["outcome"] == Outcome.OK].groupby(by_cell, observed=True)
    moved = finished[[name for name in trials if name in rates]].median().to_dict("index")
    rows = []
    for condition in data.matrix.conditions:
        for arm in data.matrix.arms:
            cell = (condition.profile.name, condition.workload.name, arm.name)
            outcomes = {each: counts[(*cell, each)] for each in Outcome if (*cell, each) in counts}
            repeated = attempts.get(cell, 0) - sum(outcomes.values())
            rows.append(_row(data, condition, arm, outcomes, repeated, moved.get(cell, {})))
    return rows


def _row(
    data: RunData,
    condition: Condition,
    arm: Arm,
    outcomes: Mapping[Outcome, int],
    repeated: int,
    moved: Mapping[Hashable, float],
) -> Row:
    latest = latest_of(data.attempts(condition, arm))
    analysed = [result for result in latest if is_data(result)]
    workload = arm.workload(condition.workload)
    metric = workload.primary()
    times = from_best((figure(result, metric) for result in analysed), metric.better)
    middle = median(times) if times else None
    return Row(
        condition=condition,
        arm=arm,
        planned=data.matrix.repeat.least,
        running=data.status.state is State.RUNNING,
        outcomes=outcomes,
        stopped=sum(map(was_stopped, latest)),
        repeated=repeated,
        time=Spread(middle, times[0], times[-1]) if middle else None,
        rates={rate: _rate_at(middle, moved.get(rate.amount), rate) for rate in workload.rates},
        got_done=workload.got_done([result.metrics for result in analysed if result.outcome is Outcome.FAILED]),
    )


def _rate_at(middle: Observed | None, moved: float | None, rate: Rate) -> float | None:
    """What a finished trial moves in a second, when it takes the median time; None where that is a bound.

    `moved` is the median over finished trials, missing where none of them told.
    """
    if middle is None or not middle.is_finished or middle.known <= 0 or moved is None or pd.isna(moved):
        return None
    return moved / middle.known * rate.times


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a reader must know before the figures, and the trials that it concerns."""

    text: str
    trials: tuple[str, ...] = ()
    is_finding: bool = False  # what a protocol did, and no reason to doubt the lab


_OUTCOME_NOTICES = {
    Outcome.INVALID: "invalid: the network was not proven to be the requested one; not in any figure",
    Outcome.LAB_ERROR: "lab error: the lab itself failed; not in any figure",
    Outcome.WRONG_PROTOCOL: "wrong protocol: another one than asked was negotiated; counted as not completed",
    Outcome.WRONG_CONTENT: "wrong content: other bytes than asked for were delivered; counted as not completed",
    Outcome.WRONG_SESSION: "wrong session: not resumed, or no early data, as was asked for; counted as not completed",
    Outcome.TIMEOUT: "timeout: stopped unfinished; the time is a bound",
    Outcome.FAILED: "failed: some requests did not succeed; there is no completion time",
    Outcome.SKIPPED: "skipped: never started",
}


def notices(data: RunData) -> list[Notice]:
    """Networks that were not the requested ones, outcomes other than ok, repetitions, and the proofs' warnings."""
    return [*_network_notices(data), *_outcome_notices(data), *_warning_notices(data)]


def _network_notices(data: RunData) -> Iterator[Notice]:
    """Conditions whose network was another one than requested, as only all trials together can tell."""
    failed = [question for question in data.pooled if not question.passed]
    for condition in dict.fromkeys(question.condition for question in failed):
        mine = [question for question in failed if question.condition == condition]
        arms = {arm for question in mine for arm in question.arms}
        trials = tuple(
            result.trial.id
            for result in data.latest
            if result.trial.block.condition.id == condition.id and result.trial.arm in arms and is_data(result)
        )
        told = "; ".join(question.text for question in mine)
        yield Notice(
            f"{data.matrix.name_of(condition)} was not over the requested network, nothing of it is decided: {told}",
            trials,
        )


def _outcome_notices(data: RunData) -> Iterator[Notice]:
    for outcome, meaning in _OUTCOME_NOTICES.items():
        results = [
            result for result in data.latest
            if result.outcome is outcome and not was_stopped(result)
        ]  # fmt: skip
        is_finding = outcome in (Outcome.TIMEOUT, Outcome.FAILED)
        if results:
            arms = f" ({by_arm(data.latest, results)})" if is_finding else ""
            yield Notice(f"{meaning}{arms}", _ids(results), is_finding=is_finding)
    incomplete = tuple(
        result.trial.id
        for result in data.latest
        if result.outcome is Outcome.OK and observed(result, result.trial.block.condition.workload.primary()) is None
    )
    if incomplete:
        yield Notice("no time was measured, although the outcome is ok; counted as not completed", incomplete)
    yield from _attempt_notices(data)


def _attempt_notices(data: RunData) -> Iterator[Notice]:
    """Attempts that were repeated, why, and by arm; and trials that count although processors were short."""
    latest = {result.trial.id: result for result in data.latest}
    again = [result for result in data.results if latest[result.trial.id] is not result]
    unproven = [result for result in again if is_unproven(result)]
    if unproven:
        text = (
            f"run again: the network was not proven at an earlier attempt, which is in no figure "
            f"(at most {MOST_ATTEMPTS} attempts at a trial; of all attempts {by_arm(data.results, unproven)})"
        )
        yield Notice(text, _ids(unproven))
    if broken := [result for result in again if result.outcome is Outcome.LAB_ERROR and not was_stopped(result)]:
        yield Notice("repeated: the lab failed at an earlier attempt, which stays on record", _ids(broken))
    counted = [result for result in data.latest if is_data(result)]
    if short := [result for result in counted if lacked_processors(result)]:
        yield Notice(f"processors were short; these trials count ({by_arm(counted, short)})", _ids(short))


def _ids(results: Sequence[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.trial.id for result in results))


def by_arm(every: Iterable[Result], some: Iterable[Result]) -> str:
    """`HTTP/1.1 3 of 240, HTTP/2 0 of 241`."""
    found, all_of = Counter(each.trial.arm for each in some), Counter(each.trial.arm for each in every)
    return ", ".join(f"{arm_name(arm)} {found[arm]:,} of {count:,}" for arm, count in all_of.items())


def _warning_notices(data: RunData) -> Iterator[Notice]:
    """Warnings that differ only in their numbers are one notice."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for result in data.latest:
        for warning in result.proof.warnings:
            alike.setdefault(_NUMBER.sub("#", warning), []).append((warning, result.trial.id))
    for concerned in alike.values():
        yield Notice(_merged([text for text, _ in concerned]), tuple(trial for _, trial in concerned))


def _merged(texts: Sequence[str]) -> str:
    """Texts that differ only in their numbers, as one: "3 lost" and "7 lost" are "3 to 7 lost"."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ends = ((min(column, key=_value), max(column, key=_value)) for column in columns)
    ranges = (low if _value(low) == _value(high) else f"{low} to {high}" for low, high in ends)
    return _NUMBER.sub(lambda _: next(ranges), texts[0])


def _value(number: str) -> float:
    return float(number.replace(",", ""))
