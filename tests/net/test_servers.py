"""Every shipped server: the same bytes over all protocols, plain frames, and nothing left of old connections."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from headwind import servers
from headwind.servers import FURTHER, NGINX
from headwind.settings import PORTS, Windows
from headwind.testbed.agent import Agent
from headwind.testbed.docker import docker
from headwind.testbed.images import Images
from headwind.testbed.operations import COUNTERS, FETCH, HEALTH, RUN
from servers.contract import WORKERS
from servers.objects import content, size_of
from tests.net.builds import built
from tests.net.impaired import Project, start_agent

pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.beside]  # the first test may build images

SERVERS = {NGINX.name: "nginx", **{name: f"servers/{name}" for name in FURTHER}}
NET_BIND_SERVICE, NET_ADMIN = 10, 12  # capabilities(7)
CAPABILITIES = {
    "nginx": (),
    "caddy": (NET_BIND_SERVICE, NET_ADMIN),
    "haproxy": (NET_BIND_SERVICE,),
    "nghttpd": (NET_BIND_SERVICE,),
}
PROTOCOLS = ("h1", "h2", "h3")
SPOKEN = [
    (name, protocol) for name, server in servers.SERVERS.items() for protocol in PROTOCOLS if server.speaks(protocol)
]
REQUESTS = 200
LONG_RUN_S = 4.0
UNDER_WAY_BYTES = 5_000_000
AFTERMATH_BYTES = 100_000  # acknowledgements and resets of what ended


@dataclass(frozen=True, slots=True)
class Pair:
    """A server, and a client in its network; the interfaces take UDP super-packets, which the lab's do not."""

    name: str
    container: str
    server: Agent
    client: Agent
    address: str

    def received_bytes(self) -> int:
        return self.client.call(COUNTERS).rx_bytes

    def fetched(self, protocol: str, port: int, path: str) -> str:
        """The hash of an object."""
        found = self.client.call(
            FETCH, 20.0, protocol=protocol, host=self.address, port=port, path=path, first_byte=0,
            bytes_wanted=size_of(path), timeout_s=10.0,
        )  # fmt: skip
        assert not found.error
        return found.sha256


def image(name: str, images: Images) -> str:
    """The name of the server's image, which is built if there is none."""
    if name not in images.tags:
        images = built([name])
    return images.reference(name)


