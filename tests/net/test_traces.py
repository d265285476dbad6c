"""Rate traces over real packets: the router's counters against the trace, step by step."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest
from pydantic import TypeAdapter

from headwind.model import Check
from headwind.proof.spans import LATEST_SHARE
from headwind.proof.traces import check_trace
from impair.messages import Course, Traced
from impair.profile import FRAME_BYTES, HEADER_BYTES, Delay, Direction, Link, Profile, Rate
from impair.queues import Fifo, FqCodel, Pie, Queue, kind_of
from impair.trace import Trace
from tests.net.impaired import ImpairedPath, ask

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.alone]  # steps of 100 ms, on time
DOWN = Direction.DOWNLINK
COURSE = TypeAdapter(Course)
PAYLOAD_BYTES = FRAME_BYTES - HEADER_BYTES
# Fast and slow, then a blackout of 300 ms with single frames after it: 6.5 Mbit/s on average.
TRACE = Trace("x.trace", "0" * 64, 1.6, (80, 120, 90, 60, 30, 10, 3, 0, 0, 0, 1, 1, 40, 150, 160, 110))
PACKETS, TRIES = 950, 10  # packets: more than the trace carries before it starts over
QUEUES: list[Queue] = [Fifo(1000), FqCodel(target_s=2.0, interval_s=3.0, ecn=False), Pie(1000, 2.0)]


@pytest.fixture(autouse=True)
def usable(path: ImpairedPath) -> None:
    """Skip on a kernel without bottlenecks."""
    profiles = [Profile(kind_of(queue), downlink=link_of(queue)).to_json() for queue in QUEUES]
    if refused := ask(path.router, "probe", profiles=profiles)["refused"]:
        assert path.engine != "uml", refused
        pytest.skip(f"this kernel has no bottleneck: {refused}")


def link_of(queue: Queue, rate_bps: int = TRACE.mean_bps) -> Link:
    return Link(delay=Delay(0.01), rate=Rate(rate_bps), queue=queue)


def replayed(path: ImpairedPath, queue: Queue) -> tuple[Traced, dict[str, Any]]:
    """What the router reports of a trace under more frames than it carries, and of its queue after that.

    If sender and router share a kernel, the frames that wait count as the sender's, and it goes on when they are gone.
    """
    path.impair(DOWN, link_of(queue))
    ask(path.router, "start_replay", traces={DOWN: TRACE.to_json()}, clock="trial")
    end_s = time.monotonic() + TRACE.length_s + 0.05
    _, sending = path.start_train(DOWN, PACKETS, 0.0002, PAYLOAD_BYTES)
    path.end("server").wait(sending, 30.0)
    time.sleep(max(0.0, end_s - time.monotonic()))
    (traced,) = COURSE.validate_python(ask(path.router, "stop_schedule")).traced
    assert traced.error == ""
    return traced, ask(path.router, "show")[DOWN]


def is_punctual(traced: Traced) -> bool:
    late_s = sorted(done_s - at_s for done_s, at_s in zip(traced.done_s, traced.at_s, strict=True))
    return late_s[-2] < LATEST_SHARE * TRACE.step_s


def judged(path: ImpairedPath, queue: Queue) -> tuple[Traced, dict[str, Any], Check]:
    """A replay with the queue after it, and its check; one in time if there is one: a busy machine is late at times."""
    for attempt in count(1):
        traced, state = replayed(path, queue)
        checks = {check.quantity: check for check in check_trace(TRACE, traced)}
        assert checks["other_rates"].passed
        delivered = checks["delivered_ratio"]
        if attempt == TRIES or (delivered.measured is not None and delivered.passed and is_punctual(traced)):
            return traced, state, delivered
    raise AssertionError("counting has an end")


@pytest.mark.parametrize("queue", QUEUES, ids=kind_of)
def test_a_full_queue_delivers_the_bytes_of_the_trace(path: ImpairedPath, queue: Queue) -> None:
    traced, state, delivered = judged(path, queue)
    assert delivered.passed, delivered.note
    assert delivered.measured is not None
    assert is_punctual(traced)
    (dark,) = (number for number, at_s in enumerate(traced.at_s) if at_s == pytest.approx(0.7))
    assert traced.bytes[dark + 1] - traced.bytes[dark] <= 2 * FRAME_BYTES, "in 300 ms"
    assert state["link"] == link_of(queue).to_json(), "its first rate again"


def test_a_bottleneck_changes_its_rate_in_place_during_a_schedule(path: ImpairedPath) -> None:
    """The frames that wait go on at the new rate, at once; netem behind it stays as it is."""
    slow, fast = link_of(Fifo(1000), 200_000), link_of(Fifo(1000), 20_000_000)
    actions = [
        {"at_s": at_s, "kind": "change", "direction": DOWN, "link": link.to_json(), "seed": 5 if path.seeded else None}
        for at_s, link in ((0.3, fast), (0.6, slow))
    ]
    for _ in range(TRIES):  # a busy machine loses frames, or sends them late
        path.impair(DOWN, slow)
        ask(path.router, "start_schedule", actions=actions, clock="trial")
        train = path.train(DOWN, 100, size_bytes=PAYLOAD_BYTES, expect=100, patience_s=0.6)
        time.sleep(0.4)  # until the second change
        course = COURSE.validate_python(ask(path.router, "stop_schedule"))
        assert [each.error for each in course.carried] == ["", ""]
        states = [each.after.downlink for each in course.carried]
        assert [state.link for state in states if state] == [fast, slow]
        counted = ask(path.router, "show")[DOWN]
        if len(train["sequences"]) == 100:  # at the first rate they take 6 s
            assert counted["queue"]["counters"]["packets"] == pytest.approx(100, abs=2)
            assert counted["counters"]["packets"] == pytest.approx(100, abs=2)
            return
    raise AssertionError(f"not all of 100 frames arrived in any of {TRIES} tries")
