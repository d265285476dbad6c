"""The endpoint's way to its peer: its only link and the routes over it, set by `ip` and read back."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from impair.interface import MTU_BYTES, InterfaceError, listed, run


@dataclass(frozen=True, slots=True)
class OnlyLink:
    """The endpoint's only link: its name, IPv4 address and network, Ethernet address and MTU in bytes."""

    name: str
    ip: str
    network: ipaddress.IPv4Network
    mac: str
    mtu: int

    @classmethod
    def find(cls, listed: Callable[..., list[dict[str, Any]]] = listed) -> OnlyLink:
        """The only interface with a global IPv4 address. Raises InterfaceError if there is none, or more than one."""
        found = [(link, address) for link in listed("-4", "address", "show") for address in link.get("addr_info", ())
                 if address.get("scope") == "global"]  # fmt: skip
        if len(found) != 1:
            names = ", ".join(f"{address['local']} on {link['ifname']}" for link, address in found) or "none"
            raise InterfaceError(f"an endpoint must have exactly one global IPv4 address; found: {names}")
        link, address = found[0]
        name, ip = str(link["ifname"]), str(address["local"])
        network = ipaddress.IPv4Network(f"{ip}/{address['prefixlen']}", strict=False)
        return cls(name, ip, network, listed("link", "show", "dev", name)[0]["address"], int(link["mtu"]))

    def check_mtu(self) -> None:
        """Raises InterfaceError unless the largest frame is FRAME_BYTES long."""
        if self.mtu != MTU_BYTES:
            raise InterfaceError(
                f"{self.name} has an MTU of {self.mtu} bytes, the lab's frames need {MTU_BYTES}: give the network in "
                f"compose.yaml the driver option com.docker.network.driver.mtu: {MTU_BYTES}"
            )

    def set_routes(self, gateway: str, peer_network: str, congestion: str) -> list[dict[str, Any]]:
        """Set routes to the own network and the peer's, and no other: all traffic goes through the router or fails.

        TCP towards the peer uses the congestion control of its route, whatever the host's default is, and
        whether or not the host allows it to unprivileged programs. Returns all routes as read back.
        """
        own = str(self.network)
        for route in listed("-4", "route", "show"):
            if route["dst"] not in (own, peer_network):
                metric = ("metric", str(route["metric"])) if "metric" in route else ()
                run("ip", "-4", "route", "delete", route["dst"], *metric)
        self.set_route(gateway, peer_network, congestion)
        routes = listed("-4", "route", "show")
        found = [(route["dst"], route.get("gateway"), route.get("dev"), route.get("metrics")) for route in routes]
        wanted = [(own, None, self.name, None), (peer_network, gateway, self.name, [{"congestion": congestion}])]
        if sorted(found, key=str) != sorted(wanted, key=str):
            raise InterfaceError(f"requested the routes {wanted}, read back {found}")
        return routes

    def set_route(self, gateway: str, peer_network: str, congestion: str) -> None:
        """Set the route to the peer's network, or its congestion control. Raises InterfaceError."""
        run("ip", "-4", "route", "replace", peer_network, "via", gateway, "dev", self.name, "congctl", congestion)

    def route_to(self, peer_ip: str, gateway: str, congestion: str) -> dict[str, Any]:
        """The route of a packet to the peer, as the kernel looks it up. Raises InterfaceError for any other way."""
        route = listed("-4", "route", "get", peer_ip)[0]
        found = (route.get("gateway"), route.get("dev"), route.get("metrics"))
        if found != (gateway, self.name, [{"congestion": congestion}]):
            raise InterfaceError(f"packets to {peer_ip} should go through {gateway} on {self.name} with {congestion}, "
                                f"but `ip route get` says {route}")  # fmt: skip
        return route
