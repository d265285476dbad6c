"""The acceptance suite of an engine: does it really do to the traffic what the profile says? One suite for all engines.

Everything is seeded, and netem's decisions are worked out beforehand (prediction.py), so most promises are exact: the
same packets, the same counters. Where a share is checked against its probability, the tolerance is three standard
deviations, and the outcome is the same in every run, because the seed is. Times have a tolerance for the machine.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from headwind.proof.expectation import Expectation
from headwind.proof.netem_counts import SIGMAS
from impair.distribution import DISTRIBUTION_HEIGHT, DISTRIBUTION_REACH, TABLE_SCALE
from impair.netem_options import Options
from impair.profile import (
    HEADER_BYTES,
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Rate,
    Reorder,
    Slot,
)
from tests.net.conftest import Tables
from tests.net.impaired import CLEAN, ENDS, ImpairedPath, ask
from tests.net.prediction import SeededNetem

pytestmark = pytest.mark.timeout(300)  # the first test may have to build the images

SEED = 7
UP, DOWN = Direction.UPLINK, Direction.DOWNLINK
IP_HEADER_BYTES = 20
BUSY_PACKETS_PER_S = 10_000  # of the busiest cell, one direction: HTTP/3, 100 connections, 20,631 datagrams in 2.1 s
STRAY_FRAMES = 5  # a bridge sends its own multicast frame now and then; it is never forwarded
TIMING_ERROR_S = 0.0005

both_directions = pytest.mark.parametrize("direction", list(Direction))


def predict(link: Link, packets: int, seed: int = SEED) -> tuple[list[int], dict[str, int]]:
    """Which packets arrive (copies included, in the order of the queue), and netem's counters."""
    netem = SeededNetem(Options.of(link, seed))
    arriving = [copy.offered for _ in range(packets) for copy in netem.offer()]
    return arriving, netem.counters


def needs_seed(path: ImpairedPath) -> None:
    """For promises about single packets; shares and times are promised below for every kernel."""
    if not path.seeded:
        pytest.skip("this kernel cannot seed netem: no packet's fate can be worked out beforehand")


def sigmas(path: ImpairedPath) -> float:
    """How far a share may be from its probability: with a seed the outcome is always the same."""
    return 3.0 if path.seeded else SIGMAS


def assert_counted(path: ImpairedPath, direction: Direction, expected: dict[str, int]) -> None:
    counters = path.netem_counters(direction)
    assert {name: counters[name] for name in expected if name in counters} == {
        name: value for name, value in expected.items() if name in counters
    }


@both_directions
def test_no_corrupted_byte_reaches_the_application(path: ImpairedPath, direction: Direction) -> None:
    receiver = path.end(ENDS[direction][1])
    path.impair(direction, Link(corrupt=Corrupt(0.1)), SEED)
    before = ask(receiver, "counters")
    train = path.train(direction, 2000, size_bytes=1200, expect=2001)
    between = ask(receiver, "counters")
    transfer = path.transfer(direction, 200_000, timeout_s=20.0)
    after = ask(receiver, "counters")

    assert train["bad_payloads"] == 0
    assert between["udp_in_csum_errors"] - before["udp_in_csum_errors"] > 100  # of about 200 corrupted ones
    assert 1700 < train["unique"] < 1900  # +- 7 sigmas
    assert transfer["complete"]
    assert transfer["bad_bytes"] == 0
    assert transfer["bytes"] == 200_000
    assert after["tcp_in_csum_errors"] > between["tcp_in_csum_errors"]


@both_directions
@pytest.mark.parametrize(
    "link",
    [
        pytest.param(Link(loss=Loss(0.2)), id="random"),
        pytest.param(Link(loss=GilbertElliott(0.02, 0.25, bad_loss=0.8, good_loss=0.01)), id="gemodel"),
        pytest.param(Link(loss=FourState(0.02, 0.3, p32=0.1, p23=0.2, p14=0.01)), id="4-state"),
        pytest.param(Link(loss=Loss(0.3), duplicate=Duplicate(0.7)), id="loss-and-duplicate"),
        pytest.param(Link(loss=Loss(1.0), duplicate=Duplicate(1.0)), id="all-lost-all-doubled"),
    ],
)
def test_a_seed_decides_every_packet(path: ImpairedPath, direction: Direction, link: Link) -> None:
    needs_seed(path)
    packets = 1500
    arriving, counters = predict(link, packets)
    path.impair(direction, link, SEED)
    train = path.train(direction, packets, expect=len(set(arriving)))
    assert train["sequences"] == arriving
    assert_counted(path, direction, counters)


