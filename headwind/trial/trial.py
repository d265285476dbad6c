"""Runs one trial: clear caches, set netem, probe, run the client, wait, prove, check the content, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from headwind.arm import Protocol
from headwind.clock import Clock
from headwind.metric import SERVER_TIME
from headwind.model import Check, Outcome, Proof, Result, Trial
from headwind.proof.bursts import stalls
from headwind.proof.evidence import Evidence, Missed, Moment, WindowSizes
from headwind.proof.expectation import Expectation
from headwind.proof.processors import costs, processor_limits
from headwind.proof.proof import prove
from headwind.proof.served import check_served
from headwind.proof.windows import window_warnings
from headwind.proof.wire import wire
from headwind.settings import UNBOUND, Settings
from headwind.testbed.operations import ANSWERS, COUNTERS, HEALTH, RUN, SHOW, WINDOWS
from headwind.testbed.testbed import Testbed
from headwind.trial.congestion import expected_fingerprints, finish_look, start_look, use_congestion
from headwind.trial.content import finish_fetch, not_compared, start_fetch, wrong_content
from headwind.trial.probes import apply, describe, probe_network
from impair.messages import Answers, ClientRun, ContainerCounters, Fetched, Health
from impair.profile import Direction, Profile
from nginx.objects import is_on_demand

SETTLE_S = 0.5  # longest wait for frames that are still on their way, beyond the path's own delay
LOST_S = 0.05  # frames under way that none of the counters moved for so long, beyond that delay, are not to come
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.008  # between two readings of all counters; each is twice as long as the last
PROVIDE_S = 30.0  # longest time to make an object: 64 MB take about a second
CLIENT_GRACE_S = 10.0  # what the client agent may take beyond the trial's timeout
HEADROOM = 1.5  # a trial may use the path up to its measured ceiling divided by this


@dataclass(slots=True)
class Stopwatch:
    """Where a trial's time went, in seconds by phase."""

    clock: Clock
    phases_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to phase `name`."""
        start = self.clock.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + self.clock.monotonic() - start


def run_trial(
    testbed: Testbed, trial: Trial, timeout_s: float, attempt: int = 0, probe: bool = True,
    settings: Settings = UNBOUND,
) -> Result:  # fmt: skip
    """Execute one trial on a testbed that is up, and judge it.

    Raises AgentDied or AgentError when the lab itself broke: then there is no result, and the testbed is to be rebuilt.
    Without `probe` no train is sent and the result is `invalid` (benchmarks only).
    """
    started_at, watch = time.time(), Stopwatch(testbed.clock)
    profile, settings = trial.profile, trial.arm.settings(settings)
    port = settings.port(resumes=trial.workload.resumes)
    with watch.phase("forget"):
        prepare(testbed, trial)
    with watch.phase("apply"):
        configured = apply(testbed, trial)
    with watch.phase("probe"):
        trains, missed = probe_network(testbed, trial, configured) if probe else ({}, [])
    with watch.phase("count"):
        before, server_windows, health = _counted(testbed, port)
    with watch.phase("client"):
        look = start_look(testbed, trial, timeout_s)
        run, answer = run_client(testbed, trial, timeout_s, settings)
        sockets = finish_look(testbed, look, run)
    with watch.phase("settle"):
        after = _settled(partial(read_moment, testbed), profile, before, testbed.clock)
        served = testbed.server.call(ANSWERS, 10.0, testbed.agents) if trial.workload.is_logged else None
    with watch.phase("compare"):
        fetch = start_fetch(testbed, trial, port)
    with watch.phase("settle"):  # while the client fetches
        after = replace(after, fingerprints=testbed.read_fingerprints())
    with watch.phase("prove"):
        windows = {"server": server_windows, "client": run.windows}
        evidence = Evidence(configured, before, after, trains, expected_fingerprints(testbed), windows, missed, sockets)
        answer |= {"served": asdict(served)} if served else {}
        cost = _costs(trial, evidence, run)
        workers = len(health.workers)
        proof = _proven(trial, testbed, evidence, run, workers, _on_server(trial, served, answer, workers, cost))
    with watch.phase("compare"):
        fetched = finish_fetch(testbed, fetch)
        answer["content"] = asdict(fetched) if fetched else {}
        is_healthy = testbed.server.call(HEALTH) == health
    outcome, reason = decide(trial, run, answer, fetched, proof, is_healthy=is_healthy)
    metrics = {**run.metrics, **trial.workload.further(answer)}
    if outcome is Outcome.TIMEOUT:
        metrics = {"timeout_s": timeout_s, **trial.workload.bounds(answer, timeout_s)}
    return Result(
        trial, outcome, reason, {**metrics, **cost}, proof, answer, " ".join(run.command),
        watch.phases_s, attempt, started_at,
    )  # fmt: skip


def _counted(testbed: Testbed, port: int) -> tuple[Moment, WindowSizes, Health]:
    """All counters before the client runs, the windows behind the server's port, and its processes."""
    windows, health = testbed.server.start(WINDOWS, port=port), testbed.server.start(HEALTH)
    before = read_moment(testbed)
    server, agents = testbed.server, testbed.agents
    return before, server.wait(windows, 10.0, agents), server.wait(health, 10.0, agents)


