"""The testbed: client, router and servers in containers, up for as long as a `with` block."""

from __future__ import annotations

import os
import pathlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from headwind.arm import CUBIC, Congestion
from headwind.clock import CLOCK, Clock
from headwind.engines import AUTO, ENGINES, KERNEL, UML, Engine
from headwind.proof.evidence import OUTSIDE
from headwind.servers import FURTHER, OWN, Server
from headwind.site import Site
from headwind.testbed.addresses import Addresses
from headwind.testbed.agent import Agent, AgentDied, AgentError, ask_all
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.containers import containers_of, last_lines, remove_project, start_containers
from headwind.testbed.docker import Docker, Say, compose, docker, python_in
from headwind.testbed.engine_choice import TURNS, Choice, chosen, wants_uml
from headwind.testbed.images import reference
from headwind.testbed.operations import FAR_ENDS, HELLO, PROBE, SETUP
from headwind.testbed.own_server import AGENT, OwnImage, OwnServer, agent_arguments, start_host
from headwind.testbed.path import NGINX, Path
from headwind.testbed.scratch import scratch
from headwind.testbed.site_copy import copy_site
from headwind.testbed.veth_peers import on_this_host
from impair.profile import Profile

FIRST_OWN = 20  # last number of the address of the first of the user's servers
START_TIMEOUT_S = 30.0  # of an agent; the user-mode kernel boots in about 2 s


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A server: its service in compose.yaml, and the module of its agent."""

    service: str
    agent: str


SERVERS = {  # by name
    NGINX: ServerProgram("server", "nginx.agent"),
    **{name: ServerProgram(name, f"servers.{name}.agent") for name in FURTHER},
}


@dataclass(slots=True)
class Testbed:
    """A client, a router and servers, joined and ready. Made by `Testbed.up` (or by a test, with its own agents).

    The servers, by name, are hosts of one network, each with its own address.
    """

    client: Agent
    servers: Mapping[str, Agent]
    router: Agent
    addresses: Addresses
    engine: Engine
    facts: dict[str, Any] = field(default_factory=dict)  # the agents' reports when they joined
    containers: dict[str, str] = field(default_factory=dict)  # ids, by service
    name: str = ""  # its containers' and networks' project
    outside: Agent | None = None  # in the router's container, if the router is a user-mode kernel inside it
    clock: Clock = CLOCK  # times its trials
    paths: dict[str, Path] = field(default_factory=dict)  # by server, once joined
    owns: dict[str, OwnServer] = field(default_factory=dict)  # the programs of the user's servers, by name
    browsers: Mapping[str, Agent] = field(default_factory=dict)  # next to the client, by name
    content: Site | None = None  # of the user, which all servers have

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents of client, browsers, servers and router."""
        return self.client, *self.browsers.values(), *self.servers.values(), self.router

    def path(self, server: str = "") -> Path:
        """The path to one of the servers, or to the first one, with the state of its hosts: always the same object."""
        return self.paths[server or next(iter(self.paths))]

    @classmethod
    @contextmanager
    def up(
        cls, spec: BedSpec, say: Say = print, docker: Docker = docker, compose: Docker = compose
    ) -> Iterator[Testbed]:
        """Start the containers and agents, join them, and take everything down at the end.

        Raises HeadwindError. Nothing stays in any case.
        """
        project = f"headwind-{os.getpid()}-{random.SystemRandom().randrange(16**6):06x}"
        try:
            with ExitStack() as stack:
                logs = stack.enter_context(scratch())
                own = [server for server in spec.servers if server.program]
                shipped = (service_of(server.name) for server in spec.servers if not server.program)
                services = ("client", "impair", *shipped, *spec.browsers)
                addresses = start_containers(project, spec.tags, services, docker, compose)
                containers = containers_of(project, services, docker)
                for number, server in enumerate(own, start=FIRST_OWN):
                    address, image = addresses.host("server", number), reference(OWN, spec.tags[OWN])
                    containers[server.name] = start_host(project, f"{project}_server-net", address, image, docker)
                try:
                    if spec.content:
                        for server in spec.servers:
                            container = containers[service_of(server.name)]
                            copy_site(spec.content, container, is_own=server.program is not None, docker=docker)
                    testbed = _start_agents(stack, containers, addresses, spec, logs, say)
                    testbed.name, testbed.content = project, spec.content.site if spec.content else None
                    testbed.start_programs(own, spec.own_images, docker)
                    testbed.join(spec.congestion)
                except AgentDied as error:  # an agent that answers reports the error itself
                    raise AgentDied("\n".join([str(error), *last_lines(containers, docker)])) from error
                yield testbed
        finally:
            remove_project(project, docker)

    def start_programs(self, servers: Iterable[Server], images: Mapping[str, OwnImage], docker: Docker) -> None:
        """Start the programs of the user's servers, next to their hosts. Raises OwnServerError."""
        for server in servers:
            host, agent = self.containers[server.name], self.servers[server.name]
            self.owns[server.name] = OwnServer.start(self.name, host, server, images[server.name], agent, docker)

    def join(self, congestion: Congestion) -> None:
        """Connect all endpoints through the router, keep the reports of all hosts, and make the paths."""
        endpoints = {"client": self.client, **self.servers}
        hello = ask_all(endpoints, HELLO)
        sides = {"client": ["client"], "server": [*self.servers]}
        neighbours = {side: [{"ip": hello[n].ip, "mac": hello[n].mac} for n in names] for side, names in sides.items()}
        gateways = {f"{side}_gateway": self.addresses.gateway(side) for side in sides}
        router = self.router.call(SETUP, **gateways, neighbours=neighbours)
        self.facts["router"] = asdict(router)
        for name, agent in endpoints.items():
            side, peer = ("client", "server") if name == "client" else ("server", "client")
            joined = agent.call(
                "join", gateway=self.addresses.host(side, 254), gateway_mac=router.ports[side].mac,
                peer_network=getattr(self.addresses, f"{peer}_subnet"), peer_ip=neighbours[peer][0]["ip"],
                congestion=congestion.tcp,
            )  # fmt: skip
            self.facts[agent.name] = asdict(hello[name]) | joined
        self.facts |= {name: server.call("info") for name, server in self.servers.items()}
        self.facts["h2load"] = self.client.call("info")
        self.facts |= {name: browser.call("info") for name, browser in self.browsers.items()}
        self.make_paths(
            {name: hello[name].ip for name in self.servers}, congestion,
            has_seeds=router.netem_seed, has_counters=router.netem_counters,
        )  # fmt: skip
        inside = ("router",) if self.outside else ()
        for path in self.paths.values():
            path.veth_peers = on_this_host(path.ask_hosts(FAR_ENDS, *inside).values())
            path.fingerprints = path.read_fingerprints()

    def make_paths(
        self, ips: Mapping[str, str], congestion: Congestion = CUBIC, *, has_seeds: bool = True,
        has_counters: bool = True,
    ) -> None:  # fmt: skip
        """Make the path to each server, given their addresses by name; the other parameters are as in Path."""
        tcp_of = dict.fromkeys(("client", *self.servers), congestion.tcp)
        in_use = dict[str, Agent]()
        for name, server in self.servers.items():
            services = ("client", service_of(name), "impair", *self.browsers)
            self.paths[name] = Path(
                self.client, server, self.router, self.addresses, ips[name], self.engine, name, self.outside,
                {service: self.containers[service] for service in services if service in self.containers},
                congestion=congestion, tcp_of=tcp_of, in_use=in_use, owns=self.owns, clock=self.clock,
                has_seeds=has_seeds, has_counters=has_counters, browsers=self.browsers, content=self.content,
            )  # fmt: skip


