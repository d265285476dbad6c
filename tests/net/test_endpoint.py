"""Both endpoints' agents for real: two network namespaces and a veth pair between them, no router.

One pair serves most tests. Each test undoes its changes, and the next one joins both ends again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headwind.testbed.agent import Agent, AgentError

pytestmark = pytest.mark.beside

ROOT = Path(__file__).resolve().parent.parent.parent
ENDS = ("client", "server")
NUMBER = {"client": 1, "server": 2}
IMPOSSIBLE_MAC = "02:00:00:00:00:99"  # nobody's: a frame to it is dropped on arrival
_numbers = count()
# Connects to the peer and waits; argv: the peer's address and port.
HOLD = """
import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.read()
"""
# Accepts on argv[1]; also holds a connection to itself, which is nobody's business.
ACCEPT = """
import socket, sys
listening = socket.create_server(("", int(sys.argv[1])), backlog=8)
own = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
sys.stdin.read()
"""
# One UDP datagram in a raw frame, with a wrong checksum; argv: interface, both MACs and both addresses.
CORRUPT = """
import socket, struct, sys
name, source_mac, target_mac, source, target = sys.argv[1:]
payload = bytes(1000)  # the kernel checks small ones (76 bytes) at once in any case
udp = struct.pack("!HHHH", 5555, 4777, 8 + len(payload), 0xdead) + payload
def packed(checksum):
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, checksum,
                       socket.inet_aton(source), socket.inet_aton(target))
total = sum(struct.unpack("!10H", packed(0)))
checksum = ~((total & 0xffff) + (total >> 16)) & 0xffff
ethernet = bytes.fromhex(target_mac.replace(":", "") + source_mac.replace(":", "")) + b"\\x08\\x00"
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind((name, 0))
sock.send(ethernet + packed(checksum) + udp)
"""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


@dataclass(slots=True)
class Pair:
    """A client and a server, with a default route that leads nowhere, not joined yet."""

    prefix: str
    agents: dict[str, Agent] = field(default_factory=dict)
    hello: dict[str, Any] = field(default_factory=dict)
    nonces: Iterator[int] = field(default_factory=count)

    def inside(self, end: str, *command: str) -> tuple[str, ...]:
        """The command in the namespace of one end."""
        return ("ip", "netns", "exec", f"{self.prefix}-{end}", "env", f"PYTHONPATH={ROOT}", *command)

    def ip(self, end: str) -> str:
        return f"10.77.{NUMBER[end]}.10"

    def join(self, end: str, **changed: str) -> Any:
        """Join one end; without a router the gateway's Ethernet address is the peer's."""
        peer = other(end)
        arguments = {
            "gateway": f"10.77.{NUMBER[end]}.254", "gateway_mac": self.hello[peer]["mac"], "peer_ip": self.ip(peer),
            "peer_network": f"10.77.{NUMBER[peer]}.0/24", "congestion": other_congestion(),
        }  # fmt: skip
        return self.agents[end].call("join", **{**arguments, **changed})

    def train(
        self, sender: str, packets: int, interval_s: float = 0.0, size_bytes: int = 64, wait_s: float = 5.0
    ) -> Any:
        """Send a train, and what the other end saw of it."""
        nonce = next(self.nonces)
        self.agents[sender].call("send_train", peer_ip=self.ip(other(sender)), nonce=nonce, count=packets,
                                 interval_s=interval_s, size_bytes=size_bytes)  # fmt: skip
        return self.agents[other(sender)].call("train_seen", nonce=nonce, expect=packets, timeout_s=wait_s)

    def transfer(self, sender: str, byte_count: int, timeout_s: float) -> tuple[Any, Any]:
        """Send the pattern by TCP: what the sender and what the receiver say."""
        receiver = self.agents[other(sender)]
        serving = receiver.start("serve_pattern", timeout_s=timeout_s)
        sent = self.agents[sender].call(
            "send_pattern", timeout_s + 5, peer_ip=self.ip(other(sender)), byte_count=byte_count, timeout_s=timeout_s
        )
        return sent, receiver.wait(serving, timeout_s + 5)


def other(end: str) -> str:
    return "server" if end == "client" else "client"


def other_congestion() -> str:
    """A congestion control that is not the host's default, so that only the route can have chosen it."""
    return "reno" if default_congestion() == "cubic" else "cubic"


