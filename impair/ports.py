"""The router's two interfaces, through iproute2, ethtool and /proc: set up, read back, counted."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from impair.messages import FarEnds, Port, PortFrames

SETTINGS = Path("/proc/sys")
BOOT_ID = SETTINGS / "kernel/random/boot_id"
MTU = 1500
# A super-packet would be delayed, dropped or corrupted as one, and merged packets are forwarded with bad checksums.
OFFLOADS = (
    "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload", "large-receive-offload",
    "tx-udp-segmentation", "tx-gso-list", "rx-gro-list", "rx-udp-gro-forwarding", "rx-gro-hw",
)  # fmt: skip
FRAME_COUNTERS = {"rx_frames": 1, "tx_frames": 9, "rx_bytes": 0, "tx_bytes": 8, "rx_dropped": 3, "tx_dropped": 11}
# (columns of /proc/net/dev)


class PortError(Exception):
    """The router could not be set up as asked; says what was tried and what is needed."""


def describe(name: str) -> Port:
    """What an interface is."""
    device = Path("/sys/class/net") / name
    return Port(name, (device / "address").read_text().strip(), int((device / "mtu").read_text()))


def far_ends(names: Iterable[str]) -> FarEnds:
    """Where these veth pairs end on the host."""
    indices = [int((Path("/sys/class/net") / name / "iflink").read_text()) for name in names]
    return FarEnds(BOOT_ID.read_text().strip(), indices)


def frame_counters() -> dict[str, PortFrames]:
    """The counters of every interface, by name."""
    rows = {}
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        columns = [int(word) for word in numbers.split()]
        rows[name.strip()] = PortFrames(**{counter: columns[index] for counter, index in FRAME_COUNTERS.items()})
    return rows


def forward() -> None:
    """Let packets pass between interfaces. Raises PortError.

    rp_filter and redirects need no change: each endpoint's address is in the network of the port that it comes in by.
    """
    _set_sysctl("net/ipv4/ip_forward", "1")


def set_up(name: str, gateway: str, neighbour_ip: str, neighbour_mac: str) -> None:
    """Bring a port up: gateway address with prefix length, MTU, static neighbour, no IPv6, no offloads; all read back.

    Raises PortError when something is not as asked.
    """
    _set_sysctl(f"net/ipv6/conf/{name}/disable_ipv6", "1")
    _run("ip", "link", "set", "dev", name, "mtu", str(MTU), "up")
    _run("ip", "address", "replace", gateway, "dev", name)
    _run("ip", "neighbour", "replace", neighbour_ip, "lladdr", neighbour_mac, "dev", name, "nud", "permanent")
    neighbours = json.loads(_run("ip", "-json", "neighbour", "show", "to", neighbour_ip, "dev", name))
    if [(entry["lladdr"], entry["state"]) for entry in neighbours] != [(neighbour_mac, ["PERMANENT"])]:
        raise PortError(f"{name}: asked for the neighbour {neighbour_ip} at {neighbour_mac}, read back {neighbours}")
    addresses = json.loads(_run("ip", "-json", "-4", "address", "show", "dev", name))[0]
    held = {f"{address['local']}/{address['prefixlen']}" for address in addresses["addr_info"]}
    if gateway not in held or addresses["mtu"] != MTU or "UP" not in addresses["flags"]:
        raise PortError(f"{name}: asked to be up with {gateway} and MTU {MTU}, read back {addresses}")
    turn_offloads_off(name)


def turn_offloads_off(name: str) -> None:
    """No packet is merged or left to be split on interface `name`. Raises PortError when one offload stays on."""
    if active := active_offloads(name):
        words = [word for offload in active for word in (offload, "off")]
        subprocess.run(["ethtool", "-K", name, *words], capture_output=True, check=False)  # the read-back decides
    if active := active_offloads(name):
        raise PortError(f"{name}: ethtool -K cannot turn off {', '.join(active)}")


def active_offloads(name: str) -> list[str]:
    """Those of OFFLOADS that are on. Raises PortError."""
    features = json.loads(_run("ethtool", "--json", "-k", name))[0]
    return [offload for offload in OFFLOADS if features.get(offload, {}).get("active")]


def _set_sysctl(key: str, wanted: str) -> None:
    """Write a kernel setting, unless it is already so (in a container /proc/sys can only be read)."""
    path = SETTINGS / key
    if not path.exists() and key.startswith("net/ipv6/"):
        return  # a kernel without IPv6 has nothing to turn off
    if path.read_text().strip() == wanted:
        return
    name = key.replace("/", ".")
    try:
        path.write_text(wanted)
    except OSError as error:
        raise PortError(f"{name} must be {wanted}, and cannot be written here ({error}): set it under `sysctls` "
                          "of the router in compose.yaml") from error  # fmt: skip
    if path.read_text().strip() != wanted:
        raise PortError(f"asked for {name} = {wanted}, read back {path.read_text().strip()}")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PortError(f"`{' '.join(command)}` failed with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def interface_in(subnet: str) -> str:
    """The name of this machine's interface that has an IPv4 address in `subnet` (CIDR). Raises PortError."""
    network = ipaddress.ip_network(subnet)
    interfaces = json.loads(_run("ip", "-json", "-4", "address", "show"))
    found = {
        interface["ifname"]: address["local"]
        for interface in interfaces
        for address in interface["addr_info"]
        if ipaddress.ip_address(address["local"]) in network
    }
    if len(found) != 1:
        have = [f"{i['ifname']} {a['local']}" for i in interfaces for a in i["addr_info"]]
        raise PortError(f"{len(found)} interfaces have an address in {subnet}, there should be one; there are {have}")
    return str(next(iter(found)))
