"""Profiles that change during a trial, as they are written and as they are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwind.format import network_settings
from headwind.plan.doubts import notes_of
from headwind.run.codec import matrix_from_json, matrix_to_json
from impair.profile import (
    NEXT_PACKET,
    Clock,
    Delay,
    Direction,
    Link,
    Loss,
    Profile,
    Rate,
    Rebind,
    Rebinding,
    Spells,
    Steps,
)
from tests.matrix_files import MINIMAL, load, refusal

UP, DOWN = Direction.UPLINK, Direction.DOWNLINK


def profile_of(written: str, folder: Path) -> Profile:
    return load(MINIMAL.replace("clean: {}", f"p: {written}"), folder).conditions[0].profile


def test_a_change_has_the_keys_that_differ_from_the_beginning(tmp_path: Path) -> None:
    written = (
        "{both: {delay: 20ms}, downlink: {rate: 8mbit},"
        " at: {1s: {downlink: {loss: 100%}}, 1.5s: {}, 2500ms: {downlink: {rate: 16mbit}}}}"
    )
    profile = profile_of(written, tmp_path)
    rate, delay = Rate(8_000_000), Delay(0.02)
    assert profile == Profile(
        "p", Link(delay=delay), Link(delay=delay, rate=rate),
        downlink_changes=Steps(
            (1.0, 1.5, 2.5),
            (Link(delay=delay, rate=rate, loss=Loss(1.0)), Link(delay=delay, rate=rate),
             Link(delay=delay, rate=Rate(16_000_000))),
        ),
    )  # fmt: skip
    assert profile.changes(UP) is None, "nothing of it changes"


def test_a_change_of_both_directions_is_above_what_a_single_one_began_with(tmp_path: Path) -> None:
    profile = profile_of("{downlink: {loss: 1%}, at: {1s: {both: {loss: 100%}}}}", tmp_path)
    assert [profile.links(direction)[1] for direction in Direction] == [Link(loss=Loss(1.0))] * 2


def test_changes_are_in_the_order_of_their_moments_repeat_and_have_a_clock(tmp_path: Path) -> None:
    profile = profile_of("{at: {2s: {}, 1s: {uplink: {delay: 1ms}}}, every: 5s, clock: trial}", tmp_path)
    assert profile.uplink_changes == Steps((1.0, 2.0), (Link(delay=Delay(0.001)), Link()), 5.0)
    assert profile.clock is Clock.TRIAL


def test_a_preset_can_change(tmp_path: Path) -> None:
    profile = profile_of("{preset: lte, at: {1s: {both: {loss: 100%}}}}", tmp_path)
    assert profile.links(DOWN)[1] == Link(delay=Delay(0.035), rate=Rate(12_000_000), loss=Loss(1.0))


def test_a_sweep_changes_each_of_its_networks(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "p: {downlink: {delay: [1ms, 2ms]}, at: {1s: {both: {loss: 100%}}}}")
    profiles = [condition.profile for condition in load(text, tmp_path).conditions]
    assert [profile.links(DOWN)[1].delay for profile in profiles] == [Delay(0.001), Delay(0.002)]


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("{downlink: {loss: [1%, 2%]}, at: {1500ms: {both: {loss: 9%}}}}", "at"),
        ("{downlink: {loss: [1%, 2%]}, at: {1s: {downlink: {loss: 9%}}}}", "1s"),
        ("{both: {delay: {from: 1ms, to: 9ms, steps: 3}}, at: {1s: {both: {loss: 1%}}, 1.5s: {both: {delay: 20ms}}}}",
         "1.5s"),
        ("{downlink: {loss: [1%, 2%]}, at: {1s: {downlink: {loss: 9%}}, 2s: {}}}", ""),
        ("{downlink: {loss: [1%, 2%]}, at: {1s: {downlink: {loss: 9%}}}, every: 2s}", ""),
        ("{both: {loss: [1%, 2%]}, at: {1s: {downlink: {loss: 9%}}}}", ""),
        ("{downlink: {loss: [1%, 2%]}, at: {1s: {downlink: {delay: 9ms}}}}", ""),
        ("{downlink: {loss: 1%}, at: {1s: {downlink: {loss: 9%}}}}", ""),
    ],
)  # fmt: skip
def test_a_sweep_that_a_change_overwrites_to_the_end_has_a_note(written: str, moment: str, tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", f"p: {written}")
    notes = [note for note in notes_of(load(text, tmp_path)) if "several values" in note]
    assert len(notes) == bool(moment)
    if moment:
        places = [(int(line), int(column)) for line, column in re.findall(r"yaml:(\d+):(\d+)", notes[0])]
        at, key = (text.splitlines()[line - 1][column - 1 :] for line, column in places)
        assert at.startswith(f"{moment}:")
        assert key.startswith(("loss: [", "delay: {from"))
        assert " to the end of the trial, all networks of the sweep `p` are the same: `at` sets" in notes[0]


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("{both: {delay: 20ms}, at: {1s: {}}}", "1s"),
        ("{both: {delay: 20ms}, at: {1s: {both: {delay: 20ms}}, 2s: {both: {loss: 1%}}}}", "1s"),
        ("{at: {2s: {both: {loss: 1%}}, 3s: {uplink: {loss: 1%}, downlink: {loss: 1%}}}}", "3s"),
    ],
)
def test_a_moment_at_which_nothing_changes_is_refused(written: str, moment: str, tmp_path: Path) -> None:
    (complaint,) = refusal(MINIMAL.replace("clean: {}", f"p: {written}"), tmp_path).complaints
    assert complaint.message == "nothing changes at this moment"
    assert complaint.source[complaint.column - 1 :].startswith(f"{moment}:")


def test_one_packet_can_be_lost_at_each_of_two_moments(tmp_path: Path) -> None:
    once = "{downlink: {loss: {packets: 1}}}"
    assert profile_of(f"{{at: {{1s: {once}, 2s: {once}}}}}", tmp_path).links(DOWN)[1:]


@pytest.mark.parametrize("kind", Rebind)
def test_a_rebinding_changes_no_direction(kind: Rebind, tmp_path: Path) -> None:
    profile = profile_of(f"{{both: {{delay: 20ms}}, at: {{1s: {{rebind: {kind}}}}}}}", tmp_path)
    link = Link(delay=Delay(0.02))
    assert profile == Profile("p", link, link, rebinding=Rebinding(1.0, kind))
    assert not profile.is_steady
    assert Profile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{at: {1s: {rebind: ports}}}", "did you mean `port`?"),
        ("{at: {1s: {rebind: port}, 2s: {rebind: address}}}", "a rebinding is the only change of a network"),
        ("{at: {1s: {rebind: port, both: {loss: 1%}}}}", "a rebinding is the only change of a network"),
        ("{at: {1s: {rebind: port}}, every: 2s}", "a rebinding is the only change of a network"),
        ("{rebind: port}", "unknown key `rebind`"),
    ],
)
def test_a_rebinding_that_cannot_be_is_refused(written: str, message: str, tmp_path: Path) -> None:
    assert message in str(refusal(MINIMAL.replace("clean: {}", f"p: {written}"), tmp_path))


def test_a_matrix_that_changes_survives_its_run_folder(tmp_path: Path) -> None:
    matrix = load(MINIMAL.replace("clean: {}", "p: {at: {1s: {both: {loss: 100%}}}, every: 3s}"), tmp_path)
    assert matrix_from_json(matrix_to_json(matrix)).conditions == matrix.conditions


def test_a_single_packet_can_be_lost(tmp_path: Path) -> None:
    profile = profile_of("{at: {1s: {downlink: {loss: {packets: 1}}}}}", tmp_path)
    assert profile.links(DOWN)[1] == Link(loss=NEXT_PACKET)
    assert network_settings(profile, DOWN) == {"at 1 s": "loss of the next packet"}


def test_bursts_by_time_have_the_loss_of_the_direction_between_them(tmp_path: Path) -> None:
    profile = profile_of("{both: {delay: 5ms}, downlink: {loss: 1%, spells: {good: 2s, bad: 300ms}}}", tmp_path)
    good = Link(delay=Delay(0.005), loss=Loss(0.01))
    assert profile.downlink == good
    assert profile.downlink_changes == Spells(2.0, 0.3, Link(delay=Delay(0.005), loss=Loss(1.0)))
    assert profile.uplink_changes is None
    both = profile_of("{both: {spells: {good: 2s, bad: 300ms, loss: 80%}}, clock: trial}", tmp_path)
    assert both.uplink_changes == both.downlink_changes == Spells(2.0, 0.3, Link(loss=Loss(0.8)))
    assert both.clock is Clock.TRIAL


@pytest.mark.parametrize(
    ("written", "at", "message", "hint"),
    [
        ("{both: {spells: {good: 1s, bad: 9ms}}}", "9ms", "9 ms is too short for a spell",
         "at least 40 ms on average; shorter bursts are counted in packets"),
        ("{both: {spells: {good: 1s, bad: 1s}}, at: {1s: {}}}", "at", "both change the network", "keep one"),
        ("{at: {1s: {both: {spells: {good: 1s, bad: 1s}}}}}", "spells", "begin with the trial", "write a loss here"),
        ("{both: {spells: {good: 1s, bad: 1s}}, every: 1s}", "every", "`every` needs changes", "add `at`"),
        ("{at: {0s: {}}}", "0s", "`0s` is the beginning", "is written next to `at`"),
        ("{at: {1: {}}}", "1", "has no unit", ""),
        ("{at: {1s: {downlink: {jitter: 1ms}}}}", "1ms", "a jitter needs a delay", "add `delay`"),
        ("{at: {1s: {loss: 1%}}}", "loss", "unknown key `loss`", "belongs in"),
        ("{at: {1s: {both: {loss: 1%}, uplink: {loss: 2%}}}}", "loss: 2%", "already in `both`", "move the one in"),
        ("{at: {1s: {}, 1005ms: {both: {loss: 1%}}}}", "at", "closer together than 10 ms", "not be on time"),
        ("{at: {1s: {both: {loss: 1%}}}, every: 900ms}", "900ms", "start over after 0.9 s, and the last one is at 1 s",
         "longer than the last moment, such as `every: 2s`"),
        ("{both: {loss: {packets: 1}}}", "packets", "would be one of the lab's probes", "write it under `at`"),
        ("{at: {1s: {both: {loss: {packets: 2}}}}}", "2", "2 is out of range", "from 1 to 1"),
        ("{every: 1s}", "every", "`every` needs changes", "add `at`"),
        ("{clock: trial}", "clock", "`clock` needs changes", "add `at`"),
        ("{at: {1s: {}}, clock: noon}", "noon", "`noon` is not `packet` or `trial`", ""),
        ("{both: {delay: 9ms, jitter: 1ms}, at: {1s: {both: {distribution: normal}}}}", "at",
         "cannot change its distribution", "cannot give a table back"),
        ("{both: {loss: 100%}, at: {1s: {both: {delay: 1ms}}}}", "loss", "every packet is lost", "lower the loss"),
    ],
)  # fmt: skip
def test_what_cannot_change_is_refused_at_its_place(
    written: str, at: str, message: str, hint: str, tmp_path: Path
) -> None:
    text = MINIMAL.replace("clean: {}", f"p: {written}")
    said = str(refusal(text, tmp_path))
    line = next(number for number, each in enumerate(text.splitlines(), 1) if written in each)
    column = text.splitlines()[line - 1].index(at, text.splitlines()[line - 1].index(written)) + 1
    assert f":{line}:{column}: " in said
    assert message in said
    assert hint in said


def test_a_network_that_loses_everything_for_a_while_is_no_dead_one(tmp_path: Path) -> None:
    profile = profile_of("{both: {loss: 100%}, at: {1s: {both: {loss: 0%}}}}", tmp_path)
    assert profile.links(UP)[1] == Link(loss=Loss(0.0))
