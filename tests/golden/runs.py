"""Whole runs, made by code: what a report must be able to show. The same every time they are made."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol, Role
from headwind.model import Matrix, Outcome, Published, PublishedRow, Repetition, Result, SelfCheck, Trial
from headwind.plan.block_order import plan_block
from headwind.proof.trial_checks import prove
from headwind.report import RunData
from headwind.run.codec import State, Status
from headwind.settings import Windows
from headwind.workloads.h2load import H2load
from impair.profile import Delay, FourState, GilbertElliott, Link, Loss, Profile, Rate, Reorder, Slot
from tests.fake import (
    ENVIRONMENT,
    PROFILES,
    STARTED_AT,
    checked_matrix,
    example_matrix,
    failed,
    invalid,
    lab_error,
    likely_time_s,
    metrics_of,
    ok,
    ok_results,
    timeout,
    trials_of,
    typical_evidence,
    warned,
)

TIMEOUTS = 0.02  # of the large run's trials over a network with loss
HOSTILE = (
    "<script>alert('owned')</script>",
    "\"quotes' & <b>ampersands</b> --> ]]> {{ 7 * 7 }}",
    "\N{HOT BEVERAGE} \N{MAN}\u200d\N{PERSONAL COMPUTER} \u05e9\u05dc\u05d5\u05dd \u202egnirts",
    "x" * 300,
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
    matrix = example_matrix(title="HTTP/1.1, HTTP/2 and HTTP/3 on nginx over bad networks")
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
    matrix = example_matrix(PROFILES[0], repeat=1, arms=example_matrix().arms[2:])
    return Golden(matrix, tuple(ok_results(matrix)))


def in_progress() -> Golden:
    """Read while the lab was in its second block."""
    matrix = example_matrix()
    return Golden(matrix, tuple(ok_results(matrix)[:20]), State.RUNNING)


def killed_at_once() -> Golden:
    """Not a single trial ended."""
    return Golden(example_matrix(), (), State.INTERRUPTED, "the lab was killed, so no reason was recorded", {})


def hostile() -> Golden:
    """Names, reasons and facts that would like to be more than text."""
    network = Link(loss=Loss(0.3))
    profiles = [Profile(name, downlink=network) for name in HOSTILE]
    matrix = example_matrix(
        *profiles, repeat=1, title=HOSTILE[0], source="\n".join(HOSTILE), workload=H2load(HOSTILE[1], 1000, 100, 100)
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


def took(trial: Trial, total_s: float) -> Result:
    """As `ok`, with the proof of one trial for all of the same network: simulating one takes long."""
    return replace(_sample(trial.profile), trial=trial, metrics=metrics_of(trial.block.condition.workload, total_s))


@cache
def _sample(profile: Profile) -> Result:
    trial = next(trials_of(example_matrix(profile)))
    return ok(trial, 1.0, proof=prove(profile, typical_evidence(profile)))


def sweep() -> Golden:
    """Loss from 0 to 20 %: h3 begins behind and ends ahead."""
    ratios = (0, 0.01, 0.02, 0.1, 0.2)
    profiles = [Profile(f"loss{ratio:.0%}", downlink=Link(loss=Loss(ratio) if ratio else None)) for ratio in ratios]
    matrix = example_matrix(*profiles, repeat=12, title="HTTP/3 over loss")
    lead = dict(zip(profiles, (0.7, 0.8, 1.25, 1.4, 2.0), strict=True))
    results = [
        took(trial, (1 / lead[trial.profile] if trial.protocol is Protocol.H3 else 1.0) * shaken(trial))
        for trial in trials_of(matrix)
    ]
    return Golden(matrix, tuple(results))


def grid() -> Golden:
    """Delay and loss, each value with each: h3 is behind without loss and ahead with it, whatever the delay."""
    lead = {0: 0.85, 1: 1.4, 5: 2.5}
    profiles = {
        Profile(f"delay{ms}-loss{percent}", downlink=Link(Delay(ms / 1000), Loss(percent / 100))): lead[percent]
        for ms in (10, 50, 200)
        for percent in lead
    }
    matrix = example_matrix(*profiles, repeat=12, title="Delay and loss")
    results = [
        took(trial, shaken(trial) ** 0.3 / (profiles[trial.profile] if trial.protocol is Protocol.H3 else 1.0))
        for trial in trials_of(matrix)
    ]
    return Golden(matrix, tuple(results))


def shaken(trial: Trial) -> float:
    """A factor around 1, the same for the same trial."""
    return random.Random(trial.id).uniform(0.97, 1.03)


def published() -> Golden:
    """What an article found, of which one row is reproduced, one contradicted, and one left open."""
    found = {"clean": (0.2, 0.4), "delay": (2.0, 1.0), "loss": (None, 5.0)}
    rows = tuple(
        PublishedRow(f"{name}/article", {Protocol.H1: h1, Protocol.H3: h3}) for name, (h1, h3) in found.items()
    )
    article = Published("an-article", "An article about nginx", rows, "Other machines, single runs.")
    matrix = example_matrix(*PROFILES[:3], repeat=12, published=(article,))
    speed = {Protocol.H1: 1.0, Protocol.H2: 0.99, Protocol.H3: 0.8}
    results = [
        took(trial, shaken(trial) ** (30 if trial.profile.name == "loss" else 1) / speed[trial.protocol])
        for trial in trials_of(matrix)
    ]
    return Golden(matrix, tuple(results))


def checked() -> Golden:
    """An adaptive run with self-checks, one of which fails: the slower twin is not slower."""
    matrix = example_matrix(
        *PROFILES[:3], repeat=Repetition(least=12), title="A lab that checks itself",
        selfcheck=SelfCheck(H2, again=("clean", "delay"), slower=("delay",)),
    )  # fmt: skip
    speed = {Protocol.H1: 1.0, Protocol.H2: 1.2, Protocol.H3: 1.5}
    spread = {"clean": 1, "delay": 0.4, "loss": 20}
    return Golden(
        matrix,
        tuple(took(trial, shaken(trial) ** spread[trial.profile.name] / speed[trial.protocol])
              for trial in trials_of(matrix)),
    )  # fmt: skip


def arms() -> Golden:
    """Protocols beside the same with their own settings; some pairs are compared, and one such arm has a twin."""
    six = Arm("h1-six", Protocol.H1, overrides=Overrides((("connections", 6),)))
    bbr = Arm("h2-bbr", Protocol.H2, overrides=Overrides(congestion="bbr"))
    shipped = Arm(
        "h3-as-shipped",
        Protocol.H3,
        overrides=Overrides(server_windows=Windows.AS_SHIPPED, client_windows=Windows.AS_SHIPPED),
    )
    matrix = example_matrix(
        *PROFILES[:2], repeat=12, title="Arms", arms=(*PLAIN, six, bbr, shipped),
        compare=((six, H1), (bbr, H2), (shipped, H3), (H3, H2)), selfcheck=SelfCheck(bbr, again=("clean",)),
    )  # fmt: skip
    speed = {H1: 1.0, H2: 1.2, H3: 1.5, six: 1.51, bbr: 1.3, shipped: 0.4, bbr.twin(Role.AGAIN): 1.3}
    return Golden(matrix, tuple(took(trial, shaken(trial) / speed[trial.arm]) for trial in trials_of(matrix)))


def large(blocks: int = 60) -> Golden:
    """40 conditions, 7,200 trials; over the networks with loss one in fifty times out."""
    losses = {percent: Loss(percent / 100) if percent else None for percent in (0, 0.1, 0.5, 1, 2, 5, 10, 20)}
    profiles = [
        Profile(f"delay{delay_ms}-loss{percent}", downlink=Link(Delay(delay_ms / 1000), loss))
        for delay_ms in (10, 20, 50, 100, 200)
        for percent, loss in losses.items()
    ]
    matrix = example_matrix(*profiles, repeat=blocks, title="Delay and loss, a fine grid")
    results = []
    for number, trial in enumerate(trials_of(matrix)):
        rng = random.Random(trial.id)
        block = plan_block(matrix, trial.block.condition, trial.block.index)  # for its seeds, which are long
        result = took(replace(trial, block=block, position=block.order.index(trial.arm)), likely_time_s(trial))
        if trial.profile.downlink.loss and rng.random() < TIMEOUTS:
            metrics = {"timeout_s": matrix.timeout_s}
            result = replace(result, outcome=Outcome.TIMEOUT, reason="stopped after 60.0 s", metrics=metrics)
        results.append(replace(result, started_at=STARTED_AT + 2.5 * number))
    return Golden(matrix, tuple(results))


_MADE: dict[str, Callable[[], Golden]] = {
    "small": small,
    "mixed": mixed,
    "all-failed": all_failed,
    "timeouts-half": timeouts_half,
    "one-trial": one_trial,
    "in-progress": in_progress,
    "killed-at-once": killed_at_once,
    "hostile": hostile,
    "every-impairment": every_impairment,
    "sweep": sweep,
    "grid": grid,
    "published": published,
    "checked": checked,
    "arms": arms,
}
RUNS = {name: cache(make) for name, make in _MADE.items()}  # nothing changes one


def everything() -> RunData:
    """A run with something in every list: warnings, self-checks, comparisons that are not decided."""
    matrix = checked_matrix()
    results: list[Result] = ok_results(matrix)
    results[3] = timeout(results[3].trial)
    results[7] = failed(results[7].trial, 1.0, 900)
    return Golden(matrix, tuple(results)).data("everything")
