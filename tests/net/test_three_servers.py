"""A trial's proof does not depend on its server: faults of its own host are found, those of another server's are not.

All servers share one testbed, as in a run that compares them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from headwind.arm import H3, PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.servers import SERVERS
from headwind.settings import TrialRules
from headwind.testbed import testbed as testbeds
from headwind.testbed.agent import Agent
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.containers import LABEL
from headwind.testbed.docker import docker
from headwind.testbed.images import Images
from headwind.testbed.operations import SENT
from headwind.testbed.path import Path
from headwind.trial.block import Task
from headwind.trial.lane import Lane
from headwind.trial.start import examine_start
from headwind.trial.trial import forget, run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Profile, Rate
from servers.objects import path_of
from tests.net.builds import built
from tests.net.planting import Saboteur, execute, possible, words_of, writable
from tests.net.sabotages import SABOTAGES, Sabotage

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.beside]  # the first test may build images

NAMES = tuple(name for name, server in SERVERS.items() if all(server.speaks(each.name) for each in PLAIN))
RULES = TrialRules(20.0)
SMALL = H2load("small", 100, 4, 10)
SLOW = Profile("slow", downlink=Link(rate=Rate(1_000_000)))
LONG = H2load("long", 20, 2, 2, path="/10k")  # 1.6 s at that rate
KILL_AFTER_S = 0.4
# One of every kind; the first three are a limit of rate, a filter for UDP, and another delay.
KINDS = (
    "a shaper on the server", "a firewall on the server", "a shaper on the host's side", "offloads",
    "a hook for filters and policers", "a routing rule", "a CPU quota", "TCP without SACK",
    "changed congestion control", "a larger initial window",
)  # fmt: skip
IN_A_SERVER = [each for each in SABOTAGES if each.name in KINDS]
SHARED = [
    each for each in SABOTAGES if each.name in ("a shaper on the client", "an ingress hook on the router's container")
]
CONFIGURATIONS = {
    "nginx": "/opt/headwind/nginx/nginx.conf",
    "caddy": "/opt/headwind/servers/caddy/caddy.json",
    "haproxy": "/opt/headwind/servers/haproxy/haproxy.cfg",
}
# What makes a server answer every request with an error, as an expression of sed; haproxy and caddy read it in `fresh`.
ERRORS = {
    "nginx": "s/^ *listen 443 ssl/return 500; &/",
    "caddy": 's/"handler": "file_server", "root": "[^"]*"/"handler": "static_response", "status_code": 500/',
    "haproxy": "s/^    default_backend site/    http-request return status 500\\n&/",
}


def arm_of(server: str, plain: Arm) -> Arm:
    return Arm(f"{plain.protocol.value}-{server}", plain.protocol, server=SERVERS[server])


def a_trial(arm: Arm, profile: Profile = Profile("clean"), workload: H2load = SMALL) -> Trial:
    return Trial(Block(Condition(profile, workload), 0, (arm,), dict.fromkeys(Direction, 7)), 0, arm)


def tried(path: Path, plain: Arm, profile: Profile = Profile("clean"), workload: H2load = SMALL) -> Result:
    """A trial; again where the machine was so busy that its network could not be proven."""
    trial = a_trial(arm_of(path.server_name, plain), profile, workload)
    for _ in range(3):
        if (result := run_trial(path, trial, RULES)).outcome is not Outcome.INVALID:
            return result
    return run_trial(path, trial, RULES)


def hit(path: Path, plain: Arm, action: Callable[[], None], profile: Profile, workload: H2load) -> Result:
    """A trial into which `action` falls, right before its client runs."""
    client = cast("Agent", Saboteur(path.client, action))
    trial = a_trial(arm_of(path.server_name, plain), profile, workload)
    return run_trial(replace(path, client=client), trial, TrialRules(6.0))


def service(name: str) -> str:
    return testbeds.SERVERS[name].service


def neighbour(name: str) -> str:
    """Another server."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)]


@contextmanager
def up(images: Images, *names: str) -> Iterator[testbeds.Testbed]:
    tags = built(names).tags
    servers = tuple(SERVERS[name] for name in names)
    with testbeds.Testbed.up(BedSpec({**images.tags, **tags}, servers=servers)) as testbed:
        yield testbed


@pytest.fixture(scope="module")
def three(images: Images) -> Iterator[testbeds.Testbed]:
    with writable(), up(images, *NAMES) as testbed:
        for path in testbed.paths.values():
            examine_start(path)
        yield testbed


plains, sizes_bytes = itertools.cycle(PLAIN), itertools.count(15_001)


