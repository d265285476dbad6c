"""The course of one arm's trials in a condition: when its requests were done, and the counters. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import NOTHING, measured, observed_text
from headwind.metric import (
    CPU_TIMES,
    GAP_ERROR_S,
    MEMORY,
    PACKET_GAP,
    RETRANSMITS,
    RTOS,
    WIRE_BYTES,
    WIRE_PACKETS,
    Metric,
    Workload,
)
from headwind.model import Condition, Outcome, Result
from headwind.observed import Observed, from_best, median, observed, typical
from headwind.run.data import is_data
from headwind.verdicts.findings import Rows

COSTS = (*CPU_TIMES, MEMORY)
COUNTED = (RETRANSMITS, RTOS, PACKET_GAP, WIRE_PACKETS)
PER_PAYLOAD = "bytes sent per byte of payload"


@dataclass(frozen=True, slots=True)
class Track:
    """An arm of a condition, with medians over its trials: times over all of them, counters over finished ones."""

    arm: Arm
    reached: Mapping[float, Observed]  # share -> time at which it was done; empty if not recorded
    handshake_s: float | None  # slowest of a trial; None if the median trial has none
    figures: tuple[str, ...]  # in the order of `columns`


def columns(workload: Workload) -> tuple[str, ...]:
    """The headings of a track's figures."""
    connect = [metric.heading for metric in workload.handshake]
    return (*connect, *(metric.heading for metric in COUNTED), PER_PAYLOAD, *(each.heading for each in COSTS))


def handshake_name(workload: Workload) -> str:
    """Name of the handshake's figure: the slowest of a trial's handshakes, or its only one."""
    return "slowest handshake" if len(workload.handshake) > 1 else "handshake"


def unrecorded(workload: Workload, tracks: Sequence[Track]) -> list[str]:
    """Figures that no track of a workload has: not counted at the time, or not reported by the kernel."""
    missing = ["when requests were done"] if workload.progress and not any(each.reached for each in tracks) else []
    for place, name in enumerate(columns(workload)):
        missing += [name] if all(track.figures[place] == NOTHING for track in tracks) else []
    return missing


def track_of(condition: Condition, rows: Rows, arm: Arm) -> Track:
    """The track of an arm in the blocks of a condition."""
    workload = condition.workload
    results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
    finished = [result.metrics for result in results if result.outcome is Outcome.OK]

    def counted(metric: Metric) -> str:
        values = [metrics[metric.key] for metrics in finished if metric.key in metrics]
        return _figure(metric, statistics.median(values) if values else None)

    handshakes = [(metric, typical(results, metric)) for metric in workload.handshake]
    slowest = handshakes[-1][1] if handshakes else None
    return Track(
        arm,
        _reached(workload, results),
        slowest.known if slowest and slowest.is_finished else None,
        (
            *(observed_text(metric.key, value) for metric, value in handshakes),
            *map(counted, COUNTED),
            _per_payload(workload, finished),
            *map(counted, COSTS),
        ),
    )


def _figure(metric: Metric, value: float | None) -> str:
    """A figure as text; counts without decimals."""
    if metric is PACKET_GAP and value == 0.0:
        return f"< {measured(metric.key, GAP_ERROR_S)}"
    return f"{math.floor(value + 0.5):,}" if value is not None and not metric.unit else measured(metric.key, value)


def _per_payload(workload: Workload, finished: Sequence[Mapping[str, float]]) -> str:
    key = workload.payload.key if workload.payload else ""
    ratios = [each[WIRE_BYTES.key] / each[key] for each in finished if WIRE_BYTES.key in each and each.get(key)]
    return f"{statistics.median(ratios):.2f}" if ratios else NOTHING


def _reached(workload: Workload, results: Sequence[Result]) -> dict[float, Observed]:
    """Median time until each share was done, over every trial that gave data; a timed-out one may not have reached it.

    Empty if no trial recorded it.
    """
    found: dict[float, Observed] = {}
    for share, metric in workload.progress.items():
        values = [each.metrics[metric.key] for each in results if metric.key in each.metrics]
        if len(values) == len(results) and all(each.outcome is Outcome.OK for each in results):
            found |= {share: Observed.finished(statistics.median(values))} if values else {}
        elif values or any(metric.low_key in each.metrics for each in results):
            seen = (observed(result, metric) for result in results)
            found[share] = median(from_best((value for value in seen if value), metric.better))
    return found
