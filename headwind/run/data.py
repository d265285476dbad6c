"""A run as it was read: a run folder without raw samples and raw counters, and its judgement."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwind.arm import Arm
from headwind.format import counted
from headwind.model import DATA_OUTCOMES, NOWHERE, Check, Condition, Matrix, Outcome, Result
from headwind.observed import figure, order_of
from headwind.plan.forecast import Forecast, block_seconds
from headwind.proof.pooled import Pooled, pooled
from headwind.proof.spans import TOO_EARLY, ended_early, milder
from headwind.proof.tally import Seen
from headwind.run.captures import CapturedTrial
from headwind.run.codec import State, Status, planned_trials
from headwind.run.journal import CUT_SHORT, PAUSES, STOPPED_WITH_RUN
from headwind.run.page_requests import PageTrial, PageTrials, requests_of
from headwind.run.tables import CELL, trials_table
from headwind.verdicts.ended import complete
from headwind.verdicts.findings import Rows, rows_of
from headwind.verdicts.judgement import Judge, Judgement
from headwind.verdicts.pending import Open

if TYPE_CHECKING:
    import pandas as pd

    from headwind.run.journal import Run


LAST_BUDGET = "last_budget_s"  # key in a run's environment: the budget with which it was last started or resumed


@dataclass(frozen=True)
class RunData:
    """A run as it was read: `results` holds every attempt in the order in which they ran, without samples."""

    id: str
    matrix: Matrix
    results: tuple[Result, ...]
    environment: Mapping[str, Any]
    status: Status
    judge: Judge | None = field(default=None, compare=False, repr=False)  # it has all results
    searched: Matrix | None = None  # for a search: with all its values; `matrix` then has the measured ones
    counted: tuple[Seen, ...] | None = field(default=None, compare=False, repr=False)  # of results without counters
    # By the id of the condition and the arm's name, for workloads whose requests are drawn (is_drawn).
    page_trials: Mapping[tuple[str, str], PageTrials] = field(default_factory=dict, compare=False, repr=False)
    captured: Mapping[tuple[str, str], CapturedTrial] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, run: Run) -> RunData:
        """Read the run folder once. Raises the errors of `Run`."""
        reading = Reading(run)
        reading.read()
        return reading.data

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement of the run so far, shared by the page, the files and the terminal.

        While the run is in progress, an open comparison is undecided; afterwards it is inconclusive.
        """
        judge = self.judge or Judge(self.searched or self.matrix, self.results)
        costs = block_seconds(self.matrix, Forecast(self.matrix.rules, self.latest))
        state = self.status.state
        found = judge.judgement(
            costs,
            complete=state is State.FINISHED,
            exhausted=state is not State.RUNNING,
            doubts=self.network_doubts,
        )
        if self.searched is None:
            return found
        measured = {condition.id for condition in self.matrix.conditions}
        return replace(found, lines=tuple(line for line in found.lines if line.condition.id in measured), open=())

    @property
    def network_doubts(self) -> dict[str, list[str]]:
        """By condition, deviations of its network that all its trials together show; absent if there are none."""
        found: dict[str, list[str]] = {}
        for name, text in (*self.unchanged.items(), *self.milder.items()):
            found.setdefault(name, []).append(text)
        for question in self.pooled:
            if not question.passed:
                found.setdefault(question.condition.id, []).append(question.text)
        return found

    @cached_property
    def unchanged(self) -> dict[str, str]:
        """By condition, a sentence if at least half of the trials of each arm ended before its network changed."""
        return {
            name: f"{sum(early)} of {counted(len(early), 'trial')} {TOO_EARLY}"
            for name, early in ended_early(self.latest).items()
        }

    @cached_property
    def milder(self) -> dict[str, str]:
        """By condition, a sentence if its compared trials had a milder network, because others were excluded."""
        return milder(self.results)

    @property
    def lanes(self) -> set[tuple[str, int]]:
        """The host and the number of each lane on which trials are known to have run."""
        return {(result.place.host, result.place.lane) for result in self.results if result.place != NOWHERE}

    @property
    def still_open(self) -> tuple[Open, ...]:
        """The open comparisons that more blocks may settle.

        Not those of networks that trials end too early for, or that were not as requested.
        """
        return tuple(item for item in self.judgement.promising if item.condition.id not in self.network_doubts)

    @property
    def can_go_on(self) -> bool:
        """True if the matrix allows more blocks for an open comparison."""
        return any(item.n < item.most for item in self.still_open)

    @property
    def short(self) -> list[Condition]:
        """The conditions with fewer complete blocks than the minimum."""
        least = self.matrix.repeat.least
        return [each for each in self.matrix.conditions if complete(self.rows.get(each.id, {})) < least]

    @cached_property
    def trials(self) -> pd.DataFrame:
        """Every attempt as a row; the number of a row is that of the result."""
        return trials_table(self.matrix, self.results)

    @cached_property
    def latest(self) -> tuple[Result, ...]:
        """The latest attempt at every trial, in the order in which they ran: the report counts these."""
        return tuple(latest_of(self.results))

    @cached_property
    def rows(self) -> Mapping[str, Rows]:
        """The latest attempts block by block, by the condition's id."""
        return rows_of(self.latest)

    @property
    def budget_s(self) -> float | None:
        """The budget with which the run was last started or resumed; None without one."""
        budget_s: float | None = self.environment.get(LAST_BUDGET, self.matrix.repeat.budget_s)
        return budget_s

    @property
    def pauses_s(self) -> list[float]:
        """Duration of each pause after which the run was resumed."""
        return [pause["to"] - pause["from"] for pause in self.environment.get(PAUSES, ())]

    @property
    def planned(self) -> int:
        """The minimum number of trials of the matrix."""
        return planned_trials(self.matrix)

    @cached_property
    def pooled(self) -> tuple[Pooled, ...]:
        """Tests of the network of each condition with all its trials together."""
        return pooled(self.matrix, self.seen.values())

    @cached_property
    def seen(self) -> Mapping[str, Seen]:
        """Evidence from each trial's latest counters, by the trial's id."""
        every = map(Seen.of, self.latest) if self.counted is None else self.counted
        by_id = {seen.result.trial.id: seen for seen in every}  # of the latest attempt, which comes last
        return {result.trial.id: by_id[result.trial.id] for result in self.latest}

    @property
    def was_seeded(self) -> bool:
        """True if netem took the seeds."""
        return bool(self.environment.get("testbed", {}).get("router", {}).get("netem_seed", True))

    def count(self, *outcomes: Outcome) -> int:
        """Number of trials with one of these outcomes at their latest attempt, without those stopped with the run."""
        return sum(result.outcome in outcomes and not was_stopped(result) for result in self.latest)

    @cached_property
    def _cells(self) -> Mapping[Hashable, pd.DataFrame]:
        """The rows of `trials` by the names of profile, workload and arm."""
        return dict(iter(self.trials.groupby(list(CELL), observed=True)))

    def attempts(self, condition: Condition, arm: Arm) -> list[Result]:
        """Every attempt of one condition and arm, in the order in which they ran."""
        return [self.results[number] for number in self.rows_of(condition, arm)["number"]]

    def rows_of(self, condition: Condition, arm: Arm) -> pd.DataFrame:
        """The rows of `trials` of one condition and arm."""
        names = (condition.profile.name, condition.workload.name, arm.name)
        return self._cells.get(names, self.trials[:0])