def test_bursts_are_as_long_and_as_frequent_as_asked(path: ImpairedPath) -> None:
    model, packets = GilbertElliott(p=0.02, r=0.25), 10_000
    left_over = list[int]()
    while True:
        path.impair(UP, Link(loss=model), SEED)
        train = path.train(UP, packets, interval_s=0.00005, expect=packets, patience_s=0.3)
        arrived = set(train["sequences"])
        fates = "".join("." if packet in arrived else "x" for packet in range(packets))
        bursts = [len(burst) for burst in fates.split(".") if burst]
        left_over.append(path.netem_counters(UP)["packets"] - len(arrived))
        if not left_over[-1] or len(left_over) == 3:
            break  # otherwise a busy machine lost packets after netem

    share = model.p / (model.p + model.r)
    stickiness = 1 - model.p - model.r  # correlation of neighbours: it widens the spread of the mean
    sigma = math.sqrt(share * (1 - share) / packets * (1 + stickiness) / (1 - stickiness))
    assert fates.count("x") / packets == pytest.approx(share, abs=sigmas(path) * sigma)
    burst_sigma = math.sqrt(1 - model.r) / model.r / math.sqrt(len(bursts))  # of a geometric distribution
    assert statistics.mean(bursts) == pytest.approx(1 / model.r, abs=sigmas(path) * burst_sigma)


def usual_s(path: ImpairedPath) -> list[float]:
    """How long packets take without an impairment at this very moment: the machine's share of what follows."""
    path.apply(CLEAN, CLEAN)
    return sorted(path.train(DOWN, 200, interval_s=0.001)["delays_s"])


@pytest.mark.parametrize(
    "delay",
    [Delay(0.001), Delay(0.04), Delay(0.01, 0.005), Delay(0.02, 0.004, "normal"), Delay(0.02, 0.004, "pareto"),
     Delay(0.02, 0.004, "paretonormal")],
    ids=str,
)  # fmt: skip
def test_every_packet_is_delayed_by_what_was_drawn_for_it(path: ImpairedPath, tables: Tables, delay: Delay) -> None:
    """None is early, and a quarter at least is on time: a timer of the wrong grain or scale would delay all of them."""
    needs_seed(path)
    link, packets, table = Link(delay=delay), 400, tables[delay.distribution]
    errors = [math.inf]
    for _ in range(5):  # a busy machine is late now and then; netem's own mistakes would come back
        netem = SeededNetem(Options.of(link, SEED), table)
        drawn_s = [copy.delay / 1e9 for _ in range(packets) for copy in netem.offer() if copy.delay is not None]
        assert statistics.mean(drawn_s) == pytest.approx(delay.delay_s, abs=delay.jitter_s / 5 + 1e-9)
        usual = usual_s(path)
        path.impair(DOWN, link, SEED)
        train = path.train(DOWN, packets, interval_s=0.001)
        late_s = [took - drawn_s[packet] for packet, took in zip(train["sequences"], train["delays_s"], strict=True)]
        assert len(late_s) == packets
        assert min(late_s) > -0.0001, "a packet was early"
        errors.append(statistics.quantiles(late_s, n=4)[0] - statistics.quantiles(usual, n=4)[0])
        if min(errors) < TIMING_ERROR_S:
            break
    assert min(errors) < TIMING_ERROR_S