@pytest.mark.parametrize("plain", PLAIN, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_clean_trial_is_ok_at_the_servers_own_address(three: testbeds.Testbed, name: str, plain: Arm) -> None:
    path = three.path(name)
    result = tried(path, plain)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert path.server_ip in result.command
    assert len({each.server_ip for each in three.paths.values()}) == len(NAMES)


@pytest.mark.parametrize("sabotage", IN_A_SERVER, ids=[each.name for each in IN_A_SERVER])
@pytest.mark.parametrize("name", NAMES[1:])  # tests/net/test_sabotage.py has nginx's
def test_a_sabotage_of_one_servers_host_condemns_its_trials_and_no_others(
    three: testbeds.Testbed, name: str, sabotage: Sabotage
) -> None:
    possible(sabotage)
    path, other, plain = three.path(name), three.path(neighbour(name)), next(plains)
    planted = replace(sabotage, host=service(name))
    words = words_of(path, planted)
    try:
        result = hit(path, plain, lambda: execute(path, planted, planted.do, words), Profile("clean"), SMALL)
        assert result.outcome is Outcome.INVALID, result.reason
        assert planted.changed in result.reason
        innocent = tried(other, plain)
        assert (innocent.outcome, innocent.reason) == (Outcome.OK, "")
    finally:
        execute(path, planted, planted.undo, words)
        path.fingerprints = path.read_fingerprints()


@pytest.mark.parametrize("sabotage", SHARED, ids=[each.name for each in SHARED])
def test_a_sabotage_of_what_all_share_condemns_the_trials_of_every_server(
    three: testbeds.Testbed, sabotage: Sabotage
) -> None:
    words = words_of(three.path(), sabotage)
    execute(three.path(), sabotage, sabotage.do, words)
    try:
        for path in three.paths.values():
            result = hit(path, next(plains), lambda: None, Profile("clean"), SMALL)
            assert result.outcome is Outcome.INVALID, result.reason
            assert sabotage.changed in result.reason
    finally:
        execute(three.path(), sabotage, sabotage.undo, words)
        for path in three.paths.values():
            path.fingerprints = path.read_fingerprints()


def edit(path: Path) -> None:
    """Change a server's configuration, without having it read."""
    file, identity = CONFIGURATIONS[path.server_name], path.containers[service(path.server_name)]
    docker("exec", identity, "sh", "-c", 'cp -p "$0" /tmp/kept && sed -i "$1" "$0"', file, ERRORS[path.server_name])


def restore(path: Path) -> None:
    """Undo `edit`."""
    file, identity = CONFIGURATIONS[path.server_name], path.containers[service(path.server_name)]
    docker("exec", identity, "sh", "-c", 'cat /tmp/kept > "$0"', file)
    reload(path)
    path.fingerprints = path.read_fingerprints()


def reload(path: Path) -> None:
    if path.server_name == "nginx":
        file, identity = CONFIGURATIONS["nginx"], path.containers["server"]
        docker("exec", identity, "nginx", "-c", file, "-s", "reload")
        time.sleep(1.0)  # the old workers end


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_configuration_and_errors_are_found_at_every_server(three: testbeds.Testbed, name: str) -> None:
    path, plain = three.path(name), next(plains)
    try:
        result = hit(path, plain, lambda: edit(path), Profile("clean"), SMALL)
        assert result.outcome is Outcome.INVALID, result.reason
        assert "server's programs" in result.reason
        reload(path)
        path.fingerprints = path.read_fingerprints()
        result = tried(path, plain)
        assert result.outcome is Outcome.FAILED, result.reason
        innocent = tried(three.path(neighbour(name)), plain)
        assert (innocent.outcome, innocent.reason) == (Outcome.OK, "")
    finally:
        restore(path)
    assert tried(path, plain).outcome is Outcome.OK


@pytest.mark.parametrize("missing_bytes", [0, 6_000], ids=["other bytes", "a shorter file"])
@pytest.mark.parametrize("name", NAMES)
def test_other_bytes_and_fewer_bytes_are_wrong_content(three: testbeds.Testbed, name: str, missing_bytes: int) -> None:
    """Of an object that no server has had yet, because nginx keeps the sizes of those that it has read."""
    path, plain, size_bytes = three.path(name), next(plains), next(sizes_bytes)
    wanted = replace(SMALL, path=path_of(size_bytes))
    sent_bytes = size_bytes - missing_bytes
    identity, file = path.containers[service(name)], f"/srv/made/{size_bytes}"
    docker("exec", identity, "sh", "-c", f"head -c {sent_bytes} /dev/zero > {file}")
    try:
        result = tried(path, plain, workload=wanted)
        innocent = tried(three.path(neighbour(name)), plain, workload=wanted)
    finally:
        docker("exec", identity, "rm", "-f", file)
    assert result.outcome is Outcome.WRONG_CONTENT, result.reason
    fewer = f"100 answers had {100 * sent_bytes} bytes instead of {100 * size_bytes}"
    assert (fewer if missing_bytes else f"other content than requested: {size_bytes} bytes") in result.reason
    assert (innocent.outcome, innocent.reason) == (Outcome.OK, "")


def killed_by(path: Path, pattern: str) -> Callable[[], None]:
    """Kill the first process whose command line contains a pattern, while the client runs."""
    identity = path.containers[service(path.server_name)]
    script = f"""
import os, pathlib
for file in sorted(pathlib.Path('/proc').glob('[0-9]*'), key=lambda file: int(file.name)):
    words = (file / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()
    if {pattern!r} in words and 'supervise' not in words and int(file.name) not in (1, os.getpid()):
        os.kill(int(file.name), 9)
        break
else:
    raise SystemExit('no such process')
"""
    return lambda: threading.Timer(KILL_AFTER_S, lambda: docker("exec", identity, "python3", "-c", script)).start()


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_is_killed_in_mid_trial_is_a_lab_error_with_its_name_and_log(
    three: testbeds.Testbed, name: str
) -> None:
    path, plain = three.path(name), next(plains)
    pattern = {"nginx": "nginx: worker", "caddy": "caddy run", "haproxy": "haproxy -db"}[name]
    result = hit(path, plain, killed_by(path, pattern), SLOW, LONG)
    assert result.outcome is Outcome.LAB_ERROR, result.reason
    assert f"{name} died during the trial; the end of its log:\n" in result.reason
    assert ("exited on signal 9" in result.reason) == (name == "nginx"), "its master says so; the others have none"
    result = tried(path, plain)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


@pytest.mark.timed  # on a busy machine docker cannot freeze a container
@pytest.mark.parametrize("name", NAMES)
def test_a_paused_server_makes_its_trial_invalid(three: testbeds.Testbed, name: str) -> None:
    path, plain = three.path(name), next(plains)

    def pause() -> None:
        docker("pause", path.containers[service(name)])
        time.sleep(2.0)
        docker("unpause", path.containers[service(name)])

    result = hit(path, plain, pause, Profile("clean"), SMALL)
    assert result.outcome is Outcome.INVALID, result.reason
    assert "standstill: " in result.reason
    result = tried(path, plain)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_connection_that_one_server_still_has_does_not_reach_the_next_trial(
    three: testbeds.Testbed, name: str
) -> None:
    """Of a client that was stopped in the middle of its transfer; QUIC repeats what was not acknowledged."""
    trial = a_trial(arm_of(name, H3), workload=H2load("long", 4, 4, 1, path="/100m"))
    assert run_trial(three.path(name), trial, TrialRules(0.5)).outcome in (Outcome.TIMEOUT, Outcome.INVALID)
    forget(three.path(neighbour(name)))
    sent = three.servers[name].call(SENT)
    time.sleep(2.0)
    assert three.servers[name].call(SENT) == sent


@pytest.mark.parametrize("plain", PLAIN, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_after_all_that_every_server_is_as_it_was(three: testbeds.Testbed, name: str, plain: Arm) -> None:
    result = tried(three.path(name), plain)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


class Notes:
    """Keeps results, as a journal does."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def begin(self, trial: Trial, attempt: int) -> None:
        pass

    def append(self, result: Result) -> None:
        self.results.append(result)


def test_a_killed_container_costs_one_attempt_and_nothing_stays(images: Images) -> None:
    """Also the nginx behind haproxy, which nothing starts again."""
    names, pending, projects = ("caddy", "haproxy"), list[Callable[[testbeds.Testbed], None]](), list[str]()

    @contextmanager
    def sabotaged(_: str) -> Iterator[testbeds.Testbed]:
        with up(images, *names) as testbed:
            projects.append(testbed.name)
            for path in testbed.paths.values():
                path.client = cast("Agent", Saboteur(path.client, lambda: pending.pop()(testbed) if pending else None))
            yield testbed

    def kill_caddy(testbed: testbeds.Testbed) -> None:
        threading.Timer(KILL_AFTER_S, lambda: docker("kill", testbed.containers["caddy"])).start()

    def kill_behind(testbed: testbeds.Testbed) -> None:
        killed_by(testbed.path("haproxy"), "nginx: master")()

    notes = Notes()
    with Lane(sabotaged, TrialRules(6.0)) as lane:
        for name, action in (("caddy", kill_caddy), ("haproxy", kill_behind)):
            pending.append(action)
            arm = arm_of(name, next(plains))
            lane.run(Task(a_trial(arm, SLOW, LONG).block, {arm: 0}), notes)
    caddy, haproxy = (each for each in notes.results if each.outcome is Outcome.LAB_ERROR)
    assert "the caddy died" in caddy.reason
    assert "nginx behind haproxy" in haproxy.reason
    assert "; the end of its log:\n" in haproxy.reason
    assert [each.outcome for each in notes.results if each.outcome is not Outcome.INVALID] == [
        Outcome.LAB_ERROR, Outcome.OK, Outcome.LAB_ERROR, Outcome.OK,
    ]  # fmt: skip
    for project in projects:
        assert docker("ps", "-aq", "--filter", f"label={LABEL}={project}") == ""
        assert docker("network", "ls", "-q", "--filter", f"label={LABEL}={project}") == ""