def default_congestion() -> str:
    return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def missing() -> str:
    """Why this machine cannot make the pair; empty when it can."""
    tools = [tool for tool in ("ip", "ethtool", "ss", "setpriv") if not shutil.which(tool)]
    if tools:
        return f"not installed: {', '.join(tools)}"
    return "" if os.geteuid() == 0 else "network namespaces need root"


@contextmanager
def made_pair(logs: Path, *, agents: bool = True) -> Iterator[Pair]:
    if why := missing():
        pytest.skip(why)
    pair = Pair(f"hwt{os.getpid()}-{next(_numbers)}")
    with ExitStack() as stack:
        for end in ENDS:
            stack.callback(
                subprocess.run, ["ip", "netns", "del", f"{pair.prefix}-{end}"], capture_output=True, check=False
            )
            made = subprocess.run(
                ["ip", "netns", "add", f"{pair.prefix}-{end}"], capture_output=True, text=True, check=False
            )
            if made.returncode:
                pytest.skip(f"`ip netns add` fails here: {made.stderr.strip()}")
        first, second = (f"{pair.prefix}-{end}" for end in ENDS)
        run("ip", "link", "add", "hwt0", "netns", first, "type", "veth", "peer", "name", "hwt0", "netns", second)
        for end in ENDS:
            inside = ("ip", "-n", f"{pair.prefix}-{end}")
            run(*inside, "link", "set", "lo", "up")
            run(*inside, "address", "add", f"{pair.ip(end)}/24", "dev", "hwt0")
            run(*inside, "link", "set", "hwt0", "up")
            run(*inside, "route", "add", "default", "via", f"10.77.{NUMBER[end]}.1")
            if agents:
                command = pair.inside(end, sys.executable, "-m", "tests.net.pattern")
                pair.agents[end] = Agent(end, command, logs / f"{end}.log")
                stack.callback(pair.agents[end].close)
                pair.agents[end].wait_ready(60)
                pair.hello[end] = pair.agents[end].call("hello")
        yield pair


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The pair of this module."""
    with made_pair(tmp_path_factory.mktemp("shared")) as pair:
        yield pair


@pytest.fixture
def pair(shared: Pair) -> Pair:
    """The module's pair: both ends are joined, and no connection of an earlier test is left."""
    for end in ENDS:
        shared.join(end)
        shared.agents[end].call("forget")
    return shared


@pytest.fixture
def strangers(tmp_path: Path) -> Iterator[Pair]:
    """A pair of the test's own that nobody has joined."""
    with made_pair(tmp_path) as pair:
        yield pair


@pytest.fixture
def own_pair(strangers: Pair) -> Pair:
    """A joined pair of the test's own: for tests that leave frames, connections or totals behind."""
    for end in ENDS:
        strangers.join(end)
    return strangers


def test_an_endpoint_knows_itself(pair: Pair) -> None:
    for end in ENDS:
        link = json.loads(run(*pair.inside(end, "ip", "-json", "link", "show", "hwt0")))[0]
        hello = dict(pair.hello[end])
        assert hello.pop("probe")["buffer_bytes"] >= 16 << 20
        assert hello == {
            "ip": pair.ip(end), "network": f"10.77.{NUMBER[end]}.0/24", "mac": link["address"],
            "interface": "hwt0", "mtu": 1500, "kernel": os.uname().release,
        }  # fmt: skip


def test_join_leaves_one_way_out_and_says_what_it_read_back(strangers: Pair) -> None:
    assert "default" in run(*strangers.inside("client", "ip", "route"))
    joined = strangers.join("client")
    assert joined["congestion"] == other_congestion()
    assert joined["ipv6"] == "off"
    assert set(joined["offloads"].values()) <= {"off", "off [fixed]"}
    routes = run(*strangers.inside("client", "ip", "route")).splitlines()
    assert [route.split()[0] for route in routes] == ["10.77.1.0/24", "10.77.2.0/24"]
    assert f"via 10.77.1.254 dev hwt0 congctl {other_congestion()}" in routes[1]
    neighbours = run(*strangers.inside("client", "ip", "neighbour"))
    assert neighbours.split() == f"10.77.1.254 dev hwt0 lladdr {strangers.hello['server']['mac']} PERMANENT".split()
    assert run(*strangers.inside("client", "cat", "/proc/sys/net/ipv6/conf/hwt0/disable_ipv6")).strip() == "1"
    features = run(*strangers.inside("client", "ethtool", "-k", "hwt0"))
    for name in (
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "tx-checksumming",
    ):
        assert f"{name}: off" in features
    assert strangers.join("client") == joined  # once more changes nothing


