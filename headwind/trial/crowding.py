"""Finds trials that came near to what the unimpaired path can carry, and those that other lanes disturbed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headwind.metric import MACHINE, PRESSURE, STOLEN
from headwind.model import DATA_OUTCOMES, Outcome, Result
from headwind.proof.evidence import Evidence
from headwind.proof.processors import MOST_STOLEN
from headwind.testbed.testbed import Testbed
from impair.profile import Direction

MOST_PRESSURE = 0.5  # of a trial's time something of the machine may wait for a processor while other lanes run,
MOST_BUSY = 0.75  # unless a quarter of its processors was free, or busy with niced work, which waits for the others
HEADROOM = 1.5  # a trial may use the path up to its measured ceiling divided by this


def crowding(testbed: Testbed, evidence: Evidence, seconds: float) -> Iterator[str]:
    """Warnings where the trial's frames came too near to the packet rate that the path can carry."""
    for direction, ceiling in testbed.facts.get("ceiling", {}).items():
        frames, limit = evidence.sent(Direction(direction)), ceiling["frames_per_s"] / HEADROOM
        if seconds > 0 and frames / seconds > limit:
            yield f"{direction}: {frames / seconds:.0f} frames/s, above {limit:.0f} which the path carries with reserve"


def lacked_processors(result: Result) -> bool:
    """Whether processors were short during a trial. What hosts do not tell is taken for the worst, but for pressure."""
    busy, pressure = result.metrics.get(MACHINE.key, 1.0), result.metrics.get(PRESSURE.key, 0.0)
    return pressure > MOST_PRESSURE and busy > MOST_BUSY


def with_neighbours(result: Result, beside: tuple[str, ...]) -> Result:
    """The result with the blocks that ran beside it; invalid where one of them may have kept it from the processors.

    The rule looks at no time of a protocol: only at how long something waited for a processor, relative to the trial.
    """
    found = replace(result, place=replace(result.place, beside=beside))
    if not beside or not lacked_processors(result) or result.outcome not in DATA_OUTCOMES:
        return found
    stolen = result.metrics.get(STOLEN.key, 0.0)
    reason = (
        f"disturbed by other lanes: for {result.metrics[PRESSURE.key]:.0%} of its time something waited for a "
        f"processor, above {MOST_PRESSURE:.0%}, while {', '.join(beside)} ran beside it"
        + (f", and its own host kept {stolen:.0%} of the processors from the machine" if stolen > MOST_STOLEN else "")
    )
    return replace(found, outcome=Outcome.INVALID, reason=reason)
