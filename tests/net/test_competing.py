"""Competing downloads on real containers: they share the bottleneck with the client, and nothing of them stays."""

from __future__ import annotations

import pytest

from headwind.arm import H2, H3, Arm
from headwind.metric import Competing
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.trial.trial import run_trial
from headwind.workloads.transfer import Transfer
from impair.profile import Delay, Direction, Link, Profile, Rate
from impair.queues import FqCodel
from servers.objects import path_of

RATE_BPS, BODY_BYTES = 8_000_000, 3_000_000
FAIR = Profile("fair", Link(Delay(0.01)), Link(Delay(0.01), rate=Rate(RATE_BPS), queue=FqCodel()))


def trial_of(arm: Arm, competing: Competing | None) -> Trial:
    workload = Transfer("large", 1, 1, 1, path=path_of(BODY_BYTES), competing=competing)
    block = Block(Condition(FAIR, workload), 0, (arm,), dict.fromkeys(Direction, 1))
    return next(iter(block.trials()))


def settled(bed: paths.Path, trial: Trial) -> Result:
    """The trial's result; again where its network could not be proven."""
    for _ in range(3):
        if (result := run_trial(bed, trial, TrialRules(60.0))).outcome is not Outcome.INVALID:
            return result
    return run_trial(bed, trial, TrialRules(60.0))


@pytest.mark.parametrize(
    ("arm", "competing"),
    [(H2, Competing("h2")), (H3, Competing("h2", 2)), (H3, Competing("h1"))],
    ids=["h2 with h2", "h3 with two of h2", "h3 with h1"],
)
def test_the_client_shares_the_rate_with_every_flow_and_all_frames_add_up(
    bed: paths.Path, arm: Arm, competing: Competing
) -> None:
    result = settled(bed, trial_of(arm, competing))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    checks = {check.quantity: check for check in result.proof.checks if check.direction is Direction.DOWNLINK}
    assert checks["competing_flows"].measured == competing.flows
    assert checks["unexplained_loss_ratio"].passed
    flows, metrics = competing.flows + 1, result.metrics
    assert metrics["download_share_ratio"] == pytest.approx(1 / flows, abs=0.2)  # fq_codel serves flows in turns
    assert metrics["jain_ratio"] > 0.8
    assert 0.25 < metrics["competing_kept_ratio"] < 1.0  # with the start of the client, and its handshake
    together_bps = metrics["competing_bps"] + BODY_BYTES * 8 / result.proof.counters["competed"]["during_s"]
    assert 0.5 * RATE_BPS < together_bps < RATE_BPS
    assert not {"wire_packets", "tcp_retransmits", "packet_gap_max_s"} & metrics.keys()


def test_the_next_trial_has_the_bottleneck_to_itself(bed: paths.Path) -> None:
    result = settled(bed, trial_of(H2, None))
    assert result.outcome is Outcome.OK
    assert result.metrics["goodput_bps"] > 0.6 * RATE_BPS  # a half or less, had a download stayed
    assert "download_share_ratio" not in result.metrics
    assert "competed" not in result.proof.counters
