"""What blocks need of the processors, as measured, and which of them may therefore run side by side. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable

from headwind.arm import Arm
from headwind.metric import BUSY
from headwind.model import Condition, Result
from headwind.proof.processors import lacked_processors

HEADROOM = 0.5  # of the processors may be busy with trials, on average; what prepares and proves them comes on top
UNKNOWN_NEED = 0.3  # processors, of a condition of which nothing is known
LANES_PER_CORE = 3  # trials that wait for timers need a tenth of a processor and less
LANE_BYTES = 600 << 20  # a user-mode kernel of 384 MB, nginx, a client and the agents of three containers
BOUND_SHARE = 0.5  # of the trials of a condition: where processors limited so many, its blocks run alone
ALONE_SHARE = 0.4  # of the processors: a block that needs more is soon bound by them, and runs alone


def most_lanes(asked: int, cores: int, free_bytes: int) -> int:
    """How many lanes a host may have: as many as were asked for, or with AUTO as many as processors and memory allow.

    How many of them are used is decided by what blocks need, block by block.
    """
    return asked or max(1, min(LANES_PER_CORE * cores, free_bytes // LANE_BYTES))


class Needs:
    """The processors that each condition keeps busy, on average over its trials; the better the more were seen."""

    def __init__(self, cores: int, results: Iterable[Result] = ()) -> None:
        self._cores = cores
        self._seen: dict[str, dict[Arm, list[float]]] = {}  # by condition id
        self._bound: dict[str, list[bool]] = {}  # by condition id: whether processors were short in each trial
        for result in results:
            self.learn(result)

    def learn(self, result: Result) -> None:
        """Remember what a trial used; one that tells nothing teaches nothing.

        If processors were short in half of its trials, nothing runs beside a condition: it needs them itself, or other
        lanes or programs took them. Its blocks then run alone until it has had them in more than half of all trials.
        """
        condition, busy = result.trial.block.condition.id, result.metrics.get(BUSY.key)
        if busy is not None:
            self._seen.setdefault(condition, {}).setdefault(result.trial.arm, []).append(busy)
            self._bound.setdefault(condition, []).append(lacked_processors(result) or result.is_processor_bound)

    def processors(self, condition: Condition) -> float | None:
        """How many a block of the condition keeps busy; None while nothing is known of it."""
        seen = self._seen.get(condition.id)
        return statistics.fmean(statistics.fmean(values) for values in seen.values()) if seen else None

    def runs_alone(self, condition: Condition) -> bool:
        """Whether it is known to need so much that nothing may run beside it."""
        seen = self._seen.get(condition.id, {})
        most = max((statistics.fmean(values) for values in seen.values()), default=0.0)
        bound = statistics.fmean(self._bound.get(condition.id, [False]))
        return bound >= BOUND_SHARE or most > ALONE_SHARE * self._cores

    def share(self, condition: Condition, lanes: int) -> float:
        """What share of this host's time a block of the condition takes, beside others on so many lanes."""
        busy = self.processors(condition)
        beside = max(1 / lanes, (UNKNOWN_NEED if busy is None else busy) / (HEADROOM * self._cores))
        return 1.0 if self.runs_alone(condition) else min(1.0, beside)

    def is_known(self, condition: Condition) -> bool:
        """Whether anything is."""
        return condition.id in self._seen

    def is_next_stranger(self, condition: Condition, running: Collection[Condition]) -> bool:
        """Whether nothing is known of it, and it may run once there is room."""
        strangers = [each for each in running if not self.is_known(each)]
        return not self.is_known(condition) and condition not in running and len(strangers) < self._cores

    def room_for(self, condition: Condition, running: Collection[Condition]) -> bool:
        """Whether a block of the condition may start beside these, as far as processors go.

        Of those of which nothing is known there may be one for each processor, and one block of each.
        """
        if condition in running and not self.is_known(condition):
            return False
        strangers = [each for each in (condition, *running) if not self.is_known(each)]
        if any(self.runs_alone(each) for each in (condition, *running)):
            return not running
        busy = sum(self.processors(each) or 0.0 for each in (condition, *running)) + UNKNOWN_NEED * len(strangers)
        return len(strangers) <= self._cores and busy <= HEADROOM * self._cores
