"""Who has which address in a testbed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addresses:
    """The two subnets of a testbed; hosts .10 are the endpoints, .253 the router's container, .254 the gateways."""

    client_subnet: str
    server_subnet: str

    def host(self, side: str, number: int) -> str:
        """The address `number` of the subnet of `side` ("client" or "server")."""
        subnet = self.client_subnet if side == "client" else self.server_subnet
        return str(ipaddress.ip_network(subnet)[number])

    def gateway(self, side: str) -> str:
        """The router's address with its prefix length."""
        return f"{self.host(side, 254)}/24"