@pytest.mark.parametrize("delay", [Delay(0.04), Delay(0.01, 0.005), Delay(0.02, 0.004, "normal")], ids=str)
def test_delays_lie_about_their_middle_as_far_as_asked(path: ImpairedPath, delay: Delay) -> None:
    """For every kernel, also one that draws numbers of its own."""
    packets, reach_s = 600, DISTRIBUTION_REACH[delay.distribution] * delay.jitter_s
    spread_s = delay.jitter_s / (math.sqrt(3) if delay.distribution == "uniform" else 1.0)
    chance_s = SIGMAS * math.sqrt(3) * spread_s / math.sqrt(packets)  # of a uniform law's median; a normal one has less
    late_s, took_s = math.inf, list[float]()
    for _ in range(5):  # a busy machine is late now and then; netem's own mistakes would come back
        usual = statistics.median(usual_s(path))
        path.impair(DOWN, Link(delay=delay), SEED)
        took_s = path.train(DOWN, packets, interval_s=0.001)["delays_s"]
        assert len(took_s) == packets
        assert min(took_s) > delay.delay_s - reach_s - 0.0001, "a packet was early"
        assert statistics.median(took_s) - delay.delay_s > -chance_s, "the middle of a law that is even on both sides"
        late_s = min(late_s, statistics.median(took_s) - delay.delay_s - usual)
        if late_s < chance_s + TIMING_ERROR_S:
            break
    assert late_s < chance_s + TIMING_ERROR_S
    assert statistics.stdev(took_s) > spread_s * (1 - SIGMAS / math.sqrt(2 * packets))


def test_jitter_reorders_unless_there_is_a_rate(path: ImpairedPath) -> None:
    jitter = Delay(0.01, 0.005)
    path.impair(UP, Link(delay=jitter), SEED)
    assert path.train(UP, 400, interval_s=0.0005)["inversions"] > 20
    path.impair(UP, Link(delay=jitter, rate=Rate(50_000_000)), SEED)
    train = path.train(UP, 400, interval_s=0.0005)
    assert train["inversions"] == 0
    assert train["unique"] == 400


def undelayed(train: Any, limit_s: float) -> Iterator[int]:
    """The packets that arrived within `limit_s`, or before an earlier one: a pause of the machine keeps their order."""
    earliest_later = math.inf
    for packet, took_s in reversed(list(zip(train["sequences"], train["delays_s"], strict=True))):
        if took_s < limit_s or packet > earliest_later:
            yield packet
        earliest_later = min(earliest_later, packet)


def test_reordered_packets_overtake_the_delay_and_no_others(path: ImpairedPath) -> None:
    needs_seed(path)
    link, packets = Link(delay=Delay(0.02), reorder=Reorder(0.25, gap=5)), 1000
    netem = SeededNetem(Options.of(link, SEED))
    overtaking = {copy.offered for _ in range(packets) for copy in netem.offer() if copy.delay is None}
    path.impair(DOWN, link, SEED)
    assert set(undelayed(path.train(DOWN, packets), 0.019)) == overtaking
    assert_counted(path, DOWN, netem.counters)


def test_so_many_packets_overtake_and_never_within_the_gap(path: ImpairedPath) -> None:
    """For every kernel: after each that overtakes, `gap - 1` are held, and then of 1 / ratio tries one succeeds."""
    link, packets, gap = Link(delay=Delay(0.02), reorder=Reorder(0.25, gap=5)), 2000, 5
    path.impair(DOWN, link, SEED)
    train = path.train(DOWN, packets)
    assert train["unique"] == train["received"] == packets
    quick = sorted(undelayed(train, 0.019))
    assert min(after - before for before, after in pairwise(quick)) >= gap
    share = Expectation.of(link).overtaking
    assert len(quick) / packets == pytest.approx(share, abs=sigmas(path) * math.sqrt(share * (1 - share) / packets))
    assert path.netem_counters(DOWN)["requeues"] == len(quick)


@both_directions
def test_a_rate_is_kept_and_a_full_queue_is_as_long_as_its_limit(path: ImpairedPath, direction: Direction) -> None:
    rate, limit, size_bytes = Rate(10_000_000), 50, 1400
    frame_s = (size_bytes + HEADER_BYTES) * 8 / rate.rate_bps
    right = pytest.approx(rate.rate_bps, rel=0.02), pytest.approx(limit * frame_s, rel=0.03), True
    shown = []
    for _ in range(5):  # a busy machine is late now and then; netem's own mistakes would come back
        path.impair(direction, Link(rate=rate, limit_packets=limit), SEED)
        train = path.train(direction, 400, interval_s=frame_s / 4, size_bytes=size_bytes, expect=400)
        counters = path.netem_counters(direction)
        assert counters["packets"] == train["received"]
        assert counters["drops"] == 400 - train["received"]
        shown.append((train["rate"]["rate_bps"], statistics.median(train["delays_s"][-50:]), counters["drops"] > 0))
        if shown[-1] == right:
            break
    assert right in shown


