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
from headwind.metric import MEMORY, SERVER_TIME
from headwind.model import Check, Outcome, Proof, Result, Trial
from headwind.proof.bursts import stalls
from headwind.proof.competition import check_competition, division
from headwind.proof.ends import check_served, wire
from headwind.proof.evidence import Evidence, Missed, Moment, WindowSizes
from headwind.proof.expectation import Expectation
from headwind.proof.processors import costs, processor_limits
from headwind.proof.spans import downlink_losses
from headwind.proof.trial_checks import prove
from headwind.proof.windows import window_warnings
from headwind.servers import Offer
from headwind.settings import TrialRules
from headwind.testbed.agent import AgentDied, AgentError, Request
from headwind.testbed.containers import last_lines
from headwind.testbed.docker import docker
from headwind.testbed.operations import ANSWERS, COUNTERS, HEALTH, LOG, RUN, SENT, SHOW, WINDOWS
from headwind.testbed.own_server import OwnServerError
from headwind.testbed.path import Path
from headwind.trial.capture import Capture, capturing
from headwind.trial.competition import end_competition, start_competition
from headwind.trial.congestion import finish_look, start_look, use_congestion
from headwind.trial.content import finish_fetch, not_compared, start_last_look, wrong_content
from headwind.trial.probes import describe, probe_network
from headwind.trial.schedule import rebound, start_schedule, stop_schedule
from impair.messages import Answers, ClientRun, ContainerCounters, Fetched, Health
from impair.profile import Direction, Profile
from servers.objects import is_on_demand

SETTLE_S = 0.5  # longest wait for frames that are still on their way, beyond the path's own delay
LOST_S = 0.05  # frames in flight are lost if no counter changed for this long, beyond that delay
CLOCK_STEP_S = 0.01  # a change of the clock that a trial's times cannot bear
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.008  # between two readings of all counters; each is twice as long as the last
BROWSER_START_S = 60.0  # longest time to start a browser and load a page
PROVIDE_S = 30.0  # longest time to make an object: 64 MB take about a second
CLIENT_GRACE_S = 10.0  # what the client agent may take beyond the trial's timeout
HEADROOM = 1.5  # a trial may use the path up to its measured ceiling divided by this


@dataclass(slots=True)
class Stopwatch:
    """The time of a trial, in seconds by phase."""

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
    path: Path, trial: Trial, rules: TrialRules, attempt: int = 0, probe: bool = True, capture: Capture | None = None
) -> Result:
    """Execute one trial, and judge it.

    Raises AgentDied, AgentError or OwnServerError if the lab itself, or a user's own server, broke: then there is no
    result, and the testbed must be rebuilt.
    Without `probe` no train is sent and the result is `invalid` (benchmarks only). `capture` gets packets and logs.
    """
    try:
        return _attempt(path, trial, rules, attempt, probe=probe, capture=capture)
    except (AgentDied, AgentError) as error:
        if str(error).startswith(f"the {path.server.name} "):
            raise type(error)(_with_log(path, str(error))) from error
        raise


