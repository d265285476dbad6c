"""Measured CPU demand of blocks, and which of them may therefore run in parallel. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping

from headwind.arm import Arm
from headwind.metric import BUSY
from headwind.model import Condition, Result
from headwind.proof.processors import ALONE_SHARE, lacked_cpus
from headwind.trial.overlap import MIN_GAP_S
from impair.profile import Direction

HEADROOM = 0.5  # of the CPUs may be busy with trials, on average; preparing and verifying them is not included
UNKNOWN_NEED = 0.3  # CPUs, for a condition without measurements that runs in parallel: rather too many than too few
USUAL_NEED = 0.08  # CPUs, for forecasts: conditions of the default matrix that do not run alone average 0.06
LANES_PER_CORE = 6  # trials that wait for timers need a tenth of a CPU or less; with 4 two fast CPUs were 68 % idle
LANE_BYTES = 600 << 20  # a user-mode kernel of 384 MB, nginx, a client and the agents of three containers
BOUND_SHARE = 0.5  # of the trials of a condition: if this share was CPU-bound, its blocks run alone


def most_lanes(asked: int, cores: int, free_bytes: int) -> int:
    """Number of lanes for a host: `asked`, or with AUTO as many as CPUs and memory (bytes) allow.

    The demand of the blocks decides, block by block, how many of them are used.
    """
    return asked or max(1, min(LANES_PER_CORE * cores, free_bytes // LANE_BYTES))


class CpuDemand:
    """The CPUs that each condition keeps busy, on average over its trials; the estimate improves with every trial.

    `earlier` are results of earlier runs: `share` uses them for conditions without results of this run.
    """

    def __init__(
        self,
        cores: int,
        results: Iterable[Result] = (),
        trial_s: Callable[[Condition], float] = lambda _: math.inf,
        earlier: Collection[Result] = (),
    ) -> None:
        self._cores, self._trial_s = cores, trial_s  # the second: mean wall time of a condition's trials, by forecast
        self._earlier = CpuDemand(cores, earlier, trial_s) if earlier else None
        self._seen: dict[str, dict[Arm, list[float]]] = {}  # by condition id
        self._bound: dict[str, list[bool]] = {}  # by condition id: whether each trial lacked CPUs or was CPU-bound
        self._alone: dict[str, bool] = {}  # by condition id: `runs_alone`, until one of its trials has a result
        for result in results:
            self.learn(result)

    def learn(self, result: Result) -> None:
        """Record the CPU use of a trial, if it was measured.

        If CPUs were short in half of its trials, a condition runs alone: it needs all of them itself, or other lanes or
        programs took them. Its blocks then run alone until more than half of all its trials had enough CPUs.
        """
        condition, busy = result.trial.block.condition.id, result.metrics.get(BUSY.key)
        if busy is not None:
            self._seen.setdefault(condition, {}).setdefault(result.trial.arm, []).append(busy)
            self._bound.setdefault(condition, []).append(lacked_cpus(result) or result.is_cpu_bound)
            self._alone.pop(condition, None)

    def processors(self, condition: Condition) -> float | None:
        """Average number of CPUs that a block of the condition keeps busy; None before any measurement."""
        seen = self._seen.get(condition.id)
        return statistics.fmean(statistics.fmean(values) for values in seen.values()) if seen else None

    def is_short(self, condition: Condition) -> bool:
        """True if a condition runs alone only because CPUs were short in half of its trials."""
        is_bound = len(self._bound.get(condition.id, ())) > 1 and self._is_bound(condition.id)
        return is_bound and not changes_in_time(condition)

    def _is_bound(self, name: str) -> bool:
        return statistics.fmean(self._bound.get(name, [False])) >= BOUND_SHARE

    def runs_alone(self, condition: Condition) -> bool:
        """True if no other block may run in parallel: it is known to need much CPU, or its network changes.

        A change must be made within milliseconds. In parallel blocks on two CPUs half of the trials missed that.
        """
        name = condition.id
        if name not in self._alone:  # a long run has thousands of blocks, asked after every trial
            most = max((statistics.fmean(values) for values in self._seen.get(name, {}).values()), default=0.0)
            self._alone[name] = changes_in_time(condition) or self._is_bound(name) or most > ALONE_SHARE * self._cores
        return self._alone[name]

    def share(self, condition: Condition, lanes: int) -> float:
        """Share of this host's time that a block of the condition takes, if others run on all lanes.

        It is above 1 if its trials are shorter than the time between two starts on different lanes.
        """
        if self._earlier and not self.is_known(condition):
            return self._earlier.share(condition, lanes)
        if lanes == 1 or self.runs_alone(condition):
            return 1.0
        busy = self.processors(condition)
        overlapped = max(1 / lanes, (USUAL_NEED if busy is None else busy) / (HEADROOM * self._cores))
        return max(min(1.0, overlapped), MIN_GAP_S / self._trial_s(condition))

    def host_s(self, work: Mapping[Condition, float], lanes: int) -> float:
        """Seconds that this host takes, on this number of lanes, for these seconds of work in each condition."""
        return sum(seconds * self.share(condition, lanes) for condition, seconds in work.items())

    def lanes_for(self, conditions: Iterable[Condition], lanes: int) -> int:
        """Number of these lanes that the conditions use: one if all of them run alone."""
        return lanes if any(self.share(each, lanes) < 1.0 for each in conditions) else 1

    def is_known(self, condition: Condition) -> bool:
        """True if its demand was measured."""
        return condition.id in self._seen

    def is_next_stranger(self, condition: Condition, running: Collection[Condition]) -> bool:
        """True if its demand is unmeasured, and it may run once there is room."""
        unmeasured = [each for each in running if not self.is_known(each)]
        return not self.is_known(condition) and condition not in running and len(unmeasured) < self._cores

    def room_for(self, condition: Condition, running: Collection[Condition]) -> bool:
        """True if there are enough CPUs to start a block of the condition in parallel to the running ones.

        Unmeasured conditions may have one running block each, and together one per CPU.
        """
        if condition in running and not self.is_known(condition):
            return False
        unmeasured = [each for each in (condition, *running) if not self.is_known(each)]
        if any(self.runs_alone(each) for each in (condition, *running)):
            return not running
        busy = sum(self.processors(each) or 0.0 for each in (condition, *running)) + UNKNOWN_NEED * len(unmeasured)
        return len(unmeasured) <= self._cores and busy <= HEADROOM * self._cores


def changes_in_time(condition: Condition) -> bool:
    """True if the network of a condition changes during a trial."""
    return any(map(condition.profile.changes, Direction))
