"""The mathematics of stats.py: against definitions by hand, against scipy, and against a published package."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import binom, binomtest, false_discovery_control, quantile_test

from headwind.observed import Observed
from headwind.verdicts.stats import (
    Floats,
    e_bh,
    fewest_blocks,
    fewest_samples,
    interval_rank,
    interval_steps,
    log_e_against,
    log_e_of_count,
    paired_bounds,
    ratio_interval,
    running_interval,
)

INF = math.inf
LN_20 = math.log(20)

# beta_binomial_log_mixture of confseq 0.0.11 (Howard and Waudby-Smith), its C++ header compiled as it is:
# s = k - n/2, v = n/4, g = h = 1/2, two-sided, v_opt chosen for the uniform mixture. (n, k): ln e-value.
CONFSEQ = {
    (8, 0): 3.347952867143,
    (8, 1): 1.268511325464,
    (12, 1): 3.267910159470,
    (12, 2): 1.563162067231,
    (24, 0): 13.416656508570,
    (24, 4): 4.145597401560,
    (24, 12): -1.393643898218,
    (36, 9): 2.982052152458,
    (48, 14): 2.477369445469,
    (60, 18): 3.017110153530,
    (120, 43): 2.667505627620,
}

finished = st.floats(0.01, 100).map(Observed.finished)
observed = st.one_of(finished, st.floats(0, 100).map(Observed.unfinished))
differences = st.lists(st.floats(-3, 3), min_size=1, max_size=60)


def normal(n: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=n)


def scipy_interval(x: Floats, quantile: float, confidence: float) -> tuple[float, float]:
    """scipy's own order-statistic interval of a quantile."""
    low, high = np.asarray(quantile_test(x, p=quantile).confidence_interval(confidence))
    return float(low), float(high)


# ---- what a trial tells


@pytest.mark.parametrize(
    ("base", "new", "low", "high"),
    [
        (Observed.finished(10), Observed.finished(8), math.log(10 / 8), math.log(10 / 8)),
        (Observed.finished(10), Observed.unfinished(30), -INF, math.log(10 / 30)),
        (Observed.unfinished(30), Observed.finished(8), math.log(30 / 8), INF),
        (Observed.unfinished(30), Observed.unfinished(30), -INF, INF),
        (Observed.finished(10), Observed.unfinished(), -INF, INF),
        (Observed.unfinished(), Observed.finished(8), -INF, INF),
        (Observed.unfinished(), Observed.unfinished(30), -INF, INF),
    ],
)
def test_an_unfinished_trial_bounds_the_ratio(base: Observed, new: Observed, low: float, high: float) -> None:
    lows, highs = paired_bounds([base], [new])
    assert (lows[0], highs[0]) == pytest.approx((low, high))


def test_bounds_keep_the_order_of_the_blocks_and_refuse_unpaired_ones() -> None:
    three = [Observed.finished(time) for time in (1.0, 2.0, 4.0)]
    lows, highs = paired_bounds(three, [Observed.finished(1.0)] * 3)
    assert lows == pytest.approx([0, math.log(2), math.log(4)])
    assert highs == pytest.approx(lows)
    with pytest.raises(ValueError, match="shorter"):
        paired_bounds(three, three[:2])


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (-1.0, 1.0), (INF, INF), (math.nan, 1.0), (1.0, math.nan)])
def test_impossible_values_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no value lies between"):
        Observed(*bounds)


@given(st.lists(st.tuples(observed, finished), min_size=1, max_size=30), st.data())
def test_a_stall_never_moves_the_interval_towards_the_one_who_stalls(
    blocks: list[tuple[Observed, Observed]], data: st.DataObject
) -> None:
    base, new = (list(side) for side in zip(*blocks, strict=True))
    at = data.draw(st.integers(0, len(new) - 1))
    stalled = [*new]
    is_timeout = data.draw(st.booleans())
    stalled[at] = Observed.unfinished(2 * new[at].high if is_timeout else 0.0)
    before = ratio_interval(*paired_bounds(base, new), 0.95, anytime=True)
    after = ratio_interval(*paired_bounds(base, stalled), 0.95, anytime=True)
    assert after.low <= before.low
    if is_timeout:  # later than it would have finished: evidence against; a failure only tells nothing
        assert after.high <= before.high


# ---- evidence


