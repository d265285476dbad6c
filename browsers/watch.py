"""The sockets of a page while it loads: congestion control, buffers, and the connections of both transports."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from browsers.browser import Loading, Place
from impair.endpoint.buffers import UdpSocket, smallest, udp_sockets
from impair.endpoint.tcp_state import congestion_of

SNMP = Path("/proc/net/snmp")


class Watch:
    """Looks at the sockets of a page.

    Connections are counted by the kernel, so those that lose a race and carry no request count, too.
    """

    def __init__(self, place: Place) -> None:
        self._place, self._network = place, ipaddress.IPv4Network(place.host)
        self._known = {each.inode for each in udp_sockets()}
        self._quic: dict[int, UdpSocket] = {}
        self._tcp_before = tcp_opens(SNMP.read_text())

    def look(self, seen: Loading) -> bool:
        """Update `seen`; whether nothing more is to be found."""
        if self._place.protocol == "h3":
            self._quic |= {each.inode: each for each in udp_sockets() if each.inode not in self._known}
            seen.sockets = smallest(list(self._quic.values()))
            return bool(self._quic) and not self._place.discovers
        seen.congestion = sorted(set(congestion_of(self._network)))
        return bool(seen.congestion)

    def connections(self, seen: Loading) -> dict[str, int]:
        """The metrics of a place that discovers: connections that were begun over TCP, and sockets of QUIC."""
        if not self._place.discovers:
            return {}
        self.look(seen)
        return {
            "tcp_connections": tcp_opens(SNMP.read_text()) - self._tcp_before,
            "quic_connections": len(self._quic),
        }


def tcp_opens(text: str) -> int:
    """The number of TCP connections that this host began since its start, from the text of /proc/net/snmp."""
    names, numbers = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
    return int(numbers[names.index("ActiveOpens")])
