"""One trial, step by step: forget, apply, probe, run the client, settle, prove, compare the content, decide."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from headwind.content import finish_fetch, not_compared, start_fetch, wrong_content
from headwind.crowding import crowding
from headwind.expectation import wire_bytes
from headwind.model import Check, Outcome, Proof, Result, Trial
from headwind.passage import SIDES, Evidence
from headwind.pipe import Agent
from headwind.processors import processor_limits
from headwind.proof import PROBE_BYTES, prove, shows_rate
from headwind.settings import UNBOUND, Settings
from headwind.testbed import OUTSIDE, Testbed
from headwind.windows import window_warnings
from impair.profile import FRAME_BYTES, Direction, Link, Profile

PROBE_COUNT = 20
PROBE_PAYLOAD_BYTES = PROBE_BYTES - 42
PROBE_INTERVAL_S = 0.001
PROBE_MARGIN_S = 0.03  # how long after the last possible arrival a probe is given up
BULK_PAYLOAD_BYTES = FRAME_BYTES - 42
BULK_S = 0.1  # how long a back-to-back train should keep the link busy
BULK_PACKETS = (12, 400)  # fewer leave nothing to measure under loss; more take long and show nothing new
BULK_TRIES = 3  # trains until one shows the rate; no protocol has been seen by then, so none is favoured
SETTLE_S = 0.5  # longest wait for frames that are still on their way, beyond the path's own delay
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
        seeds = testbed.netem_seeds({direction.value: seed for direction, seed in trial.block.seeds.items()})
        configured = testbed.router.call("apply", profile=profile.to_json(), seeds=seeds)
    with watch.phase("probe"):
        trains = send_trains(testbed, profile) if probe else {}
    with watch.phase("count"):
        server_windows = testbed.server.call("windows", port=settings.port)
        health, before = testbed.server.call("health"), read_counters(testbed) | read_outside(testbed)
    with watch.phase("client"):
        answer = run_client(testbed, trial, timeout_s, settings)
    with watch.phase("settle"):
        after = _settled_counters(testbed, profile, before)
    with watch.phase("compare"):
        fetch = start_fetch(testbed, trial, settings.port)
    with watch.phase("prove"):
        windows = {"server": server_windows, "client": answer.get("windows", {})}
        evidence = Evidence(configured, before, after, trains, testbed.fingerprints, windows)
        proof = _proven(testbed, trial, evidence, answer, len(health.get("workers", ())))
    with watch.phase("compare"):
        answer["content"] = finish_fetch(testbed, fetch)
        outcome, reason = decide(trial, answer, proof, health, testbed.server.call("health"))
    metrics = {"timeout_s": timeout_s} if outcome is Outcome.TIMEOUT else dict(answer.get("metrics") or {})
    return Result(
        trial, outcome, reason, metrics, proof, answer, " ".join(answer["command"]), watch.phases_s, attempt, started_at
    )


def _proven(testbed: Testbed, trial: Trial, evidence: Evidence, answer: Mapping[str, Any], workers: int) -> Proof:
    """The proof, with what else there is to say of a trial: `answer` is the client's, `workers` are the server's."""
    proof, (before, after) = prove(trial.profile, evidence), (evidence.before, evidence.after)
    said = (
        *crowding(testbed, before, after, answer["wall_s"]),
        *window_warnings(trial, evidence, answer["wall_s"]),
        *processor_limits(answer, before, after, trial.block.condition.workload.threads, workers),
    )
    return replace(proof, warnings=(*proof.warnings, *said))


def forget(testbed: Testbed) -> None:
    """Let nothing of the trial before live on: connections, TCP metrics, nginx workers, packets in a delay line."""
    if testbed.engine != "plain":
        testbed.router.call("clear")  # first: a late packet from a delay line would open a ghost connection
    restart = testbed.server.start("restart_workers")
    testbed.client.call("forget")
    testbed.server.wait(restart, 10.0, testbed.agents)
    testbed.server.call("forget")


def send_trains(testbed: Testbed, profile: Profile) -> dict[str, dict[str, Any]]:
    """Probe both directions at once; then, where there is a rate, a back-to-back train that shows it, one at a time.

    Returns {direction: {"probe": seen, "bulk": seen}} with what the receiving end saw (impair/probe.py).
    """
    links = {direction: profile.link(direction) for direction in Direction}
    plans = {
        direction: (PROBE_COUNT, _probe_interval_s(link), PROBE_PAYLOAD_BYTES) for direction, link in links.items()
    }
    probes = send(testbed, links, plans)
    rated = {direction: link for direction, link in links.items() if link.rate}
    bulks = {direction: send_bulk(testbed, direction, link) for direction, link in rated.items()}
    return {
        direction.value: {"probe": probes[direction], **({"bulk": bulks[direction]} if direction in bulks else {})}
        for direction in Direction
    }


def send_bulk(testbed: Testbed, direction: Direction, link: Link) -> dict[str, Any]:
    """Back-to-back trains through a link with a rate until one shows it, at most BULK_TRIES; what was seen of the last.

    "tries" is how many there were, "missed_bps" what the others saw.
    """
    missed: list[float | None] = []
    while True:
        seen = send_train_once(testbed, direction, link)
        measured = seen["rate"].get("rate_bps")
        if shows_rate(link, measured) or len(missed) + 1 == BULK_TRIES:
            return {**seen, "tries": len(missed) + 1, "missed_bps": missed}
        missed.append(measured)


def send_train_once(testbed: Testbed, direction: Direction, link: Link) -> dict[str, Any]:
    """One back-to-back train through a link with a rate; what was seen of it, "rate" among it.

    One direction at a time: two trains share the processors, and each then sees when the other one ran.
    """
    plan = {direction: (_bulk_packets(link), 0.0, BULK_PAYLOAD_BYTES)}
    seen: dict[str, Any] = send(testbed, {direction: link}, plan)[direction]
    return seen


def _probe_interval_s(link: Link) -> float:
    """Far enough apart that the probes themselves never queue at the rate."""
    return max(PROBE_INTERVAL_S, 2 * wire_bytes(link, PROBE_BYTES) * 8 / link.rate.rate_bps if link.rate else 0.0)


def _bulk_packets(link: Link) -> int:
    assert link.rate
    wanted = int(link.rate.rate_bps * BULK_S / 8 / FRAME_BYTES)
    room = link.limit // 2 if link.corrupt else link.limit  # what a full queue drops must not be mixed with corruption
    return min(max(BULK_PACKETS[0], min(BULK_PACKETS[1], wanted)), max(2, room))


def send(
    testbed: Testbed,
    links: Mapping[Direction, Link],
    plans: Mapping[Direction, tuple[int, float, int]],
    patience_s: float = PROBE_MARGIN_S,
) -> dict[Direction, Any]:
    """Send (count, interval_s, payload bytes) each way at once; what the receiving ends saw, and how many were "sent".

    A packet is given up `patience_s` after it must have left netem by its direction's link.
    """
    agents = {"client": testbed.client, "server": testbed.server}
    peers = {side: testbed.addresses.host(side, 10) for side in agents}
    nonce = time.monotonic_ns() & 0x7FFFFFFF
    sending = []
    for direction, (count, interval_s, size_bytes) in plans.items():
        sender, receiver = SIDES[direction]
        sending.append((agents[sender], agents[sender].start(
            "send_train", peer_ip=peers[receiver], nonce=nonce, count=count, interval_s=interval_s,
            size_bytes=size_bytes,
        )))  # fmt: skip
    longest_sending_s = max(count * interval_s for count, interval_s, _ in plans.values())
    for sender_agent, request in sending:
        sender_agent.wait(request, longest_sending_s + 30.0, testbed.agents)
    seeing: dict[Direction, tuple[Agent, float, int]] = {}
    for direction, (count, _, size_bytes) in plans.items():
        seer = agents[SIDES[direction][1]]
        longest_s = path_delay_s(links[direction], count * wire_bytes(links[direction], size_bytes + 42)) + patience_s
        seeing[direction] = (seer, longest_s, seer.start(
            "train_seen", nonce=nonce, expect=count, timeout_s=longest_s,
            missing_took_time=bool(links[direction].corrupt or links[direction].reorder),
        ))  # fmt: skip
    return {
        direction: {"sent": plans[direction][0], **agent.wait(request, longest_s + 10.0, testbed.agents)}
        for direction, (agent, longest_s, request) in seeing.items()
    }


def path_delay_s(link: Link, queued_bytes: int = 0) -> float:
    """The longest that a packet can be under way in netem, behind `queued_bytes` of others, in seconds."""
    reach = 6.0 if link.delay and link.delay.distribution != "uniform" else 1.0  # tables reach far above the mean
    delay_s = link.delay.delay_s + reach * link.delay.jitter_s if link.delay else 0.0
    rate_s = queued_bytes * 8 / link.rate.rate_bps if link.rate else 0.0
    return delay_s + rate_s + (link.slot.max_delay_s if link.slot else 0.0)


def read_counters(testbed: Testbed) -> dict[str, Any]:
    """All counters of the three hosts: what was sent first, then the router's, then what was received.

    In this order a frame that is counted as sent is counted everywhere else as well, or it is under way, or lost.
    """
    sent = testbed.ask_endpoints("counters", whole=False)
    router = testbed.router.call("show", 10.0, testbed.agents, whole=False)
    received = testbed.ask_endpoints("counters", whole=False)
    hosts = {
        side: {
            **last,
            "tx_frames": first["tx_frames"],
            "largest_gap_s": max(first["largest_gap_s"], last["largest_gap_s"]),
        }
        for side, first, last in zip(("client", "server"), sent, received, strict=True)
    }
    return {**hosts, "router": router}


def read_outside(testbed: Testbed) -> dict[str, Any]:
    """What is told beside a router that is a kernel of its own, by host; nothing where there is no such place."""
    return testbed.ask_hosts({OUTSIDE: "counters"}, whole=False)


def run_client(testbed: Testbed, trial: Trial, timeout_s: float, settings: Settings = UNBOUND) -> dict[str, Any]:
    """The workload over the trial's protocol, by a fresh client process; what the client agent answers."""
    workload = trial.block.condition.workload
    answer: dict[str, Any] = testbed.client.call(
        "run", timeout_s + CLIENT_GRACE_S, testbed.agents,
        protocol=trial.protocol.value, host=testbed.addresses.host("server", 10), port=settings.port,
        path=workload.path, requests=workload.requests, connections=workload.connections, streams=workload.streams,
        threads=workload.threads, timeout_s=timeout_s, settings=settings.client.value,
    )  # fmt: skip
    return answer


