"""Every doubt about a verdict is found where it is due, and only there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import kendalltau, norm, rankdata, theilslopes

from headwind.observed import Observed
from headwind.verdicts.assumptions import (
    Dependence,
    WarningKind,
    dependence,
    drift,
    lag1_correlation,
    latin_balance,
    noise_floor,
    warnings,
)
from headwind.verdicts.stats import Floats, Interval
from headwind.verdicts.verdict import Rule

SQUARE = [("h1", "h2", "h3"), ("h2", "h3", "h1"), ("h3", "h1", "h2")]
BLOCKS = 24


def noise(seed: int, n: int = BLOCKS) -> Floats:
    return 0.02 * np.random.default_rng(seed).gamma(2.0, 1.0, n)


def concerns(
    base_ln: Floats, new_ln: Floats, orders: Sequence[Sequence[str]] = SQUARE * (BLOCKS // 3)
) -> dict[WarningKind, str]:
    """What is said about two series of ln times, by kind."""
    base, new = ([Observed.finished(float(t)) for t in np.exp(series)] for series in (base_ln, new_ln))
    found = warnings(base, new, orders, Rule())
    return {warning.kind: warning.message for warning in found}


def test_whole_squares_are_balanced_and_parts_nearly() -> None:
    whole = latin_balance(SQUARE * 4)
    assert whole.counts == {"h1": (4, 4, 4), "h2": (4, 4, 4), "h3": (4, 4, 4)}
    assert whole.spread == 0
    assert latin_balance(SQUARE * 4 + SQUARE[:2]).spread == 1
    assert latin_balance([("h1", "h2")] * 5).counts == {"h1": (5, 0), "h2": (0, 5)}
    assert latin_balance([("h1", "h2")] * 5).spread == 5
    assert latin_balance([]).spread == 0


def test_lag_1_correlation_is_that_of_ranks() -> None:
    for n in (3, 10, 60):
        x = noise(n, n).round(2)  # with ties
        centred = rankdata(x) - (n + 1) / 2
        assert lag1_correlation(x) == pytest.approx((centred[:-1] * centred[1:]).sum() / (centred**2).sum())
    assert lag1_correlation(np.arange(100.0)) > 0.9
    assert lag1_correlation([(-1.0) ** i for i in range(100)]) < -0.9
    assert lag1_correlation([1.0] * 20) == 0
    assert lag1_correlation([]) == 0
    assert lag1_correlation([-math.inf, 1.0, 2.0, math.inf]) == lag1_correlation([0.0, 1.0, 2.0, 3.0])


def test_drift_is_the_trend_of_theil_sen_with_the_probability_of_kendall() -> None:
    for n in (12, 24, 60):
        x = noise(n, n) + np.linspace(0, 0.05, n)
        found = drift(x)
        assert found.change == pytest.approx(theilslopes(x).slope * (n - 1))
        score = abs(kendalltau(np.arange(n), x).statistic) * n * (n - 1) / 2
        assert found.p_value == pytest.approx(2 * norm.sf((score - 1) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)))
        exact = kendalltau(np.arange(n), x, method="exact").pvalue
        assert found.p_value == pytest.approx(exact, rel=0.4, abs=1e-4)


def test_drift_leaves_out_what_is_not_known_and_needs_three_values() -> None:
    x = np.linspace(0.0, 1.0, 21)
    holes = x.copy()
    holes[[3, 4, 17]] = math.inf
    assert drift(holes).change == pytest.approx(drift(x).change) == pytest.approx(1.0)
    assert drift([0.0, math.inf, 1.0]).p_value == 1.0
    assert drift([]).change == 0.0


@pytest.mark.parametrize(
    ("low", "high", "floor"),
    [(-0.01, 0.03, 0.03), (-0.04, 0.03, 0.04), (0.01, 0.02, 0.02), (-math.inf, math.inf, math.inf)],
)
def test_the_noise_floor_is_the_far_end_of_the_interval(low: float, high: float, floor: float) -> None:
    assert noise_floor(Interval(low, high, 0.0, 12)) == floor


def test_sound_data_carry_no_warning() -> None:
    assert concerns(noise(1), noise(2)) == {}


def test_too_few_blocks_say_how_many_are_needed() -> None:
    times = [Observed.finished(1.0)] * 5
    adaptive, fixed = (warnings(times, times, SQUARE[:3] * 2, Rule(anytime=anytime)) for anytime in (True, False))
    assert [c.message for c in adaptive] == ["5 of the 8 blocks that a 95 % interval needs"]
    assert [c.message for c in fixed] == ["5 of the 6 blocks that a 95 % interval needs"]


def test_a_drift_of_10_percent_is_reported_and_said_to_be_harmless() -> None:
    slow_down = np.linspace(0, math.log(1.10), BLOCKS)
    found = concerns(noise(3) + slow_down, noise(4) + slow_down)
    assert set(found) == {WarningKind.DRIFT}
    change = float(found[WarningKind.DRIFT].split("changed by ")[1].split("%")[0])
    assert 7 < change < 13


def test_a_ratio_that_moves_is_reported_as_harmful() -> None:
    moves = np.linspace(0, 0.2, BLOCKS)
    found = concerns(noise(5) + moves, noise(6) - moves)
    assert set(found) == {WarningKind.RATIO_DRIFT}
    assert WarningKind.DRIFT not in found
    assert "the ratio changed by" in found[WarningKind.RATIO_DRIFT]


def chain(random: np.random.Generator, n: int, kept: float) -> Floats:
    """AR(1) noise: every value keeps so much of the one before."""
    x = random.normal(size=n)
    for i in range(1, n):
        x[i] = kept * x[i - 1] + math.sqrt(1 - kept**2) * x[i]
    return x


def pooled(random: np.random.Generator, kept: float, blocks: int = 20) -> Dependence:
    """Eight conditions of three protocols, whose comparisons share their blocks."""
    conditions = []
    for _ in range(8):
        h1, h2, h3 = (chain(random, blocks, kept) for _ in range(3))
        conditions.append([(x, x) for x in (h3 - h1, h3 - h2, h2 - h1)])
    return dependence(conditions)


def test_neighbours_that_resemble_each_other_are_found_over_all_comparisons_together() -> None:
    """What one comparison of 20 blocks shows in one of twelve runs, all of them show in nearly every one."""
    random = np.random.default_rng(15)
    runs = [pooled(random, kept=0.5) for _ in range(40)]
    assert sum(each.is_excessive for each in runs) >= 38
    assert np.mean([each.correlation for each in runs]) == pytest.approx(0.45, abs=0.06)
    assert all(each.blocks == 160 for each in runs)
    assert not dependence([]).is_excessive


def test_independent_neighbours_are_seldom_taken_for_alike() -> None:
    random = np.random.default_rng(16)
    runs = [pooled(random, kept=0.0, blocks=9) for _ in range(400)]
    assert sum(each.is_excessive for each in runs) <= 3
    assert abs(np.mean([each.correlation for each in runs])) < 0.02
    assert np.std([each.correlation for each in runs]) <= runs[0].error * 1.1


def test_intervals_are_said_to_be_too_narrow_by_what_the_count_of_signs_spreads() -> None:
    random = np.random.default_rng(17)
    counts = [int((chain(random, 200, 0.5) > 0).sum()) for _ in range(1500)]
    spread = float(np.std(counts)) / math.sqrt(200 / 4)
    assert Dependence(0.5, 100).too_narrow == pytest.approx(spread, rel=0.08)
    assert Dependence(-0.2, 100).too_narrow == 1


def test_unbalanced_positions_are_named() -> None:
    found = concerns(noise(1), noise(2), [("h2", "h3")] * 20 + [("h3", "h2")] * 4)
    assert found == {
        WarningKind.IMBALANCE: "positions are not balanced: of 24 blocks h2 ran 20 at position 1, 4 at position 2"
    }
    assert concerns(noise(1), noise(2), [("h2", "h3")] * 13 + [("h3", "h2")] * 11) == {}


def test_unfinished_trials_are_counted_and_do_not_disturb_the_other_checks() -> None:
    base = [Observed.finished(float(t)) for t in np.exp(noise(9))]
    new = [Observed.finished(float(t)) for t in np.exp(noise(10))]
    new[3], new[9], base[20] = Observed.unfinished(30.0), Observed.unfinished(), Observed.unfinished(30.0)
    found = warnings(base, new, SQUARE * 8, Rule(), names=("h2", "h3"))
    assert [warning.kind for warning in found] == [WarningKind.UNFINISHED]
    assert "unfinished trials: h3 2 of 24, h2 1 of 24" in found[0].message


def test_the_time_at_which_a_trial_was_stopped_is_not_taken_for_its_time() -> None:
    base = [Observed.finished(float(t)) for t in np.exp(noise(11, 36))]
    new = [Observed.finished(float(t)) for t in np.exp(noise(12, 36))]
    base[18:] = [Observed.unfinished(30.0)] * 18
    found = {warning.kind for warning in warnings(base, new, SQUARE * 12, Rule())}
    assert found == {WarningKind.UNFINISHED}


def test_blocks_in_which_nothing_finished_break_no_check() -> None:
    never = [Observed.unfinished(30.0)] * 12
    assert [warning.kind for warning in warnings(never, never, SQUARE * 4, Rule())] == [WarningKind.UNFINISHED]