@pytest.mark.parametrize(("n", "k"), [(0, 0), (1, 0), (8, 0), (12, 2), (25, 9), (60, 30), (200, 70)])
def test_the_e_value_is_the_mean_likelihood_ratio_over_all_coins(n: int, k: int) -> None:
    mean, _ = quad(lambda p: math.exp(k * math.log(2 * p) + (n - k) * math.log(2 - 2 * p)), 0, 1, points=[0.25, 0.5])
    assert log_e_of_count(n, k) == pytest.approx(math.log(mean), abs=1e-6)
    assert log_e_of_count(n, k) == pytest.approx(n * math.log(2) - math.log((n + 1) * math.comb(n, k)), abs=1e-9)


@pytest.mark.parametrize(("n", "k"), CONFSEQ)
def test_the_e_value_equals_that_of_a_published_package(n: int, k: int) -> None:
    assert log_e_of_count(n, k) == pytest.approx(CONFSEQ[n, k], abs=1e-9)
    assert log_e_of_count(n, n - k) == pytest.approx(CONFSEQ[n, k], abs=1e-9)


def test_the_e_value_is_a_fair_game_against_the_null_hypothesis() -> None:
    def e(n: int, k: int) -> Fraction:
        return Fraction(2**n, (n + 1) * math.comb(n, k))

    for n in range(40):
        for k in range(n + 1):
            assert (e(n + 1, k) + e(n + 1, k + 1)) / 2 == e(n, k)
            assert log_e_of_count(n, k) == pytest.approx(math.log(e(n, k)), abs=1e-9)


def test_there_is_no_evidence_for_a_claim_that_half_of_the_blocks_speak_against() -> None:
    assert log_e_against(12, [0, 3, 6, 9, 12]) == pytest.approx(
        [log_e_of_count(12, k) for k in (0, 3, 6, 6, 6)]  # also where all speak for the opposite
    )
    assert log_e_against(0, 0) == 0


rates = st.sampled_from([0.01, 0.05, 0.10, 0.5])


@given(st.lists(st.floats(-2, 12), max_size=40), rates)
def test_whatever_survives_benjamini_hochberg_on_inverse_e_values_survives(log_es: list[float], rate: float) -> None:
    adjusted = false_discovery_control(np.minimum(1, np.exp(-np.array(log_es)))) if log_es else np.array([])
    ours = e_bh(log_es, rate)
    for p, survives in zip(adjusted, ours, strict=True):
        assert survives or p > rate * (1 - 1e-9)


@given(st.lists(st.floats(-1, 6), max_size=7), rates, st.integers(0, 3))
def test_whichever_cells_are_null_their_mean_evidence_bounds_the_false_share(
    log_es: list[float], rate: float, silent: int
) -> None:
    """The closure principle, looked up over every set of cells; those that did not survive count as 0."""
    survives, m = e_bh(log_es, rate, silent=silent), len(log_es) + silent
    evidence = [math.exp(value) if kept else 0.0 for value, kept in zip(log_es, survives, strict=True)] + [0.0] * silent
    chosen = [*survives, *[False] * silent]
    for null in product([False, True], repeat=m):
        if any(null) and any(chosen):
            false_share = sum(n and c for n, c in zip(null, chosen, strict=True)) / sum(chosen)
            mean = sum(e for e, n in zip(evidence, null, strict=True) if n) / sum(null)
            assert mean >= false_share / rate * (1 - 1e-9)


@given(st.lists(st.lists(st.floats(-1, 6), min_size=4, max_size=4), min_size=1, max_size=6), rates)
def test_what_is_held_stays_whatever_the_others_do(looks: list[list[float]], rate: float) -> None:
    held: dict[int, float] = {}
    for log_es in looks:
        others = [cell for cell in range(4) if cell not in held]
        again = e_bh(list(held.values()), rate, silent=len(others))
        assert all(again), "without any help of the others"
        found = e_bh([log_es[cell] for cell in others], rate, list(held.values()))
        held.update({cell: log_es[cell] for cell, survives in zip(others, found, strict=True) if survives})


@given(
    st.lists(st.sampled_from((0.5, 3.0, 8.0, 15.0, 40.0, 90.0, 200.0)), min_size=1, max_size=14),
    st.lists(st.sampled_from((3.0, 15.0, 40.0)), max_size=3),
    st.integers(0, 6),
)
def test_equal_evidence_survives_together_and_as_one_set_that_is_enough(
    cells: list[float], held: list[float], silent: int
) -> None:
    rate, m = 0.10, len(cells) + len(held) + silent
    survives = e_bh([math.log(e) for e in cells], rate, [math.log(e) for e in held], silent)
    fates = {e: {fate for other, fate in zip(cells, survives, strict=True) if other == e} for e in cells}
    assert all(len(each) == 1 for each in fates.values())
    together = sorted([*held, *(e for e, fate in zip(cells, survives, strict=True) if fate)])
    r = len(together)
    if any(survives):
        assert all(sum(together[:a]) >= a * (m - r + a) / (rate * r) - 1e-6 for a in range(1, r))
        assert sum(together) >= m / rate - 1e-6


