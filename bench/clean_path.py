"""Does the user-mode kernel cost the client anything? The same work through it and through plain forwarding, in turn.

    .venv/bin/python bench/clean_path.py [--pairs 5] [--requests 10000]

Both testbeds are up at once and take turns, so that a drift of the machine's speed meets both. Prints, for each
protocol, the paired ratio of h2load's total times, the frames that left one endpoint and did not reach the other, and the
receive-buffer errors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.images import ensure_images
from headwind.model import Block, Condition, Congestion, Protocol, Result, Trial, Workload
from headwind.testbed import Testbed
from headwind.trial import run_trial
from impair.profile import Direction, Profile


def lost_frames(result: Result) -> int:
    """Frames that one endpoint sent and the other did not get, both directions together."""
    before, after = (result.proof.counters[moment] for moment in ("before", "after"))
    gain = {(side, name): after[side][name] - before[side][name]
            for side in ("client", "server") for name in ("tx_frames", "rx_frames")}  # fmt: skip
    pairs = (("client", "server"), ("server", "client"))
    return sum(max(0, gain[sender, "tx_frames"] - gain[receiver, "rx_frames"]) for sender, receiver in pairs)


def buffer_errors(result: Result) -> int:
    """Datagrams dropped by a full receive buffer on either endpoint."""
    before, after = (result.proof.counters[moment] for moment in ("before", "after"))
    return sum(int(after[side]["udp_rcvbuf_errors"] - before[side]["udp_rcvbuf_errors"]) for side in ("client", "server"))


def main() -> None:
    """Run the pairs and print one line per protocol."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    condition = Condition(Profile("clean"), Workload("clean", options.requests, 100, 100))
    tag, cubic = ensure_images(print).tag, Congestion()
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed.up(tag, cubic, "uml", Path(folder)) as uml,
        Testbed.up(tag, cubic, "plain", Path(folder)) as plain,
    ):
        for protocol in Protocol:
            ratios, lost, errors, times = [], 0, 0, []
            for pair in range(options.pairs + 1):
                trial = Trial(Block(condition, pair, (protocol,), {d: 1 + pair for d in Direction}), 0, protocol)
                through = [run_trial(testbed, trial, 120.0) for testbed in (uml, plain)]
                if pair == 0:
                    continue  # warm-up, declared: the first run of each testbed
                seconds = [result.metrics["total_s"] for result in through]
                times.append(seconds)
                ratios.append(seconds[0] / seconds[1])
                lost += lost_frames(through[0])
                errors += buffer_errors(through[0])
            uml_s, plain_s = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{protocol.value}: uml {uml_s:.2f} s, plain {plain_s:.2f} s, ratio {statistics.median(ratios):.2f} "
                  f"[{min(ratios):.2f}, {max(ratios):.2f}] n={options.pairs}; "
                  f"{lost} frames lost, {errors} receive-buffer errors")  # fmt: skip


if __name__ == "__main__":
    main()
