"""A trial: the steps in order, and every outcome for its own reason."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace
from typing import Any, cast
from unittest import mock

import pytest
from pydantic import TypeAdapter

from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol
from headwind.clock import Clock
from headwind.metric import MEMORY, SERVER_TIME
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.proof.evidence import Moment, Train
from headwind.settings import Windows
from headwind.testbed.agent import AgentDied
from headwind.trial import trial as trial_module
from headwind.trial.content import ByteRange, stretch_of
from headwind.trial.probes import BULK_TRAINS, MOST_BULK_TRAINS, PROBE_RESENDS, rate_behind, send_bulk, unshaped_frames
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.messages import RateEstimate
from impair.profile import FRAME_BYTES, Direction, Link, Profile, Rate
from impair.queue_options import tokens_bytes
from impair.queues import Fifo
from servers.objects import content
from tests import quiet
from tests.fake_testbed import (
    BAD,
    FRAMES_PER_REQUEST,
    RULES,
    FakeOwn,
    FakeServer,
    Sabotage,
    World,
    a_trial,
    fake_path,
    own_path,
)


def outcome_of(sabotage: Sabotage, trial: Trial | None = None, log: str = "") -> Result:
    with fake_path(World(sabotage, log=log)) as path:
        return run_trial(path, trial or a_trial(), RULES)


def test_a_good_trial_is_ok_and_carries_its_proof() -> None:
    result = outcome_of(Sabotage())
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert {check.quantity for check in result.proof.checks if check.direction is Direction.DOWNLINK} == {
        "delay_s", "jitter_s", "loss_ratio", "duplicate_ratio", "corrupt_ratio", "unexplained_loss_ratio",
        "probe_loss_ratio", "probe_bad_payloads", "settings_changed", "hosts_changed", "standstill_s",
        "oversize_frames", "throttled_ratio",
    }  # fmt: skip
    assert result.metrics["total_s"] > 0


def test_the_status_of_failed_requests_is_in_the_reason() -> None:
    """The 404 of a path that a server lacks was in requests.parquet alone."""
    load = H2load("poll", 3, 1, 1, path="/poll")
    for statuses, why in (([404, 200, 503], ": status 404 and 503"), ([200, -1, -1], ""), ([], "")):
        answer = {"totals": {"succeeded": 1}, "samples": {"request_status": statuses}}
        assert load.shortfall(answer) == f"2 of 3 requests failed{why}"


def test_the_steps_come_in_order_and_the_seeds_reach_the_router() -> None:
    world = World()
    with fake_path(world) as path:
        run_trial(path, a_trial(), RULES)
    steps = ["server fresh", "router apply", "client send_train", "client run", "router show"]
    last = len(world.order) - 1 - world.order[::-1].index("router show")
    positions = [world.order.index(step) for step in steps[:-1]] + [last]
    assert positions == sorted(positions)
    assert world.applied == [(BAD, {"uplink": 11, "downlink": 22})]


def test_a_result_has_the_memory_of_the_server_after_the_client_ran() -> None:
    world = World()
    with fake_path(world) as path:
        result = run_trial(path, a_trial(), RULES)
    assert result.outcome is Outcome.OK, "growth is no death"
    assert result.metrics[MEMORY.key] == world.memory_bytes > 20_000_000


@pytest.mark.parametrize(
    ("host", "topic"),
    [("client", "routes"), ("server", "qdiscs"), ("router", "firewall"), ("server", "congestion")],
)
def test_a_host_that_changed_during_a_trial_makes_it_invalid_and_is_named(host: str, topic: str) -> None:
    result = outcome_of(Sabotage(changed={host: {topic: "changed by someone"}}))
    assert result.outcome is Outcome.INVALID
    assert f"(changed: {host}'s {topic})" in result.reason


def test_what_is_sent_is_counted_first_then_the_router_and_what_arrives_last() -> None:
    world = World()
    with fake_path(world) as path:
        run_trial(path, a_trial(), RULES)
    counting = [step for step in world.order if step.split()[1] in ("sent", "show", "counters")]
    readings = [counting[place : place + 5] for place in range(0, len(counting), 5)]
    assert len(readings) >= 2
    for reading in readings:
        assert sorted(reading[:2]) == ["client sent", "server sent"]
        assert reading[2] == "router show"
        assert sorted(reading[3:]) == ["client counters", "server counters"]


@pytest.mark.parametrize(
    ("sabotage", "outcome", "word"),
    [
        (Sabotage(clipped=True), Outcome.INVALID, "downlink loss: "),
        (Sabotage(late=True), Outcome.INVALID, "delay: 20.2 ms, requested 0 s, tolerance 3.00 ms ("),
        (Sabotage(bypass=True), Outcome.INVALID, "unexplained"),
        (Sabotage(hangs=True), Outcome.TIMEOUT, "60"),
        (Sabotage(alpn="h2"), Outcome.WRONG_PROTOCOL, "h2"),
        (Sabotage(failed=3), Outcome.FAILED, "3 of 1000"),
        (Sabotage(shortened=True), Outcome.WRONG_CONTENT, "1000 answers had 611000 bytes instead of 612000"),
        (Sabotage(shortened=True, failed=3), Outcome.WRONG_CONTENT, "997 answers had 609167 bytes instead of 610164"),
        (Sabotage(altered=True), Outcome.WRONG_CONTENT, "other content"),
        (Sabotage(altered=True, hangs=True), Outcome.WRONG_CONTENT, "other content"),
        (Sabotage(unfetched=True), Outcome.LAB_ERROR, "could not be fetched for comparison: Connection timed out"),
        (Sabotage(unfetched=True, failed=3), Outcome.FAILED, "3 of 1000"),
        (Sabotage(nginx_dies=True), Outcome.LAB_ERROR, "nginx died during the trial; the end of its log:\n  (empty)"),
    ],
)
def test_what_goes_wrong_is_called_by_its_name(sabotage: Sabotage, outcome: Outcome, word: str) -> None:
    result = outcome_of(sabotage)
    assert result.outcome is outcome
    assert word in result.reason


def test_a_server_that_died_is_reported_with_its_name_and_the_end_of_its_log() -> None:
    result = outcome_of(Sabotage(nginx_dies=True), log="bind() to 0.0.0.0:443 failed")
    assert result.reason == "nginx died during the trial; the end of its log:\nbind() to 0.0.0.0:443 failed"
    with pytest.raises(AgentDied, match=r"^the server died; the server was nginx$"):
        outcome_of(Sabotage(dies="server"), log="bind")
    with pytest.raises(AgentDied, match=r"^the client and client died$"):
        outcome_of(Sabotage(dies="client"), log="bind")


def test_the_server_of_the_previous_trial_is_restarted_before_another_one_is_measured() -> None:
    world = World()
    with fake_path(world) as path:
        path.in_use["caddy"] = FakeServer("caddy", world)
        run_trial(path, a_trial(), RULES)
        assert path.in_use == {"nginx": path.server}
        assert world.order.index("caddy fresh") < world.order.index("caddy forget") < world.order.index("client run")
        run_trial(path, a_trial(), RULES)
    assert world.order.count("caddy fresh") == 1


def own_trial() -> Trial:
    return a_trial(arm=replace(H2, name="h2-mine", server=FakeOwn.server))


def test_a_users_own_server_is_made_fresh_by_its_program_and_reached_on_its_port() -> None:
    world = World()
    with fake_path(world) as path:
        mine, own = own_path(path)
        result = run_trial(mine, own_trial(), RULES)
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        assert own.made_fresh == 1
        assert "server fresh" not in world.order, "the agent alone cannot restart the program"
        assert "server forget" in world.order
        assert {asked["port"] for asked in world.asked} == {8443}
        assert SERVER_TIME.key not in result.metrics, "the host's CPU time is not the program's"
        assert path.in_use == {"mine": mine.server}
        run_trial(path, a_trial(), RULES)
        assert own.made_fresh == 2, "the server of the previous trial"


@pytest.mark.parametrize("url", ["/api/items?page=2", "/?page=2"])
def test_an_answer_that_only_a_users_own_server_knows_is_counted_and_not_compared(url: str) -> None:
    """Its trials were lab errors or had wrong content, although docs/matrix.md allows any path."""
    known = own_trial()
    condition = replace(known.block.condition, workload=H2load("api", 1000, 100, 100, path=url))
    with fake_path(World()) as path:
        mine, _ = own_path(path)
        result = run_trial(mine, replace(known, block=replace(known.block, condition=condition)), RULES)
        assert (result.outcome, result.reason) == (Outcome.OK, "")


def test_a_step_of_the_clock_is_no_result() -> None:
    """The mean completion time was an hour, because h2load's log has the times of the machine's clock."""
    world = World(Sabotage(clock_step_s=3600.0))
    with fake_path(world) as path:
        result = run_trial(path, a_trial(), RULES)
    assert result.outcome is Outcome.LAB_ERROR
    assert result.reason.startswith("the machine's clock was set by +3.6e+03 s during the trial")


def test_a_users_own_server_that_ends_in_a_trial_is_a_lab_error_with_its_own_words() -> None:
    world = World()
    with fake_path(world) as path:
        mine, _ = own_path(path, dies=True)
        result = run_trial(mine, own_trial(), RULES)
    assert result.outcome is Outcome.LAB_ERROR
    assert result.reason.startswith("died during the trial: server mine (my/app:1): its program ended with status 3.")
    world = World(Sabotage(nginx_dies=True))
    with fake_path(world) as path:
        mine, _ = own_path(path)
        result = run_trial(mine, own_trial(), RULES)
    assert result.reason == "mine died during the trial; the end of its log:\n  out of luck"


@pytest.mark.parametrize("arm", [H2, H3])
def test_a_trial_keeps_when_its_requests_were_done_and_what_the_network_carried(arm: Arm) -> None:
    with fake_path(World()) as path:
        result = run_trial(path, a_trial(Profile("clean"), arm), RULES)
    total_s, requests = result.metrics["total_s"], 1000
    done = [result.metrics[f"done_{share}_s"] for share in ("p50", "p90", "p99", "all")]
    assert done == [pytest.approx(share * total_s, abs=2e-6) for share in (0.5, 0.9, 0.99, 1.0)]
    assert result.metrics["connect_max_s"] == pytest.approx(total_s / 2)
    assert result.metrics["wire_packets"] == 2 * FRAMES_PER_REQUEST * requests
    assert result.metrics["packet_gap_max_s"] == World().packet_gap_max_s
    assert ("tcp_retransmits" in result.metrics) == ("tcp_rtos" in result.metrics) == (arm is H2)


def test_a_trial_that_was_stopped_keeps_how_far_it_came() -> None:
    result = outcome_of(Sabotage(hangs=True))
    assert result.metrics["done_p50_low_s"] == result.metrics["done_p50_high_s"] < 60.0
    assert "done_p50_s" not in result.metrics


RATED = Profile("rated", downlink=Link(rate=Rate(100_000_000)))


@pytest.mark.parametrize(
    ("sabotage", "rates_bps"),
    [
        (Sabotage(), [1e8]),
        (Sabotage(starved=1), [5e7, 1e8, 1e8]),
        (Sabotage(unsteady=7), [5e7] * 7 + [1e8]),
    ],
)
def test_a_train_that_misses_the_rate_is_sent_again_before_the_client_starts(
    sabotage: Sabotage, rates_bps: list[float]
) -> None:
    world = World(sabotage)
    with fake_path(world) as path:
        result = run_trial(path, a_trial(RATED), RULES)
    bulk = result.proof.counters["trains"]["downlink"]["bulk"]
    assert result.outcome is Outcome.OK
    assert bulk["rates_bps"] == pytest.approx(rates_bps)
    trains = [place for place, step in enumerate(world.order) if step == "server send_train"]
    assert max(trains) < world.order.index("client run")


@pytest.mark.parametrize(
    ("sabotage", "which"),
    [
        (Sabotage(starved=BULK_TRAINS - 1), f"the middle steady one of {BULK_TRAINS} trains"),
        (Sabotage(unsteady=2, starved=4), f"the middle steady one of {2 + BULK_TRAINS} trains"),
        (Sabotage(unsteady=MOST_BULK_TRAINS), f"the middle one of {MOST_BULK_TRAINS} trains, none of them steady"),
    ],
)
def test_a_rate_that_only_one_of_three_trains_shows_is_not_proven(sabotage: Sabotage, which: str) -> None:
    result = outcome_of(sabotage, a_trial(RATED))
    assert result.outcome is Outcome.INVALID
    assert which in result.reason


@pytest.mark.parametrize("shown", [True, False])
def test_a_link_that_shows_no_exact_rate_is_judged_by_three_trains(shown: bool) -> None:
    """Such as one that corrupts many frames: its trains show the rate, but never steadily."""
    trains = iter([0.9e8, 1.01e8, 1.1e8] + [1.2e8] * 9 if shown else [1.2e8] * MOST_BULK_TRAINS)
    sent: list[float] = []

    def send(*_: object) -> Train:
        sent.append(next(trains))
        return Train(400, 400, 0, [], [], [], [], RateEstimate(sent[-1], pairs=50))

    with mock.patch("headwind.trial.probes.send_train_once", send):
        train = send_bulk(cast("Any", None), Direction.DOWNLINK, RATED.downlink)
    assert train.rate.rate_bps == (1.01e8 if shown else 1.2e8)
    assert train.rates_bps == sent
    assert len(sent) == (BULK_TRAINS if shown else MOST_BULK_TRAINS)


@pytest.mark.parametrize("packets", [15, 20, 50])
@pytest.mark.parametrize("rate_bps", [5_000_000, 20_000_000, 100_000_000])
def test_what_a_bottleneck_lets_pass_at_once_does_not_count_for_its_rate(packets: int, rate_bps: int) -> None:
    """A queue of 15 packets at 20 Mbit/s showed 21.8 Mbit/s, and none of 50 trials was verified."""
    link = Link(rate=Rate(rate_bps), queue=Fifo(packets))
    passing, frame_s = unshaped_frames(link), 8 * FRAME_BYTES / rate_bps
    assert passing >= 1
    count, ahead_s = packets + passing, 8 * tokens_bytes(rate_bps) / rate_bps
    arrivals_s = [max(number * 1e-6, (number + 1) * frame_s - ahead_s) for number in range(count)]
    delays_s = [arrived_s - number * 1e-6 for number, arrived_s in enumerate(arrivals_s)]
    train = Train(count, count, 0, list(range(count)), [], delays_s, arrivals_s, RateEstimate(), sent=count)
    assert rate_behind(train, link).rate_bps == pytest.approx(rate_bps, rel=0.001)
    assert unshaped_frames(Link(rate=Rate(rate_bps))) == 0, "netem itself has no bucket"


def test_content_is_compared_once_the_impairments_are_gone_and_the_counters_read() -> None:
    world = World()
    with fake_path(world) as path:
        result = run_trial(path, a_trial(), RULES)
    assert world.order.count("client fetch") == 1
    after_run = world.order[world.order.index("client run") :]
    fetched = after_run.index("client fetch")
    assert "router clear" in after_run[:fetched]
    counted = {"client sent", "server sent", "router show", "client counters", "server counters"}
    assert not counted & set(after_run[fetched:])
    assert result.samples["content"]["bytes"] == 612


def test_of_a_large_object_every_block_compares_another_stretch_and_in_a_block_all_arms_the_same() -> None:
    condition = Condition(BAD, H2load("bulk", 1, 1, 1, path="/10m"))

    def stretch(index: int, arm: Arm) -> ByteRange | None:
        return stretch_of(Trial(Block(condition, index, PLAIN, {}), 0, arm))

    stretches = [stretch(index, H1) for index in range(10)]
    data, size = content("/10m") or b"", 1 << 20
    expected = [hashlib.sha256(data[start : start + size]).hexdigest() for start in range(0, len(data), size)]
    assert [each.sha256 for each in stretches if each] == expected
    assert stretch(10, H1) == stretches[0]
    assert stretch(3, H2) == stretches[3]


def test_contents_of_the_many_objects_of_a_long_run_do_not_pile_up() -> None:
    def stretch(size_bytes: int) -> ByteRange | None:
        condition = Condition(BAD, H2load("own", 1, 1, 1, path=f"/bytes/{size_bytes}"))
        return stretch_of(Trial(Block(condition, 0, PLAIN, {}), 0, H1))

    tracemalloc.start()
    try:
        assert all(stretch(4_000_000 + number) for number in range(40))
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 60e6, "they have 160 MB"


def test_an_object_that_nobody_knows_is_no_result() -> None:
    condition = Condition(Profile("clean"), H2load("odd", 10, 1, 1, path="/odd"))
    trial = Trial(Block(condition, 0, (H1,), dict.fromkeys(Direction, 1)), 0, H1)
    result = outcome_of(Sabotage(), trial)
    assert result.outcome is Outcome.LAB_ERROR
    assert "the content of /odd is not known" in result.reason


def test_a_timeout_is_a_bound_and_not_a_time() -> None:
    result = outcome_of(Sabotage(hangs=True))
    assert result.lower_bound_s == 60.0
    assert "total_s" not in result.metrics


def test_probes_that_miss_are_sent_again_before_the_client_starts_and_that_is_kept() -> None:
    world = World(Sabotage(late=True), late_trains=1)
    with fake_path(world) as path:
        result = run_trial(path, a_trial(), RULES)
    assert result.outcome is Outcome.OK
    (missed,) = result.proof.counters["missed"]
    assert "uplink delay: 20.2 ms, requested 0 s" in missed["why"][0]
    assert len(missed["trains"]["downlink"]["probe"]["delays_s"]) > 0
    assert result.proof.warnings[0].startswith(
        "network check passed after the first attempt failed: uplink delay: 20.2 ms"
    )
    assert len(world.applied) == 2
    assert world.order.count("client run") == 1


def test_probes_are_sent_again_so_often_and_no_more() -> None:
    result = outcome_of(Sabotage(late=True))
    assert result.outcome is Outcome.INVALID
    assert len(result.proof.counters["missed"]) == PROBE_RESENDS


class Sleepers:
    """Their clock runs only while somebody sleeps, in steps of the sleeper's choice."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def sleep(self, pause_s: float) -> None:
        self.now_s += pause_s