def test_e_bh_by_hand() -> None:
    # four cells at 10 %: one needs e >= 40; two have a mean of 20 and a smaller one of at least 15
    assert e_bh([math.log(e) for e in (25, 1, 21, 5)]) == (True, False, True, False)
    assert e_bh([math.log(e) for e in (25, 1, 21, 9)]) == (True, False, True, True)  # 6.7, 10 and 13.3 for three
    assert e_bh([math.log(e) for e in (26, 1, 14.9, 1)]) == (False,) * 4
    assert e_bh([math.log(e) for e in (25.1, 1, 15.1, 1)]) == (True, False, True, False)
    assert e_bh([math.log(e) for e in (39, 1, 1, 1)]) == (False,) * 4
    assert e_bh([math.log(e) for e in (41, 1, 1, 1)]) == (True, False, False, False)
    assert e_bh([math.log(10.1)] * 4) == (True,) * 4
    assert e_bh([math.log(10.1)] * 2, held=[math.log(10.1)] * 2) == (True, True)
    assert e_bh([math.log(10.1)] * 4, silent=1) == (False,) * 4
    assert e_bh([1e6, -math.inf]) == (True, False)
    assert e_bh([]) == ()


# ---- intervals


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_the_fixed_interval_equals_that_of_scipy(confidence: float) -> None:
    for n in range(fewest_blocks(confidence, anytime=False), 120):
        x = normal(n, seed=n)
        theirs = scipy_interval(x, 0.5, confidence)
        ours = ratio_interval(x, x, confidence, anytime=False)
        assert (ours.low, ours.high) == theirs


@pytest.mark.parametrize("n", [6, 7, 12, 24, 33, 60])
def test_the_fixed_interval_is_what_the_sign_test_does_not_refute(n: int) -> None:
    x = np.sort(normal(n, seed=n))
    between = np.r_[x[0] - 1, (x[1:] + x[:-1]) / 2, x[-1] + 1]  # every median that the data can tell apart
    kept = [m for m in between if binomtest(int((x < m).sum()), n).pvalue > 0.05]
    interval = ratio_interval(x, x, 0.95, anytime=False)
    assert [m for m in between if interval.low < m < interval.high] == kept


@pytest.mark.parametrize("n", [8, 9, 12, 24, 33, 60, 150])
def test_the_anytime_interval_is_what_the_e_value_does_not_refute(n: int) -> None:
    x = np.sort(normal(n, seed=n))
    between = np.r_[x[0] - 1, (x[1:] + x[:-1]) / 2, x[-1] + 1]
    kept = [m for m in between if log_e_of_count(n, int((x < m).sum())) < LN_20]
    interval = ratio_interval(x, x, 0.95, anytime=True)
    assert [m for m in between if interval.low < m < interval.high] == kept


def test_ranks_grow_with_blocks_and_anytime_costs_a_little() -> None:
    assert [interval_rank(n, 0.95, anytime=False) for n in (5, 6, 12, 24, 60)] == [0, 1, 3, 7, 22]
    assert [interval_rank(n, 0.95, anytime=True) for n in (7, 8, 12, 24, 60)] == [0, 1, 2, 5, 19]
    for anytime in (False, True):
        ranks = [interval_rank(n, 0.95, anytime) for n in range(200)]
        assert all(before <= after <= before + 1 for before, after in pairwise(ranks))