def _attempt(
    path: Path, trial: Trial, rules: TrialRules, attempt: int, *, probe: bool, capture: Capture | None
) -> Result:
    started_at, watch = time.time(), Stopwatch(path.clock)
    profile, settings = trial.profile, trial.arm.settings(rules.settings)
    port = path.port(settings, trial.workload)
    with watch.phase("reset"):
        prepare(path, trial, port, rules.timeout_s, capture)
    with watch.phase("apply"):
        configured = path.apply(profile, trial.block.seeds)
    with watch.phase("probe"):
        trains, missed = probe_network(path, trial, configured) if probe else ({}, [])
    with capturing(path, capture):
        with watch.phase("count"):
            before, server_windows, health = _counted(path, port)
        with watch.phase("client"):
            ruled, captured = TrialRules(rules.timeout_s, settings), capture is not None
            run, answer, seen = _run_measured(path, trial, ruled, port, captured=captured)
        with watch.phase("settle"):
            after = _settled(partial(read_moment, path), profile, before, path.clock)
            served = path.server.call(ANSWERS, 10.0, path.agents) if trial.workload.is_logged else None
    with watch.phase("compare"):
        look_back = start_last_look(path, trial, port)
    with watch.phase("settle"):  # while the client fetches
        after = replace(after, fingerprints=path.finish_fingerprints(look_back.fingerprints))
    with watch.phase("verify"):
        windows = {"server": server_windows, "client": run.windows}
        seen["rebound"] = rebound(path, trial)
        evidence = Evidence(configured, before, after, trains, path.expected_fingerprints(), windows, missed, **seen)
        answer |= {"served": asdict(served)} if served else {}
        cost = _costs(trial, evidence, run)
        workers = len(health.workers)  # of a user's own server: the CPUs that it may use
        proof = _proven(trial, path, evidence, run, workers, _on_server(path, trial, served, answer, workers, cost))
    with watch.phase("compare"):
        fetched = finish_fetch(path, look_back.fetch)
        answer["content"] = asdict(fetched) if fetched else {}
        died, memory = _end_of_server(path, health)
    outcome, reason = decide(trial, run, answer, fetched, proof, died=died)
    metrics = {**_measured(trial, run, answer, rules.timeout_s, outcome, evidence), **cost, **memory}
    return Result(
        trial, outcome, reason, metrics, proof, answer, " ".join(run.command), watch.phases_s, attempt, started_at,
    )  # fmt: skip


def _after_loss(trial: Trial, answer: Mapping[str, Any], evidence: Evidence) -> dict[str, float]:
    """The metrics of what followed a loss that the schedule caused; none without a schedule, or if it shows none."""
    if evidence.course is None or not trial.block.condition.shows_blocking:
        return {}
    return trial.workload.after_loss(answer, downlink_losses(trial.profile, evidence))


def _run_measured(
    path: Path, trial: Trial, rules: TrialRules, port: int, *, captured: bool
) -> tuple[ClientRun, dict[str, Any], dict[str, Any]]:
    """Run the client with everything that happens meanwhile: its report, its answer, and evidence by its name."""
    start_competition(path, trial, port, rules.timeout_s)
    is_scheduled = start_schedule(path, trial, rules.timeout_s + CLIENT_GRACE_S)
    look = start_look(path, trial, rules.timeout_s)
    run, answer = run_client(path, trial, rules, captured=captured)
    course, due = stop_schedule(path, trial) if is_scheduled else (None, None)
    sockets, competed = finish_look(path, look, run), end_competition(path, trial)
    return run, answer, {"congestion": sockets, "course": course, "due": due, "competed": competed}


def _body_bytes(trial: Trial, run: ClientRun) -> float | None:
    """The bytes of bodies that the client received; None if it did not count them."""
    payload = trial.workload.payload
    return run.metrics.get(payload.key) if payload else None


def _measured(
    trial: Trial, run: ClientRun, answer: Mapping[str, Any], timeout_s: float, outcome: Outcome, evidence: Evidence
) -> dict[str, float]:
    """The metrics of the workload; of an unfinished trial their bounds."""
    if outcome is Outcome.TIMEOUT:
        return {"timeout_s": timeout_s, **trial.workload.bounds(answer, timeout_s)}
    return {**run.metrics, **trial.workload.further(answer), **_after_loss(trial, answer, evidence),
            **division(evidence.competed, _body_bytes(trial, run))}  # fmt: skip


def _end_of_server(path: Path, before: Health) -> tuple[str, dict[str, float]]:
    """The error if the server is not as healthy as `before`, with the end of its log, else empty; and its memory."""
    try:
        now = path.own.health() if path.own else path.server.call(HEALTH)
    except OwnServerError as error:
        return f"died during the trial: {error}", {}
    if now != before:
        return _with_log(path, f"{path.server_name} died during the trial"), {}
    return "", {} if now.memory_bytes is None else {MEMORY.key: now.memory_bytes}


def _with_log(path: Path, why: str) -> str:
    """An error with the name of the trial's server and the last lines of its log, or of its container's."""
    named = why.rstrip() if path.server_name in why else f"{why.rstrip()}; the server was {path.server_name}"
    if not path.client.alive:  # the lab was stopped
        return named
    if path.own:
        log = "\n".join(f"  {line}" for line in path.own.last_log_lines()) or "  (empty)"
        return f"{named}; the end of its log:\n{log}"
    try:
        log = path.server.call(LOG) or "  (empty)"
    except (AgentDied, AgentError):
        containers = {name: each for name, each in path.containers.items() if name not in ("client", "impair")}
        log = "\n".join(last_lines(containers, docker))
    return f"{named}; the end of its log:\n{log}" if log else named


