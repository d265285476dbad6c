"""What changes while the client runs spoils a trial, even when it was right before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from headwind.model import Check
from headwind.proof.evidence import OUTSIDE, Evidence
from headwind.proof.stability import LARGEST_GAP_S, THROTTLED_SHARE, check_hosts, check_settings
from headwind.proof.trial_checks import prove
from impair.profile import Direction, Link, Loss, Profile
from tests import quiet
from tests.evidence import but, evidence_of

DOWN = Direction.DOWNLINK
LOSSY = Link(loss=Loss(0.3))
JOINED = {host: {"routes": "a", "firewall": "none"} for host in ("client", "server", "router")}
COUNTED = {"packets": 10, "backlog_packets": 5}


def state(link: Link = LOSSY, seed: int = 7, limit: int = 1000, **counts: int) -> dict[str, Any]:
    return {**quiet.netem(link, seed, **{**COUNTED, **counts}), "limit": limit}


def evidence(
    change_before: Callable[[dict[str, Any]], None] = lambda _: None,
    change_after: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Evidence:
    """Steady hosts and a steady netem, but for what the changes do to the JSON of both moments."""
    states = {direction: state() for direction in Direction}
    before, after = quiet.moment(states), quiet.moment(states) | {"fingerprints": copy.deepcopy(JOINED)}
    change_before(before)
    change_after(after)
    return Evidence.from_json({"configured": states, "before": before, "after": after, "joined": JOINED})


@pytest.mark.parametrize(
    ("after", "word"),
    [
        (state(), ""),
        (state(packets=12, backlog_packets=0), ""),
        (state(link=Link()), "link"),
        (state(seed=8), "seed"),
        (state(limit=999), "limit"),
        (state(packets=3), "packets"),
        (None, "link"),
    ],
    ids=["unchanged", "counted on", "link", "seed", "limit", "begun anew", "gone"],
)
def test_netem_must_stay_as_it_was_configured(after: dict[str, Any] | None, word: str) -> None:
    check = check_settings(DOWN, evidence(change_after=lambda moment: moment["router"].update(downlink=after)))
    assert check.passed == (not word)
    assert word in check.note


def hosts(
    change_after: Callable[[dict[str, Any]], None], change_before: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Check]:
    return {check.quantity: check for check in check_hosts(evidence(change_before, change_after))}


def test_steady_hosts_pass() -> None:
    assert all(check.passed for check in hosts(lambda _: None).values())


@pytest.mark.parametrize("host", list(JOINED))
def test_a_new_route_or_a_firewall_on_any_host_is_found(host: str) -> None:
    check = hosts(lambda after: after["fingerprints"][host].update(routes="b"))["hosts_changed"]
    assert not check.passed
    assert f"{host}'s routes" in check.note


@pytest.mark.parametrize(("gap_s", "passed"), [(LARGEST_GAP_S, True), (LARGEST_GAP_S + 0.01, False)])
def test_a_host_that_stood_still_made_the_protocols_wait(gap_s: float, passed: bool) -> None:
    check = hosts(lambda after: after["router"].update(largest_gap_s=gap_s))["standstill_s"]
    assert (check.passed, check.measured) == (passed, gap_s)
    assert "router" in check.note


def throttled(host: str, throttled_s: float | None, clock_s: float) -> Callable[[dict[str, Any]], None]:
    def change(moment: dict[str, Any]) -> None:
        moment.setdefault(host, {})["processors"] = {"clock_s": clock_s, "throttled_s": throttled_s}

    return change


@pytest.mark.parametrize("host", [*JOINED, OUTSIDE])
@pytest.mark.parametrize(
    ("throttled_s", "passed"), [(5.0, True), (5.0 + 2 * THROTTLED_SHARE, True), (5.03, False), (None, True)]
)
def test_a_container_that_was_kept_from_the_processors_is_found(
    host: str, throttled_s: float | None, passed: bool
) -> None:
    check = hosts(throttled(host, throttled_s, 102.0), throttled(host, 5.0, 100.0))["throttled_ratio"]
    assert check.passed == passed
    assert (host in check.note) == (throttled_s is not None)


def take_netem_away(after: dict[str, Any]) -> None:
    after["router"]["downlink"] = None


def give_netem_more_loss(after: dict[str, Any]) -> None:
    after["router"]["downlink"]["link"] = Link(loss=Loss(0.5)).to_json()


@pytest.mark.parametrize("tamper", [take_netem_away, give_netem_more_loss])
def test_a_whole_trial_is_no_proof_when_netem_was_touched(tamper: Callable[[dict[str, Any]], None]) -> None:
    profile = Profile("lossy", downlink=Link(loss=Loss(0.3)))
    assert prove(profile, evidence_of(profile)).passed
    assert not prove(profile, but(evidence_of(profile), tamper)).passed
