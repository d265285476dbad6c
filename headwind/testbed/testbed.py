"""The testbed: three containers and two networks, up for as long as a `with` block."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headwind.arm import CUBIC, Congestion
from headwind.clock import CLOCK, Clock
from headwind.format import counted
from headwind.proof.evidence import OUTSIDE, Fingerprint
from headwind.testbed.addresses import Addresses, pick_addresses
from headwind.testbed.agent import Agent, AgentDied, AgentError, Request
from headwind.testbed.docker import Docker, DockerError, Say, compose, docker, python_in
from headwind.testbed.engine import TURNS, UML, Choice, chosen, wants_uml
from headwind.testbed.far_ends import on_this_host
from headwind.testbed.operations import FAR_ENDS, FINGERPRINT, HELLO, PROBE, SETUP, Operation
from headwind.testbed.owner import is_alive, this_lab
from impair.fingerprint import interfaces
from impair.messages import Hello
from impair.profile import Profile

__all__ = [
    "Addresses",
    "Agent",
    "AgentDied",
    "AgentError",
    "Testbed",
    "other_labs",
    "projects",
    "remove_project",
    "sweep",
]

T = TypeVar("T")
LABEL = "headwind.project"
OWNER_LABEL = "headwind.owner"
HERE = "this host"
TEARDOWN_S = 30.0  # for each call of docker while a testbed is taken down; removing three containers takes 1 s
START_TIMEOUT_S = 30.0  # of an agent; the user-mode kernel boots in about 2 s


def _labelled(kind: str, docker: Docker) -> list[tuple[str, str, str]]:
    """(id, project, owner) of every container or network that a lab made."""
    listing = ("ps", "-a") if kind == "container" else ("network", "ls")
    columns = "\t".join(("{{.ID}}", f'{{{{.Label "{LABEL}"}}}}', f'{{{{.Label "{OWNER_LABEL}"}}}}'))
    found = docker(*listing, "--no-trunc", "--filter", f"label={LABEL}", "--format", columns, silence_s=TEARDOWN_S)
    return [(item, project, owner) for item, project, owner in (line.split("\t") for line in found.splitlines())]


def remove_project(project: str, docker: Docker = docker) -> None:
    """Remove every container and network of one testbed, at once and whatever state they are in.

    Raises DockerError if Docker does not answer in time.
    """
    try:
        for kind, remove in (("container", ("rm", "-f", "-v")), ("network", ("network", "rm"))):
            ours = [identity for identity, name, _ in _labelled(kind, docker) if name == project]
            if ours:
                docker(*remove, *ours, check=False, silence_s=TEARDOWN_S)
    except DockerError as error:
        raise DockerError(
            f"testbed {project} may be left; `.venv/bin/python lab.py down` removes it: {error}"
        ) from error


def projects(docker: Docker = docker) -> dict[str, bool]:
    """Every testbed that exists, and whether its lab still runs."""
    kinds = ("container", "network")
    return {project: is_alive(owner) for kind in kinds for _, project, owner in _labelled(kind, docker)}


def sweep(say: Say, include_living: bool = False, docker: Docker = docker) -> int:
    """Remove the testbeds whose lab no longer runs (all of them with `include_living`); returns how many went."""
    found = projects(docker)
    gone = [project for project, alive in found.items() if include_living or not alive]
    for project in gone:
        say(f"removing {project}, left by an earlier run")
        remove_project(project, docker)
    if living := sorted(found.keys() - set(gone)):
        verb = "stays" if len(living) == 1 else "stay"
        say(f"{counted(len(living), 'testbed')} of labs that are running {verb} up: {', '.join(living)}")
    return len(gone)


def other_labs(docker: Docker = docker) -> dict[str, int]:
    """How many testbeds other labs have up now, by their owners; labs that no longer run do not count."""
    owners = {project: owner for _, project, owner in _labelled("container", docker)}.values()
    return dict(Counter(owner for owner in owners if owner != this_lab() and is_alive(owner)))


def taken_subnets(docker: Docker = docker) -> list[str]:
    """Every subnet that Docker or the host's routing table uses."""
    identities = docker("network", "ls", "-q").split()
    networks = json.loads(docker("network", "inspect", *identities, check=False) or "[]")
    subnets = [pool["Subnet"] for net in networks for pool in net["IPAM"]["Config"] or [] if "Subnet" in pool]
    if shutil.which("ip"):
        routes = subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, text=True, check=False).stdout
        subnets += [route["dst"] for route in json.loads(routes or "[]") if route["dst"] != "default"]
    return subnets


