"""The replay of traces: each step at its moment, counted before and read back after, and the first rate at the end."""

from __future__ import annotations

import threading
import time
from itertools import count, islice, pairwise
from typing import Any

import pytest

from impair.messages import Course, QueueCounters, Traced
from impair.profile import Direction
from impair.queues import Fifo, Queue
from impair.router.bottleneck import Poke
from impair.router.replay import Line, Replay
from impair.router.schedule import at_once
from impair.trace import Trace

UP, DOWN = Direction.UPLINK, Direction.DOWNLINK
BASE_BPS = 8_000_000
FRAMES = (100, 0, 50)


class Kernel:
    """Bottlenecks that send ten frames between two looks, and always have one waiting."""

    def __init__(self, gone_after: int = 1000) -> None:
        self.changes: list[tuple[str, int, int | None]] = []
        self._looks = count(1)
        self._gone_after = gone_after

    def counters(self, device: str, queue: Queue) -> QueueCounters:
        del device, queue
        looks = next(self._looks)
        if looks > self._gone_after:
            raise OSError(2, "its pfifo is gone")
        return QueueCounters(10 * looks, 15_000 * looks, 0, 0, 1, 1514)

    def change(self, device: str, queue: Queue, rate_bps: int, bucket_bytes: int | None = None) -> None:
        del queue
        self.changes.append((device, rate_bps, bucket_bytes))

    def rate(self, device: str) -> tuple[int, int]:
        return next(rate for name, rate, _ in reversed(self.changes) if name == device), 0


class FakePoke(Poke):
    def __init__(self) -> None:
        self.passed = self.dropped = self.sent = 0

    def send(self) -> None:
        self.sent += 1


def line(direction: Direction = DOWN, *frames: int) -> Line:
    trace = Trace("x", "0", 0.02 * len(frames or FRAMES), frames or FRAMES)
    return Line(trace, f"queue-{direction}", Fifo(9), BASE_BPS, FakePoke(), Traced(direction))


def replayed(kernel: Any, *lines: Line, seconds: float = 0.15) -> Course:
    replay = Replay(lines, at_once, kernel)
    time.sleep(seconds)
    return replay.stop()


def test_each_step_is_made_at_its_moment_counted_and_read_back() -> None:
    own, kernel = line(), Kernel()
    (seen,) = replayed(kernel, own).traced
    steps = [*islice(own.trace.steps(), len(seen.at_s))]
    assert len(steps) >= 6, "it starts over"
    assert seen.at_s == pytest.approx([step.at_s for step in steps])
    assert seen.rates_bps == [step.rate_bps for step in steps]
    assert all(began_s >= at_s for at_s, began_s in zip(seen.at_s, seen.began_s, strict=True))
    assert all(done_s >= began_s for began_s, done_s in zip(seen.began_s, seen.done_s, strict=True))
    assert seen.bytes == [15_000 * number for number in range(1, len(steps) + 2)]
    assert len(seen.frames) == len(seen.waiting) == len(steps) + 1
    assert kernel.changes[0] == ("queue-downlink", steps[0].rate_bps, steps[0].tokens_bytes)
    assert kernel.changes[-1] == ("queue-downlink", BASE_BPS, None), "its first rate again"
    assert seen.ended_s
    assert seen.ended_s > 0.14
    assert seen.error == ""


def test_frames_that_wait_are_looked_at_again_when_the_rate_rises() -> None:
    own = line(DOWN, 100, 0, 50, 50)
    (seen,) = replayed(Kernel(), own).traced
    rates = [BASE_BPS, *seen.rates_bps]
    rises = sum(after > before for before, after in pairwise(rates))
    assert own.poke.sent == rises + 1, "and at the end"  # type: ignore[attr-defined]


def test_two_traces_run_side_by_side() -> None:
    course = replayed(Kernel(), line(DOWN), line(UP, 10, 20))
    assert [each.direction for each in course.traced] == [DOWN, UP]
    assert all(len(each.at_s) >= 5 for each in course.traced)


def test_a_bottleneck_that_is_gone_ends_it_and_is_reported() -> None:
    (seen,) = replayed(Kernel(gone_after=2), line()).traced
    assert len(seen.at_s) == 2
    assert "gone" in seen.error


def test_a_clock_that_did_not_start_changes_nothing() -> None:
    kernel: Any = Kernel()

    def never(stopped: threading.Event) -> None:
        stopped.wait()

    replay = Replay([line()], never, kernel)
    assert replay.stop() == Course(None)
    assert kernel.changes == []
