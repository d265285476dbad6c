"""Client, router and server under a test's control, whatever runs the router's netem."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from headwind.testbed.addresses import Addresses, pick_addresses
from headwind.testbed.agent import Agent, Request
from headwind.testbed.containers import LABEL, OWNER_LABEL, taken_subnets
from headwind.testbed.docker import docker
from headwind.testbed.operations import Operation
from headwind.testbed.owner import this_lab
from impair.profile import Direction, Link, Profile

HERE = Path(__file__).parent
START_S = 60.0  # that an agent may take to be there, on a busy machine
SIDES = ("client", "server")
ENDS = {Direction.UPLINK: SIDES, Direction.DOWNLINK: ("server", "client")}  # sender, receiver
CLEAN = Link()
_nonces = count(random.SystemRandom().randrange(2**40))


class Asked(Protocol):
    """What answers operations: an agent, or one of several behind a common wire."""

    def start(self, op: str, /, **arguments: Any) -> Request[Any]: ...
    def wait(self, request: Request[Any], timeout_s: float, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Member:
    """One of the agents inside the guest of tests/net/guest.py."""

    wire: Agent
    name: str

    def start(self, op: str | Operation[Any], /, **arguments: Any) -> Request[Any]:
        return self.wire.start(op, to=self.name, **arguments)

    def wait(self, request: Request[Any], timeout_s: float, _peers: object = (), /) -> Any:
        return self.wire.wait(request, timeout_s)  # all have one wire, so nobody else can die

    def call(self, op: str | Operation[Any], limit_s: float = 10.0, _peers: object = (), /, **arguments: Any) -> Any:
        return self.wait(self.start(op, **arguments), limit_s)


def ask(asked: Asked, op: str, timeout_s: float = 10.0, /, **arguments: Any) -> Any:
    return asked.wait(asked.start(op, **arguments), timeout_s)


@dataclass(frozen=True, slots=True)
class ImpairedPath:
    """The path that the tests send through; from `impair` on there is one netem in each direction."""

    engine: str
    client: Asked
    server: Asked
    router: Asked
    addresses: Addresses
    guest: Member | None = None  # runs commands beside the router, where there is such a place
    seeded: bool = True  # False where the router's kernel has random numbers of its own only

    def join(self) -> None:
        """Tell everybody of each other, as headwind/testbed/testbed.py does."""
        hello = {side: ask(self.end(side), "hello") for side in SIDES}
        neighbours = {side: [{"ip": told["ip"], "mac": told["mac"]}] for side, told in hello.items()}
        gateways = {f"{side}_gateway": self.addresses.gateway(side) for side in SIDES}
        router = ask(self.router, "setup", **gateways, neighbours=neighbours)
        for side, peer in ENDS.values():
            ask(
                self.end(side), "join", gateway=self.addresses.host(side, 254), congestion="cubic",
                gateway_mac=router["ports"][side]["mac"], peer_ip=hello[peer]["ip"],
                peer_network=getattr(self.addresses, f"{peer}_subnet"),
            )  # fmt: skip

    def end(self, side: str) -> Asked:
        return self.client if side == "client" else self.server

    def apply(self, uplink: Link, downlink: Link, seed: int = 1) -> Any:
        """Both directions anew, with the same seed where there is one; {direction: read-back}."""
        profile = Profile("test", uplink, downlink).to_json()
        return ask(self.router, "apply", profile=profile, seeds=dict.fromkeys(Direction, seed if self.seeded else None))

    def impair(self, direction: Direction, link: Link, seed: int = 1) -> Any:
        """Impair one direction, clean the other; returns the first one's read-back."""
        links = (link, CLEAN) if direction is Direction.UPLINK else (CLEAN, link)
        return self.apply(*links, seed)[direction]

    def netem_counters(self, direction: Direction) -> dict[str, int]:
        counters: dict[str, int] = ask(self.router, "show")[direction]["counters"]
        return counters

    def start_train(
        self, direction: Direction, packets: int, interval_s: float, size_bytes: int
    ) -> tuple[int, Request[Any]]:
        """Begin to send; returns the train's name and the request to wait for."""
        sender, receiver = ENDS[direction]
        nonce = next(_nonces)
        request = self.end(sender).start(
            "send_train", peer_ip=self.addresses.host(receiver, 10), nonce=nonce, count=packets, interval_s=interval_s,
            size_bytes=size_bytes,
        )  # fmt: skip
        return nonce, request

    def train(
        self, direction: Direction, packets: int, *, interval_s: float = 0.0002, size_bytes: int = 64,
        expect: int | None = None, patience_s: float = 0.5,
    ) -> Any:  # fmt: skip
        """Send a train and see what arrives of it, until `expect` different ones (all) are there or patience ends."""
        sender, receiver = ENDS[direction]
        nonce, request = self.start_train(direction, packets, interval_s, size_bytes)
        sent = self.end(sender).wait(request, 30.0)
        wanted = packets if expect is None else expect
        return {**ask(self.end(receiver), "train_seen", 30.0, nonce=nonce, expect=wanted, timeout_s=patience_s),
                "sent": sent}  # fmt: skip

    def transfer(self, direction: Direction, byte_count: int, timeout_s: float) -> Any:
        """Send a known pattern by TCP; what the receiver saw of it."""
        sender, receiver = ENDS[direction]
        serving = self.end(receiver).start("serve_pattern", timeout_s=timeout_s)
        peer_ip = self.addresses.host(receiver, 10)
        sending = self.end(sender).start("send_pattern", peer_ip=peer_ip, byte_count=byte_count, timeout_s=timeout_s)
        self.end(sender).wait(sending, timeout_s + 10)
        return self.end(receiver).wait(serving, timeout_s + 10)