@pytest.mark.parametrize(("moving", "longest_s"), [(False, trial_module.LOST_S), (True, trial_module.SETTLE_S)])
def test_a_frame_that_never_comes_is_waited_for_only_as_long_as_others_move(moving: bool, longest_s: float) -> None:
    sleepers = Sleepers()

    def counted(sent: int) -> Moment:
        data = quiet.moment({})
        data["client"]["tx_frames"] = sent
        return TypeAdapter(Moment).validate_python(data)

    def read() -> Moment:
        return counted(1 + (int((sleepers.now_s - 100) * 1000) if moving else 0))

    clock = Clock(lambda: sleepers.now_s, sleepers.sleep)
    trial_module._settled(read, Profile("clean"), counted(0), clock)
    assert longest_s < sleepers.now_s - 100 < longest_s + 0.01


def an_arm(name: str, **overrides: Any) -> Trial:
    """A trial of an arm with its own settings, over a clean network."""
    arm = Arm(name, Protocol(name[:2]), overrides=Overrides(**overrides))
    return replace(a_trial(Profile("clean"), arm), block=replace(a_trial(Profile("clean")).block, order=(H1, H2, arm)))


def test_an_arms_congestion_control_is_set_for_its_trial_and_taken_back_for_the_next() -> None:
    world = World()
    with fake_path(world) as path:
        results = [run_trial(path, trial, RULES) for trial in (
            a_trial(Profile("clean"), H2), an_arm("h2-bbr", congestion="bbr"), a_trial(Profile("clean"), H2),
        )]  # fmt: skip
    assert [result.outcome for result in results] == [Outcome.OK] * 3, [result.reason for result in results]
    told = [result.proof.counters["congestion"] for result in results]
    assert [(each["asked"], each["client"], each["server"]) for each in told] == [
        (name, [name], [name]) for name in ("cubic", "bbr", "cubic")
    ]
    assert world.order.count("server use_congestion") == 2


