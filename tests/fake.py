"""Results as the lab makes them, without a lab: matrices, trials, evidence for the real proof, and whole runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from headwind.arm import H1, H2, H3, PLAIN, Arm, Protocol, Role
from headwind.metric import Workload
from headwind.model import Block, Condition, Matrix, Outcome, Proof, Repetition, Result, SelfCheck, Trial
from headwind.plan.adaptive import choices
from headwind.plan.block_order import plan_block
from headwind.proof.attempts import runs_again
from headwind.proof.evidence import Evidence
from headwind.proof.expectation import stationary_loss
from headwind.proof.trial_checks import prove
from headwind.run.journal import Run
from headwind.run.tables import write_trials
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import BlockSeconds, Judge
from headwind.verdicts.pending import Open
from headwind.workloads.h2load import H2load
from impair.profile import Corrupt, Delay, Direction, Duplicate, Link, Loss, Profile
from tests import quiet

ARTICLE = H2load("article", requests=1000, connections=100, streams=100)
PAGE_BYTES = 612
PACKETS = {Direction.UPLINK: 3000, Direction.DOWNLINK: 4000}
STARTED_AT = 1_795_253_700.0  # 2026-11-21 09:35 UTC
PROFILES = (
    Profile("clean"),
    Profile("delay", downlink=Link(delay=Delay(0.1, 0.01))),
    Profile("loss", downlink=Link(loss=Loss(0.3))),
    Profile("loss-corrupt", downlink=Link(loss=Loss(0.3), corrupt=Corrupt(0.2))),
    Profile("loss-duplicate", uplink=Link(loss=Loss(0.1)), downlink=Link(loss=Loss(0.3), duplicate=Duplicate(0.7))),
)
ENVIRONMENT: dict[str, Any] = {
    "engine": "uml",
    "images": {
        "nginx": "5e5e5e5e5e5e@sha256:" + "5e" * 32,
        "client": "c1c1c1c1c1c1@sha256:" + "c1" * 32,
        "impair": "1a1a1a1a1a1a@sha256:" + "1a" * 32,
    },
    "host": {"kernel": "6.1.0-13-amd64", "cpus": 2, "docker": "20.10.24", "rmem_max": 4194304},
    "testbed": {
        "router": {"kernel": "7.2.7", "netem_counters": True},
        "server": {"nginx": "1.30.6", "openssl": "3.6.0", "offloads": {"tso": False, "gso": False, "gro": False}},
        "client": {"h2load": "1.70.0", "congestion": "cubic"},
    },
}
USUAL_S: dict[Arm, float] = {H1: 1.0, H2: 1.2, H3: 1.0, H2.twin(Role.AGAIN): 1.2, H2.twin(Role.SLOWER): 1.32}
TimeOf = Callable[[Trial], float]


def example_matrix(
    *profiles: Profile, repeat: int | Repetition = 3, timeout_s: float = 60.0, workload: H2load = ARTICLE, **more: Any
) -> Matrix:
    """A matrix of all three protocols; the default profiles are five of every kind."""
    conditions = tuple(Condition(profile, workload) for profile in profiles or PROFILES)
    source = "# what the user wrote\nprotocols: [h1, h2, h3]\n"
    usual = {"arms": PLAIN, "seed": 7, "source": source}
    repeat = Repetition.fixed(repeat) if isinstance(repeat, int) else repeat
    return Matrix(conditions=conditions, repeat=repeat, timeout_s=timeout_s, **{**usual, **more})


def trials_of(matrix: Matrix) -> Iterator[Trial]:
    """Every trial, block by block; the order of protocols goes round from block to block."""
    for index in range(matrix.repeat.least):
        for number, condition in enumerate(matrix.conditions):
            arms = matrix.arms_in(condition)
            first = (index + number) % len(arms)
            order = arms[first:] + arms[:first]
            seeds = {direction: 1000 * index + 10 * number + side for side, direction in enumerate(Direction)}
            yield from Block(condition, index, order, seeds).trials()


def evidence_of(profile: Profile, seed: int, *, clipped: bool = False, overflows: int = 0) -> Evidence:
    """What counters and probes show of a trial with some thousand packets; `clipped` loses half of what was asked."""
    rng = random.Random(seed)
    before, after = _counters(profile), _counters(profile)
    trains: dict[str, Any] = {}
    for direction, about in PACKETS.items():
        link, offered = profile.link(direction), round(about * rng.uniform(0.5, 1.5))
        _carry(after, direction, offered, link, rng, lossy=0.5 if clipped else 1.0)
        arrived = round(100 * (1 - stationary_loss(link.loss)[0]))
        delay_s, jitter_s = (link.delay.delay_s, link.delay.jitter_s) if link.delay else (0.0, 0.0)
        delays = [delay_s + 0.00025 + rng.uniform(-jitter_s, jitter_s) for _ in range(arrived)]
        trains[direction.value] = {"probe": quiet.train(100, delays)}
    after["server"]["udp_rcvbuf_errors"] += overflows
    return _evidence(profile, before, after, trains)


def typical_evidence(profile: Profile) -> Evidence:
    """What a trial shows in which everything happened just as often as it should: any number of them are no news."""
    before, after, trains = _counters(profile), _counters(profile), {}
    for direction in Direction:
        link, offered = profile.link(direction), 10_000
        loss, copying = stationary_loss(link.loss)[0], link.duplicate.ratio if link.duplicate else 0.0
        copies = offered * copying * (1 - loss)
        drops = round(offered * loss * (1 - copying) + copies * loss)
        out = offered + round(copies) - drops
        _write_down(
            after, direction, offered, packets=out, drops=drops, dropped=round((offered + copies) * loss),
            duplicated=round(offered * copying), corrupted=round(out * (link.corrupt.ratio if link.corrupt else 0)),
        )  # fmt: skip
        arrived = round(100 * (1 - loss))
        delay_s, jitter_s = (link.delay.delay_s, link.delay.jitter_s) if link.delay else (0.0, 0.0)
        delays = [delay_s + 0.00025 + jitter_s * ((2 * number + 1) / arrived - 1) for number in range(arrived)]
        trains[direction.value] = {"probe": quiet.train(100, delays)}
        if link.rate:
            trains[direction.value]["bulk"] = quiet.train(60, rate_bps=float(link.rate.rate_bps), received=60)
    return _evidence(profile, before, after, trains)


@cache
def proof_of(profile: Profile, seed: int, *, clipped: bool = False, overflows: int = 0) -> Proof:
    """What the real rules say of `evidence_of` the same."""
    return prove(profile, evidence_of(profile, seed, clipped=clipped, overflows=overflows))


def _evidence(profile: Profile, before: dict[str, Any], after: dict[str, Any], trains: dict[str, Any]) -> Evidence:
    configured = {direction: before["router"][direction] for direction in Direction}
    return Evidence.from_json({"configured": configured, "before": before, "after": after, "trains": trains})


def _counters(profile: Profile) -> dict[str, Any]:
    return quiet.moment({direction: quiet.netem(profile.link(direction)) for direction in Direction})


def _carry(
    counters: dict[str, Any], direction: Direction, offered: int, link: Link, rng: random.Random, *, lossy: float
) -> None:
    """What netem does to `offered` packets (netem_enqueue in sch_netem.c), and what every counter on the way sees."""
    loss = stationary_loss(link.loss)[0] * lossy
    copying = link.duplicate.ratio if link.duplicate else 0.0
    dropped = drops = duplicated = copies = 0
    for _ in range(offered):
        copied, lost = rng.random() < copying, rng.random() < loss
        duplicated += copied
        dropped += lost
        drops += lost and not copied  # of a packet that is copied and lost, one is left
        if copied and not lost:
            copies += 1
            lost_again = rng.random() < loss  # the copy is queued by itself, and exposed to loss again
            dropped += lost_again
            drops += lost_again
    out = offered + copies - drops
    corrupted = sum(rng.random() < (link.corrupt.ratio if link.corrupt else 0) for _ in range(out))
    _write_down(counters, direction, offered, packets=out, drops=drops, dropped=dropped, duplicated=duplicated,
                corrupted=corrupted)  # fmt: skip


def _write_down(counters: dict[str, Any], direction: Direction, offered: int, **netem: int) -> None:
    sender, receiver = direction.sender, direction.receiver
    counters[sender]["tx_frames"] += offered
    counters["router"]["ports"][sender]["rx_frames"] += offered
    counters["router"]["ports"][receiver]["tx_frames"] += netem["packets"]
    counters[receiver]["rx_frames"] += netem["packets"]
    counters["router"][direction]["counters"].update(netem)


def metrics_of(workload: Workload, total_s: float, succeeded: int | None = None) -> dict[str, float]:
    """The metrics of a client that finished after total_s."""
    assert isinstance(workload, H2load)
    done = workload.requests if succeeded is None else succeeded
    body = done * PAGE_BYTES
    return {
        "total_s": total_s, "mean_done_s": 0.4 * total_s, "requests_per_s": done / total_s,
        "goodput_bps": 8 * body / total_s, "requests_succeeded": done,
        "requests_failed": workload.requests - done, "request_p50_s": total_s / 10, "request_p95_s": total_s / 2,
        "ttfb_p50_s": total_s / 8, "bytes_total": body * 1.3, "bytes_body": body,
        "connect_p50_s": total_s / 20, "connect_max_s": total_s / 9, "done_p50_s": total_s * 0.4,
        "done_p90_s": total_s * 0.7, "done_p99_s": total_s * 0.9, "done_all_s": total_s,
        "packet_gap_max_s": total_s / 30,
        "wire_packets": 9 * done, "wire_bytes": 2.5 * body, "wire_down_bytes": 1.5 * body,
    }  # fmt: skip


def ok(trial: Trial, total_s: float, **more: Any) -> Result:
    """A trial whose every request succeeded, with a proof that passed."""
    profile, workload = trial.block.condition.profile, trial.block.condition.workload
    assert isinstance(workload, H2load)
    seed = trial.block.seeds[Direction.DOWNLINK]
    proof = proof_of(profile, seed)
    command = f"h2load --{trial.protocol} -n {workload.requests} -c {workload.connections} https://10.0.0.10/"
    phases_s = {"apply": 0.012, "probe": 0.11, "client": total_s + 0.02, "settle": 0.006}
    samples = {"exit_code": 0, "requests": [round(total_s * share / 50, 6) for share in range(50)]}
    result = Result(
        trial, Outcome.OK, "", metrics_of(workload, total_s), proof, samples, command, phases_s,
        started_at=STARTED_AT + 10 * seed,
    )  # fmt: skip
    return _seeded(replace(result, **more))


def _seeded(result: Result) -> Result:
    """netem read back the block's seeds."""
    if not result.proof.counters:
        return result
    seeds = result.trial.block.seeds
    states = result.proof.counters["configured"]
    configured = {direction.value: {**states[direction.value], "seed": seeds[direction]} for direction in Direction}
    return replace(result, proof=replace(result.proof, counters={**result.proof.counters, "configured": configured}))