@both_directions
def test_frames_in_and_out_differ_by_what_netem_counted(path: ImpairedPath, direction: Direction) -> None:
    loss, double, corrupt, packets = 0.3, 0.7, 0.2, 2000
    link = Link(loss=Loss(loss), duplicate=Duplicate(double), corrupt=Corrupt(corrupt), delay=Delay(0.005, 0.002))
    sender, receiver = ENDS[direction]
    path.impair(direction, link, SEED)
    before = frames(path)
    path.train(direction, packets, expect=packets)
    after = frames(path)
    gained = {name: after[name] - before[name] for name in after}
    counters = path.netem_counters(direction)
    if path.seeded:
        _, predicted = predict(link, packets)
        assert_counted(path, direction, predicted)
        assert counters["packets"] == packets + predicted["duplicated"] - predicted["dropped"]
        corrupted = float(predicted["corrupted"])
    else:
        none, two = (1 - double) * loss, double * (1 - loss) ** 2  # copies of a packet that leave
        spread = math.sqrt(packets * (none + two - (two - none) ** 2))
        assert counters["packets"] == pytest.approx(packets * (1 + two - none), abs=SIGMAS * spread)
        corrupted = corrupt * counters["packets"] + SIGMAS * math.sqrt(corrupt * counters["packets"])

    assert gained[f"{sender} tx"] == packets
    assert gained[f"{sender} port rx"] == pytest.approx(packets, abs=STRAY_FRAMES)
    assert gained[f"{receiver} port tx"] == counters["packets"]
    assert gained[f"{receiver} port rx"] <= STRAY_FRAMES  # the router does not hear itself
    # A corrupted bit of the IP header ends a frame on the host's bridge, where its netfilter checks the header.
    share = IP_HEADER_BYTES / (HEADER_BYTES + 64)
    dropped_by_bridge = share * corrupted + sigmas(path) * math.sqrt(share * (1 - share) * corrupted)
    assert -STRAY_FRAMES <= counters["packets"] - gained[f"{receiver} rx"] <= dropped_by_bridge


def frames(path: ImpairedPath) -> dict[str, int]:
    ports = ask(path.router, "show")["ports"]
    ends = {side: ask(path.end(side), "counters") for side in ports}
    return {
        **{f"{side} port {way}": ports[side][f"{way}_frames"] for side in ports for way in ("rx", "tx")},
        **{f"{side} {way}": ends[side][f"{way}_frames"] for side in ports for way in ("rx", "tx")},
    }


def test_duplicating_sends_so_many_copies_more(path: ImpairedPath) -> None:
    share, packets = 0.7, 4000
    path.impair(UP, Link(duplicate=Duplicate(share)), SEED)
    train = path.train(UP, packets, expect=packets + 1)
    sigma = math.sqrt(share * (1 - share) / packets)
    assert train["received"] / packets == pytest.approx(1 + share, abs=sigmas(path) * sigma)
    assert train["unique"] == packets


EVERYTHING = Link(
    delay=Delay(0.123456789, 0.012345678), loss=GilbertElliott(0.0123, 0.321, 0.95, 0.004), duplicate=Duplicate(0.0321),
    corrupt=Corrupt(0.00071), reorder=Reorder(0.33, 7), rate=Rate(80_000_000_000, 5, 48, -3),
    slot=Slot(0.0005, 0.0015, 40, 60_000), ecn=True, limit_packets=4321,
)  # fmt: skip
LINKS = {
    "clean": CLEAN,
    "everything": EVERYTHING,
    "random-loss": Link(loss=Loss(1e-9), limit_packets=1),
    "4-state": Link(loss=FourState(0.5, 0.5, 0.5, 0.123, 0.5)),
    "certain": Link(loss=Loss(1.0), duplicate=Duplicate(1.0), corrupt=Corrupt(1.0)),
    "slow": Link(rate=Rate(8, -14), delay=Delay(30.0, 2.147483647), limit_packets=2**31 - 1),
    "nanosecond": Link(delay=Delay(1e-9, 1e-9), slot=Slot(0.0, 1e-9)),
    "table": Link(delay=Delay(0.1, 0.01, "paretonormal")),
}


