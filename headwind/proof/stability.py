"""Checks that nothing changed while the client ran: right before and right after does not prove the time between.

Pure, like headwind/proof/proof.py, of which it is a part: counters of before and after in, Checks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwind.model import Check
from impair.profile import FRAME_BYTES, Direction

HOSTS = ("client", "server", "router")
THROTTLED_SHARE = 0.01  # of a trial's length; without a quota, which no plain testbed has, it is exactly nothing
LARGEST_GAP_S = 0.5  # a host that stood still for longer made the protocols wait, not the network
SETTINGS = ("link", "seed", "limit")


def check_settings(direction: Direction, configured: Any, before: Any, after: Any) -> Check:
    """netem still reads as it was configured, and nobody replaced it: its counters never went back."""
    moments = [moment["router"].get(direction) for moment in (before, after)]
    changes = [
        name for name in SETTINGS for moment in moments if not moment or moment.get(name) != configured.get(name)
    ]
    if all(moments):
        first, last = (moment["counters"] for moment in moments)
        changes += [name for name, count in first.items() if not name.startswith("backlog") and last[name] < count]
    note = f"changed in mid-trial: {', '.join(dict.fromkeys(changes))}" if changes else "read back before and after"
    return Check(direction, "settings_changed", 0.0, None, float(len(changes)), 0.0, not changes, note)


def check_hosts(
    before: Mapping[str, Any], after: Mapping[str, Any], joined: Mapping[str, Mapping[str, str]]
) -> Iterator[Check]:
    """The hosts' routes, links and firewalls are those of the start, none stood still, no offload glued frames.

    `joined` is {host: fingerprint} as it was when the testbed was made, empty where nobody took it; `after` has the
    present ones as "fingerprints". The checks stand with the downlink, because every check stands with a direction, and
    concern both.
    """
    present = after.get("fingerprints", {})
    changed = [
        f"{host}'s {topic}"
        for host, topics in joined.items()
        for topic, text in topics.items()
        if present.get(host, {}).get(topic) != text
    ]
    note = f"changed: {', '.join(dict.fromkeys(changed))}" if changed else "routes, links and firewalls as at the start"
    yield Check(Direction.DOWNLINK, "hosts_changed", 0.0, None, float(len(changed)), 0.0, not changed, note)
    yield _check_processors(before, after)
    gaps = {host: float(after[host].get("largest_gap_s", 0.0)) for host in HOSTS}
    slowest = max(gaps, key=lambda host: gaps[host])
    yield Check(
        Direction.DOWNLINK, "standstill_s", 0.0, None, gaps[slowest], LARGEST_GAP_S, gaps[slowest] <= LARGEST_GAP_S,
        f"longest time in which the {slowest} did nothing at all",
    )  # fmt: skip
    oversize = sum(int(after[side]["oversize_frames"] - before[side]["oversize_frames"]) for side in HOSTS[:2])
    yield Check(
        Direction.DOWNLINK, "oversize_frames", 0.0, None, float(oversize), 0.0, oversize == 0,
        f"frames above {FRAME_BYTES} bytes, which an offload glued together",
    )  # fmt: skip


def _check_processors(before: Mapping[str, Any], after: Mapping[str, Any]) -> Check:
    """No container was kept from the processors because it had used up a quota of them."""
    shares = {
        host: share
        for host, counters in after.items()
        if (share := _throttled_share(before.get(host, {}).get("processors"), counters.get("processors"))) is not None
    }
    slowest = max(shares, key=lambda host: shares[host], default="")
    measured = shares.get(slowest)
    note = f"longest time without a processor for want of quota: the {slowest}'s" if slowest else "not told here"
    return Check(
        Direction.DOWNLINK, "throttled_ratio", 0.0, None, measured, THROTTLED_SHARE, (measured or 0) <= THROTTLED_SHARE,
        note,
    )  # fmt: skip


def _throttled_share(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> float | None:
    """How long a container was throttled between two readings, as a share of that time; None where nobody tells."""
    if not before or not after or before["throttled_s"] is None or after["throttled_s"] is None:
        return None
    elapsed_s = max(float(after["clock_s"] - before["clock_s"]), 1e-9)
    return float(after["throttled_s"] - before["throttled_s"]) / elapsed_s
