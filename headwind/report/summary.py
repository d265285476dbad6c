"""The article's own table: what each protocol did in each condition. Pure; used by the page and by the terminal.

A trial that did not finish is never left out of a median: it took longer than every trial that did. So a median may be
a bound ("> 60 s"), or there may be none ("not completed"), and it is never an average over survivors.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

from headwind.model import DATA_OUTCOMES, Condition, Outcome, Protocol, Result
from headwind.record import State
from headwind.report.data import RunData, is_data, latest_of


class Kind(IntEnum):
    """How much is known of a completion time; in the order in which times are sorted."""

    EXACT = 0  # every request succeeded, at this time
    ABOVE = 1  # stopped at this time, unfinished
    NEVER = 2  # ended without doing its work: there is no completion time


@dataclass(frozen=True, slots=True, order=True)
class Time:
    """When the work of a trial was complete, in seconds; sorts from quick to never."""

    kind: Kind
    seconds: float


NEVER = Time(Kind.NEVER, math.inf)


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, lowest and highest of the completion times of one condition and protocol."""

    median: Time
    lowest: Time
    highest: Time


@dataclass(frozen=True, slots=True)
class Row:
    """One condition and protocol. Figures are None where there is nothing to tell."""

    condition: Condition
    protocol: Protocol
    planned: int  # trials at least
    running: bool  # more of them are to come
    outcomes: Mapping[Outcome, int]  # of the latest attempts; outcomes that did not happen are absent
    repeated: int  # attempts that were made again because the lab had failed
    time: Spread | None
    requests_per_s: float | None  # of a trial that takes the median time; None as well where that is a bound
    goodput_bps: float | None
    succeeded: tuple[int, int] | None  # fewest and most requests that succeeded in a failed trial

    @property
    def analysed(self) -> int:
        """Trials that the figures are made of, unfinished ones among them."""
        return sum(self.outcomes.get(outcome, 0) for outcome in DATA_OUTCOMES)

    @property
    def finished(self) -> int:
        """Trials whose every request succeeded."""
        return self.outcomes.get(Outcome.OK, 0)


_NUMBER = re.compile(r"[0-9]+")


def summary_table(data: RunData) -> list[Row]:
    """One row for every condition and protocol of the matrix, in its order, also for those not run yet."""
    return [
        _row(data, condition, protocol) for condition in data.matrix.conditions for protocol in data.matrix.protocols
    ]


def _row(data: RunData, condition: Condition, protocol: Protocol) -> Row:
    attempts = data.attempts(condition, protocol)
    results = latest_of(attempts)
    analysed = [result for result in results if is_data(result)]
    times = sorted(time_of(result, data.matrix.timeout_s) for result in analysed)
    median = median_time(times) if times else None
    body_bytes = _rate_at(median, analysed, "bytes_body")
    return Row(
        condition=condition,
        protocol=protocol,
        planned=data.matrix.repeat.least,
        running=data.status.state is State.RUNNING,
        outcomes=Counter(result.outcome for result in results),
        repeated=len(attempts) - len(results),
        time=Spread(median, times[0], times[-1]) if median else None,
        requests_per_s=_rate_at(median, analysed, "requests_succeeded"),
        goodput_bps=body_bytes * 8 if body_bytes is not None else None,
        succeeded=_succeeded(analysed),
    )


def time_of(result: Result, timeout_s: float) -> Time:
    """The completion time of a trial; `timeout_s` is the matrix's, for a result that does not say its own."""
    if result.outcome is Outcome.TIMEOUT:
        return Time(Kind.ABOVE, result.lower_bound_s or timeout_s)
    if result.outcome is Outcome.OK and "total_s" in result.metrics:
        return Time(Kind.EXACT, result.metrics["total_s"])
    return NEVER


