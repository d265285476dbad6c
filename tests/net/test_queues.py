"""A bottleneck with its own queue, before netem: real packets in real containers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from impair.profile import FRAME_BYTES, HEADER_BYTES, Delay, Direction, Link, Profile, Rate
from impair.queue_options import kept, settings_of
from impair.queues import Cake, Fifo, FqCodel, Pie, Queue, Red, kind_of
from tests.net.impaired import ImpairedPath, ask

pytestmark = [pytest.mark.timeout(300, func_only=True)]
DOWN, UP = Direction.DOWNLINK, Direction.UPLINK
RATE, DELAY_S, SEED = Rate(10_000_000), 0.03, 7
PAYLOAD_BYTES = FRAME_BYTES - HEADER_BYTES
FRAME_S = FRAME_BYTES * 8 / RATE.rate_bps
QUEUES: list[Queue] = [
    Fifo(50),
    FqCodel(target_s=0.004, ecn=False),
    Cake(0.06),
    Red(200, 20, 60, 0.05, ecn=True),
    Pie(500, 0.01),
]
each_queue = pytest.mark.parametrize("queue", QUEUES, ids=kind_of)


@pytest.fixture(autouse=True)
def usable(path: ImpairedPath) -> None:
    """Skip on a kernel that lacks the disciplines, or the modules of which are not there."""
    profiles = [Profile(kind_of(queue), downlink=link_of(queue)).to_json() for queue in QUEUES]
    if refused := ask(path.router, "probe", profiles=profiles)["refused"]:
        assert path.engine != "uml", refused
        pytest.skip(f"this kernel has no bottleneck: {refused}")


def link_of(queue: Queue) -> Link:
    return Link(delay=Delay(DELAY_S), rate=RATE, queue=queue)


def shown(path: ImpairedPath, direction: Direction) -> dict[str, Any]:
    found: dict[str, Any] = ask(path.router, "show")[direction]
    return found


def when_empty(path: ImpairedPath) -> dict[str, Any]:
    """What `show` says once neither the downlink's queue nor netem behind it holds a packet."""
    for _ in range(100):
        state: dict[str, Any] = ask(path.router, "show")
        down = state["downlink"]
        if not any(each["counters"]["backlog_packets"] for each in (down, down["queue"])):
            return state
        time.sleep(0.05)
    pytest.fail("packets stay in the queues")


@each_queue
def test_a_queue_is_read_back_as_asked_and_every_frame_is_accounted_for(path: ImpairedPath, queue: Queue) -> None:
    """Twice as much as the rate carries: what is not queued is dropped, and counted."""
    configured = path.impair(DOWN, link_of(queue), SEED)
    assert configured["link"] == link_of(queue).to_json()
    asked = kept(queue, settings_of(queue, RATE.rate_bps))
    assert {name: configured["queue"]["settings"][name] for name in asked} == asked
    before = ask(path.router, "show")
    packets = 800
    train = path.train(DOWN, packets, interval_s=FRAME_S / 2, size_bytes=PAYLOAD_BYTES, expect=packets)
    after = when_empty(path)
    counted = after["downlink"]["queue"]["counters"]
    entered = after["ports"]["server"]["rx_frames"] - before["ports"]["server"]["rx_frames"]
    assert abs(entered - packets) <= 2
    assert abs(counted["packets"] + counted["drops"] - entered) <= 2
    assert 0 < train["received"] <= counted["packets"] + 2  # the last ones may come when nobody waits for them
    assert counted["drops"] > 0 or not isinstance(queue, Fifo | Red)  # the others may take longer than the train
    assert abs(after["downlink"]["counters"]["packets"] - counted["packets"]) <= 2  # netem, behind it, dropped none


def test_a_fifo_holds_its_packets_whatever_the_delay_behind_it(path: ImpairedPath) -> None:
    """netem's own queue shares its limit with the delay line; this one does not."""
    path.impair(DOWN, link_of(Fifo(50)), SEED)
    train = path.train(DOWN, 300, interval_s=FRAME_S / 3, size_bytes=PAYLOAD_BYTES, expect=300)
    waited_s = max(train["delays_s"]) - DELAY_S
    assert waited_s > 0.9 * 50 * FRAME_S  # and whatever a busy machine adds
    assert shown(path, DOWN)["queue"]["counters"]["drops"] > 0


def test_only_the_direction_that_asks_has_a_bottleneck_and_nothing_of_it_stays(path: ImpairedPath) -> None:
    path.apply(Link(), Link())
    ask(path.router, "clear")
    plain, odd = ask(path.router, "fingerprint"), ask(path.router, "examine")
    path.impair(DOWN, link_of(FqCodel()), SEED)
    assert shown(path, UP)["queue"] is None
    assert ask(path.router, "fingerprint") != plain
    assert any("queue-downlink" in each or "ingress" in each for each in ask(path.router, "examine"))
    path.apply(Link(), Link())  # the next trial's network
    assert shown(path, DOWN)["queue"] is None
    assert path.train(DOWN, 300, size_bytes=PAYLOAD_BYTES)["received"] == 300
    path.impair(DOWN, link_of(Cake()), SEED)
    ask(path.router, "clear")
    assert (ask(path.router, "fingerprint"), ask(path.router, "examine")) == (plain, odd)