def _counted(path: Path, port: int) -> tuple[Moment, WindowSizes, Health]:
    """All counters before the client runs, the windows behind the server's port, and its processes."""
    with path.server.together():
        windows, health = path.server.start(WINDOWS, port=port), path.server.start(HEALTH)
        sent = path.server.start(SENT)
    before = _moment(path, path.client.start(SENT), sent)
    server, agents = path.server, path.agents
    return before, server.wait(windows, 10.0, agents), server.wait(health, 10.0, agents)


def _costs(trial: Trial, evidence: Evidence, run: ClientRun) -> dict[str, float]:
    """The metrics of CPU time and of the wire, for any outcome."""
    found = costs(
        run, evidence.before.processors(), evidence.after.processors(), has_browser=bool(trial.workload.browser)
    )
    if trial.workload.competing:  # the hosts count its frames, too
        return found
    over_tcp = trial.protocol is not Protocol.H3 or trial.workload.discovers
    return {**found, **wire(evidence, run.packet_gap_max_s, over_tcp=over_tcp)}


def _near_the_ceiling(path: Path, evidence: Evidence, seconds: float) -> Iterator[str]:
    """Warnings for directions in which the trial came too close to the packet rate that the path can carry."""
    for direction, ceiling in path.ceiling.items():
        frames, limit = evidence.sent(Direction(direction)), ceiling["frames_per_s"] / HEADROOM
        if seconds > 0 and frames / seconds > limit:
            yield f"{direction}: {frames / seconds:.0f} frames/s, above {limit:.0f} which the path carries with reserve"


def _proven(
    trial: Trial, path: Path, evidence: Evidence, run: ClientRun, workers: int, further: Iterable[Check]
) -> Proof:
    """The proof with `further` checks and the other warnings of a trial; `workers` is the server's number of them."""
    proof, threads = prove(trial.profile, evidence), trial.workload.processors()
    warnings = (
        *_resent(evidence.missed),
        *run.warnings,
        *_near_the_ceiling(path, evidence, run.wall_s),
        *(window_warnings(trial, evidence, run.wall_s) if not trial.workload.competing else ()),
        *stalls(trial.profile, run.packet_gap_max_s),
        *processor_limits(run, evidence.before.processors(), evidence.after.processors(), threads, workers),
    )
    further = (*further, *check_competition(trial.workload.competing, evidence.competed))
    return replace(proof, checks=(*proof.checks, *further), warnings=(*proof.warnings, *warnings))


def _on_server(
    path: Path, trial: Trial, served: Answers | None, answer: Mapping[str, Any], workers: int,
    cost: Mapping[str, float],
) -> Iterator[Check]:  # fmt: skip
    """Checks of the server's behaviour, by its own log and by the client's counts; none of a user's own server."""
    if path.own:
        return iter(())
    answered, busy_s = trial.workload.answered(answer), cost.get(SERVER_TIME.key, 0.0)
    return check_served(trial.workload, served, answered, workers, busy_s)


def _resent(missed: Sequence[Missed]) -> Iterator[str]:
    if missed:
        attempts, last = ("the first attempt", "") if len(missed) == 1 else (f"{len(missed)} attempts", "at last ")
        yield f"network check passed after {attempts} failed: {last}{missed[-1].why[0]}"


def prepare(path: Path, trial: Trial, port: int, timeout_s: float, capture: Capture | None = None) -> None:
    """Make the objects that are made on demand, forget the previous trial, and set offers and the congestion control.

    A first visit before a repeat visit has `timeout_s`, too.
    """
    if capture:
        capture.reset(path)
    for name in filter(is_on_demand, trial.workload.object_paths()):
        path.server.call("provide", PROVIDE_S, path.agents, path=name)
    if trial.workload.discovers and Offer.OFFER_IF in trial.arm.server.offers:
        path.server.call("offer", 10.0, path.agents, condition=trial.workload.offer_if)
    if trial.workload.browser:
        open_page(path, trial, port, timeout_s, captured=capture is not None)
    forget(path, trial.workload.workers)
    use_congestion(path, trial.arm.congestion(path.congestion, trial.workload).tcp)


