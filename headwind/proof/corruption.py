"""Corruption from the receiver's counters, for kernels whose netem does not count it (before 7.2). Pure.

netem flips one random bit in the linear part of a packet: all of a datagram, at least the headers of a TCP segment. The
bit determines the fate of the frame (net/bridge/br_netfilter_hooks.c, net/ipv4/ip_input.c, tcp_ipv4.c, udp.c):

- Ethernet source, 48 bits: it arrives unchanged in effect, except for the group bit, for which a bridge drops it.
- Ethernet destination and type, 64 bits: the interface counts the frame, IP never sees it. If the destination becomes a
  group, 1 bit, IP does; UDP delivers it, TCP drops it silently.
- IP header, 160 bits: the checksum is wrong; a bridge with netfilter drops it, or IP counts it in InHdrErrors.
- TCP and UDP: InCsumErrors, except up to 16 bits of lengths that are noticed before the checksum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from impair.messages import EndpointCounters
from impair.profile import FRAME_BYTES

SHORTEST_LINEAR_BYTES = 14 + 20 + 20  # Ethernet, IPv4 and TCP without options: no packet of the protocols has less
HIDDEN_BITS = (47, 64)  # of each frame, whose flip no counter shows: minimum and maximum
BRIDGE_BITS = 160 + 1  # bits whose flip makes a bridge drop the frame
# The share of flips that the counters show, from short headers with the most hidden bits to full frames with the
# fewest.
SHARES = (1 - HIDDEN_BITS[1] / (8 * SHORTEST_LINEAR_BYTES), 1 - HIDDEN_BITS[0] / (8 * FRAME_BYTES))
SHOWN_SHARE = sum(SHARES) / 2
SHARE_ALLOWANCE = (SHARES[1] - SHARES[0]) / 2 / SHOWN_SHARE  # of the ratio: possible deviation of the true share


@dataclass(frozen=True, slots=True)
class Sighting:
    """Growth of the receiving end's counters during the client's run, and the frames that the router sent to it."""

    left: int  # frames out of the router
    vanished: int  # between the router and the receiver's interface
    unread: int  # frames on the interface that IP never saw
    bad_headers: int  # IP header errors
    bad_checksums: int  # of TCP and of UDP

    @classmethod
    def of(cls, left: int, grown: EndpointCounters) -> Sighting:
        """Derive it from `grown`, the growth of the receiver's counters."""
        return cls(
            left,
            max(0, left - grown.rx_frames),
            max(0, grown.rx_frames - grown.ip_in_receives),
            grown.ip_in_hdr_errors,
            grown.tcp_in_csum_errors + grown.udp_in_csum_errors,
        )

    @property
    def certain(self) -> int:
        """Frames that can only have been corrupted: a lost one breaks no checksum."""
        return self.bad_headers + self.bad_checksums

    @property
    def shown(self) -> int:
        """Frames that were corrupted, or lost like corrupted ones: each is counted in one place only."""
        return self.vanished + self.unread + self.certain


def most_dropped_by_bridge(ratio: float, left: int, sigmas: float) -> int:
    """The most of `left` frames, each corrupted with probability `ratio`, that a bridge may drop."""
    chance = ratio * BRIDGE_BITS / (8 * SHORTEST_LINEAR_BYTES)
    return math.ceil(left * chance + sigmas * math.sqrt(left * chance * (1 - chance))) if ratio else 0
