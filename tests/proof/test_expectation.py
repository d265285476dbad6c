"""What a link should do to traffic, held against netem's own decisions, packet for packet (tests/net/prediction.py)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest

from headwind.proof.expectation import Expectation, stationary_loss, wire_bytes
from impair.netem_options import Options
from impair.profile import Corrupt, Delay, Duplicate, FourState, GilbertElliott, Link, Loss, LossModel, Rate, Reorder
from tests.net.prediction import SeededNetem

PACKETS = 40_000
MODELS = [
    Loss(0.3),
    GilbertElliott(0.02, 0.25),
    GilbertElliott(0.05, 0.1, bad_loss=0.7, good_loss=0.02),
    GilbertElliott(1.0, 1.0),
    FourState(0.02, 0.3),
    FourState(0.02, 0.3, p32=0.1, p23=0.2, p14=0.01),
    FourState(0.01, 0.02, p14=0.5),
    FourState(0.05, 0.1, p32=0.4, p23=0.3),
    FourState(0.0, 0.0, p14=0.1),
    FourState(1.0, 1.0),  # every second packet, for ever
    FourState(0.0, 0.0, p14=1.0),
]


@cache
def fates(model: LossModel) -> Sequence[bool]:
    """What becomes of each of 4 * PACKETS: True where it is lost."""
    netem = SeededNetem(Options.of(Link(loss=model), 11))
    return [not netem.offer() for _ in range(4 * PACKETS)]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_as_much_is_lost_as_is_expected(model: LossModel) -> None:
    ratio, inflation = stationary_loss(model)
    spread = (ratio * (1 - ratio) * inflation / PACKETS) ** 0.5
    assert statistics.mean(fates(model)[:PACKETS]) == pytest.approx(ratio, abs=4 * spread + 1e-9)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_losses_vary_no_more_than_is_expected(model: LossModel) -> None:
    ratio, inflation = stationary_loss(model)
    lost, size = fates(model), 800
    batches = [sum(lost[start : start + size]) for start in range(0, len(lost), size)]
    # 200 batches show a variance to 10 %. It is below the bound where the good state loses or the bad one does not.
    assert statistics.variance(batches) <= 1.4 * size * ratio * (1 - ratio) * inflation + 1


@pytest.mark.parametrize("model", [GilbertElliott(0.02, 0.25), FourState(0.02, 0.3, 0.1, 0.2, 0.01)], ids=str)
def test_bursts_are_not_taken_for_more_variable_than_they_are(model: LossModel) -> None:
    ratio, inflation = stationary_loss(model)
    lost, size = fates(model), 800
    batches = [sum(lost[start : start + size]) for start in range(0, len(lost), size)]
    assert statistics.variance(batches) >= 0.6 * size * ratio * (1 - ratio) * inflation


def test_slow_chains_are_solved_as_well() -> None:
    assert stationary_loss(FourState(1e-9, 1e-9))[0] == pytest.approx(0.5)
    assert stationary_loss(FourState(1e-9, 3e-9))[0] == pytest.approx(0.25)
    assert stationary_loss(None) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("ratio", "gap"), [(0.0, 1), (0.25, 1), (1.0, 1), (0.25, 5), (1.0, 5)], ids=str
)  # fmt: skip
def test_as_many_overtake_as_is_expected(ratio: float, gap: int) -> None:
    link = Link(Delay(0.1), reorder=Reorder(ratio, gap))
    netem = SeededNetem(Options.of(link, 11))
    for _ in range(20_000):
        netem.offer()
    assert netem.counters["reordered"] / 20_000 == pytest.approx(Expectation.of(link).overtaking, abs=0.01)


def test_an_empty_train_is_as_likely_as_netem_makes_it() -> None:
    link = Link(loss=Loss(0.6))
    lost = fates(Loss(0.6))
    trains = [lost[start : start + 4] for start in range(0, PACKETS, 4)]
    assert statistics.mean(map(all, trains)) == pytest.approx(Expectation.of(link).chance_of_none(4), abs=0.015)
    pairs = [any(not a and not b for a, b in pairwise(train)) for train in trains]
    assert 1 - statistics.mean(pairs) == pytest.approx(Expectation.of(link).chance_of_no_pair(4), abs=0.02)


def test_a_clean_link_never_swallows_a_train_and_a_dead_one_always() -> None:
    assert (Expectation.of(Link()).chance_of_none(20), Expectation.of(Link()).chance_of_no_pair(20)) == (0.0, 0.0)
    dead = Link(corrupt=Corrupt(1.0))
    assert (Expectation.of(dead).chance_of_none(20), Expectation.of(dead).chance_of_no_pair(20)) == (1.0, 1.0)
    assert Expectation.of(Link()).chance_of_no_pair(1) == 1.0


def test_a_datagram_vanishes_when_it_is_lost_or_corrupted() -> None:
    assert Expectation.of(Link(loss=Loss(0.3), corrupt=Corrupt(0.2))).vanishing == pytest.approx(1 - 0.7 * 0.8)


@pytest.mark.parametrize("copied", [0.01, 0.3, 0.7, 1.0])
def test_copies_alone_take_nothing(copied: float) -> None:
    assert Expectation.of(Link(duplicate=Duplicate(copied))).vanishing == 0.0


@pytest.mark.parametrize(("loss", "copied", "corrupted"), [(0.3, 0.7, 0.0), (0.3, 0.7, 0.2), (0.5, 1.0, 0.5)])
def test_a_copy_makes_up_for_a_loss(loss: float, copied: float, corrupted: float) -> None:
    link = Link(loss=Loss(loss), duplicate=Duplicate(copied), corrupt=Corrupt(corrupted))
    netem = SeededNetem(Options.of(link, 11))
    lost = [all(copy.corrupted for copy in netem.offer()) for _ in range(PACKETS)]
    assert Expectation.of(link).vanishing == pytest.approx(statistics.mean(lost), abs=0.01)


@pytest.mark.parametrize(
    ("rate", "frame", "expected"),
    [
        (None, 1514, 1514),
        (Rate(8), 1514, 1514),
        (Rate(8, packet_overhead=20), 1514, 1534),
        (Rate(8, packet_overhead=-14), 1514, 1500),
        (Rate(8, cell_size=48, cell_overhead=5), 96, 106),  # ATM: two cells of 53
        (Rate(8, cell_size=48, cell_overhead=5), 97, 159),
        (Rate(8, packet_overhead=8, cell_size=48, cell_overhead=5), 1500, 32 * 53),
    ],
)
def test_a_link_layer_has_its_overhead_and_whole_cells(rate: Rate | None, frame: int, expected: int) -> None:
    assert wire_bytes(Link(rate=rate), frame) == expected
