"""Did anything change while the client ran? A network that was right before and after is not proof of the time between.

Pure, like headwind/proof.py, of which it is a part: counters of before and after in, Checks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwind.model import Check
from impair.profile import FRAME_BYTES, Direction

HOSTS = ("client", "server", "router")
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
