"""Checks that nothing changed while the client ran: right before and right after does not prove the time between.

Pure, like headwind/proof/proof.py, of which it is a part: counters of before and after in, Checks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from headwind.model import Check
from headwind.proof.evidence import Evidence, Fingerprint
from impair.messages import NetemState, Processors, gained
from impair.profile import FRAME_BYTES, Direction

THROTTLED_SHARE = 0.01  # of a trial's length; without a quota, which no plain testbed has, it is exactly nothing
LARGEST_GAP_S = 0.5  # a host that stood still for longer made the protocols wait, not the network


def check_settings(direction: Direction, evidence: Evidence) -> Check:
    """netem still reads as it was configured, and nobody replaced it: its counters never went back."""
    states = [moment.router.netem(direction) for moment in (evidence.before, evidence.after)]
    changes = [change for state in states for change in _changes(evidence.configured[direction], state)]
    if (before := states[0]) and (after := states[1]):
        grown = gained(before.counters, after.counters)
        changes += [item.name for item in fields(grown)
                    if not item.name.startswith("backlog") and getattr(grown, item.name) < 0]  # fmt: skip
    note = f"changed in mid-trial: {', '.join(dict.fromkeys(changes))}" if changes else "read back before and after"
    return Check(direction, "settings_changed", 0.0, None, float(len(changes)), 0.0, not changes, note)


def _changes(configured: NetemState, state: NetemState | None) -> list[str]:
    if state is None:
        return ["link", "seed", "limit"]
    same = {
        "link": state.link == configured.link,
        "seed": state.seed == configured.seed,
        "limit": state.limit == configured.limit,
    }
    return [name for name, is_same in same.items() if not is_same]


def check_hosts(evidence: Evidence) -> Iterator[Check]:
    """The hosts' routes, links and firewalls are those of the start, none stood still, no offload glued frames.

    The checks stand with the downlink, because every check stands with a direction, and concern both.
    """
    changed = list(_changed_hosts(evidence.joined, evidence.after.fingerprints))
    note = f"changed: {', '.join(dict.fromkeys(changed))}" if changed else "routes, links and firewalls as at the start"
    yield Check(Direction.DOWNLINK, "hosts_changed", 0.0, None, float(len(changed)), 0.0, not changed, note)
    yield _check_processors(evidence.before.processors(), evidence.after.processors())
    gaps = evidence.after.gaps_s()
    slowest = max(gaps, key=lambda host: gaps[host])
    yield Check(
        Direction.DOWNLINK, "standstill_s", 0.0, None, gaps[slowest], LARGEST_GAP_S, gaps[slowest] <= LARGEST_GAP_S,
        f"longest time in which the {slowest} did nothing at all",
    )  # fmt: skip
    oversize = sum(evidence.grown(side).oversize_frames for side in ("client", "server"))
    yield Check(
        Direction.DOWNLINK, "oversize_frames", 0.0, None, float(oversize), 0.0, oversize == 0,
        f"frames above {FRAME_BYTES} bytes, which an offload glued together",
    )  # fmt: skip


def _changed_hosts(joined: Mapping[str, Fingerprint], present: Mapping[str, Fingerprint]) -> Iterator[str]:
    """Host and topic of every text that is not that of the start; a host of which nobody took one is not compared."""
    for host, topics in joined.items():
        for topic, text in topics.items():
            if present.get(host, {}).get(topic) != text:
                yield f"{host}'s {topic}"


def _check_processors(before: Mapping[str, Processors], after: Mapping[str, Processors]) -> Check:
    """No container was kept from the processors because it had used up a quota of them."""
    shares = {
        host: share
        for host, now in after.items()
        if host in before and (share := _throttled_share(before[host], now)) is not None
    }
    slowest = max(shares, key=lambda host: shares[host], default="")
    measured = shares.get(slowest)
    note = f"longest time without a processor for want of quota: the {slowest}'s" if slowest else "not told here"
    return Check(
        Direction.DOWNLINK, "throttled_ratio", 0.0, None, measured, THROTTLED_SHARE, (measured or 0) <= THROTTLED_SHARE,
        note,
    )  # fmt: skip


def _throttled_share(before: Processors, after: Processors) -> float | None:
    """How long a container was throttled between two readings, as a share of that time; None where nobody tells."""
    if before.throttled_s is None or after.throttled_s is None:
        return None
    return (after.throttled_s - before.throttled_s) / max(after.clock_s - before.clock_s, 1e-9)
