"""Rate traces: what tbf does with the steps of one is what the trace has."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impair.bounds import FRAME_BYTES, ImpossibleImpairment
from impair.profile import Delay, Direction, Link, Profile, Rate, Steps
from impair.queues import Cake, Fifo, FqCodel, Queue, Red
from impair.trace import BLACKOUT_BPS, STEP_S, Trace, TraceStep

DOWN = Direction.DOWNLINK
counts = st.lists(st.integers(0, 400), min_size=1, max_size=30).filter(any)


def trace(*frames: int, pace: float = 1.0) -> Trace:
    return Trace("x.trace", "0" * 64, len(frames) * STEP_S, frames, pace)


def one_round(of: Trace) -> list[TraceStep]:
    return [*takewhile(lambda step: step.at_s < of.length_s - 1e-9, of.steps())]


def passed(step: TraceStep) -> int:
    """Full frames that tbf lets pass in a step, from a queue that is never empty: net/sched/sch_tbf.c."""
    tokens_bytes = step.tokens_bytes + (step.until_s - step.at_s) * step.rate_bps / 8
    return int(tokens_bytes / FRAME_BYTES)


@given(counts)
def test_a_full_queue_gives_exactly_the_frames_of_the_trace(frames: list[int]) -> None:
    steps = one_round(trace(*frames))
    assert [passed(step) for step in steps] == [step.frames or 1 for step in steps]
    missing = sum(frames) - sum(map(passed, steps))
    assert -1 <= missing <= 0, "at most the frame with which a blackout at the end begins"


@given(counts)
def test_a_step_tolerates_a_third_of_a_frame(frames: list[int]) -> None:
    """Timers are never exact: neither a little more nor a little less of a step's time changes its frames."""
    for step in one_round(trace(*frames)):
        shift_s = FRAME_BYTES / 3 / (step.rate_bps / 8) if step.frames else 0.05
        moved = [TraceStep(step.at_s, step.until_s + each, step.frames) for each in (-shift_s, shift_s)]
        tokens = [step.tokens_bytes + (each.until_s - each.at_s) * step.rate_bps / 8 for each in moved]
        assert {int(each / FRAME_BYTES) for each in tokens} == {step.frames or 1}


@given(counts)
def test_steps_follow_each_other_and_start_over(frames: list[int]) -> None:
    of = trace(*frames)
    steps = [*islice(of.steps(), 3 * len(frames))]
    assert steps[0].at_s == 0
    for one, other in pairwise(steps):
        assert other.at_s == pytest.approx(one.until_s)
    again = one_round(of)
    later = [step for step in steps if step.at_s >= of.length_s - 1e-9][: len(again)]
    assert [step.frames for step in later] == [step.frames for step in again][: len(later)]
    assert [*islice(of.moments(7), len(steps))] == [step.at_s for step in steps]


def test_a_blackout_is_one_step_and_pays_for_its_first_frame() -> None:
    steps = one_round(trace(10, 0, 0, 5, 0, 1, 1))
    assert [(round(step.at_s, 3), round(step.until_s, 3), step.frames) for step in steps] == [
        (0.0, 0.1, 10), (0.1, 0.3, 0), (0.3, 0.4, 4), (0.4, 0.6, 0), (0.6, 0.7, 1)
    ]  # fmt: skip
    assert steps[1].rate_bps == BLACKOUT_BPS
    assert trace(10, 0, 0, 5).blackout_s == pytest.approx(0.2)


def test_rates_are_those_of_full_frames() -> None:
    of = trace(100, 300)
    assert of.mean_bps == pytest.approx(200 * FRAME_BYTES * 8 / STEP_S, rel=1e-6)
    assert of.peak_bps == pytest.approx(300 * FRAME_BYTES * 8 / STEP_S, rel=1e-6)
    slow = trace(100, 300, pace=0.5)
    assert slow.mean_bps == pytest.approx(of.mean_bps / 2, rel=1e-6)
    assert [step.frames for step in one_round(slow)] == [50, 150]
    assert slow != of, "a slower twin is another network"


def profile(queue: Queue) -> Profile:
    of = trace(100, 300)
    link = Link(delay=Delay(0.01), rate=Rate(of.mean_bps), queue=queue)
    return Profile("p", downlink=link, downlink_changes=of)


def test_a_profile_with_a_trace_is_read_back_and_knows_its_fastest_step() -> None:
    found = profile(Fifo(50))
    read = Profile.from_json(found.to_json())
    assert read == found
    assert read.trace(DOWN) == trace(100, 300)
    assert read.trace(DOWN).frames == (100, 300)  # type: ignore[union-attr]
    assert [link.rate for link in found.links(DOWN)] == [Rate(trace(100, 300).mean_bps), Rate(trace(100, 300).peak_bps)]
    assert not found.is_steady


@pytest.mark.parametrize("queue", [Cake(), Red(200, 20, 60)])
def test_a_queue_that_depends_on_the_rate_cannot_have_a_trace(queue: Queue) -> None:
    with pytest.raises(ImpossibleImpairment, match="depends on the rate, which changes here"):
        profile(queue)


def test_a_bottleneck_can_change_its_rate_and_what_is_behind_it_but_not_its_queue() -> None:
    slow = Link(rate=Rate(8_000_000), queue=FqCodel())
    fast, far = Link(rate=Rate(16_000_000), queue=FqCodel()), Link(Delay(0.1), rate=Rate(8_000_000), queue=FqCodel())
    assert Profile("p", downlink=slow, downlink_changes=Steps((1.0, 2.0), (fast, far))).links(DOWN) == (slow, fast, far)
    with pytest.raises(ImpossibleImpairment, match="cannot replace the queue"):
        Profile("p", downlink=slow, downlink_changes=Steps((1.0,), (Link(rate=Rate(8_000_000), queue=Fifo(9)),)))
