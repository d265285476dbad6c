"""Intervals of percentiles: what they hold, how often, and what unfinished trials do to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from headwind.metric import Better
from headwind.observed import Observed
from headwind.verdicts.percentiles import percentile_interval, percentile_ranks
from headwind.verdicts.stats import interval_rank


def values(*numbers: float) -> list[Observed]:
    return [Observed.finished(number) for number in numbers]


@pytest.mark.parametrize("n", [5, 8, 30, 61])
def test_at_one_half_the_ranks_are_those_of_every_verdict(n: int) -> None:
    rank = interval_rank(n, 0.95, True)
    assert percentile_ranks(n, 0.5, 0.95) == (rank, n + 1 - rank)


def test_p90_closes_after_some_80_blocks_and_p99_after_a_thousand() -> None:
    assert percentile_ranks(60, 0.9, 0.975)[1] == 61
    assert percentile_ranks(90, 0.9, 0.975)[1] <= 90
    assert percentile_ranks(1000, 0.99, 0.975)[1] == 1001
    assert percentile_ranks(1200, 0.99, 0.975)[1] <= 1200


@pytest.mark.parametrize("share", [0.9, 0.99])
def test_after_any_fixed_number_of_blocks_a_percentile_is_missed_more_rarely_than_stated(share: float) -> None:
    for n in (20, 100, 400):
        low, high = percentile_ranks(n, share, 0.95)
        missed = binom.cdf(low - 1, n, share) + binom.sf(high - 1, n, share)
        assert missed <= 0.05


def test_it_is_missed_more_rarely_than_stated_also_by_whoever_looks_after_each_block() -> None:
    generator, missed = np.random.default_rng(1), 0
    for _ in range(300):
        below = np.cumsum(generator.random(200) < 0.9)
        missed += any(not (low <= count < high) for n, count in enumerate(below, 1)
                      for low, high in [percentile_ranks(n, 0.9, 0.95)])  # fmt: skip
    assert missed <= 0.05 * 300


def test_the_ratio_of_two_percentiles_lies_in_its_interval_and_turns_round_with_the_sides() -> None:
    generator = np.random.default_rng(2)
    slow, fast = (values(*(scale * generator.lognormal(0, 0.2, 200))) for scale in (3.0, 1.0))
    found, turned = percentile_interval(slow, fast, 0.9, 0.95), percentile_interval(fast, slow, 0.9, 0.95)
    assert 0 < found.low < math.log(3) < found.high
    assert found.estimate is not None
    assert (turned.low, turned.high, turned.estimate) == (-found.high, -found.low, -found.estimate)
    more = percentile_interval(fast, slow, 0.9, 0.95, Better.MORE)
    assert (more.low, more.high) == pytest.approx((found.low, found.high))


def test_unfinished_trials_leave_their_side_open_and_few_blocks_both() -> None:
    base = [*values(*np.linspace(1, 2, 60)), *[Observed.unfinished(60.0)] * 40]
    found = percentile_interval(base, values(*np.linspace(1, 2, 100)), 0.9, 0.95)
    assert (found.high, found.estimate) == (math.inf, None)
    assert found.low > 0, "what was stopped was slower for sure"
    few = percentile_interval(values(1.0), values(2.0), 0.9, 0.95)
    assert (few.low, few.high, few.n) == (-math.inf, math.inf, 1)
    assert percentile_interval([], [], 0.9, 0.95).n == 0


def test_both_arms_have_a_value_in_every_block() -> None:
    with pytest.raises(ValueError, match="every block"):
        percentile_interval(values(1.0), [], 0.9, 0.95)
