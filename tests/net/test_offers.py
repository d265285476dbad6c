"""nginx decides by a connection's round trip whether it offers HTTP/3, and libcurl follows, on real containers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.arm import H3
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.trial.trial import run_trial
from headwind.workloads.discovery import SHARE
from headwind.workloads.ttfb import Ttfb
from impair.profile import Delay, Direction, Link, Profile

FAR = Profile("far", Link(Delay(0.04)), Link(Delay(0.04)))
NEAR = Profile("near", Link(Delay(0.005)), Link(Delay(0.005)))
DISCOVERED = Ttfb("first byte", "/bytes/1000", discovery="alt-svc")
MOST = 8


def tried(path: paths.Path, workload: Ttfb, profile: Profile) -> Result:
    """One trial; again if the machine was so busy that the network could not be verified."""
    trial = Trial(Block(Condition(profile, workload), 0, (H3,), dict.fromkeys(Direction, 1)), 0, H3)
    results = (run_trial(path, trial, TrialRules(20.0)) for _ in range(MOST))
    return next(result for result in results if result.outcome is not Outcome.INVALID)


@pytest.mark.parametrize(
    ("condition", "profile", "share"),
    [
        ("", NEAR, 1.0),
        ("rtt >= 45ms", FAR, 1.0), ("rtt >= 45ms", NEAR, 0.0),
        ("rtt < 45ms", FAR, 0.0), ("rtt < 45ms", NEAR, 1.0),
        ("rttvar >= 15ms", FAR, 1.0), ("rttvar >= 15ms", NEAR, 0.0),
        ("", FAR, 1.0),
    ],
)  # fmt: skip
def test_libcurl_uses_http3_exactly_if_the_condition_holds(
    bed: paths.Path, condition: str, profile: Profile, share: float
) -> None:
    result = tried(bed, replace(DISCOVERED, offer_if=condition), profile)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.samples["prepared"]["alpn"] == "h2", "the first connection is over TCP"
    assert result.metrics[SHARE.key] == share
    assert result.samples["measured"]["alpn"] == ("h3" if share else "h2")
