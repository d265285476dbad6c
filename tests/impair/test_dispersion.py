"""The rate that a back-to-back train shows, whatever else happens to it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from impair.endpoint.dispersion import estimate_rate

FRAME_BYTES = 1514
RATE_BPS = 10_000_000
FRAME_S = FRAME_BYTES * 8 / RATE_BPS


def through_the_link(
    entering: Sequence[int], dropped_behind: Sequence[int] = (), start_s: float = 3.0
) -> tuple[list[float], list[int]]:
    """Arrival times and sequence numbers of frames that leave a link in turn; some positions are dropped behind it."""
    passed = [(start_s + FRAME_S * place, sequence) for place, sequence in enumerate(entering)
              if place not in dropped_behind]  # fmt: skip
    return [time_s for time_s, _ in passed], [sequence for _, sequence in passed]


def chosen(count: int, ratio: float, seed: int) -> set[int]:
    rng = random.Random(seed)
    return {place for place in range(count) if rng.random() < ratio}


def test_a_full_link_shows_its_rate() -> None:
    estimate = estimate_rate(*through_the_link(range(60)), FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS)
    assert estimate.gap_rate_bps == pytest.approx(RATE_BPS)
    assert estimate.span_rate_bps == pytest.approx(RATE_BPS)
    assert estimate.pairs == 30


@pytest.mark.parametrize("seed", range(20))
def test_frames_lost_before_the_link_do_not_count(seed: int) -> None:
    lost = chosen(60, 0.3, seed)
    estimate = estimate_rate(*through_the_link([s for s in range(60) if s not in lost]), FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS)


@pytest.mark.parametrize("seed", range(20))
def test_where_nothing_is_corrupted_losses_do_not_break_a_train_up(seed: int) -> None:
    lost = chosen(200, 0.7, seed)
    arrivals_s, sequences = through_the_link([s for s in range(200) if s not in lost])
    bunched_s = [0.005 * (1 + time_s // 0.005) for time_s in arrivals_s]
    whole = estimate_rate(bunched_s, sequences, FRAME_BYTES, missing_took_time=False)
    assert whole.rate_bps == pytest.approx(RATE_BPS, rel=0.08)
    assert estimate_rate(bunched_s, sequences, FRAME_BYTES).rate_bps != pytest.approx(RATE_BPS, rel=0.2)  # sees bunches


@pytest.mark.parametrize("seed", range(20))
def test_frames_corrupted_on_the_link_took_their_time(seed: int) -> None:
    estimate = estimate_rate(*through_the_link(range(60), list(chosen(60, 0.2, seed))), FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS)
    assert estimate.span_rate_bps is not None
    assert estimate.span_rate_bps < 0.95 * RATE_BPS  # what everybody who trusts the span would report


@pytest.mark.parametrize("seed", range(20))
def test_copies_took_their_time_and_may_be_corrupted_themselves(seed: int) -> None:
    copied = chosen(60, 0.5, seed)
    entering = [s for s in range(60) for _ in range(1 + (s in copied))]
    corrupted = chosen(len(entering), 0.15, seed + 100)
    assert estimate_rate(*through_the_link(entering), FRAME_BYTES).rate_bps == pytest.approx(RATE_BPS)
    estimate = estimate_rate(*through_the_link(entering, list(corrupted)), FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS)


def test_frames_that_the_machine_hands_over_in_bunches_show_the_rate_all_the_same() -> None:
    arrivals_s, sequences = through_the_link(range(60))
    bunched_s = [0.005 * (1 + time_s // 0.005) for time_s in arrivals_s]  # everybody waits for the next 5 ms
    estimate = estimate_rate(bunched_s, sequences, FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS, rel=0.05)
    assert estimate.gap_rate_bps is None  # the median gap is nothing at all


def test_a_slow_start_is_ignored() -> None:
    arrivals_s, sequences = through_the_link(range(60))
    stretched_s = [time_s - 0.02 if place < 10 else time_s for place, time_s in enumerate(arrivals_s)]
    estimate = estimate_rate(stretched_s, sequences, FRAME_BYTES)
    assert estimate.rate_bps == pytest.approx(RATE_BPS)


@pytest.mark.parametrize("place", range(2, 400, 7))
def test_one_pause_is_ignored_wherever_it_falls(place: int) -> None:
    arrivals_s, sequences = through_the_link(range(400))
    paused_s = [time_s + (0.05 if number >= place else 0.0) for number, time_s in enumerate(arrivals_s)]
    assert estimate_rate(paused_s, sequences, FRAME_BYTES).rate_bps == pytest.approx(RATE_BPS)


@pytest.mark.parametrize("sequences", [[], [4], [9, 7, 5]])
def test_too_little_shows_no_rate(sequences: list[int]) -> None:
    estimate = estimate_rate([float(place) for place in range(len(sequences))], sequences, FRAME_BYTES)
    assert estimate.rate_bps is None
    assert estimate.pairs == 0


def test_arrivals_at_the_same_instant_show_no_rate() -> None:
    assert estimate_rate([1.0, 1.0, 1.0], [0, 1, 2], FRAME_BYTES).rate_bps is None