class Reading:
    """Incremental reader of a run folder, for repeated looks while a lab writes to it."""

    def __init__(self, run: Run) -> None:
        self._run, self._judge = run, Judge(run.matrix)
        self._seen: dict[int, Seen] = {}  # by their numbers
        self._known: dict[Hashable, Any] = {}  # values that many results share: one object for all of them

    def read(self) -> int:
        """Read new attempts, and return their number. Raises the errors of `Run`."""
        new = {}
        for number, result in self._run.each_numbered(self._seen):
            slim = _shared(without_counters(result), self._known)
            new[number] = replace(Seen.of(result), result=slim)
        self._judge.tell([seen.result for seen in new.values()])
        self._seen = dict(sorted((self._seen | new).items()))
        return len(new)

    @property
    def data(self) -> RunData:
        """The run as far as it was read; use it before the next read."""
        run, every = self._run, tuple(self._seen.values())
        results = tuple(seen.result for seen in every)
        matrix, searched = measured_of(self._judge.matrix, results)
        return RunData(
            run.id, matrix, results, run.environment, run.status, self._judge, searched, every, self._page_trials(),
            run.captured,
        )  # fmt: skip

    def _page_trials(self) -> dict[tuple[str, str], PageTrials]:
        """The median and the worst trial of each condition and arm with their requests, for workloads that are drawn.

        The median is that of all trials that are data, and the better one of two. A trial may have no requests.
        """
        latest = {seen.result.trial.id: (number, seen.result) for number, seen in self._seen.items()}
        groups: dict[tuple[str, str], list[tuple[int, Result]]] = {}
        for number, result in latest.values():
            trial = result.trial
            if trial.workload.is_drawn and is_data(result):
                groups.setdefault((trial.block.condition.id, trial.arm.name), []).append((number, result))
        return {of: PageTrials(*map(self._page_trial, _typical_and_worst(group))) for of, group in groups.items()}

    def _page_trial(self, numbered: tuple[int, Result]) -> PageTrial:
        number, result = numbered
        return PageTrial(result, requests_of(self._run.samples(number).get("samples", {})))