def test_tcp_uses_the_congestion_control_of_its_route(pair: Pair) -> None:
    with holding(pair):
        for end in ENDS:
            sockets = run(*pair.inside(end, "ss", "-Htin", "dst", pair.ip(other(end))))
            assert sockets.strip()
            assert f" {other_congestion()} " in sockets


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"congestion": "nosuch"}, "congctl nosuch"),
        ({"gateway": "10.78.0.1"}, "10.78.0.1"),
        ({"peer_ip": "10.77.1.77"}, "packets to 10.77.1.77 should go through 10.77.1.254"),
        ({"gateway_mac": "nonsense"}, "lladdr nonsense"),
    ],
)
def test_join_refuses_what_it_cannot_do(strangers: Pair, changed: dict[str, str], words: str) -> None:
    with pytest.raises(AgentError, match=words):
        strangers.join("client", **changed)


def test_join_refuses_another_mtu(tmp_path: Path) -> None:
    with made_pair(tmp_path, agents=False) as pair:
        run(*pair.inside("client", "ip", "link", "set", "hwt0", "mtu", "1400"))
        agent = Agent("client", pair.inside("client", sys.executable, "-m", "tests.net.pattern"), tmp_path / "log")
        agent.wait_ready(10)
        with pytest.raises(AgentError, match="MTU of 1400 bytes"):
            agent.call("join", gateway="10.77.1.254", gateway_mac=IMPOSSIBLE_MAC, peer_network="10.77.2.0/24",
                       peer_ip="10.77.2.10", congestion="cubic")  # fmt: skip
        agent.close()


@pytest.mark.parametrize("capability", ["net_raw", "net_admin"])
def test_a_missing_capability_is_named(tmp_path: Path, capability: str) -> None:
    with made_pair(tmp_path, agents=False) as pair:
        without = ("setpriv", f"--bounding-set=-{capability}", f"--inh-caps=-{capability}")
        agent = Agent(
            "client", pair.inside("client", *without, sys.executable, "-m", "tests.net.pattern"), tmp_path / "log"
        )
        agent.wait_ready(10)
        with pytest.raises(AgentError, match=f"CAP_{capability.upper()}"):
            agent.call("hello")
        agent.close()


@pytest.mark.timed
def test_trains_pass_in_both_directions_at_once(pair: Pair) -> None:
    requests = [(pair.agents[end], pair.agents[end].start(
        "send_train", peer_ip=pair.ip(other(end)), nonce=99, count=20, interval_s=0.001, size_bytes=64
    )) for end in ENDS]  # fmt: skip
    for agent, request in requests:
        assert agent.wait(request, 5)["sent"] == 20
    for end in ENDS:
        seen = pair.agents[end].call("train_seen", nonce=99, expect=20, timeout_s=5)
        assert (seen["received"], seen["unique"], seen["inversions"], seen["bad_payloads"]) == (20, 20, 0, 0)
        assert 0 < statistics.median(seen["delays_s"]) < 0.005


def test_a_dead_direction_does_not_hide_the_other(pair: Pair) -> None:
    pair.join("server", gateway_mac=IMPOSSIBLE_MAC)
    assert pair.train("client", 20)["unique"] == 20
    assert pair.train("server", 20, wait_s=0.2)["received"] == 0


def test_the_largest_payload_is_one_frame_and_a_larger_one_is_refused(pair: Pair) -> None:
    assert pair.train("client", 5, size_bytes=1472)["unique"] == 5
    with pytest.raises(AgentError, match="larger than the interface's MTU"):
        pair.train("client", 5, size_bytes=1473)


def test_every_frame_is_counted_on_both_sides(pair: Pair) -> None:
    before = {end: pair.agents[end].call("counters") for end in ENDS}
    pair.train("client", 200, size_bytes=1472)
    gained = {end: gain(before[end], pair.agents[end].call("counters")) for end in ENDS}
    assert gained["client"]["tx_frames"] == gained["server"]["rx_frames"] == 200
    assert gained["client"]["tx_bytes"] == gained["server"]["rx_bytes"] == 200 * 1514
    assert gained["server"]["ip_in_receives"] == gained["server"]["udp_in_datagrams"] == 200
    others = {
        name: value for name, value in gained["server"].items() if name.endswith(("errors", "segs", "oversize_frames"))
    }
    assert others
    assert set(others.values()) == {0}


