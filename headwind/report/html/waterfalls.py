"""Prepares the waterfalls of a condition: the requests of each arm's median trial, all on one time axis."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.arm import Arm
from headwind.format import arm_name, counted, measured
from headwind.model import Outcome
from headwind.report.condition import ConditionView, trial_text
from headwind.report.formats.har import MEDIAN, WORST, har_name
from headwind.report.html import charts
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.page_requests import PageRequest, PageTrial, PageTrials


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The median trial of an arm: its chart, its figures as a text, and the archives of it and of the worst trial."""

    arm: Arm
    chart: Markup
    icon: Markup
    time: str
    anchor: str  # of the row of its block
    block: int
    figures: str
    archives: tuple[tuple[str, str], ...]  # text and address of each link


def waterfalls(data: RunData, view: ConditionView) -> list[Waterfall]:
    """A waterfall of each arm whose median trial has requests; none if the workload's requests are not drawn."""
    known = {arm: data.page_trials.get((view.condition.id, arm.name)) for arm in view.arms}
    found = {arm: trials for arm, trials in known.items() if trials and trials.median.requests}
    ends = (max(_load_s(each.median) or 0.0, *(it.done_s for it in each.median.requests)) for each in found.values())
    end_s = max(ends, default=0.0)
    return [
        Waterfall(
            arm, _chart(view, number, arm, trials.median, end_s), charts.icon(arm.name),
            trial_text(trials.median.result), f"{view.anchor}b{trials.median.result.trial.block.index}",
            trials.median.result.trial.block.index, _figures(trials.median.requests),
            tuple(_archives(data, view, arm, trials)),
        )
        for number, (arm, trials) in enumerate(found.items(), 1)
    ]  # fmt: skip


def _chart(view: ConditionView, number: int, arm: Arm, trial: PageTrial, end_s: float) -> Markup:
    return charts.waterfall(
        f"{view.anchor}-waterfall-{number}", arm.name, trial.requests, end_s=end_s, load_s=_load_s(trial),
        title=f"Requests of the median trial of {arm_name(arm)} in {view.name}",
        description=f"{counted(len(trial.requests), 'request')}, one row each, in the order in which they were wanted. "
        f"{_figures(trial.requests)}.",
    )  # fmt: skip


def _load_s(trial: PageTrial) -> float | None:
    metric = trial.result.trial.workload.primary()
    return trial.result.metrics.get(metric.key) if trial.result.outcome is Outcome.OK else None


def _figures(requests: Sequence[PageRequest]) -> str:
    """`1 connection; median request: 12.0 ms until sent, 480 ms until its first byte, 3.10 ms until its last`."""
    waits = (
        ("until sent", [request.queued_s + request.connecting_s for request in requests]),
        ("until its first byte", [request.waiting_s for request in requests]),
        ("until its last", [request.receiving_s for request in requests]),
    )
    times = (f"{measured('time_s', statistics.median(values))} {name}" for name, values in waits)
    opened = sum(request.opened_connection for request in requests)
    return f"{counted(opened, 'connection')}; median request: {', '.join(times)}"


def _archives(data: RunData, view: ConditionView, arm: Arm, trials: PageTrials) -> Iterator[tuple[str, str]]:
    """None while the run is in progress: they are written at its end."""
    if data.status.state is not State.RUNNING:
        for which, trial in ((MEDIAN, trials.median), (WORST, trials.worst)):
            if trial.requests:
                address = har_name(data.matrix, view.condition, arm.name, which)
                yield f"{which} trial ({trial_text(trial.result)})", address
