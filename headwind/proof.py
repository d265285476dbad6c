"""Was the network of a trial the requested one? Pure: requests, read-backs, counters and probes in, a Proof out.

The rules are written here, before any run, and are the same for every protocol. A quantity passes when it lies within
`SIGMAS` standard deviations of what the request predicts for the packets that were really sent, plus a stated allowance
for the machine. Nothing is judged by what the client made of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwind.model import Check, Proof
from impair.profile import FRAME_BYTES, Direction, FourState, GilbertElliott, Link, Loss, Profile

SIGMAS = 4.9  # two-sided chance of 1e-6 for a true impairment to be called false
DELAY_ALLOWANCE_S = 0.003  # what a busy two-core machine adds to a one-way probe
RATE_ALLOWANCE = 0.05
UNEXPLAINED_ALLOWANCE = 0.001  # frames that vanish outside netem
UNEXPLAINED_FRAMES = 3  # ... and a few that are still on their way when the counters are read
# Standard deviation in units of jitter: of a uniform +-j, and of iproute2's tables (/usr/lib/tc/*.dist).
SPREAD_PER_JITTER = {"uniform": 1 / math.sqrt(3), "normal": 1.0, "pareto": 0.8197, "paretonormal": 0.8339}
SIDES = {Direction.UPLINK: ("client", "server"), Direction.DOWNLINK: ("server", "client")}
PROBE_BYTES = 64 + 42  # payload of a probe, and its UDP, IPv4 and Ethernet headers


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of one trial.

    `configured`: the router's read-back for each direction; `before` and `after`: {"client", "server", "router"}
    counters around the client's run; `trains`: for each direction the probe train and, where there is a rate, the bulk
    train, as the receiving end saw them (impair/probe.py).
    """

    configured: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    trains: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Events:
    """How often netem did one thing while the client ran, of how many packets that it decided about.

    `count` is None where the kernel does not say. `share` is the part of the decisions that can show in `count`.
    """

    count: int | None
    decisions: int
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Passage:
    """What netem did to one direction while the client ran."""

    loss: Events
    duplicate: Events
    corrupt: Events
    reorder: Events
    queue_drops: int  # by a full queue
    corrupted: int  # 0 where the kernel does not say


def prove(profile: Profile, evidence: Evidence) -> Proof:
    """Check both directions of a trial's network; see the module's docstring for the rule."""
    checks: list[Check] = []
    for direction in Direction:
        checks += _check_direction(direction, profile.link(direction), evidence)
    counters = {"before": evidence.before, "after": evidence.after, "trains": evidence.trains,
                "configured": evidence.configured}  # fmt: skip
    return Proof(tuple(checks), counters, tuple(_warnings(evidence)))


def _check_direction(direction: Direction, link: Link, evidence: Evidence) -> Iterator[Check]:
    read = Link.from_json(evidence.configured[direction]["link"])
    passage = passage_of(direction, link, evidence)
    trains = evidence.trains.get(direction, {})
    yield from _check_delay(direction, link, read, trains.get("probe"))
    yield from _check_decisions(direction, link, read, passage)
    if link.rate:
        yield _check_rate(direction, link, read, trains.get("bulk"))
    yield _check_unexplained(direction, passage, evidence)


def passage_of(direction: Direction, link: Link, evidence: Evidence) -> Passage:
    """Differences of the router's netem counters over the client's run.

    netem_enqueue decides about duplication first, once for each packet that comes in; about loss for each packet and
    each copy, where a packet that is both duplicated and lost leaves one; about corruption and reordering for what is
    left. Kernel 7.2 and later count the decisions. Before, `drops` counts what vanished, which of N packets is
    N*p*(1-d*p), and N*d*(1-p) copies more than packets leave.
    """
    before, after = (moment["router"][direction]["counters"] for moment in (evidence.before, evidence.after))
    gained = {name: after[name] - before[name] for name in after}
    entered = _gain(evidence, "router", SIDES[direction][0], "rx_frames")
    stayed = gained["packets"] + gained["backlog_packets"]
    copies = max(0, stayed + gained["drops"] - entered)
    if "dropped" in gained:
        return Passage(
            Events(gained["dropped"] + gained["ecn_marked"], stayed + gained["drops"]),
            Events(gained["duplicated"], entered),
            Events(gained["corrupted"], stayed),
            Events(gained["reordered"], stayed, _reorder_share(link)),
            max(0, gained["drops"] - gained["dropped"]),
            gained["corrupted"],
        )
    loss = stationary_loss(link.loss)[0]
    ratio = link.duplicate.ratio if link.duplicate else 0.0
    silent = Events(None, stayed)
    return Passage(
        Events(gained["drops"], entered, 1 - ratio * loss), Events(copies, entered, 1 - loss), silent,
        Events(gained["requeues"], stayed, _reorder_share(link)), 0, 0,
    )  # fmt: skip


