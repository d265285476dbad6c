"""A trial whose network changes: one request before the client, one after it, and none if nothing is to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.trial.schedule import SEED_STEP, actions_of
from headwind.trial.trial import run_trial
from impair.profile import Clock, Delay, Direction, Link, Loss, Profile, Rate, Rebind, Rebinding, Spells, Steps
from impair.queues import Fifo
from impair.trace import Trace
from tests.fake_testbed import RULES, Sabotage, World, a_trial, fake_path

DOWN = Direction.DOWNLINK
BASE = Link(delay=Delay(0.005))
LOST = Link(delay=Delay(0.005), loss=Loss(1.0))
REBOUND = Profile("rebound", downlink=BASE, rebinding=Rebinding(0.02, Rebind.PORT))
QUICK = Profile("quick", downlink=BASE, downlink_changes=Steps((0.02, 0.05), (LOST, BASE)))

TRACE = Trace("x.trace", "0" * 64, 0.06, (5, 0, 3, 4, 5, 6))
TRACED = Profile("traced", downlink=replace(BASE, rate=Rate(TRACE.mean_bps), queue=Fifo(50)), downlink_changes=TRACE)


def trial_over(profile: Profile) -> Trial:
    usual = a_trial()
    block = usual.block
    condition = Condition(profile, block.condition.workload)
    return Trial(Block(condition, block.index, block.order, block.seeds), usual.position, usual.arm)


def run(profile: Profile, sabotage: Sabotage) -> tuple[Result, World]:
    world = World(sabotage)
    with fake_path(world) as path:
        return run_trial(path, trial_over(profile), RULES), world


def test_a_network_that_does_not_change_costs_no_request() -> None:
    _, steady = run(Profile("steady", downlink=BASE), Sabotage())
    assert not any("schedule" in operation for operation in steady.order)


def test_a_network_that_changes_is_started_before_the_client_and_ended_after_it() -> None:
    result, world = run(QUICK, Sabotage())
    assert result.outcome is Outcome.OK, result.reason
    steps = ["client send_train", "router start_schedule", "client run", "router stop_schedule"]
    positions = [world.order.index(step) for step in steps]
    assert positions == sorted(positions)
    assert [action["at_s"] for action in world.schedule] == [0.02, 0.05]
    assert {check.quantity for check in result.proof.checks} > {"missing_changes", "change_late_s"}


@pytest.mark.parametrize(
    ("sabotage", "reason"),
    [
        (Sabotage(skipped_changes=1), "missing changes"),
        (Sabotage(late_change_s=0.004), "change late"),
        (Sabotage(clipped=True), "settings changed"),
    ],
)
def test_a_network_that_changed_otherwise_is_invalid(sabotage: Sabotage, reason: str) -> None:
    result, _ = run(QUICK, sabotage)
    assert result.outcome is Outcome.INVALID
    if reason != "settings changed":
        assert reason in result.reason


def test_a_trace_is_replayed_while_the_client_runs() -> None:
    result, world = run(TRACED, Sabotage())
    assert result.outcome is Outcome.OK, result.reason
    steps = ["client send_train", "router start_replay", "client run", "router stop_schedule"]
    positions = [world.order.index(step) for step in steps]
    assert positions == sorted(positions)
    assert world.traces == {DOWN: TRACE}
    checks = {check.quantity: check for check in result.proof.checks if check.direction is DOWN}
    assert {"missing_changes", "change_late_s", "other_rates", "delivered_ratio"} <= checks.keys()


@pytest.mark.parametrize(
    ("sabotage", "reason"),
    [
        (Sabotage(skipped_changes=1), "missing changes"), (Sabotage(late_change_s=0.006), "change late"),
        (Sabotage(clipped=True), "other rates"),
    ],
)  # fmt: skip
def test_a_trace_that_was_replayed_otherwise_is_invalid(sabotage: Sabotage, reason: str) -> None:
    result, _ = run(TRACED, sabotage)
    assert result.outcome is Outcome.INVALID
    assert reason in result.reason


@pytest.mark.parametrize(("kind", "source"), [(Rebind.ADDRESS, "10.64.1.200"), (Rebind.PORT, "10.64.1.10")])
def test_a_rebinding_is_carried_out_by_the_router_and_seen_by_the_server(kind: Rebind, source: str) -> None:
    result, world = run(replace(REBOUND, rebinding=Rebinding(0.02, kind)), Sabotage())
    assert result.outcome is Outcome.OK, result.reason
    steps = ["server await_rebound", "router start_schedule", "client run", "router stop_schedule", "server rebound"]
    positions = [world.order.index(step) for step in steps]
    assert positions == sorted(positions)
    assert world.rebound_source
    assert world.rebound_source[0] == kind
    assert world.rebound_source[1].rpartition(".")[2] == source.rpartition(".")[2]
    (check,) = (each for each in result.proof.checks if each.quantity == "rebound_packets")
    assert (check.measured, check.passed) == (50.0, True)


@pytest.mark.parametrize(
    ("sabotage", "reason"),
    [(Sabotage(unseen_rebinding=True), "rebound packets"), (Sabotage(late_change_s=0.3), "rebinding late")],
)
def test_a_rebinding_that_the_server_did_not_see_or_that_was_late_is_invalid(sabotage: Sabotage, reason: str) -> None:
    result, _ = run(REBOUND, sabotage)
    assert result.outcome is Outcome.INVALID
    assert reason in result.reason


def test_a_client_that_ended_before_it_was_to_be_rebound_was_not() -> None:
    result, _ = run(replace(REBOUND, rebinding=Rebinding(900.0, Rebind.PORT)), Sabotage())
    assert result.outcome is Outcome.OK, result.reason
    assert "rebound_packets" not in {check.quantity for check in result.proof.checks}


def test_every_change_has_a_seed_of_its_own_that_all_arms_share() -> None:
    trial = trial_over(Profile("often", downlink_changes=Steps((1.0,), (LOST,), period_s=2.0), clock=Clock.TRIAL))
    actions = actions_of(trial, 4.0, has_seeds=True)
    assert [action["at_s"] for action in actions] == [1.0, 2.0, 3.0, 4.0]
    assert [bool(action["link"].get("loss")) for action in actions] == [True, False, True, False]
    seeds = [action["seed"] for action in actions]
    assert seeds == [(trial.block.seeds[DOWN] + number * SEED_STEP) % 2**64 for number in (1, 2, 3, 4)]
    assert {action["seed"] for action in actions_of(trial, 4.0, has_seeds=False)} == {None}


def test_spells_are_those_of_the_block() -> None:
    trial = trial_over(Profile("bursts", downlink_changes=Spells(0.5, 0.1, LOST)))
    moments = [action["at_s"] for action in actions_of(trial, 1000.0, has_seeds=True)]
    assert moments == [action["at_s"] for action in actions_of(trial, 1000.0, has_seeds=True)]
    good = [end - begin for begin, end in zip([0.0, *moments[1::2]], moments[::2], strict=False)]
    bad = [end - begin for begin, end in zip(moments[::2], moments[1::2], strict=False)]
    assert sum(good) / len(good) == pytest.approx(0.5, rel=0.1)
    assert sum(bad) / len(bad) == pytest.approx(0.1, rel=0.1)
    assert min(good + bad) >= 0.01
