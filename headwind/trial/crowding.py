"""Finds trials that came near to what the unimpaired path can carry."""

from __future__ import annotations

from collections.abc import Iterator

from headwind.proof.evidence import Evidence
from headwind.testbed.testbed import Testbed
from impair.profile import Direction

HEADROOM = 1.5  # a trial may use the path up to its measured ceiling divided by this


def crowding(testbed: Testbed, evidence: Evidence, seconds: float) -> Iterator[str]:
    """Warnings where the trial's frames came too near to the packet rate that the path can carry."""
    for direction, ceiling in testbed.facts.get("ceiling", {}).items():
        frames, limit = evidence.sent(Direction(direction)), ceiling["frames_per_s"] / HEADROOM
        if seconds > 0 and frames / seconds > limit:
            yield f"{direction}: {frames / seconds:.0f} frames/s, above {limit:.0f} which the path carries with reserve"