def gain(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after if isinstance(after[name], int)}


NEIGHBOUR = "ip neighbour replace 10.77.1.254 lladdr {gateway_mac} nud permanent dev hwt0"
ROUTE = "ip route change 10.77.2.0/24 via 10.77.1.254 dev hwt0 congctl"
NFT = ["nft add table ip tampering", "nft delete table ip tampering"]


@pytest.mark.parametrize(
    ("topics", "commands", "undo"),
    [
        ("routes", ["ip route add 10.99.0.0/24 via 10.77.1.253"], ["ip route del 10.99.0.0/24"]),
        ("routes", ["ip route add 10.99.0.0/24 via 10.77.1.253 table 77"], ["ip route flush table 77"]),
        ("congestion", [f"{ROUTE} {{default}}"], [f"{ROUTE} {{congestion}}"]),
        ("routes", [f"{ROUTE} {{congestion}} initcwnd 40"], [f"{ROUTE} {{congestion}}"]),
        ("routes", ["ip address add 10.99.0.1/32 dev hwt0"], ["ip address del 10.99.0.1/32 dev hwt0"]),
        ("rules", ["ip rule add from all lookup 77 priority 77"], ["ip rule del priority 77"]),
        ("neighbours", ["ip neighbour replace 10.77.1.254 lladdr 02:00:00:00:00:99 nud permanent dev hwt0"],
         [NEIGHBOUR]),
        ("neighbours", ["ip neighbour add 10.77.1.9 lladdr 02:00:00:00:00:99 nud permanent dev hwt0"],
         ["ip neighbour del 10.77.1.9 dev hwt0"]),
        ("links qdiscs", ["tc qdisc add dev hwt0 root tbf rate 10mbit burst 5000 latency 50ms"],
         ["tc qdisc del dev hwt0 root"]),
        ("links qdiscs", ["tc qdisc add dev hwt0 root pfifo limit 10"], ["tc qdisc del dev hwt0 root"]),
        ("links qdiscs", ["tc qdisc add dev hwt0 root netem delay 1ms"], ["tc qdisc del dev hwt0 root"]),
        ("qdiscs", ["tc qdisc add dev hwt0 clsact"], ["tc qdisc del dev hwt0 clsact"]),
        ("links", ["ip link set hwt0 mtu 1400"], ["ip link set hwt0 mtu 1500"]),
        # the kernel then forgets the neighbours
        ("links neighbours", ["ip link set hwt0 address 02:00:00:00:00:77"],
         ["ip link set hwt0 address {own_mac}", NEIGHBOUR]),
        ("links offloads", ["ip link add hwt7 type veth peer name hwt8"], ["ip link del hwt7"]),
        ("firewall", NFT[:1], NFT[1:]),
        ("firewall", NFT, []),  # also one that is taken back
        ("firewall", ["iptables -A OUTPUT -j ACCEPT"], ["iptables -D OUTPUT -j ACCEPT"]),
        ("firewall", ["iptables-legacy -A OUTPUT -j ACCEPT"], ["iptables-legacy -D OUTPUT -j ACCEPT"]),
        ("offloads", ["ethtool -K hwt0 gro on"], ["ethtool -K hwt0 gro off"]),
        ("offloads", ["ethtool -K hwt0 tx on"], ["ethtool -K hwt0 tx off"]),
        ("sysctls", ["sysctl -w net.ipv4.ip_forward={not_forwarding}"],
         ["sysctl -w net.ipv4.ip_forward={forwarding}"]),
        ("sysctls", ["sysctl -w net.ipv4.tcp_no_metrics_save={not_saving}"],
         ["sysctl -w net.ipv4.tcp_no_metrics_save={saving}"]),
    ],
)  # fmt: skip
def test_tampering_changes_its_topics_of_the_fingerprint(
    pair: Pair, topics: str, commands: list[str], undo: list[str]
) -> None:
    words = words_of(pair)
    before = pair.agents["client"].call("fingerprint")
    try:
        for command in commands:
            tamper(pair, command.format(**words))
        after = pair.agents["client"].call("fingerprint")
    finally:
        for command in undo:
            subprocess.run(pair.inside("client", *command.format(**words).split()), capture_output=True, check=False)
    assert different(before, after) == set(topics.split())
    undone = different(before, pair.agents["client"].call("fingerprint"))
    assert undone <= {"firewall"}, "the next test finds the pair as this one did; of a firewall changes are counted"


