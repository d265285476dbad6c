"""Drift of the machine: each trial's time relative to the usual one of its condition and arm, along the run. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from headwind.arm import Arm
from headwind.format import duration, measured, setting
from headwind.model import Result
from headwind.observed import observed
from headwind.proof.spans import has_spells
from headwind.run.data import RunData

SLICES = 10  # number of slices of a run
DRIFT_RATIO = 0.1  # a smaller drift is not reported
FEWEST_TYPICAL = 3  # trials needed for a typical (median) time

Key = tuple[str, str]  # condition id, arm


def drift_text(data: RunData, usual: Mapping[Key, float]) -> str:
    """Sentence on the drift of times over the run, by slices of equal length.

    It gives their times as the axis of the timeline does, from the start of the first attempt.
    """
    # A bad spell can slow all trials of a block down: they say nothing about the machine.
    steady = [result for result in data.latest if not has_spells(result.trial.block.condition.profile)]
    times = [(result.started_at, result.trial.arm, relative) for result in steady
            if result.started_at and (relative := relative_time(result, usual))]  # fmt: skip
    without = " without spells" if len(steady) < len(data.latest) else ""
    if len(times) < SLICES * FEWEST_TYPICAL:
        return f"Too few trials{without} to see a drift."
    start = min(at for at, _, _ in times)
    width = (max(at for at, _, _ in times) - start) / SLICES or 1.0
    slices: dict[int, list[tuple[Arm, float]]] = {}
    for at, arm, relative in times:
        slices.setdefault(min(SLICES - 1, int((at - start) / width)), []).append((arm, relative))
    middles = {at: statistics.median(relative for _, relative in part) for at, part in slices.items()
               if len(part) >= FEWEST_TYPICAL}  # fmt: skip
    worst = max(middles, key=lambda at: abs(math.log(middles[at])))
    if abs(math.log(middles[worst])) < math.log1p(DRIFT_RATIO):
        limit = setting("drift_ratio", DRIFT_RATIO)
        return (
            f"Over all networks{without} together (for each, see the warnings), times did not drift: their median "
            f"in {'each tenth' if len(middles) == SLICES else f'the {len(middles)} tenths with enough trials'} of the "
            f"run was within {limit} of the whole run's."
        )
    origin = min(result.started_at for result in data.results if result.started_at)
    begin_s = start - origin + worst * width
    when = f"from {duration(begin_s)} to {duration(begin_s + width)} after the start"
    return f"In the tenth of the run that deviates most, {when}, {_deviation(slices[worst], middles[worst], without)}."


def _deviation(part: Sequence[tuple[Arm, float]], middle: float, without: str) -> str:
    """Text on a slice: `trials, over all protocols together, took 24.0 % longer than usual`."""
    of_arms: dict[Arm, list[float]] = {}
    for arm, relative in part:
        of_arms.setdefault(arm, []).append(relative)
    together = len({statistics.median(values) > 1 for values in of_arms.values()}) == 1
    verb = "longer" if middle > 1 else "less"
    but = "" if together else " (but not those of every protocol)"
    by = measured("drift_ratio", abs(middle - 1))
    return f"trials{without}, over all protocols together, took {by} {verb} than usual{but}"


def usual_times(data: RunData) -> dict[Key, float]:
    """Median time of the finished trials, for each condition and arm with enough of them."""
    times: dict[Key, list[float]] = {}
    for result in data.latest:
        value = _value(result)
        if value is not None:
            times.setdefault(_key(result), []).append(value)
    return {key: statistics.median(values) for key, values in times.items() if len(values) >= FEWEST_TYPICAL}


def relative_time(result: Result, usual: Mapping[Key, float]) -> float | None:
    """A trial's time over the usual one; None without a time, or without a usual one."""
    value, of_its_like = _value(result), usual.get(_key(result))
    return value / of_its_like if value is not None and of_its_like else None


def _key(result: Result) -> Key:
    return result.trial.block.condition.id, result.trial.arm.name


def _value(result: Result) -> float | None:
    """The primary metric of a finished trial, else None."""
    value = observed(result, result.trial.block.condition.workload.primary())
    return value.known if value and value.is_finished else None
