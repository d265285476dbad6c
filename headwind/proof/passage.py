"""Computes what netem did to a trial's packets from the counters before and after it. Pure.

Kernel 7.2 and later count netem's decisions. Before, they follow from what came in, what left, and what arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwind.proof.corruption import SHARE_ALLOWANCE, SHOWN_SHARE, Sighting, most_dropped_by_bridge
from headwind.proof.evidence import Evidence
from headwind.proof.expectation import Expectation
from impair.messages import DecisionCounters, NetemCounters, gained
from impair.profile import Direction, Link

SIGMAS = 4.9  # two-sided chance of 1e-6 for a true impairment to be called false ...
UNEXPLAINED_FRAMES = 3  # ... and a few that are still on their way when the counters are read


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
    states = [moment.router.netem(direction) for moment in (evidence.before, evidence.after)]
    before, after = (state.counters for state in states if state)
    grown = gained(before, after)
    entered = evidence.entered(direction)
    stayed = grown.packets + grown.backlog_packets
    tosses = stayed  # about overtaking: none within a gap
    if link.reorder and link.reorder.ratio:
        tosses = round(stayed * Expectation.of(link).overtaking / link.reorder.ratio)
    if not isinstance(grown, DecisionCounters):
        return _passage_by_frames(direction, link, evidence, grown, Events(grown.requeues, tosses))
    # Of a packet that is duplicated and lost one is left: `dropped` counts it and `drops` does not. So what the queue
    # itself dropped is what came in or was copied, was not lost, and is not there; stray frames apart.
    missing = entered + grown.duplicated - grown.dropped - stayed
    overflowed = max(0, grown.drops - grown.dropped, missing - UNEXPLAINED_FRAMES)
    return Passage(
        Events(grown.dropped + grown.ecn_marked, stayed + grown.drops),
        Events(grown.duplicated, entered),
        Events(grown.corrupted, stayed + overflowed),  # corrupted first, then dropped by a full queue
        Events(grown.reordered, tosses),
        overflowed,
        grown.corrupted,
    )


def _passage_by_frames(
    direction: Direction, link: Link, evidence: Evidence, grown: NetemCounters, reorder: Events
) -> Passage:
    """What a netem that does not count its decisions did, by what came in, left and arrived; `grown` are its counters.

    `drops` counts what vanished, which of N packets is N*p*(1-d*p), and N*d*(1-p) copies more than packets leave; where
    no loss is asked for, only a full queue drops. Corruption: headwind/proof/corruption.py.
    """
    entered, stayed = evidence.entered(direction), grown.packets + grown.backlog_packets
    slack = sum(moment.router.rx_while_read[direction.sender] for moment in (evidence.before, evidence.after))
    copies = max(0, stayed + grown.drops - entered)
    if link.duplicate is None and copies <= UNEXPLAINED_FRAMES + slack:
        copies = 0  # frames of the router's own, which never came in, or that came in while its counters were read
    ratio, loss = (link.duplicate.ratio if link.duplicate else 0.0), Expectation.of(link).loss
    lost, overflowed = (grown.drops, 0) if link.loss else (0, grown.drops)
    doubled = Events(copies, entered, 1 - loss, slack=slack)
    if loss == 1 and ratio:  # of a packet that is doubled and lost one is left: no more leave than were doubled
        doubled = Events(stayed, entered, slack=slack)
    lost_share = 1 - ratio * loss
    if lost_share == 0:  # one leaves of each: what was not lost would have had a copy behind it
        lost, lost_share = entered - copies, 1.0
    left, arrived = evidence.left(direction), evidence.arrived(direction)
    seen, asked = Sighting.of(left, arrived), link.corrupt.ratio if link.corrupt else 0.0
    corrupt = Events(
        seen.shown if asked else seen.certain, max(left, arrived.rx_frames), SHOWN_SHARE, SHARE_ALLOWANCE,
        max(0, arrived.rx_frames - left),
    )  # fmt: skip
    return Passage(
        Events(lost, entered, lost_share, slack=slack), doubled, corrupt, reorder, overflowed,
        most_dropped_by_bridge(asked, left, SIGMAS),
    )  # fmt: skip