def open_page(path: Path, trial: Trial, port: int, timeout_s: float, *, captured: bool = False) -> None:
    """Have the browser open an empty page for the trial, with nothing of earlier ones.

    A browser that is started for it loads the page once, over an unimpaired path: so do it before `forget`. So is the
    first visit of a page whose repeat visit is measured: over the trial's network, from which the browser learns.
    """
    path.clear()
    workload, browser = trial.workload, path.runner(trial.workload.browser)
    place: dict[str, Any] = {
        "protocol": trial.protocol.value, "host": path.server_ip, "port": port, **workload.asked()
    }  # fmt: skip
    browser.call("prepare", BROWSER_START_S, path.agents, **place, **_if_captured(captured=captured))
    if workload.is_repeat:
        path.apply(trial.profile, trial.block.seeds)
        browser.call("visit", timeout_s + CLIENT_GRACE_S, path.agents, timeout_s=timeout_s, **place)


def forget(path: Path, workers: int = 1) -> None:
    """Remove all traces of the previous trial: connections, TCP metrics, the server's processes, delayed packets.

    The server then has `workers` workers. The server of the previous trial is restarted too if it is another one: a
    connection that the client left open would be retransmitted in this trial.
    """
    path.clear()  # first: a late packet from a delay line would open a ghost connection
    servers = {**path.in_use, path.server_name: path.server}
    restarts = {
        name: server.start("fresh", **({"workers": workers} if server is path.server else {}))
        for name, server in servers.items()
        if name not in path.owns
    }
    path.client.call("forget")
    for name, server in servers.items():
        if own := path.owns.get(name):
            own.fresh()
        else:
            server.wait(restarts[name], 10.0, (path.client, path.router))
        server.call("forget")
    path.in_use.clear()
    path.in_use[path.server_name] = path.server


def read_moment(path: Path) -> Moment:
    """All counters of the three hosts: what was sent first, then the router's, then what was received.

    In this order a frame that is counted as sent is also counted everywhere else, or in flight, or lost.
    """
    return _moment(path, path.client.start(SENT), path.server.start(SENT))


def _moment(path: Path, client_sent: Request[int], server_sent: Request[int]) -> Moment:
    """The counters, given the requests to both ends for what they sent."""
    sent = (
        path.client.wait(client_sent, 10.0, path.agents),
        path.server.wait(server_sent, 10.0, path.agents),
    )
    router = path.router.call(SHOW, 10.0, path.agents)
    received = path.ask_endpoints(COUNTERS)
    client, server = (replace(last, tx_frames=first) for first, last in zip(sent, received, strict=True))
    if path.own:  # the host's CPU time is not the program's
        server = replace(server, processors=replace(server.processors, cpu_s=None))
    outside = ContainerCounters(router.container) if router.container else None
    return Moment(client, server, replace(router, container=None), outside)


def _if_captured(*, captured: bool) -> dict[str, bool]:
    """The argument that has a client's agent keep logs; agents of other trials need not know it."""
    return {"captured": True} if captured else {}


def run_client(
    path: Path, trial: Trial, rules: TrialRules, *, captured: bool = False
) -> tuple[ClientRun, dict[str, Any]]:
    """Run the workload over the trial's protocol in a new client process or page, with exactly these settings.

    Returns the report that all clients share, and the whole answer. Raises AgentError if the answer has another format.
    """
    workload, settings, timeout_s = trial.workload, rules.settings, rules.timeout_s
    runner = path.runner(workload.browser)
    answer: dict[str, Any] = runner.call(
        "run", timeout_s + CLIENT_GRACE_S, path.agents,
        program=workload.browser or workload.program, protocol=trial.protocol.value, host=path.server_ip,
        port=path.port(settings, workload), timeout_s=timeout_s, settings=settings.client.value,
        **workload.asked(), **_if_captured(captured=captured),
    )  # fmt: skip
    return runner.understood(RUN, answer), answer


