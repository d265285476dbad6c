"""The median one-way delay of probes, and how far it may be from the requested delay. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from headwind.proof.expectation import Expectation
from impair.distribution import DISTRIBUTION_HEIGHT
from impair.profile import Delay, Link


@dataclass(frozen=True, slots=True)
class DelaySeen:
    """The middle of one-way delays beside what the request predicts for it."""

    middle: str  # "median" or "mean"
    measured_s: float
    expected_s: float
    spread_s: float  # standard deviation of the middle
    slack_s: float  # how far the prediction may be off on the side where the measured value is, the machine apart


def delay_seen(link: Link, delays: Sequence[float]) -> DelaySeen:
    """What one or more one-way delays say about a link."""
    delay, expected, count = link.delay or Delay(0.0), Expectation.of(link), len(delays)
    held_s, skipping = delay.delay_s + expected.probe_s, expected.overtaking
    expected_s = held_s * (1 - skipping)
    robust = skipping == 0 and delay.distribution in ("uniform", "normal")
    measured_s = statistics.median(delays) if robust else statistics.fmean(delays)
    late = measured_s > expected_s
    # The median of n uniform values over +-j has a standard deviation of j/sqrt(n), that of n normal ones of
    # sqrt(pi/2)*j/sqrt(n); a mean spreads less than the first.
    spread_s = delay.jitter_s * (math.sqrt(math.pi / 2) if delay.distribution == "normal" else 1.0)
    spread_s += held_s * math.sqrt(skipping * (1 - skipping))
    slack_s = expected.waiting_s
    if skipping and not late:  # of few that overtake, two more are likelier than the normal law says
        slack_s += 2 * held_s / count
    if link.rate and late:  # a rate keeps the order: who drew little waits for who drew much
        slack_s += delay.jitter_s * DISTRIBUTION_HEIGHT[delay.distribution]
    return DelaySeen("median" if robust else "mean", measured_s, expected_s, spread_s / math.sqrt(count), slack_s)
