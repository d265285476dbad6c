"""The endpoint's interface, as the lab needs it: set by `ip` and `ethtool`, and read back, or EndpointError."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impair.profile import FRAME_BYTES

MTU_BYTES = FRAME_BYTES - 14
# What ethtool -K is told, and what ethtool -k must then not show as active. A packet of several segments would be
# impaired as one, and a checksum that was never computed cannot notice a corrupted bit. With scatter-gather what TCP
# carries hangs beside its headers, where netem before kernel 7.2 never flips a bit (measured: docs/kernels.md); without
# it every frame leaves in one piece.
SWITCHES = ("tso", "gso", "gro", "lro", "tx-udp-segmentation", "tx", "rx", "sg")
MUST_BE_OFF = (
    "tcp-segmentation-offload", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation", "tx-tcp-accecn-segmentation", "tx-udp-segmentation", "generic-segmentation-offload",
    "generic-receive-offload", "rx-gro-list", "rx-gro-hw", "rx-udp-gro-forwarding", "large-receive-offload",
    "scatter-gather", "tx-scatter-gather", "tx-checksumming", "tx-checksum-ipv4", "tx-checksum-ip-generic",
    "rx-checksumming",
)  # fmt: skip
MAY_BE_FIXED_ON = ("rx-checksumming",)  # the checksum is a real one all the same; the driver may be the one to check it


class EndpointError(Exception):
    """The endpoint is not what the lab needs: what was tried, what was found, and what to do."""


@dataclass(frozen=True, slots=True)
class Interface:
    """The endpoint's only link: its name, IPv4 address and network, Ethernet address and MTU in bytes."""

    name: str
    ip: str
    network: ipaddress.IPv4Network
    mac: str
    mtu: int

    @classmethod
    def find(cls) -> Interface:
        """The only interface with a global IPv4 address. Raises EndpointError when there is none, or a choice."""
        found = [(link, address) for link in _ip("-4", "address", "show") for address in link.get("addr_info", ())
                 if address.get("scope") == "global"]  # fmt: skip
        if len(found) != 1:
            names = ", ".join(f"{address['local']} on {link['ifname']}" for link, address in found) or "none"
            raise EndpointError(f"an endpoint must have exactly one IPv4 address of its own; there is: {names}")
        link, address = found[0]
        name, ip = str(link["ifname"]), str(address["local"])
        network = ipaddress.IPv4Network(f"{ip}/{address['prefixlen']}", strict=False)
        return cls(name, ip, network, _ip("link", "show", "dev", name)[0]["address"], int(link["mtu"]))

    def check_mtu(self) -> None:
        """Raises EndpointError unless the largest frame is FRAME_BYTES long."""
        if self.mtu != MTU_BYTES:
            raise EndpointError(
                f"{self.name} has an MTU of {self.mtu} bytes, the lab's frames need {MTU_BYTES}: give the network in "
                f"compose.yaml the driver option com.docker.network.driver.mtu: {MTU_BYTES}"
            )

    def turn_ipv6_off(self) -> str:
        """IPv6 would send packets of its own (router and neighbour discovery) through the impaired path."""
        setting = Path(f"/proc/sys/net/ipv6/conf/{self.name}/disable_ipv6")
        if setting.exists() and setting.read_text().strip() != "1":
            try:
                setting.write_text("1")
            except OSError as error:
                raise EndpointError(
                    f"IPv6 is on, and {setting} cannot be written here ({error.strerror}): set "
                    "net.ipv6.conf.all.disable_ipv6=1 under `sysctls` in compose.yaml"
                ) from error
            if setting.read_text().strip() != "1":
                raise EndpointError(f"wrote 1 to {setting}, read back {setting.read_text().strip()}")
        return "off"

    def turn_offloads_off(self) -> dict[str, str]:
        """Every packet travels as one frame, with its checksum computed. Returns what check_offloads does."""
        _run("ethtool", "-K", self.name, *(word for switch in SWITCHES for word in (switch, "off")))
        return check_offloads(self.name, json.loads(_run("ethtool", "--json", "-k", self.name))[0])

    def glueing_offloads(self) -> list[str]:
        """What check_offloads complains of, in words; nothing when all is off."""
        try:
            check_offloads(self.name, json.loads(_run("ethtool", "--json", "-k", self.name))[0])
        except EndpointError as error:
            return [str(error)]
        return []

    def set_neighbour(self, gateway: str, mac: str) -> dict[str, Any]:
        """A fixed Ethernet address of the gateway: ARP would be impaired too. Returns the entry as read back."""
        _run("ip", "neighbour", "replace", gateway, "lladdr", mac, "nud", "permanent", "dev", self.name)
        found = [entry for entry in _ip("neighbour", "show", "dev", self.name) if entry["dst"] == gateway]
        if [(entry.get("lladdr"), entry.get("state")) for entry in found] != [(mac.lower(), ["PERMANENT"])]:
            raise EndpointError(f"asked for {gateway} to be {mac} for good on {self.name}, read back {found}")
        return found[0]

    def set_routes(self, gateway: str, peer_network: str, congestion: str) -> list[dict[str, Any]]:
        """The own network and the peer's, and no other: what does not go through the router must not go at all.

        TCP towards the peer uses the congestion control of its route, whatever the host's default is, and whether or
        not the host allows it to everybody. Returns all routes as read back.
        """
        own = str(self.network)
        for route in _ip("-4", "route", "show"):
            if route["dst"] not in (own, peer_network):
                metric = ("metric", str(route["metric"])) if "metric" in route else ()
                _run("ip", "-4", "route", "delete", route["dst"], *metric)
        self.set_route(gateway, peer_network, congestion)
        routes = _ip("-4", "route", "show")
        found = [(route["dst"], route.get("gateway"), route.get("dev"), route.get("metrics")) for route in routes]
        wanted = [(own, None, self.name, None), (peer_network, gateway, self.name, [{"congestion": congestion}])]
        if sorted(found, key=str) != sorted(wanted, key=str):
            raise EndpointError(f"asked for the routes {wanted}, read back {found}")
        return routes

    def set_route(self, gateway: str, peer_network: str, congestion: str) -> None:
        """The route to the peer's network, or another congestion control for it. Raises EndpointError."""
        _run("ip", "-4", "route", "replace", peer_network, "via", gateway, "dev", self.name, "congctl", congestion)

    def route_to(self, peer_ip: str, gateway: str, congestion: str) -> dict[str, Any]:
        """The way of a packet to the peer, as the kernel looks it up. Raises EndpointError for any other way."""
        route = _ip("-4", "route", "get", peer_ip)[0]
        found = (route.get("gateway"), route.get("dev"), route.get("metrics"))
        if found != (gateway, self.name, [{"congestion": congestion}]):
            raise EndpointError(f"packets to {peer_ip} should go through {gateway} on {self.name} with {congestion}, "
                                f"but `ip route get` says {route}")  # fmt: skip
        return route