def _settled(read: Callable[[], Moment], profile: Profile, before: Moment, clock: Clock) -> Moment:
    """Read the counters until no frame is between two hosts, or until none that is can still arrive.

    Frames in a delay line need not be waited for: netem reports how many it holds. Those that a bridge dropped for
    their corrupted address never arrive: then the counters stop changing.
    """
    links = [link for direction in Direction for link in profile.links(direction)]
    longest_s = max(Expectation.of(link).longest_s() for link in links)
    begun = since = clock.monotonic()
    after, pause_s = read(), FIRST_PAUSE_S
    while _under_way(before, after):
        now = clock.monotonic()
        if now > begun + longest_s + SETTLE_S or now > max(since, begun + longest_s) + LOST_S:
            break
        clock.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        later = read().with_gaps_of(after)  # which start again with every reading
        if _frames(later) != _frames(after):
            since = clock.monotonic()
        after = later
    return after


def _frames(moment: Moment) -> int:
    """All frames counted so far, on all hosts."""
    hosts = [moment.client, moment.server, *moment.router.ports.values()]
    return sum(host.rx_frames + host.tx_frames for host in hosts)


def _under_way(before: Moment, after: Moment) -> int:
    """Frames that left one host and were not yet counted by the next, or the other way round."""

    def missing(moment: Moment) -> list[int]:
        ports, ends = moment.router.ports, {"client": moment.client, "server": moment.server}
        entering = [end.tx_frames - ports[side].rx_frames for side, end in ends.items()]
        leaving = [ports[side].tx_frames - end.rx_frames for side, end in ends.items()]
        return entering + leaving

    # A bridge may add its own frame, and never removes one: only a missing frame can be in flight.
    return sum(max(0, now - then) for then, now in zip(missing(before), missing(after), strict=True))


def decide(
    trial: Trial, run: ClientRun, answer: Mapping[str, Any], fetched: Fetched | None, proof: Proof, *, died: str = ""
) -> tuple[Outcome, str]:
    """The outcome of a trial and its reason; the first that applies.

    `run` and `answer` are the client's, `fetched` its fetch for comparison (headwind/trial/content.py). `died`:
    the error if the server has other processes than before the trial.
    """
    if trouble := died or _client_trouble(run):
        return Outcome.LAB_ERROR, trouble
    if not proof.passed:
        broken = [describe(check) for check in proof.checks if not check.passed]
        return Outcome.INVALID, "impairment not verified: " + "; ".join(broken or ["no checks"])
    if wrong := wrong_content(trial, answer, fetched):
        return Outcome.WRONG_CONTENT, wrong
    if run.timed_out:
        return Outcome.TIMEOUT, f"stopped after {run.wall_s:.1f} s"
    spoken = run.negotiated.get("alpn")
    if spoken and not trial.workload.is_over(trial.protocol.alpn, answer):
        return Outcome.WRONG_PROTOCOL, f"{spoken} was negotiated instead of {trial.protocol.alpn}"
    if shortfall := trial.workload.shortfall(answer):
        return Outcome.FAILED, shortfall
    orderly = not any(each.loss or each.corrupt or each.reorders for each in trial.profile.links(Direction.UPLINK))
    if wrong := trial.workload.wrong_session(answer, orderly=orderly):
        return Outcome.WRONG_SESSION, wrong
    unclear = _unclear(trial, spoken, answer, fetched)
    return (Outcome.LAB_ERROR, unclear) if unclear else (Outcome.OK, "")


def _client_trouble(run: ClientRun) -> str:
    """The client's error, or a step of its clock, as text; empty if none."""
    if abs(run.clock_step_s) > CLOCK_STEP_S:
        return f"the machine's clock was set by {run.clock_step_s:+.3g} s during the trial, or the machine slept"
    if not run.timed_out and run.exit_code:
        return f"the client ended with status {run.exit_code}: {run.stderr_tail or 'no message'}"
    return ""


def _unclear(trial: Trial, spoken: str | None, answer: Mapping[str, Any], fetched: Fetched | None) -> str:
    """The reason why a trial that looks good is not reliable; empty if it is."""
    if not spoken:
        return "the client did not report which protocol it negotiated"
    if contradiction := trial.workload.contradiction(answer):
        return f"the client's totals do not add up: {contradiction}"
    return not_compared(trial, fetched)
