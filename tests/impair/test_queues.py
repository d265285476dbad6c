"""Queues of a bottleneck: impossible values are refused by field, settings are the kernel's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impair.bounds import ImpossibleImpairment
from impair.profile import FRAME_BYTES, Delay, Link, Profile, Rate
from impair.queue_options import RED_LARGEST, kept, red_idle, settings_of, tokens_bytes
from impair.queues import KINDS, RED_BITS, Cake, Fifo, FqCodel, Pie, Queue, Red
from tests.strategies import QUEUES

RATE = Rate(20_000_000)


@pytest.mark.parametrize(
    ("where", "make"),
    [
        ("queue.packets", lambda: Fifo(0)),
        ("queue.packets", lambda: FqCodel(100_001)),
        ("queue.target", lambda: FqCodel(target_s=0.1)),  # as long as the interval
        ("queue.target", lambda: Pie(target_s=1e-6)),
        ("queue.interval", lambda: FqCodel(interval_s=61.0)),
        ("queue.rtt", lambda: Cake(0.0)),
        ("queue.max", lambda: Red(100, 50, 50)),
        ("queue.max", lambda: Red(100, 50, 101)),
        ("queue.min", lambda: Red(10_000, 1, 10_000)),  # no weight keeps a burst of 3334 below a mean of 1
        ("queue.probability", lambda: Red(100, 10, 30, probability=0.0)),
        ("queue", lambda: Link(queue=Cake())),  # without a rate
        ("queue", lambda: Link(rate=RATE, queue=Cake(), queue_packets=10)),
        ("queue", lambda: Link(rate=RATE, queue=Cake(), limit_packets=10)),
        ("queue", lambda: Link(rate=Rate(20_000_000, packet_overhead=4), queue=Cake())),
        ("queue.kind", lambda: Link(rate=Rate(800_000), queue=Red(100, 10, 30))),
    ],
)
def test_what_a_queue_cannot_be_is_refused_by_field(where: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ImpossibleImpairment) as refused:
        make()
    assert refused.value.where == where


@given(QUEUES)
def test_a_queue_survives_json_and_has_settings_for_any_rate(queue: Queue) -> None:
    link = Link(rate=RATE, queue=queue)
    assert Link.from_json(link.to_json()) == link
    assert link.to_json()["queue"]["kind"] in KINDS
    asked = settings_of(queue, RATE.rate_bps)
    assert all(asked[name] - 3 < value <= asked[name] for name, value in kept(queue, asked).items())
    assert all(0 <= value < 2**32 for value in asked.values())


def test_netem_keeps_neither_rate_nor_queue_of_a_bottleneck_and_never_drops_behind_it() -> None:
    link = Link(delay=Delay(0.05, 0.01), rate=RATE, queue=Fifo(50))
    assert link.limit > 100_000
    assert link.room == 50
    assert link.reorders  # netem has no rate that keeps the order
    assert not link.jitters_in_order
    own = Link(delay=Delay(0.05, 0.01), rate=RATE)
    assert own.jitters_in_order
    assert not own.reorders
    assert Profile.from_json(Profile("p", downlink=link).to_json()).downlink == link


def test_the_shaper_may_catch_up_two_milliseconds() -> None:
    assert tokens_bytes(8_000_000) == FRAME_BYTES + 2000
    assert tokens_bytes(8) == FRAME_BYTES + 1


def test_times_are_kept_as_codel_and_pie_count_them() -> None:
    assert kept(FqCodel(), settings_of(FqCodel(), 8))["target"] == 4999  # 4882 times 1024 ns
    assert kept(Pie(), settings_of(Pie(), 8))["target"] == 15_000
    assert kept(Cake(), settings_of(Cake(0.04), 8))["rtt"] == 40_000


def test_red_has_the_largest_weight_that_lets_a_burst_pass() -> None:
    red = Red(200, 20, 60)
    burst, weight = 33, 2**-red.weight_log
    assert burst + 1 + ((1 - weight) ** burst - 1) / weight <= 20  # Floyd and Jacobson 1993, equation 3
    assert burst + 1 + ((1 - 2 * weight) ** burst - 1) / (2 * weight) > 20
    assert settings_of(red, 20_000_000) | {"scell_log": 0} == {
        "limit": 200 * FRAME_BYTES, "qth_min": 20 * FRAME_BYTES, "qth_max": 60 * FRAME_BYTES, "wlog": 4, "plog": 19,
        "scell_log": 0, "flags": 0, "max_p": round(0.1 * (2**32 - 1)),
    }  # fmt: skip


@given(st.integers(1, RED_BITS), st.integers(900_000, 10**10))
def test_reds_mean_falls_with_the_time_that_its_queue_is_empty(wlog: int, rate_bps: int) -> None:
    scell_log, table = red_idle(wlog, rate_bps)
    assert len(table) == 256
    assert list(table) == sorted(table)
    assert (table[0], table[-1]) == (0, RED_LARGEST)
    assert 0 <= scell_log < 32
    frames = (128 << scell_log) / (FRAME_BYTES * 8 * 1e6 / rate_bps)
    assert (1 - 2**-wlog) ** frames == pytest.approx(2 ** -float(table[128]), rel=1) or table[128] == RED_LARGEST