def failed(trial: Trial, total_s: float, succeeded: int, **more: Any) -> Result:
    """A trial that ended after total_s with fewer requests than asked for."""
    workload = trial.block.condition.workload
    assert isinstance(workload, H2load)
    reason = f"{workload.requests - succeeded} of {workload.requests} requests failed"
    metrics = metrics_of(workload, total_s, succeeded)
    return ok(trial, total_s, outcome=Outcome.FAILED, reason=reason, metrics=metrics, **more)


def timeout(trial: Trial, timeout_s: float = 60.0, ends: Mapping[str, float] | None = None, **more: Any) -> Result:
    """A trial that was stopped; `ends` are what it tells of its metrics all the same."""
    reason, metrics = f"stopped after {timeout_s:.1f} s", {"timeout_s": timeout_s, **(ends or {})}
    return ok(trial, timeout_s, outcome=Outcome.TIMEOUT, reason=reason, metrics=metrics, **more)


def invalid(trial: Trial, total_s: float, **more: Any) -> Result:
    """A trial whose network lost half of what was asked."""
    profile = trial.block.condition.profile
    proof = proof_of(profile, 1, clipped=True)
    assert not proof.passed, "only a profile with loss can be clipped"
    return ok(trial, total_s, outcome=Outcome.INVALID, reason="impairment not verified: loss", proof=proof, **more)