def _typical_and_worst(group: Sequence[tuple[int, Result]]) -> tuple[tuple[int, Result], tuple[int, Result]]:
    """The median and the worst of several results by their primary metric; of equal ones the earlier."""
    metric = group[0][1].trial.workload.primary()
    key = order_of(metric.better)
    ordered = sorted(group, key=lambda numbered: key(figure(numbered[1], metric)))
    return ordered[(len(ordered) - 1) // 2], ordered[-1]


def results_of(run: Run) -> list[Result]:
    """Every attempt at a trial, without samples and counters. Raises the errors of `Run`."""
    return [without_counters(result) for result in run.each_result()]


def without_counters(result: Result) -> Result:
    """The result without its counters, which are most of it; only the seeds that netem read back stay."""
    if not result.proof.counters:
        return result
    states = result.proof.counters.get("configured", {})
    seeds = {direction: state and {"seed": state.get("seed")} for direction, state in states.items()}
    return replace(result, proof=replace(result.proof, counters={"configured": seeds}))


def _shared(result: Result, known: dict[Hashable, Any]) -> Result:
    """The same result; its block and its checks' texts and constants are those of an earlier one if they are equal."""
    trial, block = result.trial, result.trial.block
    earlier = known.setdefault((block.condition.id, block.index), block)
    checks = tuple(
        replace(check, **{name: known.setdefault(value, value) for name, value in _constants(check)})
        for check in result.proof.checks
    )
    return replace(
        result,
        trial=replace(trial, block=earlier) if earlier == block else trial,
        proof=replace(result.proof, checks=checks),
    )


def _constants(check: Check) -> tuple[tuple[str, Hashable], ...]:
    return ("requested", check.requested), ("tolerance", check.tolerance), ("note", check.note)


def measured_of(matrix: Matrix, results: Iterable[Result]) -> tuple[Matrix, Matrix | None]:
    """For a search: the matrix with only the measured values, and the whole one; else the matrix, and None.

    Verdicts are corrected for the comparisons of the whole; unmeasured values are not shown.
    """
    if matrix.find is None:
        return matrix, None
    seen = {result.trial.block.condition.id for result in results}
    measured = tuple(condition for condition in matrix.conditions if condition.id in seen)
    return replace(matrix, conditions=measured or matrix.conditions[:1], find=None), matrix


def latest_of(results: Iterable[Result]) -> list[Result]:
    """The results without attempts that were repeated."""
    results = list(results)
    latest = {result.trial.id: result for result in results}
    return [result for result in results if latest[result.trial.id] is result]


def was_stopped(result: Result) -> bool:
    """True if the attempt was cut short with its run, by Ctrl-C or a kill: not a fault of lab or protocol."""
    return result.outcome is Outcome.LAB_ERROR and result.reason.endswith(CUT_SHORT)


def outcome_text(result: Result) -> str:
    """An outcome in words; an attempt that was stopped with the run is not a lab error."""
    return STOPPED_WITH_RUN if was_stopped(result) else result.outcome.value


def is_data(result: Result) -> bool:
    """True if a result belongs to the analysis; the others are counted and shown separately."""
    return result.outcome in DATA_OUTCOMES
