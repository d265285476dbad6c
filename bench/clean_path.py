"""Measures the cost of the user-mode kernel: the same work through it and through plain forwarding, in turn.

    .venv/bin/python bench/clean_path.py [--pairs 5] [--requests 10000] [--connections 100] [--streams 100] [--path /]

Both testbeds are up at once and take turns, so that a drift of the machine's speed affects both. For each protocol it
prints the paired ratio of h2load's total times, the frames that left one endpoint and did not reach the other, and the
receive-buffer errors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind import engines
from headwind.arm import PLAIN
from headwind.model import Block, Condition, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.images import ensure_images, needed
from headwind.testbed.operations import COUNTERS
from headwind.testbed.testbed import Testbed
from headwind.trial.trial import forget, run_client
from headwind.workloads.h2load import H2load
from impair.messages import gained
from impair.profile import Direction, Profile

SETTLE_S = 0.2  # longer than a clean path needs to empty


@dataclass(frozen=True, slots=True)
class NetemCounts:
    """A run of the client: h2load's total time, frames that were lost between the endpoints, and buffer errors."""

    total_s: float
    lost_frames: int
    buffer_errors: int


def run_once(path: paths.Path, trial: Trial) -> NetemCounts:
    """Run the workload once, and read the endpoints' counters before and after. Exits if a request failed."""
    forget(path)
    before = path.ask_endpoints(COUNTERS)
    run, answer = run_client(path, trial, TrialRules(120.0))
    time.sleep(SETTLE_S)
    after = path.ask_endpoints(COUNTERS)
    client, server = (gained(old, new) for old, new in zip(before, after, strict=True))
    lost = max(0, client.tx_frames - server.rx_frames) + max(0, server.tx_frames - client.rx_frames)
    if shortfall := trial.block.condition.workload.shortfall(answer):
        raise SystemExit(f"{trial.protocol.value} on a clean path: {shortfall}")
    return NetemCounts(run.metrics["total_s"], lost, client.udp_rcvbuf_errors + server.udp_rcvbuf_errors)


def main() -> None:
    """Run the pairs and print one line per protocol."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--path", default="/", help="object that every request fetches, such as /10m")
    options = parser.parse_args()
    workload = H2load("clean", options.requests, options.connections, options.streams, path=options.path)
    condition = Condition(Profile("clean"), workload)
    tags = ensure_images(print, needed()).tags
    with (
        Testbed.up(BedSpec(tags, engine=engines.UML.name)) as one,
        Testbed.up(BedSpec(tags, engine=engines.PLAIN.name)) as other,
    ):
        uml, plain = one.path(), other.path()
        uml.apply(Profile("clean"), {Direction.UPLINK: 1, Direction.DOWNLINK: 2})
        for arm in PLAIN:
            ratios, lost, errors, times = [], 0, 0, []  # lost and errors: on the user-mode kernel's path
            for pair in range(options.pairs + 1):
                trial = Trial(Block(condition, pair, (arm,), dict.fromkeys(Direction, 1 + pair)), 0, arm)
                through, direct = run_once(uml, trial), run_once(plain, trial)
                if pair == 0:
                    continue  # warm-up: the first run of each testbed does not count
                times.append((through.total_s, direct.total_s))
                ratios.append(through.total_s / direct.total_s)
                lost += through.lost_frames
                errors += through.buffer_errors
            uml_s, plain_s = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{arm}: uml {uml_s:.2f} s, plain {plain_s:.2f} s, ratio {statistics.median(ratios):.2f} "
                  f"[{min(ratios):.2f}, {max(ratios):.2f}] n={options.pairs}; "
                  f"{lost} frames lost, {errors} receive-buffer errors")  # fmt: skip


if __name__ == "__main__":
    main()