def warned(trial: Trial, total_s: float, overflows: int) -> Result:
    """A trial during which the server's UDP receive buffer was full."""
    profile, seed = trial.block.condition.profile, trial.block.seeds[Direction.DOWNLINK]
    return ok(trial, total_s, proof=proof_of(profile, seed, overflows=overflows))


def lab_error(trial: Trial, reason: str = "the router died", **more: Any) -> Result:
    """A trial that the lab itself broke."""
    return replace(Result(trial, Outcome.LAB_ERROR, reason, started_at=STARTED_AT), **more)


def likely_time_s(trial: Trial) -> float:
    """A plausible, deterministic time: worse networks are slower, and heavy loss spreads."""
    rng = random.Random(trial.id)
    links = [trial.block.condition.profile.link(direction) for direction in Direction]
    bad = sum(stationary_loss(link.loss)[0] + (link.corrupt.ratio if link.corrupt else 0.0) for link in links)
    delay_s = sum(link.delay.delay_s for link in links if link.delay)
    quickness = {Protocol.H1: 1.0, Protocol.H2: 0.95, Protocol.H3: 0.7}[trial.protocol]
    return (0.2 + 4 * delay_s + 25 * bad * quickness) * rng.uniform(1 - 0.4 * bad, 1.1 + bad)


