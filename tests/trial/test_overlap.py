"""Lanes beside each other: the blocks that a trial met, and how far apart trials begin."""

from __future__ import annotations

from headwind.clock import Clock
from headwind.trial.overlap import OverlapTracker, StartSpacer


def test_trials_of_different_lanes_begin_apart_and_those_of_one_lane_at_once() -> None:
    now, begun = [100.0], list[tuple[int, float]]()
    slept = list[float]()
    start_spacer = StartSpacer(0.5, Clock(lambda: now[0], slept.append))
    for lane, later_s in ((1, 0.0), (2, 0.0), (3, 0.1), (1, 0.9), (1, 1.0)):
        now[0] += later_s
        start_spacer.wait_for_turn(lane)
        begun.append((lane, round(now[0] + slept[-1], 6)))
    assert begun == [(1, 100.0), (2, 100.5), (3, 101.0), (1, 101.5), (1, 102.0)]


def test_a_trial_met_the_blocks_that_ran_when_it_began_and_those_that_began_since() -> None:
    overlap = OverlapTracker()
    overlap.starts(1, "loss#0")
    overlap.starts(2, "delay#0")
    overlap.trial_begins(1)
    overlap.ends(2)
    overlap.starts(2, "clean#0")
    assert overlap.met(1) == ("clean#0", "delay#0")
    overlap.trial_begins(1)
    assert overlap.met(1) == ("clean#0",)
