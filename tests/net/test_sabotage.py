"""Sabotage: what is done to a testbed is found, from the start and in mid-run, whichever protocol is measured.

The testbed of the session serves for most of it: each sabotage is done, must be refused as a start, must make a trial
invalid into which it falls, and is undone. docs/trust.md lists every one with its detector (tests/test_trust.py).
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import pytest

from headwind.arm import H2, PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed.agent import Agent
from headwind.testbed.docker import docker
from headwind.trial import trial
from headwind.trial.start import UnexpectedState, changed_programs, examine_start, long_train, troubles
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Profile
from tests.net.impaired import ImpairedPath, Project, ask, namespaces
from tests.net.planting import Saboteur, execute, possible, words_of
from tests.net.sabotages import SABOTAGES, Sabotage

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.beside]  # the first test may build the images


def a_trial(arm: Arm, requests: int = 100) -> Trial:
    condition = Condition(Profile("clean"), H2load("small", requests, 4, 10))
    return Trial(Block(condition, 0, PLAIN, dict.fromkeys(Direction, 7)), 0, arm)


def run_with(bed: paths.Path, arm: Arm, action: Callable[[], None]) -> Result:
    """A trial into which `action` falls: right before the client runs, after everything else was looked at."""
    client = cast("Agent", Saboteur(bed.client, action))
    return trial.run_trial(replace(bed, client=client), a_trial(arm), TrialRules(4.0))


def proven(bed: paths.Path, arm: Arm) -> Result:
    """A trial; again where the machine was so busy that its network could not be proven."""
    for _ in range(3):
        if (result := trial.run_trial(bed, a_trial(arm), TrialRules(20.0))).outcome is not Outcome.INVALID:
            return result
    return trial.run_trial(bed, a_trial(arm), TrialRules(20.0))


arms = itertools.cycle(PLAIN)


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=[sabotage.name for sabotage in SABOTAGES])
def test_a_sabotage_is_found_in_mid_run_and_refused_at_the_start(bed: paths.Path, sabotage: Sabotage) -> None:
    possible(sabotage)
    words, arm = words_of(bed, sabotage), next(arms)
    if "programs" in sabotage.changed:
        before = changed_programs(bed.containers[sabotage.host])
        assert not [what for what in before if what in sabotage.start], "an earlier run has done so"
    try:
        result = run_with(bed, arm, lambda: execute(bed, sabotage, sabotage.do, words))
        assert result.outcome is Outcome.INVALID, f"{arm}: {result.reason}"
        assert sabotage.changed in result.reason
        if sabotage.start:
            bed.fingerprints = bed.read_fingerprints()  # as of a testbed that came up with it
            # Docker takes seconds to look through a container's files: only where that is what finds it.
            looked_at = bed if "programs" in sabotage.changed else replace(bed, containers={})
            with pytest.raises(UnexpectedState) as refusal:
                examine_start(looked_at)
            assert sabotage.start.format(**words) in str(refusal.value)
    finally:
        execute(bed, sabotage, sabotage.undo, words)
        bed.fingerprints = bed.read_fingerprints()


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_after_all_that_the_testbed_is_as_it_was(bed: paths.Path, arm: Arm) -> None:
    result = proven(bed, arm)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_server_without_its_processors_is_found_by_the_time_it_waited(bed: paths.Path, arm: Arm) -> None:
    """Also where the quota was there before the fingerprints were taken."""
    identity = bed.containers["server"]
    docker("update", "--cpus", "0.05", identity)
    try:
        bed.fingerprints = bed.read_fingerprints()
        result = trial.run_trial(bed, a_trial(arm, requests=2000), TrialRules(20.0))
        assert result.outcome is Outcome.INVALID, result.reason
        assert "throttled: " in result.reason
        assert "CPU quota: the server" in result.reason
    finally:
        docker("update", "--cpu-quota", "-1", identity)
        bed.fingerprints = bed.read_fingerprints()


@pytest.mark.timed  # on a busy machine docker cannot freeze a container
@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_paused_router_is_found(bed: paths.Path, arm: Arm) -> None:
    def pause() -> None:
        docker("pause", bed.containers["impair"])
        time.sleep(1.0)
        docker("unpause", bed.containers["impair"])

    result = run_with(bed, arm, pause)
    assert result.outcome is Outcome.INVALID, result.reason
    assert "standstill: " in result.reason


@pytest.mark.timed
def test_a_shaper_that_nobody_can_see_is_found_by_the_long_train(bed: paths.Path) -> None:
    (sabotage,) = (known for known in SABOTAGES if known.name == "a shaper on the host's side")
    possible(sabotage)
    words = words_of(bed, sabotage)
    assert list(troubles(long_train(bed))) == []
    execute(bed, sabotage, sabotage.do, words)
    try:
        assert re.search(r"uplink (lost|held)", "; ".join(troubles(long_train(bed))))
    finally:
        execute(bed, sabotage, sabotage.undo, words)


OTHER_NGINX = (
    "sed -E 's/listen ([0-9]+)/listen 1\\1/; s#include ([a-z])#include /opt/headwind/nginx/\\1#' "
    "/opt/headwind/nginx/nginx.conf > /tmp/other.conf && nginx -c /tmp/other.conf -g 'daemon on;'"
)


def test_an_nginx_that_obeys_another_file_is_found(bed: paths.Path) -> None:
    """A second one that takes the first one's place: it has other ports, and the same file of its pid."""
    identity = bed.containers["server"]
    own = docker("exec", identity, "cat", "/run/nginx.pid").strip()

    def replace() -> None:
        docker("exec", identity, "sh", "-c", OTHER_NGINX)

    try:
        result = run_with(bed, H2, replace)
        assert result.outcome is Outcome.LAB_ERROR
        assert "nginx died" in result.reason
        expected = r"nginx uses another configuration than /opt/headwind/nginx/nginx\.conf"
        with pytest.raises(UnexpectedState, match=expected):
            examine_start(bed)
    finally:
        docker("exec", identity, "sh", "-c", f"[ $(cat /run/nginx.pid) = {own} ] || kill $(cat /run/nginx.pid);"
               f"sleep 0.3; echo {own} > /run/nginx.pid")  # fmt: skip
    assert proven(bed, H2).outcome is Outcome.OK


