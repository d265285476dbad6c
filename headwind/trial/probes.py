"""Sends probe trains before the client starts, to measure delay, loss and rate of the network."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headwind.model import Check, Trial
from headwind.proof.delay import PROBE_BYTES
from headwind.proof.netem_model import wire_bytes
from headwind.proof.passage import SIDES
from headwind.proof.proof import check_delay, shows_rate
from headwind.proof.uncounted import probe_interval_s, probes_for
from headwind.testbed.agent import Agent
from headwind.testbed.testbed import Testbed
from impair.profile import FRAME_BYTES, Direction, Link, Profile

PROBE_PAYLOAD_BYTES = PROBE_BYTES - 42
PROBE_REPEATS = 3  # of probes that missed, as long as nothing of the protocol has been seen
PROBE_MARGIN_S = 0.03  # how long after the last possible arrival a probe is given up
BULK_PAYLOAD_BYTES = FRAME_BYTES - 42
BULK_S = 0.1  # how long a back-to-back train should keep the link busy
BULK_PACKETS = (12, 400)  # fewer leave nothing to measure under loss; more take long and show nothing new
BULK_TRAINS = 3  # where the first does not show the rate; no protocol has been seen by then, so none is favoured


def apply(testbed: Testbed, trial: Trial) -> dict[str, Any]:
    """Give the router the trial's network, from its first random number on; the read-back of each direction."""
    seeds = testbed.netem_seeds({direction.value: seed for direction, seed in trial.block.seeds.items()})
    configured: dict[str, Any] = testbed.router.call("apply", profile=trial.profile.to_json(), seeds=seeds)
    return configured


def probe_network(
    testbed: Testbed, trial: Trial, configured: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Send the trains, and send them again while the probes miss what was asked for, at most PROBE_REPEATS times.

    Nothing of the protocol has been seen by then, so no arm is favoured. Returns the last trains, by which the trial is
    judged, and {"why", "trains"} of each time before.
    """
    missed: list[dict[str, Any]] = []
    while True:
        trains = send_trains(testbed, trial.profile)
        why = missed_probes(trial.profile, configured, trains)
        if not why or len(missed) == PROBE_REPEATS:
            return trains, missed
        missed.append({"why": why, "trains": trains})
        apply(testbed, trial)  # the client meets the same random numbers, however often was probed


def missed_probes(profile: Profile, configured: Mapping[str, Any], trains: Mapping[str, Any]) -> list[str]:
    """What the probes show that the profile does not ask for, in words; known before the client starts."""
    checks = [
        check
        for direction in Direction
        for check in check_delay(
            direction, profile.link(direction), Link.from_json(configured[direction]["link"]),
            trains.get(direction, {}).get("probe"),
        )
    ]  # fmt: skip
    return [told(check) for check in checks if not check.passed]


def send_trains(testbed: Testbed, profile: Profile) -> dict[str, dict[str, Any]]:
    """Probe both directions at once; then, where there is a rate, a back-to-back train that shows it, one at a time.

    Returns {direction: {"probe": seen, "bulk": seen}} with what the receiving end saw (impair/endpoint/probe.py).
    """
    links = {direction: profile.link(direction) for direction in Direction}
    counted = testbed.facts.get("router", {}).get("netem_counters", True)
    plans = {
        direction: (probes_for(link, counted=counted), probe_interval_s(link), PROBE_PAYLOAD_BYTES)
        for direction, link in links.items()
    }
    probes = send(testbed, links, plans)
    rated = {direction: link for direction, link in links.items() if link.rate}
    bulks = {direction: send_bulk(testbed, direction, link) for direction, link in rated.items()}
    return {
        direction.value: {"probe": probes[direction], **({"bulk": bulks[direction]} if direction in bulks else {})}
        for direction in Direction
    }


def send_bulk(testbed: Testbed, direction: Direction, link: Link) -> dict[str, Any]:
    """A back-to-back train through a link with a rate; where it does not show it, the middle one of BULK_TRAINS.

    Returns what was seen of the one that counts, and "rates_bps" of all. One that fits among several that do not is no
    proof: a pause can bring a wrong rate to the right one.
    """
    trains = [send_train_once(testbed, direction, link)]
    if not shows_rate(link, _rate_bps(trains[0])):
        trains += [send_train_once(testbed, direction, link) for _ in range(BULK_TRAINS - 1)]
    middle = sorted(trains, key=lambda train: _rate_bps(train) or 0.0)[len(trains) // 2]
    return {**middle, "rates_bps": [_rate_bps(train) for train in trains]}


def _rate_bps(train: Mapping[str, Any]) -> float | None:
    rate: float | None = train["rate"].get("rate_bps")
    return rate


def send_train_once(testbed: Testbed, direction: Direction, link: Link) -> dict[str, Any]:
    """One back-to-back train through a link with a rate; what was seen of it, "rate" among it.

    One direction at a time: two trains share the processors, and each then sees when the other one ran.
    """
    plan = {direction: (_bulk_packets(link), 0.0, BULK_PAYLOAD_BYTES)}
    seen: dict[str, Any] = send(testbed, {direction: link}, plan)[direction]
    return seen


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


def told(check: Check) -> str:
    """A check in words: `downlink delay_s: 0.0242, asked 0.015 +- 0.003 (median one-way delay of 20 probes)`."""
    figures = [check.measured, check.requested, check.tolerance]
    measured, asked, tolerance = ("nothing" if figure is None else f"{figure:.4g}" for figure in figures)
    return f"{check.direction} {check.quantity}: {measured}, asked {asked} +- {tolerance} ({check.note})"
