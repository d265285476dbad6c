"""A trial: the steps in order, and every outcome for its own reason."""

from __future__ import annotations

import pytest

from headwind.model import Block, Condition, Outcome, Protocol, Result, Trial
from headwind.trial.content import Stretch, stretch_of
from headwind.trial.lane import ATTEMPTS, LabBroken, Lane
from headwind.trial.probes import BULK_TRAINS, PROBE_REPEATS
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Corrupt, Delay, Direction, Duplicate, Link, Loss, Profile, Rate
from nginx.objects import content
from tests.fake_testbed import Sabotage, World, fake_testbed

BAD = Profile("bad", downlink=Link(Delay(0.1, 0.01), Loss(0.3), Duplicate(0.1), Corrupt(0.1)))


def a_trial(profile: Profile = BAD, protocol: Protocol = Protocol.H3) -> Trial:
    condition = Condition(profile, H2load("small", 1000, 10, 10))
    seeds = {Direction.UPLINK: 11, Direction.DOWNLINK: 22}
    return Trial(Block(condition, 0, tuple(Protocol), seeds), 2, protocol)


def outcome_of(sabotage: Sabotage, trial: Trial | None = None) -> Result:
    with fake_testbed(World(sabotage)) as testbed:
        return run_trial(testbed, trial or a_trial(), 60.0)


def test_a_good_trial_is_ok_and_carries_its_proof() -> None:
    result = outcome_of(Sabotage())
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert {check.quantity for check in result.proof.checks if check.direction is Direction.DOWNLINK} == {
        "delay_s", "jitter_s", "loss_ratio", "duplicate_ratio", "corrupt_ratio", "unexplained_loss_ratio",
        "probe_loss_ratio", "probe_bad_payloads", "settings_changed", "hosts_changed", "standstill_s",
        "oversize_frames", "throttled_ratio",
    }  # fmt: skip
    assert result.metrics["total_s"] > 0


def test_the_steps_come_in_order_and_the_seeds_reach_the_router() -> None:
    world = World()
    with fake_testbed(world) as testbed:
        run_trial(testbed, a_trial(), 60.0)
    steps = ["server restart_workers", "router apply", "client send_train", "client run", "router show"]
    last = len(world.order) - 1 - world.order[::-1].index("router show")
    positions = [world.order.index(step) for step in steps[:-1]] + [last]
    assert positions == sorted(positions)
    assert world.applied == [(BAD, {"uplink": 11, "downlink": 22})]


@pytest.mark.parametrize(
    ("sabotage", "outcome", "word"),
    [
        (Sabotage(clipped=True), Outcome.INVALID, "loss_ratio"),
        (Sabotage(late=True), Outcome.INVALID, "delay_s"),
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
        (Sabotage(nginx_dies=True), Outcome.LAB_ERROR, "nginx"),
    ],
)
def test_what_goes_wrong_is_called_by_its_name(sabotage: Sabotage, outcome: Outcome, word: str) -> None:
    result = outcome_of(sabotage)
    assert result.outcome is outcome
    assert word in result.reason


RATED = Profile("rated", downlink=Link(rate=Rate(100_000_000)))


@pytest.mark.parametrize("starved", [0, 1])
def test_a_train_that_misses_the_rate_is_sent_twice_more_before_the_client_starts(starved: int) -> None:
    world = World(Sabotage(starved=starved))
    with fake_testbed(world) as testbed:
        result = run_trial(testbed, a_trial(RATED), 60.0)
    bulk = result.proof.counters["trains"]["downlink"]["bulk"]
    assert result.outcome is Outcome.OK
    assert bulk["rates_bps"] == [pytest.approx(rate) for rate in ([5e7, 1e8, 1e8] if starved else [1e8])]
    trains = [place for place, step in enumerate(world.order) if step == "server send_train"]
    assert max(trains) < world.order.index("client run")


def test_a_rate_that_only_one_of_three_trains_shows_is_not_proven() -> None:
    result = outcome_of(Sabotage(starved=BULK_TRAINS - 1), a_trial(RATED))
    assert result.outcome is Outcome.INVALID
    assert f"the middle one of {BULK_TRAINS} trains" in result.reason


def test_content_is_compared_once_the_impairments_are_gone_and_the_counters_read() -> None:
    world = World()
    with fake_testbed(world) as testbed:
        result = run_trial(testbed, a_trial(), 60.0)
    assert world.order.count("client fetch") == 1
    after_run = world.order[world.order.index("client run") :]
    fetched = after_run.index("client fetch")
    assert "router clear" in after_run[:fetched]
    assert not {"router show", "client counters", "server counters"} & set(after_run[fetched:])
    assert result.samples["content"]["bytes"] == 612


def test_of_a_large_object_every_block_compares_another_stretch_and_in_a_block_all_arms_the_same() -> None:
    condition = Condition(BAD, H2load("bulk", 1, 1, 1, path="/10m"))

    def stretch(index: int, protocol: Protocol) -> Stretch | None:
        return stretch_of(Trial(Block(condition, index, tuple(Protocol), {}), 0, protocol))

    stretches = [stretch(index, Protocol.H1) for index in range(10)]
    assert b"".join(each.data for each in stretches if each) == content("/10m")
    assert stretch(10, Protocol.H1) == stretches[0]
    assert stretch(3, Protocol.H2) == stretches[3]


