"""What the path itself can carry, measured before the first trial: the packet-rate ceiling of the engine."""

from __future__ import annotations

from headwind.testbed import Testbed
from headwind.trial import send
from impair.profile import Direction, Link, Profile

BLAST_PACKETS = 8000
BLAST_PAYLOAD_BYTES = 1200
BLAST_PATIENCE_S = 1.0  # the path may still be working on a blast when its sender is done


def packet_rate_ceiling(testbed: Testbed) -> dict[str, dict[str, float]]:
    """Blast each direction alone over a clean path; {direction: {"frames_per_s", "lost_ratio"}} as it arrived."""
    clean = Profile("clean")
    if testbed.engine != "plain":
        testbed.router.call("apply", profile=clean.to_json(), seeds={"uplink": 1, "downlink": 1})
    found = {}
    for direction in Direction:
        plan = {direction: (BLAST_PACKETS, 0.0, BLAST_PAYLOAD_BYTES)}
        seen = send(testbed, {direction: Link()}, plan, BLAST_PATIENCE_S)[direction]
        arrivals = seen["arrivals_s"]
        span_s = arrivals[-1] - arrivals[0] if len(arrivals) > 1 else 0.0
        found[direction.value] = {
            "frames_per_s": (len(arrivals) - 1) / span_s if span_s > 0 else 0.0,
            "lost_ratio": 1 - seen["unique"] / BLAST_PACKETS,
        }
    return found
