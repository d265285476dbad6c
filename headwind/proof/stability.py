"""Checks that nothing changed while the client ran: read-backs before and after do not cover the time between.

Pure, as part of headwind/proof/trial_checks.py: counters of before and after in, Checks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import pairwise

from headwind.model import Check
from headwind.proof.evidence import Evidence, Fingerprint
from impair.messages import NetemCounters, NetemState, Processors, QueueCounters, QueueState, gained
from impair.profile import FRAME_BYTES, Direction

THROTTLED_SHARE = 0.01  # of a trial's length; without a quota, as on every normal testbed, it is exactly 0
LARGEST_GAP_S = 0.5  # a longer standstill of a host, not the network, made the protocols wait


def check_settings(direction: Direction, evidence: Evidence) -> Check:
    """Check that netem still reads as configured, and was not replaced: its counters never went back.

    If the network was to change, that holds for each span, at its end and at its beginning, and from span to span.
    """
    spans = evidence.spans(direction)
    readings = [reading for span in spans for reading in (span.stretch.before, span.stretch.after)]
    changes = [
        change
        for span in spans
        for reading in (span.stretch.before, span.stretch.after)
        for change in _changes(span.configured, reading.netem(direction))
    ]
    for earlier, later in pairwise(reading.netem(direction) for reading in readings):
        if earlier and later:
            changes += _back(gained(earlier.counters, later.counters))
    if queued := evidence.whole.queued(direction):
        changes += [f"queue's {name}" for name in _back(queued)]
    note = f"changed during the trial: {', '.join(dict.fromkeys(changes))}" if changes else "read back before and after"
    return Check(direction, "settings_changed", 0.0, None, float(len(changes)), 0.0, not changes, note)


def _back(grown: NetemCounters | QueueCounters) -> list[str]:
    """The counters that are lower than before: something was replaced."""
    names = (item.name for item in fields(grown))
    return [name for name in names if not name.startswith("backlog") and getattr(grown, name) < 0]


def _changes(configured: NetemState, state: NetemState | None) -> list[str]:
    if state is None:
        return ["link", "seed", "limit"]
    same = {
        "link": state.link == configured.link,
        "seed": state.seed == configured.seed,
        "limit": state.limit == configured.limit,
        "queue": _as_configured(state.queue) == _as_configured(configured.queue),
    }
    return [name for name, is_same in same.items() if not is_same]


def _as_configured(queue: QueueState | None) -> tuple[object, ...] | None:
    return (queue.kind, queue.settings, queue.rate_bps, queue.tokens_ns) if queue else None


def check_hosts(evidence: Evidence) -> Iterator[Check]:
    """Check that routes, links and firewalls are unchanged, that no host stood still, and no offload merged frames.

    They concern both directions, and are listed with the downlink because every check has a direction.
    """
    changed = list(_changed_hosts(evidence.joined, evidence.after.fingerprints))
    note = f"changed: {', '.join(dict.fromkeys(changed))}" if changed else "routes, links and firewalls as at the start"
    yield Check(Direction.DOWNLINK, "hosts_changed", 0.0, None, float(len(changed)), 0.0, not changed, note)
    yield _check_processors(evidence.before.processors(), evidence.after.processors())
    gaps = evidence.after.gaps_s()
    slowest = max(gaps, key=lambda host: gaps[host])
    yield Check(
        Direction.DOWNLINK, "standstill_s", 0.0, None, gaps[slowest], LARGEST_GAP_S, gaps[slowest] <= LARGEST_GAP_S,
        f"longest standstill: the {slowest}",
    )  # fmt: skip
    oversize = sum(evidence.grown(side).oversize_frames for side in ("client", "server"))
    yield Check(
        Direction.DOWNLINK, "oversize_frames", 0.0, None, float(oversize), 0.0, oversize == 0,
        f"frames above {FRAME_BYTES} bytes, merged by an offload",
    )  # fmt: skip


def _changed_hosts(joined: Mapping[str, Fingerprint], present: Mapping[str, Fingerprint]) -> Iterator[str]:
    """Host and topic of every text that differs from the start; a host without an earlier text is not compared."""
    for host, topics in joined.items():
        for topic, text in topics.items():
            if present.get(host, {}).get(topic) != text:
                yield f"{host}'s {topic}"


def _check_processors(before: Mapping[str, Processors], after: Mapping[str, Processors]) -> Check:
    """Check that no container was throttled because it had used up a CPU quota."""
    shares = {
        host: share
        for host, now in after.items()
        if host in before and (share := _throttled_share(before[host], now)) is not None
    }
    slowest = max(shares, key=lambda host: shares[host], default="")
    measured = shares.get(slowest)
    note = f"longest throttling by a CPU quota: the {slowest}" if slowest else "not reported by the hosts"
    return Check(
        Direction.DOWNLINK, "throttled_ratio", 0.0, None, measured, THROTTLED_SHARE, (measured or 0) <= THROTTLED_SHARE,
        note,
    )  # fmt: skip


def _throttled_share(before: Processors, after: Processors) -> float | None:
    """Share of the time between two readings that a container was throttled; None if it is not reported."""
    if before.throttled_s is None or after.throttled_s is None:
        return None
    return (after.throttled_s - before.throttled_s) / max(after.clock_s - before.clock_s, 1e-9)
