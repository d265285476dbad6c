"""The path of one trial: a client, a server, and the router between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headwind.arm import CUBIC, Congestion
from headwind.clock import CLOCK, Clock
from headwind.engines import Engine
from headwind.metric import Workload
from headwind.proof.evidence import OUTSIDE, Fingerprint
from headwind.settings import Settings
from headwind.site import Site
from headwind.testbed.addresses import Addresses
from headwind.testbed.agent import Agent, AgentDied, Request
from headwind.testbed.operations import APPLY, FINGERPRINT, Operation
from headwind.testbed.own_server import OwnServer
from impair.fingerprint import interfaces
from impair.messages import NetemState
from impair.profile import Direction, Profile

T = TypeVar("T")
HERE = "this host"
NGINX = "nginx"


@dataclass(slots=True)
class Path:
    """client -- router -- server: agents, addresses, and the expected state of its hosts.

    Hosts are named by their roles: "client", "server", "router", OUTSIDE and HERE. Made by `Testbed.path`.
    """

    client: Agent
    server: Agent
    router: Agent
    addresses: Addresses
    server_ip: str
    engine: Engine
    server_name: str = NGINX
    outside: Agent | None = None  # in the router's container, if the router is a user-mode kernel inside it
    containers: Mapping[str, str] = field(default_factory=dict)  # ids, by service
    has_seeds: bool = True  # the router's netem can be seeded
    has_counters: bool = True  # the router's netem counts its decisions
    veth_peers: tuple[int, ...] = ()  # of the containers' interfaces, on this machine; empty if Docker is elsewhere
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)  # of all hosts, once joined
    congestion: Congestion = CUBIC  # of every arm that does not set its own
    tcp_of: dict[str, str] = field(default_factory=dict)  # see `tcp`; by host, shared by all paths of a testbed
    # Servers that may still send to the client of their last trial, by name; shared by all paths of a testbed.
    in_use: dict[str, Agent] = field(default_factory=dict)
    owns: Mapping[str, OwnServer] = field(default_factory=dict)  # the user's own servers of the testbed, by name
    ceiling: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # trial/calibration.py, by direction
    clock: Clock = CLOCK  # times its trials
    browsers: Mapping[str, Agent] = field(default_factory=dict)  # next to the client, by name
    content: Site | None = None  # of the user, which all servers have

    @property
    def server_container(self) -> str:
        """The container of a shipped server; empty for a user's own, whose host only has volumes."""
        names = self.containers.keys() - {"client", "impair", *self.browsers}
        return "" if self.own else next((self.containers[name] for name in names), "")

    @property
    def agents(self) -> tuple[Agent, Agent, Agent]:
        """The three agents; a call that waits for one watches the others."""
        return self.client, self.server, self.router

    def runner(self, browser: str) -> Agent:
        """The agent that runs a workload: a browser's, or without a name the client's. Raises AgentDied without it."""
        if not browser:
            return self.client
        if browser not in self.browsers:
            raise AgentDied(f"the testbed was started without {browser}")
        return self.browsers[browser]

    @property
    def own(self) -> OwnServer | None:
        """The server, if it is the user's own: its program runs next to the host of `server`."""
        return self.owns.get(self.server_name)

    def port(self, settings: Settings, workload: Workload | None = None) -> int:
        """The port at which the server serves a workload with these settings; a user's own server has only one."""
        if self.own:
            return self.own.program.port
        if workload is None:
            return settings.port()
        return settings.port(resumes=workload.resumes, discovers=workload.discovers)

    @property
    def hosts(self) -> dict[str, Agent]:
        """The agents that can examine a host, by the host's name, along the path of the packets."""
        outside = {OUTSIDE: self.outside} if self.outside else {}
        return {"client": self.client, "server": self.server, "router": self.router, **outside}

    @property
    def ips(self) -> dict[str, str]:
        """The addresses of both endpoints."""
        return {"client": self.addresses.host("client", 10), "server": self.server_ip}

    @property
    def tcp(self) -> str:
        """The congestion control of TCP that both endpoints' routes have now; empty if unknown or different."""
        client, server = self.tcp_of.get("client", ""), self.tcp_of.get(self.server_name, "")
        return client if client == server else ""

    @tcp.setter
    def tcp(self, name: str) -> None:
        self.tcp_of |= {"client": name, self.server_name: name}

    def apply(self, profile: Profile, seeds: Mapping[Direction, int]) -> dict[Direction, NetemState]:
        """Give the router a network; return the read-back of each direction, none if the router only forwards.

        If the router's kernel cannot be seeded, netem draws the kernel's own random numbers, and a trial cannot be
        repeated packet by packet.
        """
        if not self.engine.netem:
            return {}
        usable = {direction.value: seed if self.has_seeds else None for direction, seed in seeds.items()}
        return self.router.call(APPLY, profile=profile, seeds=usable)

    def clear(self) -> None:
        """Remove netem, if there is one."""
        self.finish_clear(self.start_clear())

    def start_clear(self) -> Request[Any] | None:
        """Start to remove netem; the request, for `finish_clear`."""
        return self.router.start("clear") if self.engine.netem else None

    def finish_clear(self, asked: Request[Any] | None) -> None:
        """Wait until netem is removed."""
        if asked:
            self.router.wait(asked, 10.0)

    def ask_endpoints(self, op: Operation[T], /, **arguments: Any) -> tuple[T, T]:
        """Call an operation on client and server in parallel; the client's answer and the server's."""
        client, server = self.client.start(op, **arguments), self.server.start(op, **arguments)
        return self.client.wait(client, 10.0, self.agents), self.server.wait(server, 10.0, self.agents)

    def ask_hosts(self, op: Operation[T], /, *but: str) -> dict[str, T]:
        """Call an operation on all hosts but some in parallel; their answers by host."""
        return self.answers(self.start_on_hosts(op, *but))

    def start_on_hosts(self, op: Operation[T], /, *but: str) -> dict[str, Request[T]]:
        """Start an operation on all hosts but some; the requests, by host, for `answers`."""
        return {host: agent.start(op) for host, agent in self.hosts.items() if host not in but}

    def answers(self, asked: Mapping[str, Request[T]]) -> dict[str, T]:
        """Wait for the answers to the requests of `start_on_hosts`."""
        return {host: self.hosts[host].wait(request, 10.0, self.agents) for host, request in asked.items()}

    def read_fingerprints(self) -> dict[str, Fingerprint]:
        """The network state of each host (impair/fingerprint.py)."""
        return self.finish_fingerprints(self.start_on_hosts(FINGERPRINT))

    def finish_fingerprints(self, asked: Mapping[str, Request[Fingerprint]]) -> dict[str, Fingerprint]:
        """The fingerprints of the requested hosts, and of the containers' far ends."""
        here = {HERE: interfaces(self.veth_peers)} if self.veth_peers else {}
        return {**self.answers(asked), **here}

    def expected_fingerprints(self) -> dict[str, Fingerprint]:
        """The fingerprints of the start, with the congestion control that was set since."""
        return {
            host: {**topics, "congestion": self.tcp} if host in ("client", "server") and topics else topics
            for host, topics in self.fingerprints.items()
        }
