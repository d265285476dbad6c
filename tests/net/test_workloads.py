"""The kinds of workload over every protocol on real containers: proven, whole, and with the round trips they take."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from headwind.arm import PLAIN, Arm
from headwind.metric import Workload
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.trial.trial import run_trial
from headwind.workloads.objects import Objects
from headwind.workloads.streams import Streams
from headwind.workloads.transfer import FIRST_BYTE, HANDSHAKE, Transfer
from headwind.workloads.ttfb import Ttfb
from impair.profile import Delay, Direction, Duplicate, Link, Profile, Rate

DELAY_S = 0.03
RTT_S = 2 * DELAY_S
FAR = Profile("far", Link(Delay(DELAY_S)), Link(Delay(DELAY_S)))
PICTURES = Objects("pictures", 60, 0, 0, path="/bytes/10000")
SMALL = Transfer("small", 1, 1, 1, path="/bytes/10000")
SLOW = replace(SMALL, name="slow", server_delay_s=0.05)
SLOW_PICTURES = replace(PICTURES, name="slow pictures", server_delay_s=0.05)
LARGE = Transfer("large", 1, 1, 1, path="/bytes/1000000")
MACHINE_RTTS = 0.9  # that the machine may add: less than a round trip
HANDSHAKE_RTTS = {"h1": 2, "h2": 2, "h3": 1}  # TCP's and TLS 1.3's, or QUIC's
# nginx's TLS records have up to 16 KB, which the first ten segments do not hold; nothing of a record can be read before
# its end. QUIC's packets are read one by one.
FIRST_BYTE_RTTS: dict[Workload, dict[str, int]] = {
    SMALL: {"h1": 3, "h2": 3, "h3": 2},
    LARGE: {"h1": 4, "h2": 4, "h3": 2},
}


@pytest.fixture(scope="module")
def results(bed: paths.Path) -> dict[tuple[Workload, Arm], Result]:
    """A trial of each, again where the machine was so busy that it added a round trip, or that none was proven."""
    found: dict[tuple[Workload, Arm], Result] = {}
    for workload in (PICTURES, SMALL, LARGE, SLOW, SLOW_PICTURES):
        block = Block(Condition(FAR, workload), 0, PLAIN, dict.fromkeys(Direction, 1))
        for trial in block.trials():
            for _ in range(8):
                result = found[workload, trial.arm] = run_trial(bed, trial, TrialRules(30.0))
                if result.outcome is not Outcome.INVALID and not is_late(result):
                    break
    return found


def is_late(result: Result) -> bool:
    """Whether a transfer took a round trip more than its protocol does."""
    arm, first = result.trial.arm.name, FIRST_BYTE_RTTS.get(result.trial.workload, {})
    most = {HANDSHAKE.key: HANDSHAKE_RTTS[arm] + MACHINE_RTTS, FIRST_BYTE.key: first.get(arm, math.inf) + MACHINE_RTTS}
    return bool(first) and any(result.metrics.get(key, 0.0) >= limit * RTT_S for key, limit in most.items())


def test_every_kind_gives_data(results: dict[tuple[Workload, Arm], Result]) -> None:
    wrong = {
        f"{load.name} {arm}": each.reason for (load, arm), each in results.items() if each.outcome is not Outcome.OK
    }
    assert wrong == {}
    assert len(results) == 15


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_objects_come_over_the_connections_of_a_browser(results: dict[tuple[Workload, Arm], Result], arm: Arm) -> None:
    columns = results[PICTURES, arm].samples["samples"]
    assert len(columns["connect_s"]) == (6 if arm.name == "h1" else 1)
    assert len(columns["request_took_s"]) == 60
    assert results[PICTURES, arm].metrics["bytes_body"] == 60 * 10_000


@pytest.mark.parametrize(
    ("workload", "arm"), list(product((SMALL, LARGE), PLAIN)), ids=lambda each: getattr(each, "name", "")
)
def test_a_transfer_takes_the_round_trips_of_its_protocol(
    results: dict[tuple[Workload, Arm], Result], workload: Workload, arm: Arm
) -> None:
    """Nothing is faster than its round trips; how much slower it is belongs to the machine."""
    metrics = results[workload, arm].metrics
    least, first = HANDSHAKE_RTTS[arm.name], FIRST_BYTE_RTTS[workload][arm.name]
    assert least * RTT_S <= metrics[HANDSHAKE.key] < (least + MACHINE_RTTS) * RTT_S
    assert first * RTT_S <= metrics[FIRST_BYTE.key] < (first + MACHINE_RTTS) * RTT_S
    assert metrics["total_s"] >= metrics[FIRST_BYTE.key]
    assert metrics["goodput_bps"] <= 8 * (10_000 if workload is SMALL else 1_000_000) / metrics[FIRST_BYTE.key]


@pytest.mark.parametrize(
    ("workload", "arm"), list(product((SLOW, SLOW_PICTURES), PLAIN)), ids=lambda each: getattr(each, "name", "")
)
def test_a_slow_server_waits_with_every_answer_and_its_log_says_so(
    results: dict[tuple[Workload, Arm], Result], workload: Transfer | Objects, arm: Arm
) -> None:
    result = results[workload, arm]
    (check,) = [check for check in result.proof.checks if check.quantity == "server_delay_s"]
    assert check.measured is not None
    assert check.measured >= workload.server_delay_s - 0.001
    assert result.samples["served"]["waited"] == workload.requests
    rounds = -(-workload.requests // 6) if workload is SLOW_PICTURES and arm.name == "h1" else 1  # one after the other
    least_s = (HANDSHAKE_RTTS[arm.name] + rounds) * RTT_S + rounds * (workload.server_delay_s - 0.001)
    assert result.metrics["total_s"] >= least_s


def proven(bed: paths.Path, workload: Workload, arm: Arm, profile: Profile = FAR, timeout_s: float = 30.0) -> Result:
    """A trial, again if the machine was so busy that its network could not be proven."""
    trial = Trial(Block(Condition(profile, workload), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)
    reasons = []
    for _ in range(8):
        result = run_trial(bed, trial, TrialRules(timeout_s))
        if result.outcome is not Outcome.INVALID:
            return result
        reasons.append(result.reason)
    pytest.fail("\n".join(reasons))


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_the_first_byte_of_a_body_that_outlasts_the_timeout_has_its_own_time(bed: paths.Path, arm: Arm) -> None:
    """It came after 0.2 s, and counted as later than the timeout."""
    slow = replace(FAR, downlink=replace(FAR.downlink, rate=Rate(2_000_000)))
    result = proven(bed, Ttfb("late", "/bytes/4000000"), arm, slow, 4.0)
    assert result.outcome is Outcome.TIMEOUT
    assert HANDSHAKE_RTTS[arm.name] * RTT_S < result.metrics["ttfb_low_s"] == result.metrics["ttfb_high_s"] < 2.0
    assert result.metrics["total_low_s"] > 2.0


def test_waiting_for_a_connection_is_no_part_of_its_handshake_or_first_byte(bed: paths.Path) -> None:
    """Twelve streams over two connections: most of them wait for others."""
    result = proven(bed, Streams("many", 12, 2, 1, path="/bytes/200000"), PLAIN[0])
    assert result.outcome is Outcome.OK, result.reason
    columns = result.samples["samples"]
    assert (len(columns["connect_s"]), len(columns["ttfb_s"])) == (2, 2)
    assert result.metrics["ttfb_p50_s"] < result.metrics["total_s"] / 2
    assert columns["connect_s"][0] >= HANDSHAKE_RTTS["h1"] * RTT_S
    assert result.metrics["ttfb_p50_s"] >= columns["connect_s"][0] + RTT_S


def test_copies_that_the_network_makes_are_no_retransmits(bed: paths.Path) -> None:
    """Their receiver reports each copy: they were thousands of spurious retransmits, of none at all."""
    copying = Link(Delay(DELAY_S), duplicate=Duplicate(0.7))
    metrics = proven(bed, LARGE, PLAIN[1], Profile("copying", copying, copying)).metrics
    assert metrics["tcp_spurious_retransmits"] <= metrics["tcp_retransmits"] < 30
    assert metrics["wire_packets"] > 700
