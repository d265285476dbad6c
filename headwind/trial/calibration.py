"""Measures the capacity of the unimpaired path before the first trial, and the highest rate that the lab can show."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from headwind.proof.trial_checks import shows_rate
from headwind.testbed.path import Path
from headwind.trial.probes import BULK_PAYLOAD_BYTES, PROBE_PAYLOAD_BYTES, send, send_train_once
from impair.profile import FRAME_BYTES, Direction, Link, Profile, Rate

BLASTS = 3  # of each size; the best counts, because anything else that runs here can only slow them down
BLAST_PACKETS = 8000
BLAST_PATIENCE_S = 1.0  # the path may still be working on a blast when its sender is done
RESERVE = 1.25  # a rate is the slowest link of a path only if everything else is faster by this
RUNGS_BPS = tuple(mbit * 1_000_000 for mbit in (
    10_000, 8000, 6500, 5000, 4000, 3200, 2500, 2000, 1600, 1300,
    1000, 800, 650, 500, 400, 320, 250, 200, 160, 130, 100, 80, 65, 50, 40, 32, 25, 20, 16, 13, 10,
))  # fmt: skip
RUNG_TRAINS = 3  # of one rate; the middle one counts, as a trial may try three times


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of one direction of the bare path, and the highest rate shown there, by the lab's own trains."""

    frames_per_s: float  # full frames
    rate_bps: float  # of these
    lost_ratio: float  # of these
    small_frames_per_s: float  # as small as a probe
    shown_bps: float  # the highest of RUNGS_BPS that a train showed; 0: none


def measure_capacity(path: Path) -> dict[str, dict[str, Any]]:
    """{direction: Capacity as a JSON object}; leaves netem clean. An engine without netem shows no rate."""
    found = {}
    for direction in Direction:
        _apply(path, direction, Link())
        full = [_blast(path, direction, BULK_PAYLOAD_BYTES) for _ in range(BLASTS)]
        small = max(_blast(path, direction, PROBE_PAYLOAD_BYTES)[0] for _ in range(BLASTS))
        frames_per_s, lost_ratio = max(full)
        rate_bps = frames_per_s * FRAME_BYTES * 8
        found[direction.value] = asdict(
            Capacity(frames_per_s, rate_bps, lost_ratio, small, _shown_bps(path, direction, rate_bps / RESERVE))
        )
    _apply(path, Direction.UPLINK, Link())
    return found


def _apply(path: Path, direction: Direction, link: Link) -> None:
    up, down = (link if each is direction else Link() for each in Direction)
    path.apply(Profile("calibration", up, down), dict.fromkeys(Direction, 1))


def _blast(path: Path, direction: Direction, payload_bytes: int) -> tuple[float, float]:
    """(frames/s on arrival, share that did not arrive) of BLAST_PACKETS sent back to back over a clean path."""
    plan = {direction: (BLAST_PACKETS, 0.0, payload_bytes)}
    seen = send(path, {direction: Link()}, plan, BLAST_PATIENCE_S)[direction]
    arrivals_s = seen.arrivals_s
    span_s = arrivals_s[-1] - arrivals_s[0] if len(arrivals_s) > 1 else 0.0
    return (len(arrivals_s) - 1) / span_s if span_s > 0 else 0.0, 1 - seen.unique / BLAST_PACKETS


def _shown_bps(path: Path, direction: Direction, most_bps: float) -> float:
    """The highest rung up to `most_bps` whose trains show the rate of netem."""
    if not path.engine.netem:
        return 0.0
    for rate_bps in (rung for rung in RUNGS_BPS if rung <= most_bps):
        link = Link(rate=Rate(rate_bps))
        _apply(path, direction, link)
        trains = [send_train_once(path, direction, link) for _ in range(RUNG_TRAINS)]
        if shows_rate(link, statistics.median(train.rate.rate_bps or 0.0 for train in trains)):
            return float(rate_bps)
    return 0.0
