"""Spans of a network that changes: what was due, when it came, and what each span did to the packets."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headwind.metric import Losses
from headwind.model import Check, Proof, slowed
from headwind.proof.evidence import Evidence
from headwind.proof.spans import counts_by_network, downlink_losses, is_unchanged, labels
from headwind.proof.trial_checks import prove
from impair.messages import Course
from impair.netem_options import Options
from impair.profile import NEXT_PACKET, Delay, Direction, Link, Loss, Profile, Rate, Rebind, Rebinding, Spells, Steps
from tests.evidence import evidence_of
from tests.net.prediction import SeededNetem

DOWN = Direction.DOWNLINK
BASE = Link(delay=Delay(0.02))
LOST = Link(delay=Delay(0.02), loss=Loss(1.0))
BLACKOUT = Profile("blackout", downlink=BASE, downlink_changes=Steps((1.0, 1.5), (LOST, BASE)))
SPELLS = Profile("spells", downlink=BASE, downlink_changes=Spells(10.0, 0.05, LOST))
SENT = (1000, 200, 800)  # frames of the downlink in each span


def changing(
    profile: Profile = BLACKOUT, real: Profile | None = None, sent: tuple[int, ...] = SENT, late_s: float = 0.0003
) -> Evidence:
    """The evidence of a trial with so many frames in each span, over `real` on a router that read back `profile`."""
    evidence = evidence_of(profile, offered={Direction.UPLINK: 500, DOWN: sent[0]}).to_json()
    now = copy.deepcopy(evidence["after"])
    carried, moments = [], [*(moment for moment, _ in zip(profile.moments(DOWN, 1), sent[1:], strict=False))]
    for number, (at_s, frames) in enumerate(zip(moments, sent[1:], strict=True), 1):
        before = reading(now)
        configure(now, profile.after(DOWN, number), number)
        after = reading(now)
        carried.append({"kind": "change", "at_s": at_s, "began_s": at_s, "done_s": at_s + late_s, "before": before,
                        "after": after, "direction": "downlink"})  # fmt: skip
        pass_on(now, (real or profile).after(DOWN, number), number, frames)
    evidence["after"] = now
    return Evidence.from_json(
        {**evidence, "course": {"stopped_s": 3.0, "carried": carried}, "due": {"downlink": moments}}
    )


def test_a_schedule_whose_clock_did_not_start_is_read_back_from_the_journal() -> None:
    stored = replace(changing(), course=Course(None)).to_json()
    stored["course"] = {"carried": []}  # the journal leaves out what is None
    assert Evidence.from_json(stored).course == Course(None)


def reading(moment: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({key: moment["router"][key] for key in ("ports", "rx_while_read", "uplink", "downlink")})


def configure(moment: dict[str, Any], link: Link, seed: int) -> None:
    moment["router"]["downlink"] |= {"link": Options.of(link, 1).link().to_json(), "seed": seed, "limit": link.limit}


def pass_on(moment: dict[str, Any], link: Link, seed: int, frames: int) -> None:
    """Let netem with this link have so many more frames."""
    netem = SeededNetem(Options.of(link, seed))
    for _ in range(frames):
        netem.offer()
    moment["server"]["tx_frames"] += frames
    moment["router"]["ports"]["server"]["rx_frames"] += frames
    for name in ("tx_frames",):
        moment["router"]["ports"]["client"][name] += netem.counters["packets"]
    for name in ("rx_frames", "ip_in_receives"):
        moment["client"][name] += netem.counters["packets"]
    counters = moment["router"]["downlink"]["counters"]
    for name, count in netem.counters.items():
        counters[name] += count


def failing(proof: Proof) -> list[tuple[str, str]]:
    return [(check.quantity, check.span) for check in proof.checks if not check.passed]


def found(proof: Proof, quantity: str, span: str = "") -> list[Check]:
    return [check for check in proof.checks if (check.quantity, check.span, check.direction) == (quantity, span, DOWN)]


def test_a_blackout_that_took_all_of_its_packets_and_no_other_is_proven() -> None:
    proof = prove(BLACKOUT, changing())
    assert failing(proof) == []
    (loss,) = found(proof, "loss_ratio", "from 1 s")
    assert (loss.requested, loss.configured, loss.measured) == (1.0, 1.0, 1.0)
    assert loss.note.startswith("200 of 200 packets")
    (late,) = found(proof, "change_late_s")
    assert late.measured == pytest.approx(0.0003)


def test_the_counts_of_the_spans_add_up_to_the_total() -> None:
    evidence = changing()
    spans = evidence.spans(DOWN)
    assert [span.changes for span in spans] == [0, 1, 2]
    assert [span.stretch.entered(DOWN) for span in spans] == [*SENT]
    lost = {label: counts.loss.count for label, counts in counts_by_network(BLACKOUT, DOWN, evidence).items()}
    assert lost == {"": 0, "from 1 s": 200}


def test_a_network_that_does_not_change_has_one_span() -> None:
    evidence = evidence_of(Profile("steady", downlink=LOST))
    (span,) = evidence.spans(DOWN)
    assert (span.changes, span.stretch.before, span.stretch.after) == (0, evidence.before.router, evidence.after.router)
    assert span.configured == evidence.configured[DOWN]


@pytest.mark.parametrize(
    ("real", "fails"),
    [
        pytest.param(replace(BLACKOUT, downlink_changes=Steps((1.0, 1.5), (BASE, BASE))), "from 1 s", id="none-lost"),
        pytest.param(replace(BLACKOUT, downlink_changes=Steps((1.0, 1.5), (LOST, LOST))), "", id="never-taken-back"),
        pytest.param(
            replace(BLACKOUT, downlink_changes=Steps((1.0, 1.5), (replace(LOST, loss=Loss(0.9)), BASE))),
            "from 1 s", id="only-most-lost",
        ),
    ],
)  # fmt: skip
def test_a_span_that_was_another_network_fails(real: Profile, fails: str) -> None:
    assert ("loss_ratio", fails) in failing(prove(BLACKOUT, changing(real=real)))


def test_a_single_wrong_span_among_many_right_ones_fails() -> None:
    """The sum over forty spans would hide it: 2 % of all packets, where 2 % are to be lost."""
    lossy = Link(loss=Loss(0.1))
    steps = Steps((1.0,), (lossy,), period_s=2.0)
    profile = Profile("often", downlink_changes=steps)
    evidence = changing(profile, sent=(500,) * 41)
    assert failing(prove(profile, evidence)) == []
    data = evidence.to_json()
    for carried in data["course"]["carried"][3:]:  # so many more losses in the second lossy span
        for name in ("before", "after"):
            shift(carried[name]["downlink"]["counters"], 70)
    shift(data["after"]["router"]["downlink"]["counters"], 70)
    assert ("loss_ratio", "from 1 s") in failing(prove(profile, Evidence.from_json(data)))


def shift(counters: dict[str, int], frames: int) -> None:
    counters["packets"] -= frames
    counters["drops"] += frames
    counters["dropped"] += frames


def changed(change: Callable[[dict[str, Any]], object]) -> Proof:
    data = changing().to_json()
    change(data)
    return prove(BLACKOUT, Evidence.from_json(data))


def test_a_change_that_was_not_made_fails() -> None:
    proof = changed(lambda data: data["course"]["carried"].pop())
    assert ("missing_changes", "") in failing(proof)
    assert found(proof, "missing_changes")[0].note == "1 of 2 changes made"


def test_a_change_that_the_kernel_refused_fails_with_its_words() -> None:
    proof = changed(lambda data: data["course"]["carried"][1].update(error="Invalid slot"))
    assert found(proof, "missing_changes")[0].note == "Invalid slot"
    assert ("missing_changes", "") in failing(proof)


def test_a_trial_that_ends_before_the_first_change_counts_with_a_warning() -> None:
    for profile in (BLACKOUT, ONE, SPELLS):
        proof = prove(profile, changing(profile, sent=(1000,)))
        assert failing(proof) == []
        expected = [] if profile is SPELLS else ["the network did not change: the client had ended by 1 s"]
        assert list(proof.warnings) == expected, "that no bad spell came is no surprise"
        assert is_unchanged(proof.warnings) is bool(expected)
    assert prove(BLACKOUT, changing()).warnings == ()


def test_a_trial_that_ends_before_the_client_is_rebound_counts_with_a_warning() -> None:
    moving = Profile("moving", downlink=BASE, rebinding=Rebinding(5.0, Rebind.PORT))
    data = evidence_of(moving).to_json() | {"course": {"stopped_s": 3.0, "carried": []}, "rebound": 0}
    proof = prove(moving, Evidence.from_json(data))
    assert failing(proof) == []
    assert proof.warnings == ("nothing was rebound: the client had ended by 5 s",)


@pytest.mark.parametrize(("late_s", "fails"), [(0.0019, False), (0.0021, True), (-0.001, True)])
def test_a_late_or_early_change_fails(late_s: float, fails: bool) -> None:
    proof = prove(BLACKOUT, changing(late_s=late_s))
    assert (("change_late_s", "") in failing(proof)) is fails


def test_a_read_back_that_differs_from_its_request_fails() -> None:
    slow = Profile("slow", downlink=Link(rate=Rate(80_000_000)),
                   downlink_changes=Steps((1.0,), (Link(rate=Rate(8_000_000)),)))  # fmt: skip
    evidence = changing(slow, sent=(400, 100))
    assert failing(prove(slow, evidence)) == []
    data = evidence.to_json()
    for each in (data["course"]["carried"][0]["after"], data["after"]["router"]):
        each["downlink"]["link"]["rate"]["rate_bps"] = 16_000_000
    assert ("rate_bps", "from 1 s") in failing(prove(slow, Evidence.from_json(data)))


def test_netem_that_was_replaced_in_the_middle_fails() -> None:
    def forget(data: dict[str, Any]) -> None:
        data["course"]["carried"][1]["before"]["downlink"]["counters"]["packets"] = 0

    assert ("settings_changed", "") in failing(changed(forget))


def test_links_with_the_same_fates_share_a_label() -> None:
    rates = [Link(rate=Rate(8_000_000 * number)) for number in (1, 2, 3)]
    trace = Profile("trace", downlink=rates[0], downlink_changes=Steps((1.0, 2.0), (rates[1], rates[2])))
    assert labels(trace, DOWN) == ["", "", ""]
    assert labels(BLACKOUT, DOWN) == ["", "from 1 s", ""]
    assert labels(Profile("bursts", downlink_changes=Spells(1.0, 0.2, LOST)), DOWN) == ["", "in bad spells"]


def test_a_slower_twin_is_slower_all_along() -> None:
    slow = slowed(BLACKOUT)
    assert [link.delay and round(link.delay.delay_s, 9) for link in slow.links(DOWN)] == [0.022] * 3
    bad = slowed(Profile("bursts", downlink=BASE, downlink_changes=Spells(1.0, 0.2, LOST))).links(DOWN)[1]
    assert bad.delay
    assert bad.delay.delay_s == pytest.approx(0.022)


ONE = Profile("one lost", downlink=BASE, downlink_changes=Steps((1.0,), (replace(BASE, loss=NEXT_PACKET),)))


@pytest.mark.parametrize(("dropped", "fails"), [(0, False), (1, True), (-1, True)])
def test_exactly_one_packet_must_be_lost_where_that_was_requested(dropped: int, fails: bool) -> None:
    data = changing(ONE, sent=(500, 300)).to_json()
    shift(data["after"]["router"]["downlink"]["counters"], dropped)
    proof = prove(ONE, Evidence.from_json(data))
    assert (("lost_packets", "from 1 s") in failing(proof)) is fails
    (lost,) = found(proof, "lost_packets", "from 1 s")
    assert (lost.requested, lost.measured) == (1.0, 1.0 + dropped)
    assert downlink_losses(ONE, Evidence.from_json(data)) == [Losses(1.0, 1.0, 1 + dropped, 0.02)]


def test_a_loss_lasts_until_the_network_loses_nothing() -> None:
    half = replace(LOST, loss=Loss(0.5))
    stair = Profile("stair", downlink=BASE, downlink_changes=Steps((1.0, 1.5, 2.0, 2.5), (half, LOST, BASE, LOST)))
    queued = replace(BASE, rate=Rate(1_000_000), queue_packets=50)
    first, last = downlink_losses(stair, changing(stair, sent=(500, 100, 50, 500, 20)))
    assert first.from_s == 1.0
    assert first.until_s == pytest.approx(2.0003)
    assert 50 < first.packets < 150
    assert last == Losses(2.5, math.inf, 20, 0.02)
    (slow,) = downlink_losses(replace(BLACKOUT, downlink=queued), changing(BLACKOUT))
    assert slow.packets == 200
    assert slow.latency_s == pytest.approx(0.6, abs=0.05)


def test_what_the_network_lost_before_its_changes_is_left_out() -> None:
    lossy = replace(BASE, loss=Loss(0.1))
    rough = Profile("rough", downlink=lossy, downlink_changes=Steps((1.0, 1.5), (LOST, BASE)))
    (found,) = downlink_losses(rough, changing(rough))
    assert (found.from_s, found.packets) == (1.0, 200)