def median_time(times: Sequence[Time]) -> Time:
    """The median of one or more sorted times: of an even number, half-way between the two in the middle.

    Half-way between a time and a bound is a bound; half-way between anything and never is never.
    """
    low, high = times[(len(times) - 1) // 2], times[len(times) // 2]
    return Time(high.kind, (low.seconds + high.seconds) / 2)  # never is at infinity, and so is half the way to it


def _rate_at(median: Time | None, analysed: Sequence[Result], amount: str) -> float | None:
    """What a finished trial moves (`amount`) over the median time; None where that is a bound."""
    moved = [result.metrics[amount] for result in analysed if result.outcome is Outcome.OK and amount in result.metrics]
    if median is None or median.kind is not Kind.EXACT or not moved or median.seconds <= 0:
        return None
    return statistics.median(moved) / median.seconds


def _succeeded(analysed: Sequence[Result]) -> tuple[int, int] | None:
    counts = [
        int(result.metrics["requests_succeeded"])
        for result in analysed
        if result.outcome is Outcome.FAILED and "requests_succeeded" in result.metrics
    ]
    return (min(counts), max(counts)) if counts else None


def compare_ranges(rows: Sequence[Row]) -> str:
    """What the ranges of one condition's protocols allow one to say, and no more: it is not a verdict.

    A protocol is compared when it has two trials or more and each of them did its work or timed out.
    """
    fit = [row for row in rows if row.time and row.analysed > 1 and row.time.highest.kind is not Kind.NEVER]
    if len(fit) < 2:
        return "too few completed trials to compare ranges"
    apart = [
        f"{first.protocol} and {second.protocol}" for first, second in combinations(fit, 2) if _apart(first, second)
    ]
    left_out = [row.protocol.value for row in rows if row not in fit]
    note = f" ({', '.join(left_out)} not compared)" if left_out else ""
    if not apart:
        return f"ranges overlap{note}"
    if len(apart) == len(fit) * (len(fit) - 1) // 2:
        return f"ranges do not overlap{note}"
    return f"ranges do not overlap: {', '.join(apart)}{note}"


def _apart(first: Row, second: Row) -> bool:
    """Whether one row's every time is below the other's; a bound may reach any height, so it is below nothing."""
    assert first.time
    assert second.time
    quick, slow = sorted((first.time, second.time), key=lambda time: time.lowest)
    return quick.highest.kind is Kind.EXACT and quick.highest.seconds < slow.lowest.seconds


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a reader must know before the figures, and the trials that it concerns."""

    text: str
    trials: tuple[str, ...] = ()


_OUTCOME_NOTICES = {
    Outcome.INVALID: "invalid: the network was not proven to be the requested one; not in any figure",
    Outcome.LAB_ERROR: "lab error: the lab itself failed or was stopped; not in any figure",
    Outcome.WRONG_PROTOCOL: "wrong protocol: another one than asked was negotiated; counted as not completed",
    Outcome.WRONG_CONTENT: "wrong content: other bytes than asked for were delivered; counted as not completed",
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
        yield Notice(f"{condition.id} was not over the requested network, nothing of it is decided: {told}", trials)


def _outcome_notices(data: RunData) -> Iterator[Notice]:
    for outcome, meaning in _OUTCOME_NOTICES.items():
        trials = tuple(result.trial.id for result in data.latest if result.outcome is outcome)
        if trials:
            yield Notice(meaning, trials)
    incomplete = tuple(
        result.trial.id for result in data.latest if result.outcome is Outcome.OK and "total_s" not in result.metrics
    )
    if incomplete:
        yield Notice("no time was measured, although the outcome is ok; counted as not completed", incomplete)
    repeated = Counter(result.trial.id for result in data.results)
    again = tuple(trial for trial, attempts in repeated.items() if attempts > 1)
    if again:
        yield Notice("repeated: the lab failed at an earlier attempt, which stays on record", again)


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
    numbers = list(zip(*([int(number) for number in _NUMBER.findall(text)] for text in texts), strict=True))
    ranges = iter(f"{min(column)} to {max(column)}" if len(set(column)) > 1 else str(column[0]) for column in numbers)
    return _NUMBER.sub(lambda _: next(ranges), texts[0])
