"""Bursts that are counted in packets are named wherever a profile has them."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from rich.console import Console

from headwind.cli.plan import print_plan
from headwind.proof.bursts import STALL_S, WHAT_FOLLOWS, burst_packets, describe, stalls
from headwind.report.method import method
from headwind.trial.trial import run_trial
from impair.profile import FourState, GilbertElliott, Link, Loss, Profile
from tests import fake
from tests.fake_testbed import RULES, World, a_trial, fake_path
from tests.golden.runs import Golden
from tests.matrix_files import MINIMAL, load

BURSTY = Profile("train", downlink=Link(loss=GilbertElliott(0.02, 0.3)))
PLAIN = Profile("plain", downlink=Link(loss=Loss(0.02)))


def walked(model: FourState, bursts: int) -> float:
    """The mean number of packets from entering state 3 until state 1, by walking the chain."""
    rng, packets = random.Random(1), 0
    for _ in range(bursts):
        state = 3
        while state != 1:
            packets += 1
            draw = rng.random()
            if state == 3:
                state = 1 if draw < model.p31 else 2 if draw < model.p31 + model.p32 else 3
            elif draw < model.p23:
                state = 3
    return packets / bursts


def test_a_burst_has_as_many_packets_as_its_model_says() -> None:
    assert burst_packets(BURSTY.downlink) == pytest.approx(1 / 0.3)
    holed = FourState(p13=0.05, p31=0.2, p32=0.4, p23=0.5)
    assert burst_packets(Link(loss=holed)) == pytest.approx(walked(holed, 20_000), rel=0.05)
    assert burst_packets(Link(loss=FourState(p13=0.05, p31=0.3))) == pytest.approx(1 / 0.3)
    holed = FourState(p13=0.05, p31=0.2, p32=0.4, p23=0.5)
    assert burst_packets(Link(loss=holed)) == pytest.approx(walked(holed, 20_000), rel=0.05)
    assert burst_packets(Link(loss=FourState(p13=0.0, p31=1.0, p14=0.1))) is None  # single losses only
    assert burst_packets(PLAIN.downlink) is None
    assert burst_packets(Link()) is None


def test_the_sentence_names_each_profile_and_direction_once() -> None:
    (sentence,) = describe([BURSTY, PLAIN, BURSTY, Profile("both", BURSTY.downlink, BURSTY.downlink)])
    assert WHAT_FOLLOWS in sentence
    assert (
        "`spells: {good: 1s, bad: 50ms}` (4.8 %), a plain share (`loss: 2%`), or a `rate` with a short `queue`"
        in sentence
    )
    assert sentence.count("train") == 1
    assert "both (uplink: about 3.3 packets, 6.25 % lost on average), both (downlink: about 3.3 packets, " in sentence
    assert list(describe([PLAIN])) == []


def test_the_alternatives_to_bursts_have_none(tmp_path: Path) -> None:
    spells = "c: {downlink: {spells: {good: 2s, bad: 300ms, loss: 80%}}}"
    options = f"{{a: {{both: {{loss: 2%}}}}, b: {{downlink: {{rate: 10mbit, queue: 20}}}}, {spells}}}"
    matrix = load(MINIMAL.replace("{clean: {}}", options), tmp_path)
    assert list(describe(condition.profile for condition in matrix.conditions)) == []


def test_plan_and_method_say_it(tmp_path: Path) -> None:
    matrix = fake.example_matrix(BURSTY)
    out = io.StringIO()
    print_plan(matrix, tmp_path, Console(file=out, width=2000))
    assert WHAT_FOLLOWS in out.getvalue()
    assert any(WHAT_FOLLOWS in text for _, text in method(Golden(matrix, ()).data("bursts")))
    assert not any(WHAT_FOLLOWS in text for _, text in method(Golden(fake.example_matrix(PLAIN), ()).data("plain")))


@pytest.mark.parametrize(("packet_gap_max_s", "warned"), [(0.3, False), (STALL_S, False), (58.0, True)])
def test_a_long_silence_over_bursts_is_said_with_the_trial(packet_gap_max_s: float, warned: bool) -> None:
    with fake_path(World(packet_gap_max_s=packet_gap_max_s)) as path:
        result = run_trial(path, a_trial(BURSTY), RULES)
        other = run_trial(path, a_trial(PLAIN), RULES)
    assert [f"no frame for {packet_gap_max_s:.1f} s" in text for text in result.proof.warnings] == [True] * warned
    assert other.proof.warnings == ()
    assert list(stalls(PLAIN, packet_gap_max_s)) == []
