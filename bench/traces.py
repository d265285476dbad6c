"""Writes the three rate traces of experiments/traces: a drive over LTE, a walk between Wi-Fi access points, a train.

    .venv/bin/python bench/traces.py [FOLDER]

Nothing was recorded: each trace follows from a model of published numbers and a seed, so that it can be shared and made
again, to the byte. A device moves past sites in a row, and has the one that it receives best, with hysteresis. What it
receives is path loss and shadowing, whose correlation falls exponentially with the distance that was travelled
(M. Gudmundson, Electronics Letters 27, 1991). Its share of the site's rate follows from that; while it changes sites
nothing passes. Fast fading is left out: a step of the lab's replay averages over it.

Sources: 3GPP TR 36.942 (path loss, noise figure, antennas, and annex A.1 for the rate by SINR), TR 36.814 (site
distances, shadowing of 8 dB over 50 m), TR 36.881 (a handover takes 50 ms); IEEE 802.11-03/940r4, channel model D, and
the sensitivities and rates of IEEE 802.11n (20 MHz, one stream); A. Mishra, M. Shin and W. Arbaugh, "An empirical
analysis of the IEEE 802.11 MAC layer handoff process", 2003 (60 to 400 ms). The shares of a site's rate that the device
gets, the speeds and the tunnels are assumptions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import NormalDist

FOLDER = Path(__file__).resolve().parent.parent / "experiments/traces"
SAMPLE_MS = 10
PACKET_BITS = 1500 * 8
LTE_HZ, LTE_NOISE_DBM = 10e6, -174 + 70 + 9  # thermal noise of 10 MHz, and a noise figure of 9 dB
LTE_SENT_DBM = 46 + 15 - 20  # power and antenna of the site; a car or a carriage takes 20 dB of it
WIFI_SENT_DBM = 17 - 24  # power; two walls and the body of who walks take 24 dB of it
LOAD = 0.5  # share of the time in which other sites send
WIFI_MBPS = ((-64, 65.0), (-65, 58.5), (-66, 52.0), (-70, 39.0), (-74, 26.0), (-77, 19.5), (-79, 13.0), (-82, 6.5))
STANDARD = NormalDist()


@dataclass(frozen=True, slots=True)
class Journey:
    """A device that moves past sites, in m, m/s, dB and s. `rate_bps` is of dBm received, and of the others' dBm."""

    name: str
    seed: int
    length_s: int
    speed: float
    apart: float  # sites along the way
    offset: float  # of the way from the sites
    loss_db: Callable[[float], float]  # by the distance
    sent_dbm: float
    shadow_db: float
    shadow_m: float
    rate_bps: Callable[[float, float], float]
    share: float
    gap_ms: tuple[int, int]  # without a site while it changes
    hysteresis_db: float = 3.0
    tunnels_s: tuple[tuple[float, float], ...] = ()  # from, to


def lte_bps(received_dbm: float, others_dbm: float) -> float:
    """The rate of a site by TR 36.942: 0.6 of Shannon's bound, none below -10 dB, at most 4.4 bit/s per Hz."""
    noise = 10 ** (LTE_NOISE_DBM / 10) + LOAD * 10 ** (others_dbm / 10)
    sinr = 10 ** (received_dbm / 10) / noise
    return 0.0 if sinr < 0.1 else LTE_HZ * min(4.4, 0.6 * math.log2(1 + sinr))


def wifi_bps(received_dbm: float, _others_dbm: float) -> float:
    """Data rate of 802.11n, of which 60 % are left after headers, acknowledgements and backoff."""
    return next((0.6e6 * mbps for least_dbm, mbps in WIFI_MBPS if received_dbm >= least_dbm), 0.0)


def indoor_db(meters: float) -> float:
    """Model D at 2.4 GHz: free space up to 10 m, then with an exponent of 3.5."""
    free = 40.05 + 20 * math.log10(max(1.0, min(meters, 10.0)))
    return free + 35 * math.log10(max(1.0, meters / 10))


JOURNEYS = (
    Journey("lte-drive", 1, 40, 14.0, 500.0, 50.0, lambda m: 128.1 + 37.6 * math.log10(m / 1000), LTE_SENT_DBM, 8.0,
            50.0, lte_bps, 1 / 3, (50, 50)),
    Journey("wifi-roaming", 2, 40, 1.4, 28.0, 4.0, indoor_db, WIFI_SENT_DBM, 5.0, 3.0, wifi_bps,
            1 / 2, (60, 400), 10.0),
    Journey("train", 3, 40, 69.0, 1732.0, 150.0, lambda m: 95.5 + 34.1 * math.log10(m / 1000), LTE_SENT_DBM, 8.0,
            50.0, lte_bps, 1 / 6, (50, 50), tunnels_s=((9.0, 10.2), (27.0, 30.0))),
)  # fmt: skip


def rates_bps(journey: Journey) -> Iterator[float]:
    """The rate in each SAMPLE_MS of a journey."""
    drawn, sites = Random(journey.seed), range(-1, 2 + int(journey.length_s * journey.speed / journey.apart))
    shadows = {site: normal(drawn) for site in sites}
    kept = math.exp(-journey.speed * SAMPLE_MS / 1000 / journey.shadow_m)
    current, gone_until_ms = None, 0
    for at_ms in range(0, journey.length_s * 1000, SAMPLE_MS):
        way = journey.speed * at_ms / 1000
        received = {}
        for site in sites:
            shadows[site] = kept * shadows[site] + math.sqrt(1 - kept * kept) * normal(drawn)
            meters = math.hypot(site * journey.apart - way, journey.offset)
            received[site] = journey.sent_dbm - journey.loss_db(meters) + journey.shadow_db * shadows[site]
        best = max(received, key=lambda site: received[site])
        if current is None:
            current = best
        elif at_ms >= gone_until_ms and received[best] > received[current] + journey.hysteresis_db:
            shortest, longest = journey.gap_ms
            current, gone_until_ms = best, at_ms + round(shortest + (longest - shortest) * drawn.random())
        others = 10 * math.log10(sum(10 ** (dbm / 10) for site, dbm in received.items() if site != current))
        is_dark = at_ms < gone_until_ms or any(first <= at_ms / 1000 < last for first, last in journey.tunnels_s)
        yield 0.0 if is_dark else journey.share * journey.rate_bps(received[current], others)


def normal(drawn: Random) -> float:
    """A standard normal number, of one uniform one."""
    return STANDARD.inv_cdf(max(drawn.random(), 1e-12))


def lines(journey: Journey) -> Iterator[int]:
    """The moments in ms at which a packet can pass; the last one is the end of the journey."""
    credit_bits = 0.0
    for number, rate in enumerate(rates_bps(journey)):
        for ms in range(SAMPLE_MS):
            credit_bits += rate / 1000
            packets, credit_bits = divmod(credit_bits, PACKET_BITS)
            yield from [number * SAMPLE_MS + ms] * int(packets)
    yield journey.length_s * 1000


def main() -> None:
    """Write all traces."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for journey in JOURNEYS:
        (folder / f"{journey.name}.trace").write_text("".join(f"{at_ms}\n" for at_ms in lines(journey)))


if __name__ == "__main__":
    main()
