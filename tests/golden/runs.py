"""Whole runs, made by code: what a report must be able to show. The same every time they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headwind.model import Matrix, Outcome, Result, Trial, Workload
from headwind.record import State, Status
from headwind.report import RunData
from impair.profile import Delay, FourState, GilbertElliott, Link, Loss, Profile, Rate, Reorder, Slot
from tests.fake import (
    ENVIRONMENT,
    PROFILES,
    STARTED_AT,
    example_matrix,
    failed,
    invalid,
    lab_error,
    likely_time_s,
    ok,
    ok_results,
    timeout,
    trials_of,
    warned,
)

HOSTILE = (
    "<script>alert('owned')</script>",
    "\"quotes' & <b>ampersands</b> --> ]]> {{ 7 * 7 }}",
    "\N{HOT BEVERAGE} \N{MAN}\u200d\N{PERSONAL COMPUTER} \u05e9\u05dc\u05d5\u05dd \u202egnirts",
    "x" * 120,
    "javascript:alert(1) \x1b[31mred\x00\x7f \ud800 \ufffe",
)


@dataclass(frozen=True, slots=True)
class Golden:
    """A run by its name: everything that a run folder of it would hold."""

    matrix: Matrix
    results: tuple[Result, ...]
    state: State = State.FINISHED
    reason: str = ""
    environment: Mapping[str, Any] | None = None

    def data(self, name: str) -> RunData:
        """As a report reads it, started at STARTED_AT and an hour long."""
        ended_at = None if self.state is State.RUNNING else STARTED_AT + 3600
        status = Status(self.state, self.reason, STARTED_AT, ended_at)
        return RunData(name, self.matrix, self.results, self.environment or ENVIRONMENT, status)


def small() -> Golden:
    """Everything went well."""
    matrix = example_matrix(title="HTTP/1.1, HTTP/2 and HTTP/3 on nginx under bad networks")
    return Golden(matrix, tuple(ok_results(matrix)))


def mixed() -> Golden:
    """Some of everything that can happen to a trial."""
    matrix = example_matrix(title="Some of everything")
    changes: dict[str, Callable[[Trial], list[Result]]] = {
        "loss-corrupt/article#0/h1": lambda trial: [timeout(trial)],
        "loss-corrupt/article#1/h1": lambda trial: [timeout(trial)],
        "loss-corrupt/article#2/h2": lambda trial: [timeout(trial)],
        "loss/article#1/h2": lambda trial: [failed(trial, 12.3, 951)],
        "loss/article#2/h1": lambda trial: [invalid(trial, 5.0)],
        "delay/article#1/h3": lambda trial: [lab_error(trial), ok(trial, 0.7, attempt=1)],
        "clean/article#0/h3": lambda trial: [warned(trial, 0.2, overflows=761)],
        "clean/article#2/h3": lambda trial: [warned(trial, 1.2, overflows=12)],
        "clean/article#1/h2": lambda trial: [
            ok(trial, 0.2, outcome=Outcome.WRONG_PROTOCOL, reason="http/1.1 was negotiated instead of h2")
        ],
    }
    results: list[Result] = []
    for trial in trials_of(matrix):
        change = changes.get(trial.id)
        results += change(trial) if change else [ok(trial, likely_time_s(trial))]
    return Golden(matrix, tuple(results))


def all_failed() -> Golden:
    """No trial got its work done."""
    matrix = example_matrix(*PROFILES[:2])
    return Golden(matrix, tuple(failed(trial, 2.0, 10 * number) for number, trial in enumerate(trials_of(matrix))))


def timeouts_half() -> Golden:
    """Of four trials of each protocol, two timed out."""
    matrix = example_matrix(PROFILES[3], repeat=4)
    results = [
        ok(trial, 10.0 + trial.block.index) if trial.block.index % 2 else timeout(trial) for trial in trials_of(matrix)
    ]
    return Golden(matrix, tuple(results))


def one_trial() -> Golden:
    """The smallest run there is."""
    matrix = example_matrix(PROFILES[0], repeat=1, protocols=example_matrix().protocols[2:])
    return Golden(matrix, tuple(ok_results(matrix)))


def in_progress() -> Golden:
    """Read while the lab was in its second block."""
    matrix = example_matrix()
    return Golden(matrix, tuple(ok_results(matrix)[:20]), State.RUNNING)


def killed_at_once() -> Golden:
    """Not a single trial ended."""
    return Golden(example_matrix(), (), State.INTERRUPTED, "the lab was stopped before it could say why", {})


def hostile() -> Golden:
    """Names, reasons and facts that would like to be more than text."""
    network = Link(loss=Loss(0.3))
    profiles = [Profile(name, downlink=network) for name in HOSTILE]
    matrix = example_matrix(
        *profiles, repeat=1, title=HOSTILE[0], source="\n".join(HOSTILE), workload=Workload(HOSTILE[1], 1000, 100, 100)
    )
    results = [
        replace(failed(trial, 1.0, 900), reason=HOSTILE[number % 5], command=HOSTILE[(number + 1) % 5])
        for number, trial in enumerate(trials_of(matrix))
    ]
    environment = {**ENVIRONMENT, "</style><script>alert(1)</script>": list(HOSTILE), "engine": HOSTILE[0]}
    return Golden(matrix, tuple(results), State.FAILED, HOSTILE[0], environment)


def every_impairment() -> Golden:
    """Both directions, with everything that netem can do."""
    full = Link(
        delay=Delay(0.1, 0.01, "normal"), loss=GilbertElliott(0.01, 0.3), reorder=Reorder(0.25, 5),
        rate=Rate(10_000_000, 20, 53, 5), ecn=True, queue_packets=50,
    )  # fmt: skip
    state = Link(loss=FourState(0.01, 0.5), slot=Slot(0.01, 0.02, 8), limit_packets=500)
    matrix = example_matrix(Profile("full", state, full), repeat=1)
    return Golden(matrix, tuple(lab_error(trial) for trial in trials_of(matrix)))


RUNS: dict[str, Callable[[], Golden]] = {
    "small": small,
    "mixed": mixed,
    "all-failed": all_failed,
    "timeouts-half": timeouts_half,
    "one-trial": one_trial,
    "in-progress": in_progress,
    "killed-at-once": killed_at_once,
    "hostile": hostile,
    "every-impairment": every_impairment,
}
