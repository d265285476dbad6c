"""Computes what netem did to a trial's packets from the counters before and after it. Pure.

Kernel 7.2 and later count netem's decisions. Before, they follow from what came in, what left, and what arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwind.proof.corruption import SHARE_ALLOWANCE, SHOWN_SHARE, Sighting, most_dropped_by_bridge
from headwind.proof.evidence import Stretch
from headwind.proof.expectation import Expectation
from impair.messages import DecisionCounters, NetemCounters, gained
from impair.profile import Direction, Link

SIGMAS = 4.9  # two-sided chance of 1e-6 for a true impairment to be called false ...
UNEXPLAINED_FRAMES = 3  # ... and a few that are still in flight when the counters are read


@dataclass(frozen=True, slots=True)
class Events:
    """Count of one kind of netem's decisions while the client ran, and the number of packets decided about.

    `share` is the part of the decisions that is visible in `count`, `doubt` its relative uncertainty; `slack` packets
    may be in only one of the two, because they passed while counters were read.
    """

    count: int
    decisions: int
    share: float = 1.0
    doubt: float = 0.0
    slack: int = 0


@dataclass(frozen=True, slots=True)
class NetemCounts:
    """Decisions of netem in one direction while the client ran."""

    loss: Events
    duplicate: Events
    corrupt: Events
    reorder: Events
    queue_drops: int  # by a full queue
    corrupted: int  # upper limit of frames that vanished after netem because of a corrupted bit


def passage_of(direction: Direction, link: Link, stretch: Stretch) -> NetemCounts:
    """Growth of the router's netem counters over a trial, or over a span of it.

    netem_enqueue decides about duplication first, once for each packet that comes in; about loss for each packet and
    each copy, where a packet that is both duplicated and lost leaves one; about corruption and reordering for the rest.
    Kernel 7.2 and later count the decisions. Before: see `_passage_by_frames`.
    """
    states = [reading.netem(direction) for reading in (stretch.before, stretch.after)]
    before, after = (state.counters for state in states if state)
    grown = gained(before, after)
    entered = stretch.offered(direction)
    stayed = grown.packets + grown.backlog_packets
    tosses = stayed  # about reordering: none within a gap
    if link.reorder and link.reorder.ratio:
        tosses = round(stayed * Expectation.of(link).overtaking / link.reorder.ratio)
    if not isinstance(grown, DecisionCounters):
        return _passage_by_frames(direction, link, stretch, grown, Events(grown.requeues, tosses))
    # A packet that is duplicated and lost leaves one: `dropped` counts it and `drops` does not. So the queue itself
    # dropped the frames that came in or were copied, were not lost, and are missing; except for stray frames.
    missing = entered + grown.duplicated - grown.dropped - stayed
    overflowed = max(0, grown.drops - grown.dropped, missing - UNEXPLAINED_FRAMES)
    return NetemCounts(
        Events(grown.dropped + grown.ecn_marked, stayed + grown.drops),
        Events(grown.duplicated, entered),
        Events(grown.corrupted, stayed + overflowed),  # corrupted first, then dropped by a full queue
        Events(grown.reordered, tosses),
        overflowed,
        grown.corrupted,
    )


def _passage_by_frames(
    direction: Direction, link: Link, stretch: Stretch, grown: NetemCounters, reorder: Events
) -> NetemCounts:
    """Decisions of a netem that does not count them, from frames in, out and arrived; `grown` is its counters' growth.

    `drops` counts vanished packets, which of N packets is N*p*(1-d*p), and N*d*(1-p) copies more than packets leave; if
    no loss is requested, only a full queue drops. Corruption: headwind/proof/corruption.py; unknown of a span.
    """
    entered, stayed = stretch.offered(direction), grown.packets + grown.backlog_packets
    slack = sum(reading.rx_while_read[direction.sender] for reading in (stretch.before, stretch.after))
    copies = max(0, stayed + grown.drops - entered)
    if link.duplicate is None and copies <= UNEXPLAINED_FRAMES + slack:
        copies = 0  # frames of the router itself, which never came in, or that came in while its counters were read
    ratio, loss = (link.duplicate.ratio if link.duplicate else 0.0), Expectation.of(link).loss
    lost, overflowed = (grown.drops, 0) if link.loss else (0, grown.drops)
    duplicated = Events(copies, entered, 1 - loss, slack=slack)
    if loss == 1 and ratio:  # a packet that is duplicated and lost leaves one: no more leave than were duplicated
        duplicated = Events(stayed, entered, slack=slack)
    lost_share = 1 - ratio * loss
    if lost_share == 0:  # one leaves of each: a packet that was not lost would have a copy behind it
        lost, lost_share = entered - copies, 1.0
    left, requested = stretch.left(direction), link.corrupt.ratio if link.corrupt else 0.0
    corrupt = Events(0, 0)
    if arrived := stretch.arrived.get(direction.receiver):
        sighting = Sighting.of(left, arrived)
        corrupt = Events(
            sighting.shown if requested else sighting.certain, max(left, arrived.rx_frames), SHOWN_SHARE,
            SHARE_ALLOWANCE, max(0, arrived.rx_frames - left),
        )  # fmt: skip
    return NetemCounts(
        Events(lost, entered, lost_share, slack=slack), duplicated, corrupt, reorder, overflowed,
        most_dropped_by_bridge(requested, left, SIGMAS),
    )  # fmt: skip
