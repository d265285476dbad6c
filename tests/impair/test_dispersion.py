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
    assert estimate.pairs == estimate.agreeing == 30 + 15  # over 30 and over 45 frames
    assert estimate.agreeing


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


BUSY_RATE_BPS = 100_000_000


def on_a_busy_machine(rate_bps: float, seed: int) -> tuple[list[float], list[float]]:
    """When 400 frames arrived and were sent: the sender makes pauses, the router stands still and then catches up.

    Fewer than half of all pairs a hundred frames apart are as the link had them; of each train other ones.
    """
    rng = random.Random(seed)
    frame_s, burst_s = FRAME_BYTES * 8 / rate_bps, 12e-6
    sends_at_s = departed_s = arrived_s = 0.0
    pauses, stalls = {rng.randrange(400)}, set(rng.sample(range(400), 2))
    arrivals_s, sent_s = [], []
    for number in range(400):
        sends_at_s += 20e-6 + (rng.uniform(0.01, 0.06) if number in pauses else 0.0)
        departed_s = max(departed_s, sends_at_s) + frame_s
        still_s = rng.uniform(0.002, 0.008) if number in stalls else 0.0
        arrived_s = max(arrived_s + burst_s, departed_s + still_s)
        arrivals_s.append(arrived_s + rng.uniform(0, 3e-5))
        sent_s.append(sends_at_s)
    return sorted(arrivals_s), sent_s


@pytest.mark.parametrize("real_bps", [90e6, 95e6, 100e6, 105e6, 110e6])
def test_on_a_busy_machine_what_most_pairs_agree_on_is_the_links_rate(real_bps: float) -> None:
    trains = [on_a_busy_machine(real_bps, seed) for seed in range(100)]
    estimates = [estimate_rate(arrivals_s, range(400), FRAME_BYTES, sent_s) for arrivals_s, sent_s in trains]
    steady = [estimate.rate_bps for estimate in estimates if estimate.agreeing]
    assert len(steady) > 30
    assert steady == pytest.approx([real_bps] * len(steady), rel=0.01)
    medians = [estimate.rate_bps for estimate in estimates if not estimate.agreeing]
    assert min(filter(None, medians)) < 0.95 * real_bps  # what a median would have said of it


def test_a_sender_that_is_slower_than_the_link_shows_no_steady_rate() -> None:
    sent_s = [FRAME_S * place for place in range(400)]
    arrivals_s = [time_s + 0.001 for time_s in sent_s]
    assert estimate_rate(arrivals_s, range(400), FRAME_BYTES).agreeing
    assert not estimate_rate(arrivals_s, range(400), FRAME_BYTES, sent_s).agreeing


@pytest.mark.parametrize("place", range(30, 370, 17))
def test_a_pause_in_a_part_of_a_train_is_never_taken_for_a_rate(place: int) -> None:
    arrivals_s, sequences = through_the_link(range(400))
    for pause_s in (0.005, 0.05, 0.5):
        paused_s = [time_s + (pause_s if number >= place else 0.0) for number, time_s in enumerate(arrivals_s)]
        estimate = estimate_rate(paused_s[: place + 30], sequences[: place + 30], FRAME_BYTES)
        assert not estimate.agreeing or estimate.rate_bps == pytest.approx(RATE_BPS, rel=0.01)


@pytest.mark.parametrize("sequences", [[], [4], [9, 7, 5]])
def test_too_little_shows_no_rate(sequences: list[int]) -> None:
    estimate = estimate_rate([float(place) for place in range(len(sequences))], sequences, FRAME_BYTES)
    assert estimate.rate_bps is None
    assert estimate.pairs == 0


def test_arrivals_at_the_same_instant_show_no_rate() -> None:
    assert estimate_rate([1.0, 1.0, 1.0], [0, 1, 2], FRAME_BYTES).rate_bps is None
