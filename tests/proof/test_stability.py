"""What changes while the client runs spoils a trial, even when it was right before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwind.model import Check
from headwind.proof.proof import prove
from headwind.proof.stability import LARGEST_GAP_S, THROTTLED_SHARE, check_hosts, check_settings
from impair.profile import Direction, Link, Loss, Profile
from tests.evidence import but, evidence_of

DOWN = Direction.DOWNLINK
READ = {"link": {"loss": {"model": "random", "ratio": 0.3}}, "seed": 7, "limit": 1000}
JOINED = {host: {"routes": "a", "firewall": "none"} for host in ("client", "server", "router")}


def router(**changed: Any) -> dict[str, Any]:
    return {"router": {DOWN: {**READ, "counters": {"packets": 10, "backlog_packets": 5}, **changed}}}


@pytest.mark.parametrize(
    ("after", "word"),
    [
        (router(), ""),
        (router(counters={"packets": 12, "backlog_packets": 0}), ""),
        (router(link={}), "link"),
        (router(seed=8), "seed"),
        (router(limit=999), "limit"),
        (router(counters={"packets": 3, "backlog_packets": 5}), "packets"),
        ({"router": {DOWN: None}}, "link"),
    ],
    ids=["unchanged", "counted on", "link", "seed", "limit", "begun anew", "gone"],
)
def test_netem_must_stay_as_it_was_configured(after: dict[str, Any], word: str) -> None:
    check = check_settings(DOWN, READ, router(), after)
    assert check.passed == (not word)
    assert word in check.note


def moment(**changed: dict[str, Any]) -> dict[str, Any]:
    steady = {host: {"largest_gap_s": 0.02, "oversize_frames": 0} for host in JOINED}
    hosts = {host: {**facts, **changed.get(host, {})} for host, facts in steady.items()}
    return {**hosts, "fingerprints": {**JOINED, **changed.get("fingerprints", {})}}


def hosts(after: dict[str, Any]) -> dict[str, Check]:
    return {check.quantity: check for check in check_hosts(moment(), after, JOINED)}


def test_steady_hosts_pass() -> None:
    assert all(check.passed for check in hosts(moment()).values())


@pytest.mark.parametrize("host", list(JOINED))
def test_a_new_route_or_a_firewall_on_any_host_is_found(host: str) -> None:
    check = hosts(moment(fingerprints={host: {"routes": "b", "firewall": "none"}}))["hosts_changed"]
    assert not check.passed
    assert f"{host}'s routes" in check.note


@pytest.mark.parametrize(("gap_s", "passed"), [(LARGEST_GAP_S, True), (LARGEST_GAP_S + 0.01, False)])
def test_a_host_that_stood_still_made_the_protocols_wait(gap_s: float, passed: bool) -> None:
    check = hosts(moment(router={"largest_gap_s": gap_s}))["standstill_s"]
    assert (check.passed, check.measured) == (passed, gap_s)
    assert "router" in check.note


def processors(throttled_s: float | None, clock_s: float) -> dict[str, Any]:
    return {"processors": {"clock_s": clock_s, "throttled_s": throttled_s}}


@pytest.mark.parametrize("host", [*JOINED, "router's container"])
@pytest.mark.parametrize(
    ("throttled_s", "passed"), [(5.0, True), (5.0 + 2 * THROTTLED_SHARE, True), (5.03, False), (None, True)]
)
def test_a_container_that_was_kept_from_the_processors_is_found(
    host: str, throttled_s: float | None, passed: bool
) -> None:
    steady = moment()
    before = {**steady, host: {**steady.get(host, {}), **processors(5.0, 100.0)}}
    after = {**steady, host: {**steady.get(host, {}), **processors(throttled_s, 102.0)}}
    (check,) = [check for check in check_hosts(before, after, JOINED) if check.quantity == "throttled_ratio"]
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
