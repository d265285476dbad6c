"""Forecasts: a guess that nothing decides, replaced by what was learnt."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, Protocol
from headwind.matrix.shortest import shortest
from headwind.model import Condition, Trial
from headwind.plan.forecast import OVERHEAD_S, Forecast, guess_s, lanes_that_pay
from headwind.settings import TrialRules
from headwind.workloads.h2load import H2load
from impair.profile import Clock, Corrupt, Delay, GilbertElliott, Link, Loss, Profile, Rate, Steps
from tests import fake

CLEAN, LOSS = Profile("clean"), Profile("loss", downlink=Link(loss=Loss(0.3)))
MATRIX = fake.example_matrix(CLEAN, LOSS)
TRIALS = list(fake.trials_of(MATRIX))


def one(protocol: Protocol, profile: Profile = CLEAN) -> Trial:
    return next(each for each in TRIALS if each.protocol is protocol and each.block.condition.profile == profile)


def test_a_guess_waits_for_an_outage_and_for_a_rate_that_changes() -> None:
    """420 kB at 8 Mbit/s and then 2 Mbit/s do not fit into the 600 ms before an outage of a second."""
    steps = Steps((0.3, 0.6, 1.6), (Link(rate=Rate(2_000_000)), Link(loss=Loss(1.0)), Link(rate=Rate(2_000_000))))
    still = Profile("still", downlink=Link(rate=Rate(8_000_000)))
    train = replace(still, downlink_changes=steps)
    load = H2load("page", requests=35, connections=1, streams=35, path="/bytes/12000")
    bits_left = 8 * 35 * 12_000 - 0.3 * 8e6 - 0.3 * 2e6
    assert guess_s(Condition(train, load)) - guess_s(Condition(still, load)) == pytest.approx(
        1.6 + bits_left / 2e6 - 8 * 35 * 12_000 / 8e6
    )


def test_what_was_learnt_replaces_the_guess() -> None:
    forecast = Forecast(TrialRules(60.0))
    trial = one(Protocol.H1)
    assert forecast.trial_s(trial) == pytest.approx(OVERHEAD_S + guess_s(trial.block.condition))
    for time_s in (2.0, 4.0):
        forecast.learn(replace(fake.ok(trial, time_s), phases_s={"reset": 0.5, "client": time_s}))
    assert forecast.trial_s(trial) == pytest.approx(3.5)


def test_a_protocol_and_a_condition_are_learnt_for_themselves() -> None:
    forecast = Forecast(TrialRules(60.0), [fake.ok(one(Protocol.H1), 7.0)])
    for other in (one(Protocol.H2), one(Protocol.H1, LOSS)):
        assert forecast.trial_s(other) == Forecast(TrialRules(60.0)).trial_s(other)
    assert forecast.learnt == {("clean/article", H1): 1}


def test_earlier_runs_count_until_a_trial_of_this_one_is_known() -> None:
    trial, other = one(Protocol.H1), one(Protocol.H2)
    earlier = [replace(fake.ok(each, 7.0), phases_s={"client": 7.0}) for each in (trial, trial, other)]
    forecast = Forecast(TrialRules(60.0), earlier=earlier)
    assert forecast.trial_s(trial) == 7.0
    assert forecast.learnt == {("clean/article", H1): 2, ("clean/article", H2): 1}
    forecast.learn(replace(fake.ok(trial, 3.0), phases_s={"client": 3.0}))
    assert (forecast.trial_s(trial), forecast.trial_s(other)) == (3.0, 7.0)
    assert forecast.learnt[("clean/article", H1)] == 1


def test_no_guess_is_below_what_any_trial_takes() -> None:
    blackout = Steps((0.02, 28.0), (Link(loss=Loss(1.0)), Link()))
    far = Link(delay=Delay(0.05))
    for profile in (
        Profile("tunnel", far, far, downlink_changes=blackout, clock=Clock.PACKET),
        Profile("slow", downlink=Link(rate=Rate(100_000))),
    ):
        condition = Condition(profile, fake.ARTICLE)
        trial = replace(TRIALS[0], block=replace(TRIALS[0].block, condition=condition))
        least_s = shortest(condition, trial.arm).seconds
        assert least_s > 1
        assert Forecast(TrialRules(600.0)).trial_s(trial) >= OVERHEAD_S + least_s


def test_a_stopped_trial_teaches_how_long_it_took_and_a_broken_one_nothing() -> None:
    trial = one(Protocol.H3)
    forecast = Forecast(TrialRules(60.0), [replace(fake.timeout(trial, 60.0), phases_s={}), fake.lab_error(trial)])
    assert forecast.trial_s(trial) == OVERHEAD_S + 60.0
    assert sum(forecast.learnt.values()) == 1


def test_many_trials_take_the_sum_of_their_times() -> None:
    forecast = Forecast(TrialRules(60.0))
    assert forecast.trials_s(TRIALS) == pytest.approx(sum(map(forecast.trial_s, TRIALS)))
    assert forecast.block_s(TRIALS[0].block) == pytest.approx(forecast.trials_s(TRIALS[0].block.trials()))
    assert forecast.trials_s([]) == 0


def test_no_guess_is_longer_than_a_trial_may_take() -> None:
    dead = Condition(Profile("dead", Link(loss=Loss(1.0)), Link(loss=Loss(1.0))), fake.ARTICLE)
    trial = replace(TRIALS[0], block=replace(TRIALS[0].block, condition=dead))
    assert guess_s(dead) > 20.0
    assert Forecast(TrialRules(20.0)).trial_s(trial) == 20.0 + OVERHEAD_S


@pytest.mark.parametrize(
    "worse",
    [
        Link(delay=Delay(0.1)),
        Link(loss=Loss(0.1)),
        Link(loss=GilbertElliott(0.1, 0.3)),
        Link(corrupt=Corrupt(0.1)),
    ],
    ids=str,
)
def test_a_worse_network_is_guessed_slower_in_either_direction(worse: Link) -> None:
    clean = guess_s(Condition(CLEAN, fake.ARTICLE))
    for profile in (Profile("worse", uplink=worse), Profile("worse", downlink=worse)):
        assert guess_s(Condition(profile, fake.ARTICLE)) > clean


def test_more_requests_are_guessed_slower() -> None:
    more = replace(fake.ARTICLE, requests=100_000)
    assert guess_s(Condition(CLEAN, more)) > guess_s(Condition(CLEAN, fake.ARTICLE)) > 0


@pytest.mark.parametrize(("rate_bps", "seconds"), [(20_000_000, 41.9), (100_000_000, 8.4)])
def test_a_large_object_is_guessed_to_take_what_the_rate_lets_through(rate_bps: int, seconds: float) -> None:
    large = H2load("large", 1, 1, 1, path="/100m")
    guess = guess_s(Condition(Profile("slow", downlink=Link(rate=Rate(rate_bps))), large))
    assert guess == pytest.approx(seconds, abs=0.5)
    lossy = Link(delay=Delay(0.1), loss=Loss(0.01), rate=Rate(rate_bps))
    assert guess_s(Condition(Profile("lossy", downlink=lossy), large)) > 10 * guess  # TCP sends 1.4 Mbit/s there


@pytest.mark.parametrize(
    ("work_s", "up_s", "left_s", "lanes"),
    [
        (30.0, 10.0, math.inf, 2),  # 25 s on two lanes, 30 s on one or three
        (10.0, 10.0, math.inf, 1),
        (6000.0, 10.0, math.inf, 6),
        (6000.0, 10.0, 120.0, 6),  # (120 - 50) * 6 is more than (120 - 40) * 5
        (6000.0, 25.0, 120.0, 3),  # under load: 70 s on three is more than 95 s on two, or 20 s on five
        (6000.0, 50.0, 90.0, 1),
        (0.0, 10.0, 0.0, 1),
    ],
)
def test_further_testbeds_come_up_only_if_they_get_more_done_in_time(
    work_s: float, up_s: float, left_s: float, lanes: int
) -> None:
    assert lanes_that_pay(lambda number: work_s / number, 1, 6, up_s, left_s) == lanes
    assert lanes_that_pay(lambda _: work_s, 1, 6, up_s, left_s) == 1, "nothing may run beside it"
