"""The value of one metric in one trial: exact, a bound, or none; and the median of many such values.

A trial that did not finish is never left out of a median: it was worse than every trial that did. So a median may be a
bound ("> 60 s"), or there may be none ("not completed"), and it is never an average over survivors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headwind.metric import Better, Metric, Unfinished
from headwind.model import DATA_OUTCOMES, Outcome, Result


class Kind(StrEnum):
    """How much is known of a value; from the best to the worst."""

    FINISHED = "finished"  # the trial did its work: the value itself
    BOUND = "above"  # it was stopped with work left: the value lies beyond this
    NOTHING = "failed"  # it ended without doing its work: there is no value


@dataclass(frozen=True, slots=True)
class Observed:
    """A trial's value of one metric: it lies between low and high (in the metric's unit).

    An unfinished trial is a bound and never a missing row (interval censoring; Turnbull, JRSS B 38, 1976). Raises
    ValueError for bounds that no value can have.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.low <= self.high and self.low < math.inf):
            raise ValueError(f"no value lies between {self.low} and {self.high}")

    @classmethod
    def finished(cls, value: float) -> Observed:
        """The value of a trial that finished: 0 or more."""
        return cls(value, value)

    @classmethod
    def unfinished(cls, above: float = 0.0) -> Observed:
        """The value of a trial that had work left: above `above`; without it, unknown."""
        return cls(above, math.inf)

    @property
    def is_finished(self) -> bool:
        """True when the value itself is known."""
        return self.low == self.high

    @property
    def kind(self) -> Kind:
        """Whether this is a value, a bound, or nothing."""
        if self.is_finished:
            return Kind.FINISHED
        return Kind.NOTHING if self == NOTHING else Kind.BOUND

    @property
    def known(self) -> float:
        """The value, or the known end of the bound; infinite if there is none."""
        if self.kind is Kind.NOTHING:
            return math.inf
        return self.high if self.low == 0 else self.low

    def __str__(self) -> str:
        return f"{self.low:g}" if self.is_finished else f"{self.low:g} to {self.high:g}"


NOTHING = Observed(0.0, math.inf)
KINDS = tuple(Kind)


def observed(result: Result | None, metric: Metric) -> Observed | None:
    """A trial's value of a metric; None if the trial is no data, or finished without measuring it.

    A trial that was stopped may bound a metric (Metric.unfinished). Otherwise its value is unknown, because the
    course of the missing work is; likewise every metric of a trial that failed. Whether a trial finished follows
    from the outcome, since bounds may meet.
    """
    if result is None:
        return None
    if result.outcome is Outcome.OK:  # first, because nearly all are
        value = result.metrics.get(metric.key)
        return None if value is None else Observed(value, value)
    if result.outcome not in DATA_OUTCOMES:
        return None
    if result.outcome is not Outcome.TIMEOUT:
        return NOTHING
    if metric.unfinished is Unfinished.ABOVE_TIMEOUT and result.lower_bound_s:
        return Observed.unfinished(result.metrics.get(metric.low_key, result.lower_bound_s))
    if metric.unfinished is Unfinished.BOUNDED:
        return Observed(result.metrics.get(metric.low_key, 0.0), result.metrics.get(metric.high_key, math.inf))
    return NOTHING


def figure(result: Result, metric: Metric) -> Observed:
    """As `observed`, for a table of completed work: None without a value."""
    return observed(result, metric) or NOTHING


def from_best(values: Iterable[Observed], better: Better) -> list[Observed]:
    """Sort from the best to the worst: finished values first, then bounds, then unknown ones."""
    return sorted(values, key=order_of(better))


def order_of(better: Better) -> Callable[[Observed], tuple[int, float]]:
    """The key by which values are sorted from the best to the worst."""
    sign = 1 if better is Better.LESS else -1

    def key(value: Observed) -> tuple[int, float]:
        if value.low == value.high:  # as is_finished; a report asks a million times
            return 0, sign * value.low
        return KINDS.index(value.kind), sign * value.known

    return key


def quantile(values: Sequence[Observed], share: float) -> Observed:
    """The value at this share of the way through values in the order of `from_best`, at least one.

    Interpolated between two: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
    Statistician 50, 1996. Between a value and a bound the result is a bound; next to an unknown value it is
    unknown.
    """
    at = share * (len(values) - 1)
    part, near, far = at % 1, values[math.floor(at)], values[math.ceil(at)]
    if part == 0:
        return near
    if far.kind is Kind.NOTHING:
        return NOTHING
    between = near.known * (1 - part) + far.known * part
    if far.kind is Kind.FINISHED:
        return Observed.finished(between)
    return Observed(0.0, between) if far.low == 0 else Observed.unfinished(between)


def median(values: Sequence[Observed]) -> Observed:
    """The median of values in the order of `from_best`: one or more."""
    return quantile(values, 0.5)


def typical(results: Iterable[Result], metric: Metric) -> Observed | None:
    """The median of a metric over trials that gave data; None if there are none, or no finished one measured it."""
    every = list(results)
    finished = [each for each in every if each.outcome is Outcome.OK]
    if not every or (finished and not any(metric.key in each.metrics for each in finished)):
        return None
    return median(from_best((figure(each, metric) for each in every), metric.better))


def mean(values: Sequence[Observed]) -> Observed:
    """The mean of values in the order of `from_best`: a bound if one is a bound, unknown if one is unknown."""
    worst = values[-1].kind
    if worst is Kind.NOTHING:
        return NOTHING
    value = math.fsum(each.known for each in values) / len(values)
    return Observed.finished(value) if worst is Kind.FINISHED else Observed.unfinished(value)
