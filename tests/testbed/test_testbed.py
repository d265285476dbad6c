"""Joining a testbed: every server is connected through the router, and has its own path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headwind.arm import Congestion
from headwind.engines import KERNEL, PLAIN, Engine
from headwind.proof.evidence import OUTSIDE
from headwind.testbed import testbed as testbeds
from headwind.testbed.agent import Agent, Request
from headwind.testbed.operations import Operation
from headwind.testbed.path import NGINX
from headwind.trial.congestion import use_congestion
from impair.profile import Direction, Profile
from tests.fake_testbed import ADDRESSES

IPS = {"client": "10.70.1.10", "server": "10.70.2.10", "server-other": "10.70.2.11"}
ANSWERS: Mapping[str, Any] = {
    "join": {"route": "set"}, "info": {"version": "1"}, "use_congestion": {},
    "veth_peers": {"boot_id": "another kernel's", "indices": [4], "own": [2]},
}  # fmt: skip


LISTENING = {"port": 9, "buffer_bytes": 1}


class Recorder(Agent):
    """An agent that answers at once, and keeps its requests."""

    def __init__(self, name: str, seeds: bool = True) -> None:
        self.name, self.seeds = name, seeds
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def start(self, op: Operation[Any] | str, /, **arguments: Any) -> Any:
        operation = Operation(op) if isinstance(op, str) else op
        self.asked.append((operation.name, arguments))
        return Request(len(self.asked), operation)

    def wait(self, request: Request[Any], timeout_s: float, peers: Sequence[Agent] = ()) -> Any:
        assert timeout_s > 0
        assert all(isinstance(peer, Recorder) for peer in peers)
        name = request.op.name
        return request.op.read(getattr(self, f"do_{name}")() if hasattr(self, f"do_{name}") else ANSWERS[name])

    def do_hello(self) -> dict[str, Any]:
        return {
            "ip": IPS[self.name], "mac": f"mac of {self.name}", "network": "", "interface": "eth0", "mtu": 1500,
            "kernel": "7.2", "probe": LISTENING,
        }  # fmt: skip

    def do_setup(self) -> dict[str, Any]:
        ports = {side: {"name": side, "mac": f"router's {side} mac", "mtu": 1500} for side in ("client", "server")}
        return {"kernel": "7.2", "engine": "kernel", "netem_counters": False, "netem_seed": self.seeds, "ports": ports}

    def do_fingerprint(self) -> dict[str, str]:
        return {"routes": f"of {self.name}", "congestion": "cubic"}

    def do_apply(self) -> dict[str, Any]:
        return {}

    def of(self, name: str) -> list[dict[str, Any]]:
        """The arguments of all requests for an operation."""
        return [arguments for asked, arguments in self.asked if asked == name]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> testbeds.Testbed:
    """A testbed with two servers, joined."""
    other = testbeds.ServerProgram("server-other", "other.agent")
    monkeypatch.setattr(testbeds, "SERVERS", {**testbeds.SERVERS, "other": other})
    return joined({NGINX: Recorder("server"), "other": Recorder("server-other")})


def joined(servers: Mapping[str, Agent], engine: Engine = KERNEL, seeds: bool = True) -> testbeds.Testbed:
    containers = {service: f"id of {service}" for service in (*IPS, "impair")}
    testbed = testbeds.Testbed(
        Recorder("client"), servers, Recorder("router", seeds), ADDRESSES, engine, containers=containers,
        outside=Recorder(OUTSIDE),
    )  # fmt: skip
    testbed.join(Congestion("reno"))
    return testbed


def requests(agent: Agent, name: str) -> list[dict[str, Any]]:
    assert isinstance(agent, Recorder)
    return agent.of(name)


def test_every_server_is_connected_through_the_router(two: testbeds.Testbed) -> None:
    (setup,) = requests(two.router, "setup")
    assert setup["neighbours"] == {
        "client": [{"ip": "10.70.1.10", "mac": "mac of client"}],
        "server": [
            {"ip": "10.70.2.10", "mac": "mac of server"}, {"ip": "10.70.2.11", "mac": "mac of server-other"},
        ],
    }  # fmt: skip
    for server in two.servers.values():
        (join,) = requests(server, "join")
        assert (join["gateway_mac"], join["peer_network"]) == ("router's server mac", ADDRESSES.client_subnet)
        assert join["congestion"] == "reno"
    assert len(requests(two.client, "join")) == 1
    assert two.facts.keys() >= {"client", "server", "server-other", "router", NGINX, "other", "h2load"}


def test_a_path_has_one_server_and_the_state_of_its_hosts(two: testbeds.Testbed) -> None:
    nginx, other = two.path(), two.path("other")
    assert (nginx.server_ip, other.server_ip) == ("10.70.2.10", "10.70.2.11")
    assert nginx.agents == (two.client, two.servers[NGINX], two.router)
    assert other.fingerprints["server"]["routes"] == "of server-other"
    assert other.fingerprints.keys() == {"client", "server", "router", OUTSIDE}
    assert list(other.containers) == ["client", "server-other", "impair"]
    assert not other.has_counters
    assert two.path("other") is other, "its state must not be lost between trials"


def test_the_clients_congestion_control_is_known_to_all_paths(two: testbeds.Testbed) -> None:
    nginx, other = two.path(), two.path("other")
    use_congestion(nginx, "bbr")
    assert other.tcp == "", "the client has another one now than this server"
    use_congestion(other, "reno")
    assert requests(two.client, "use_congestion") == [{"congestion": "bbr"}, {"congestion": "reno"}]
    assert other.expected_fingerprints()["client"]["congestion"] == "reno"
    assert nginx.tcp == ""


def test_an_engine_without_netem_is_given_no_network() -> None:
    path = joined({NGINX: Recorder("server")}, PLAIN).path()
    assert path.apply(Profile("clean"), dict.fromkeys(Direction, 1)) == {}
    path.clear()
    assert requests(path.router, "apply") == requests(path.router, "clear") == []


@pytest.mark.parametrize(("seeds", "seed"), [(True, 7), (False, None)])
def test_a_kernel_that_cannot_be_seeded_gets_no_seeds(seeds: bool, seed: int | None) -> None:
    path = joined({NGINX: Recorder("server")}, seeds=seeds).path()
    path.apply(Profile("clean"), dict.fromkeys(Direction, 7))
    assert requests(path.router, "apply")[0]["seeds"] == {"uplink": seed, "downlink": seed}
