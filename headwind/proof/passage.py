"""Computes what netem did to a trial's packets from the counters before and after it. Pure.

Kernel 7.2 and later count netem's decisions. Before, they follow from what came in, what left, and what arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwind.proof.corruption import SHARE_ALLOWANCE, SHOWN_SHARE, Sighting, most_dropped_by_bridge
from headwind.proof.netem_model import overtaking_ratio, stationary_loss
from impair.profile import Direction, Link

SIGMAS = 4.9  # two-sided chance of 1e-6 for a true impairment to be called false ...
UNEXPLAINED_FRAMES = 3  # ... and a few that are still on their way when the counters are read
SIDES = {Direction.UPLINK: ("client", "server"), Direction.DOWNLINK: ("server", "client")}
ARRIVALS = ("rx_frames", "ip_in_receives", "ip_in_hdr_errors", "tcp_in_csum_errors", "udp_in_csum_errors")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of one trial.

    `configured`: the router's read-back for each direction; `before` and `after`: {"client", "server", "router"}
    counters around the client's run; `trains`: for each direction the probe train and, where there is a rate, the bulk
    train, as the receiving end saw them (impair/endpoint/probe.py), each with "sent", how many datagrams it had.
    """

    configured: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    trains: Mapping[str, Mapping[str, Any]]
    joined: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # the hosts' fingerprints at the start
    windows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # that "server" and "client" had
    missed: Sequence[Mapping[str, Any]] = ()  # probes that were sent again: {"why": [...], "trains"} of each time


@dataclass(frozen=True, slots=True)
class Events:
    """How often netem did one thing while the client ran, of how many packets that it decided about.

    `share` is the part of the decisions that can show in `count`, `doubt` by how much of itself it may be another;
    `slack` packets may be in one of the two and not in the other, because they passed while counters were read.
    """

    count: int
    decisions: int
    share: float = 1.0
    doubt: float = 0.0
    slack: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """What netem did to one direction while the client ran."""

    loss: Events
    duplicate: Events
    corrupt: Events
    reorder: Events
    queue_drops: int  # by a full queue
    corrupted: int  # the most that may have vanished behind netem because a bit of them was wrong


def passage_of(direction: Direction, link: Link, evidence: Evidence) -> Passage:
    """Differences of the router's netem counters over the client's run.

    netem_enqueue decides about duplication first, once for each packet that comes in; about loss for each packet and
    each copy, where a packet that is both duplicated and lost leaves one; about corruption and reordering for what is
    left. Kernel 7.2 and later count the decisions. Before: see `_passage_by_frames`.
    """
    before, after = (moment["router"][direction]["counters"] for moment in (evidence.before, evidence.after))
    gained = {name: after[name] - before[name] for name in after}
    entered = gain(evidence, "router", SIDES[direction][0], "rx_frames")
    stayed = gained["packets"] + gained["backlog_packets"]
    tosses = stayed  # about overtaking: none within a gap
    if link.reorder and link.reorder.ratio:
        tosses = round(stayed * overtaking_ratio(link) / link.reorder.ratio)
    if "dropped" in gained:
        # Of a packet that is duplicated and lost one is left: `dropped` counts it and `drops` does not. So what the
        # queue itself dropped is what came in or was copied, was not lost, and is not there; stray frames apart.
        missing = entered + gained["duplicated"] - gained["dropped"] - stayed
        overflowed = max(0, gained["drops"] - gained["dropped"], missing - UNEXPLAINED_FRAMES)
        return Passage(
            Events(gained["dropped"] + gained["ecn_marked"], stayed + gained["drops"]),
            Events(gained["duplicated"], entered),
            Events(gained["corrupted"], stayed + overflowed),  # corrupted first, then dropped by a full queue
            Events(gained["reordered"], tosses),
            overflowed,
            gained["corrupted"],
        )
    return _passage_by_frames(direction, link, evidence, gained, Events(gained["requeues"], tosses))


def _passage_by_frames(
    direction: Direction, link: Link, evidence: Evidence, gained: Mapping[str, int], reorder: Events
) -> Passage:
    """What a netem that does not count its decisions did, by what came in, left and arrived; `gained` are its counters.

    `drops` counts what vanished, which of N packets is N*p*(1-d*p), and N*d*(1-p) copies more than packets leave; where
    no loss is asked for, only a full queue drops. Corruption: headwind/proof/corruption.py.
    """
    sender, receiver = SIDES[direction]
    entered = gain(evidence, "router", sender, "rx_frames")
    slack = sum(
        moment["router"].get("rx_while_read", {}).get(sender, 0) for moment in (evidence.before, evidence.after)
    )
    copies = max(0, gained["packets"] + gained["backlog_packets"] + gained["drops"] - entered)
    if link.duplicate is None and copies <= UNEXPLAINED_FRAMES + slack:
        copies = 0  # frames of the router's own, which never came in, or that came in while its counters were read
    ratio, loss = (link.duplicate.ratio if link.duplicate else 0.0), stationary_loss(link.loss)[0]
    lost, overflowed = (gained["drops"], 0) if link.loss else (0, gained["drops"])
    doubled = Events(copies, entered, 1 - loss, slack=slack)
    if loss == 1 and ratio:  # of a packet that is doubled and lost one is left: no more leave than were doubled
        doubled = Events(gained["packets"] + gained["backlog_packets"], entered, slack=slack)
    lost_share = 1 - ratio * loss
    if lost_share == 0:  # one leaves of each: what was not lost would have had a copy behind it
        lost, lost_share = entered - copies, 1.0
    left = gain(evidence, "router", receiver, "tx_frames")
    arrived = {name: gain(evidence, receiver, "", name) for name in ARRIVALS}
    seen, asked = Sighting.of(left, arrived), link.corrupt.ratio if link.corrupt else 0.0
    corrupt = Events(
        seen.shown if asked else seen.certain, max(left, arrived["rx_frames"]), SHOWN_SHARE, SHARE_ALLOWANCE,
        max(0, arrived["rx_frames"] - left),
    )  # fmt: skip
    return Passage(
        Events(lost, entered, lost_share, slack=slack), doubled, corrupt, reorder, overflowed,
        most_dropped_by_bridge(asked, left, SIGMAS),
    )  # fmt: skip


def gain(evidence: Evidence, owner: str, port: str, name: str) -> int:
    """How much a frame counter grew: of the router's port, or of an endpoint (port is empty)."""
    values = []
    for moment in (evidence.before, evidence.after):
        counters = moment[owner]
        values.append(int((counters["ports"][port] if port else counters)[name]))
    return values[1] - values[0]
