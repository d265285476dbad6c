"""A replayed trace is judged by what left the bottleneck: as many bytes as it has, in steps with a full queue."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from headwind.model import Check
from headwind.proof.evidence import Evidence
from headwind.proof.traces import check_trace
from headwind.proof.trial_checks import prove
from impair.bounds import FRAME_BYTES
from impair.messages import Course, Traced
from impair.profile import Direction, Link, Profile, Rate
from impair.queues import Fifo
from impair.trace import Trace
from tests.evidence import evidence_of

DOWN = Direction.DOWNLINK
TRACE = Trace("x.trace", "0" * 64, 1.0, (80, 120, 0, 0, 10, 60, 160, 90, 70, 30))


def traced(factor: float = 1.0, steps: int = 24, waiting: float = 0.6, frame_bytes: int = FRAME_BYTES) -> Traced:
    """A replay in which the bytes of each step left, times a factor, with this share of them waiting."""
    parts = [*islice(TRACE.steps(), steps)]
    grown = [round(factor * step.bytes / frame_bytes) for step in parts]
    frames = [sum(grown[:number]) for number in range(steps + 1)]
    return Traced(
        DOWN, [step.at_s for step in parts], [step.at_s + 1e-4 for step in parts], [step.at_s + 4e-4 for step in parts],
        [step.rate_bps for step in parts], frames, [each * frame_bytes for each in frames],
        [round(max(step.bytes for step in parts) * waiting)] * (steps + 1), parts[-1].until_s,
    )  # fmt: skip


def checks(seen: Traced) -> dict[str, Check]:
    return {check.quantity: check for check in check_trace(TRACE, seen)}


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.015, True), (1.03, False), (0.97, False), (0.5, False)])
def test_bytes_that_left_match_the_trace_within_two_percent(factor: float, passes: bool) -> None:
    check = checks(traced(factor))["delivered_ratio"]
    assert check.passed is passes
    assert check.measured == pytest.approx(factor, abs=0.004)
    assert (check.requested, check.tolerance) == (1.0, 0.02)
    assert "Mbit/s by the trace, in 23 of 24 steps with a full queue" in check.note


def test_a_queue_that_may_have_been_empty_shows_nothing() -> None:
    check = checks(traced(0.2, waiting=0.0))["delivered_ratio"]
    assert (check.passed, check.measured) == (True, None)
    assert check.note == "0 of 24 steps with a full queue"


def test_a_few_frames_show_nothing() -> None:
    assert checks(traced(0.2, steps=2))["delivered_ratio"].measured is None


def test_small_frames_leave_less_of_a_bucket_unused() -> None:
    """Half a full frame is over in each step, for the part of a frame that does not fit; small ones use most of it."""
    steps = [*islice(TRACE.steps(), 24)]
    small = traced(frame_bytes=66)
    spare = round(0.5 * (FRAME_BYTES - 66) / 66)
    frames = [each + number * spare for number, each in enumerate(small.frames)]
    seen = replace(small, frames=frames, bytes=[66 * each for each in frames])
    assert len(steps) * spare * 66 > 0.006 * seen.bytes[-1]
    assert checks(seen)["delivered_ratio"].measured == pytest.approx(1, abs=0.003)


def test_a_step_with_another_rate_fails() -> None:
    seen = traced()
    seen.rates_bps[5] += 8
    check = checks(seen)["other_rates"]
    assert (check.passed, check.measured) == (False, 1.0)


LINK = Link(rate=Rate(TRACE.mean_bps), queue=Fifo(100))
PROFILE = Profile("p", downlink=LINK, downlink_changes=TRACE)


def proof_of(seen: Traced | None, due: list[float]) -> dict[str, Check]:
    evidence = evidence_of(Profile("p", downlink=Link()), offered={DOWN: 3000, Direction.UPLINK: 100})
    course = Course(2.4, traced=[seen] if seen else [])
    evidence = Evidence.from_json(replace(evidence, course=course, due={DOWN: due}).to_json())
    return {check.quantity: check for check in prove(PROFILE, evidence).checks if check.direction is DOWN}


def test_a_trial_with_a_trace_is_proven_step_by_step() -> None:
    due = [step.at_s for step in islice(TRACE.steps(), 24)]
    found = proof_of(traced(), due)
    for quantity in ("missing_changes", "change_late_s", "other_rates", "delivered_ratio"):
        assert found[quantity].passed, quantity
    assert found["change_late_s"].measured == pytest.approx(4e-4)
    assert "loss_ratio" not in found or found["loss_ratio"].passed


def test_steps_that_were_late_or_not_made_fail() -> None:
    due = [step.at_s for step in islice(TRACE.steps(), 26)]
    assert not proof_of(traced(), due)["missing_changes"].passed
    for late_s, passes in ((0.0049, True), (0.0051, False)):  # a twentieth of a step
        late = replace(traced(), done_s=[at_s + late_s for at_s in traced().at_s])
        assert proof_of(late, due[:24])["change_late_s"].passed is passes
    broken = proof_of(replace(traced(), error="its pfifo is gone"), due)["missing_changes"]
    assert broken.note == "its pfifo is gone"


def test_a_clock_that_did_not_start_is_not_taken_for_a_trace() -> None:
    found = proof_of(None, [])
    assert "delivered_ratio" not in found
    assert found["missing_changes"].passed