def _costs(trial: Trial, evidence: Evidence, run: ClientRun) -> dict[str, float]:
    """The metrics of processors and of the wire, whatever became of the trial."""
    found = costs(run, evidence.before.processors(), evidence.after.processors())
    return {**found, **wire(evidence, run.silence_s, over_tcp=trial.protocol is not Protocol.H3)}


def _near_the_ceiling(testbed: Testbed, evidence: Evidence, seconds: float) -> Iterator[str]:
    """Warnings for directions in which the trial's frames came too near to the packet rate that the path can carry."""
    for direction, ceiling in testbed.facts.get("ceiling", {}).items():
        frames, limit = evidence.sent(Direction(direction)), ceiling["frames_per_s"] / HEADROOM
        if seconds > 0 and frames / seconds > limit:
            yield f"{direction}: {frames / seconds:.0f} frames/s, above {limit:.0f} which the path carries with reserve"


def _proven(
    trial: Trial, testbed: Testbed, evidence: Evidence, run: ClientRun, workers: int, further: Iterable[Check]
) -> Proof:
    """The proof with `further` checks, and with what else there is to say of a trial; `workers` are the server's."""
    proof, threads = prove(trial.profile, evidence), trial.workload.processors()
    said = (
        *_repeats(evidence.missed),
        *_near_the_ceiling(testbed, evidence, run.wall_s),
        *window_warnings(trial, evidence, run.wall_s),
        *stalls(trial.profile, run.silence_s),
        *processor_limits(run, evidence.before.processors(), evidence.after.processors(), threads, workers),
    )
    return replace(proof, checks=(*proof.checks, *further), warnings=(*proof.warnings, *said))


def _on_server(
    trial: Trial, served: Answers | None, answer: Mapping[str, Any], workers: int, cost: Mapping[str, float]
) -> Iterator[Check]:
    """Whether the server was what the workload asks for, by its own log and by what the client counted."""
    answered, busy_s = trial.workload.answered(answer), cost.get(SERVER_TIME.key, 0.0)
    return check_served(trial.workload, served, answered, workers, busy_s)


def _repeats(missed: Sequence[Missed]) -> Iterator[str]:
    if missed:
        why = f"because they first showed another network: {missed[-1].why[0]}"
        yield f"probes were sent {1 + len(missed)} times before the client started, {why}"


def prepare(testbed: Testbed, trial: Trial) -> None:
    """Have the object made that is fetched, if that is on demand; forget the trial before; set congestion control."""
    path = trial.workload.object_path()
    if is_on_demand(path):
        testbed.server.call("provide", PROVIDE_S, testbed.agents, path=path)
    forget(testbed, trial.workload.workers)
    use_congestion(testbed, trial.arm.congestion(testbed.congestion, trial.workload).tcp)


def forget(testbed: Testbed, workers: int = 1) -> None:
    """Let nothing of the trial before live on: connections, TCP metrics, nginx workers, packets in a delay line.

    nginx then has so many new workers.
    """
    if testbed.engine != "plain":
        testbed.router.call("clear")  # first: a late packet from a delay line would open a ghost connection
    restart = testbed.server.start("restart_workers", workers=workers)
    testbed.client.call("forget")
    testbed.server.wait(restart, 10.0, testbed.agents)
    testbed.server.call("forget")


def read_moment(testbed: Testbed) -> Moment:
    """All counters of the three hosts: what was sent first, then the router's, then what was received.

    In this order a frame that is counted as sent is counted everywhere else as well, or it is under way, or lost.
    """
    sent = testbed.ask_endpoints(COUNTERS)
    router = testbed.router.call(SHOW, 10.0, testbed.agents)
    received = testbed.ask_endpoints(COUNTERS)
    client, server = (
        replace(last, tx_frames=first.tx_frames, largest_gap_s=max(first.largest_gap_s, last.largest_gap_s))
        for first, last in zip(sent, received, strict=True)
    )
    outside = ContainerCounters(router.container) if router.container else None
    return Moment(client, server, replace(router, container=None), outside)