def test_the_fingerprint_of_the_start_is_held_against_the_arms_congestion_control() -> None:
    with fake_path(World()) as path:
        path.fingerprints = {host: {"congestion": "cubic"} for host in ("client", "server")}
        result = run_trial(path, an_arm("h2-bbr", congestion="bbr"), RULES)
    assert {host: told["congestion"] for host, told in result.proof.counters["joined"].items()} == {
        "client": "bbr", "server": "bbr",
    }  # fmt: skip


def test_sockets_with_another_congestion_control_are_no_proof() -> None:
    result = outcome_of(Sabotage(congestion="reno"), an_arm("h2-bbr", congestion="bbr"))
    assert result.outcome is Outcome.INVALID
    assert "client reno, server bbr; requested bbr" in result.reason


def test_an_arms_windows_and_workload_are_those_of_its_trial_alone() -> None:
    shipped = {"server_windows": Windows.AS_SHIPPED, "client_windows": Windows.AS_SHIPPED}
    world = World()
    with fake_path(world) as path:
        run_trial(path, an_arm("h3-as-shipped", **shipped), RULES)
        run_trial(path, an_arm("h1-six", workload=(("connections", 6), ("requests", 60))), RULES)
        run_trial(path, a_trial(Profile("clean"), H1), RULES)
    asked = [(each["port"], each["settings"], each["requests"], each["connections"]) for each in world.asked]
    assert asked == [(8443, "as-shipped", 1000, 10), (443, "unlimited", 60, 6), (443, "unlimited", 1000, 10)]
