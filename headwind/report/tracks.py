"""What one arm did inside the trials of a condition: when its requests were done, and what was counted. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import NOTHING, measured
from headwind.metric import PROCESSOR_TIMES, RESENT, SILENCE, TIMEOUTS, WIRE_BYTES, WIRE_PACKETS, Metric, Workload
from headwind.model import Condition, Outcome, Result
from headwind.observed import Observed, from_best, median, observed
from headwind.run.data import is_data
from headwind.verdicts.findings import Rows

COUNTED = (RESENT, TIMEOUTS, SILENCE, WIRE_PACKETS)
PER_PAYLOAD = "bytes sent per byte of payload"


@dataclass(frozen=True, slots=True)
class Track:
    """One arm of a condition, medians over its trials: of those that finished, but for `reached`."""

    arm: Arm
    reached: Mapping[float, Observed]  # when so large a share was done; empty where it was not recorded
    handshake_s: float | None  # the slowest of a trial
    figures: tuple[str, ...]  # as `columns`


def columns(workload: Workload) -> tuple[str, ...]:
    """What the figures of a track are."""
    connect = [metric.heading for metric in workload.handshake] or ["handshake", "slowest handshake"]
    return (*connect, *(metric.heading for metric in COUNTED), PER_PAYLOAD, *(each.heading for each in PROCESSOR_TIMES))


def unrecorded(workload: Workload, tracks: Sequence[Track]) -> list[str]:
    """What none of the tracks of a workload has: it was not counted then, or the kernel does not tell."""
    missing = ["when requests were done"] if workload.progress and not any(each.reached for each in tracks) else []
    for place, name in enumerate(columns(workload)):
        missing += [name] if all(track.figures[place] == NOTHING for track in tracks) else []
    return missing


def track_of(condition: Condition, rows: Rows, arm: Arm) -> Track:
    """What an arm did in the blocks of a condition."""
    workload = condition.workload
    results = [row[arm] for row in rows.values() if arm in row and is_data(row[arm])]
    finished = [result.metrics for result in results if result.outcome is Outcome.OK]

    def typical(metric: Metric | None) -> float | None:
        values = [metrics[metric.key] for metrics in finished if metric.key in metrics] if metric else []
        return statistics.median(values) if values else None

    handshakes = [(metric, typical(metric)) for metric in workload.handshake] or [(SILENCE, None)] * 2
    again = RESENT if typical(RESENT) is not None else workload.given_up
    counted = [(metric, typical(again if metric is RESENT else metric)) for metric in COUNTED]
    return Track(
        arm,
        _reached(workload, results),
        handshakes[-1][1],
        (
            *(_figure(metric, value) for metric, value in (*handshakes, *counted)),
            _per_payload(workload, finished),
            *(_figure(metric, typical(metric)) for metric in PROCESSOR_TIMES),
        ),
    )


def _figure(metric: Metric, value: float | None) -> str:
    """Counts are whole."""
    return f"{value:,.0f}" if value is not None and not metric.unit else measured(metric.key, value)


def _per_payload(workload: Workload, finished: Sequence[Mapping[str, float]]) -> str:
    key = workload.payload.key if workload.payload else ""
    ratios = [each[WIRE_BYTES.key] / each[key] for each in finished if WIRE_BYTES.key in each and each.get(key)]
    return f"{statistics.median(ratios):.2f}" if ratios else NOTHING


def _reached(workload: Workload, results: Sequence[Result]) -> dict[float, Observed]:
    """The median time until each share was done, of every trial that gave data; a stopped one may not have come there.

    Empty where no trial has it on record.
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