# The kernel engine's own router, in a kernel that has netem and its friends.

POLICE = "tc filter add dev to-client parent ffff: matchall action police rate 8mbit burst 5k drop"
IN_A_KERNEL = (
    (("tc qdisc add dev to-client clsact",), "tc qdisc del dev to-client clsact", "at the hook clsact", "qdiscs"),
    (("tc qdisc add dev to-client handle ffff: ingress", POLICE), "tc qdisc del dev to-client ingress",
     "at the hook ingress", "qdiscs"),
    (("ip link set to-server mtu 1400",), "ip link set to-server mtu 1500", "an MTU of 1400", "links"),
    (("ip route add blackhole 10.99.0.0/24",), "ip route del blackhole 10.99.0.0/24", "a blocking route",
     "routes"),
    (("ip route add 10.99.0.0/24 dev to-server mtu 600",), "ip route del 10.99.0.0/24", "with its own settings",
     "routes"),
    (("ip rule add from all lookup main priority 7",), "ip rule del priority 7", "priority 7", "rules"),
)  # fmt: skip


@pytest.fixture(scope="module")
def guest(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImpairedPath]:
    """The kernel engine in a user-mode kernel, joined."""
    with namespaces(project, tmp_path_factory.mktemp("guest")) as path:
        path.join()
        assert path.guest
        for module in ("sch_ingress", "cls_matchall", "act_police"):
            ask(path.guest, "run", command=["sh", "-c", f"insmod /usr/lib/uml/modules/*/kernel/net/sched/{module}.ko"])
        yield path


@pytest.mark.parametrize(("do", "undo", "word", "topic"), IN_A_KERNEL, ids=[case[0][0] for case in IN_A_KERNEL])
def test_the_kernel_engines_router_tells_what_was_done_to_it(
    guest: ImpairedPath, do: tuple[str, ...], undo: str, word: str, topic: str
) -> None:
    assert guest.guest
    guest.apply(Link(), Link())
    before = ask(guest.router, "fingerprint")
    assert ask(guest.router, "examine") == []
    for command in do:
        ask(guest.guest, "run", command=command.split())
    try:
        assert any(word in told for told in ask(guest.router, "examine"))
        after = ask(guest.router, "fingerprint")
        assert topic in {name for name in before if before[name] != after[name]}
    finally:
        ask(guest.guest, "run", command=undo.split())
    assert ask(guest.router, "examine") == []
