"""The article's own table: the result of each protocol in each condition.

Pure; used by the page and by the terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from headwind.arm import Arm, Role
from headwind.format import arm_name, counted, enumerated, listed
from headwind.metric import Rate
from headwind.model import CPU_BOUND, DATA_OUTCOMES, Condition, Outcome, Result
from headwind.observed import Observed, figure, from_best, median, observed
from headwind.proof.attempts import is_unproven
from headwind.proof.processors import WAITED, lacked_cpus
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
    """A condition and an arm. Figures are None if there are none."""

    condition: Condition
    arm: Arm
    planned: int  # trials at least
    running: bool  # True if more trials are to come
    outcomes: Mapping[Outcome, int]  # of the latest attempts; outcomes that did not happen are absent
    stopped: int  # of those outcomes, number that were cut short with the run
    repeated: int  # attempts that were repeated because of a lab error
    time: Spread | None  # by the primary metric
    rates: Mapping[Rate, float | None]  # of a trial that takes the median time; also None if that is a bound
    got_done: str  # text on how far failed trials got

    @property
    def analysed(self) -> int:
        """Number of trials in the figures, including unfinished ones."""
        return sum(self.outcomes.get(outcome, 0) for outcome in DATA_OUTCOMES)

    @property
    def finished(self) -> int:
        """Number of trials whose every request succeeded."""
        return self.outcomes.get(Outcome.OK, 0)


_NUMBER = re.compile(r"(?<![\w./])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")  # skips HTTP/1.1 and h2


def summary_table(data: RunData) -> list[Row]:
    """A row for every condition and arm of the matrix, in its order, including those not run yet."""
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
    """Rate of a finished trial that takes the median time; None if that is a bound.

    `moved` is the median amount over finished trials, missing if none of them reported it.
    """
    if middle is None or not middle.is_finished or middle.known <= 0 or moved is None or pd.isna(moved):
        return None
    return moved / middle.known * rate.times


@dataclass(frozen=True, slots=True)
class TrialNote:
    """A note that a reader needs before the figures, and its trials."""

    text: str
    trials: tuple[str, ...] = ()
    is_finding: bool = False  # a result of a protocol, not a problem of the lab

    @property
    def line(self) -> str:
        """The note after its number of trials: `1 trial: skipped`, `17 trials in clean: CPU-bound`."""
        link = " " if self.text.startswith(("in ", CPU_BOUND, WAITED)) else ": "
        return f"{counted(len(self.trials), 'trial')}{link}{self.text}"


_OUTCOME_NOTICES = {
    Outcome.INVALID: "invalid: the network was not verified; excluded from all figures",
    Outcome.LAB_ERROR: "lab error: the lab failed; excluded from all figures",
    Outcome.WRONG_PROTOCOL: "wrong protocol: not the requested protocol; counted as not completed",
    Outcome.WRONG_CONTENT: "wrong content: not the requested bytes; counted as not completed",
    Outcome.WRONG_SESSION: "wrong session: not resumed, or no early data, although requested; counted as not completed",
    Outcome.TIMEOUT: "timed out: stopped unfinished; the true time is longer",
    Outcome.FAILED: "failed: some requests did not succeed; there is no completion time",
    Outcome.SKIPPED: "skipped: never started",
}


def notices(data: RunData) -> list[TrialNote]:
    """Networks that were not the requested ones, outcomes other than ok, repetitions, and the proofs' warnings."""
    return [*_network_notices(data), *_outcome_notices(data), *_warning_notices(data)]


def _network_notices(data: RunData) -> Iterator[TrialNote]:
    """Notes on conditions whose network was not the requested one, according to all trials together."""
    failed = [question for question in data.pooled if not question.passed]
    for condition in dict.fromkeys(question.condition for question in failed):
        own = [question for question in failed if question.condition == condition]
        arms = {arm for question in own for arm in question.arms}
        trials = tuple(
            result.trial.id
            for result in data.latest
            if result.trial.block.condition.id == condition.id and result.trial.arm in arms and is_data(result)
        )
        deviations = "; ".join(question.text for question in own)
        yield TrialNote(
            f"{data.matrix.name_of(condition)} did not have the requested network, so nothing is sure: {deviations}",
            trials,
        )


