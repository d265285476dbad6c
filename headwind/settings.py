"""What nginx and h2load are set to: their windows and buffers, which docs/windows.md lists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Windows(StrEnum):
    """How large the windows and buffers of a program are."""

    UNBOUND = "unbound"  # so large that none limits a transfer over a network that the lab accepts
    AS_SHIPPED = "as-shipped"  # what a fresh installation has


PORTS = {Windows.UNBOUND: 443, Windows.AS_SHIPPED: 8443}  # of nginx/nginx.conf, which serves both


@dataclass(frozen=True, slots=True)
class Settings:
    """The windows of both ends; the client's also decide whether it pads QUIC packets, as h2load does."""

    server: Windows = Windows.UNBOUND
    client: Windows = Windows.UNBOUND

    @property
    def port(self) -> int:
        """Where nginx serves with these settings."""
        return PORTS[self.server]


UNBOUND = Settings()
