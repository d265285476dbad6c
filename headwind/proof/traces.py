"""Checks of a rate trace that was replayed: the rate of each step as read back, and the bytes that left. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from headwind.format import counted, measured
from headwind.model import Check
from impair.bounds import FRAME_BYTES
from impair.messages import Traced
from impair.trace import SPARE_FRAMES, Trace, TraceStep

DELIVERY_ALLOWANCE = 0.02  # of the trace's bytes
LEAST_FRAMES = 200  # in full steps: of fewer, the first and the last one would decide
FULL_SHARE = 0.5  # of a step's bytes, that wait at its beginning and at its end: so its queue was not empty in between


def check_trace(trace: Trace, traced: Traced) -> Iterator[Check]:
    """Check that each step had its rate, and that a queue that was never empty delivered the bytes of the trace."""
    wrong = [step for step, read in zip(trace.steps(), traced.rates_bps, strict=False) if read != step.rate_bps]
    note = f"read back after {counted(len(traced.rates_bps), 'step')}"
    yield Check(traced.direction, "other_rates", 0.0, None, float(len(wrong)), 0.0, not wrong, note)
    yield _check_delivery(trace, traced)


def _check_delivery(trace: Trace, traced: Traced) -> Check:
    """Compare the bytes that left the bottleneck in full steps with those of the trace in these.

    A step ends with an unused part of tbf's bucket, on average half a frame, for which the step has SPARE_FRAMES more.
    Smaller frames leave less of it unused, and so much more of them passes.
    """
    full = [*_full(trace, traced)]
    seconds = sum(step.until_s - step.at_s for step, _, _ in full)
    frames, delivered = sum(each for _, each, _ in full), sum(each for _, _, each in full)
    wanted = sum(step.bytes for step, _, _ in full)
    of = f"{len(full)} of {counted(len(traced.at_s), 'step')} with a full queue"
    if wanted < LEAST_FRAMES * FRAME_BYTES:
        return Check(traced.direction, "delivered_ratio", 1.0, None, None, DELIVERY_ALLOWANCE, True, of)
    unused = len(full) * SPARE_FRAMES * (FRAME_BYTES - delivered / max(1, frames))
    ratio = delivered / (wanted + unused)
    note = (
        f"{measured('rate_bps', delivered * 8 / seconds)} delivered, "
        f"{measured('rate_bps', wanted * 8 / seconds)} by the trace, in {of}"
    )
    passed = abs(ratio - 1) <= DELIVERY_ALLOWANCE
    return Check(traced.direction, "delivered_ratio", 1.0, None, ratio, DELIVERY_ALLOWANCE, passed, note)


def _full(trace: Trace, traced: Traced) -> Iterator[tuple[TraceStep, int, int]]:
    """The steps that ended, and in which the queue was never empty, each with the frames and bytes that left in it."""
    steps = islice(trace.steps(), max(0, len(traced.rates_bps) - 1))
    counters = [*zip(traced.frames, traced.bytes, traced.waiting, strict=False)]
    for step, ((frames, size, waiting), (later, more, then)) in zip(steps, pairwise(counters), strict=False):
        if min(waiting, then) >= FULL_SHARE * step.bytes:
            yield step, later - frames, more - size
