"""Windows and buffers of a trial, and whether one of them limited it. Pure; see docs/windows.md.

A window of W bytes allows W bytes in a round trip. A binding window cannot be observed directly, but a transfer that
moves that amount in a round trip has met it, if nothing else in the network limits it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from headwind.arm import Protocol
from headwind.model import Trial
from headwind.proof.evidence import Evidence, Trains, WindowSizes
from headwind.servers import NGINX, Server
from impair.messages import EndpointCounters
from impair.profile import Direction, Profile

FRAME_OVERHEAD_BYTES = 70  # Ethernet, IPv4 and TCP with timestamps, or UDP and QUIC; what TLS adds is less than 1 %
TCP_SHARE = 0.5  # of a socket's buffer that is payload: the kernel counts its own structures too (tcp_adv_win_scale)
LIMITED = "limited by a window of"  # beginning of such a warning
FILLED = (0.75, 1.25)  # a round trip that carries this share of a window has met it: slow start is below, jitter above
RATE_FILLED = 0.9  # of the profile's rate: above it the rate is the limit


@dataclass(frozen=True, slots=True)
class Window:
    """The bytes that one program allows in flight."""

    name: str  # for people: the program and the setting
    bytes: int
    per_stream: bool  # else per connection


def windows(protocol: Protocol, server: WindowSizes, client: WindowSizes, kind: Server = NGINX) -> Iterator[Window]:
    """Every window on the way of an answer, from the read-backs of both agents; unknown ones are left out."""
    if protocol is Protocol.H3:
        name = f"{kind.name}'s {kind.quic_window}"
        known = [(name, server.get("http3_stream_buffer_bytes"), kind.is_window_per_stream)]
    else:
        known = [
            (f"{who} TCP buffer ({name})", int(size * TCP_SHARE), False)
            for who, side, name in (("the server's", server, "tcp_wmem"), ("the client's", client, "tcp_rmem"))
            if (size := side.get(f"{name}_max_bytes")) is not None
        ]
    known.append(("h2load's --window-bits", client.get("window_bytes"), True))
    known.append(("h2load's --connection-window-bits", client.get("connection_window_bytes"), False))
    yield from (Window(name, size, each) for name, size, each in known if size is not None)


def limiting(
    payload_bps: float, rtt_s: float, found: Iterator[Window], connections: int, streams: int
) -> Window | None:
    """The window that a transfer over `connections`, with `streams` on each, has met; None if it met none."""
    in_flight = payload_bps * rtt_s / 8
    allowed = {window: window.bytes * connections * (streams if window.per_stream else 1) for window in found}
    tightest = min(allowed, key=lambda window: allowed[window], default=None)
    if tightest is None or not FILLED[0] <= in_flight / allowed[tightest] <= FILLED[1]:
        return None
    return tightest


def window_warnings(trial: Trial, evidence: Evidence, wall_s: float) -> Iterator[str]:
    """Warnings about the windows of a trial: the one that limited it, if any.

    `wall_s` is the client's run time in seconds; `evidence.windows` holds the read-backs of "server" and "client".
    """
    if wall_s <= 0:
        return
    payload_bps = _payload_bps(evidence.arrived(Direction.DOWNLINK), wall_s)
    rates_bps = [link.rate.rate_bps for link in trial.profile.links(Direction.DOWNLINK) if link.rate]
    if rates_bps and payload_bps > RATE_FILLED * min(rates_bps):
        return
    connections, streams = trial.workload.at_once()
    found = windows(trial.protocol, evidence.windows["server"], evidence.windows["client"], trial.arm.server)
    rtt_s = _rtt_s(trial.profile, evidence.trains)
    window = limiting(payload_bps, rtt_s, found, connections, streams)
    if window:
        yield (
            f"{LIMITED} {window.bytes / 1024:.0f} KB ({window.name}): "
            f"{payload_bps / 1e6:.3g} Mbit/s over a round trip of {rtt_s * 1000:.3g} ms"
        )


def _payload_bps(grown: EndpointCounters, wall_s: float) -> float:
    """Bit/s that the client received, without headers; counted by its interface, so also known of a killed client."""
    return max(0.0, (grown.rx_bytes - grown.rx_frames * FRAME_OVERHEAD_BYTES) * 8 / wall_s)


def _rtt_s(profile: Profile, trains: Mapping[Direction, Trains]) -> float:
    """The round trip as the probes measured it on an idle path, in seconds; the request if none of them arrived."""
    rtt_s = 0.0
    for direction in Direction:
        delays = trains[direction].probe.delays_s if direction in trains else []
        delay = profile.link(direction).delay
        rtt_s += median(delays) if delays else delay.delay_s if delay else 0.0
    return rtt_s