@both_directions
@pytest.mark.parametrize("name", LINKS)
def test_the_kernel_has_every_attribute_as_asked(path: ImpairedPath, direction: Direction, name: str) -> None:
    link = LINKS[name]
    for seed in (1, 2**64 - 1):
        shown = path.impair(direction, link, seed)
        assert Options.of(Link.from_json(shown["link"]), shown["seed"]) == Options.of(
            link, seed if path.seeded else None
        )
        assert shown["limit"] == link.limit
        assert shown["unverified"] == (["delay.distribution"] if name == "table" else [])
        again = ask(path.router, "show")[direction]
        assert {**again, "counters": {}} == {**shown, "counters": {}}


def test_nothing_of_an_earlier_profile_stays(path: ImpairedPath) -> None:
    path.apply(EVERYTHING, EVERYTHING)
    for shown in path.apply(CLEAN, CLEAN).values():
        assert shown["link"] == {"limit_packets": CLEAN.limit}
        assert not any(shown["counters"].values())


def test_a_cleared_router_has_no_netem_and_passes_everything(path: ImpairedPath) -> None:
    path.apply(EVERYTHING, Link(loss=Loss(1.0)))
    for _ in range(2):  # clearing what is clear is no error
        ask(path.router, "clear")
    shown = ask(path.router, "show")
    assert (shown["uplink"], shown["downlink"]) == (None, None)
    for direction in Direction:
        assert path.train(direction, 200)["received"] == 200


def test_a_clean_path_loses_nothing_at_one_and_a_half_times_the_busiest_cell(path: ImpairedPath) -> None:
    """A machine that is busy with other things may not send that fast: what it does send arrives all the same."""
    path.apply(CLEAN, CLEAN)
    packets = 8000
    for direction in Direction:
        rates = []
        for _ in range(3):
            before = frames(path)
            train = path.train(direction, packets, interval_s=0, size_bytes=1000)
            rates.append(packets / train["sent"]["seconds"])
            assert train["received"] == train["unique"] == packets
            assert (
                frames(path)[f"{ENDS[direction][1]} rx"] - before[f"{ENDS[direction][1]} rx"] < packets + STRAY_FRAMES
            )
            assert not path.netem_counters(direction)["drops"]
            if rates[-1] > 1.5 * BUSY_PACKETS_PER_S:
                break
        else:
            pytest.skip(f"nothing was lost, but at most {max(rates):.0f} packets/s were sent")


def test_bulk_tcp_arrives_whole_in_plain_frames(path: ImpairedPath) -> None:
    delayed = Link(delay=Delay(0.001))
    path.apply(delayed, delayed)
    for direction in Direction:
        receiver = path.end(ENDS[direction][1])
        before = ask(receiver, "counters")["oversize_frames"]
        transfer = path.transfer(direction, 5_000_000, timeout_s=20.0)
        assert transfer["complete"]
        assert (transfer["bytes"], transfer["bad_bytes"]) == (5_000_000, 0)
        assert ask(receiver, "counters")["oversize_frames"] == before == 0
        time.sleep(0.05)  # for the last acknowledgements in the delay line
        counters = path.netem_counters(direction)
        if "delayed" in counters:  # counts a merged packet once, where `packets` counts its segments
            assert counters["delayed"] == counters["packets"]


@both_directions
def test_total_loss_in_one_direction_lets_nothing_through_and_spares_the_other(
    path: ImpairedPath, direction: Direction
) -> None:
    other = DOWN if direction is UP else UP
    path.impair(direction, Link(loss=Loss(1.0)), SEED)
    assert path.train(direction, 500, patience_s=0.3)["received"] == 0
    assert path.train(other, 500)["received"] == 500
    assert path.transfer(direction, 1000, timeout_s=1.5)["bytes"] == 0


def test_profiles_know_how_far_each_distribution_reaches_below_and_above_its_mean(tables: Tables) -> None:
    for name, table in tables.items():
        reach, height = (-min(table) / TABLE_SCALE, max(table) / TABLE_SCALE) if table else (1.0, 1.0)
        assert reach <= DISTRIBUTION_REACH[name] < reach + 0.001, name
        assert height <= DISTRIBUTION_HEIGHT[name] < height + 0.001, name
