"""A Link that exists can be applied as written: what netem would clip, round away or ignore cannot be made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from itertools import islice
from typing import Any

import pytest
from hypothesis import given

from impair.bounds import LARGEST_COUNT, SMALLEST_RATIO, ImpossibleImpairment
from impair.profile import (
    DEFAULT_LIMIT_PACKETS,
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Profile,
    Rate,
    Reorder,
    Slot,
    Spells,
    Steps,
)
from tests.strategies import LINKS, PROFILES


def refused(make: Callable[[], Any]) -> str:
    """The field that an impossible value is blamed on."""
    with pytest.raises(ImpossibleImpairment) as caught:
        make()
    assert str(caught.value)
    return caught.value.where


RATIO_FIELDS: list[tuple[str, Callable[[float], Any]]] = [
    ("loss", Loss),
    ("duplicate", Duplicate),
    ("corrupt", Corrupt),
    ("reorder", Reorder),
    ("loss.gemodel.p", lambda ratio: GilbertElliott(ratio, 0.5)),
    ("loss.gemodel.r", lambda ratio: GilbertElliott(0.5, ratio)),
    ("loss.gemodel.bad_loss", lambda ratio: GilbertElliott(0.5, 0.5, bad_loss=ratio)),
    ("loss.gemodel.good_loss", lambda ratio: GilbertElliott(0.5, 0.5, good_loss=ratio)),
    ("loss.state.p13", lambda ratio: FourState(ratio, 0.5)),
    ("loss.state.p31", lambda ratio: FourState(0.5, ratio)),
    ("loss.state.p32", lambda ratio: FourState(0.5, 0.5, p32=ratio)),
    ("loss.state.p23", lambda ratio: FourState(0.5, 0.5, p23=ratio)),
    ("loss.state.p14", lambda ratio: FourState(0.5, 0.5, p14=ratio)),
]


@pytest.mark.parametrize(("where", "make"), RATIO_FIELDS)
@pytest.mark.parametrize("ratio", [-0.1, 1.0000001, 30, math.nan, math.inf, -math.inf])
def test_a_ratio_lies_between_0_and_1(where: str, make: Callable[[float], Any], ratio: float) -> None:
    assert refused(lambda: make(ratio)) == where


@pytest.mark.parametrize(("where", "make"), RATIO_FIELDS)
def test_a_ratio_that_netem_would_round_to_nothing_is_refused(where: str, make: Callable[[float], Any]) -> None:
    assert refused(lambda: make(SMALLEST_RATIO * 0.99)) == where
    assert make(SMALLEST_RATIO)


def test_netems_resolution_is_one_in_2_to_the_32() -> None:
    assert math.isclose(SMALLEST_RATIO, 1 / 4_294_967_295)


@pytest.mark.parametrize("make", [Loss, Duplicate, Corrupt, Reorder])
def test_none_and_all_are_ratios(make: Callable[[float], Any]) -> None:
    assert (make(0.0).ratio, make(1.0).ratio) == (0.0, 1.0)


TIME_FIELDS: list[tuple[str, Callable[[float], Any]]] = [
    ("delay", Delay),
    ("jitter", lambda seconds: Delay(1.0, seconds)),
    ("slot.min_delay", lambda seconds: Slot(seconds, 1.0)),
    ("slot.max_delay", lambda seconds: Slot(0.0, seconds)),
]


@pytest.mark.parametrize(("where", "make"), TIME_FIELDS)
@pytest.mark.parametrize("seconds", [-0.001, math.nan, math.inf, -math.inf, 2.0**31, 0.9e-9])
def test_a_time_is_one_that_netem_can_keep(where: str, make: Callable[[float], Any], seconds: float) -> None:
    assert refused(lambda: make(seconds)) == where


@pytest.mark.parametrize(("delay_s", "jitter_s"), [(0.1, 0.1), (0.3, 0.1 + 0.2), (0.1, 0.0), (0.0, 0.0)])
def test_a_jitter_may_reach_down_to_no_delay_at_all(delay_s: float, jitter_s: float) -> None:
    assert Delay(delay_s, jitter_s).jitter_s == jitter_s


def test_a_jitter_that_reaches_below_zero_is_refused() -> None:
    assert refused(lambda: Delay(0.01, 0.0101)) == "jitter"
    assert refused(lambda: Delay(0.0, 0.001)) == "jitter"


@pytest.mark.parametrize(("distribution", "reach"), [("normal", 4.0), ("pareto", 0.6667), ("paretonormal", 1.5021)])
def test_a_distribution_reaches_as_far_as_its_table(distribution: str, reach: float) -> None:
    assert Delay(reach * 1.001, 1.0, distribution).jitter_s == 1.0
    assert refused(lambda: Delay(reach * 0.999, 1.0, distribution)) == "jitter"


def test_a_jitter_that_netem_would_cap_is_refused() -> None:
    assert Delay(3.0, 2.147).jitter_s == 2.147
    assert refused(lambda: Delay(3.0, 2.148)) == "jitter"


def test_a_distribution_is_a_known_one_of_some_jitter() -> None:
    assert refused(lambda: Delay(0.1, 0.01, "gauss")) == "distribution"
    assert refused(lambda: Delay(0.1, 0.0, "normal")) == "distribution"


def test_bursts_begin_and_end() -> None:
    assert refused(lambda: GilbertElliott(0.0, 0.5)) == "loss.gemodel.p"
    assert refused(lambda: GilbertElliott(0.5, 0.0)) == "loss.gemodel.r"
    assert refused(lambda: FourState(0.0, 0.5)) == "loss.state.p13"
    assert refused(lambda: GilbertElliott(0.5, 0.5, bad_loss=0.0)) == "loss.gemodel.bad_loss"
    assert refused(lambda: FourState(0.5, 0.0)) == "loss.state.p31"
    assert refused(lambda: FourState(0.5, 0.0, p32=0.5, p23=0.5)) == "loss.state.p31"
    assert refused(lambda: FourState(0.5, 0.5, p32=0.5, p23=0.0)) == "loss.state.p23"
    assert FourState(0.5, 0.5, p23=0.0).p32 == 0.0


def test_isolated_losses_alone_are_a_model() -> None:
    assert FourState(0.0, 0.0, p14=0.1).p14 == 0.1


def test_the_chances_of_leaving_a_state_are_not_above_1_together() -> None:
    assert FourState(0.3, 0.6, p32=0.4, p14=0.7).p13 == 0.3
    assert refused(lambda: FourState(0.3, 0.6, p14=0.71)) == "loss.state.p13"
    assert refused(lambda: FourState(0.3, 0.6, p32=0.41)) == "loss.state.p31"


@pytest.mark.parametrize("gap", [0, -1, LARGEST_COUNT + 1])
def test_a_gap_counts_packets(gap: int) -> None:
    assert refused(lambda: Reorder(0.5, gap)) == "reorder.gap"
    assert (Reorder(0.5, 1).gap, Reorder(0.5, LARGEST_COUNT).gap) == (1, LARGEST_COUNT)


@pytest.mark.parametrize("rate_bps", [0, -8, 7, 12, 10_000_001, 2**66])
def test_a_rate_is_a_whole_number_of_bytes_per_second(rate_bps: int) -> None:
    assert refused(lambda: Rate(rate_bps)) == "rate"
    assert Rate(8).rate_bps == 8


def test_overheads_fit_their_packets_and_cells() -> None:
    assert refused(lambda: Rate(8000, packet_overhead=-43)) == "rate.packet_overhead"
    assert refused(lambda: Rate(8000, packet_overhead=65536)) == "rate.packet_overhead"
    assert refused(lambda: Rate(8000, cell_size=-1)) == "rate.cell_size"
    assert refused(lambda: Rate(8000, cell_overhead=5)) == "rate.cell_overhead"
    assert refused(lambda: Rate(8000, cell_size=48, cell_overhead=65536)) == "rate.cell_overhead"
    assert refused(lambda: Rate(8000, cell_size=48, cell_overhead=-48)) == "rate.cell_overhead"
    assert (
        Rate(8000, packet_overhead=-14, cell_size=48, cell_overhead=5).packet_overhead == -14
    )  # Ethernet's header off, ATM's cells on


def test_slots_are_apart_and_their_bounds_are_counts() -> None:
    assert refused(lambda: Slot(0.02, 0.01)) == "slot.max_delay"
    assert refused(lambda: Slot(0.0, 0.0)) == "slot.max_delay"
    assert refused(lambda: Slot(0.0, 2.148)) == "slot.max_delay"
    assert refused(lambda: Slot(0.01, 0.02, max_packets=-1)) == "slot.max_packets"
    assert refused(lambda: Slot(0.01, 0.02, max_bytes=LARGEST_COUNT + 1)) == "slot.max_bytes"
    assert Slot(0.0, 0.02) != Slot(0.02, 0.02)


def test_what_is_not_asked_for_is_not_there() -> None:
    assert GilbertElliott(0.1, 0.2) == GilbertElliott(0.1, 0.2, bad_loss=1.0, good_loss=0.0)
    assert FourState(0.1, 0.2) == FourState(0.1, 0.2, p32=0.0, p23=1.0, p14=0.0)
    assert Reorder(0.1) == Reorder(0.1, gap=1)
    assert Rate(8000) == Rate(8000, packet_overhead=0, cell_size=0, cell_overhead=0)
    assert Slot(0.1, 0.2) == Slot(0.1, 0.2, max_packets=0, max_bytes=0)


def test_what_one_impairment_needs_of_another() -> None:
    assert refused(lambda: Link(reorder=Reorder(0.25))) == "reorder"
    assert refused(lambda: Link(reorder=Reorder(0.25), delay=Delay(0.0))) == "reorder"
    assert refused(lambda: Link(ecn=True)) == "ecn"
    assert refused(lambda: Link(queue_packets=10)) == "queue"
    assert refused(lambda: Link(queue_packets=0, rate=Rate(8000))) == "queue"
    assert refused(lambda: Link(limit_packets=0)) == "limit"
    assert refused(lambda: Link(limit_packets=10, queue_packets=10, rate=Rate(8000))) == "queue"
    link = Link(delay=Delay(0.01), reorder=Reorder(0.25), loss=Loss(0.1), ecn=True, rate=Rate(8000), queue_packets=1)
    assert link.ecn


def test_a_delay_line_without_a_rate_never_drops() -> None:
    assert Link().limit == Link(delay=Delay(1.0)).limit == DEFAULT_LIMIT_PACKETS


def test_the_limit_of_a_rate_is_its_delay_line_and_100_ms_of_queue() -> None:
    rate = Rate(1514 * 8 * 1000)  # 1000 full frames a second
    assert Link(rate=rate).limit == 100
    assert Link(rate=rate, delay=Delay(0.05)).limit == 50 + 100
    assert Link(rate=rate, delay=Delay(0.05, 0.02)).limit == 70 + 100
    assert Link(rate=rate, delay=Delay(0.05), queue_packets=7).limit == 50 + 7


def test_a_slow_rate_keeps_a_queue_of_20_packets() -> None:
    assert Link(rate=Rate(8000)).limit == 20


def test_a_limit_that_was_given_is_kept() -> None:
    assert Link(rate=Rate(10**9), delay=Delay(0.1), limit_packets=3).limit == 3


def test_a_limit_that_netem_cannot_count_is_refused() -> None:
    assert refused(lambda: Link(rate=Rate(10**12), delay=Delay(1000.0))) == "limit"


@pytest.mark.parametrize(
    ("link", "reorders"),
    [
        (Link(), False),
        (Link(delay=Delay(0.1)), False),
        (Link(delay=Delay(0.1, 0.01)), True),
        (Link(delay=Delay(0.1, 0.01), rate=Rate(8000)), False),
        (Link(delay=Delay(0.1), reorder=Reorder(0.25)), True),
        (Link(delay=Delay(0.1), reorder=Reorder(0.25), rate=Rate(8000)), True),
        (Link(delay=Delay(0.1), reorder=Reorder(0.0)), False),
    ],
)
def test_a_link_says_whether_packets_can_overtake(link: Link, reorders: bool) -> None:
    assert link.reorders is reorders


@given(LINKS)
def test_a_link_survives_json(link: Link) -> None:
    assert Link.from_json(json.loads(json.dumps(link.to_json()))) == link


@given(PROFILES)
def test_a_profile_survives_json(profile: Profile) -> None:
    assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile


def test_the_json_of_a_clean_link_is_empty() -> None:
    assert Link().to_json() == {}


@pytest.mark.parametrize(
    "data",
    [
        {"dealy": {"delay_s": 0.1}},
        {"delay": {"delay": 0.1}},
        {"delay": {}},
        {"loss": {"ratio": 0.1}},
        {"loss": {"model": "perfect"}},
        {"loss": {"model": "random", "p": 0.1}},
    ],
)
def test_json_with_another_field_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((TypeError, KeyError)):
        Link.from_json(data)


def test_json_of_an_impossible_link_is_refused() -> None:
    with pytest.raises(ImpossibleImpairment):
        Link.from_json({"loss": {"model": "random", "ratio": 2}})


def test_a_profile_has_a_link_for_each_direction() -> None:
    profile = Profile("p", uplink=Link(loss=Loss(0.1)), downlink=Link(loss=Loss(0.2)))
    assert profile.link(Direction.UPLINK) == profile.uplink
    assert profile.link(Direction.DOWNLINK) == profile.downlink
    assert Profile("clean").uplink == Profile("clean").downlink == Link()


@given(LINKS)
def test_the_limit_of_any_link_is_one_that_netem_takes(link: Link) -> None:
    assert 1 <= link.limit <= LARGEST_COUNT


def test_nouns_cannot_change() -> None:
    link = Link()
    with pytest.raises(FrozenInstanceError):
        link.ecn = True  # type: ignore[misc]


def test_changes_come_in_turn_and_again_after_their_period() -> None:
    lost, slow = Link(loss=Loss(1.0)), Link(delay=Delay(0.1))
    once = Profile("once", downlink_changes=Steps((1.0, 2.0), (lost, slow)))
    assert [*once.moments(Direction.DOWNLINK, 1)] == [1.0, 2.0]
    again = Profile("again", downlink_changes=Steps((1.0, 2.0), (lost, slow), period_s=5.0))
    assert [*islice(again.moments(Direction.DOWNLINK, 1), 5)] == [1.0, 2.0, 5.0, 6.0, 7.0]
    assert [again.after(Direction.DOWNLINK, number) for number in range(5)] == [Link(), lost, slow, Link(), lost]
    assert (again.is_steady, again.changes(Direction.UPLINK), Profile("clean").is_steady) == (False, None, True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Steps((0.005,), (Link(),)), "closer together than 10 ms"),
        (lambda: Steps((1.0, 1.002), (Link(), Link())), "1 s and 1.002 s"),
        (lambda: Steps((2.0, 1.0), (Link(), Link())), "closer together"),
        (lambda: Steps((1.0,), (Link(),), period_s=1.0), "start over after 1 s, and the last one is at 1 s"),
        (lambda: Steps((), ()), "each moment needs a network"),
        (lambda: Spells(0.02, 1.0, Link()), "20 ms is too short"),
        (
            lambda: Profile(
                "jitter", Link(delay=Delay(0.1, 0.01)),
                uplink_changes=Steps((1.0,), (Link(delay=Delay(0.1, 0.01, "normal")),)),
            ),
            "cannot change its distribution",
        ),
    ],
)  # fmt: skip
def test_changes_that_netem_or_the_router_cannot_make_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ImpossibleImpairment, match=words):
        make()
