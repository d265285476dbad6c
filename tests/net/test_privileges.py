"""Least privilege, read from running containers: every server, both browsers, and the user's server."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from headwind.arm import H2, H3
from headwind.browsers import BROWSERS
from headwind.metric import Workload
from headwind.model import Block, Condition, Outcome, Trial
from headwind.servers import OWN, SERVERS, Program, own_server
from headwind.settings import TrialRules
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import DockerError, docker
from headwind.testbed.images import Images, needed
from headwind.testbed.own_server import OwnImage
from headwind.trial.capture import KEYS, Capture
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from headwind.workloads.ttfb import Ttfb
from impair.profile import Direction, Profile
from tests.net.builds import built
from tests.net.page_trials import PAGE, page_over

pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.beside]  # the first test may build images

AGENT = {"NET_ADMIN", "NET_RAW"}
STARTER = AGENT | {"NET_BIND_SERVICE", "SETUID", "SETGID", "SETPCAP", "CHOWN", "KILL"}
RIGHTS = {"client": AGENT, "impair": AGENT, "mine": AGENT, "server": STARTER, "caddy": STARTER, "haproxy": STARTER,
          "nghttpd": STARTER}  # fmt: skip
PROGRAM = "mine's program"
BITS = {
    "CHOWN": 0,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_ADMIN": 12,
    "NET_RAW": 13,
}  # capabilities(7)
MASTER = {"CHOWN", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE"}
# A program's name, and what it may have at most besides the agent's container: [user, capabilities].
PROGRAMS = {
    "nginx: master": ("0", MASTER), "nginx: worker": ("33", set[str]()), "haproxy": ("33", {"NET_BIND_SERVICE"}),
    "caddy": ("33", {"NET_BIND_SERVICE", "NET_ADMIN"}), "nghttpd": ("33", {"NET_BIND_SERVICE"}),
}  # fmt: skip
# Prints [command, user, effective and bounding capabilities, no_new_privs, seccomp] of every process.
PROCESSES = """
import contextlib, json, os, pathlib
found = []
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        status = dict(line.split(':\\t', 1) for line in (process / 'status').read_text().splitlines())
        words = (process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode(errors='replace')
        found.append([words, status['Uid'].split()[1], int(status['CapEff'], 16), int(status['CapBnd'], 16),
                      status['NoNewPrivs'], status['Seccomp']])
print(json.dumps(found))
"""
# Prints the TCP ports of the host on which connections are accepted, by address.
LISTENING = """
import json
rows = [line.split() for line in open('/proc/net/tcp').read().splitlines()[1:]]
print(json.dumps([[row[1].split(':')[0], int(row[1].split(':')[1], 16)] for row in rows if row[3] == '0A']))
"""
# Tries to connect, to send, and to ask for a name; prints what went through.
REACH = """
import concurrent.futures, json, socket, sys
def reached(place):
    with socket.socket() as sock:
        sock.settimeout(1.0)
        try:
            sock.connect(tuple(place))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return True
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    places = json.loads(sys.argv[1])
    print(json.dumps([place[0] for place, found in zip(places, pool.map(reached, places)) if found]))
"""
LOOK_UP = "import socket; print(socket.gethostbyname('example.com'))"
WRITE = "import sys; open(sys.argv[1] + '/written', 'w').close()"
# Prints the most memory in bytes, the limit, and how often the limits of memory and processes were hit.
USE = """
import json, pathlib
def read(*names):
    for name in names:
        if (file := pathlib.Path('/sys/fs/cgroup', name)).exists():
            return file.read_text()
    raise SystemExit(f'none of {names}')
hits = read('memory/memory.failcnt', 'memory.events').split()
hits = [hits[hits.index('max') + 1]] if 'max' in hits else hits
memory = read('memory/memory.max_usage_in_bytes', 'memory.peak', 'memory.current')
processes, refused = read('pids/pids.current', 'pids.current'), read('pids/pids.events', 'pids.events').split()[1]
print(json.dumps([int(memory), int(hits[0]), int(processes), int(refused)]))
"""


@dataclass(frozen=True, slots=True)
class Bed:
    """A testbed with everything in it, and all its containers by name."""

    up: testbeds.Testbed
    all: dict[str, str]

    def seen(self, name: str) -> Any:
        """The container as Docker describes it."""
        (found,) = json.loads(docker("inspect", self.all[name]))
        return found

    def python(self, name: str, program: str, *arguments: str, user: str = "") -> Any:
        """What a Python program prints in the container, as JSON."""
        chosen = ("--user", user) if user else ()
        return json.loads(docker("exec", *chosen, self.all[name], "python3", "-c", program, *arguments))


# The user's server: HTTP/1.1 over TLS, and none of the lab's code.
OWN_PROGRAM = """
import http.server, ssl
server = http.server.ThreadingHTTPServer(('', 443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('/certs/cert.pem', '/certs/priv.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
HOSTS = (*RIGHTS, *BROWSERS)
EVERY = pytest.mark.parametrize("name", [*HOSTS, PROGRAM])
HOST = pytest.mark.parametrize("name", HOSTS)


@pytest.fixture(scope="module")
def bed(images: Images) -> Iterator[Bed]:
    """One testbed with every kind of container."""
    found = built(needed((*SERVERS, OWN), BROWSERS))
    image = found.reference("client")
    server = own_server("mine", Program(image, ("h1",), command=("python3", "-c", OWN_PROGRAM)))
    own = {"mine": OwnImage(image, found.ids["client"])}
    spec = BedSpec(found.tags, servers=(*SERVERS.values(), server), own_images=own, browsers=tuple(BROWSERS))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HEADWIND_READ_ONLY", raising=False)  # a testbed of other tests may be up that can be written to
        with testbeds.Testbed.up(spec) as up:
            yield Bed(up, {**up.containers, PROGRAM: up.owns["mine"].container})


def bits(names: Iterable[str]) -> int:
    return sum(1 << BITS[name] for name in names)


@EVERY
def test_a_container_is_started_with_the_rights_that_it_needs_and_no_others(bed: Bed, name: str) -> None:
    seen = bed.seen(name)
    started = seen["HostConfig"]
    assert started["CapDrop"] == ["ALL"]
    assert {each.removeprefix("CAP_") for each in started["CapAdd"] or ()} == RIGHTS.get(name, set())
    assert {each.partition(":")[0] for each in started["SecurityOpt"]} == {"no-new-privileges"}, "and Docker's seccomp"
    assert not started["Privileged"]
    assert not started["Devices"]
    assert not started["PortBindings"]
    assert {started["PidMode"], started["UTSMode"], started["UsernsMode"]} == {""}
    assert started["IpcMode"] in ("private", "shareable")
    assert started["NetworkMode"] != "host"
    assert started["ReadonlyRootfs"] is (name != PROGRAM)
    assert started["PidsLimit"] > 0
    assert started["Memory"] > 0
    assert {mount["Type"] for mount in seen["Mounts"]} <= {"volume"}, "no folder of the host, and no socket of Docker"
    assert {mount["RW"] for mount in seen["Mounts"]} <= {name != PROGRAM}


@EVERY
def test_every_process_has_its_containers_rights_at_most(bed: Bed, name: str) -> None:
    processes = bed.python(name, PROCESSES)
    assert processes
    for command, user, effective, bounding, no_new_privileges, seccomp in processes:
        assert not (effective | bounding) & ~bits(RIGHTS.get(name, ())), command
        assert (no_new_privileges, seccomp) == ("1", "2"), command
        assert user != "0" or name not in BROWSERS, command


@pytest.mark.parametrize(
    ("name", "program"),
    [("server", "nginx: master"), ("server", "nginx: worker"), ("caddy", "caddy"), ("haproxy", "haproxy"),
     ("haproxy", "nginx: master"), ("haproxy", "nginx: worker"), ("nghttpd", "nghttpd")],
)  # fmt: skip
def test_a_program_that_answers_clients_has_fewer_rights_than_the_agent_beside_it(
    bed: Bed, name: str, program: str
) -> None:
    user, rights = PROGRAMS[program]
    found = [process for process in bed.python(name, PROCESSES) if process[0].startswith(program)]
    assert found
    for _, uid, effective, bounding, *_ in found:
        assert uid == user
        assert not effective & ~bits(rights)
        assert not bounding & ~bits(MASTER if program.startswith("nginx") else rights)


@HOST
@pytest.mark.parametrize("folder", ["/", "/usr/bin", "/etc", "/opt/headwind", "/var"])
def test_nothing_can_be_written_beside_the_programs(bed: Bed, name: str, folder: str) -> None:
    with pytest.raises(DockerError, match="Read-only file system"):
        docker("exec", "--user", "root", bed.all[name], "python3", "-c", WRITE, folder)


@HOST
def test_only_servers_accept_connections_and_only_on_their_ports(bed: Bed, name: str) -> None:
    """The agents are spoken to over pipes. Docker's name server and Firefox listen on the loopback."""
    ports = {port for address, port in bed.python(name, LISTENING) if not address.endswith("7F")}
    offered = {"server": {*range(443, 447), *range(8443, 8447)}, "caddy": {443, 445, 8443},
               "haproxy": {443, 445, 8443, 8445}, "nghttpd": {443}, "mine": {443}}  # fmt: skip
    assert ports == offered.get(name, set())


@pytest.fixture(scope="module")
def outside(bed: Bed) -> Iterator[list[tuple[str, int]]]:
    """Where a program listens outside the testbed: on this host, at each of its addresses and those of the bridges."""
    listed = subprocess.run(["ip", "-json", "-4", "address"], capture_output=True, text=True, check=True).stdout
    here = [each["local"] for link in json.loads(listed) for each in link["addr_info"] if each["scope"] == "global"]
    bridges = [bed.up.addresses.host(side, 1) for side in ("client", "server")]
    with socket.create_server(("0.0.0.0", 0)) as listener:  # noqa: S104 - reachable from wherever a way leads here
        assert here
        yield [(address, listener.getsockname()[1]) for address in dict.fromkeys((*here, *bridges))]


@HOST
def test_a_container_reaches_its_testbed_and_nothing_else(bed: Bed, name: str, outside: list[tuple[str, int]]) -> None:
    server = bed.up.path().server_ip
    tried = json.dumps([*outside, (server, 443)])
    assert bed.python(name, REACH, tried) == [server]
    with pytest.raises(DockerError, match="gaierror"):
        docker("exec", "--env", "RES_OPTIONS=timeout:1 attempts:1", bed.all[name], "python3", "-c", LOOK_UP)


@pytest.mark.parametrize("workload", [H2load("few", 10, 1, 1), Ttfb("first", "/")], ids=str)
def test_a_trial_is_captured_without_a_root_that_can_be_written_to(bed: Bed, workload: Workload) -> None:
    trial = Trial(Block(Condition(Profile("clean"), workload), 0, (H3,), dict.fromkeys(Direction, 7)), 0, H3)
    capture = Capture(trial)
    result = run_trial(bed.up.path(), trial, TrialRules(60.0), capture=capture)
    assert result.outcome in (Outcome.OK, Outcome.INVALID), result.reason
    assert {KEYS, "client.pcapng", "server.pcapng"} <= {*capture.files}
    assert any(name.startswith("qlog/") for name in capture.files)


@pytest.fixture(scope="module")
def used(bed: Bed) -> Bed:
    """The testbed after a trial with many streams at each server, and one with a page in each browser."""
    heavy = Condition(Profile("clean"), H2load("heavy", 100, 40, 10, path="/1m"))
    for server in SERVERS.values():
        arm = replace(H2, server=server)
        trial = Trial(Block(heavy, 0, (arm,), dict.fromkeys(Direction, 7)), 0, arm)
        result = run_trial(bed.up.path(server.name), trial, TrialRules(60.0))
        assert result.outcome in (Outcome.OK, Outcome.INVALID), result.reason
    for browser in BROWSERS:
        assert page_over(bed.up.path(), H2, replace(PAGE, browser=browser)).outcome is Outcome.OK
    return bed


@EVERY
def test_limits_are_several_times_what_a_trial_needs_so_they_change_no_result(used: Bed, name: str) -> None:
    most_bytes, refused, processes, refused_processes = used.python(name, USE)
    started = used.seen(name)["HostConfig"]
    assert most_bytes < started["Memory"] / 2
    assert processes < started["PidsLimit"] / 2
    assert (refused, refused_processes) == (0, 0)
