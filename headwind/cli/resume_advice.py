"""How to resume a run that is not finished, or in which more blocks can settle more: reason, effect and command."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwind.cli.doctor import lanes_here
from headwind.errors import UsageError
from headwind.format import about, blocks_text, budget_text, counted, listed
from headwind.model import Matrix, Result
from headwind.own_command import lab_command
from headwind.plan.forecast import LANE_S
from headwind.plan.minimum import affordable, at_most, enough_s, guessed, needed_text, on_lanes
from headwind.plan.scheduler import Scheduler
from headwind.proof.spans import TOO_EARLY
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.verdicts import has_forecast, more_text, names_of
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.earlier import earlier_results
from headwind.run.journal import Run
from headwind.verdicts.ended import complete
from headwind.verdicts.findings import fewest_for_sure
from headwind.verdicts.pending import Open

NO_RESULT = "will probably add none"
NO_CHECK = "will probably settle no more self-checks"
MOST_BUDGETS = 4  # that are tried until one is enough


def how_to_resume(run: Run, data: RunData, cluster: str | None = None) -> list[str]:
    """A sentence, its details and a command, a line each; empty if the run is in progress.

    If nothing is left to run, only a sentence on that, or nothing for a fixed number of blocks and for a search.
    """
    state = data.status.state
    if state is State.RUNNING:
        return []
    known = _of_earlier_runs(run, data)
    scheduler = _resumed(run, data, data.budget_s, known)
    matrix, is_done = scheduler.matrix, scheduler.next() is None
    if is_done and state is State.FINISHED:
        return _why_done(data)
    why = _why(matrix, data) if state is State.FINISHED else "Not finished"
    more = _enough(run, data, More.of(scheduler, data.still_open), known)
    effect = "" if is_done or not (text := _effect(scheduler, more)) else f"; {text}"
    details = [] if is_done else _details(matrix, more, scheduler.unverified)
    resume = "To resume anyway:" if effect.endswith((NO_RESULT, NO_CHECK)) else "Resume with:"
    return [f"{why}{effect}.", *details, resume, f"  {_command(run, more.budget_s, cluster)}"]


def _of_earlier_runs(run: Run, data: RunData) -> list[Result]:
    """Results of earlier runs for the conditions of which this run has none, so that they are not guessed."""
    ran = {result.trial.block.condition for result in data.results}
    left = tuple(each for each in run.matrix.conditions if each not in ran)
    return earlier_results(replace(run.matrix, conditions=left), run.folder.parent, run.folder) if left else []


def _resumed(run: Run, data: RunData, budget_s: float | None, known: Sequence[Result]) -> Scheduler:
    """The scheduler of a run that is resumed with a budget, on the lanes that pay within it."""
    matrix = replace(run.matrix, repeat=replace(run.matrix.repeat, budget_s=budget_s))
    lanes = lanes_here(matrix.lanes)
    scheduler = Scheduler(
        matrix, data.results, lambda: math.inf, lanes, os.cpu_count() or 1, judge=data.judge, earlier=known
    )
    scheduler.worth(1, lanes, LANE_S, budget_s)
    return scheduler


def _enough(run: Run, data: RunData, more: More, known: Sequence[Result]) -> More:
    """The advice with a budget that is enough on the lanes that it will have: a longer one starts more of them."""
    for _ in range(MOST_BUDGETS):
        if more.budget_s is None:
            break
        then = More.of(_resumed(run, data, more.budget_s, known), data.still_open)
        budget_s = max(more.budget_s, then.budget_s or 0.0)
        is_enough = budget_s == more.budget_s
        more = replace(more, budget_s=budget_s, costs=then.costs, start_s=then.start_s, lanes=then.lanes)
        if is_enough:
            break
    return more


def check_budget(run: Run) -> None:
    """Raise UsageError if the run has a fixed number of blocks, which no budget changes."""
    matrix = run.matrix
    if matrix.repeat.is_adaptive:
        return
    advice = "leave out --budget" if RunData.of(run).short else "all are complete: for more, start a new run"
    raise UsageError(f"--budget: this run has a fixed number of blocks ({blocks_text(matrix.repeat)}); {advice}")


@dataclass(frozen=True, slots=True)
class More:
    """Comparisons that can still be settled, and the budget to resume with: the last one, or one that is long enough.

    `costs` are in seconds by condition id. `short` has the ids of those for which the last budget is too short to
    complete the blocks that a result takes, `slow` those that have them and need longer for a result. `beyond` has
    those that had all blocks of the matrix or cannot settle anything within them. `later` has the other open ones for
    which the budget is probably too short as well. `soonest` has the least forecast. `start_s` are the seconds of the
    budget in which further testbeds start.
    """

    budget_s: float | None
    costs: Mapping[str, float]
    short: Sequence[str] = ()
    slow: Sequence[str] = ()
    beyond: Sequence[str] = ()
    later: Sequence[str] = ()
    soonest: Open | None = None
    missing: Mapping[str, int] = field(default_factory=dict)  # blocks of the minimum by condition id, if there are any
    guesses: Collection[str] = ()  # the ids of conditions without known trials, so that their forecasts are guesses
    start_s: float = 0.0
    incomplete: Mapping[str, int] = field(default_factory=dict)  # blocks that ran without data of every arm
    lanes: int = 1  # for which the forecast holds
    is_of_checks: bool = False  # nothing but self-checks is open

    @property
    def settled(self) -> list[str]:
        """The ids of the conditions in which the budget probably settles something, the soonest first."""
        return affordable(self.costs, (self.budget_s or math.inf) - self.start_s)

    @classmethod
    def of(cls, scheduler: Scheduler, still_open: Sequence[Open]) -> More:
        """Derive it from a scheduler.

        A longer budget completes the minimum of every condition, or settles something in at least one.
        """
        repeat = scheduler.matrix.repeat
        if not repeat.is_adaptive or repeat.budget_s is None or scheduler.matrix.find:
            return cls(repeat.budget_s if repeat.is_adaptive else None, {})
        costs = _costs(scheduler, still_open)
        forecast = [each for each in still_open if each.condition.id in costs and has_forecast(each)]
        soonest = min(forecast, key=lambda each: costs[each.condition.id], default=None)
        guesses = guessed(scheduler.matrix, scheduler.forecast)
        minimum = at_most(scheduler.minimum_s(), guesses)
        unverified = {*scheduler.unverified}
        least = {name: cost_s for name, cost_s in minimum.items() if cost_s and name not in unverified}
        first = dict(sorted(costs.items(), key=lambda item: item[1])[:1])
        left_s = repeat.budget_s - scheduler.start_s
        fitting = {*affordable(least, left_s), *affordable(first, left_s)}
        short = [name for name in least if name not in fitting]
        slow = [name for name in first if name not in fitting and name not in least]
        wanted_s = max(sum(least.values()), *first.values(), 0.0)
        budget_s = enough_s(scheduler.start_s + wanted_s) if short or slow else repeat.budget_s
        beyond = [each.condition.id for each in still_open if _is_beyond(each, repeat.confidence)]
        missing = {
            each.condition.id: each.missing
            for each in _wanted(still_open)
            if each.missing and each.condition.id not in beyond
        }
        rows = scheduler.judge.rows_of
        incomplete = {each.condition.id: each.n - complete(rows(each.condition.id)) for each in still_open}
        found = cls(budget_s, costs, short, slow, beyond, (), soonest, missing, guesses, scheduler.start_s, incomplete)
        named = {*found.settled, *short, *slow, *beyond, *missing}
        later = [each.condition.id for each in _wanted(still_open) if each.condition.id not in named]
        is_of_checks = bool(still_open) and all(each.is_of_checks for each in still_open) and not missing
        return replace(found, later=later, lanes=scheduler.lanes_for(missing), is_of_checks=is_of_checks)


def _command(run: Run, budget_s: float | None, cluster: str | None) -> str:
    words = ["--resume", str(run.folder), *(["--budget", budget_text(budget_s)] if budget_s else [])]
    return lab_command("run", *words, *(["--cluster", cluster] if cluster else []))


def _why_done(data: RunData) -> list[str]:
    """The reason why no block is left to run, also with time left."""
    matrix = data.matrix
    if not matrix.repeat.is_adaptive or data.searched or not data.judgement.compared:
        return []
    pairs = [pair for item in data.still_open for pair in item.pairs]
    left = [pair for pair in pairs if not pair.is_check]
    if pairs:
        number, what = (len(left), "comparison") if left else (len(pairs), "self-check")
        are = "is" if number == 1 else "are"
        open_ = f"{counted(number, what)} {are} not sure within `max` ({matrix.repeat.most})"
        return [f"No blocks are left to run: {open_}; raise it in a new run."]
    if early := [data.matrix.name_of(each) for each in matrix.conditions if each.id in data.unchanged]:
        return [f"No blocks are left to run; nothing can be sure in {listed(early)}, where trials {TOO_EARLY}."]
    if other := [data.matrix.name_of(each) for each in matrix.conditions if each.id in data.network_doubts]:
        return [f"No blocks are left to run; nothing can be sure in {listed(other)}: not the requested network."]
    if bound := [line for line in data.judgement.compared if line.is_cpu_bound]:
        are = "is" if len(bound) == 1 else "are"
        return [f"No blocks are left to run; {counted(len(bound), 'comparison')} {are} CPU-bound, so at most likely."]
    primaries = {
        line.primary.metric: None
        for line in data.judgement.compared
        if certainty_of(line.primary) is not Certainty.SURE
    }
    by_others = [f"for {each.label}, put `judge: [{each.key}]` into the matrix of a new run" for each in primaries]
    return [f"No blocks are left to run: every comparison is sure by at least one metric{'; '.join(['', *by_others])}."]


def _why(matrix: Matrix, data: RunData) -> str:
    """The reason to resume a run that ended by itself."""
    if matrix.find:
        return "The search is not finished"
    left = [pair for item in data.still_open for pair in item.pairs if not pair.is_check]
    never = [line for line in data.judgement.compared if line.condition.id in data.network_doubts or line.is_cpu_bound]
    if left or never:
        every = len(data.judgement.compared)
        sure = sum(line.is_sure for line in data.judgement.compared)
        verb = "is" if every == 1 else "are"
        judged = {each for item in data.judgement.open for each in item.judged}
        by = " by at least one metric" if len(judged) > 1 else ""
        return f"{sure} of {counted(every, 'comparison')} {verb} sure{by}"
    if short := data.short:
        of = counted(len(matrix.conditions), matrix.place)
        verb = "has" if len(short) == 1 else "have"
        return f"{len(short)} of {of} {verb} fewer than the {counted(matrix.repeat.least, 'block')} requested"
    return "Self-checks are still open"


def _effect(scheduler: Scheduler, more: More) -> str:
    """The effect of resuming: what the budget may settle, or what is left of a fixed number of blocks."""
    matrix = scheduler.matrix
    if not matrix.repeat.is_adaptive:
        done, total = scheduler.counts
        are = "is" if total - done == 1 else "are"
        return f"{counted(total - done, 'trial')} {are} left, about {about(scheduler.expected_s(1))} on one lane"
    if more.budget_s is None or matrix.repeat.budget_s is None:
        return "it then runs until " + ("the crossover is found" if matrix.find else "everything is sure")
    if matrix.find:
        return f"{about(more.budget_s)} more may narrow it"
    names = {condition.id: matrix.name_of(condition) for condition in matrix.conditions}
    fitting = [each for each in more.settled if each not in more.missing]
    if more.missing and not fitting:
        return ""  # too few blocks for a forecast
    if not fitting:
        return f"another {about(more.budget_s)} {NO_CHECK if more.is_of_checks else NO_RESULT}"
    which = "" if len(fitting) == len(names) else f" ({listed([names[each] for each in fitting])})"
    of = counted(len(names), matrix.place)
    few = listed([names[each] for each in more.missing])
    below = f"; too early to say for {few} (fewer than {matrix.repeat.least} blocks)" if few else ""
    may = "settle self-checks" if more.is_of_checks else "make more comparisons sure"
    return f"another {about(more.budget_s)} may {may} in {len(fitting)} of {of}{which}{below}"


def _details(matrix: Matrix, more: More, unverified: Collection[str]) -> list[str]:
    """The forecast for the condition that is settled soonest, and the limits of the last budget and of `max`."""

    def names(ids: Sequence[str]) -> str:
        return listed([matrix.name_of(each) for each in matrix.conditions if each.id in ids])

    found = []
    if more.soonest:
        soonest = more.soonest
        pair = f" ({names_of(soonest.counted)})" if len(soonest.counted) == 1 else ""
        found.append(f"Soonest in {names([soonest.condition.id])}{pair}: {more_text(soonest)}.")
    if more.missing:
        missing = [
            f"{matrix.name_of(each)} {more.missing[each.id]}{_incomplete(more, each.id)}"
            for each in matrix.conditions
            if each.id in more.missing
        ]
        shown = listed(missing)
        more_ = f" {matrix.place}s" if shown.endswith(" more") else ""
        still = f"Blocks still to run (minimum {matrix.repeat.least}): {shown}{more_}"
        doubtful = names([each for each in more.missing if each in unverified])
        them = names([each for each in more.missing if each not in unverified]) if doubtful else "them"
        but = f", but hardly {doubtful}, where most trials were not verified" if doubtful else ""
        guesses = names([each for each in more.missing if each in more.guesses])
        guess = f" (a guess: no trial has run in {guesses})" if guesses else on_lanes(more.lanes)
        if {*more.missing} <= {*unverified}:
            found.append(f"{still}; hardly any time will complete them, because most trials were not verified.")
        else:
            found.append(f"{still}; {about(more.budget_s or 0)} will probably complete {them}{guess}{but}.")
    for ids, what in ((more.short, needed_text(matrix)), (more.slow, "a sure result")):
        if ids:
            another = about(matrix.repeat.budget_s or 0)
            found.append(f"Another {another} may be too short for {what} in {names(ids)}.")
    if more.later and more.settled:  # else the first sentence says it of all
        found.append(
            f"In {names(more.later)}, no further sure results are expected within {about(more.budget_s or 0)}."
        )
    if more.beyond:
        found.append(f"For {names(more.beyond)}, raise `max` ({matrix.repeat.most}) in a new run.")
    return [f"  {each}" for each in found]


def _incomplete(more: More, condition: str) -> str:
    """Note on the blocks that ran without data of every arm; empty without any."""
    count = more.incomplete.get(condition, 0)
    return f" ({counted(count, 'block')} that ran {'is' if count == 1 else 'are'} incomplete)" if count else ""


def _costs(scheduler: Scheduler, still_open: Sequence[Open]) -> dict[str, float]:
    """By condition id, the seconds after which something more is probably settled; absent if it cannot be settled.

    Absent as well if most trials were not verified: those conditions come last.
    The forecast is that of the report (headwind/report/verdicts.py, more_text).
    """
    least, confidence = scheduler.minimum_s(), scheduler.matrix.repeat.confidence
    costs: dict[str, float] = {}
    unverified = {*scheduler.unverified}
    for item in (each for each in _wanted(still_open) if each.condition.id not in unverified):
        is_known = has_forecast(item)
        if not _is_beyond(item, confidence) and (item.allows(item.first) or not is_known):
            blocks = item.first.blocks if is_known else 0
            costs[item.condition.id] = max(least[item.condition.id], (blocks or 0) * item.block_s)
    return costs


def _wanted(still_open: Sequence[Open]) -> Sequence[Open]:
    """The open conditions with comparisons of protocols; if there are none, those with self-checks."""
    return [each for each in still_open if not each.is_of_checks] or still_open


def _is_beyond(item: Open, confidence: float) -> bool:
    """True if the matrix's maximum keeps its comparisons from being settled, whatever the forecast."""
    lacks = item.soonest.low or 0
    is_too_few = lacks > 0 and (item.n >= item.most or (has_forecast(item) and item.n + lacks > item.most))
    return is_too_few or item.most < fewest_for_sure(confidence, anytime=True)
