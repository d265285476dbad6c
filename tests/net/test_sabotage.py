"""Sabotage: what is done to a testbed is found, from the start and in mid-run, whichever protocol is measured.

The testbed of the session serves for most of it: each sabotage is done, must be refused as a start, must make a trial
invalid into which it falls, and is undone. docs/trust.md lists every one with its detector (tests/test_trust.py).
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from headwind.arm import H2, PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.testbed import testbed as testbeds
from headwind.testbed.agent import Agent
from headwind.testbed.docker import docker
from headwind.testbed.operations import RUN
from headwind.trial import trial
from headwind.trial.start import NotPlain, changed_programs, examine_start, long_train, troubles
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Profile
from tests.net.impaired import ImpairedPath, Project, ask, namespaces
from tests.net.sabotages import SABOTAGES, Sabotage

pytestmark = pytest.mark.timeout(300, func_only=True)  # the first test may have to build the images

ATTACH_XDP = """
import ctypes, os, socket, struct
program = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)  # r0 = XDP_PASS; exit
code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
addresses = ctypes.addressof(code), ctypes.addressof(licence)
request = ctypes.create_string_buffer(struct.pack("IIQQ", 6, 2, *addresses).ljust(128, bytes(1)), 128)
libc = ctypes.CDLL(None, use_errno=True)
loaded = libc.syscall(321, 5, request, 128)  # bpf(BPF_PROG_LOAD)
assert loaded >= 0, os.strerror(ctypes.get_errno())
inner = struct.pack("HHi", 8, 1, loaded) + struct.pack("HHI", 8, 3, 2)  # IFLA_XDP_FD, IFLA_XDP_FLAGS: generic
body = struct.pack("BBHiII", 0, 0, 0, socket.if_nametoindex("eth0"), 0, 0) + struct.pack("HH", 20, 43 | 0x8000) + inner
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
    netlink.send(struct.pack("IHHII", 16 + len(body), 19, 5, 1, 0) + body)
    assert struct.unpack_from("i", netlink.recv(4096), 16)[0] == 0
"""


def a_trial(arm: Arm, requests: int = 100) -> Trial:
    condition = Condition(Profile("clean"), H2load("small", requests, 4, 10))
    return Trial(Block(condition, 0, PLAIN, dict.fromkeys(Direction, 7)), 0, arm)


def words_of(bed: testbeds.Testbed, sabotage: Sabotage) -> dict[str, str]:
    """What the placeholders in a command stand for."""
    side, peer = ("client", "server") if sabotage.host == "client" else ("server", "client")
    identity = bed.containers[sabotage.host]
    index = docker("exec", identity, "cat", "/sys/class/net/eth0/iflink").strip()
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    far = {line.split(":")[0]: line.split()[1].partition("@")[0] for line in links}
    rmem = docker("exec", identity, "cat", "/proc/sys/net/ipv4/tcp_rmem").strip()
    return {
        "id": identity, "far": far.get(index, ""), "rmem": rmem, "xdp": ATTACH_XDP,
        "peer": getattr(bed.addresses, f"{peer}_subnet"), "gateway": bed.addresses.host(side, 254),
    }  # fmt: skip


def execute(bed: testbeds.Testbed, sabotage: Sabotage, commands: tuple[str, ...], words: dict[str, str]) -> None:
    identity = bed.containers[sabotage.host]
    prefix: dict[str, Callable[[], list[str]]] = {
        "in": lambda: ["docker", "exec", identity],
        "net": lambda: ["nsenter", "-t", docker("inspect", "-f", "{{.State.Pid}}", identity).strip(), "-n"],
        "host": list,
    }
    for command in commands:
        program, *rest = command.split(" ") if "'" not in command else _quoted(command)
        arguments = [" ".join(rest)] if program == "nft" else rest
        filled = [word.format(**words) if word.startswith("{") and word.endswith("}") and " " not in word
                  else word.replace("{rmem}", words["rmem"]) for word in arguments]  # fmt: skip
        done = subprocess.run([*prefix[sabotage.way](), program, *filled], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"


def _quoted(command: str) -> list[str]:
    """`sh -c '...'` as words: what stands in quotes is one."""
    before, quoted, _ = command.split("'", 2)
    after = command.rpartition("'")[2]
    return [*before.split(), quoted, *after.split()]


def possible(sabotage: Sabotage) -> None:
    """Skip what this host has not got the means for."""
    if sabotage.needs and not shutil.which(sabotage.needs):
        pytest.skip(f"not installed here: {sabotage.needs}")
    if (sabotage.way == "net" or sabotage.needs == "tc") and os.geteuid() != 0:
        pytest.skip("needs root on this host")


class Saboteur:
    """The client's agent; before it runs the client, something is done."""

    def __init__(self, agent: Agent, action: Callable[[], None]) -> None:
        self.agent, self.action = agent, action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def call(self, op: str, *others: Any, **arguments: Any) -> Any:
        if op == RUN.name:
            self.action()
        return self.agent.call(op, *others, **arguments)


