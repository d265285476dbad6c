"""What a report calls a network: the name that the user gave it, or what it is where the key only repeats that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.model import Condition
from headwind.report.networks import networks_of, placed
from impair.profile import (
    Corrupt,
    Delay,
    GilbertElliott,
    Link,
    Loss,
    Profile,
    Rate,
    Rebind,
    Rebinding,
    Spells,
    Steps,
)
from impair.queues import Fifo, FqCodel
from tests.fake import PROFILES, example_matrix


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (Profile("clean"), "with no impairment"),
        (Profile("loss", downlink=Link(loss=Loss(0.3))), "under 30 % loss"),
        (Profile("loss-30%", downlink=Link(loss=Loss(0.3))), "under 30 % loss"),
        (Profile("Uplink Loss", uplink=Link(loss=Loss(0.3))), "under 30 % loss on the uplink"),
        (Profile("40ms", *[Link(delay=Delay(0.04))] * 2), "under 40 ms delay both ways"),
        (Profile("delay_jitter", downlink=Link(delay=Delay(0.1, 0.01))), "under 100 \N{PLUS-MINUS SIGN} 10 ms delay"),
        (
            Profile("loss-corrupt", downlink=Link(loss=Loss(0.3), corrupt=Corrupt(0.2))),
            "under 30 % loss + 20 % corruption",
        ),
        (Profile("delay", downlink=Link(Delay(0.01), Loss(0.0))), "under 10 ms delay"),
        (Profile("loss and delay", downlink=Link(Delay(0.04), Loss(0.01), rate=Rate(12_000_000))), "on loss and delay"),
        (Profile("loss", downlink=Link(loss=GilbertElliott(0.01, 0.3))), "on loss"),
        (Profile("delay", Link(delay=Delay(0.01)), Link(delay=Delay(0.02))), "on delay"),
    ],
)
def test_a_network_whose_key_only_repeats_its_settings_is_called_by_what_it_is(profile: Profile, said: str) -> None:
    (network,) = networks_of(example_matrix(profile)).values()
    assert placed([network]) == said


LTE = [Link(delay=Delay(0.035), rate=Rate(12_000_000))] * 2


@pytest.mark.parametrize(
    ("profile", "meaning"),
    [
        (Profile("LTE", *LTE), "35 ms delay + 12 Mbit/s both ways"),
        (Profile("far 400ms", *LTE), "35 ms delay + 12 Mbit/s both ways"),
        (
            Profile("dsl", downlink=Link(Delay(0.01), rate=Rate(16_000_000), queue=Fifo(800))),
            "10 ms delay + 16 Mbit/s with fifo of 800 packets",
        ),
        (Profile("home", downlink=Link(rate=Rate(16_000_000), queue=FqCodel())), "16 Mbit/s with fq_codel"),
        (
            Profile("short", downlink=Link(rate=Rate(16_000_000), queue_packets=50)),
            "16 Mbit/s with a queue of 50 packets",
        ),
        (Profile("tight", Link(Delay(0.01), limit_packets=30)), "10 ms delay + limit of 30 packets on the uplink"),
        (Profile("baseline"), "no impairment"),
        (Profile("lossy", downlink=Link(loss=GilbertElliott(0.01, 0.3))), "bursty loss"),
        (
            Profile("rural", Link(Delay(0.025), rate=Rate(500_000)), Link(Delay(0.025), rate=Rate(4_000_000))),
            "downlink 25 ms delay + 4 Mbit/s, uplink 25 ms delay + 500 kbit/s",
        ),
        (
            Profile("train", Link(Delay(0.035)), Link(Delay(0.035), GilbertElliott(0.01, 0.3), rate=Rate(15_000_000))),
            "downlink 35 ms delay + bursty loss + 15 Mbit/s, uplink 35 ms delay",
        ),
        (
            Profile("outage", *LTE, downlink_changes=Steps((1.0, 1.5), (Link(loss=Loss(1.0)), LTE[1]))),
            "35 ms delay + 12 Mbit/s both ways, changes at 1 s, 1.5 s on the downlink",
        ),
        (
            Profile("fades", downlink_changes=Spells(1.0, 0.1, Link(loss=Loss(0.8)))),
            "spells of 1 s good and 100 ms bad (80 % loss) on the downlink",
        ),
        (
            Profile("moved", downlink=Link(Delay(0.035)), rebinding=Rebinding(2.0, Rebind.PORT)),
            "35 ms delay, another port of the client at 2 s",
        ),
        (Profile("far 0%", downlink=Link(loss=Loss(0.0))), "no impairment"),
        (Profile("far 0% again", *[Link(loss=Loss(0.0))] * 2), "no impairment"),
        (Profile("\u03b2 [b]", downlink=Link(loss=Loss(0.3))), "30 % loss"),
    ],
)
def test_a_network_has_the_name_that_the_user_gave_it(profile: Profile, meaning: str) -> None:
    matrix = example_matrix(profile)
    (network,) = networks_of(matrix).values()
    assert (placed([network]), network.meaning) == (f"on {profile.name}", meaning)
    other = Condition(profile, replace(matrix.conditions[0].workload, name="bulk"))
    several = networks_of(replace(matrix, conditions=(*matrix.conditions, other)))
    assert [(each.text, each.meaning) for each in several.values()] == [
        (f"{profile.name} / article", meaning), (f"{profile.name} / bulk", meaning),
    ]  # fmt: skip


def test_networks_that_words_do_not_tell_apart_have_their_keys() -> None:
    alike = [Profile(name, downlink=Link(delay=Delay(0.1, 0.01, shape))) for name, shape in
             (("delay", "uniform"), ("jitter", "normal"))]  # fmt: skip
    assert placed(networks_of(example_matrix(*alike, PROFILES[2])).values()) == "on delay, jitter and under 30 % loss"
