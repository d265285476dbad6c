"""A bottleneck before netem: its drops are part of the balance of frames, and it must stay as it was configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwind.model import Proof
from headwind.proof.evidence import Evidence
from headwind.proof.trial_checks import prove
from impair.profile import Delay, Direction, Link, Loss, Profile, Rate
from impair.queues import FqCodel
from tests.evidence import evidence_of

DOWN = Direction.DOWNLINK
RATE_BPS, DROPS, MARKS, BEHIND = 20_000_000, 25, 3, 4000
NETEM = Link(delay=Delay(0.02), loss=Loss(0.1))
LINK = Link(delay=Delay(0.02), loss=Loss(0.1), rate=Rate(RATE_BPS), queue=FqCodel())
Change = Callable[[dict[str, Any]], None]


def queue(packets: int = 0, drops: int = 0, marks: int = 0, **other: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("bytes", "backlog_packets", "backlog_bytes"), 0)
    counters = {**counts, "packets": packets, "drops": drops, "marks": marks}
    state = {"kind": "fq_codel", "settings": {"limit": 10_240}, "rate_bps": RATE_BPS, "tokens_ns": 2_600_000}
    return {**state, **other, "counters": counters}


def proof_of(change: Change = lambda _: None) -> Proof:
    """A trial of which the queue dropped DROPS frames before netem had BEHIND of them."""
    data = evidence_of(Profile("p", downlink=NETEM), offered={DOWN: BEHIND, Direction.UPLINK: 0}).to_json()
    moments = (data["configured"][DOWN], data["before"]["router"][DOWN], data["after"]["router"][DOWN])
    for state in moments:
        state["link"] = {**LINK.to_json()}
    for state, grown in zip(moments, (queue(), queue(7, 1), queue(7 + BEHIND, 1 + DROPS, MARKS)), strict=True):
        state["queue"] = grown
    data["after"]["router"]["ports"]["server"]["rx_frames"] += DROPS
    data["after"]["server"]["tx_frames"] += DROPS
    rate = {"rate_bps": float(RATE_BPS), "pairs": 50, "agreeing": 50}
    train = data["trains"][DOWN]["probe"]
    data["trains"][DOWN]["bulk"] = {**train, "sent": 60, "rate": rate}
    change(data["after"])
    return prove(Profile("p", downlink=LINK), Evidence.from_json(data))


def broken(proof: Proof) -> set[tuple[str, str]]:
    return {(check.direction.value, check.quantity) for check in proof.checks if not check.passed}


def test_drops_of_the_queue_are_neither_unexplained_nor_netems() -> None:
    proof = proof_of()
    assert broken(proof) == set()
    notes = {(check.direction, check.quantity): check.note for check in proof.checks}
    assert notes[DOWN, "unexplained_loss_ratio"].endswith("; fq_codel dropped 25 and marked 3")
    assert f"of {BEHIND} packets" in notes[DOWN, "loss_ratio"]


def test_frames_that_vanish_between_router_and_netem_are_unexplained() -> None:
    def hide(after: dict[str, Any]) -> None:
        after["router"]["downlink"]["queue"]["counters"]["drops"] = 1

    assert broken(proof_of(hide)) == {("downlink", "unexplained_loss_ratio")}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"settings": {"limit": 10}}, "queue"),
        ({"rate_bps": 2 * RATE_BPS}, "queue"),
        ({"kind": "pie"}, "queue"),
        ({"tokens_ns": 1}, "queue"),
        ({"counters": queue(3, 1)["counters"]}, "queue's packets"),
        (None, "queue"),
    ],
    ids=["settings", "rate", "kind", "tokens", "restarted", "gone"],
)
def test_a_bottleneck_must_stay_as_it_was_configured(change: dict[str, Any] | None, word: str) -> None:
    def alter(after: dict[str, Any]) -> None:
        state = after["router"]["downlink"]
        state["queue"] = None if change is None else {**state["queue"], **change}

    proof = proof_of(alter)
    assert ("downlink", "settings_changed") in broken(proof)
    assert word in next(check.note for check in proof.checks if not check.passed)