def run_with(bed: testbeds.Testbed, arm: Arm, action: Callable[[], None]) -> Result:
    """A trial into which `action` falls: right before the client runs, after everything else was looked at."""
    client = cast("Agent", Saboteur(bed.client, action))
    return trial.run_trial(replace(bed, client=client), a_trial(arm), timeout_s=4.0)


arms = itertools.cycle(PLAIN)


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=[sabotage.name for sabotage in SABOTAGES])
def test_a_sabotage_is_found_in_mid_run_and_refused_at_the_start(bed: testbeds.Testbed, sabotage: Sabotage) -> None:
    possible(sabotage)
    words, arm = words_of(bed, sabotage), next(arms)
    if "programs" in sabotage.changed:
        before = changed_programs(bed.containers[sabotage.host])
        assert not [what for what in before if what in sabotage.start], "somebody has done so before"
    try:
        result = run_with(bed, arm, lambda: execute(bed, sabotage, sabotage.do, words))
        assert result.outcome is Outcome.INVALID, f"{arm}: {result.reason}"
        assert sabotage.changed in result.reason
        if sabotage.start:
            bed.fingerprints = bed.read_fingerprints()  # as of a testbed that came up with it
            # Docker takes seconds to look through a container's files: only where that is what finds it.
            looked_at = bed if "programs" in sabotage.changed else replace(bed, containers={})
            with pytest.raises(NotPlain) as refusal:
                examine_start(looked_at)
            assert sabotage.start.format(**words) in str(refusal.value)
    finally:
        execute(bed, sabotage, sabotage.undo, words)
        bed.fingerprints = bed.read_fingerprints()


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_after_all_that_the_testbed_is_as_it_was(bed: testbeds.Testbed, arm: Arm) -> None:
    result = trial.run_trial(bed, a_trial(arm), timeout_s=20.0)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_server_without_its_processors_is_found_by_the_time_it_waited(bed: testbeds.Testbed, arm: Arm) -> None:
    """Also where the quota was there before the fingerprints were taken."""
    identity = bed.containers["server"]
    docker("update", "--cpus", "0.05", identity)
    try:
        bed.fingerprints = bed.read_fingerprints()
        result = trial.run_trial(bed, a_trial(arm, requests=2000), timeout_s=20.0)
        assert result.outcome is Outcome.INVALID, result.reason
        assert "throttled: " in result.reason
        assert "the server's" in result.reason
    finally:
        docker("update", "--cpu-quota", "-1", identity)
        bed.fingerprints = bed.read_fingerprints()


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_paused_router_is_found(bed: testbeds.Testbed, arm: Arm) -> None:
    def pause() -> None:
        docker("pause", bed.containers["impair"])
        time.sleep(1.0)
        docker("unpause", bed.containers["impair"])

    result = run_with(bed, arm, pause)
    assert result.outcome is Outcome.INVALID, result.reason
    assert "standstill: " in result.reason


def test_a_shaper_that_nobody_can_see_is_found_by_the_long_train(bed: testbeds.Testbed) -> None:
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


def test_an_nginx_that_obeys_another_file_is_found(bed: testbeds.Testbed) -> None:
    """A second one that takes the first one's place: it has other ports, and the same file of its pid."""
    identity = bed.containers["server"]
    own = docker("exec", identity, "cat", "/run/nginx.pid").strip()

    def replace() -> None:
        docker("exec", identity, "sh", "-c", OTHER_NGINX)

    try:
        result = run_with(bed, H2, replace)
        assert result.outcome is Outcome.LAB_ERROR
        assert "nginx died" in result.reason
        with pytest.raises(NotPlain, match=r"nginx obeys another file than /opt/headwind/nginx/nginx\.conf"):
            examine_start(bed)
    finally:
        docker("exec", identity, "sh", "-c", f"[ $(cat /run/nginx.pid) = {own} ] || kill $(cat /run/nginx.pid);"
               f"sleep 0.3; echo {own} > /run/nginx.pid")  # fmt: skip
    assert trial.run_trial(bed, a_trial(H2), timeout_s=20.0).outcome is Outcome.OK


# The kernel engine's own router, in a kernel that has netem and its friends.

POLICE = "tc filter add dev to-client parent ffff: matchall action police rate 8mbit burst 5k drop"
IN_A_KERNEL = (
    (("tc qdisc add dev to-client clsact",), "tc qdisc del dev to-client clsact", "at the hook clsact", "qdiscs"),
    (("tc qdisc add dev to-client handle ffff: ingress", POLICE), "tc qdisc del dev to-client ingress",
     "at the hook ingress", "qdiscs"),
    (("ip link set to-server mtu 1400",), "ip link set to-server mtu 1500", "an MTU of 1400", "links"),
    (("ip route add blackhole 10.99.0.0/24",), "ip route del blackhole 10.99.0.0/24", "lets nothing through",
     "routes"),
    (("ip route add 10.99.0.0/24 dev to-server mtu 600",), "ip route del 10.99.0.0/24", "settings of its own",
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


@pytest.mark.beside
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