def _reorder_share(link: Link) -> float:
    """With a gap of g, g - 1 packets are delayed after each one that overtook: of 1/r tries one succeeds."""
    if link.reorder is None or link.reorder.ratio == 0:
        return 1.0
    return 1 / ((link.reorder.gap - 1) + 1 / link.reorder.ratio) / link.reorder.ratio


def _gain(evidence: Evidence, owner: str, port: str, name: str) -> int:
    """How much a frame counter grew: of the router's port, or of an endpoint (port is empty)."""
    values = []
    for moment in (evidence.before, evidence.after):
        counters = moment[owner]
        values.append(int((counters["ports"][port] if port else counters)[name]))
    return values[1] - values[0]


def stationary_loss(model: Loss | GilbertElliott | FourState | None) -> tuple[float, float]:
    """(expected loss ratio, variance inflation by bursts) of a loss model.

    Gilbert-Elliott: stationary weights p/(p+r) and r/(p+r); successive states correlate with 1-p-r, so the variance of
    a mean over many packets grows by at most (1+rho)/(1-rho) (Hohlfeld et al., "Characterising and modelling VoIP
    loss", 2008). 4-state: the chain of sch_netem.c solved by iteration, with the same bound for its slowest burst.
    """
    if model is None:
        return 0.0, 1.0
    if isinstance(model, Loss):
        return model.ratio, 1.0
    if isinstance(model, GilbertElliott):
        bad = model.p / (model.p + model.r)
        rho = 1 - model.p - model.r
        return bad * model.bad_loss + (1 - bad) * model.good_loss, max(1.0, (1 + rho) / (1 - rho))
    return _four_state(model)


def _four_state(model: FourState) -> tuple[float, float]:
    # States 1 good, 2 good within a burst, 3 burst loss, 4 isolated loss (loss_4state in sch_netem.c).
    one, two, three, four = 1.0, 0.0, 0.0, 0.0
    for _ in range(200_000):
        after = (
            one * (1 - model.p13 - model.p14) + three * model.p31 + four,
            two * (1 - model.p23) + three * model.p32,
            one * model.p13 + two * model.p23 + three * (1 - model.p31 - model.p32),
            one * model.p14,
        )
        if max(abs(a - b) for a, b in zip(after, (one, two, three, four), strict=True)) < 1e-12:
            break
        one, two, three, four = after
    slowest = min(x for x in (model.p13 + model.p14 + model.p31, model.p23 + model.p32, 1.0) if x > 0)
    return three + four, max(1.0, (2 - slowest) / slowest)


def _check_delay(direction: Direction, link: Link, read: Link, train: Mapping[str, Any] | None) -> Iterator[Check]:
    wanted = link.delay.delay_s if link.delay else 0.0
    jitter = link.delay.jitter_s if link.delay else 0.0
    configured = read.delay.delay_s if read.delay else 0.0
    delays = list(train["delays_s"]) if train else []
    if not delays:
        everything_lost = stationary_loss(link.loss)[0] == 1
        note = "every probe was lost, as asked" if everything_lost else "no probe arrived"
        yield Check(direction, "delay_s", wanted, configured, None, None, everything_lost, note)
        return
    skipping = link.reorder.ratio * _reorder_share(link) if link.reorder else 0.0  # of the probes skip the delay
    expected = wanted * (1 - skipping) + (PROBE_BYTES * 8 / link.rate.rate_bps if link.rate else 0.0)
    robust = skipping == 0 and (link.delay is None or link.delay.distribution in ("uniform", "normal"))
    measured = statistics.median(delays) if robust else statistics.fmean(delays)
    # The median of n uniform values over +-j has a standard deviation of j/sqrt(n); every other case spreads less.
    spread = jitter + wanted * math.sqrt(skipping * (1 - skipping))
    slot = link.slot.max_delay_s if link.slot else 0.0
    tolerance = DELAY_ALLOWANCE_S + SIGMAS * spread / math.sqrt(len(delays)) + slot
    yield Check(
        direction, "delay_s", wanted, configured, measured, tolerance, abs(measured - expected) <= tolerance,
        f"{'median' if robust else 'mean'} one-way delay of {len(delays)} probes",
    )  # fmt: skip
    if jitter and len(delays) > 2:
        yield _check_jitter(direction, link, read, delays)


def _check_jitter(direction: Direction, link: Link, read: Link, delays: Sequence[float]) -> Check:
    assert link.delay
    measured = statistics.stdev(delays) / SPREAD_PER_JITTER[link.delay.distribution]
    configured = read.delay.jitter_s if read.delay else 0.0
    relative = SIGMAS / math.sqrt(2 * (len(delays) - 1))  # of a standard deviation, normal theory
    if link.delay.distribution.startswith("pareto"):
        relative *= 2  # a few far outliers carry most of the spread
    skip = link.delay.delay_s if link.reorder and link.reorder.ratio else 0.0
    tolerance = link.delay.jitter_s * relative + DELAY_ALLOWANCE_S + skip
    return Check(
        direction, "jitter_s", link.delay.jitter_s, configured, measured, tolerance,
        abs(measured - link.delay.jitter_s) <= tolerance and measured > 0, f"spread of {len(delays)} probes",
    )  # fmt: skip