def _settled_counters(testbed: Testbed, profile: Profile, before: Mapping[str, Any]) -> dict[str, Any]:
    """Read the counters until no frame is between two hosts, or until none that is can still arrive.

    Frames in a delay line need not be waited for: netem says how many it holds.
    """
    longest_s = max(path_delay_s(profile.link(direction)) for direction in Direction)
    deadline = time.monotonic() + longest_s + SETTLE_S
    gaps: dict[str, float] = {}
    while True:
        after = read_counters(testbed)
        for host, counters in after.items():  # which every reading starts afresh
            gaps[host] = counters["largest_gap_s"] = max(gaps.get(host, 0.0), counters["largest_gap_s"])
        if _under_way(before, after) == 0 or time.monotonic() > deadline:
            return after | read_outside(testbed) | {"fingerprints": testbed.read_fingerprints()}
        time.sleep(0.002)


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

    `answer` is the client's, with what it fetched for comparison as "content" (headwind/content.py).
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
    requests = trial.block.condition.workload.requests
    succeeded = int((answer.get("totals") or {}).get("succeeded", 0))
    if succeeded < requests:
        return Outcome.FAILED, f"{requests - succeeded} of {requests} requests failed"
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
    if not answer["reconciled"]:
        return "the client's totals do not add up: " + "; ".join(answer["discrepancies"])
    return not_compared(trial, answer["content"])


def told(check: Check) -> str:
    """A check in words: `downlink delay_s: 0.0242, asked 0.015 +- 0.003 (median one-way delay of 20 probes)`."""
    figures = [check.measured, check.requested, check.tolerance]
    measured, asked, tolerance = ("nothing" if figure is None else f"{figure:.4g}" for figure in figures)
    return f"{check.direction} {check.quantity}: {measured}, asked {asked} +- {tolerance} ({check.note})"
