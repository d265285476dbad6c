"""A network interface of any host, through iproute2, ethtool and /proc: set up, read back, counted."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from impair import kept
from impair.messages import FarEnds, Port, PortFrames
from impair.profile import FRAME_BYTES

SETTINGS = Path("/proc/sys")
FRAMES = "/proc/net/dev"
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
# Off at both ends, too: a checksum that was never computed cannot detect a corrupted bit, and with
# scatter-gather TCP's payload is outside the linear part, which netem before kernel 7.2 never corrupts (measured:
# docs/kernels.md); without it every frame leaves in one piece.
AT_AN_ENDPOINT = (
    *GLUEING, "scatter-gather", "tx-scatter-gather", "tx-checksumming", "tx-checksum-ipv4", "tx-checksum-ip-generic",
    "rx-checksumming",
)  # fmt: skip
MAY_BE_FIXED_ON = ("rx-checksumming",)  # the checksum is real; the driver may check it
FRAME_COUNTERS = {"rx_frames": 1, "tx_frames": 9, "rx_bytes": 0, "tx_bytes": 8, "rx_dropped": 3, "tx_dropped": 11}
# (columns of /proc/net/dev)


class InterfaceError(Exception):
    """An interface is not what the lab needs: what was tried, what was found, and what to do."""


def describe(name: str) -> Port:
    """The name, Ethernet address and MTU of an interface."""
    device = Path("/sys/class/net") / name
    return Port(name, (device / "address").read_text().strip(), int((device / "mtu").read_text()))


def veth_peers(names: Iterable[str]) -> FarEnds:
    """The far ends of these veth pairs on the host."""
    devices = [Path("/sys/class/net") / name for name in names]
    indices, own = ([int((each / file).read_text()) for each in devices] for file in ("iflink", "ifindex"))
    return FarEnds(BOOT_ID.read_text().strip(), indices, own)


def frame_counters() -> dict[str, PortFrames]:
    """The counters of every interface, by name."""
    rows = {}
    for line in kept.read_list(FRAMES).splitlines()[2:]:
        name, _, numbers = line.partition(":")
        columns = [int(word) for word in numbers.split()]
        rows[name.strip()] = PortFrames(**{counter: columns[index] for counter, index in FRAME_COUNTERS.items()})
    return rows


def forward(settings: Path = SETTINGS) -> None:
    """Let packets pass between interfaces. Raises InterfaceError.

    rp_filter and redirects need no change: each endpoint's address is in the network of the port that it comes in by.
    """
    _set_sysctl("net/ipv4/ip_forward", "1", settings)


def set_up(name: str, gateway: str, neighbours: Mapping[str, str], settings: Path = SETTINGS) -> None:
    """Bring a port of the router up: gateway address with prefix length, MTU, static neighbours; all read back.

    `neighbours` are Ethernet addresses by IP address. Neither IPv6 nor offloads are left on. Raises InterfaceError
    if something differs from the request.
    """
    turn_ipv6_off(name, settings)
    run("ip", "link", "set", "dev", name, "mtu", str(MTU_BYTES), "up")
    run("ip", "address", "replace", gateway, "dev", name)
    for ip, mac in neighbours.items():
        set_neighbour(name, ip, mac)
    addresses = listed("-4", "address", "show", "dev", name)[0]
    held = {f"{address['local']}/{address['prefixlen']}" for address in addresses["addr_info"]}
    if gateway not in held or addresses["mtu"] != MTU_BYTES or "UP" not in addresses["flags"]:
        raise InterfaceError(f"{name}: requested to be up with {gateway} and MTU {MTU_BYTES}, read back {addresses}")
    turn_offloads_off(name, GLUEING)


def turn_ipv6_off(name: str, settings: Path = SETTINGS) -> None:
    """Disable IPv6, which sends its own packets (router and neighbour discovery). Raises InterfaceError."""
    _set_sysctl(f"net/ipv6/conf/{name}/disable_ipv6", "1", settings)


def set_neighbour(name: str, ip: str, mac: str) -> dict[str, Any]:
    """Set a fixed Ethernet address: ARP would be impaired too. Returns the entry as read back.

    Raises InterfaceError.
    """
    run("ip", "neighbour", "replace", ip, "lladdr", mac, "nud", "permanent", "dev", name)
    found = listed("neighbour", "show", "to", ip, "dev", name)
    if [(entry.get("lladdr"), entry.get("state")) for entry in found] != [(mac.lower(), ["PERMANENT"])]:
        raise InterfaceError(f"{name}: requested the permanent neighbour {ip} {mac}, read back {found}")
    return found[0]


def turn_offloads_off(name: str, offloads: Collection[str]) -> dict[str, str]:
    """{offload: "off", "off [fixed]" or "on [fixed]"} as read back, of those that this kernel knows.

    Raises InterfaceError if one stays on.
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
    """Forbidden offloads that are on. Raises InterfaceError, also if segmentation is not reported."""
    return [
        offload
        for offload, state in _features(name, offloads).items()
        if state["active"] and not (state["fixed"] and offload in MAY_BE_FIXED_ON)
    ]


def odd_offloads(names: Iterable[str], offloads: Collection[str]) -> list[str]:
    """The interfaces with forbidden offloads, as text. Raises InterfaceError."""
    return [
        f"{name} with {', '.join(on)} on (`ethtool -k {name}`)"
        for name in names
        if (on := active_offloads(name, offloads))
    ]


def _features(name: str, offloads: Collection[str]) -> dict[str, dict[str, bool]]:
    features = json.loads(run("ethtool", "--json", "-k", name))[0]
    if "generic-segmentation-offload" not in features:
        raise InterfaceError(f"`ethtool --json -k {name}` does not report segmentation, only {sorted(features)}")
    return {offload: features[offload] for offload in offloads if offload in features}


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
        raise InterfaceError(f"requested {name} = {wanted}, read back {path.read_text().strip()}")


def run(*command: str) -> str:
    """The command's output. Raises InterfaceError with the command and its error message."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise InterfaceError(f"`{' '.join(command)}`: {command[0]} is not installed here") from error
    if done.returncode:
        output = (done.stderr or done.stdout).strip()
        raise InterfaceError(f"`{' '.join(command)}` failed with status {done.returncode}: {output}")
    return done.stdout


def listed(*arguments: str) -> list[dict[str, Any]]:
    """The objects that `ip -json` lists; none for a command without output. Raises InterfaceError."""
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
