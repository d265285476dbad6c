"""Checks netem's counts of its decisions, of a trial or of a span of it, against the request's prediction. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from headwind.model import Check
from headwind.proof.expectation import DECISIONS, Expectation
from headwind.proof.netem_counts import SIGMAS, UNEXPLAINED_FRAMES, Events, NetemCounts
from impair.profile import Direction, Link

# Bursts make extreme counts likelier than the normal law predicts: by this number of frames per unit of variance
# inflation. From a simulation of 3 million trials for each of eight Gilbert-Elliott links; without it up to 0.6 % of
# them failed.
BURST_FRAMES = 6


def check_decisions(
    direction: Direction, link: Link, read: Link, passage: NetemCounts, span: str = "", when: str = ""
) -> Iterator[Check]:
    """Check netem's counts of loss, duplication, corruption and reordering against the request's prediction.

    `span` and `when`: which part of a trial they are about, for the check and for its note; empty: all of it.
    """
    requested, kept = Expectation.of(link), Expectation.of(read)
    for name in DECISIONS:
        events: Events = getattr(passage, name)
        if getattr(link, name) is not None or events.count:
            spread = requested.inflation if name == "loss" else 1.0
            check = _check_ratio(direction, f"{name}_ratio", requested.ratio(name), kept.ratio(name), events, spread)
            yield replace(check, span=span, note=f"{check.note}{when and f', {when}'}")


def _check_ratio(
    direction: Direction, quantity: str, ratio: float, configured: float, events: Events, inflation: float
) -> Check:
    effective = events.decisions * events.share
    note = f"{events.count} of {events.decisions} packets"
    if events.doubt:  # not netem's own count
        doubt = f"{100 * events.share:.0f} \N{PLUS-MINUS SIGN} {100 * events.share * events.doubt:.0f} %"
        note += f", by the receiver's counters, which show {doubt}"
    if effective == 0:  # no packets, such as answers to requests that were all lost; or nothing visible
        nothing_to_do = events.decisions == 0 or ratio == 0
        return Check(direction, quantity, ratio, configured, None, None, nothing_to_do, note)
    measured = events.count / effective
    # One or two frames that netem counted are the bridges' own: they cannot fail a ratio of 100 %.
    tolerance = SIGMAS * math.sqrt(ratio * (1 - ratio * events.share) * inflation / effective)
    tolerance += ((UNEXPLAINED_FRAMES if ratio else 0) + events.slack) / effective + events.doubt * ratio
    tolerance += BURST_FRAMES * (inflation - 1) / effective
    passed = abs(measured - ratio) <= tolerance
    return Check(direction, quantity, ratio, configured, measured, tolerance, passed, note)