def test_no_other_symmetric_mixture_gets_more_than_one_rank_further() -> None:
    for n in range(1, 61):
        k = np.arange(n // 2 + 1)
        best = max(
            np.count_nonzero(betaln(a + k, a + n - k) - betaln(a, a) + n * math.log(2) >= LN_20)
            for a in (0.25, 0.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
        )
        assert interval_rank(n, 0.95, anytime=True) >= best - 1


@pytest.mark.parametrize(("anytime", "fewest"), [(False, 6), (True, 8)])
def test_below_the_fewest_blocks_the_interval_is_open_and_the_estimate_is_not(anytime: bool, fewest: int) -> None:
    assert fewest_blocks(0.95, anytime) == fewest
    short, enough = normal(fewest - 1), normal(fewest)
    interval = ratio_interval(short, short, 0.95, anytime)
    assert (interval.low, interval.high, interval.n) == (-INF, INF, fewest - 1)
    assert interval.estimate == np.median(short)
    closed = ratio_interval(enough, enough, 0.95, anytime)
    assert (closed.low, closed.high) == (enough.min(), enough.max())


@given(differences)
def test_the_running_interval_is_what_every_interval_so_far_allows(x: list[float]) -> None:
    plain = [ratio_interval(x[:n], x[:n], 0.95, anytime=True) for n in range(1, len(x) + 1)]
    steps = interval_steps(x, x, 0.95)
    assert steps[-1] == running_interval(x, x, 0.95)
    low, high = -INF, INF
    for one, step in zip(plain, steps, strict=True):
        if max(low, one.low) <= min(high, one.high):  # else the median moved: nothing is learnt from that
            low, high = max(low, one.low), min(high, one.high)
        assert (step.low, step.high, step.n) == (low, high, one.n)
        assert step.estimate is not None
        assert low <= step.estimate <= high
        if low <= (one.estimate or 0.0) <= high:
            assert step.estimate == one.estimate


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, 95])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        interval_rank(12, confidence, anytime=True)


@given(differences, st.booleans())
def test_exchanging_the_protocols_turns_the_interval_round(x: list[float], anytime: bool) -> None:
    one, other = ratio_interval(x, x, 0.95, anytime), ratio_interval(-np.array(x), -np.array(x), 0.95, anytime)
    assert (other.low, other.high) == (-one.high, -one.low)
    assert one.estimate is not None
    assert one.low <= one.estimate <= one.high


@given(st.lists(st.tuples(observed, observed), min_size=1, max_size=40), st.booleans())
def test_the_estimate_lies_inside_and_is_missing_only_where_it_is_open(
    blocks: list[tuple[Observed, Observed]], anytime: bool
) -> None:
    base, new = zip(*blocks, strict=True)
    lows, highs = paired_bounds(base, new)
    interval = ratio_interval(lows, highs, 0.95, anytime)
    assert interval.low <= interval.high
    assert (interval.estimate is None) == (float(np.median(lows)) != float(np.median(highs)))
    if interval.estimate is not None:
        assert interval.low <= interval.estimate <= interval.high


def test_a_minority_of_stalls_leaves_the_estimate_known() -> None:
    base = [Observed.finished(2.0)] * 12
    new = [Observed.finished(1.0 + i / 100) for i in range(9)] + [Observed.unfinished(30.0)] * 3
    interval = ratio_interval(*paired_bounds(base, new), 0.95, anytime=False)
    assert interval.estimate == pytest.approx(math.log(2 / ((1.05 + 1.06) / 2)), abs=1e-4)
    assert interval.low == -INF  # rank 3 of 12: the stalls are the three smallest
    assert interval.high == pytest.approx(math.log(2 / 1.02))


def test_ratios_are_for_people() -> None:
    x = [math.log(1.25)] * 12
    assert ratio_interval(x, x, 0.95, anytime=True).ratios == pytest.approx((1.25, 1.25, 1.25))
    assert ratio_interval([], [], 0.95, anytime=True).ratios == (None, 0.0, INF)


@pytest.mark.parametrize(
    ("lows", "highs"), [([1.0], [0.0]), ([0.0], [0.0, 1.0]), ([[0.0]], [[0.0]]), ([math.nan], [0])]
)
def test_bounds_that_are_none_are_refused(lows: list[float], highs: list[float]) -> None:
    with pytest.raises(ValueError, match="low <= high"):
        ratio_interval(lows, highs, 0.95, anytime=True)


# ---- inside a trial


@pytest.mark.parametrize(("quantile", "needed"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.05, 72)])
def test_how_many_requests_a_percentile_needs(quantile: float, needed: int) -> None:
    def closes(n: int) -> bool:  # the interval from smallest to largest sample, each tail by itself
        return max(binom.cdf(0, n, quantile), binom.sf(n - 1, n, quantile)) <= 0.025

    assert fewest_samples(quantile) == needed == next(n for n in range(1, 1000) if closes(n))


@pytest.mark.parametrize("quantile", [0.0, 1.0, 95])
def test_a_quantile_is_a_share(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        fewest_samples(quantile)