def _outcome_notices(data: RunData) -> Iterator[TrialNote]:
    for outcome, meaning in _OUTCOME_NOTICES.items():
        results = [
            result for result in data.latest
            if result.outcome is outcome and not was_stopped(result)
        ]  # fmt: skip
        is_finding = outcome in (Outcome.TIMEOUT, Outcome.FAILED)
        if results:
            arms = f" ({by_arm(data.latest, results)})" if is_finding else ""
            yield TrialNote(f"{meaning}{arms}", _ids(results), is_finding=is_finding)
    incomplete = tuple(
        result.trial.id
        for result in data.latest
        if result.outcome is Outcome.OK and observed(result, result.trial.block.condition.workload.primary()) is None
    )
    if incomplete:
        yield TrialNote("no time was measured, although the outcome is ok; counted as not completed", incomplete)
    yield from _attempt_notices(data)


def _attempt_notices(data: RunData) -> Iterator[TrialNote]:
    """Notes on repeated attempts, with reason and by arm; and on trials that count although CPUs were short."""
    latest = {result.trial.id: result for result in data.latest}
    again = [result for result in data.results if latest[result.trial.id] is not result]
    unproven = [result for result in again if is_unproven(result)]
    if unproven:
        text = (
            f"repeated, because the network was not verified in an earlier attempt, which is excluded "
            f"(such attempts: {by_arm(data.results, unproven)})"
        )
        yield TrialNote(text, _ids(unproven))
    if broken := [result for result in again if result.outcome is Outcome.LAB_ERROR and not was_stopped(result)]:
        yield TrialNote("repeated, because the lab failed at an earlier attempt, which stays on record", _ids(broken))
    data_ = [result for result in data.latest if is_data(result)]
    if short := [result for result in data_ if lacked_cpus(result)]:
        yield TrialNote(f"{WAITED}: {by_arm(data_, short)}; none is excluded", _ids(short))


def _ids(results: Sequence[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.trial.id for result in results))


def by_arm(every: Iterable[Result], some: Iterable[Result]) -> str:
    """Numbers of some trials by arm, without those stopped with the run: `HTTP/1.1: 3 of 240, HTTP/2: 0 of 241`."""
    ended = [each for each in every if not was_stopped(each)]
    found, all_of = Counter(each.trial.arm for each in some), Counter(each.trial.arm for each in ended)
    return ", ".join(f"{arm_name(arm)}: {found[arm]:,} of {count:,}" for arm, count in all_of.items())


def _warning_notices(data: RunData) -> Iterator[TrialNote]:
    """The proofs' warnings about trials that count; those that differ only in their numbers are one note."""
    alike: dict[str, list[tuple[str, Result]]] = {}
    for result in filter(is_data, data.latest):
        for warning in result.proof.warnings:
            alike.setdefault(_NUMBER.sub("#", warning), []).append((warning, result))
    for concerned in alike.values():
        yield TrialNote(_of_networks(data, concerned), tuple(result.trial.id for _, result in concerned))


def _of_networks(data: RunData, concerned: Sequence[tuple[str, Result]]) -> str:
    """Similar warnings as one text.

    The networks are named unless it is all of them. If they differ in their figures, each has its number of trials, and
    there is an example, or for shares of CPU time the range over all networks. The slower twin of a self-check has a
    network that is not in the matrix, so it is named too.
    """
    found: dict[str, list[str]] = {}
    for warning, result in concerned:
        trial = result.trial
        twin = f" with {arm_name(trial.arm)}" if trial.arm.role is Role.SLOWER else ""
        found.setdefault(f"{data.matrix.name_of(trial.block.condition)}{twin}", []).append(warning)
    if len({_merged(texts) for texts in found.values()}) == 1:
        merged = _merged([warning for warning, _ in concerned])
        is_everywhere = {*found} >= {data.matrix.name_of(each) for each in data.matrix.conditions}
        return merged if is_everywhere else f"in {listed(list(found))}: {merged}"
    names = sorted(found, key=lambda name: -len(found[name]))
    places = enumerated(f"{name} ({len(found[name])})" for name in names)
    if concerned[0][0].startswith(CPU_BOUND):
        return f"in {places}: {_merged([warning for warning, _ in concerned])}"
    return f"in {places}, for example: {found[names[0]][0]}"


def _merged(texts: Sequence[str]) -> str:
    """Texts that differ only in their numbers, merged: "3 lost" and "7 lost" are "3 to 7 lost"."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ends = ((min(column, key=_value), max(column, key=_value)) for column in columns)
    ranges = (low if _value(low) == _value(high) else f"{low} to {high}" for low, high in ends)
    return _NUMBER.sub(lambda _: next(ranges), texts[0])


def _value(number: str) -> float:
    return float(number.replace(",", ""))