def _check_decisions(direction: Direction, link: Link, read: Link, passage: Passage) -> Iterator[Check]:
    """Loss, duplication, corruption and reordering: what netem counted against what the request predicts."""
    loss, inflation = stationary_loss(link.loss)
    wanted = {"loss": loss} | {name: _ratio(link, name) for name in ("duplicate", "corrupt", "reorder")}
    kept = {"loss": stationary_loss(read.loss)[0]} | {name: _ratio(read, name) for name in wanted if name != "loss"}
    for name, ratio in wanted.items():
        events: Events = getattr(passage, name)
        if getattr(link, name) is not None or events.count:
            spread = inflation if name == "loss" else 1.0
            yield _check_ratio(direction, f"{name}_ratio", ratio, kept[name], events, spread)


def _ratio(link: Link, name: str) -> float:
    impairment = getattr(link, name)
    return float(impairment.ratio) if impairment else 0.0


def _check_ratio(
    direction: Direction, quantity: str, ratio: float, configured: float, events: Events, inflation: float
) -> Check:
    if events.count is None:
        note = "this kernel's netem does not count it (7.2 and later do)"
        return Check(direction, quantity, ratio, configured, None, None, False, note)
    effective = events.decisions * events.share
    note = f"{events.count} of {events.decisions} packets"
    if effective == 0:
        return Check(direction, quantity, ratio, configured, None, None, ratio == 0, note)
    measured = events.count / effective
    # A frame or two that netem saw is not the endpoints' (the bridges' own): they cannot fail a ratio of 100 %.
    tolerance = SIGMAS * math.sqrt(ratio * (1 - ratio) * inflation / effective)
    tolerance += UNEXPLAINED_FRAMES / effective if ratio else 0.0
    passed = abs(measured - ratio) <= tolerance
    return Check(direction, quantity, ratio, configured, measured, tolerance, passed, note)


def _check_rate(direction: Direction, link: Link, read: Link, train: Mapping[str, Any] | None) -> Check:
    assert link.rate
    wanted, configured = float(link.rate.rate_bps), float(read.rate.rate_bps) if read.rate else None
    measured = train["rate"].get("rate_bps") if train else None
    if measured is None:
        return Check(direction, "rate_bps", wanted, configured, None, None, False, "too few of the train arrived")
    expected = wanted * FRAME_BYTES / wire_bytes(link, FRAME_BYTES)
    tolerance = RATE_ALLOWANCE * expected
    return Check(direction, "rate_bps", wanted, configured, measured, tolerance, abs(measured - expected) <= tolerance,
                 f"dispersion of {train['received'] if train else 0} back-to-back frames")  # fmt: skip


def wire_bytes(link: Link, frame_bytes: int) -> int:
    """What netem's link model counts for a frame: packet overhead, then whole cells (packet_time_ns, sch_netem.c)."""
    rate = link.rate
    if rate is None:
        return frame_bytes
    size = frame_bytes + rate.packet_overhead
    if not rate.cell_size:
        return size
    cells = math.ceil(size / rate.cell_size)
    return cells * (rate.cell_size + rate.cell_overhead)


def _check_unexplained(direction: Direction, passage: Passage, evidence: Evidence) -> Check:
    """Frames that vanished before or after netem: sender to router, and router to receiver."""
    sender, receiver = SIDES[direction]
    sent, entered = _gain(evidence, sender, "", "tx_frames"), _gain(evidence, "router", sender, "rx_frames")
    left, arrived = _gain(evidence, "router", receiver, "tx_frames"), _gain(evidence, receiver, "", "rx_frames")
    vanished = max(0, sent - entered) + max(0, left - arrived)
    corrupted = passage.corrupted  # a frame with a broken address or IP header is dropped by the host's bridge
    limit = UNEXPLAINED_ALLOWANCE * max(sent, left) + UNEXPLAINED_FRAMES
    share = vanished / sent if sent else 0.0
    return Check(
        direction, "unexplained_loss_ratio", 0.0, None, share, (limit + corrupted) / sent if sent else None,
        vanished <= limit + corrupted and (passage.queue_drops == 0 or _has_rate(direction, evidence)),
        f"{sent} sent, {entered} into the router, {left} out of it, {arrived} arrived"
        + (f"; {passage.queue_drops} dropped by a full queue" if passage.queue_drops else ""),
    )  # fmt: skip


def _has_rate(direction: Direction, evidence: Evidence) -> bool:
    link = Link.from_json(evidence.configured[direction]["link"])
    return link.rate is not None or link.limit_packets is not None


def _warnings(evidence: Evidence) -> Iterator[str]:
    for side in ("client", "server"):
        for name, words in (
            ("udp_rcvbuf_errors", "datagrams lost in a full UDP receive buffer (net.core.rmem_max of the host)"),
            ("oversize_frames", f"frames above {FRAME_BYTES} bytes: an offload is on"),
        ):
            count = _gain(evidence, side, "", name)
            if count:
                yield f"{side}: {count} {words}"
