"""A network interface of any host, through iproute2, ethtool and /proc: set up, read back, counted."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from impair.messages import FarEnds, Port, PortFrames
from impair.profile import FRAME_BYTES

SETTINGS = Path("/proc/sys")
BOOT_ID = SETTINGS / "kernel/random/boot_id"
MTU_BYTES = FRAME_BYTES - 14
# Off everywhere: a packet of several segments would be delayed, dropped or corrupted as one, and merged packets are
# forwarded with bad checksums. The names are those of `ethtool -k`.
GLUEING = (
    "tcp-segmentation-offload", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation", "tx-tcp-accecn-segmentation", "tx-udp-segmentation", "generic-segmentation-offload",
    "tx-gso-list", "generic-receive-offload", "rx-gro-list", "rx-gro-hw", "rx-udp-gro-forwarding",
    "large-receive-offload",
)  # fmt: skip
# Off where packets begin and end, too: a checksum that was never computed cannot notice a corrupted bit, and with
# scatter-gather what TCP carries hangs beside its headers, where netem before kernel 7.2 never flips a bit (measured:
# docs/kernels.md); without it every frame leaves in one piece.
AT_AN_ENDPOINT = (
    *GLUEING, "scatter-gather", "tx-scatter-gather", "tx-checksumming", "tx-checksum-ipv4", "tx-checksum-ip-generic",
    "rx-checksumming",
)  # fmt: skip
MAY_BE_FIXED_ON = ("rx-checksumming",)  # the checksum is a real one all the same; the driver may be the one to check it
FRAME_COUNTERS = {"rx_frames": 1, "tx_frames": 9, "rx_bytes": 0, "tx_bytes": 8, "rx_dropped": 3, "tx_dropped": 11}
# (columns of /proc/net/dev)


class InterfaceError(Exception):
    """An interface is not what the lab needs: what was tried, what was found, and what to do."""


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


def forward(settings: Path = SETTINGS) -> None:
    """Let packets pass between interfaces. Raises InterfaceError.

    rp_filter and redirects need no change: each endpoint's address is in the network of the port that it comes in by.
    """
    _set_sysctl("net/ipv4/ip_forward", "1", settings)


def set_up(name: str, gateway: str, neighbour_ip: str, neighbour_mac: str, settings: Path = SETTINGS) -> None:
    """Bring a port of the router up: gateway address with prefix length, MTU, static neighbour; all read back.

    Neither IPv6 nor offloads are left on. Raises InterfaceError when something is not as asked.
    """
    turn_ipv6_off(name, settings)
    run("ip", "link", "set", "dev", name, "mtu", str(MTU_BYTES), "up")
    run("ip", "address", "replace", gateway, "dev", name)
    set_neighbour(name, neighbour_ip, neighbour_mac)
    addresses = listed("-4", "address", "show", "dev", name)[0]
    held = {f"{address['local']}/{address['prefixlen']}" for address in addresses["addr_info"]}
    if gateway not in held or addresses["mtu"] != MTU_BYTES or "UP" not in addresses["flags"]:
        raise InterfaceError(f"{name}: asked to be up with {gateway} and MTU {MTU_BYTES}, read back {addresses}")
    turn_offloads_off(name, GLUEING)


def turn_ipv6_off(name: str, settings: Path = SETTINGS) -> None:
    """IPv6 would send packets of its own (router and neighbour discovery) through the path. Raises InterfaceError."""
    _set_sysctl(f"net/ipv6/conf/{name}/disable_ipv6", "1", settings)


def set_neighbour(name: str, ip: str, mac: str) -> dict[str, Any]:
    """A fixed Ethernet address: ARP would be impaired too. Returns the entry as read back. Raises InterfaceError."""
    run("ip", "neighbour", "replace", ip, "lladdr", mac, "nud", "permanent", "dev", name)
    found = listed("neighbour", "show", "to", ip, "dev", name)
    if [(entry.get("lladdr"), entry.get("state")) for entry in found] != [(mac.lower(), ["PERMANENT"])]:
        raise InterfaceError(f"{name}: asked for the neighbour {ip} to be {mac} for good, read back {found}")
    return found[0]


def turn_offloads_off(name: str, offloads: Collection[str]) -> dict[str, str]:
    """{offload: "off", "off [fixed]" or "on [fixed]"} as read back, of those that this kernel knows.

    Raises InterfaceError when one stays on.
    """
    words = [word for offload in active_offloads(name, offloads) for word in (offload, "off")]
    if words:
        subprocess.run(["ethtool", "-K", name, *words], capture_output=True, check=False)  # the read-back decides
    if active := active_offloads(name, offloads):
        raise InterfaceError(
            f"{name}: `ethtool -K {name} {' '.join(words)}` left on: {', '.join(active)}; packets would be impaired "
            "many at once, or corrupted unnoticed"
        )
    return {
        offload: ("on" if state["active"] else "off") + (" [fixed]" if state["fixed"] else "")
        for offload, state in _features(name, offloads).items()
    }


def active_offloads(name: str, offloads: Collection[str]) -> list[str]:
    """Those that are on and must not be. Raises InterfaceError, also when nothing is told of segmentation."""
    return [
        offload
        for offload, state in _features(name, offloads).items()
        if state["active"] and not (state["fixed"] and offload in MAY_BE_FIXED_ON)
    ]


def odd_offloads(names: Iterable[str], offloads: Collection[str]) -> list[str]:
    """The interfaces with offloads that must not be on, in words. Raises InterfaceError."""
    return [
        f"{name} with {', '.join(on)} on (`ethtool -k {name}`)"
        for name in names
        if (on := active_offloads(name, offloads))
    ]


def _features(name: str, offloads: Collection[str]) -> dict[str, dict[str, bool]]:
    told = json.loads(run("ethtool", "--json", "-k", name))[0]
    if "generic-segmentation-offload" not in told:
        raise InterfaceError(f"`ethtool --json -k {name}` tells nothing of segmentation, only {sorted(told)}")
    return {offload: told[offload] for offload in offloads if offload in told}


def _set_sysctl(key: str, wanted: str, settings: Path) -> None:
    """Write a kernel setting, unless it is already so (in a container /proc/sys can only be read)."""
    path = settings / key
    if not path.exists() and key.startswith("net/ipv6/"):
        return  # a kernel without IPv6 has nothing to turn off
    if path.read_text().strip() == wanted:
        return
    name = key.replace("/", ".")
    try:
        path.write_text(wanted)
    except OSError as error:
        raise InterfaceError(f"{name} must be {wanted}, and cannot be written here ({error}): set it under `sysctls` "
                             "of this host in compose.yaml") from error  # fmt: skip
    if path.read_text().strip() != wanted:
        raise InterfaceError(f"asked for {name} = {wanted}, read back {path.read_text().strip()}")


def run(*command: str) -> str:
    """The command's output. Raises InterfaceError with the command and what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise InterfaceError(f"`{' '.join(command)}`: {command[0]} is not installed here") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise InterfaceError(f"`{' '.join(command)}` failed with status {done.returncode}: {said}")
    return done.stdout


def listed(*arguments: str) -> list[dict[str, Any]]:
    """The objects that `ip -json` lists; none for a command that only does something. Raises InterfaceError."""
    found: list[dict[str, Any]] = json.loads(run("ip", "-json", *arguments) or "[]")
    return found


def interface_in(subnet: str) -> str:
    """The name of this machine's interface that has an IPv4 address in `subnet` (CIDR). Raises InterfaceError."""
    network = ipaddress.ip_network(subnet)
    interfaces = listed("-4", "address", "show")
    found = {
        interface["ifname"]: address["local"]
        for interface in interfaces
        for address in interface["addr_info"]
        if ipaddress.ip_address(address["local"]) in network
    }
    if len(found) != 1:
        have = [f"{i['ifname']} {a['local']}" for i in interfaces for a in i["addr_info"]]
        raise InterfaceError(
            f"{len(found)} interfaces have an address in {subnet}, there should be one; there are {have}"
        )
    return str(next(iter(found)))
