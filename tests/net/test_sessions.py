"""Time to first byte on real containers: the round trips of new, resumed and early sessions, proven by both ends."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import product

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.trial.trial import run_trial
from headwind.workloads.transfer import FIRST_BYTE
from headwind.workloads.ttfb import EARLY, Ttfb
from impair.profile import Delay, Direction, Link, Profile

DELAY_S = 0.04
RTT_S = 2 * DELAY_S
FAR = Profile("far", Link(Delay(DELAY_S)), Link(Delay(DELAY_S)))
NEW = Ttfb("new", "/bytes/1000")
SESSIONS = {session: replace(NEW, name=session, session=session) for session in ("new", "resumed", "early")}
LARGE = replace(NEW, name="large", path="/bytes/100000")
SLOW = replace(NEW, name="slow", session="early", server_delay_s=0.1)
# TCP's handshake, TLS 1.3's, and the request; QUIC's handshake has that of TLS in it. A resumed session saves no round
# trip of TLS 1.3 (RFC 8446, section 2.2), early data saves one (section 2.3).
ROUND_TRIPS = {
    ("new", H1): 3, ("new", H2): 3, ("new", H3): 2,
    ("resumed", H1): 3, ("resumed", H2): 3, ("resumed", H3): 2,
    ("early", H1): 2, ("early", H2): 2, ("early", H3): 1,
}  # fmt: skip


LEAST_S = {
    **{(session, arm): rounds * RTT_S for (session, arm), rounds in ROUND_TRIPS.items()},
    **{("large", arm): rounds * RTT_S for arm, rounds in ((H1, 4), (H2, 3), (H3, 2))},
    **{("slow", arm): ROUND_TRIPS["early", arm] * RTT_S + SLOW.server_delay_s - 0.001 for arm in PLAIN},
}
MACHINE_S = 0.9 * RTT_S  # that the machine may add: less than a round trip
FEWEST, MOST = 2, 8  # trials of each
Results = dict[tuple[str, Arm], list[Result]]


@pytest.fixture(scope="module")
def results(bed: paths.Path) -> Results:
    """Two trials of each; more where the machine was so busy that it added a round trip, or that none was proven."""
    found: Results = {}
    for workload in (*SESSIONS.values(), LARGE, SLOW):
        block = Block(Condition(FAR, workload), 0, PLAIN, dict.fromkeys(Direction, 1))
        for trial in block.trials():
            key, proven = (workload.name, trial.arm), list[Result]()
            for _ in range(MOST):
                result = run_trial(bed, trial, TrialRules(30.0))
                proven += [result] if result.outcome is not Outcome.INVALID else []
                if len(proven) >= FEWEST and fastest_s(proven) < LEAST_S[key] + MACHINE_S:
                    break
            found[key] = proven
    return found


def fastest_s(results: Collection[Result]) -> float:
    """What the machine adds to a time is no property of the session."""
    return min(result.metrics.get(FIRST_BYTE.key, math.inf) for result in results)


def test_every_session_gives_data(results: Results) -> None:
    assert [each.reason for found in results.values() for each in found if each.outcome is not Outcome.OK] == []
    assert min(len(found) for found in results.values()) >= FEWEST


def assert_round_trips(results: Results, session: str, arm: Arm) -> None:
    least_s = LEAST_S[session, arm]
    assert least_s <= fastest_s(results[session, arm]) < least_s + MACHINE_S


@pytest.mark.parametrize(("session", "arm"), list(product(SESSIONS, PLAIN)), ids=str)
def test_the_first_byte_takes_the_round_trips_of_its_session(results: Results, session: str, arm: Arm) -> None:
    assert_round_trips(results, session, arm)


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_the_first_line_of_http_1_comes_with_a_record_that_tcp_cannot_send_at_once(results: Results, arm: Arm) -> None:
    assert_round_trips(results, "large", arm)


@pytest.mark.parametrize(("session", "arm"), list(product(SESSIONS, PLAIN)), ids=str)
def test_both_ends_saw_the_session(results: Results, session: str, arm: Arm) -> None:
    for result in results[session, arm]:
        served = result.samples["served"]
        assert (served["count"], served["resumed"], served["early"]) == (1, session != "new", session == "early")
        assert (result.metrics[EARLY.key] > 100) == (session == "early"), "a request has some hundred bytes"


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_early_data_of_a_slow_server_is_seen_as_such_when_it_comes(results: Results, arm: Arm) -> None:
    """The server's delay is longer than what is left of the handshake, which is over when the answer is logged."""
    assert {result.samples["served"]["early"] for result in results["slow", arm]} == {1}
    assert_round_trips(results, "slow", arm)
