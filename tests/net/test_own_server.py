"""The user's server: an image without any code of ours, which joins a host and obeys the server contract."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from headwind.arm import PLAIN, Arm
from headwind.metric import SERVER_TIME
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.servers import NGINX, OWN, Contract, Fresh, Program, Server, own_server
from headwind.settings import TrialRules
from headwind.testbed import testbed as testbeds
from headwind.testbed.addresses import pick_addresses
from headwind.testbed.agent import Agent
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.containers import LABEL, remove_project, taken_subnets
from headwind.testbed.docker import DockerError, docker
from headwind.testbed.images import BASE, Images
from headwind.testbed.operations import COUNTERS, FETCH
from headwind.testbed.own_server import (
    AGENT,
    OwnImage,
    OwnServer,
    OwnServerError,
    agent_arguments,
    ensure_image,
    program_arguments,
    start_host,
)
from headwind.trial.start import examine_start
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Direction, Link, Loss, Profile, Rate
from servers.objects import content, path_of, size_of
from tests.net.builds import built
from tests.net.impaired import Project, start_agent
from tests.net.planting import Saboteur

pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.beside]  # the first test may build images

DOCKERFILE = f"""
FROM {BASE}
RUN apt-get update \\
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends lighttpd lighttpd-mod-openssl \\
    && rm -rf /var/lib/apt/lists/*
COPY small.conf /etc/small.conf
USER 1000
CMD ["lighttpd", "-D", "-f", "/etc/small.conf"]
"""
CONFIGURATION = """
server.modules = ("mod_openssl")
server.document-root = "/www"
server.port = 443
index-file.names = ("index.html")
ssl.engine = "enable"
ssl.pemfile = "/certs/cert.pem"
ssl.privkey = "/certs/priv.key"
"""
# A server by the convention of the QUIC interop runner: what its script is not told, it refuses.
INTEROP_DOCKERFILE = f"""
FROM {BASE}
RUN apt-get update \\
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends caddy \\
    && rm -rf /var/lib/apt/lists/*
COPY interop.json interop.sh /
CMD ["/bin/sh", "/interop.sh"]
"""
INTEROP_SCRIPT = """
[ "$ROLE" = server ] && [ "$TESTCASE" = http3 ] || exit 127
touch /logs/begun || exit 1
export XDG_DATA_HOME=/logs XDG_CONFIG_HOME=/logs QUIC_GO_DISABLE_GSO=true
exec caddy run --config /interop.json
"""
INTEROP_CONFIGURATION = {
    "admin": {"disabled": True, "config": {"persist": False}},
    "storage": {"module": "file_system", "root": "/logs"},
    "apps": {
        "tls": {"certificates": {"load_files": [{"certificate": "/certs/cert.pem", "key": "/certs/priv.key"}]}},
        "http": {"servers": {"interop": {
            "listen": [":443"], "protocols": ["h3"], "automatic_https": {"disable": True},
            "tls_connection_policies": [{"default_sni": "server", "fallback_sni": "server"}],
            "routes": [{"handle": [{"handler": "file_server", "root": "/www"}]}],
        }}},
    },
}  # fmt: skip
PROTOCOLS = ("h1", "h2")
ROOT = Path(__file__).resolve().parent.parent.parent
SHORT_S = 4.0  # for a program that never answers


@dataclass(slots=True)
class Place:
    """A network with a client and the host of a program; `run` starts the program."""

    project: Project
    host: str
    host_container: str
    client: Agent
    image: OwnImage
    logs: Path
    stack: ExitStack

    def run(self, server: Server, limit_s: float = 30.0) -> OwnServer:
        arguments = agent_arguments(server, self.image)
        agent = start_agent(self.stack, self.logs, server.name, self.host_container, "-m", AGENT, *arguments)
        return OwnServer.start(self.project.name, self.host_container, server, self.image, agent, limit_s=limit_s)

    def fetch(self, protocol: str, path: str = "/10k", port: int = 443) -> tuple[str, str | None, str]:
        """Hash, protocol and error of a fetch."""
        found = self.client.call(
            FETCH, 20.0, protocol=protocol, host=self.host, port=port, path=path, first_byte=0,
            bytes_wanted=size_of(path), timeout_s=10.0,
        )  # fmt: skip
        return found.sha256, found.alpn, found.error

    def containers(self) -> set[str]:
        found = docker("ps", "-aq", "--no-trunc", "--filter", f"label={LABEL}={self.project.name}")
        return set(found.split())


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small image of a stranger's server, without python."""
    name, folder = f"headwind-test-own:{os.getpid()}", tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "small.conf").write_text(CONFIGURATION)
    docker("build", "--tag", name, "--force-rm", str(folder))
    try:
        yield name
    finally:
        docker("image", "rm", "-f", name, check=False)


@pytest.fixture(scope="module")
def interop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of an image by the convention of the QUIC interop runner."""
    name, folder = f"headwind-test-interop:{os.getpid()}", tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(INTEROP_DOCKERFILE)
    (folder / "interop.sh").write_text(INTEROP_SCRIPT)
    (folder / "interop.json").write_text(json.dumps(INTEROP_CONFIGURATION))
    docker("build", "--tag", name, "--force-rm", str(folder))
    try:
        yield own_server("interop", Program(name, ("h3",), contract=Contract.QUIC_INTEROP))
    finally:
        docker("image", "rm", "-f", name, check=False)


@pytest.fixture
def documented(images: Images, tmp_path: Path) -> Iterator[Server]:
    """A server of the configuration in docs/servers.md, with the lab's build of nginx in place of the public image."""
    name = f"headwind-test-nginx:{os.getpid()}"
    blocks = dict(re.findall(r"```(dockerfile|nginx)\n(.*?)```", (ROOT / "docs/servers.md").read_text(), re.DOTALL))
    first, *steps = blocks["dockerfile"].splitlines()
    assert first.startswith("FROM nginx:")
    steps = [step.replace("USER nginx", "USER www-data") for step in steps]  # the user's name in Debian
    start = ["ENTRYPOINT []", 'CMD ["nginx", "-g", "daemon off;"]']  # as in the public image
    (tmp_path / "Dockerfile").write_text("\n".join([f"FROM {images.reference('nginx')}", *steps, *start]))
    (tmp_path / "nginx.conf").write_text(blocks["nginx"])
    docker("build", "--tag", name, "--force-rm", str(tmp_path))
    try:
        yield own_server("mine", Program(name, ("h1", "h2", "h3")))
    finally:
        docker("image", "rm", "-f", name, check=False)


@pytest.fixture(scope="module")
def place(images: Images, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    own = built([OWN]).reference(OWN)
    project, logs = Project(f"headwind-own-{os.getpid()}", ""), tmp_path_factory.mktemp("logs")
    addresses = pick_addresses(random.SystemRandom(), taken_subnets())
    try:
        network = project.network(addresses.server_subnet, addresses.host("server", 1))
        client = docker(
            "run", "--detach", "--init", "--cap-add", "NET_ADMIN", *project.labels(), "--network", network,
            images.reference("client"), "sleep", "infinity",
        ).split()[-1]  # fmt: skip
        address = addresses.host("server", 10)
        host = start_host(project.name, network, address, own)
        with ExitStack() as stack:
            agent = start_agent(stack, logs, "client", client, "-m", "client.agent")
            agent.call("hello")
            yield Place(project, address, host, agent, ensure_image(small(image), print), logs, stack)
    finally:
        project.remove()


def small(image: str, *command: str, protocols: tuple[str, ...] = PROTOCOLS, fresh: Fresh = Fresh.RESTART) -> Server:
    """A server of the image, perhaps with another command."""
    return own_server("small", Program(image, protocols, command, fresh=fresh, ready="/" if "h1" in protocols else ""))


def expected(path: str) -> str:
    return hashlib.sha256(content(path) or b"").hexdigest()


def test_a_strangers_server_serves_the_labs_objects_without_capabilities(place: Place, image: str) -> None:
    own = place.run(small(image))
    try:
        for protocol, alpn in (("h1", "http/1.1"), ("h2", "h2")):
            for path in ("/", "/10k", "/1m"):
                assert place.fetch(protocol, path) == (expected(path), alpn, "")
        own.agent.call("provide", path="/bytes/15000")
        assert place.fetch("h2", "/bytes/15000") == (expected("/bytes/15000"), "h2", "")
        (seen,) = json.loads(docker("inspect", own.container))
        assert seen["HostConfig"]["CapDrop"] == ["ALL"]
        assert {each["Destination"]: each["RW"] for each in seen["Mounts"]} == {"/www": False, "/certs": False}
        assert "CapEff:\t0000000000000000" in docker("exec", own.container, "cat", "/proc/1/status")
        with pytest.raises(DockerError):
            docker("exec", own.container, "sh", "-c", "command -v python3")
        with pytest.raises(DockerError, match="Read-only file system"):
            docker("exec", "--user", "0", own.container, "touch", "/www/index.html")
        assert own.agent.call("info")["quic_congestion"] is None
        assert own.agent.call("windows", port=443)["tcp_wmem_max_bytes"]
        assert not [odd for odd in own.agent.call("examine") if "unprivileged" in odd]
    finally:
        own.stop()


def test_the_documented_configuration_of_nginx_serves_every_protocol(place: Place, documented: Server) -> None:
    own = replace(place, image=ensure_image(documented, print)).run(documented)
    try:
        for protocol, alpn in (("h1", "http/1.1"), ("h2", "h2"), ("h3", "h3")):
            assert place.fetch(protocol, "/1m") == (expected("/1m"), alpn, "")
    finally:
        own.stop()


@pytest.mark.parametrize("fresh", Fresh)
def test_fresh_ends_connections_and_a_restart_everything_else(place: Place, image: str, fresh: Fresh) -> None:
    own = place.run(small(image, fresh=fresh))
    try:
        before, health = own.state(), own.health()
        assert own.health() == health
        running = place.client.start(
            "run", program="h2load", protocol="h2", host=place.host, port=443, path="/100m", threads=1, requests=200,
            connections=1, streams=1, timeout_s=SHORT_S,
        )  # fmt: skip
        sent = own.agent.call(COUNTERS).tx_bytes
        deadline = time.monotonic() + SHORT_S
        while own.agent.call(COUNTERS).tx_bytes - sent < 5_000_000:
            assert time.monotonic() < deadline, "the client does not fetch"
            time.sleep(0.02)
        own.fresh()
        sent = own.agent.call(COUNTERS).tx_bytes
        time.sleep(0.3)
        assert own.agent.call(COUNTERS).tx_bytes - sent < 100_000, "the old connection is still served"
        assert place.client.wait(running, SHORT_S + 10)["totals"]["succeeded"] < 200
        assert (own.state() == before) is (own.health() == health) is (fresh is Fresh.KEEP)
        assert place.fetch("h2") == (expected("/10k"), "h2", "")
    finally:
        own.stop()


@pytest.mark.parametrize(
    ("command", "protocols", "message"),
    [
        (
            ["sh", "-c", "echo no configuration >&2; exit 3"],
            PROTOCOLS,
            r"ended with status 3\. .*\n  no configuration$",
        ),
        (["no-such-program"], PROTOCOLS, r"did not start: .*no-such-program"),
        (["sh", "-c", "echo waiting; exec sleep 60"], PROTOCOLS, r"small does not answer h1 on port 443.*\n  waiting$"),
        ([], ("h1", "h2", "h3"), r"small does not answer QUIC on UDP port 443"),
    ],
)
def test_a_server_that_does_not_come_up_is_an_error_with_its_log(
    place: Place, image: str, command: list[str], protocols: tuple[str, ...], message: str
) -> None:
    before = place.containers()
    with pytest.raises(OwnServerError, match=rf"(?s)^server small \({image}\): .*{message}") as error:
        place.run(small(image, *command, protocols=protocols), limit_s=SHORT_S)
    assert error.value.server == "small"
    assert place.containers() == before, "its container is left"


def test_a_server_that_dies_in_the_middle_is_reported_and_started_again(place: Place, image: str) -> None:
    script = "echo begun; lighttpd -D -f /etc/small.conf & sleep 2; echo out of luck; kill -9 $!; exit 9"
    own = place.run(small(image, "sh", "-c", script))
    try:
        health, deadline = own.health(), time.monotonic() + 10
        while own.is_alive:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises(OwnServerError, match=r"(?s)ended with status 9\. .*\n  out of luck$"):
            own.health()
        assert "out of luck" in own.failure()
        own.fresh()
        assert own.failure() == ""
        assert own.health() != health
        assert place.fetch("h1") == (expected("/10k"), "http/1.1", "")
    finally:
        own.stop()


@pytest.mark.usefixtures("images")
def test_nothing_is_left_when_the_testbed_is_removed(image: str) -> None:
    project = Project(f"headwind-own-left-{os.getpid()}", "")
    addresses = pick_addresses(random.SystemRandom(), taken_subnets())
    try:
        network = project.network(addresses.server_subnet, addresses.host("server", 1))
        own = built([OWN]).reference(OWN)
        host = start_host(project.name, network, addresses.host("server", 10), own)
        server = small(image)
        program = docker(*program_arguments(project.name, host, server, ensure_image(server, print))).split()[-1]
        docker("start", program)
        volumes = docker("inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}", program).split()
        assert len(volumes) == 2
    finally:
        remove_project(project.name)
    assert project.name not in docker("ps", "-a", "--format", f'{{{{.Label "{LABEL}"}}}}').split()
    assert not set(docker("volume", "ls", "-q").split()) & set(volumes)


def test_an_image_that_is_not_there_is_an_error_with_a_way_out() -> None:
    name = "headwind-test.invalid/none:1"
    with pytest.raises(OwnServerError, match=rf"server mine: there is no image {name} here, .*docker build -t {name}"):
        ensure_image(own_server("mine", Program(name, ("h1",))), print)


RULES = TrialRules(20.0)
SMALL = H2load("small", 100, 4, 10, path=path_of(15_000))
LOSSY = Profile("lossy", both := Link(Delay(0.01), Loss(0.02)), both)
SLOW = Profile("slow", downlink=Link(rate=Rate(1_000_000)))
LONG = H2load("long", 20, 2, 2, path="/10k")  # 1.6 s at that rate
KILL_AFTER_S = 0.4


@pytest.fixture(scope="module")
def bed(images: Images, image: str, interop: Server) -> Iterator[testbeds.Testbed]:
    """nginx, two servers of the image, of which one is restarted before each trial and one is kept, and one of h3."""
    restarted, kept = (small(image, fresh=fresh) for fresh in Fresh)
    servers = NGINX, restarted, replace(kept, name="kept"), interop
    own = built([OWN])
    found = {server.name: ensure_image(server, print) for server in servers[1:]}
    with testbeds.Testbed.up(BedSpec({**images.tags, **own.tags}, servers=servers, own_images=found)) as testbed:
        for path in testbed.paths.values():
            examine_start(path)
        yield testbed
        name = testbed.name
    assert not docker("ps", "-aq", "--filter", f"label={LABEL}={name}")
    assert not docker("network", "ls", "-q", "--filter", f"label={LABEL}={name}")


def tried(
    bed: testbeds.Testbed, server: str, protocol: str, profile: Profile = LOSSY, workload: H2load = SMALL,
    action: Callable[[], None] = lambda: None,
) -> Result:  # fmt: skip
    """A trial, and `action` right before its client; again if the machine was too busy to prove its network."""
    path = bed.path(server)
    (plain,) = (arm for arm in PLAIN if arm.name == protocol)
    arm = Arm(f"{protocol}-{server}", plain.protocol, server=path.own.server if path.own else NGINX)
    trial = Trial(Block(Condition(profile, workload), 0, (arm,), dict.fromkeys(Direction, 7)), 0, arm)
    path = replace(path, client=cast("Agent", Saboteur(path.client, action)))
    for _ in range(3):
        if (result := run_trial(path, trial, RULES)).outcome is not Outcome.INVALID:
            return result
    return run_trial(path, trial, RULES)


@pytest.mark.parametrize(
    ("server", "protocol"), [*product(["small", "nginx", "kept"], PROTOCOLS), ("interop", "h3"), ("nginx", "h3")]
)
def test_a_trial_with_a_strangers_server_is_proven_like_any_other(
    bed: testbeds.Testbed, server: str, protocol: str
) -> None:
    result = tried(bed, server, protocol)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.proof.passed
    assert result.samples["content"]["sha256"] == expected(SMALL.path)
    assert bed.path(server).server_ip in result.command
    assert (SERVER_TIME.key in result.metrics) == (server == "nginx"), "the host's CPU time is not the program's"


@pytest.mark.parametrize(("server", "protocol"), [("small", "h2"), ("kept", "h2"), ("interop", "h3")])
def test_a_program_that_is_killed_in_mid_trial_is_a_lab_error_with_its_log_and_the_next_trial_is_clean(
    bed: testbeds.Testbed, server: str, protocol: str
) -> None:
    own = bed.owns[server]
    kill = threading.Timer(KILL_AFTER_S, lambda: docker("kill", own.container))
    result = tried(bed, server, protocol, SLOW, LONG, kill.start)
    assert result.outcome is Outcome.LAB_ERROR, result.reason
    assert f"server {server} ({own.program.image}): its program ended with status 137" in result.reason
    assert "of its log:\n" in result.reason
    for name in ("nginx", server):
        result = tried(bed, name, protocol)
        assert (result.outcome, result.reason) == (Outcome.OK, "")
