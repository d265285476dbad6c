"""The proof: a network that is as asked is believed, any other is not, and every rule can do both."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwind.model import Check, Proof
from headwind.proof.evidence import Evidence, Trains
from headwind.proof.probed_decisions import probes_for, shows_reordering
from headwind.proof.trial_checks import prove
from headwind.settings import PROBE_COUNT
from impair.profile import (
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Profile,
    Rate,
    Reorder,
)
from tests import quiet
from tests.evidence import OFFERED, but, evidence_of, overflow
from tests.strategies import LINKS

UP, DOWN = Direction.UPLINK, Direction.DOWNLINK
AS_ASKED = [
    Link(),
    Link(Delay(0.1)),
    Link(Delay(0.1, 0.01)),
    Link(Delay(0.1, 0.02, "normal")),
    Link(loss=Loss(0.3)),
    Link(loss=Loss(0.01)),
    Link(loss=GilbertElliott(0.02, 0.25, 0.8, 0.01)),
    Link(loss=FourState(0.02, 0.3, 0.1, 0.2, 0.01)),
    Link(duplicate=Duplicate(0.7)),
    Link(corrupt=Corrupt(0.2)),
    Link(loss=Loss(0.3), duplicate=Duplicate(0.7)),
    Link(loss=Loss(0.3), corrupt=Corrupt(0.2)),
    Link(Delay(0.1), reorder=Reorder(0.25)),
    Link(Delay(0.1), reorder=Reorder(0.5, gap=5)),
    Link(Delay(0.1), reorder=Reorder(1.0, gap=5)),
    Link(rate=Rate(10_000_000)),
    Link(rate=Rate(200_000, packet_overhead=20, cell_size=48, cell_overhead=5)),
    Link(Delay(0.1, 0.02, "normal"), rate=Rate(10_000_000)),
    Link(Delay(0.1, 0.02), Loss(0.1), Duplicate(0.1), Corrupt(0.1), Reorder(0.1), Rate(10_000_000)),
]  # fmt: skip
BOUNDS = [
    Link(loss=Loss(0.0), duplicate=Duplicate(0.0), corrupt=Corrupt(0.0), reorder=Reorder(0.0)),
    Link(Delay(0.0)),
    Link(loss=Loss(1.0)),
    Link(loss=Loss(1.0), rate=Rate(10_000_000)),
    Link(duplicate=Duplicate(1.0)),
    Link(corrupt=Corrupt(1.0)),
    Link(Delay(0.05), reorder=Reorder(1.0)),
    Link(loss=Loss(1.0), duplicate=Duplicate(1.0)),
    Link(loss=GilbertElliott(1.0, 1.0)),
    Link(loss=FourState(1.0, 1.0)),
    Link(Delay(0.05), Loss(0.97), rate=Rate(10_000_000)),
]  # fmt: skip


def proof_of(
    asked: Link, real: Link | None = None, change: Callable[[dict[str, Any]], None] | None = None, kernel: str = "7.2"
) -> Proof:
    """What is said of a trial whose downlink was asked to be one thing and was another."""
    profile = Profile("asked", downlink=asked)
    evidence = evidence_of(Profile("real", downlink=real or asked), profile, kernel=kernel)
    return prove(profile, but(evidence, change) if change else evidence)


def broken(proof: Proof) -> set[tuple[str, str]]:
    """What did not pass: (direction, quantity)."""
    return {(check.direction.value, check.quantity) for check in proof.checks if not check.passed}


def check_of(proof: Proof, quantity: str, direction: Direction = DOWN) -> Check:
    (found,) = [check for check in proof.checks if (check.direction, check.quantity) == (direction, quantity)]
    return found


@pytest.mark.parametrize("link", AS_ASKED + BOUNDS, ids=str)
def test_a_network_that_is_as_asked_is_proven(link: Link) -> None:
    proof = proof_of(link)
    assert broken(proof) == set()
    assert proof.passed


@settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(
    LINKS.filter(lambda link: not link.slot and not (link.delay and link.delay.distribution == "pareto")),
    st.integers(1, 2**32),
)
def test_any_network_that_is_as_asked_is_proven(link: Link, seed: int) -> None:
    profile = Profile("any", uplink=link)
    assert broken(prove(profile, evidence_of(profile, seed=seed, offered={UP: 1000, DOWN: 50}))) == set()


@pytest.mark.parametrize(
    ("asked", "real", "quantity"),
    [
        (Link(Delay(0.1)), Link(), "delay_s"),
        (Link(), Link(Delay(0.02)), "delay_s"),
        (Link(Delay(0.1)), Link(Delay(0.11)), "delay_s"),
        (Link(Delay(0.1)), Link(Delay(0.09)), "delay_s"),
        (Link(Delay(0.1), rate=Rate(10_000_000)), Link(rate=Rate(10_000_000)), "delay_s"),
        (Link(Delay(0.1, 0.02, "normal"), rate=Rate(10**7)), Link(rate=Rate(10**7)), "delay_s"),
        (Link(Delay(0.1), reorder=Reorder(0.1)), Link(), "delay_s"),
        (Link(Delay(0.1, 0.01)), Link(Delay(0.1)), "jitter_s"),
        (Link(Delay(0.1, 0.01)), Link(Delay(0.1, 0.03)), "jitter_s"),
        (Link(Delay(0.1, 0.02, "normal")), Link(Delay(0.1, 0.001)), "jitter_s"),
        (Link(loss=Loss(0.3)), Link(loss=Loss(0.15)), "loss_ratio"),
        (Link(loss=Loss(0.3)), Link(loss=Loss(0.4)), "loss_ratio"),
        (Link(loss=Loss(0.02)), Link(), "loss_ratio"),
        (Link(), Link(loss=Loss(0.01)), "loss_ratio"),
        (Link(loss=Loss(0.0)), Link(loss=Loss(0.01)), "loss_ratio"),
        (Link(loss=Loss(1.0)), Link(loss=Loss(0.99)), "loss_ratio"),
        (Link(loss=GilbertElliott(0.05, 0.25)), Link(loss=GilbertElliott(0.05, 0.05)), "loss_ratio"),
        (Link(loss=FourState(0.05, 0.3)), Link(), "loss_ratio"),
        (Link(duplicate=Duplicate(0.7)), Link(duplicate=Duplicate(0.6)), "duplicate_ratio"),
        (Link(duplicate=Duplicate(0.7)), Link(), "duplicate_ratio"),
        (Link(), Link(duplicate=Duplicate(0.01)), "duplicate_ratio"),
        (Link(duplicate=Duplicate(1.0)), Link(duplicate=Duplicate(0.99)), "duplicate_ratio"),
        (Link(corrupt=Corrupt(0.2)), Link(corrupt=Corrupt(0.1)), "corrupt_ratio"),
        (Link(), Link(corrupt=Corrupt(0.01)), "corrupt_ratio"),
        (Link(Delay(0.1), reorder=Reorder(0.25)), Link(Delay(0.1), reorder=Reorder(0.15)), "reorder_ratio"),
        (Link(Delay(0.1), reorder=Reorder(1.0, gap=5)), Link(Delay(0.1), reorder=Reorder(1.0, gap=4)), "reorder_ratio"),
        (Link(Delay(0.1)), Link(Delay(0.1), reorder=Reorder(0.01)), "reorder_ratio"),
        (Link(rate=Rate(10_000_000)), Link(rate=Rate(11_000_000)), "rate_bps"),
        (Link(rate=Rate(10_000_000)), Link(rate=Rate(9_000_000)), "rate_bps"),
        (Link(rate=Rate(10_000_000)), Link(), "rate_bps"),
        (Link(rate=Rate(10**7, cell_size=48, cell_overhead=5)), Link(rate=Rate(10**7)), "rate_bps"),
    ],
    ids=str,
)  # fmt: skip
def test_another_network_than_the_asked_one_is_not_proven(asked: Link, real: Link, quantity: str) -> None:
    proof = proof_of(asked, real)
    assert ("downlink", quantity) in broken(proof)
    assert not proof.passed


def test_each_direction_is_judged_by_its_own_request() -> None:
    asked, real = Profile("asked", uplink=Link(loss=Loss(0.2))), Profile("real", downlink=Link(loss=Loss(0.2)))
    assert broken(prove(asked, evidence_of(real, asked))) == {
        ("uplink", "loss_ratio"), ("downlink", "loss_ratio"), ("downlink", "probe_loss_ratio"),
    }  # fmt: skip


def test_a_check_holds_the_requested_the_configured_and_the_measured_value() -> None:
    check = check_of(proof_of(Link(loss=Loss(0.3))), "loss_ratio")
    assert check.requested == 0.3
    assert check.configured == pytest.approx(0.3, abs=1e-9)
    assert check.measured == pytest.approx(0.3, abs=0.03)
    assert check.measured != check.requested
    assert check.tolerance == pytest.approx(4.9 * (0.3 * 0.7 / OFFERED[DOWN]) ** 0.5, abs=0.001)
    assert f"of {OFFERED[DOWN]} packets" in check.note


def test_the_evidence_is_kept_with_the_proof() -> None:
    profile = Profile("clean")
    evidence = evidence_of(profile)
    kept = json.dumps(prove(profile, evidence).counters)
    assert Evidence.from_json(json.loads(kept)) == evidence


# Trains


def with_train(link: Link, kind: str, **seen: Any) -> Proof:
    profile = Profile("asked", downlink=link)
    data = evidence_of(profile).to_json()
    data["trains"]["downlink"][kind] = quiet.train(**{"sent": 20, "unique": 20, **seen})
    return prove(profile, Evidence.from_json(data))


def test_a_train_that_was_never_sent_proves_nothing() -> None:
    profile = Profile("rated", downlink=Link(loss=Loss(1.0), rate=Rate(10_000_000)))
    evidence = evidence_of(profile)
    proof = prove(profile, replace(evidence, trains={}))
    assert broken(proof) == {("uplink", "delay_s"), ("downlink", "delay_s"), ("downlink", "rate_bps")}


@pytest.mark.parametrize(
    ("link", "believed"),
    [
        (Link(), False),
        (Link(loss=Loss(0.3)), False),  # 20 of 20: once in 3e10 trials
        (Link(loss=Loss(0.9)), True),  # every eighth trial
        (Link(loss=Loss(0.3), corrupt=Corrupt(0.9)), True),
        (Link(loss=GilbertElliott(0.01, 0.01)), True),
        (Link(corrupt=Corrupt(1.0)), True),
    ],
    ids=str,
)
def test_no_probe_at_all_is_believed_only_where_the_loss_explains_it(link: Link, believed: bool) -> None:
    check = check_of(with_train(link, "probe", delays_s=[]), "delay_s")
    assert (check.passed, check.measured) == (believed, None)
    assert ("explained" in check.note) == believed


@pytest.mark.parametrize(("loss", "believed"), [(0.0, False), (0.05, False), (0.7, True), (1.0, True)])
def test_a_rate_that_cannot_be_seen_is_believed_only_where_the_loss_explains_it(loss: float, believed: bool) -> None:
    link = Link(loss=Loss(loss), rate=Rate(10_000_000))
    check = check_of(with_train(link, "bulk", received=3, rate={"rate_bps": None}), "rate_bps")
    assert (check.passed, check.measured) == (believed, None)


def test_one_late_probe_of_twenty_is_the_machines() -> None:
    assert check_of(with_train(Link(Delay(0.1)), "probe", delays_s=[0.1002] * 19 + [0.35]), "delay_s").passed


@pytest.mark.parametrize(("late_s", "passed"), [(0.0, True), (0.0029, True), (0.0031, False), (-0.0031, False)])
def test_a_delay_may_be_off_by_what_a_busy_machine_adds(late_s: float, passed: bool) -> None:
    assert check_of(with_train(Link(Delay(0.1)), "probe", delays_s=[0.1 + late_s] * 20), "delay_s").passed == passed


@pytest.mark.parametrize(
    ("share", "passed"), [(1.0, True), (1.029, True), (0.971, True), (1.031, False), (0.95, False)]
)
def test_a_rate_may_be_off_by_three_percent(share: float, passed: bool) -> None:
    rate = {"rate_bps": share * 10_000_000}
    proof = with_train(Link(rate=Rate(10_000_000)), "bulk", received=20, rate=rate)
    assert check_of(proof, "rate_bps").passed == passed


def test_a_jitter_that_never_varies_is_none() -> None:
    assert not check_of(with_train(Link(Delay(0.1, 0.001)), "probe", delays_s=[0.1] * 20), "jitter_s").passed


@pytest.mark.parametrize(("arrived", "passed"), [(20, True), (19, True), (18, False), (0, False)])
def test_probes_that_vanish_where_no_counter_sees_it_are_missed(arrived: int, passed: bool) -> None:
    proof = with_train(Link(Delay(0.1)), "probe", unique=arrived, delays_s=[0.1] * 20)
    assert check_of(proof, "probe_loss_ratio").passed == passed


# Frames


def gone(owner: str, name: str, frames: int) -> Callable[[dict[str, Any]], None]:
    def change(after: dict[str, Any]) -> None:
        (after["router"]["ports"][owner.removeprefix("port ")] if "port " in owner else after[owner])[name] -= frames

    return change


@pytest.mark.parametrize(
    ("owner", "name", "direction"),
    [
        ("port client", "rx_frames", "uplink"),
        ("server", "rx_frames", "uplink"),
        ("port server", "rx_frames", "downlink"),
        ("client", "rx_frames", "downlink"),
    ],
)
def test_frames_that_vanish_before_or_after_netem_are_noticed(owner: str, name: str, direction: str) -> None:
    allowed = OFFERED[Direction(direction)] // 1000 + 3
    assert broken(proof_of(Link(), change=gone(owner, name, allowed))) == set()
    assert (direction, "unexplained_loss_ratio") in broken(proof_of(Link(), change=gone(owner, name, allowed + 1)))


def test_frames_that_go_round_the_router_are_noticed() -> None:
    def bypass(after: dict[str, Any]) -> None:
        for port in after["router"]["ports"].values():
            port.update(rx_frames=100, tx_frames=100)

    assert ("uplink", "unexplained_loss_ratio") in broken(proof_of(Link(), change=bypass))


def test_corrupted_frames_may_be_dropped_by_a_bridge() -> None:
    link = Link(corrupt=Corrupt(0.2))
    assert broken(proof_of(link, change=gone("client", "rx_frames", 500))) == set()
    assert broken(proof_of(link, change=gone("client", "rx_frames", 1200))) == {("downlink", "unexplained_loss_ratio")}


@pytest.mark.parametrize("link", [Link(), Link(loss=Loss(0.3), duplicate=Duplicate(0.7))], ids=str)
def test_only_a_rate_or_a_limit_may_fill_a_queue(link: Link) -> None:
    full = overflow(DOWN, 10)
    proof = proof_of(link, change=full)
    assert broken(proof) == {("downlink", "unexplained_loss_ratio")}
    assert "dropped by a full queue (limit " in check_of(proof, "unexplained_loss_ratio").note
    for bounded in (Rate(10_000_000), None):
        limited = Link(loss=link.loss, duplicate=link.duplicate, rate=bounded, limit_packets=None if bounded else 500)
        proof = proof_of(limited, change=full)
        assert broken(proof) == set()
        assert not proof.warnings, "what a slow link does is no reason for doubt"


def test_stray_frames_that_netem_never_sees_fail_nothing() -> None:
    def stray(after: dict[str, Any]) -> None:
        for port in after["router"]["ports"].values():
            port["rx_frames"] += 3

    for link in (Link(), Link(loss=Loss(1.0)), Link(duplicate=Duplicate(1.0)), Link(loss=Loss(0.3))):
        assert broken(proof_of(link, change=stray)) == set()


def test_packets_that_wait_in_the_delay_line_are_not_lost() -> None:
    def wait(after: dict[str, Any]) -> None:
        after["router"]["downlink"]["counters"]["packets"] -= 40
        after["router"]["downlink"]["counters"]["backlog_packets"] += 40
        after["router"]["ports"]["client"]["tx_frames"] -= 40
        after["client"]["rx_frames"] -= 40

    assert broken(proof_of(Link(Delay(0.1), Loss(0.2)), change=wait)) == set()


def test_what_is_marked_instead_of_lost_counts_as_loss() -> None:
    def mark(after: dict[str, Any]) -> None:
        counters = after["router"]["downlink"]["counters"]
        counters.update(
            packets=counters["packets"] + counters["drops"], drops=0, dropped=0, ecn_marked=counters["drops"]
        )
        after["router"]["ports"]["client"]["tx_frames"] = after["client"]["rx_frames"] = counters["packets"]

    marked = check_of(proof_of(Link(loss=Loss(0.3), ecn=True), change=mark), "loss_ratio")
    assert marked.measured == pytest.approx(0.3, abs=0.03)
    assert marked.passed


def test_where_nothing_was_sent_there_is_nothing_to_judge() -> None:
    silent = Profile("silent", uplink=Link(loss=Loss(1.0)), downlink=Link(loss=Loss(0.3), corrupt=Corrupt(0.1)))
    assert broken(prove(silent, evidence_of(silent, offered={UP: 30, DOWN: 0}))) == set()


# Kernels before 7.2


@pytest.mark.parametrize(
    "link",
    [
        Link(),
        Link(Delay(0.1, 0.01), Loss(0.3)),
        Link(loss=Loss(0.3), duplicate=Duplicate(0.7)),
        Link(loss=Loss(0.9), duplicate=Duplicate(0.5)),
        Link(loss=Loss(1.0)),
        Link(loss=Loss(1.0), duplicate=Duplicate(0.5)),
        Link(loss=Loss(1.0), duplicate=Duplicate(1.0)),
        Link(loss=Loss(0.3), duplicate=Duplicate(0.7), corrupt=Corrupt(0.2)),
        Link(loss=Loss(0.3), corrupt=Corrupt(0.2)),
        Link(Delay(0.02), reorder=Reorder(0.25)),
        Link(Delay(0.02, 0.005), Loss(0.1), Duplicate(0.1), Corrupt(0.2), Reorder(0.25), Rate(10_000_000)),
        Link(loss=GilbertElliott(0.02, 0.25)),
        Link(duplicate=Duplicate(1.0)),
        Link(Delay(0.1), reorder=Reorder(0.5, gap=5)),
    ],
    ids=str,
)
def test_older_kernels_prove_what_they_count(link: Link) -> None:
    assert broken(proof_of(link, kernel="6.12")) == set()


@pytest.mark.parametrize(
    ("asked", "real", "quantity"),
    [
        (Link(loss=Loss(0.3)), Link(loss=Loss(0.2)), "loss_ratio"),
        (Link(loss=Loss(0.3), duplicate=Duplicate(0.7)), Link(loss=Loss(0.2), duplicate=Duplicate(0.7)), "loss_ratio"),
        (Link(duplicate=Duplicate(0.7)), Link(duplicate=Duplicate(0.6)), "duplicate_ratio"),
        (Link(), Link(duplicate=Duplicate(0.01)), "duplicate_ratio"),
        (Link(), Link(loss=Loss(0.01)), "unexplained_loss_ratio"),
        (
            Link(loss=Loss(1.0), duplicate=Duplicate(1.0)),
            Link(loss=Loss(1.0), duplicate=Duplicate(0.5)),
            "duplicate_ratio",
        ),
        (Link(loss=Loss(1.0), duplicate=Duplicate(1.0)), Link(loss=Loss(0.5), duplicate=Duplicate(1.0)), "loss_ratio"),
        (Link(loss=Loss(1.0), duplicate=Duplicate(0.5)), Link(loss=Loss(1.0)), "duplicate_ratio"),
        (Link(Delay(0.1), reorder=Reorder(0.5)), Link(Delay(0.1), reorder=Reorder(0.3)), "reorder_ratio"),
        (Link(Delay(0.1), reorder=Reorder(0.5)), Link(Delay(0.1), reorder=Reorder(0.25)), "probe_reorder_ratio"),
        (Link(Delay(0.02), reorder=Reorder(0.25)), Link(Delay(0.02), reorder=Reorder(0.125)), "probe_reorder_ratio"),
        (Link(Delay(0.02), reorder=Reorder(0.25)), Link(Delay(0.02)), "probe_reorder_ratio"),
        (Link(corrupt=Corrupt(0.2)), Link(corrupt=Corrupt(0.1)), "probe_missing_ratio"),
        (Link(corrupt=Corrupt(0.2)), Link(corrupt=Corrupt(0.3)), "probe_missing_ratio"),
        (Link(corrupt=Corrupt(0.2)), Link(), "probe_missing_ratio"),
    ],
    ids=str,
)
def test_older_kernels_do_not_prove_another_network(asked: Link, real: Link, quantity: str) -> None:
    assert ("downlink", quantity) in broken(proof_of(asked, real, kernel="6.12"))


@pytest.mark.parametrize("ratio", [0.01, 0.05, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("loss", [None, Loss(0.3)], ids=str)
def test_older_kernels_prove_corruption_by_what_the_receiver_counts(ratio: float, loss: Loss | None) -> None:
    proof = proof_of(Link(corrupt=Corrupt(ratio), loss=loss), kernel="6.1")
    assert broken(proof) == set()
    check = check_of(proof, "corrupt_ratio")
    assert check.measured == pytest.approx(ratio, abs=check.tolerance)
    assert check.measured is not None
    assert check.measured > ratio / 2


@pytest.mark.parametrize(
    ("asked", "real"),
    [(0.2, 0.1), (0.2, 0.3), (0.05, 0.025), (0.2, 0.0), (0.01, 0.0), (0.0, 0.01), (0.0, 0.2)],
)
def test_older_kernels_do_not_prove_another_corruption(asked: float, real: float) -> None:
    wanted, given = (Link(corrupt=Corrupt(ratio) if ratio else None) for ratio in (asked, real))
    assert ("downlink", "corrupt_ratio") in broken(proof_of(wanted, given, kernel="6.12"))


def test_corruption_on_the_wrong_side_shows_on_both_in_older_kernels() -> None:
    wanted = Profile("asked", downlink=Link(corrupt=Corrupt(0.1)))
    swapped = Profile("real", uplink=wanted.downlink)
    found = broken(prove(wanted, evidence_of(swapped, wanted, kernel="6.12")))
    assert {("uplink", "corrupt_ratio"), ("downlink", "corrupt_ratio")} <= found


def test_frames_that_somebody_else_takes_are_no_corruption() -> None:
    """As many vanish behind netem as should have been corrupted, and no checksum is wrong."""
    taken = gone("client", "rx_frames", 800), gone("client", "ip_in_receives", 800)

    def take(after: dict[str, Any]) -> None:
        for change in taken:
            change(after)

    found = broken(proof_of(Link(corrupt=Corrupt(0.2)), Link(), take, kernel="6.12"))
    assert ("downlink", "unexplained_loss_ratio") in found


@pytest.mark.parametrize("kernel", ["6.1", "7.2"])
def test_a_probe_that_arrives_with_other_bytes_is_no_proof_on_any_kernel(kernel: str) -> None:
    profile = Profile("asked", downlink=Link(corrupt=Corrupt(0.2)))
    evidence = evidence_of(profile, kernel=kernel)
    probe = replace(evidence.trains[DOWN].probe, bad_payloads=1)
    changed = replace(evidence, trains={**evidence.trains, DOWN: Trains(probe)})
    assert broken(prove(profile, changed)) == {("downlink", "probe_bad_payloads")}


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        (Link(), True),
        (Link(Delay(0.1), reorder=Reorder(0.25)), True),
        (Link(Delay(0.1), reorder=Reorder(0.01)), False),  # too rare for a second of probes
        (Link(Delay(0.003), reorder=Reorder(0.25)), False),  # a busy machine adds as much
        (Link(Delay(0.1, 0.1), reorder=Reorder(0.25)), False),  # who was held comes as early
        (Link(Delay(0.1), reorder=Reorder(0.25), rate=Rate(100_000)), False),  # few probes have room
    ],
    ids=str,
)
def test_probes_show_a_reordering_that_is_frequent_and_long_enough(link: Link, shown: bool) -> None:
    assert shows_reordering(link) is shown
    assert probes_for(link, counted=True) == PROBE_COUNT
    assert PROBE_COUNT <= probes_for(link, counted=False) <= 1000


def test_packets_that_pass_while_older_counters_are_read_are_no_duplicates() -> None:
    """With a delay some always do: 39 of 326 packets looked doubled where nothing was."""

    def read_slowly(after: dict[str, Any]) -> None:
        after["server"]["tx_frames"] -= 39  # which is read before the router's
        after["router"]["ports"]["server"]["rx_frames"] -= 39
        after["router"]["rx_while_read"] = {"client": 0, "server": 39}

    assert broken(proof_of(Link(Delay(0.02)), change=read_slowly, kernel="6.12")) == set()


def test_older_kernels_may_drop_in_the_queue_of_a_rate() -> None:
    assert broken(proof_of(Link(rate=Rate(10_000_000)), change=overflow(DOWN, 200), kernel="6.12")) == set()


def test_a_frame_of_the_routers_own_is_no_duplicate() -> None:
    def speak(frames: int) -> Callable[[dict[str, Any]], None]:
        return gone("port server", "rx_frames", frames)

    assert broken(proof_of(Link(), change=speak(3), kernel="6.12")) == set()
    assert ("downlink", "duplicate_ratio") in broken(proof_of(Link(), change=speak(4), kernel="6.12"))


# Warnings


@pytest.mark.parametrize("side", ["client", "server"])
def test_datagrams_lost_in_a_full_buffer_are_a_warning_and_no_failure(side: str) -> None:
    assert proof_of(Link()).warnings == ()
    proof = proof_of(Link(), change=gone(side, "udp_rcvbuf_errors", -7))
    assert proof.passed
    (warning,) = proof.warnings
    assert warning.startswith(f"{side}: 7 ")
    assert "docs/windows.md" in warning


def test_a_full_buffer_is_named_with_its_size() -> None:
    evidence = but(evidence_of(Profile("clean")), gone("client", "udp_rcvbuf_errors", -169))
    had = replace(evidence, windows={"client": {"udp_rcvbuf_bytes": 212992}})
    (warning,) = prove(Profile("clean"), had).warnings
    assert warning.startswith("client: 169 datagrams lost in a full UDP receive buffer of 208 KB")


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_frame_that_an_offload_made_is_no_proof(side: str) -> None:
    assert broken(proof_of(Link(), change=gone(side, "oversize_frames", -1))) == {("downlink", "oversize_frames")}


def test_no_checks_are_no_proof() -> None:
    assert not Proof().passed
