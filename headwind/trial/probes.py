"""Sends probe trains before the client starts, to measure delay, loss and rate of the network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from headwind.format import Write, measured, quantity_name, setting
from headwind.model import Check, Trial
from headwind.proof.evidence import Missed, Train, Trains
from headwind.proof.expectation import Expectation
from headwind.proof.probed_decisions import probe_interval_s, probes_for
from headwind.proof.trial_checks import check_delay, shows_rate
from headwind.settings import LEAST_BULK_PACKETS, PROBE_BYTES
from headwind.testbed.agent import Agent, Request
from headwind.testbed.operations import SEND_TRAIN, TRAIN_SEEN
from headwind.testbed.path import Path
from impair.endpoint.dispersion import estimate_rate
from impair.messages import NetemState, RateEstimate, TrainSeen
from impair.profile import FRAME_BYTES, HEADER_BYTES, Direction, Link, Profile
from impair.queue_options import tokens_bytes
from impair.queues import Cake, Fifo

WITH_UNITS = ("_s", "_ratio", "_bps")  # endings of quantities that are no counts
PROBE_PAYLOAD_BYTES = PROBE_BYTES - HEADER_BYTES
PROBE_RESENDS = 3  # of probes that missed, as long as nothing of the protocol has been seen
PROBE_MARGIN_S = 0.03  # how long after the last possible arrival a probe is given up
BULK_PAYLOAD_BYTES = FRAME_BYTES - HEADER_BYTES
BULK_S = 0.1  # how long a back-to-back train should keep the link busy
MOST_BULK_PACKETS = 400  # more take long and show nothing new
BULK_TRAINS = 3  # unless the first shows the rate; no protocol has been seen by then, so none is favoured
MOST_BULK_TRAINS = 12  # until this number of them is steady: with 30 programs on two CPUs 40 % of them were


def probe_network(
    path: Path, trial: Trial, configured: Mapping[Direction, NetemState]
) -> tuple[dict[Direction, Trains], list[Missed]]:
    """Send the trains, and send them again while the probes deviate from the request, at most PROBE_RESENDS times.

    Nothing of the protocol has been seen by then, so no arm is favoured. Returns the last trains, which
    decide about the trial, and the earlier ones.
    """
    missed: list[Missed] = []
    while True:
        trains = send_trains(path, trial.profile)
        why = missed_probes(trial.profile, configured, trains)
        if not why or len(missed) == PROBE_RESENDS:
            if any(trial.profile.link(direction).queue for direction in Direction):
                path.apply(trial.profile, trial.block.seeds)  # a queue that has not dropped anything yet
            return trains, missed
        missed.append(Missed(why, trains))
        path.apply(trial.profile, trial.block.seeds)  # so the number of probes does not change the client's network


def missed_probes(
    profile: Profile, configured: Mapping[Direction, NetemState], trains: Mapping[Direction, Trains]
) -> list[str]:
    """The deviations of the probes from the profile, as text; known before the client starts."""
    checks = [
        check
        for direction in Direction
        for check in check_delay(
            direction, profile.link(direction), configured[direction].link, trains[direction].probe
        )
    ]
    return [describe(check) for check in checks if not check.passed]


def send_trains(path: Path, profile: Profile) -> dict[Direction, Trains]:
    """Probe both directions at once; then show each rate by back-to-back trains, one at a time."""
    links = {direction: profile.link(direction) for direction in Direction}
    plans = {
        direction: (probes_for(link, counted=path.has_counters), probe_interval_s(link), PROBE_PAYLOAD_BYTES)
        for direction, link in links.items()
    }
    probes = send(path, links, plans)
    bulks = {direction: send_bulk(path, direction, link) for direction, link in links.items() if link.rate}
    return {direction: Trains(probes[direction], bulks.get(direction)) for direction in Direction}


def send_bulk(path: Path, direction: Direction, link: Link) -> Train:
    """Back-to-back trains through a link with a rate: the one that counts, with the rates of all.

    A busy machine disturbs trains, so only those count in which enough pairs agree on a rate (`RateEstimate.agreeing`):
    the first of these if it shows the rate, else the middle one of BULK_TRAINS. More are sent while too few are steady.
    Some links show no rate exactly: many frames are corrupted, or the rate is near to what the path carries. So the
    middle one of BULK_TRAINS unsteady ones counts if it shows the rate, or nothing came, else that of MOST_BULK_TRAINS.
    A single right one among wrong ones is no proof: a pause can make a wrong rate look right.
    """
    trains: list[Train] = []
    steady: list[Train] = []
    while len(trains) < MOST_BULK_TRAINS and len(steady) < BULK_TRAINS:
        train = send_train_once(path, direction, link)
        trains.append(train)
        steady += [train] if train.rate.agreeing else []
        judged, enough = (steady, 1) if steady else (trains, BULK_TRAINS)
        rate_bps = _middle(judged).rate.rate_bps
        if len(judged) == enough and (rate_bps is None or shows_rate(link, rate_bps)):
            break
    return replace(_middle(steady or trains), rates_bps=[train.rate.rate_bps for train in trains])


def _middle(trains: Sequence[Train]) -> Train:
    return sorted(trains, key=lambda train: train.rate.rate_bps or 0.0)[len(trains) // 2]


def send_train_once(path: Path, direction: Direction, link: Link) -> Train:
    """Send a back-to-back train through a link with a rate.

    One direction at a time: two trains share the CPUs, and each would show when the other one ran.
    """
    plan = {direction: (_bulk_packets(link), 0.0, BULK_PAYLOAD_BYTES)}
    train = send(path, {direction: link}, plan)[direction]
    return replace(train, rate=rate_behind(train, link)) if unshaped_frames(link) else train


def rate_behind(train: Train, link: Link) -> RateEstimate:
    """The rate that a train shows behind the frames that a bottleneck's bucket let pass at once.

    They come at the rate of the path. In a long train they hardly count; a short one, through a queue of 15 packets at
    20 Mbit/s, showed 21.8 Mbit/s with them.
    """
    passed, arrivals = unshaped_frames(link), zip(train.sequences, train.arrivals_s, train.delays_s, strict=True)
    kept = [each for each in arrivals if each[0] >= passed]
    return estimate_rate(
        [arrived_s for _, arrived_s, _ in kept],
        [sequence for sequence, _, _ in kept],
        FRAME_BYTES,
        [arrived_s - delay_s for _, arrived_s, delay_s in kept],
        missing_took_time=_missing_took_time(link),
    )


def unshaped_frames(link: Link) -> int:
    """Full frames that pass a bottleneck at once, because its bucket of tokens is full; 0 without a bucket."""
    has_bucket = link.rate and link.queue and not isinstance(link.queue, Cake)
    return tokens_bytes(link.rate.rate_bps) // FRAME_BYTES if link.rate and has_bucket else 0


def _missing_took_time(link: Link) -> bool:
    """True if a missing frame may have been lost behind the bottleneck (see estimate_rate)."""
    return bool(link.corrupt or link.reorder)


def _bulk_packets(link: Link) -> int:
    assert link.rate
    wanted = int(link.rate.rate_bps * BULK_S / 8 / FRAME_BYTES)
    room = link.room // 2 if link.corrupt else link.room  # drops of a full queue must not be mistaken for corruption
    passing = unshaped_frames(link) if isinstance(link.queue, Fifo) else 0  # they do not wait
    return min(max(LEAST_BULK_PACKETS, min(MOST_BULK_PACKETS, wanted)), max(2, room + passing))


def send(
    path: Path,
    links: Mapping[Direction, Link],
    plans: Mapping[Direction, tuple[int, float, int]],
    patience_s: float = PROBE_MARGIN_S,
) -> dict[Direction, Train]:
    """Send (count, interval_s, payload bytes) each way at once; the trains as received.

    A packet is given up `patience_s` after it must have left netem by its direction's link.
    """
    agents = {"client": path.client, "server": path.server}
    nonce = time.monotonic_ns() & 0x7FFFFFFF
    sending = []
    for direction, (count, interval_s, size_bytes) in plans.items():
        sender = agents[direction.sender]
        sending.append((sender, sender.start(
            SEND_TRAIN, peer_ip=path.ips[direction.receiver], nonce=nonce, count=count, interval_s=interval_s,
            size_bytes=size_bytes,
        )))  # fmt: skip
    longest_sending_s = max(count * interval_s for count, interval_s, _ in plans.values())
    for sender, sent in sending:
        sender.wait(sent, longest_sending_s + 30.0, path.agents)
    seeing: dict[Direction, tuple[Agent, float, Request[TrainSeen]]] = {}
    for direction, (count, _, size_bytes) in plans.items():
        seer = agents[direction.receiver]
        longest_s = Expectation.of(links[direction]).longest_s(count, size_bytes + HEADER_BYTES) + patience_s
        seeing[direction] = (seer, longest_s, seer.start(
            TRAIN_SEEN, nonce=nonce, expect=count, timeout_s=longest_s,
            missing_took_time=_missing_took_time(links[direction]),
        ))  # fmt: skip
    return {
        direction: _train(agent.wait(request, longest_s + 10.0, path.agents), plans[direction][0])
        for direction, (agent, longest_s, request) in seeing.items()
    }


def _train(seen: TrainSeen, sent: int) -> Train:
    return Train(**{item.name: getattr(seen, item.name) for item in fields(TrainSeen)}, sent=sent)


def describe(check: Check) -> str:
    """A check as text: `downlink delay: 24.2 ms, requested 15 ms, tolerance 3 ms (median of ...)`."""

    def text(value: float | None, write: Write) -> str:
        return "not measured" if value is None else write(check.quantity, value)

    name = f"{quantity_name(check.quantity)}{check.span and f' {check.span}'}"
    seen = text(check.measured, measured if check.quantity.endswith(WITH_UNITS) else setting)
    about = f", tolerance {text(check.tolerance, measured)}" if check.tolerance else ""
    return f"{check.direction} {name}: {seen}, requested {text(check.requested, setting)}{about} ({check.note})"
