"""Runs one trial: clear caches, set netem, probe, run the client, wait, prove, check the content, decide."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from headwind.model import Outcome, Proof, Result, Trial
from headwind.proof.bursts import stalls
from headwind.proof.passage import Evidence
from headwind.proof.processors import costs, processor_limits
from headwind.proof.proof import prove
from headwind.proof.windows import window_warnings
from headwind.settings import UNBOUND, Settings
from headwind.testbed.testbed import OUTSIDE, Testbed
from headwind.trial.content import finish_fetch, not_compared, start_fetch, wrong_content
from headwind.trial.crowding import crowding
from headwind.trial.probes import apply, path_delay_s, probe_network, told
from impair.profile import Direction, Profile

SETTLE_S = 0.5  # longest wait for frames that are still on their way, beyond the path's own delay
LOST_S = 0.05  # frames under way that none of the counters moved for so long, beyond that delay, are not to come
CLIENT_GRACE_S = 10.0  # what the client agent may take beyond the trial's timeout


@dataclass(slots=True)
class Stopwatch:
    """Where a trial's time went, in seconds by phase."""

    phases_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to phase `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + time.perf_counter() - start


def run_trial(
    testbed: Testbed, trial: Trial, timeout_s: float, attempt: int = 0, probe: bool = True,
    settings: Settings = UNBOUND,
) -> Result:  # fmt: skip
    """Execute one trial on a testbed that is up, and judge it.

    Raises AgentDied or AgentError when the lab itself broke: then there is no result, and the testbed is to be rebuilt.
    Without `probe` no train is sent and the result is `invalid` (benchmarks only).
    """
    started_at, watch = time.time(), Stopwatch()
    profile = trial.profile
    with watch.phase("forget"):
        forget(testbed)
    with watch.phase("apply"):
        configured = apply(testbed, trial)
    with watch.phase("probe"):
        trains, missed = probe_network(testbed, trial, configured) if probe else ({}, [])
    with watch.phase("count"):
        asked = [testbed.server.start("windows", port=settings.port), testbed.server.start("health")]
        before = read_counters(testbed)
        server_windows, health = (testbed.server.wait(request, 10.0, testbed.agents) for request in asked)
    with watch.phase("client"):
        answer = run_client(testbed, trial, timeout_s, settings)
    with watch.phase("settle"):
        after = _settled_counters(testbed, profile, before)
    with watch.phase("compare"):
        fetch = start_fetch(testbed, trial, settings.port)
    with watch.phase("settle"):  # while the client fetches
        after["fingerprints"] = testbed.read_fingerprints()
    with watch.phase("prove"):
        windows = {"server": server_windows, "client": answer.get("windows", {})}
        evidence = Evidence(configured, before, after, trains, testbed.fingerprints, windows, missed)
        proof = _proven(testbed, trial, evidence, answer, len(health.get("workers", ())))
    with watch.phase("compare"):
        answer["content"] = finish_fetch(testbed, fetch)
        outcome, reason = decide(trial, answer, proof, health, testbed.server.call("health"))
    metrics = {"timeout_s": timeout_s} if outcome is Outcome.TIMEOUT else dict(answer.get("metrics") or {})
    metrics |= costs(before, after)
    return Result(
        trial, outcome, reason, metrics, proof, answer, " ".join(answer["command"]), watch.phases_s, attempt, started_at
    )


def _proven(testbed: Testbed, trial: Trial, evidence: Evidence, answer: Mapping[str, Any], workers: int) -> Proof:
    """The proof, with what else there is to say of a trial: `answer` is the client's, `workers` are the server's."""
    proof, (before, after) = prove(trial.profile, evidence), (evidence.before, evidence.after)
    said = (
        *_repeats(evidence.missed),
        *crowding(testbed, before, after, answer["wall_s"]),
        *window_warnings(trial, evidence, answer["wall_s"]),
        *stalls(trial.profile, answer["silence_s"]),
        *processor_limits(answer, before, after, trial.block.condition.workload.processors(), workers),
    )
    return replace(proof, warnings=(*proof.warnings, *said))


def _repeats(missed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if missed:
        yield f"probes were sent {1 + len(missed)} times, before the client started: {missed[-1]['why'][0]}"


def forget(testbed: Testbed) -> None:
    """Let nothing of the trial before live on: connections, TCP metrics, nginx workers, packets in a delay line."""
    if testbed.engine != "plain":
        testbed.router.call("clear")  # first: a late packet from a delay line would open a ghost connection
    restart = testbed.server.start("restart_workers")
    testbed.client.call("forget")
    testbed.server.wait(restart, 10.0, testbed.agents)
    testbed.server.call("forget")


def read_counters(testbed: Testbed) -> dict[str, Any]:
    """All counters of the three hosts: what was sent first, then the router's, then what was received.

    In this order a frame that is counted as sent is counted everywhere else as well, or it is under way, or lost. With
    what is told beside a router that is a kernel of its own, where there is such a place.
    """
    beside = testbed.start_on_hosts({OUTSIDE: "counters"})
    sent = testbed.ask_endpoints("counters")
    router = testbed.router.call("show", 10.0, testbed.agents)
    received = testbed.ask_endpoints("counters")
    hosts = {
        side: {
            **last,
            "tx_frames": first["tx_frames"],
            "largest_gap_s": max(first["largest_gap_s"], last["largest_gap_s"]),
        }
        for side, first, last in zip(("client", "server"), sent, received, strict=True)
    }
    return {**hosts, "router": router, **testbed.answers(beside)}


def run_client(testbed: Testbed, trial: Trial, timeout_s: float, settings: Settings = UNBOUND) -> dict[str, Any]:
    """The workload over the trial's protocol, by a fresh client process; what the client agent answers."""
    workload = trial.block.condition.workload
    answer: dict[str, Any] = testbed.client.call(
        "run", timeout_s + CLIENT_GRACE_S, testbed.agents,
        protocol=trial.protocol.value, host=testbed.addresses.host("server", 10), port=settings.port,
        timeout_s=timeout_s, settings=settings.client.value, **workload.asked(),
    )  # fmt: skip
    return answer


def _settled_counters(testbed: Testbed, profile: Profile, before: Mapping[str, Any]) -> dict[str, Any]:
    """Read the counters until no frame is between two hosts, or until none that is can still arrive.

    Frames in a delay line need not be waited for: netem says how many it holds. Those that a bridge dropped for their
    corrupted address never arrive: then the counters stand still.
    """
    longest_s = max(path_delay_s(profile.link(direction)) for direction in Direction)
    begun = time.monotonic()
    gaps: dict[str, float] = {}
    seen, since = -1, begun
    while True:
        after = read_counters(testbed)
        for host in ("client", "server", "router"):  # every reading starts it afresh
            gaps[host] = after[host]["largest_gap_s"] = max(gaps.get(host, 0.0), after[host]["largest_gap_s"])
        frames, now = _frames(after), time.monotonic()
        if frames != seen:
            seen, since = frames, now
        given_up = now > begun + longest_s + SETTLE_S or now > max(since, begun + longest_s) + LOST_S
        if _under_way(before, after) == 0 or given_up:
            return after
        time.sleep(0.002)


def _frames(moment: Mapping[str, Any]) -> int:
    """All frames that were counted so far, wherever."""
    hosts = [moment["client"], moment["server"], *moment["router"]["ports"].values()]
    return sum(host["rx_frames"] + host["tx_frames"] for host in hosts)


def _under_way(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """Frames that left one host and were not yet counted by the next, or the other way round."""

    def missing(moment: Mapping[str, Any]) -> list[int]:
        ports = moment["router"]["ports"]
        entering = [moment[side]["tx_frames"] - ports[side]["rx_frames"] for side in ("client", "server")]
        leaving = [ports[side]["tx_frames"] - moment[side]["rx_frames"] for side in ("client", "server")]
        return entering + leaving

    # A hop may gain a frame of the bridge's own (it never loses one): only a loss can still be under way.
    return sum(max(0, now - then) for then, now in zip(missing(before), missing(after), strict=True))


def decide(
    trial: Trial, answer: Mapping[str, Any], proof: Proof, health: Mapping[str, Any], health_after: Mapping[str, Any]
) -> tuple[Outcome, str]:
    """The outcome of a trial and the reason for it, in the order in which they exclude each other.

    `answer` is the client's, with what it fetched for comparison as "content" (headwind/trial/content.py).
    """
    if trouble := _lab_trouble(answer, health, health_after):
        return Outcome.LAB_ERROR, trouble
    if not proof.passed:
        broken = [told(check) for check in proof.checks if not check.passed]
        return Outcome.INVALID, "impairment not proven: " + "; ".join(broken or ["no checks"])
    if wrong := wrong_content(trial, answer, answer["content"]):
        return Outcome.WRONG_CONTENT, wrong
    if answer["timed_out"]:
        return Outcome.TIMEOUT, f"stopped after {answer['wall_s']:.1f} s"
    spoken = (answer.get("negotiated") or {}).get("alpn")
    if spoken and spoken != trial.protocol.alpn:
        return Outcome.WRONG_PROTOCOL, f"{spoken} was negotiated instead of {trial.protocol.alpn}"
    if shortfall := trial.block.condition.workload.shortfall(answer):
        return Outcome.FAILED, shortfall
    unclear = _unclear(trial, answer)
    return (Outcome.LAB_ERROR, unclear) if unclear else (Outcome.OK, "")


def _lab_trouble(answer: Mapping[str, Any], health: Mapping[str, Any], health_after: Mapping[str, Any]) -> str:
    """What broke in the lab itself; empty where nothing did."""
    if health_after.get("workers") != health.get("workers") or health_after.get("master") != health.get("master"):
        return "nginx died during the trial"
    if not answer["timed_out"] and answer["exit_code"]:
        tail = answer.get("stderr_tail") or "no message"
        return f"the client ended with status {answer['exit_code']}: {tail}"
    return ""


def _unclear(trial: Trial, answer: Mapping[str, Any]) -> str:
    """Why a trial that looks good cannot be relied on; empty where it can."""
    if not (answer.get("negotiated") or {}).get("alpn"):
        return "the client did not say which protocol it negotiated"
    if contradiction := trial.block.condition.workload.contradiction(answer):
        return f"the client's totals do not add up: {contradiction}"
    return not_compared(trial, answer["content"])
