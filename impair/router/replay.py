"""Replays rate traces while a client runs: changes rates of bottlenecks in place, and stamps and counts each step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge

from impair.messages import Course, Traced
from impair.queues import Queue
from impair.router.bottleneck import Bottleneck, Poke
from impair.router.schedule import Timed
from impair.trace import Trace, TraceStep


@dataclass(slots=True)
class Line:
    """A direction's trace and its bottleneck, which has base_bps before and after; `seen`: its replay so far."""

    trace: Trace
    device: str
    queue: Queue
    base_bps: int
    poke: Poke
    seen: Traced


class Replay(Timed):
    """Replays the traces of `lines` from when the clock starts until `stop`; see Timed for `start`."""

    def __init__(
        self, lines: Sequence[Line], start: Callable[[threading.Event], float | None], bottleneck: Bottleneck
    ) -> None:
        self._lines, self._bottleneck = lines, bottleneck
        super().__init__(start)

    def stop(self) -> Course:
        """Stop, give the bottlenecks their first rates again, and return how the traces were replayed."""
        course = super().stop()
        for line in self._lines:
            if self._clock_s is not None:
                self._end(line, self._clock_s)
        return replace(course, traced=[line.seen for line in self._lines] if self._clock_s is not None else [])

    def _play(self, clock_s: float) -> None:
        for line, step in self._steps():
            if not self._is_due(clock_s + step.at_s):
                return
            try:
                self._take(line, step, clock_s)
            except OSError as error:
                line.seen = replace(line.seen, error=str(error))
                return

    def _steps(self) -> Iterator[tuple[Line, TraceStep]]:
        """The steps of all lines in the order of their moments."""
        return merge(*map(_steps_of, self._lines), key=lambda each: each[1].at_s)

    def _take(self, line: Line, step: TraceStep, clock_s: float) -> None:
        """Begin a step at its moment: count, change the rate, read it back. Raises OSError."""
        seen, rises = line.seen, step.rate_bps > (line.seen.rates_bps[-1] if line.seen.rates_bps else line.base_bps)
        time.sleep(max(0.0, clock_s + step.at_s - time.monotonic()))
        began_s = time.monotonic() - clock_s
        self._count(line)
        self._bottleneck.change(line.device, line.queue, step.rate_bps, step.tokens_bytes)
        done_s = time.monotonic() - clock_s
        if rises and seen.waiting[-1]:
            line.poke.send()
        for moments, moment_s in ((seen.at_s, step.at_s), (seen.began_s, began_s), (seen.done_s, done_s)):
            moments.append(round(moment_s, 6))
        seen.rates_bps.append(self._bottleneck.rate(line.device)[0])

    def _count(self, line: Line) -> None:
        counters = line.poke.without(self._bottleneck.counters(line.device, line.queue))
        line.seen.frames.append(counters.packets)
        line.seen.bytes.append(counters.bytes)
        line.seen.waiting.append(counters.backlog_bytes)

    def _end(self, line: Line, clock_s: float) -> None:
        """Count for the last time, and give a bottleneck its first rate again."""
        try:
            line.seen = replace(line.seen, ended_s=round(time.monotonic() - clock_s, 6))
            self._count(line)
            self._bottleneck.change(line.device, line.queue, line.base_bps)
            line.poke.send()
        except OSError as error:
            line.seen = replace(line.seen, error=line.seen.error or str(error))


def _steps_of(line: Line) -> Iterator[tuple[Line, TraceStep]]:
    return ((line, step) for step in line.trace.steps())