def check_offloads(interface: str, features: Mapping[str, Any]) -> dict[str, str]:
    """{feature: "off", "off [fixed]" or "on [fixed]"} out of what `ethtool --json -k` says of an interface.

    Raises EndpointError when one of MUST_BE_OFF is active, or when the answer tells nothing of segmentation.
    """
    known = {name: features[name] for name in MUST_BE_OFF if name in features}
    if "generic-segmentation-offload" not in known:
        raise EndpointError(f"`ethtool --json -k {interface}` tells nothing of segmentation, only {sorted(features)}")
    left_on = [name for name, state in known.items()
               if state["active"] and not (state["fixed"] and name in MAY_BE_FIXED_ON)]  # fmt: skip
    if left_on:
        raise EndpointError(
            f"`ethtool -K {interface} {' off '.join(SWITCHES)} off` left on: {', '.join(left_on)}; packets would be "
            "impaired many at once, or corrupted unnoticed"
        )
    return {
        name: ("on" if state["active"] else "off") + (" [fixed]" if state["fixed"] else "")
        for name, state in known.items()
    }


def _run(*command: str) -> str:
    """The command's output. Raises EndpointError with the command and what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise EndpointError(f"`{' '.join(command)}`: {command[0]} is not installed here") from error
    if done.returncode:
        raise EndpointError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _ip(*arguments: str) -> list[dict[str, Any]]:
    """The objects that `ip -json` lists; none for a command that only does something."""
    listed: list[dict[str, Any]] = json.loads(_run("ip", "-json", *arguments) or "[]")
    return listed
