"""The scheduler: it returns the next block, and learns from results."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from headwind.clock import CLOCK, Clock
from headwind.model import AUTO, Block, Condition, Matrix, Result
from headwind.plan.adaptive import choices, search_blocks
from headwind.plan.block_order import plan_blocks
from headwind.plan.cpu_demand import CpuDemand
from headwind.plan.forecast import Forecast, block_seconds, lanes_that_pay
from headwind.plan.minimum import affordable, minimum_s
from headwind.proof.attempts import is_unproven, runs_again
from headwind.proof.spans import ended_early
from headwind.trial.block import Task
from headwind.verdicts.judgement import Judge, Judgement
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.pending import Open

START_SHARE = 0.1  # of the time left: above it, starting lanes must pay off, even if the matrix sets their number
MOST_UNVERIFIED, LEAST_ATTEMPTS = 0.5, 6  # of the attempts in a condition, and from how many on that counts
SHORT_S = 10.0  # a new block that takes no longer is tried alone first: it may need all CPUs


class Scheduler:
    """Call `next` until it returns None while nothing runs; call `tell` after each trial.

    First comes the minimum of the matrix, for as many conditions as there is time for (plan/minimum.py), then the
    choice of adaptive repetition. A block is returned only if it is expected to end within `left_s`, and never
    split; one that was interrupted runs again whole (`incomplete`). With one lane the minimum comes in the order of
    the plan. With several, blocks run in parallel if there are enough CPUs (plan/cpu_demand.py); those that need
    them all run alone, while no other lane is up: idle ones lengthen their trials (docs/noise.md). They come first, for
    a share of the time (`_alone_s`), and again once no parallel block is left.
    `results` are those of a resumed run, `judge` one that already has them; `earlier` are those of earlier runs, of
    which the forecasts use durations and CPU demand.
    """

    def __init__(
        self,
        matrix: Matrix,
        results: Collection[Result] = (),
        left_s: Callable[[], float] = lambda: math.inf,
        lanes: int = 1,
        cores: int = 1,
        clock: Clock = CLOCK,
        judge: Judge | None = None,
        earlier: Collection[Result] = (),
    ) -> None:
        self.matrix, self.lanes, self.left_s, self._clock = matrix, lanes, left_s, clock
        self._most_lanes = lanes
        self.start_s = 0.0  # for the further lanes that are wanted and not up yet
        self.judge = judge or Judge(matrix, results)
        self.forecast = Forecast(matrix.rules, earlier=earlier)
        self.needs = CpuDemand(cores, trial_s=self._trial_s, earlier=earlier)
        self._attempts: dict[str, int] = {}  # trial id -> number of attempts
        self._attempted, self._unproven = Counter[str](), Counter[str]()  # attempts by condition id: all, not verified
        self._done: set[str] = set()  # ids of trials that need no further attempt
        # The minimum and the blocks chosen beyond it that are not done; a search has no minimum.
        self._planned = [] if matrix.find else plan_blocks(matrix)
        self._again: dict[str, Block] = {}  # by id: blocks that must run again once they have ended
        self._due: set[str] = set()  # ids of blocks that are planned again
        self._left: dict[str, Task] = {}  # by block id: `_left_of`, until one of its trials has a result
        self._whole_s: dict[str, float] = {}  # by condition id: `_block_s`, until one of its trials has a result
        self._alone, self._is_first_turn = True, True  # whether blocks that run alone have their turn, their first one
        self._began_s, self._whole_run_s = clock.monotonic(), left_s()
        self._trial_at: dict[str, float] = {}  # block id -> time at which its current trial began
        self._blocks = WholeBlocks(results)
        self._judgement: Judgement | None = None  # of all whole blocks
        self._early: frozenset[str] | None = None  # see `early`
        self._lanes_worth: int | None = None  # by the forecast after them
        self._learn(results)

    def tell(self, results: Collection[Result]) -> None:
        """Take in results of trials, in the order in which they ended."""
        if whole := self._blocks.completed(results):
            self.judge.tell(whole)
            self._judgement = self._lanes_worth = self._early = None
        self._learn(results)

    def _learn(self, results: Collection[Result]) -> None:
        """Learn durations, CPU demand, and which trials are done."""
        for result in results:
            self.forecast.learn(result)
            self.needs.learn(result)
            trial = result.trial
            self._attempted[trial.block.condition.id] += 1
            self._unproven[trial.block.condition.id] += is_unproven(result)
            self._attempts[trial.id] = result.attempt + 1
            (self._done.discard if runs_again(result) else self._done.add)(trial.id)
            self._trial_at[trial.block.id] = self._clock.monotonic()
            self._left.pop(trial.block.id, None)
            self._whole_s.pop(trial.block.condition.id, None)

    def repeat(self, blocks: Collection[Block]) -> None:
        """Run these blocks again, whole and before others: their results are not about a protocol."""
        self._again |= {block.id: block for block in blocks}

    @property
    def incomplete(self) -> list[Block]:
        """Planned blocks that were begun and are not done.

        If the run was interrupted, they need `repeat`: trials of a block are compared because they run back to back.
        """
        return [
            block for block in self._planned
            if self._left_of(block).attempts and any(trial.id in self._attempts for trial in block.trials())
        ]  # fmt: skip

    def next(self, in_flight: Collection[Task] = (), elsewhere: Collection[Task] = ()) -> Task | None:
        """The block to start now on a host with these running blocks; blocks on other hosts need no room there.

        None: no block can start before one of these has ended, or the run is over.
        """
        running = [task.block for task in in_flight]
        taken = [*running, *(task.block for task in elsewhere)]
        self._reopen({block.id for block in taken})
        if any(map(self._runs_alone, running)):
            return None
        waiting = self._candidates(taken)
        if running:
            block = None if self._alone else self._parallel(running, taken, waiting)
        elif self.lanes == 1 or self.matrix.find:
            block = next(iter(waiting or self._chosen(taken, waiting)), None)
            self._alone = block is not None and self._starts_alone(block)
        else:
            block = self._of_turn(taken, waiting)
        if block is None:
            return None
        if block not in self._planned:
            self._planned.append(block)
        self._trial_at[block.id] = self._clock.monotonic()
        return self._left_of(block)

    def worth(
        self, up: int, most: int, up_s: float, left_s: float | None = None, running: Collection[Task] = ()
    ) -> int:
        """Number of lanes that should be up, of `most`, if `up` are and each further one takes `up_s` to start.

        `lanes` is the number that gets most done within `left_s`, or else the time left, by the forecast after the last
        whole block. A number that the matrix sets is used without forecast, unless starting that many would take a
        large part of the time. Lanes come up while nothing runs: as long as the `running` blocks take longer than the
        start of the further lanes, no lane should wait for them, and `up` is returned. While it is the turn of blocks
        that run alone, 1 is returned.
        """
        within_s = left_s or self.left_s()
        if self.matrix.lanes != AUTO and up_s * (self._most_lanes - up) <= START_SHARE * within_s:
            wanted = self._most_lanes
        else:
            if self._lanes_worth is None:
                work_s = partial(self.needs.host_s, self._work())
                self._lanes_worth = lanes_that_pay(work_s, up, max(up, most), up_s, within_s)
            wanted = max(up, self._lanes_worth)
        start_s = up_s * (wanted - up)
        self.lanes, self.start_s = (wanted, start_s) if self._drained_s(running) <= start_s else (up, 0.0)
        return 1 if self._alone and not self.matrix.find else self.lanes

    def _drained_s(self, running: Collection[Task]) -> float:
        """Seconds until these blocks have ended, by the forecast; not above 0 if none runs.

        Infinite if the demand of one is not measured.
        """
        if not all(self.needs.is_known(task.block.condition) for task in running):
            return math.inf
        return max((self._rest_s(task.block) for task in running), default=-math.inf)

    def _rest_s(self, block: Block) -> float:
        """Seconds until a running block has ended: of its current trial, and of those that follow.

        A trial that should have ended takes another one's time: late ones are those that wait for timeouts.
        """
        current, *later = self._left_of(block).trials or (None,)
        if current is None:
            return 0.0
        left_s = self._trial_at[block.id] + self.forecast.trial_s(current) - self._clock.monotonic()
        return (left_s if left_s > 0 else self._trial_s(block.condition)) + self.forecast.trials_s(later)

    def _work(self) -> Mapping[Condition, float]:
        """Seconds that each condition takes on one lane: the planned blocks, and those that may follow."""
        left = defaultdict[str, float](float)  # by id: the hash of a condition takes a while
        for block in self._planned:
            left[block.condition.id] += self._left_s(block)
        for item in self._open if self.matrix.repeat.is_adaptive else ():
            left[item.condition.id] += self._beyond_s(item)
        return {condition: left[condition.id] for condition in self.matrix.conditions if condition.id in left}

    @property
    def counts(self) -> tuple[int, int]:
        """Number of trials that are done, and of those plus the planned ones known so far."""
        left = sum(len(self._left_of(block).attempts) for block in self._planned)
        return len(self._done), len(self._done) + left

    @property
    def comparisons(self) -> int:
        """Number of comparisons of protocols, in all conditions."""
        return sum(not pair.is_check for item in self.matrix.conditions for pair in pairs_of(self.matrix, item))

    def settled(self) -> dict[tuple[str, Pair], str]:
        """The sure comparisons of protocols, by the condition's id: `loss: h3 beats h1`."""
        return {
            (line.condition.id, line.pair): f"{self.matrix.name_of(line.condition)}: {line.settled_text}"
            for line in self._judged.compared
            if line.is_sure and line.condition.id not in self.early
        }

    @property
    def unverified(self) -> list[str]:
        """Ids of the conditions of which most attempts were not verified: others will hardly be. They come last."""
        return [
            name for name, count in self._attempted.items()
            if count >= LEAST_ATTEMPTS and self._unproven[name] > MOST_UNVERIFIED * count
        ]  # fmt: skip

    def expected_s(self, lanes: int) -> float:
        """Seconds until the end of the run on this number of lanes: at most its time left."""
        return max(0.0, min(self.needs.host_s(self._work(), max(1, lanes)), self.left_s()))

    def minimum_s(self) -> dict[str, float]:
        """Seconds for which each condition, by id, occupies this host until a comparison in it can be settled.

        Without conditions in which every comparison is settled.
        """
        done = {condition.id: len(self.judge.counted_rows(condition.id)) for condition in self.matrix.conditions}
        costs = minimum_s(self.matrix, self.forecast, self.needs, self.lanes, done)
        still_open = {item.condition.id for item in self._open} if any(done.values()) else costs.keys()
        return {name: cost_s for name, cost_s in costs.items() if cost_s or name in still_open}

    def lanes_for(self, conditions: Collection[str]) -> int:
        """Number of lanes that the conditions with these ids use: one if all of them run alone."""
        return self.needs.lanes_for([each for each in self.matrix.conditions if each.id in conditions], self.lanes)

    @property
    def _judged(self) -> Judgement:
        """The judgement of all whole blocks, computed once until there is another one."""
        if self._judgement is None:
            self._judgement = self.judge.judgement(self._block_s, complete=False, exhausted=False)
        return self._judgement

    @property
    def early(self) -> frozenset[str]:
        """Ids of conditions whose trials mostly end before their network changes: nothing can be sure there."""
        if self._early is None:
            changing = [each.id for each in self.matrix.conditions if not each.profile.is_steady]
            rows = (row for name in changing for row in self.judge.rows_of(name).values())
            self._early = frozenset(ended_early(result for row in rows for result in row.values()))
        return self._early

    @property
    def _open(self) -> list[Open]:
        """The open comparisons that more blocks may settle."""
        return [item for item in self._judged.open if item.condition.id not in self.early]

    def _beyond_s(self, item: Open) -> float:
        """Seconds forecast for a condition's verdicts, beyond the minimum that is planned anyway."""
        until = item.n + (item.outlook.blocks or LONGEST_FORECAST_BLOCKS)
        return max(0, min(until, self.matrix.repeat.most) - max(item.n, self.matrix.repeat.least)) * item.block_s

    def _reopen(self, running: Collection[str]) -> None:
        """Plan blocks that must run again and do not run any more, in front; none of their trials counts as done."""
        blocks = [block for name, block in self._again.items() if name not in running]
        for block in blocks:
            del self._again[block.id]
            self._due.add(block.id)
            self._done -= {trial.id for trial in block.trials()}
            self._left.pop(block.id, None)
        self._planned = [*blocks, *(block for block in self._planned if block not in blocks)]

    def _candidates(self, running: Sequence[Block]) -> list[Block]:
        """Blocks that must run again, with their time reserved, then the minimum, as far as it fits into the rest.

        They are in the order in which they should run.
        """
        self._planned = [block for block in self._planned if self._left_of(block).attempts]
        self._due &= {block.id for block in self._planned}
        idle = [block for block in self._planned if block not in running]
        whole_s = self.left_s()
        left_s = whole_s - sum(self._left_s(block) for block in idle if block.id in self._due)
        waiting = [
            block for block in idle
            if self._left_s(block) <= (whole_s if block.id in self._due else left_s)
        ]  # fmt: skip
        if self.lanes > 1:
            waiting.sort(key=self._order(waiting, running))
        doubtful = {*self.unverified}
        waiting.sort(key=lambda block: block.id not in self._due and block.condition.id in doubtful)  # stable
        return self._affordable(waiting, left_s, doubtful) if self.matrix.repeat.is_adaptive else waiting

    def _affordable(self, waiting: list[Block], left_s: float, doubtful: Collection[str]) -> list[Block]:
        """The blocks of conditions whose whole minimum fits into the time, and blocks that must run again.

        If those are not all, they come one condition after the other, the shortest first: forecasts err, and complete
        conditions stay complete. So a new condition is not tried as long as a known one comes first. The `doubtful`
        conditions come last.
        """
        idle = [block for block in self._planned if block.id not in self._due and block.condition.id not in doubtful]
        costs: dict[str, float] = {}
        for block in idle:
            cost_s = self._left_s(block) * self.needs.share(block.condition, self.lanes)
            costs[block.condition.id] = costs.get(block.condition.id, 0.0) + cost_s
        whole = affordable(costs, left_s - self.start_s)
        if len(whole) == len(costs):
            return waiting
        kept = [block for block in waiting if block.id in self._due or block.condition.id in whole]
        kept.sort(key=lambda block: -1 if block.id in self._due else whole.index(block.condition.id))
        is_new = bool(kept) and self._starts_alone(kept[0])
        return [block for block in kept if is_new or not self._starts_alone(block) or self._runs_alone(block)]

    def _chosen(self, running: Sequence[Block], waiting: Sequence[Block]) -> list[Block]:
        """Blocks beyond the minimum, of the kind whose turn it is."""
        if not (self.matrix.find or self.matrix.repeat.is_adaptive):
            return []
        left_s = self._beyond_minimum_s(waiting)
        if self.matrix.find:
            return [] if waiting else search_blocks(self.matrix, self.judge, self._block_s, self._done, running, left_s)
        still_open = [item for item in self._open if self.lanes == 1 or self._has_turn(item.condition)]
        promising = {item.condition.id for item in self._judged.promising}
        last = {item.condition.id for item in still_open} - promising
        return choices(self.matrix, still_open, self._done, [*running, *waiting], left_s, self._at_once, last)

    def _has_turn(self, condition: Condition) -> bool:
        return self.needs.runs_alone(condition) == self._alone

    def _beyond_minimum_s(self, waiting: Collection[Block]) -> float:
        """Seconds that blocks beyond the minimum may take now; the minimum of the other kind keeps its time.

        The first turn of blocks that run alone has a share of the run: that of their conditions among all open ones.
        """
        left_s = self.left_s() - sum(self._left_s(block) for block in waiting if block.id in self._due)
        if self.lanes == 1 or self.matrix.find:
            return left_s
        for block in waiting:
            if block.id not in self._due and not self._has_turn(block.condition):
                left_s -= self._left_s(block) * self.needs.share(block.condition, self.lanes)
        if not self._alone:
            return left_s
        still_open = {item.condition for item in self._open}
        alone = sum(map(self.needs.runs_alone, still_open))
        turn_ends_s = self._began_s + self._whole_run_s * alone / len(still_open) if alone else 0.0
        now = self._clock.monotonic()
        return min(left_s - self.start_s, turn_ends_s - now if self._is_first_turn else math.inf)

    def _at_once(self, condition: Condition) -> int:
        """Number of blocks of a condition that may run in parallel."""
        return 1 if self.needs.runs_alone(condition) else max(1, self.lanes)

    def _order(self, waiting: Sequence[Block], running: Sequence[Block]) -> Callable[[Block], tuple[float, ...]]:
        """Sort key: blocks that must run again first; those in which nothing can be sure last (`early`).

        The others by square, so that drift affects all conditions equally.

        In a square, of unmeasured conditions the shortest comes first: it is soon known. Of the others the condition
        that takes longest in all, so that the square is soon over, and a running one last. Conditions that run alone
        take turns block by block.
        """
        busy = {block.condition.id for block in running}
        left = Counter((block.condition.id, block.index // len(block.order)) for block in waiting)
        known = {each.id: self.needs.is_known(each) for each in self.matrix.conditions}

        def key(block: Block) -> tuple[float, ...]:
            square, condition, name = block.index // len(block.order), block.condition, block.condition.id
            length = self._block_s(condition) * (-left[name, square] if known[name] else 1)
            turn = block.index if self._runs_alone(block) else square
            return block.id not in self._due, name in self.early, turn, known[name], name in busy, length, block.index

        return key

    def _of_turn(self, taken: Sequence[Block], waiting: Sequence[Block]) -> Block | None:
        """The block to start while none runs. If none of the kind whose turn it is may start, the other turn begins."""
        for _ in (self._alone, not self._alone):
            own = [block for block in waiting if self._starts_alone(block) == self._alone]
            if not self._alone:
                room_s = self._room_s(waiting)
                own = [block for block in own if self._left_s(block) <= room_s]
            if block := next(iter(own or self._chosen(taken, waiting)), None):
                return block
            self._alone, self._is_first_turn = not self._alone, False
        return None

    def _parallel(self, running: Sequence[Block], taken: Sequence[Block], waiting: Sequence[Block]) -> Block | None:
        """The block to start in parallel to these, if there is one: of the minimum, or beyond it."""
        room_s, is_given_out = self._room_s(waiting), not any(map(self._holds_others_back, waiting))
        chosen = self._chosen(taken, waiting) if is_given_out else []
        block = self._next_parallel(running, [*waiting, *chosen], room_s)
        if block or is_given_out:
            return block
        first = {block.condition.id: block for block in reversed(waiting)}  # of the minimum: before any beyond
        chosen = [first.get(block.condition.id, block) for block in self._chosen(taken, waiting)]
        return self._next_parallel(running, chosen, room_s)

    def _room_s(self, waiting: Collection[Block]) -> float:
        """Maximum seconds of a parallel block: blocks that wait for their turn to run alone keep their time."""
        return self.left_s() - sum(self._left_s(block) for block in waiting if self._runs_alone(block))

    def _next_parallel(self, running: Sequence[Block], waiting: Sequence[Block], room_s: float) -> Block | None:
        """The block to start in parallel; None if there is no room, or others should have their turn."""
        busy = [block.condition for block in running]
        for block in waiting:
            if self._runs_alone(block) or self._left_s(block) > room_s:
                continue
            if self.needs.room_for(block.condition, busy):
                return block
            if self._waits_for_room(block, busy):
                busy.append(block.condition)  # room is reserved for it: others would take it again and again
        return None

    def _waits_for_room(self, block: Block, busy: Collection[Condition]) -> bool:
        """True if a block starts as soon as there is room: an unmeasured condition's turn, or part of the minimum."""
        if self.needs.is_known(block.condition):
            return block.index < self.matrix.repeat.least and block.condition not in busy
        return self.needs.is_next_stranger(block.condition, busy)

    def _starts_alone(self, block: Block) -> bool:
        """True if it needs all CPUs, or is new and short, so that it soon shows what it needs."""
        is_short_and_new = not self.needs.is_known(block.condition) and self._left_s(block) <= SHORT_S
        return is_short_and_new or self._runs_alone(block)

    def _runs_alone(self, block: Block) -> bool:
        return self.needs.runs_alone(block.condition)

    def _holds_others_back(self, block: Block) -> bool:
        """True if no block beyond the minimum runs before it: a parallel block of the minimum."""
        return block.index < self.matrix.repeat.least and not self._runs_alone(block)

    def _left_s(self, block: Block) -> float:
        task = self._left_of(block)
        if len(task.attempts) < len(block.order):
            return self.forecast.trials_s(task.trials)
        return self._block_s(block.condition)

    def _trial_s(self, condition: Condition) -> float:
        """Mean seconds of a trial, by the forecast."""
        return self._block_s(condition) / len(self.matrix.arms_in(condition))

    def _block_s(self, condition: Condition) -> float:
        """Seconds of a whole block, by the forecast."""
        if condition.id not in self._whole_s:
            self._whole_s[condition.id] = block_seconds(self.matrix, self.forecast)(condition)
        return self._whole_s[condition.id]

    def _left_of(self, block: Block) -> Task:
        """The rest of a block that still has to run, each arm with the number of its next attempt."""
        if (task := self._left.get(block.id)) is None:  # a long run has thousands of blocks, asked after every trial
            left = (trial for trial in block.trials() if trial.id not in self._done)
            task = Task(block, {trial.arm: self._attempts.get(trial.id, 0) for trial in left})
            self._left[block.id] = task
        return task


class WholeBlocks:
    """Holds results back until every arm of their block has one: half a block settles nothing, and judging costs time.

    `results` are there from the beginning.
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._halves: dict[str, list[Result]] = {}  # block id -> results
        self._whole: set[str] = set()  # ids
        self.completed(results)

    def completed(self, results: Iterable[Result]) -> list[Result]:
        """Take in results. Returns those that now belong to whole blocks, and were not returned before, in their order.

        If a block was whole before and is repeated, each of its results is returned at once.
        """
        given: list[Result] = []
        for result in results:
            block = result.trial.block
            half = self._halves.setdefault(block.id, [])
            half.append(result)
            if block.id in self._whole or {each.trial.arm for each in half} >= set(block.order):
                self._whole.add(block.id)
                given += self._halves.pop(block.id)
        return given
