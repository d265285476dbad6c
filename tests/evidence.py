"""What counters and probes show of a network that does exactly what netem does with a profile. For tests only.

The fate of every packet is that of the kernel, packet for packet (tests/net/prediction.py, which tests/net holds
against real kernels): nothing here knows the formulas that headwind/proof/trial_checks.py judges by.
"""

from __future__ import annotations

import copy
import itertools
import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from headwind.proof.evidence import Evidence
from headwind.proof.probed_decisions import probes_for
from impair.distribution import TABLE_SCALE
from impair.netem_options import Options
from impair.profile import FRAME_BYTES, Direction, Link, Profile
from tests import quiet
from tests.net.prediction import SeededNetem

OFFERED = {Direction.UPLINK: 2500, Direction.DOWNLINK: 4000}
PROBE_INTERVAL_S, PROBE_BYTES = 0.001, 106
BULK = 60
PATH_S = (0.0002, 0.0005)  # what the machine takes for a frame
# Where a flipped bit of the linear part leads, before 7.2: (up to which byte of the frame, counters that do not grow,
# the one that does). The sender's address is of no consequence. As seen with 6.1 and 6.12 behind Docker's bridges.
FLIPS = (
    (6, ("ip_in_receives",), None), (12, (), None), (14, ("ip_in_receives",), None),
    (34, ("rx_frames", "ip_in_receives"), None), (FRAME_BYTES, (), "tcp_in_csum_errors"),
)  # fmt: skip
SENDERS_ADDRESS = range(6, 12)
LINEAR_BYTES = (66, 94, 1242)  # headers of TCP with its options, and a datagram
NORMAL = [round(TABLE_SCALE * statistics.NormalDist().inv_cdf((k + 0.5) / 4096)) for k in range(4096)]

Frames = Mapping[Direction, int]


def evidence_of(
    real: Profile, asked: Profile | None = None, *, seed: int = 1, offered: Frames = OFFERED, kernel: str = "7.2"
) -> Evidence:
    """The evidence of a trial through `real`, on a router that read back `asked` (the same, unless it lies)."""
    links = {direction: (asked or real).link(direction) for direction in Direction}
    configured = {
        direction: quiet.netem(_read_back(link), seed) | {"limit": link.limit} for direction, link in links.items()
    }
    before, after = (quiet.moment(copy.deepcopy(configured)) for _ in range(2))
    trains: dict[str, Any] = {}
    for direction, count in offered.items():
        netem = _netem(real.link(direction), seed)
        probes = probes_for(links[direction], counted=kernel == "7.2")
        seen = trains[direction.value] = {"probe": _probe(real.link(direction), netem, probes)}
        if links[direction].rate:
            seen["bulk"] = _bulk(real.link(direction), netem)
        sent = 0
        for moment, frames in ((before, 100), (after, count)):  # the counters did not begin at the trial
            sent += frames
            for _ in range(frames):
                netem.offer()
            _write_down(moment, direction, sent, netem.counters)
            if kernel != "7.2":
                _flip(moment[direction.receiver], netem.counters["corrupted"])
    if kernel != "7.2":
        for moment, direction, name in itertools.product((before, after), Direction, quiet.NEW_IN_7_2):
            del moment["router"][direction]["counters"][name]
    return Evidence.from_json({"configured": configured, "before": before, "after": after, "trains": trains})


def but(evidence: Evidence, change: Callable[[dict[str, Any]], None]) -> Evidence:
    """The same evidence, had the counters after the trial been changed."""
    data = evidence.to_json()
    change(data["after"])
    return Evidence.from_json(data)


def overflow(direction: Direction, frames: int) -> Callable[[dict[str, Any]], None]:
    """A change to the counters: that many frames more were dropped by a full queue of netem."""

    def change(after: dict[str, Any]) -> None:
        receiver = direction.receiver
        counters = after["router"][direction]["counters"]
        counters["packets"] -= frames
        counters["drops"] += frames
        after["router"]["ports"][receiver]["tx_frames"] -= frames
        after[receiver]["rx_frames"] -= frames

    return change


def _netem(link: Link, seed: int) -> SeededNetem:
    shape = link.delay.distribution if link.delay else "uniform"
    assert shape in ("uniform", "normal"), "iproute2's other tables need not be here"
    return SeededNetem(Options.of(link, seed), NORMAL if shape == "normal" else ())


def _read_back(link: Link) -> dict[str, Any]:
    return Options.of(link, 1).link(link.delay.distribution if link.delay else "uniform").to_json()


def _probe(link: Link, netem: SeededNetem, probes: int) -> dict[str, Any]:
    """As the receiving end's listener tells it (impair/endpoint/probe.py).

    netem's rate sends one after another, whatever their delays; a bottleneck before netem only takes its time.
    """
    sending_s = _sending_s(link, PROBE_BYTES)
    interval_s, free_s = max(PROBE_INTERVAL_S, 2 * sending_s), 0.0
    delays: list[float] = []
    arrived: set[int] = set()
    machine = random.Random(probes)
    for number in range(probes):
        for packet in netem.offer():
            leaves_s = number * interval_s + (packet.delay or 0) / 1e9
            if link.queue:
                leaves_s += sending_s
            elif link.rate and packet.delay is not None:
                leaves_s = free_s = max(free_s, leaves_s) + sending_s
            if not packet.corrupted or machine.randrange(PROBE_BYTES) in SENDERS_ADDRESS:
                delays.append(leaves_s - number * interval_s + machine.uniform(*PATH_S))
                arrived.add(number)
    return quiet.train(probes, delays, unique=len(arrived))


def _bulk(link: Link, netem: SeededNetem) -> dict[str, Any]:
    arrived = [packet.offered for _ in range(BULK) for packet in netem.offer() if not packet.corrupted]
    pairs = any(number + 1 in arrived for number in arrived)
    rate_bps = FRAME_BYTES * 8 / _sending_s(link, FRAME_BYTES) if link.rate else 10e9
    return quiet.train(BULK, rate_bps=rate_bps if pairs else None, received=len(arrived))


def _sending_s(link: Link, frame_bytes: int) -> float:
    """packet_time_ns() of sch_netem.c."""
    if link.rate is None:
        return 0.0
    length = frame_bytes + link.rate.packet_overhead
    if link.rate.cell_size:
        cells = length // link.rate.cell_size + (length % link.rate.cell_size > 0)
        length = cells * (link.rate.cell_size + link.rate.cell_overhead)
    return length * 8 / link.rate.rate_bps


def _write_down(moment: dict[str, Any], direction: Direction, sent: int, counted: Mapping[str, int]) -> None:
    sender, receiver = direction.sender, direction.receiver
    ports = moment["router"]["ports"]
    moment[sender]["tx_frames"] = ports[sender]["rx_frames"] = sent
    ports[receiver]["tx_frames"] = moment[receiver]["rx_frames"] = counted["packets"]
    moment[receiver]["ip_in_receives"] = counted["packets"]
    moment["router"][direction]["counters"].update(counted)


def _flip(receiver: dict[str, Any], corrupted: int) -> None:
    """What the receiver's counters make of so many flipped bits, the same ones each time."""
    netem = random.Random(LINEAR_BYTES[0])
    for _ in range(corrupted):
        byte = netem.randrange(netem.choice(LINEAR_BYTES))
        _, missing, grows = next(flip for flip in FLIPS if byte < flip[0])
        for name in missing:
            receiver[name] -= 1
        if grows:
            receiver[grows] += 1