def ok_results(matrix: Matrix) -> list[Result]:
    """Every trial of the matrix went well."""
    return [ok(trial, likely_time_s(trial)) for trial in trials_of(matrix)]


@contextmanager
def recorded(
    reports: Path, matrix: Matrix, results: Iterable[Result], environment: Mapping[str, Any] = ENVIRONMENT
) -> Iterator[Run]:
    """A finished run on disk with these results."""
    with Run.create(reports, matrix, environment) as run:
        with run.recording():
            for result in results:
                run.begin(result.trial, result.attempt)
                run.append(result)
        yield run


def trials_csv(trials: pd.DataFrame) -> str:
    """What trials.csv holds of a table of trials."""
    file = BytesIO()
    write_trials(file, trials)
    return file.getvalue().decode()


def without_proof(result: Result) -> Result:
    """The result of a lab that measured nothing of the network."""
    return replace(result, proof=Proof())


def found(matrix: Matrix, results: Iterable[Result], *, complete: bool, exhausted: bool) -> list[Finding]:
    """Every finding, in the order of the matrix."""
    judgement = Judge(matrix, results).judgement(lambda _: 1.0, complete=complete, exhausted=exhausted)
    return [finding for line in judgement.lines for finding in line.findings.values()]


def still_open(matrix: Matrix, results: Iterable[Result], block_s: BlockSeconds) -> Sequence[Open]:
    """The conditions with comparisons that are not settled."""
    return Judge(matrix, results).judgement(block_s, complete=False, exhausted=False).open


def next_block(matrix: Matrix, results: Sequence[Result], block_s: BlockSeconds, left_s: float) -> Block | None:
    """The block that adaptive repetition would run next."""
    done = {result.trial.id for result in results if not runs_again(result)}
    return next(iter(choices(matrix, still_open(matrix, results, block_s), done, (), left_s)), None)


def checked_matrix() -> Matrix:
    """Nine blocks to begin with, and both kinds of self-check."""
    checks = SelfCheck(H2, again=("clean", "delay"), slower=("delay",))
    return example_matrix(*PROFILES[:2], repeat=Repetition(least=9, most=60), selfcheck=checks)


def usual(noise: float = 0.005) -> TimeOf:
    """Times of every arm with a little noise, the same whenever they are asked for."""
    return lambda trial: USUAL_S[trial.arm] * math.exp(random.Random(trial.id).uniform(-noise, noise))


def good_blocks(matrix: Matrix, condition: Condition, blocks: int, time_s: TimeOf | None = None) -> list[Result]:
    """Good results of the first blocks of a condition."""
    time_s = time_s or usual()
    plan = [plan_block(matrix, condition, index) for index in range(blocks)]
    return [ok(trial, time_s(trial)) for block in plan for trial in block.trials()]


def one_second(_: Condition) -> float:
    """What a block costs."""
    return 1.0