def words_of(pair: Pair) -> dict[str, Any]:
    """What the placeholders in a command stand for, as it is before."""
    forwarding, saving = (
        int(run(*pair.inside("client", "cat", f"/proc/sys/net/ipv4/{name}")))
        for name in ("ip_forward", "tcp_no_metrics_save")
    )
    return {
        "default": default_congestion(), "congestion": other_congestion(), "gateway_mac": pair.hello["server"]["mac"],
        "own_mac": pair.hello["client"]["mac"], "forwarding": forwarding, "not_forwarding": 1 - forwarding,
        "saving": saving, "not_saving": 1 - saving,
    }  # fmt: skip


def tamper(pair: Pair, command: str) -> None:
    """Run a command at the client; skips if this machine has no such tool or its kernel no such feature."""
    tool = command.split(maxsplit=1)[0]
    if not shutil.which(tool):
        pytest.skip(f"not installed: {tool}")
    done = subprocess.run(pair.inside("client", *command.split()), capture_output=True, text=True, check=False)
    if done.returncode and tool in ("tc", "nft", "iptables", "iptables-legacy"):
        pytest.skip(f"this kernel cannot: {command}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def different(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The topics of two fingerprints that are not the same in both."""
    return {topic for topic in before.keys() | after.keys() if before.get(topic) != after.get(topic)}


def test_traffic_does_not_change_the_fingerprint(own_pair: Pair) -> None:
    before = {end: own_pair.agents[end].call("fingerprint") for end in ENDS}
    assert before["client"].keys() == {
        "links", "routes", "rules", "neighbours", "qdiscs", "firewall", "offloads", "sysctls", "limits", "programs",
        "congestion",
    }  # fmt: skip
    own_pair.train("client", 200, size_bytes=1472)
    own_pair.transfer("client", 2_000_000, 10.0)
    arp = own_pair.inside("client", "ping", "-c1", "-W1", "10.77.1.33")
    subprocess.run(arp, capture_output=True, check=False)
    assert {end: own_pair.agents[end].call("fingerprint") for end in ENDS} == before
    own_pair.agents["client"].call("forget")
    assert own_pair.agents["client"].call("fingerprint") == before["client"]


@pytest.mark.timed
def test_an_endpoint_that_was_frozen_says_so_once(pair: Pair) -> None:
    agent = pair.agents["client"]
    agent.call("counters")
    process = int(run("ip", "netns", "pids", f"{pair.prefix}-client"))
    os.kill(process, signal.SIGSTOP)
    time.sleep(0.7)
    os.kill(process, signal.SIGCONT)
    assert 0.65 < agent.call("counters")["largest_gap_s"] < 5
    assert agent.call("counters")["largest_gap_s"] < 0.5


def test_a_corrupted_datagram_is_counted_on_arrival_and_not_shown(pair: Pair) -> None:
    client, server = pair.hello["client"], pair.hello["server"]
    before = pair.agents["server"].call("counters")
    run(
        *pair.inside(
            "client", sys.executable, "-c", CORRUPT, "hwt0", client["mac"], server["mac"], client["ip"], server["ip"]
        )
    )
    gained = gain(before, pair.agents["server"].call("counters"))
    assert (gained["rx_frames"], gained["udp_in_csum_errors"], gained["udp_in_datagrams"]) == (1, 1, 0)
    seen = pair.train("client", 5)
    assert (seen["received"], seen["bad_payloads"]) == (5, 0)


def test_oversize_frames_are_counted_where_they_arrive(own_pair: Pair) -> None:
    sent, served = own_pair.transfer("client", 2_000_000, 10.0)
    assert sent["complete"]
    assert (served["bytes"], served["bad_bytes"]) == (2_000_000, 0)
    counted = {end: own_pair.agents[end].call("counters")["oversize_frames"] for end in ENDS}
    assert counted == {"client": 0, "server": 0}
    run(*own_pair.inside("client", "ethtool", "-K", "hwt0", "sg", "on", "tx", "on", "gso", "on", "tso", "on"))
    own_pair.transfer("client", 2_000_000, 10.0)
    first = own_pair.agents["server"].call("counters")["oversize_frames"]
    assert first > 0
    own_pair.transfer("client", 2_000_000, 10.0)
    assert (
        own_pair.agents["server"].call("counters")["oversize_frames"] > first
    )  # a total, although the kernel's starts anew
    assert own_pair.agents["client"].call("counters")["oversize_frames"] == 0  # its own do not count


def test_a_transfer_through_nothing_ends_with_nothing(pair: Pair) -> None:
    for end in ENDS:
        pair.join(end, gateway_mac=IMPOSSIBLE_MAC)
    sent, served = pair.transfer("client", 1000, 0.4)
    assert (sent["bytes"], sent["complete"]) == (0, False)
    assert (served["bytes"], served["complete"]) == (0, False)


@contextmanager
def holding(pair: Pair, port: int = 9999) -> Iterator[None]:
    """A connection from the client to the server that nobody uses."""
    with ExitStack() as stack:
        for end, program, arguments in (
            ("server", ACCEPT, [str(port)]),
            ("client", HOLD, [pair.ip("server"), str(port)]),
        ):
            process = stack.enter_context(subprocess.Popen(
                pair.inside(end, sys.executable, "-c", program, *arguments), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True,
            ))  # fmt: skip
            stack.callback(process.kill)
            assert process.stdout
            assert process.stdout.readline().strip() in {"listening", "connected"}
        yield


def test_forget_ends_the_connections_to_the_peer_and_no_others(own_pair: Pair) -> None:
    with holding(own_pair):
        for end in ENDS:
            assert len(towards_peer(own_pair, end)) == 1
        answer = own_pair.agents["client"].call("forget")
        if answer["sockets_destroyed"] is None:
            assert answer["sockets_left"] == 1
            pytest.skip("this kernel cannot destroy sockets (INET_DIAG_DESTROY)")
        assert answer == {"sockets_destroyed": 1, "sockets_left": 0}
        assert towards_peer(own_pair, "client") == []
        own_pair.agents["server"].call("forget")
        assert towards_peer(own_pair, "server") == []
        own = run(*own_pair.inside("server", "ss", "-Htan", "src", "127.0.0.1")).splitlines()
        assert [line.split()[0] for line in own] == ["ESTAB", "ESTAB"]
        assert "LISTEN" in run(*own_pair.inside("server", "ss", "-Htln"))
        assert own_pair.agents["client"].call("forget") == {"sockets_destroyed": 0, "sockets_left": 0}


def test_forget_ends_a_connection_that_has_no_owner_any_more(own_pair: Pair) -> None:
    with holding(own_pair):
        for end in ENDS:
            own_pair.join(end, gateway_mac=IMPOSSIBLE_MAC)  # the end of the connection never arrives
    assert [line.split()[0] for line in towards_peer(own_pair, "client")] == ["FIN-WAIT-1"]
    if own_pair.agents["client"].call("forget")["sockets_destroyed"] is None:
        pytest.skip("this kernel cannot destroy sockets (INET_DIAG_DESTROY)")
    assert towards_peer(own_pair, "client") == []


def towards_peer(pair: Pair, end: str) -> list[str]:
    return run(*pair.inside(end, "ss", "-Htan", "dst", pair.ip(other(end)))).splitlines()


def test_forget_flushes_what_tcp_remembers(pair: Pair) -> None:
    def remembered() -> str:
        return run(*pair.inside("client", "ip", "tcp_metrics", "show"))

    pair.transfer("client", 2_000_000, 10.0)
    assert pair.ip("server") in remembered()
    pair.agents["client"].call("forget")
    assert remembered() == ""


@pytest.mark.timed
@pytest.mark.parametrize("operation", ["counters", "forget"])
def test_what_every_trial_pays_for_is_cheap(pair: Pair, operation: str) -> None:
    """Less than to start a program that tells as much."""
    asked = statistics.median(seconds(lambda: pair.agents["client"].call(operation)) for _ in range(30))
    started = statistics.median(seconds(lambda: run(*pair.inside("client", "ss", "-Htan"))) for _ in range(30))
    assert asked < started


def seconds(action: Callable[[], Any]) -> float:
    start_s = time.perf_counter()
    action()
    return time.perf_counter() - start_s