def test_an_object_that_nobody_knows_is_no_result() -> None:
    condition = Condition(Profile("clean"), H2load("odd", 10, 1, 1, path="/odd"))
    trial = Trial(Block(condition, 0, (Protocol.H1,), dict.fromkeys(Direction, 1)), 0, Protocol.H1)
    result = outcome_of(Sabotage(), trial)
    assert result.outcome is Outcome.LAB_ERROR
    assert "nobody knows what /odd should hold" in result.reason


def test_a_timeout_is_a_bound_and_not_a_time() -> None:
    result = outcome_of(Sabotage(hangs=True))
    assert result.lower_bound_s == 60.0
    assert "total_s" not in result.metrics


class Notes:
    """A record that keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.results: list[Result] = []

    def begin(self, trial: Trial, attempt: int) -> None:
        assert trial.id
        self.begun.append(attempt)

    def append(self, result: Result) -> None:
        self.results.append(result)

    def attempts(self, trial: Trial) -> int:
        return sum(result.trial.id == trial.id for result in self.results)


@pytest.mark.parametrize("dies", ["client", "server", "router"])
def test_a_dead_container_is_a_lab_error_and_the_trial_runs_again(dies: str) -> None:
    world, notes = World(Sabotage(dies=dies, at=[0])), Notes()
    with Lane(lambda _: fake_testbed(world), 60.0) as lane:
        result = lane.run(a_trial(), notes)
    assert [kept.outcome for kept in notes.results] == [Outcome.LAB_ERROR, Outcome.OK]
    assert dies in notes.results[0].reason
    assert (result.attempt, notes.begun) == (1, [0, 1])


def test_a_lab_that_stays_broken_gives_up_and_has_written_every_attempt_down() -> None:
    world, notes = World(Sabotage(nginx_dies=True)), Notes()
    with Lane(lambda _: fake_testbed(world), 60.0) as lane, pytest.raises(LabBroken, match="nginx"):
        lane.run(a_trial(), notes)
    assert [kept.outcome for kept in notes.results] == [Outcome.LAB_ERROR] * ATTEMPTS


def blocks(count: int, profile: Profile = BAD) -> list[tuple[Trial, ...]]:
    condition, seeds = (
        Condition(profile, H2load("small", 1000, 10, 10)),
        {Direction.UPLINK: 11, Direction.DOWNLINK: 2},
    )
    return [Block(condition, index, tuple(Protocol), seeds).trials() for index in range(count)]


def run_blocks(sabotage: Sabotage, count: int) -> tuple[Lane, Notes, list[Result]]:
    """Whole blocks on a lane; the journal's view, and every result."""
    notes, results = Notes(), list[Result]()
    lane = Lane(lambda _: fake_testbed(World(sabotage)) if not lane.lives else fake_testbed(World()), 60.0)
    with lane:
        for block in blocks(count):
            results += lane.run_block(block, notes, notes.attempts)
        lane.retire()
    return lane, notes, results


def test_a_host_that_changed_for_good_costs_one_rebuild_and_no_finished_trial() -> None:
    # from its third trial on; the first block's last trial and the second block's first one are hit
    lane, notes, results = run_blocks(Sabotage(bypass=True, at=range(2, 99)), 3)
    assert [kept.outcome for kept in notes.results] == [*[Outcome.OK] * 2, *[Outcome.INVALID] * 2, *[Outcome.OK] * 9]
    assert len(results) == len(notes.results)
    latest = {result.trial.id: result for result in results}
    assert len(latest) == 9
    assert {result.outcome for result in latest.values()} == {Outcome.OK}
    assert [life["why"].partition(":")[0] for life in lane.lives] == [
        "two trials in a row were invalid", "the end of the run",
    ]  # fmt: skip


def test_what_a_new_testbed_does_not_mend_is_tried_once_and_then_counted() -> None:
    world, notes = World(Sabotage(bypass=True)), Notes()
    with Lane(lambda _: fake_testbed(world), 60.0) as lane:
        results = [result for block in blocks(3) for result in lane.run_block(block, notes, notes.attempts)]
    assert {result.outcome for result in results} == {Outcome.INVALID}
    assert len(results) == 2 + 3 + 3 + 3
    assert len(lane.lives) == 2


def test_two_invalid_trials_with_a_good_one_between_them_rebuild_nothing() -> None:
    lane, _, results = run_blocks(Sabotage(bypass=True, at=[0, 2, 4]), 2)
    assert [result.outcome for result in results] == [Outcome.INVALID, Outcome.OK] * 3
    assert len(lane.lives) == 1


def test_probes_that_miss_are_sent_again_before_the_client_starts_and_that_is_kept() -> None:
    world = World(Sabotage(late=True), late_trains=1)
    with fake_testbed(world) as testbed:
        result = run_trial(testbed, a_trial(), 60.0)
    assert result.outcome is Outcome.OK
    (missed,) = result.proof.counters["missed"]
    assert "delay_s" in missed["why"][0]
    assert len(missed["trains"]["downlink"]["probe"]["delays_s"]) > 0
    assert "probes were sent 2 times" in result.proof.warnings[0]
    assert len(world.applied) == 2
    assert world.order.count("client run") == 1


def test_probes_are_repeated_so_often_and_no_more() -> None:
    result = outcome_of(Sabotage(late=True))
    assert result.outcome is Outcome.INVALID
    assert len(result.proof.counters["missed"]) == PROBE_REPEATS


def test_a_testbed_that_is_worse_at_its_end_is_doubted() -> None:
    lane, _, _ = run_blocks(Sabotage(vanishing=5, at=[3]), 1)  # after three runs of the client
    assert len(lane.doubts) == 2
    assert "lost 5 of 2000" in lane.doubts[0]