class Project:
    """Containers and networks of one test session; all carry the lab's label, so that `make lab-down` finds them."""

    def __init__(self, name: str, image: str, numbers: Iterator[int] | None = None) -> None:
        self.name, self.image = name, image
        self.numbers = numbers or count()  # of its networks
        self._labels = (
            "--label",
            f"{LABEL}={name}",
            "--label",
            f"{OWNER_LABEL}={this_lab()}",
        )

    def labels(self) -> tuple[str, ...]:
        """Options that make a container or network part of it."""
        return self._labels

    def network(self, subnet: str, gateway: str) -> str:
        """Make a bridged network; returns its name."""
        name = f"{self.name}-{next(self.numbers)}"
        options = ("com.docker.network.bridge.enable_ip_masquerade=false", "com.docker.network.driver.mtu=1500")
        docker("network", "create", *self._labels, "--subnet", subnet, "--gateway", gateway,
               *(word for option in options for word in ("-o", option)), name)  # fmt: skip
        return name

    def container(self, *options: str, networks: dict[str, str], router: bool = False) -> str:
        """Start a container in `networks` {name: address}; returns its id. The defaults are those of compose.yaml."""
        if router:
            options = ("--tmpfs", "/run/uml:exec,size=400m", "--sysctl", "net.ipv4.ip_forward=1", *options)
        else:
            options = ("--sysctl", "net.ipv4.tcp_no_metrics_save=1", *options)
        (first, address), *others = networks.items() or {"none": ""}.items()
        where = ("--network", first, *(("--ip", address) if address else ()))
        identity = docker("create", "--init", "--cap-add", "NET_ADMIN", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1",
                          *self._labels, *where, *options, self.image, "sleep", "infinity").split()[-1]  # fmt: skip
        for network, address in others:
            docker("network", "connect", "--ip", address, network, identity)
        docker("start", identity)
        return identity

    def remove(self) -> None:
        """Take everything away, whatever state it is in."""
        for listing, remove in ((("ps", "-aq"), ("rm", "-f", "-v")), (("network", "ls", "-q"), ("network", "rm"))):
            ours = docker(*listing, "--filter", f"label={LABEL}={self.name}").split()
            if ours:
                docker(*remove, *ours)


def start_agent(stack: ExitStack, logs: Path, name: str, container: str, *command: str) -> Agent:
    """An agent in a container, ready; it ends with the stack."""
    agent = Agent(name, ["docker", "exec", "-i", container, "python3", *command], logs / f"{name}.log")
    stack.callback(agent.close)
    agent.wait_ready(START_S)
    return agent


@contextmanager
def containers(project: Project, engine: str, logs: Path) -> Iterator[ImpairedPath]:
    """Three containers in two networks, as in a run of the lab; the router by `kernel` or `uml`."""
    addresses = pick_addresses(random.SystemRandom(), taken_subnets())
    subnets = {side: getattr(addresses, f"{side}_subnet") for side in SIDES}
    networks = {side: project.network(subnets[side], addresses.host(side, 1)) for side in SIDES}
    ends = {side: project.container(networks={networks[side]: addresses.host(side, 10)}) for side in SIDES}
    for end in ends.values():
        docker("cp", str(HERE / "pattern.py"), f"{end}:/opt/headwind/pattern.py")
    at = {networks[side]: addresses.host(side, 253) for side in SIDES}
    router = project.container(networks=at, router=True)
    with ExitStack() as stack:
        module = "impair.router.uml" if engine == "uml" else "impair.router.agent"
        where = [word for side in SIDES for word in (f"--{side}-subnet", subnets[side])]
        client, server = (start_agent(stack, logs, side, ends[side], "-m", "pattern") for side in SIDES)
        path = ImpairedPath(
            engine, client, server, start_agent(stack, logs, "router", router, "-m", module, *where), addresses
        )
        yield path


@contextmanager
def namespaces(project: Project, logs: Path) -> Iterator[ImpairedPath]:
    """One container, in it a user-mode kernel, in that three namespaces: the `kernel` engine, whatever the host has."""
    container = project.container(networks={}, router=True)
    for module in ("guest", "pattern"):
        docker("cp", str(HERE / f"{module}.py"), f"{container}:/opt/headwind/{module}.py")
    boot = "from impair.router import uml; uml.run({}, ['python3', '-m', 'guest'])"
    with ExitStack() as stack:
        wire = start_agent(stack, logs, "guest", container, "-c", boot)
        client, server, router, guest = (Member(wire, name) for name in (*SIDES, "router", "guest"))
        path = ImpairedPath(
            "kernel-in-uml", client, server, router, Addresses("10.1.0.0/24", "10.2.0.0/24"), guest=guest
        )
        yield path