@pytest.fixture(scope="module", params=SERVERS)
def pair(request: pytest.FixtureRequest, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A server of each kind, and a client."""
    name = request.param
    project = Project(f"headwind-servers-{name}-{os.getpid()}", "")
    logs = tmp_path_factory.mktemp(name)
    try:
        network = docker("network", "create", *project.labels(), project.name).strip()
        ends = {
            "server": start(project, network, image(name, images), f"/opt/headwind/{SERVERS[name]}/entrypoint.sh"),
            "client": start(project, network, images.reference("client"), "sleep", "infinity"),
        }
        with ExitStack() as stack:
            module = f"{SERVERS[name]}/agent".replace("/", ".")
            server = start_agent(stack, logs, "server", ends["server"], "-m", module)
            client = start_agent(stack, logs, "client", ends["client"], "-m", "client.agent")
            for end, hello in ((ends["server"], server.call("hello")), (ends["client"], client.call("hello"))):
                docker("exec", end, "ethtool", "-K", hello["interface"], "tso", "off", "gro", "off")
            server.call("fresh", workers=1)
            yield Pair(name, ends["server"], server, client, server.call("hello")["ip"])
    finally:
        project.remove()


def start(project: Project, network: str, image: str, *command: str) -> str:
    """A container as in compose.yaml."""
    return docker(
        "run", "--detach", "--init", "--cap-add", "NET_ADMIN", "--env", "PYTHONDONTWRITEBYTECODE=1",
        "--sysctl", "net.ipv6.conf.all.disable_ipv6=1", "--sysctl", "net.ipv4.tcp_no_metrics_save=1",
        *project.labels(), "--network", network, image, *command,
    ).split()[-1]  # fmt: skip


def test_a_server_has_what_matrices_are_checked_against(pair: Pair) -> None:
    info, known = pair.server.call("info"), servers.SERVERS[pair.name]
    assert set(info["offers"]) == known.offers
    assert info["quic_congestion"] == next(iter(known.quic_congestion), None)
    assert info["streams"].keys() == {protocol for protocol in ("h2", "h3") if known.speaks(protocol)}
    assert known.speaks("h3") == ("8443" in info["windows"])


@pytest.mark.parametrize("port", PORTS.values())
@pytest.mark.parametrize(("pair", "protocol"), SPOKEN, indirect=["pair"])
def test_every_protocol_delivers_the_same_bytes_in_plain_frames(pair: Pair, protocol: str, port: int) -> None:
    if port == PORTS[Windows.AS_SHIPPED] and not servers.SERVERS[pair.name].speaks("h3"):
        pytest.skip("it has only one port")
    before = pair.client.call(COUNTERS)
    answer = pair.client.call(
        "run", 40.0, program="h2load", protocol=protocol, host=pair.address, port=port, path="/10k", threads=1,
        requests=REQUESTS, connections=10, streams=10, timeout_s=30.0,
    )  # fmt: skip
    run = pair.client.understood(RUN, answer)
    assert (run.exit_code, answer["totals"]["succeeded"]) == (0, REQUESTS)
    assert run.metrics["bytes_body"] == REQUESTS * (10 << 10)
    after = pair.client.call(COUNTERS)
    assert after.rx_bytes - before.rx_bytes > REQUESTS * (10 << 10)
    assert after.oversize_frames == before.oversize_frames, "a datagram of the server is several frames"
    pair.server.call("provide", path="/bytes/15000")
    for path in ("/", "/10k", "/1m", "/bytes/15000"):
        assert pair.fetched(protocol, port, path) == hashlib.sha256(content(path) or b"").hexdigest()


@pytest.mark.parametrize(("pair", "protocol"), SPOKEN, indirect=["pair"])
def test_a_fresh_server_ends_every_connection_and_answers_at_once(pair: Pair, protocol: str) -> None:
    old, before = pair.server.call(HEALTH), pair.received_bytes()
    running = pair.client.start(
        "run", program="h2load", protocol=protocol, host=pair.address, port=443, path="/100m", threads=1,
        requests=100, connections=1, streams=1, timeout_s=LONG_RUN_S,
    )  # fmt: skip
    # The client's agent is busy, so its frames are counted by the interface of the server.
    deadline = time.monotonic() + LONG_RUN_S
    sent = pair.server.call(COUNTERS).tx_bytes
    while pair.server.call(COUNTERS).tx_bytes - sent < UNDER_WAY_BYTES:
        assert time.monotonic() < deadline, "the client does not fetch"
        time.sleep(0.02)
    pair.server.call("fresh")
    time.sleep(0.2)
    sent = pair.server.call(COUNTERS).tx_bytes
    time.sleep(0.5)
    assert pair.server.call(COUNTERS).tx_bytes - sent < AFTERMATH_BYTES, "the old connection is still served"
    assert pair.client.wait(running, LONG_RUN_S + 10)["totals"]["succeeded"] < 100
    assert pair.received_bytes() > before
    assert not set(pair.server.call(HEALTH).workers) & set(old.workers)
    assert pair.fetched(protocol, 443, "/1k") == hashlib.sha256(content("/1k") or b"").hexdigest()


def test_the_server_answers_for_its_identity(pair: Pair) -> None:
    info = pair.server.call("info")
    assert info["name"] == pair.name
    assert info["version"][0].isdigit()
    assert info["quic_congestion"] in ("cubic", "newreno", "bbr", None)
    assert WORKERS in info["offers"]
    for port in info["windows"]:
        assert bool(pair.server.call("windows", port=int(port))["udp_rcvbuf_bytes"]) == bool(info["quic_congestion"])
    health = pair.server.call(HEALTH)
    assert pair.server.call(HEALTH) == health
    assert len(health.workers) == info["workers"] == 1
    assert health.memory_bytes
    assert 10**6 < health.memory_bytes < 10**9
    assert pair.server.call("log") == ""


def test_the_processes_that_answer_have_only_the_capabilities_that_they_need(pair: Pair) -> None:
    for process in set(pair.server.call(HEALTH).workers):
        status = docker("exec", pair.container, "cat", f"/proc/{process}/status")
        effective = int(re.findall(r"^CapEff:\s+(\S+)$", status, re.MULTILINE)[0], 16)
        assert effective == sum(1 << bit for bit in CAPABILITIES[pair.name])


def test_a_server_uses_as_many_cpus_as_it_was_told_to(pair: Pair) -> None:
    try:
        assert len(pair.server.call("fresh", workers=2)["workers"]) == 2
    finally:
        assert len(pair.server.call("fresh", workers=1)["workers"]) == 1
