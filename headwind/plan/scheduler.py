"""The scheduler: asked for the next block, told what came of the others. Whatever it learns is its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from headwind.clock import CLOCK, Clock
from headwind.model import Block, Condition, Matrix, Result
from headwind.plan.adaptive import block_seconds, choices
from headwind.plan.forecast import Forecast
from headwind.plan.minimum import affordable, minimum_s
from headwind.plan.needs import Needs
from headwind.plan.schedule import plan_blocks
from headwind.plan.search import search_blocks
from headwind.plan.whole import WholeBlocks
from headwind.proof.attempts import runs_again
from headwind.trial.block import Task
from headwind.verdicts.findings import Pair, pairs_of
from headwind.verdicts.judgement import Judge, Judgement, Line
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS
from headwind.verdicts.pending import Open

# What runs alone and what runs side by side take turns. Between them all lanes have to drain, so turns are long.
TURN_ALONE_S, TURN_BESIDE_S = 80.0, 300.0
SHORT_S = 10.0  # a block that takes no longer is tried alone first: the processors may well be all it waits for


class Scheduler:
    """`next` until it gives nothing and nothing runs any more; `tell` after each trial.

    First the minimum of the matrix, of as many conditions as there is time for (plan/minimum.py), then what adaptive
    repetition chooses. A block is given only if it is expected to end within `left_s`, and never split; what is left of
    one that was interrupted is given whole. With one lane the minimum comes in the order of the plan. With several,
    blocks run side by side where processors suffice (plan/needs.py); those that need them all run alone, and both kinds
    take turns by the clock.
    `results` are those of a run that goes on, `judge` one that was told them already.
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
    ) -> None:
        self.matrix, self.lanes, self.left_s, self._clock = matrix, lanes, left_s, clock
        self.judge = judge or Judge(matrix, results)
        self.forecast, self.needs = Forecast(matrix.timeout_s), Needs(cores)
        self._attempts: dict[str, int] = {}  # of each trial, by its id
        self._done: set[str] = set()  # ids of trials that need no further attempt
        # The minimum and what was chosen beyond it, as far as it is not done; a search has no minimum.
        self._planned = [] if matrix.find else plan_blocks(matrix)
        self._again: dict[str, Block] = {}  # by id: blocks that must run again once they have ended
        self._hosts: dict[str, set[str]] = {}  # by the block's id: on which its trials were measured
        self._due: set[str] = set()  # ids of blocks that are planned anew, because they must run again
        self._alone, self._turn_ends = True, clock.monotonic() + TURN_ALONE_S  # whose turn it is, and until when
        self._given_at: dict[str, float] = {}  # by the block's id
        self._blocks = WholeBlocks(results)
        self._judgement: Judgement | None = None  # of all whole blocks
        self._learn(results)

    def tell(self, results: Collection[Result]) -> None:
        """What came of trials, in the order in which they ended."""
        if whole := self._blocks.completed(results):
            self.judge.tell(whole)
            self._judgement = None
        self._learn(results)

    def _learn(self, results: Collection[Result]) -> None:
        """How long trials take, what they need of the processors, and which are done."""
        for result in results:
            self.forecast.learn(result)
            self.needs.learn(result)
            trial = result.trial
            self._attempts[trial.id] = result.attempt + 1
            self._hosts.setdefault(trial.block.id, set()).add(result.place.host)
            (self._done.discard if runs_again(result) else self._done.add)(trial.id)

    def repeat(self, blocks: Collection[Block]) -> None:
        """These blocks run again, whole and before others: their results say nothing of a protocol."""
        self._again |= {block.id: block for block in blocks}

    def begun_elsewhere(self, host: str) -> list[Block]:
        """Blocks that are not whole and of which a trial was measured on another host; empty: on any.

        A block never spans hosts, so they are to `repeat`.
        """
        return [
            block for block in self._planned
            if self._left_of(block).attempts and self._hosts.get(block.id, set()) - {"", host}
        ]  # fmt: skip

    def next(self, in_flight: Collection[Task] = (), elsewhere: Collection[Task] = ()) -> Task | None:
        """What to run now on a host, beside what runs there already; what runs on others takes no room of it.

        None: nothing before one of these has ended, if any ever.
        """
        running = [task.block for task in in_flight]
        taken = [*running, *(task.block for task in elsewhere)]
        self._reopen({block.id for block in taken})
        if running and (self._alone or any(map(self._runs_alone, running))):
            return None
        waiting = self._candidates(taken)
        is_given_out = not waiting or (self.lanes > 1 and not any(map(self._holds_others_back, waiting)))
        chosen = self._chosen(taken, waiting) if is_given_out else []
        if running:
            room_s = self._room_s(running, [*waiting, *chosen])
            block = self._one_beside(running, [*waiting, *chosen], room_s)
            if block is None and not is_given_out:
                block = self._one_beside(running, self._chosen(taken, waiting), room_s)
        else:
            block = self._first([*waiting, *chosen])
        if block is None:
            return None
        if block not in self._planned:
            self._planned.append(block)
        self._given_at[block.id] = self._clock.monotonic()
        return self._left_of(block)

    @property
    def counts(self) -> tuple[int, int]:
        """Trials that are done, and those together with the ones that are planned, as far as that is known."""
        left = sum(len(self._left_of(block).attempts) for block in self._planned)
        return len(self._done), len(self._done) + left

    @property
    def comparisons(self) -> int:
        """Of protocols, in all conditions."""
        return sum(not pair.is_check for item in self.matrix.conditions for pair in pairs_of(self.matrix, item))

    def settled(self) -> dict[tuple[str, Pair], str]:
        """The comparisons of protocols that are settled, by the condition's id: `loss: h3 beats h1`."""
        left = {(item.condition.id, pair) for item in self._judged.open for pair in item.pairs}
        return {
            key: f"{self.matrix.name_of(line.condition)}: {_settled(line)}"
            for line in self._judged.compared
            if (key := (line.condition.id, line.pair)) not in left
        }

    def expected_s(self, lanes: int) -> float:
        """How long the run takes yet if so many lanes are busy: at most what is left of its time."""
        work_s = self.forecast.trials_s(trial for block in self._planned for trial in self._left_of(block).trials)
        if self.matrix.repeat.is_adaptive:
            work_s += sum(self._beyond_s(item) for item in self._judged.open)
        return max(0.0, min(work_s / max(1, lanes), self.left_s()))

    def minimum_s(self) -> dict[str, float]:
        """For how long each condition, by its id, keeps this host until something in it can be settled."""
        done = {condition.id: len(self.judge.counted_rows(condition.id)) for condition in self.matrix.conditions}
        return minimum_s(self.matrix, self.forecast, self.needs, self.lanes, done)

    @property
    def _judged(self) -> Judgement:
        """What all whole blocks say so far, computed once until there is another one."""
        if self._judgement is None:
            costs = block_seconds(self.matrix, self.forecast)
            self._judgement = self.judge.judgement(costs, complete=False, exhausted=False)
        return self._judgement

    def _beyond_s(self, item: Open) -> float:
        """What the forecast for a condition's verdicts comes to, less the minimum that is planned anyway."""
        until = item.n + (item.outlook.blocks or LONGEST_FORECAST_BLOCKS)
        return max(0, min(until, self.matrix.repeat.most) - max(item.n, self.matrix.repeat.least)) * item.block_s

    def _reopen(self, running: Collection[str]) -> None:
        """Blocks that must run again and do not run any more are planned anew, in front."""
        self._begin_anew([block for name, block in self._again.items() if name not in running])

    def _begin_anew(self, blocks: Collection[Block]) -> None:
        """These, of those that must run again, are planned in front; nothing of them is done."""
        for block in blocks:
            del self._again[block.id]
            self._due.add(block.id)
            self._done -= {trial.id for trial in block.trials()}
        self._planned = [*blocks, *(block for block in self._planned if block not in blocks)]

    def _candidates(self, running: Sequence[Block]) -> list[Block]:
        """What must run again, for which its time is kept, then the minimum: as far as it fits into what is left of it.

        In the order in which it should run.
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
        return self._affordable(waiting, left_s) if self.matrix.repeat.is_adaptive else waiting

    def _affordable(self, waiting: list[Block], left_s: float) -> list[Block]:
        """Those of conditions whose whole minimum fits into the time, and what must run again.

        If those are not all, one condition after the other, the shortest first: forecasts err, what is complete stays.
        """
        idle = [block for block in self._planned if block.id not in self._due]
        costs: dict[str, float] = {}
        for block in idle:
            cost_s = self._left_s(block) * self.needs.share(block.condition, self.lanes)
            costs[block.condition.id] = costs.get(block.condition.id, 0.0) + cost_s
        whole = affordable(costs, left_s)
        if len(whole) == len(costs):
            return waiting
        kept = [block for block in waiting if block.id in self._due or block.condition.id in whole]
        return sorted(kept, key=lambda block: -1 if block.id in self._due else whole.index(block.condition.id))

    def _chosen(self, running: Sequence[Block], waiting: Sequence[Block]) -> list[Block]:
        """What lies beyond the minimum: once that is given out, or while none of it may run."""
        if not (self.matrix.find or self.matrix.repeat.is_adaptive):
            return []
        left_s = self.left_s() - sum(self._left_s(block) for block in waiting if block.id in self._due)
        if self.matrix.find:
            costs = block_seconds(self.matrix, self.forecast)
            return [] if waiting else search_blocks(self.matrix, self.judge, costs, self._done, running, left_s)
        return choices(self.matrix, self._judged.open, self._done, [*running, *waiting], left_s)

    def _order(self, waiting: Sequence[Block], running: Sequence[Block]) -> Callable[[Block], tuple[float, ...]]:
        """What must run again; then square by square, so that a drift of the machine meets all conditions alike.

        In a square, of what nothing is known the shortest comes first: it is soon known. Of the others the condition
        that takes longest in all, so that the square is soon over, and one that runs already last.
        """
        busy = {block.condition.id for block in running}
        left = Counter((block.condition.id, block.index // len(block.order)) for block in waiting)
        block_s = block_seconds(self.matrix, self.forecast)

        def key(block: Block) -> tuple[float, ...]:
            square, condition = block.index // len(block.order), block.condition
            mine = left[condition.id, square]
            known = self.needs.is_known(condition)
            later, length = block.id not in self._due, block_s(condition) * (-mine if known else 1)
            return later, square, known, condition.id in busy, length, block.index

        return key

    def _first(self, waiting: Sequence[Block]) -> Block | None:
        """The block to start while nothing runs."""
        if self.lanes == 1 or not waiting:
            return next(iter(waiting), None)
        alone = [block for block in waiting if self._runs_alone(block) or self._is_short_and_new(block)]
        beside = [block for block in waiting if block not in alone]
        alone.sort(key=lambda block: (block.id not in self._due, min(block.index, self.matrix.repeat.least)))
        left_s = self._turn_ends - self._clock.monotonic()
        has_time = left_s > 0 if self._alone else any(self._left_s(block) <= left_s for block in beside)
        mine, others = (alone, beside) if self._alone else (beside, alone)
        if not mine or (others and not has_time):
            turn_s = self._turn_beside_s(alone) if self._alone else TURN_ALONE_S
            if turn_s > 0 or not mine:
                self._alone, mine = not self._alone, others
                self._turn_ends = self._clock.monotonic() + turn_s
        return mine[0]

    def _turn_beside_s(self, alone: Collection[Block]) -> float:
        """How long the next turn of those side by side may be: the others are left the time for their minimum."""
        owed_s = sum(self._left_s(block) for block in alone if block.index < self.matrix.repeat.least)
        return min(TURN_BESIDE_S, self.left_s() - owed_s)

    def _room_s(self, running: Sequence[Block], waiting: Sequence[Block]) -> float:
        """How long a block may take that starts beside those that run, so that the others have their turn in time.

        While one of these goes on after its turn, short ones may.
        """
        if not any(map(self._runs_alone, waiting)):
            return math.inf
        now = self._clock.monotonic()
        late = [block for block in running if self._given_at.get(block.id, 0.0) < self._turn_ends]
        last_s = max((self._given_at.get(block.id, 0.0) + self.forecast.block_s(block) for block in late), default=now)
        return max(self._turn_ends - now, last_s - now, SHORT_S if late and now > self._turn_ends else 0.0)

    def _one_beside(self, running: Sequence[Block], waiting: Sequence[Block], room_s: float) -> Block | None:
        """The block to start beside those that run; None where there is no room, or others should have their turn."""
        busy = [block.condition for block in running]
        for block in waiting:
            if self._runs_alone(block) or self._left_s(block) > room_s:
                continue
            if self.needs.room_for(block.condition, busy):
                return block
            if self._waits_for_room(block, busy):
                busy.append(block.condition)  # room is kept for it: others would take it again and again
        return None

    def _waits_for_room(self, block: Block, busy: Collection[Condition]) -> bool:
        """Whether a block runs as soon as there is room: a stranger's turn, or part of the minimum."""
        if self.needs.is_known(block.condition):
            return block.index < self.matrix.repeat.least and block.condition not in busy
        return self.needs.is_next_stranger(block.condition, busy)

    def _is_short_and_new(self, block: Block) -> bool:
        return not self.needs.is_known(block.condition) and self._left_s(block) <= SHORT_S

    def _runs_alone(self, block: Block) -> bool:
        return self.needs.runs_alone(block.condition)

    def _holds_others_back(self, block: Block) -> bool:
        """Whether nothing beyond the minimum runs before it: part of the minimum, of those that run side by side."""
        return block.index < self.matrix.repeat.least and not self._runs_alone(block)

    def _left_s(self, block: Block) -> float:
        return self.forecast.trials_s(self._left_of(block).trials)

    def _left_of(self, block: Block) -> Task:
        """What of a block still has to run, each arm with the number of its next attempt."""
        left = (trial for trial in block.trials() if trial.id not in self._done)
        return Task(block, {trial.arm: self._attempts.get(trial.id, 0) for trial in left})


def _settled(line: Line) -> str:
    """What the first metric says that settled it: `h3 beats h1`, `h3 and h1 tie by mean completion time`."""
    decided = (finding for finding in line.findings.values() if finding.is_decided)
    finding = max(decided, key=lambda finding: finding.survives, default=None)
    if finding is None:
        return str(line.pair)
    by = "" if finding == line.primary else f" by {finding.metric.label}"
    new, base = finding.pair.new, finding.pair.base
    favours = finding.verdict.favours
    return (
        f"{new} beats {base}" if favours > 0 else f"{base} beats {new}" if favours else f"{new} and {base} tie"
    ) + by
