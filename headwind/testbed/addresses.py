"""The IP addresses of a testbed."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import dataclass

from headwind.errors import HeadwindError

# RFC 1918, the least used first; then what RFC 2544 sets aside for measuring networks, where a VPN has all the others.
POOLS = ("10.64.0.0/10", "10.128.0.0/9", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15")
POOL_TRIES = 1000


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


def pick_addresses(rng: random.Random, taken: list[str]) -> Addresses:
    """Two free private /24 networks that overlap none of `taken` (CIDR texts). Raises HeadwindError when all are taken.

    A route as wide as half the Internet is a VPN's way to be the default route, and takes nothing.
    """
    used = [net for net in (ipaddress.ip_network(text, strict=False) for text in taken) if net.prefixlen >= 8]
    free: list[str] = []
    for pool in map(ipaddress.IPv4Network, POOLS):
        for _ in range(POOL_TRIES):
            candidate = ipaddress.ip_network((rng.randrange(int(pool[0]), int(pool[-1])) & ~0xFF, 24))
            if str(candidate) not in free and not any(candidate.overlaps(net) for net in used if net.version == 4):
                free.append(str(candidate))
            if len(free) == 2:
                return Addresses(*free)
    widest = sorted({net for net in used if net.version == 4}, key=lambda net: net.prefixlen)[:6]
    raise HeadwindError(
        f"no two free /24 subnets in {', '.join(POOLS)}: host routes and Docker networks use them all "
        f"(largest: {', '.join(map(str, widest))}). If they belong to a VPN (`ip route`), disconnect it during the "
        "run or narrow its routes; `docker network prune` frees unused networks"
    )
