"""Verifies that a trial had the requested network. Pure: requests, read-backs, counters and probes in, a Proof out.

The rules are written here, before any run, and are the same for every protocol. A quantity passes if it lies within
`SIGMAS` standard deviations of the request's prediction for the packets that were really sent, plus a stated allowance
for the machine. The client's results are never part of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from headwind.model import Check, Proof
from headwind.proof.decisions import check_decisions
from headwind.proof.ends import check_congestion
from headwind.proof.evidence import Evidence, Train
from headwind.proof.expectation import Expectation, delay_seen
from headwind.proof.netem_counts import SIGMAS, UNEXPLAINED_FRAMES, NetemCounts, passage_of
from headwind.proof.probed_decisions import check_contents, check_probes_known
from headwind.proof.spans import check_rebinding, check_schedule, check_spans, unchanged_warnings
from headwind.proof.stability import check_hosts, check_settings
from headwind.proof.traces import check_trace
from impair.messages import DecisionCounters, QueueCounters
from impair.profile import Direction, Link, Profile
from impair.queues import kind_of

FALSE_ALARM = 1e-6  # ... and that probability, if it can be computed
DELAY_ALLOWANCE_S = 0.003  # what a busy two-core machine adds to a one-way probe
RATE_ALLOWANCE = 0.03  # steady trains were right within 1.5 %, however busy the machine (impair/endpoint/dispersion.py)
UNEXPLAINED_ALLOWANCE = 0.001  # frames that vanish outside netem
# Standard deviation in units of jitter: of a uniform +-j, and of iproute2's tables (/usr/lib/tc/*.dist).
SPREAD_PER_JITTER = {"uniform": 1 / math.sqrt(3), "normal": 1.0, "pareto": 0.8197, "paretonormal": 0.8339}


def prove(profile: Profile, evidence: Evidence) -> Proof:
    """Check both directions of a trial's network; see the module's docstring for the rule."""
    checks = [check_settings(direction, evidence) for direction in Direction]
    checks += check_hosts(evidence)
    checks += check_congestion(evidence.congestion)
    checks += check_schedule(profile, evidence)
    if profile.rebinding:
        checks += check_rebinding(profile.rebinding, evidence)
    routers = evidence.before.router, evidence.after.router
    if not all(router.netem(direction) for router in routers for direction in Direction):
        return Proof(tuple(checks), evidence.to_json())  # netem was removed: there is nothing to count
    for direction in Direction:
        checks += _check_direction(direction, profile, evidence)
    return Proof(tuple(checks), evidence.to_json(), (*_warnings(evidence), *unchanged_warnings(profile, evidence)))


def _check_direction(direction: Direction, profile: Profile, evidence: Evidence) -> Iterator[Check]:
    """Check one direction: of a network that changes, delay and rate of the first one, and the counts of each span."""
    link, read, trains = profile.link(direction), evidence.configured[direction], evidence.trains.get(direction)
    yield from check_delay(direction, link, read.link, trains.probe if trains else None)
    if trains:
        yield check_contents(direction, trains.probe)
        if (state := evidence.before.router.netem(direction)) and not isinstance(state.counters, DecisionCounters):
            yield from check_probes_known(direction, link, trains.probe)
    links = profile.links(direction)
    passage = passage_of(direction, next((each for each in links if each.loss), link), evidence.whole)
    trace = profile.trace(direction)
    if profile.changes(direction) and not trace:
        yield from check_spans(direction, profile, evidence)
    else:
        yield from check_decisions(direction, link, read.link, passage)
    if link.rate:
        yield _check_rate(direction, link, read.link, trains.bulk if trains else None)
    if trace and (traced := evidence.traced(direction)):
        yield from check_trace(trace, traced)
    yield _check_unexplained(direction, links, passage, evidence)


def check_delay(direction: Direction, link: Link, read: Link, train: Train | None) -> Iterator[Check]:
    """Check one-way delay, its spread and the number of arrived probes, by the probe train of a direction."""
    wanted = link.delay.delay_s if link.delay else 0.0
    configured = read.delay.delay_s if read.delay else 0.0
    if not train or not train.delays_s:
        expected_so = train is not None and Expectation.of(link).chance_of_none(train.sent) > FALSE_ALARM
        note = "no probe arrived" + (", explained by the loss" if expected_so else "")
        yield Check(direction, "delay_s", wanted, configured, None, None, expected_so, note)
        return
    seen = delay_seen(link, train.delays_s)
    tolerance = DELAY_ALLOWANCE_S + SIGMAS * seen.spread_s + seen.slack_s
    yield Check(
        direction, "delay_s", wanted, configured, seen.measured_s, tolerance,
        abs(seen.measured_s - seen.expected_s) <= tolerance,
        f"{seen.middle} one-way delay of {len(train.delays_s)} probes",
    )  # fmt: skip
    yield _check_probes(direction, link, train)
    if link.jitters and len(train.delays_s) > 2:
        yield _check_jitter(direction, link, read, train.delays_s)


def _check_probes(direction: Direction, link: Link, train: Train) -> Check:
    """Check that no more probes are missing than netem takes: frame counters miss losses inside a host."""
    expecting = Expectation.of(link)
    expected, inflation = expecting.vanishing, expecting.inflation
    sent, unique = train.sent, train.unique
    measured = (sent - unique) / sent
    # With few probes, and in bursts, more may be missing than the normal law predicts (Bernstein's inequality adds a
    # term of that form). If none may be missing, one may be the machine's.
    strays = 1 + SIGMAS**2 / 4 * inflation if expected else 1.0
    tolerance = SIGMAS * math.sqrt(expected * (1 - expected) * inflation / sent) + strays / sent
    return Check(
        direction, "probe_loss_ratio", expected, None, measured, tolerance, measured <= expected + tolerance,
        f"{unique} of {sent} probes arrived, not counting duplicates",
    )  # fmt: skip


def _check_jitter(direction: Direction, link: Link, read: Link, delays: Sequence[float]) -> Check:
    assert link.delay
    jitter, shape = link.delay.jitter_s, link.delay.distribution
    measured = statistics.stdev(delays) / SPREAD_PER_JITTER[shape]
    configured = read.delay.jitter_s if read.delay else 0.0
    relative = SIGMAS / math.sqrt(2 * (len(delays) - 1))  # of a standard deviation, normal theory
    if shape.startswith("pareto"):
        relative *= 2  # a few far outliers carry most of the spread
    if link.jitters_in_order:
        relative *= 2  # which correlates neighbours
    tolerance = jitter * relative
    expecting = Expectation.of(link)
    skipped_s = link.delay.delay_s + expecting.probe_s if expecting.overtaking else 0.0
    if measured > jitter or skipped_s or link.rate or link.slot:  # a busy machine adds to a spread; it takes nothing
        tolerance += DELAY_ALLOWANCE_S + skipped_s + expecting.waiting_s
    return Check(
        direction, "jitter_s", jitter, configured, measured, tolerance,
        abs(measured - jitter) <= tolerance and measured > 0, f"spread of {len(delays)} probes",
    )  # fmt: skip


def _check_rate(direction: Direction, link: Link, read: Link, train: Train | None) -> Check:
    assert link.rate
    wanted, configured = float(link.rate.rate_bps), float(read.rate.rate_bps) if read.rate else None
    measured = train.rate.rate_bps if train else None
    if train is None or measured is None:
        expected_so = train is not None and Expectation.of(link).chance_of_no_pair(train.sent) > FALSE_ALARM
        note = "too few of the train arrived" + (", explained by the loss" if expected_so else "")
        return Check(direction, "rate_bps", wanted, configured, None, None, expected_so, note)
    trains, note = len(train.rates_bps), f"dispersion of {train.received} back-to-back frames"
    if train.rate.agreeing:
        note += f", of whose pairs {100 * train.rate.agreeing / train.rate.pairs:.0f} % agree"
    if trains > 1:
        note += f", the middle {'steady ' if train.rate.agreeing else ''}one of {trains} trains"
        note += "" if train.rate.agreeing else ", none of them steady: the machine was busy, or the link is not exact"
    return Check(
        direction, "rate_bps", wanted, configured, measured, RATE_ALLOWANCE * Expectation.of(link).full_frame_rate_bps,
        shows_rate(link, measured), note,
    )  # fmt: skip


def shows_rate(link: Link, measured_bps: float | None) -> bool:
    """True if a measured rate is that of the link, within the allowance."""
    expected = Expectation.of(link).full_frame_rate_bps
    return measured_bps is not None and abs(measured_bps - expected) <= RATE_ALLOWANCE * expected


def _check_unexplained(direction: Direction, links: Sequence[Link], passage: NetemCounts, evidence: Evidence) -> Check:
    """Check frames that vanished before or after netem: sender to router, and router to receiver."""
    sent, entered = evidence.sent(direction), evidence.whole.entered(direction)
    left, arrived = evidence.whole.left(direction), evidence.arrived(direction).rx_frames
    vanished = max(0, sent - entered) + max(0, left - arrived)
    queued, drops = evidence.whole.queued(direction), passage.queue_drops
    if queued:
        vanished += abs(entered - queued.packets - queued.drops - queued.backlog_packets)
        drops += queued.drops
    corrupted = passage.corrupted  # a frame with a broken address or IP header is dropped by the host's bridge
    limit = UNEXPLAINED_ALLOWANCE * max(sent, left) + UNEXPLAINED_FRAMES
    may_overflow = any(link.rate or link.limit_packets for link in links)  # as requested: a read-back has every limit
    share = vanished / sent if sent else 0.0
    return Check(
        direction, "unexplained_loss_ratio", 0.0, None, share, (limit + corrupted) / sent if sent else None,
        vanished <= limit + corrupted and (drops == 0 or may_overflow),
        f"{sent} sent, {entered} into the router, {left} out of it, {arrived} arrived"
        + _queue_note(links[0], passage, queued),
    )  # fmt: skip


def _queue_note(link: Link, passage: NetemCounts, queued: QueueCounters | None) -> str:
    """Drops and marks of the queue, as text: `; fq_codel dropped 12 and marked 3`, `; 7 dropped by a full queue`."""
    full = f"; {passage.queue_drops} dropped by a full queue (limit {link.limit})" if passage.queue_drops else ""
    if not (queued and link.queue):
        return full
    return f"{full}; {kind_of(link.queue)} dropped {queued.drops} and marked {queued.marks}"


def _warnings(evidence: Evidence) -> Iterator[str]:
    for side in ("client", "server"):
        if lost := evidence.grown(side).udp_rcvbuf_errors:
            size = evidence.windows.get(side, {}).get("udp_rcvbuf_bytes")
            room = f" of {size / 1024:.0f} KB" if size else ""
            yield f"{side}: {lost} datagrams lost in a full UDP receive buffer{room} (docs/windows.md)"