def run_client(
    testbed: Testbed, trial: Trial, timeout_s: float, settings: Settings = UNBOUND
) -> tuple[ClientRun, dict[str, Any]]:
    """The workload over the trial's protocol, by a fresh client process: what all clients tell, and the whole answer.

    Raises AgentError where the answer is none.
    """
    workload = trial.workload
    answer: dict[str, Any] = testbed.client.call(
        "run", timeout_s + CLIENT_GRACE_S, testbed.agents,
        program=workload.program, protocol=trial.protocol.value, host=testbed.addresses.host("server", 10),
        port=settings.port(resumes=workload.resumes), timeout_s=timeout_s, settings=settings.client.value,
        **workload.asked(),
    )  # fmt: skip
    return testbed.client.understood(RUN, answer), answer


def _settled(read: Callable[[], Moment], profile: Profile, before: Moment, clock: Clock) -> Moment:
    """Read the counters until no frame is between two hosts, or until none that is can still arrive.

    Frames in a delay line need not be waited for: netem says how many it holds. Those that a bridge dropped for their
    corrupted address never arrive: then the counters stand still.
    """
    longest_s = max(Expectation.of(profile.link(direction)).longest_s() for direction in Direction)
    begun = since = clock.monotonic()
    after, pause_s = read(), FIRST_PAUSE_S
    while _under_way(before, after):
        now = clock.monotonic()
        if now > begun + longest_s + SETTLE_S or now > max(since, begun + longest_s) + LOST_S:
            break
        clock.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        later = read().with_gaps_of(after)  # which every reading starts afresh
        if _frames(later) != _frames(after):
            since = clock.monotonic()
        after = later
    return after


def _frames(moment: Moment) -> int:
    """All frames that were counted so far, wherever."""
    hosts = [moment.client, moment.server, *moment.router.ports.values()]
    return sum(host.rx_frames + host.tx_frames for host in hosts)


def _under_way(before: Moment, after: Moment) -> int:
    """Frames that left one host and were not yet counted by the next, or the other way round."""

    def missing(moment: Moment) -> list[int]:
        ports, ends = moment.router.ports, {"client": moment.client, "server": moment.server}
        entering = [end.tx_frames - ports[side].rx_frames for side, end in ends.items()]
        leaving = [ports[side].tx_frames - end.rx_frames for side, end in ends.items()]
        return entering + leaving

    # A hop may gain a frame of the bridge's own (it never loses one): only a loss can still be under way.
    return sum(max(0, now - then) for then, now in zip(missing(before), missing(after), strict=True))


def decide(
    trial: Trial, run: ClientRun, answer: Mapping[str, Any], fetched: Fetched | None, proof: Proof, *, is_healthy: bool
) -> tuple[Outcome, str]:
    """The outcome of a trial and the reason for it, in the order in which they exclude each other.

    `run` and `answer` are the client's, `fetched` what it fetched for comparison (headwind/trial/content.py);
    `is_healthy` says that nginx has the processes that it had.
    """
    if trouble := _lab_trouble(run, is_healthy=is_healthy):
        return Outcome.LAB_ERROR, trouble
    if not proof.passed:
        broken = [describe(check) for check in proof.checks if not check.passed]
        return Outcome.INVALID, "impairment not proven: " + "; ".join(broken or ["no checks"])
    if wrong := wrong_content(trial, answer, fetched):
        return Outcome.WRONG_CONTENT, wrong
    if run.timed_out:
        return Outcome.TIMEOUT, f"stopped after {run.wall_s:.1f} s"
    spoken = run.negotiated.get("alpn")
    if spoken and spoken != trial.protocol.alpn:
        return Outcome.WRONG_PROTOCOL, f"{spoken} was negotiated instead of {trial.protocol.alpn}"
    if shortfall := trial.workload.shortfall(answer):
        return Outcome.FAILED, shortfall
    uplink = trial.profile.uplink
    if wrong := trial.workload.wrong_session(answer, orderly=not (uplink.loss or uplink.corrupt or uplink.reorders)):
        return Outcome.WRONG_SESSION, wrong
    unclear = _unclear(trial, spoken, answer, fetched)
    return (Outcome.LAB_ERROR, unclear) if unclear else (Outcome.OK, "")


def _lab_trouble(run: ClientRun, *, is_healthy: bool) -> str:
    """What broke in the lab itself; empty where nothing did."""
    if not is_healthy:
        return "nginx died during the trial"
    if not run.timed_out and run.exit_code:
        return f"the client ended with status {run.exit_code}: {run.stderr_tail or 'no message'}"
    return ""


def _unclear(trial: Trial, spoken: str | None, answer: Mapping[str, Any], fetched: Fetched | None) -> str:
    """Why a trial that looks good cannot be relied on; empty where it can."""
    if not spoken:
        return "the client did not say which protocol it negotiated"
    if contradiction := trial.workload.contradiction(answer):
        return f"the client's totals do not add up: {contradiction}"
    return not_compared(trial, fetched)
