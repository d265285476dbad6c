"""Windows and buffers of nginx and h2load, which docs/windows.md lists, and sizes of the lab's probes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from impair.profile import HEADER_BYTES, Direction, Profile


class Windows(StrEnum):
    """The size class of a program's windows and buffers."""

    UNLIMITED = "unlimited"  # too large to limit a transfer over any network that the lab accepts
    AS_SHIPPED = "as-shipped"  # the defaults of a fresh installation


INSTALLED = "debian_packages"  # key in the facts of a testbed: the packages of each container
LARGEST_BDP_BYTES = 8_000_000  # half of the smallest window: the queue before a rate holds as much again
SHIPPED_STREAM_BYTES = 64 << 10  # nginx's default http3_stream_buffer_size: of a QUIC stream, in flight
PROBE_BYTES = 64 + HEADER_BYTES  # a payload of 64
PROBE_COUNT = 20  # of a trial if netem counts its decisions: enough for a delay
LEAST_BULK_PACKETS = 12  # of a back-to-back train: fewer leave nothing to measure under loss
# Of nginx/nginx.conf, which serves all of them. The next one resumes sessions; two further ones also offer HTTP/3.
PORTS = {Windows.UNLIMITED: 443, Windows.AS_SHIPPED: 8443}


@dataclass(frozen=True, slots=True)
class Settings:
    """The windows of both ends; the client's also decide whether it pads QUIC packets, as h2load does."""

    server: Windows = Windows.UNLIMITED
    client: Windows = Windows.UNLIMITED

    def port(self, *, resumes: bool = False, discovers: bool = False) -> int:
        """The server's port for these settings.

        Another one if connections may resume sessions, or if the client discovers HTTP/3 by the server's offer.
        """
        return PORTS[self.server] + resumes + 2 * discovers


UNLIMITED = Settings()


@dataclass(frozen=True, slots=True)
class TrialRules:
    """The rules for every trial of a run: its timeout, and the settings of every arm that sets none."""

    timeout_s: float
    settings: Settings = UNLIMITED


def largest_bdp_bytes(profile: Profile) -> float:
    """The larger bandwidth-delay product of both directions: rate times round trip; 0 without a rate.

    Of a profile that changes the highest rate and the longest delays count.
    """
    rtt_s, rate_bps = 0.0, 0
    for direction in Direction:
        links = profile.links(direction)
        rtt_s += max(link.delay.delay_s if link.delay else 0.0 for link in links)
        rate_bps = max([rate_bps, *(link.rate.rate_bps for link in links if link.rate)])
    return rate_bps * rtt_s / 8
