"""What nginx and h2load are set to: their windows and buffers, which docs/windows.md lists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from impair.profile import Direction, Profile


class Windows(StrEnum):
    """How large the windows and buffers of a program are."""

    UNBOUND = "unbound"  # so large that none limits a transfer over a network that the lab accepts
    AS_SHIPPED = "as-shipped"  # what a fresh installation has


LARGEST_BDP_BYTES = 8_000_000  # half of the smallest window: the queue before a rate holds as much again
# Of nginx/nginx.conf, which serves all of them: full handshakes only, or sessions that are resumed.
PORTS = {Windows.UNBOUND: 443, Windows.AS_SHIPPED: 8443}
SESSION_PORTS = {Windows.UNBOUND: 444, Windows.AS_SHIPPED: 8444}


@dataclass(frozen=True, slots=True)
class Settings:
    """The windows of both ends; the client's also decide whether it pads QUIC packets, as h2load does."""

    server: Windows = Windows.UNBOUND
    client: Windows = Windows.UNBOUND

    def port(self, *, resumes: bool = False) -> int:
        """Where nginx serves with these settings; another one where connections may resume sessions."""
        return (SESSION_PORTS if resumes else PORTS)[self.server]


UNBOUND = Settings()


def largest_bdp_bytes(profile: Profile) -> float:
    """The larger bandwidth-delay product of both directions: a rate times the round trip; 0 without any rate."""
    links = [profile.link(direction) for direction in Direction]
    rtt_s = sum(link.delay.delay_s for link in links if link.delay)
    return max(link.rate.rate_bps * rtt_s / 8 if link.rate else 0.0 for link in links)
