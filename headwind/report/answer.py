"""The answer of a run: the beginning of the page, of the terminal's output and of summary.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwind.browsers import BROWSERS
from headwind.format import enumerated, served_text
from headwind.metric import Metric, Workload
from headwind.model import Matrix
from headwind.report.headline import headline, tallies_of
from headwind.report.ranking import Standing, standings
from headwind.report.search import search_text
from headwind.report.trust import trust_line
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.shortfall import not_run, shortfalls, unfinished
from headwind.settings import Settings, Windows
from headwind.verdicts.congestion import confounded
from headwind.workloads.h2load import TOTAL


@dataclass(frozen=True, slots=True)
class Answer:
    """The essential result in sentences, and the networks in the order in which they are shown."""

    headline: str  # in how many networks a result is sure; for a search, where the winner changes
    by_others: tuple[str, ...]  # the same by other metrics, if they add to it or differ; what arms differ in besides
    measured: str  # what was fetched, in plain words
    trust: str
    shortfalls: tuple[str, ...]  # the reasons for exit status 1 of a run that ended by itself
    gaps: tuple[str, ...]  # the networks that a run that was stopped has no trial of, and those in which none finished
    standings: Sequence[Standing]

    @property
    def has_other_metrics(self) -> bool:
        """True if the table shows a result by another metric than the primary one."""
        return any(cell.others for standing in self.standings for cell in standing.cells.values())


def answer_of(data: RunData) -> Answer:
    """The answer of a run so far."""
    found = standings(data)
    first, *others = headline(data, found, tallies_of(data, found))
    return Answer(
        search_text(data) or first,
        (*others, *(f"{sentence}." for sentence in confounded(data.matrix))),
        " ".join((*workloads(data), *_windows(data.matrix.settings))),
        trust_line(data),
        tuple(shortfalls(data)) if data.status.state is State.FINISHED else (),
        tuple(_gaps(data)),
        found,
    )


def _windows(settings: Settings) -> Iterator[str]:
    """A sentence on the ends whose windows are as shipped, unless an arm has its own."""
    ends = [end for end in ("server", "client") if getattr(settings, end) is Windows.AS_SHIPPED]
    if ends:
        yield f"Windows and buffers of the {enumerated(ends)} are as shipped, and can limit transfers over long paths."


def _gaps(data: RunData) -> Iterator[str]:
    """A sentence for the networks without a trial, if the run was stopped, and one for those in which none finished.

    If it ended by itself, they are in the reasons for its exit status (shortfalls).
    """
    is_stopped = data.status.state in (State.INTERRUPTED, State.FAILED)
    named = {
        "Not run": not_run(data) if is_stopped else [],
        "No trial finished": unfinished(data),
    }
    for label, conditions in named.items():
        if conditions:
            reasons = [each.reason for each in data.latest if each.trial.block.condition in conditions and each.reason]
            last = f"; the last trial: {reasons[-1]}" if reasons else ""
            yield f"{label}: {', '.join(map(data.matrix.name_of, conditions))}{last}."


def workloads(data: RunData) -> list[str]:
    """The workloads in plain words: a sentence for all that are compared by the same metric first.

    Workloads with the same description are named together; if their server delays differ, with the range.
    """
    alike: dict[tuple[Metric, str, str], list[Workload]] = {}  # by metric, description, and server delay
    for workload, condition in {each.workload: each for each in data.matrix.conditions}.items():
        metrics = [
            result.metrics
            for result in data.latest
            if result.trial.block.condition.workload == workload and not result.trial.arm.overrides.workload
        ]
        asked = served_text(replace(workload, server_delay_s=0.0))
        short = _in_short(data.matrix, workload, metrics)
        alike.setdefault((data.matrix.judged(condition)[0], short, asked), []).append(workload)
    parts: dict[tuple[str, str, str], list[str]] = {}  # by definition of the metric, limitation, and server delay
    for (metric, short, _), same in alike.items():
        content, _, limit = short.partition("; ")
        names = [workload.name for workload in same]
        text = f"{names[0]}, {content}" if len(same) == 1 else f"{content} ({enumerated(names)})"
        defined = f"{metric.label}: until its last byte" if _is_single(metric, same) else _defined(metric)
        parts.setdefault((defined, limit, served_text(*same)), []).append(
            content if data.matrix.place == "network" else text
        )
    return [
        f"Workload: {'; '.join(texts)}{f'; {limit}' if limit else ''}. Compared by {defined}.{served}"
        for (defined, limit, served), texts in parts.items()
    ]


def _is_single(metric: Metric, workloads: Iterable[Workload]) -> bool:
    """True for the total time of one request, which has no slowest connection."""
    return metric == TOTAL and all(workload.size() == 1 for workload in workloads)


def _defined(metric: Metric) -> str:
    """The metric with its definition: `total time (until the last request is done)`."""
    return f"{metric.label} ({metric.meaning})" if metric.meaning else metric.label


def _in_short(matrix: Matrix, workload: Workload, metrics: Sequence[Mapping[str, float]]) -> str:
    """The workload's short description; of a page with the browsers of all arms."""
    protocols = {arm.protocol.value for arm in matrix.arms}
    if not workload.browser:
        return workload.in_short(metrics, protocols)
    first, *others = dict.fromkeys(dict(arm.overrides.workload).get("browser", workload.browser) for arm in matrix.arms)
    used: dict[str, Any] = {"browser": first}
    return replace(workload, **used).in_short(metrics, protocols) + "".join(
        f" and in {BROWSERS[str(name)]}" for name in others
    )