@dataclass(slots=True)
class Testbed:
    """client -- router -- server, joined and ready. Made by `Testbed.up` (or by a test, with agents of its own)."""

    client: Agent
    server: Agent
    router: Agent
    addresses: Addresses
    engine: str
    facts: dict[str, Any] = field(default_factory=dict)  # what the agents said of themselves when they joined
    containers: dict[str, str] = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)  # of all hosts, once joined
    far_ends: tuple[int, ...] = ()  # of the containers' interfaces, on this very machine; empty if Docker is elsewhere
    name: str = ""  # its containers' and networks' project
    outside: Agent | None = None  # in the router's container, where the router is a kernel of its own inside it
    congestion: Congestion = CUBIC  # of every arm that asks for no other
    tcp: str = CUBIC.tcp  # the congestion control that both endpoints' routes have now
    clock: Clock = CLOCK  # by which its trials are timed

    @property
    def agents(self) -> tuple[Agent, Agent, Agent]:
        """The three agents; a call that waits on one watches the others."""
        return self.client, self.server, self.router

    def netem_seeds(self, wanted: Mapping[str, int]) -> Mapping[str, int | None]:
        """What netem is asked for, of the seeds that a block has: nothing where the router's kernel cannot be seeded.

        netem then draws the kernel's own random numbers, and a trial cannot be repeated packet by packet.
        """
        can_seed = self.facts.get("router", {}).get("netem_seed", True)
        return wanted if can_seed else dict.fromkeys(wanted)

    def ask_endpoints(self, op: Operation[T], /, **arguments: Any) -> tuple[T, T]:
        """Ask client and server for the same thing at once; the client's answer and the server's."""
        client, server = self.client.start(op, **arguments), self.server.start(op, **arguments)
        return self.client.wait(client, 10.0, self.agents), self.server.wait(server, 10.0, self.agents)

    @property
    def hosts(self) -> dict[str, Agent]:
        """Whoever can look at a host, by the host's name: what packets pass through on their way."""
        outside = {OUTSIDE: self.outside} if self.outside else {}
        return {"client": self.client, "server": self.server, "router": self.router, **outside}

    def ask_hosts(self, op: Operation[T], /, *but: str) -> dict[str, T]:
        """Ask all hosts but some for the same thing at once; their answers by host."""
        return self.answers(self.start_on_hosts(op, *but))

    def start_on_hosts(self, op: Operation[T], /, *but: str) -> dict[str, Request[T]]:
        """Ask all hosts but some for the same thing; the requests, by host, that `answers` waits for."""
        return {host: agent.start(op) for host, agent in self.hosts.items() if host not in but}

    def answers(self, asked: Mapping[str, Request[T]]) -> dict[str, T]:
        """What the hosts answer to the requests of `start_on_hosts`."""
        return {host: self.hosts[host].wait(request, 10.0, self.agents) for host, request in asked.items()}

    def read_fingerprints(self) -> dict[str, Fingerprint]:
        """What decides which way packets take on each of the hosts (impair/fingerprint.py)."""
        asked = self.start_on_hosts(FINGERPRINT)
        here = {HERE: interfaces(self.far_ends)} if self.far_ends else {}
        return {**self.answers(asked), **here}

    @classmethod
    @contextmanager
    def up(
        cls, tag: str, congestion: Congestion, engine: str, say: Say = print, profiles: Collection[Profile] = (),
        docker: Docker = docker, compose: Docker = compose,
    ) -> Iterator[Testbed]:  # fmt: skip
        """Start the containers of images `tag`, join them through `engine` (auto, kernel, uml or plain), take all down.

        `profiles` are the networks that the engine must be able to make. `plain` forwards without netem and is for
        benchmarks. Raises HeadwindError; whatever happens, nothing stays.
        """
        project = f"headwind-{os.getpid()}-{random.SystemRandom().randrange(16**6):06x}"
        try:
            with ExitStack() as stack:
                logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwind-")))
                addresses = _start_containers(project, tag, docker, compose)
                containers = {name: _container(project, name, docker) for name in ("client", "server", "impair")}
                try:
                    testbed = _start_agents(stack, containers, addresses, engine, logs, say, profiles)
                    testbed.name = project
                    testbed.join(congestion)
                except AgentDied as error:  # an agent that answers says by itself what is wrong
                    raise AgentDied("\n".join([str(error), *_last_lines(containers, docker)])) from error
                yield testbed
        finally:
            remove_project(project, docker)

    def join(self, congestion: Congestion) -> None:
        """Connect both endpoints through the router, and keep what everybody said of themselves."""
        client, server = self.ask_endpoints(HELLO)
        neighbours = {"client": _neighbour(client), "server": _neighbour(server)}
        gateways = {f"{side}_gateway": self.addresses.gateway(side) for side in neighbours}
        router = self.router.call(SETUP, **gateways, neighbours=neighbours)
        joined = {}
        for side, peer, agent in (("client", "server", self.client), ("server", "client", self.server)):
            joined[side] = agent.call(
                "join", gateway=self.addresses.host(side, 254), gateway_mac=router.ports[side].mac,
                peer_network=getattr(self.addresses, f"{peer}_subnet"), peer_ip=neighbours[peer]["ip"],
                congestion=congestion.tcp,
            )  # fmt: skip
        self.congestion, self.tcp = congestion, congestion.tcp
        self.facts |= {"client": asdict(client) | joined["client"], "server": asdict(server) | joined["server"]}
        self.facts["router"] = asdict(router)
        self.facts |= {"nginx": self.server.call("info"), "h2load": self.client.call("info")}
        inside = ("router",) if self.outside else ()
        self.far_ends = on_this_host(self.ask_hosts(FAR_ENDS, *inside).values())
        self.fingerprints = self.read_fingerprints()


