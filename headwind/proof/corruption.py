"""Corruption proven by the receiver's counters, for kernels whose netem does not count it (before 7.2). Pure.

netem then flips one random bit in the linear part of a packet: all of a datagram, at least the headers of a TCP
segment. What becomes of the frame depends on which bit it is (net/bridge/br_netfilter_hooks.c, net/ipv4/ip_input.c,
tcp_ipv4.c, udp.c):

- Ethernet source, 48 bits: it arrives as if nothing were wrong, but for the group bit, for which a bridge drops it.
- Ethernet destination and type, 64 bits: the interface counts the frame, IP never sees it. For a destination that is
  made a group, 1 bit, IP does; UDP delivers it, TCP drops it without a word.
- IP header, 160 bits: the checksum is wrong; a bridge with netfilter drops it, or IP counts it in InHdrErrors.
- TCP and UDP: InCsumErrors, up to 16 bits of lengths apart that are noticed before the checksum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from impair.messages import EndpointCounters
from impair.profile import FRAME_BYTES

SHORTEST_LINEAR_BYTES = 14 + 20 + 20  # Ethernet, IPv4 and TCP without options: no packet of the protocols has less
HIDDEN_BITS = (47, 64)  # of each frame, whose flip no counter shows: at least, and at most
BRIDGE_BITS = 160 + 1  # whose flip a bridge drops the frame for
# The share of flips that the counters show, from short headers with all that may hide to full frames with the least.
SHARES = (1 - HIDDEN_BITS[1] / (8 * SHORTEST_LINEAR_BYTES), 1 - HIDDEN_BITS[0] / (8 * FRAME_BYTES))
SHOWN_SHARE = sum(SHARES) / 2
SHARE_ALLOWANCE = (SHARES[1] - SHARES[0]) / 2 / SHOWN_SHARE  # of the ratio: how far the true share may be from that


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the receiving end's counters gained while the client ran, and how many frames the router sent towards it."""

    left: int  # frames out of the router
    vanished: int  # of them, between the router and the receiver's interface
    unread: int  # frames on the interface that IP never saw
    bad_headers: int  # IP header errors
    bad_checksums: int  # of TCP and of UDP

    @classmethod
    def of(cls, left: int, grown: EndpointCounters) -> Sighting:
        """`grown`: how much the receiver's counters grew."""
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
        """Frames that were corrupted, or lost as corrupted ones are: each is counted in one place only."""
        return self.vanished + self.unread + self.certain


def most_dropped_by_bridge(ratio: float, left: int, sigmas: float) -> int:
    """The most of `left` frames, each corrupted with probability `ratio`, that a bridge may drop."""
    chance = ratio * BRIDGE_BITS / (8 * SHORTEST_LINEAR_BYTES)
    return math.ceil(left * chance + sigmas * math.sqrt(left * chance * (1 - chance))) if ratio else 0
