"""What charts are made of keeps its word: round ticks, honest quartiles, labels that do not meet."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.stats import gaussian_kde

from headwind.metric import Better
from headwind.observed import NOTHING, Observed, from_best, quantile
from headwind.report.html.charts.axes import Scale, clock_ticks, count_ticks, scale, ticks
from headwind.report.html.charts.labels import spread
from headwind.report.html.charts.svg import number, shortened, text_width
from headwind.report.html.charts.violin import bandwidth, density, swarm

QUARTERS = (0.25, 0.5, 0.75)


@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=80))
def test_quartiles_are_the_usual_ones(values: list[float]) -> None:
    ordered = from_best(map(Observed.finished, values), Better.LESS)
    assert [quantile(ordered, share).known for share in QUARTERS] == pytest.approx(np.quantile(values, QUARTERS))


def test_unfinished_trials_are_slower_than_every_quartile_they_reach() -> None:
    def told(values: list[float], failed: int) -> list[Observed]:
        ordered = from_best([*[NOTHING] * failed, *map(Observed.finished, values)], Better.LESS)
        return [quantile(ordered, share) for share in QUARTERS]

    assert told([1, 2, 3, 4, 5], 4) == [Observed.finished(3), Observed.finished(5), NOTHING]
    assert told([1], 1) == told([], 3) == [NOTHING] * 3


@given(st.lists(st.integers(1, 1000), min_size=5, max_size=60).filter(lambda values: len(set(values)) > 1))
def test_a_density_is_the_gaussian_one_and_holds_all_values(values: list[int]) -> None:
    places, heights = density(values)
    width = bandwidth(np.asarray(values, dtype=float))
    assert width <= 0.9 * np.std(values, ddof=1) * len(values) ** -0.2 * (1 + 1e-9)
    assert heights == pytest.approx(gaussian_kde(values, bw_method=width / np.std(values, ddof=1))(places), rel=1e-6)
    assert places[0] < min(values)
    assert max(values) < places[-1]


def test_the_bandwidth_is_silvermans_rule_of_thumb() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 100.0])  # interquartile range 2
    assert bandwidth(values) == pytest.approx(0.9 * 2 / 1.34 * 5**-0.2)
    assert bandwidth(np.array([1.0, 1.0, 1.0, 1.0, 2.0])) == pytest.approx(0.9 * math.sqrt(0.2) * 5**-0.2)
    assert bandwidth(np.full(5, 0.4)) == 0


@given(st.lists(st.floats(0, 200), max_size=60), st.integers(1, 40))
def test_no_two_dots_of_a_swarm_touch_while_there_is_room(heights: list[float], most: int) -> None:
    steps = swarm(heights, 4.0, most)
    assert all(0 <= step < most for step in steps)
    crowd = max((sum(abs(a - b) < 4 for b in heights) for a in heights), default=0)
    if crowd <= most:
        for (a, one), (b, other) in itertools.combinations(zip(heights, steps, strict=True), 2):
            assert abs(a - b) >= 4 or one != other


def mantissa(value: float) -> float:
    """1.5 for 1,500."""
    return float(f"{value:.4e}".split("e")[0])


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9))
def test_ticks_are_few_and_round_and_on_the_scale(values: list[float]) -> None:
    along = scale(values, 0, 100)
    found = ticks(along)
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))
    steps = {mantissa(after - before) for before, after in itertools.pairwise(found)}
    assert {mantissa(value) for value in found} <= {1, 2, 5} or (len(steps) == 1 and steps <= {1, 2, 2.5, 5})
    slack = 1e-8 * (along.high - along.low)
    assert along.low - slack <= found[0] < found[-1] <= along.high + slack
    assert along.kind == ("log" if max(values) > 4 * min(values) else "lin")
    assert all(along.holds(value) for value in values)


def test_ticks_are_the_ones_people_expect() -> None:
    assert ticks(Scale("log", 0.9, 60, 0, 1)) == [1, 2, 5, 10, 20, 50]
    assert ticks(Scale("log", 0.0009, 1100, 0, 1)) == [0.001, 0.01, 0.1, 1, 10, 100, 1000]
    assert ticks(Scale("log", 0.78, 1.3, 0, 1)) == [0.8, 0.9, 1, 1.1, 1.2, 1.3]
    assert ticks(Scale("lin", 0.39, 0.47, 0, 1)) == [0.4, 0.42, 0.44, 0.46]
    assert count_ticks(Scale("lin", -0.6, 8.6, 0, 1)) == [0, 2, 4, 6, 8]
    assert count_ticks(Scale("lin", 0.4, 2.6, 0, 1)) == [1, 2]
    assert clock_ticks(Scale("lin", 0, 4000, 0, 1)) == [0, 900, 1800, 2700, 3600]
    assert clock_ticks(Scale("lin", 0, 40 * 86400, 0, 1))[-1] >= 20 * 86400


@given(st.lists(st.tuples(st.floats(0, 200), st.floats(5, 34)), max_size=9), st.floats(0, 100))
def test_labels_are_pushed_apart_no_further_than_needed(given_labels: list[tuple[float, float]], low: float) -> None:
    wishes, sizes = [wish for wish, _ in given_labels], [size for _, size in given_labels]
    high = low + sum(sizes) + 50
    places = spread(wishes, sizes, low, high)
    edges = sorted(zip(places, sizes, strict=True))
    for (one, size), (other, other_size) in itertools.pairwise(edges):
        assert other - one >= (size + other_size) / 2 - 1e-6
    assert all(low - 1e-6 <= p - s / 2 and p + s / 2 <= high + 1e-6 for p, s in edges)
    free = all(abs(a - b) >= 34 for a, b in itertools.combinations(wishes, 2))
    if free and all(low + s / 2 <= w <= high - s / 2 for w, s in given_labels):
        assert places == pytest.approx(wishes)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12))
def test_labels_begin_where_an_isotonic_regression_has_them(wishes: list[float]) -> None:
    wishes.sort()
    sizes = [10.0] * len(wishes)
    begins = isotonic_regression([wish - 10 * place for place, wish in enumerate(wishes)]).x
    expected = [begin + 10 * place for place, begin in enumerate(begins)]
    assert spread(wishes, sizes, -1e6, 1e6) == pytest.approx(expected, abs=1e-6)


def test_two_labels_in_one_place_move_equally_far() -> None:
    assert spread([100, 100, 20], [10, 10, 10], 0, 200) == pytest.approx([95, 105, 20])


@given(st.text(max_size=60), st.floats(30, 200))
def test_what_is_shortened_fits_and_says_so(text: str, room: float) -> None:
    shown = shortened(text, room)
    assert text_width(shown) <= room
    assert shown.endswith("\N{HORIZONTAL ELLIPSIS}") or text_width(" ".join(text.split())) <= room or shown == text


@given(st.floats(-1e4, 1e4))
def test_numbers_are_as_short_as_one_decimal_can_be(value: float) -> None:
    assert abs(float(number(value)) - value) <= 0.0500001
    assert len(number(value)) <= len(f"{value:.1f}")
    assert number(value) != "-0"