def service_of(server: str) -> str:
    """The name of a server's host among a testbed's containers; for a shipped server that of its service."""
    return SERVERS[server].service if server in SERVERS else server


def _agent_of(server: Server, spec: BedSpec) -> tuple[str, ...]:
    """The module of a server's agent, and its arguments."""
    if server.program:
        return AGENT, *agent_arguments(server, spec.own_images[server.name])
    return (SERVERS[server.name].agent,)


def _start_agents(
    stack: ExitStack, containers: dict[str, str], addresses: Addresses, spec: BedSpec, logs: pathlib.Path, say: Say
) -> Testbed:
    def start(name: str, service: str, *command: str) -> Agent:
        agent = Agent(name, python_in(containers[service], *command), logs / f"{name}.log")
        stack.callback(agent.close)
        return agent

    subnets = ("--client-subnet", addresses.client_subnet, "--server-subnet", addresses.server_subnet)

    def start_router(engine: Engine) -> Agent:
        turn = ("--turn", str(next(TURNS))) if engine.is_guest else ()
        return start("router", "impair", engine.agent, *subnets, *turn)

    client = start("client", "client", "client.agent")
    servers = {
        server.name: start(service_of(server.name), service_of(server.name), *_agent_of(server, spec))
        for server in spec.servers
    }
    browsers = {name: start(name, name, f"browsers.{name}.agent") for name in spec.browsers}
    engine = KERNEL if spec.engine == AUTO else ENGINES[spec.engine]
    router = start_router(engine)
    for agent in (client, *servers.values(), *browsers.values(), router):
        agent.wait_ready(START_TIMEOUT_S)
    choice = Choice(engine, f"engine {engine.name}, as asked")
    if engine is KERNEL:
        router, choice = _choose(spec.engine, router, lambda: start_router(UML), spec.profiles)
        if not choice.is_plain:
            say(choice.text)
    outside = start(OUTSIDE, "impair", "impair.router.outside", *subnets) if choice.engine.is_guest else None
    if outside:
        outside.wait_ready(START_TIMEOUT_S)
    facts = {"choice": {**asdict(choice), "engine": choice.engine.name}}
    return Testbed(
        client, servers, router, addresses, choice.engine, facts, containers, outside=outside, browsers=browsers
    )


def _choose(
    asked: str, router: Agent, start_uml: Callable[[], Agent], profiles: Collection[Profile]
) -> tuple[Agent, Choice]:
    """The router's agent on the chosen engine; `router` is the host kernel's. Raises EngineError."""
    ability, refusal = router.call(PROBE, 30.0, profiles=list(profiles)), None
    if asked == AUTO and wants_uml(ability, profiles):
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