def _neighbour(hello: Hello) -> dict[str, str]:
    return {"ip": hello.ip, "mac": hello.mac}


def _start_containers(project: str, tag: str, docker: Docker, compose: Docker) -> Addresses:
    """`compose up` with free subnets; another pair is tried when somebody else was quicker."""
    rng = random.SystemRandom()
    taken, failure = taken_subnets(docker), DockerError("no attempt was made")
    for _ in range(4):
        addresses = pick_addresses(rng, taken)
        try:
            environment = _compose_environment(project, tag, addresses)
            compose("-p", project, "-f", "compose.yaml", "up", "-d", "--no-build", environment=environment)
            return addresses
        except DockerError as error:
            remove_project(project, docker)
            if "overlap" not in str(error).lower():
                raise
            failure = error
    raise failure


def _compose_environment(project: str, tag: str, addresses: Addresses) -> dict[str, str]:
    names = {"HEADWIND_PROJECT": project, "HEADWIND_OWNER": this_lab(), "HEADWIND_TAG": tag}
    for side in ("client", "server"):
        subnet = addresses.client_subnet if side == "client" else addresses.server_subnet
        names[f"HEADWIND_{side.upper()}_SUBNET"] = subnet
        names[f"HEADWIND_{side.upper()}_ADDRESS"] = addresses.host(side, 10)
        names[f"HEADWIND_ROUTER_{side.upper()}_ADDRESS"] = addresses.host(side, 253)
        names[f"HEADWIND_{side.upper()}_BRIDGE_ADDRESS"] = addresses.host(side, 1)
    return names


def _container(project: str, service: str, docker: Docker) -> str:
    found = docker("ps", "-aq", "--filter", f"label={LABEL}={project}",
                   "--filter", f"label=com.docker.compose.service={service}").split()  # fmt: skip
    if len(found) != 1:
        raise DockerError(f"{len(found)} containers of service {service} in {project}: there should be one")
    return found[0]


def _last_lines(containers: Mapping[str, str], docker: Docker) -> Iterator[str]:
    """What the containers' own programs printed last: why nginx ended is in no agent's output."""
    for service, container in containers.items():
        told = docker("logs", "--tail", "8", container, check=False, stream=lambda _: None, silence_s=TEARDOWN_S)
        yield from (f"  log of {service}: {line}" for line in told.splitlines())


def _start_agents(
    stack: ExitStack, containers: dict[str, str], addresses: Addresses, engine: str, logs: Path, say: Say,
    profiles: Collection[Profile],
) -> Testbed:  # fmt: skip
    def start(name: str, service: str, *command: str) -> Agent:
        agent = Agent(name, python_in(containers[service], *command), logs / f"{name}.log")
        stack.callback(agent.close)
        return agent

    subnets = ("--client-subnet", addresses.client_subnet, "--server-subnet", addresses.server_subnet)

    def start_router(module: str) -> Agent:
        return start("router", "impair", module, *subnets, *(("--turn", str(next(TURNS))) if module == UML else ()))

    client = start("client", "client", "client.agent")
    server = start("server", "server", "nginx.agent")
    router = start_router(UML if engine == "uml" else "impair.router.agent")
    for agent in (client, server, router):
        agent.wait_ready(START_TIMEOUT_S)
    choice = Choice(engine, f"engine {engine}, as asked")
    if engine in ("auto", "kernel"):
        router, choice = _choose(engine, router, lambda: start_router(UML), profiles)
        if not choice.is_plain:
            say(choice.reason)
    outside = start(OUTSIDE, "impair", "impair.router.outside", *subnets) if choice.engine == "uml" else None
    if outside:
        outside.wait_ready(START_TIMEOUT_S)
    facts = {"choice": asdict(choice)}
    return Testbed(client, server, router, addresses, choice.engine, facts, containers, outside=outside)


def _choose(
    asked: str, router: Agent, start_uml: Callable[[], Agent], profiles: Collection[Profile]
) -> tuple[Agent, Choice]:
    """The router's agent on the engine of choice; `router` is the one of the host's kernel. Raises EngineError."""
    ability, refusal = router.call(PROBE, 30.0, profiles=list(profiles)), None
    if asked == "auto" and wants_uml(ability, profiles):
        uml = start_uml()
        try:
            uml.wait_ready(START_TIMEOUT_S)
        except (AgentError, AgentDied) as error:
            refusal = str(error).splitlines()[0]
            uml.close()
        else:
            router.close()
            router = uml
    return router, chosen(asked, ability, profiles, refusal)
