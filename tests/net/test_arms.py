"""Arms with their own settings on real containers: each has them in its trial, and no other arm of the block has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwind.arm import H1, H2, H3, Arm, Overrides, Protocol
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules, Windows
from headwind.testbed import path as paths
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Direction, Link, Profile

FAR = Link(Delay(0.02))
RENO = Arm("h2-reno", Protocol.H2, overrides=Overrides(congestion="reno"))  # every kernel has it
SIX = Arm("h1-six", Protocol.H1, overrides=Overrides((("connections", 6),)))
SHIPPED = Arm(
    "h3-as-shipped",
    Protocol.H3,
    overrides=Overrides(server_windows=Windows.AS_SHIPPED, client_windows=Windows.AS_SHIPPED),
)
TWO = Arm("h3-two", Protocol.H3, overrides=Overrides((("workers", 2), ("connections", 4))))
ORDER = (RENO, H2, SIX, H1, SHIPPED, TWO, H3)


@pytest.fixture(scope="module")
def results(bed: paths.Path) -> dict[Arm, Result]:
    """A block of all of them; a trial again where the machine was so busy that its network could not be proven."""
    block = Block(
        Condition(Profile("far", FAR, FAR), H2load("large", 6, 1, 1, path="/1m")), 0, ORDER,
        dict.fromkeys(Direction, 1),
    )  # fmt: skip
    return {trial.arm: settled(bed, trial) for trial in block.trials()}


def settled(bed: paths.Path, trial: Trial) -> Result:
    """The trial's result; again where its network could not be proven."""
    for _ in range(3):
        if (result := run_trial(bed, trial, TrialRules(30.0))).outcome is not Outcome.INVALID:
            return result
    return run_trial(bed, trial, TrialRules(30.0))


def test_every_arm_of_the_block_gives_data(results: dict[Arm, Result]) -> None:
    assert {arm.name: result.reason for arm, result in results.items() if result.outcome is not Outcome.OK} == {}


@pytest.mark.parametrize(("arm", "name"), [(RENO, "reno"), (H2, "cubic"), (SIX, "cubic"), (H1, "cubic")], ids=str)
def test_the_sockets_of_both_ends_have_the_arms_congestion_control(
    results: dict[Arm, Result], arm: Arm, name: str
) -> None:
    told: dict[str, Any] = results[arm].proof.counters["congestion"]
    assert (told["asked"], set(told["client"]), set(told["server"])) == (name, {name}, {name})


def test_connections_are_as_many_as_the_arm_asks_for(results: dict[Arm, Result]) -> None:
    assert len(results[SIX].samples["samples"]["connect_s"]) == 6
    assert len(results[H1].samples["samples"]["connect_s"]) == 1


def test_windows_are_as_shipped_for_the_arm_that_asks_for_them_alone(results: dict[Arm, Result]) -> None:
    had = {arm: results[arm].proof.counters["windows"] for arm in (SHIPPED, H3)}
    assert had[SHIPPED]["server"]["http3_stream_buffer_bytes"] == 64 << 10
    assert had[H3]["server"]["http3_stream_buffer_bytes"] == 16 << 20
    assert had[SHIPPED]["client"]["udp_rcvbuf_bytes"] < had[H3]["client"]["udp_rcvbuf_bytes"]


def test_nginx_has_as_many_workers_as_the_arm_asks_for_and_one_again_after_it(results: dict[Arm, Result]) -> None:
    seen = {
        arm: [check.measured for check in results[arm].proof.checks if check.quantity == "workers"] for arm in ORDER
    }
    assert seen == {arm: [2.0] if arm is TWO else [] for arm in ORDER}
    assert len(results[TWO].samples["samples"]["connect_s"]) == 4


def test_a_condition_has_a_congestion_control_of_its_own_and_the_next_has_the_usual_one(
    bed: paths.Path,
) -> None:
    usual = H2load("large", 2, 1, 1, path="/100k")
    seen = []
    for workload in (replace(usual, tcp_congestion="reno"), usual):
        block = Block(Condition(Profile("far", FAR, FAR), workload), 0, (H2,), dict.fromkeys(Direction, 1))
        (trial,) = block.trials()
        result = settled(bed, trial)
        assert result.outcome is Outcome.OK, result.reason
        told = result.proof.counters["congestion"]
        seen.append((told["asked"], set(told["client"]), set(told["server"])))
    assert seen == [("reno", {"reno"}, {"reno"}), ("cubic", {"cubic"}, {"cubic"})]
