"""From results to findings, and to the next block: pure, on results made by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headwind.arm import H1, H2, H3, Arm, Protocol, Role, arm_named
from headwind.model import (
    CPU_BOUND,
    Block,
    Condition,
    Matrix,
    Outcome,
    Place,
    Proof,
    Repetition,
    Result,
    Trial,
    slowed,
)
from headwind.observed import Observed, observed
from headwind.plan.block_order import plan_block, plan_blocks
from headwind.plan.scheduler import Scheduler
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.verdicts.assumptions import WarningKind
from headwind.verdicts.findings import columns_of, rows_of, rule_of, self_checks
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.stats import Interval
from headwind.verdicts.two_samples import gain, share_changed, speeds
from headwind.verdicts.verdict import Verdict, judge
from headwind.workloads.h2load import REQUEST, TOTAL
from impair.profile import Delay, Direction, Link, Profile, Rate
from tests.comparisons import RULE, finding
from tests.fake import (
    PROFILES,
    USUAL_S,
    checked_matrix,
    failed,
    found,
    good_blocks,
    invalid,
    lab_error,
    next_block,
    ok,
    one_second,
    still_open,
    timeout,
    usual,
)

AGAIN, SLOWER = H2.twin(Role.AGAIN), H2.twin(Role.SLOWER)
CHECKED = checked_matrix()
ADAPTIVE = CHECKED.repeat
CLEAN, DELAY = CHECKED.conditions


def test_the_comparisons_of_three_protocols_and_the_twins() -> None:
    assert [str(pair) for pair in pairs_of(CHECKED, DELAY)] == [
        "h3 against h1", "h3 against h2", "h2 against h1", "h2-again against h2", "h2-slower against h2",
    ]  # fmt: skip
    assert [str(pair) for pair in pairs_of(replace(CHECKED, arms=(H3,), selfcheck=None), CLEAN)] == []


def test_twins_take_turns_like_every_arm() -> None:
    size = len(CHECKED.arms_in(DELAY))
    assert size == 5
    for start in (0, size, 2 * size):
        orders = [plan_block(CHECKED, DELAY, start + row).order for row in range(size)]
        assert all({order[place] for order in orders} == set(CHECKED.arms_in(DELAY)) for place in range(size))
    assert {trial.id.rpartition("/")[2] for trial in plan_block(CHECKED, DELAY, 0).trials()} == {
        "h1", "h2", "h3", "h2-again", "h2-slower",
    }  # fmt: skip


def test_a_twin_speaks_its_protocol_over_its_network() -> None:
    block = Block(DELAY, 0, CHECKED.arms_in(DELAY), dict.fromkeys(Direction, 1))
    trials = {trial.arm: trial for trial in block.trials()}
    assert {trials[arm].protocol for arm in (H2, AGAIN, SLOWER)} == {Protocol.H2}
    assert trials[AGAIN].profile == trials[H2].profile == DELAY.profile
    assert trials[SLOWER].profile.downlink == Link(delay=Delay(0.1 * 1.1, 0.01))
    assert trials[SLOWER].profile.uplink == DELAY.profile.uplink
    assert slowed(Profile("clean")) == Profile("clean")


def test_a_slower_network_delays_longer_and_carries_less() -> None:
    """With the delay alone, a page over 5 Mbit/s and 14 ms took 1 % longer, and a sound lab failed its check."""
    cable = Link(delay=Delay(0.014), rate=Rate(5_000_000))
    slow = slowed(Profile("cable", downlink=cable, uplink=Link(rate=Rate(8))))
    assert slow.downlink == Link(delay=Delay(0.014 * 1.1), rate=Rate(4_545_448))
    assert slow.uplink == Link(rate=Rate(8)), "a rate has no less than a byte a second"


def test_an_arm_is_found_by_its_name() -> None:
    block = Block(DELAY, 0, CHECKED.arms_in(DELAY), dict.fromkeys(Direction, 1))
    assert [arm_named(arm.name) for arm in block.order] == list(block.order)
    with pytest.raises(ValueError, match="faster"):
        arm_named("h2-faster")


# What a trial tells


def test_what_a_trial_tells_of_a_metric() -> None:
    trial = plan_block(CHECKED, CLEAN, 0).trials()[0]
    assert observed(ok(trial, 2.0), TOTAL) == Observed.finished(2.0)
    assert observed(timeout(trial, 60.0), TOTAL) == Observed.unfinished(60.0)
    assert observed(timeout(trial, 60.0), REQUEST) == Observed.unfinished()
    assert observed(failed(trial, 0.1, 5), TOTAL) == Observed.unfinished()
    assert observed(ok(trial, 1.0, outcome=Outcome.WRONG_PROTOCOL), TOTAL) == Observed.unfinished()
    assert (
        observed(invalid(plan_block(CHECKED, Condition(PROFILES[2], CLEAN.workload), 0).trials()[0], 1.0), TOTAL)
        is None
    )
    assert observed(lab_error(trial), TOTAL) is observed(None, TOTAL) is None
    assert observed(ok(trial, 1.0, metrics={}), TOTAL) is None


def test_hosts_that_disagree_are_named_with_what_each_of_them_says() -> None:
    def on_hosts(factor: float) -> list[Result]:
        """Every second block on a host where h3 is slower by the factor."""
        return [
            replace(
                result,
                place=Place("beta" if result.trial.block.index % 2 else "alpha"),
                metrics={**result.metrics, "total_s": result.metrics["total_s"] * slower},
            )
            for result in good_blocks(CHECKED, CLEAN, 24)
            for slower in [factor if result.trial.arm is H3 and result.trial.block.index % 2 else 1.0]
        ]

    def said(results: list[Result]) -> set[str]:
        findings = found(CHECKED, results, complete=False, exhausted=False)
        return {
            f"{finding.pair}: {warning.message}"
            for finding in findings
            if finding.metric is TOTAL
            for warning in finding.warnings
            if warning.kind is WarningKind.HOSTS
        }

    assert said(on_hosts(1.0)) == set()
    (h1, h2) = sorted(said(on_hosts(1.5)))
    assert h1.startswith("h3 against h1: hosts disagree, the verdict mixes them: 0.99x to 1.0")
    assert "0.67x on beta" in h1
    assert h2.startswith("h3 against h2")


def test_only_blocks_in_which_both_gave_data_are_compared() -> None:
    results = good_blocks(CHECKED, CLEAN, 9)
    h1 = next(result for result in results if result.trial.id.endswith("#4/h1"))
    changed = [lab_error(h1.trial) if result is h1 else result for result in results]
    rows = rows_of(changed)[CLEAN.id]
    assert [block.index for block in columns_of(rows, Pair(H1, H3), TOTAL).blocks] == [
        0, 1, 2, 3, 5, 6, 7, 8,
    ]  # fmt: skip
    assert len(columns_of(rows, Pair(H2, H3), TOTAL).blocks) == 9
    again = rows_of([*changed, replace(h1, attempt=1)])[CLEAN.id]
    assert len(columns_of(again, Pair(H1, H3), TOTAL).blocks) == 9


def test_blocks_that_are_missing_are_counted_for_each_side() -> None:
    """What keeps a trial from being data may have to do with how slow it was."""
    results = good_blocks(CHECKED, CLEAN, 12) + good_blocks(CHECKED, DELAY, 12)
    lost: dict[str, Any] = {"outcome": Outcome.INVALID, "reason": "not proven", "attempt": MOST_ATTEMPTS - 1}
    gone = [replace(r, **lost) if r.trial.id in ("clean/article#4/h1", "clean/article#7/h1") else r for r in results]
    findings = {
        (finding.condition.id, str(finding.pair)): [
            warning.message for warning in finding.warnings if warning.kind is WarningKind.EXCLUDED
        ]
        for finding in found(CHECKED, gone, complete=True, exhausted=True)
    }
    said = "blocks excluded because a trial gave no usable data: h3 0, h1 2 of 12"
    assert findings["clean/article", "h3 against h1"] == [said]
    assert findings["clean/article", "h3 against h2"] == findings["delay/article", "h3 against h1"] == []


@pytest.mark.parametrize(("bound", "counts"), [(9, True), (10, False), (20, False)])
def test_where_processors_limited_half_of_the_blocks_the_headline_counts_nothing(bound: int, counts: bool) -> None:
    """The verdict stays what the times say, and carries the warning."""
    slow = {**USUAL_S, H1: 2.0}
    results = [
        replace(result, proof=replace(result.proof, warnings=(f"{CPU_BOUND}: the router",)))
        if result.trial.arm is H1 and result.trial.block.index < bound
        else result
        for result in good_blocks(CHECKED, CLEAN, 20, lambda trial: slow[trial.arm])
    ]
    findings = {
        str(finding.pair): finding
        for finding in found(CHECKED, results, complete=True, exhausted=True)
        if finding.condition is CLEAN and finding.metric == TOTAL
    }
    finding, other = findings["h3 against h1"], findings["h3 against h2"]
    assert finding.verdict is Verdict.FASTER
    assert finding.counted is (Verdict.FASTER if counts else Verdict.INCONCLUSIVE)
    said = [warning.message for warning in finding.warnings if warning.kind is WarningKind.PROCESSORS]
    assert said == (
        [] if counts else [f"CPU-bound in {bound} of 20 blocks: CPUs may decide the ratio, so it is never sure"]
    )
    assert not other.is_cpu_bound


def test_blocks_without_data_are_not_called_cpu_bound() -> None:
    """Every trial of a network was invalid, and its comparisons `are CPU-bound, so at most likely`."""
    bound = Proof(warnings=(f"{CPU_BOUND}: the router",))
    results = [replace(each, proof=bound, outcome=Outcome.INVALID) for each in good_blocks(CHECKED, CLEAN, 3)]
    assert results
    assert not any(finding.is_cpu_bound for finding in found(CHECKED, results, complete=True, exhausted=True))
    valid = [replace(each, outcome=Outcome.OK) for each in results]
    assert any(finding.is_cpu_bound for finding in found(CHECKED, valid, complete=True, exhausted=True))


def test_findings_are_what_was_put_in() -> None:
    results = good_blocks(CHECKED, CLEAN, 9) + good_blocks(CHECKED, DELAY, 10)
    findings = {
        (finding.condition.id, str(finding.pair)): finding
        for finding in found(CHECKED, results, complete=True, exhausted=True)
        if finding.metric == TOTAL
    }
    for condition in (CLEAN, DELAY):
        verdicts = {pair: finding.verdict for (name, pair), finding in findings.items() if name == condition.id}
        assert verdicts["h3 against h1"] is Verdict.TIE
        assert verdicts["h3 against h2"] is Verdict.FASTER
        assert verdicts["h2 against h1"] is Verdict.SLOWER
        assert verdicts["h2-again against h2"] is Verdict.TIE
        assert all(
            findings[condition.id, pair].survives for pair in ("h3 against h2", "h3 against h1", "h2 against h1")
        )
    assert findings[DELAY.id, "h2-slower against h2"].verdict is Verdict.SLOWER


def test_intervals_of_a_fixed_number_hold_only_when_all_have_run() -> None:
    fixed = replace(CHECKED, repeat=Repetition.fixed(6))
    assert not rule_of(fixed, complete=True).anytime
    assert rule_of(fixed, complete=False).anytime
    assert rule_of(CHECKED, complete=True).anytime


# Self-checks


@pytest.mark.parametrize(
    ("again_s", "slower_s", "passed"),
    [(1.2, 1.32, [True, True]), (1.4, 1.32, [False, True]), (1.0, 1.32, [False, True]), (1.2, 1.2, [True, False]),
     (1.2, 1.0, [True, False])],
)  # fmt: skip
def test_a_self_check_passes_or_fails(again_s: float, slower_s: float, passed: list[bool]) -> None:
    times: dict[Arm, float] = {**USUAL_S, AGAIN: again_s, SLOWER: slower_s}
    results = good_blocks(
        CHECKED, DELAY, 10, lambda trial: times[trial.arm] * random.Random(trial.id).uniform(0.99, 1.01)
    )
    findings = found(CHECKED, results, complete=True, exhausted=True)
    checks = [
        check for check in self_checks(findings, rule_of(CHECKED, complete=True)) if check.finding.condition is DELAY
    ]
    assert [check.passed for check in checks] == passed


def test_with_few_blocks_a_self_check_is_open() -> None:
    findings = found(CHECKED, good_blocks(CHECKED, DELAY, 7), complete=True, exhausted=True)
    assert [check.passed for check in self_checks(findings, rule_of(CHECKED, complete=True))] == [None] * 3


def test_noise_beyond_the_margin_leaves_a_and_a_open() -> None:
    findings = found(CHECKED, good_blocks(CHECKED, DELAY, 12, usual(0.5)), complete=True, exhausted=True)
    checks = self_checks(findings, rule_of(CHECKED, complete=True))
    assert next(check.passed for check in checks if check.finding.condition is DELAY) is None


@pytest.mark.parametrize(
    ("low", "high", "passed"), [(1.01, 1.10, None), (0.91, 0.99, None), (1.06, 1.2, False), (0.97, 1.04, True)]
)
def test_a_and_a_fails_by_a_difference_beyond_the_margin_alone(low: float, high: float, passed: bool | None) -> None:
    """Chance alone puts 1 outside one interval of twenty: that names the noise, and condemns no run."""
    ended = finding(
        low,
        high,
        new=AGAIN,
        verdict=judge(Interval(math.log(low), math.log(high), 0.0, 12), RULE.margin, exhausted=True),
    )
    (check,) = self_checks([ended], RULE)
    assert check.passed is passed
    assert check.noise_floor_ratio == pytest.approx(max(high, 1 / low) - 1)


# Where the next block goes


def test_the_next_block_goes_where_it_costs_least_to_decide() -> None:
    """Equal noise: the condition whose blocks take 10 s waits for the one whose blocks take 1 s."""
    noisy = usual(0.15)
    results = good_blocks(CHECKED, CLEAN, 12, noisy) + good_blocks(CHECKED, DELAY, 10, noisy)
    for cheap, dear in ((CLEAN, DELAY), (DELAY, CLEAN)):
        block = next_block(CHECKED, results, lambda condition, dear=dear: 10.0 if condition is dear else 1.0, 1e6)  # type: ignore[misc]
        assert block is not None
        assert block.condition is cheap


def test_a_dear_condition_is_not_starved_by_a_cheap_one_that_cannot_be_decided() -> None:
    """A true ratio at the margin itself keeps the cheap one open for ever; the dear one is nearly decided."""

    def time_s(trial: Trial) -> float:
        noise = random.Random(trial.id).uniform(-0.3, 0.3) if trial.block.condition is CLEAN else 0.03
        return USUAL_S[trial.arm] * math.exp(noise * random.Random(trial.id + "?").uniform(-1, 1))

    results = good_blocks(CHECKED, CLEAN, 56, time_s) + good_blocks(CHECKED, DELAY, 5, time_s)
    block = next_block(CHECKED, results, lambda condition: 30.0 if condition is DELAY else 1.0, 1e6)
    assert block is not None
    assert block.condition is DELAY


def test_nothing_is_chosen_when_all_is_decided_or_full_or_too_dear() -> None:
    decided = good_blocks(CHECKED, CLEAN, 9) + good_blocks(CHECKED, DELAY, 10)
    assert still_open(CHECKED, decided, one_second) == ()
    assert next_block(CHECKED, decided, one_second, 1e6) is None
    open_ = good_blocks(CHECKED, CLEAN, 12, usual(0.3)) + good_blocks(CHECKED, DELAY, 10, usual(0.3))
    assert next_block(CHECKED, open_, one_second, 1e6) is not None
    assert next_block(CHECKED, open_, one_second, 0.5) is None
    full = replace(CHECKED, repeat=replace(ADAPTIVE, most=10))
    assert next_block(full, open_, one_second, 1e6) is None


def test_single_blocks_use_the_time_that_is_too_short_for_a_square() -> None:
    """A run of 100 s ended with 22 s left, although a block of 9 s fitted."""
    noisy = usual(0.3)
    results = good_blocks(CHECKED, CLEAN, 12, noisy) + good_blocks(CHECKED, DELAY, 10, noisy)
    for left_s, chosen in ((4.0, CLEAN), (2.9, DELAY)):  # a square of the one, or a block of the one with fewer
        block = next_block(CHECKED, results, lambda condition: 2.0 if condition is DELAY else 1.0, left_s)
        assert block is not None
        assert block.condition is chosen


def test_a_square_that_was_begun_is_finished_first() -> None:
    noisy = usual(0.3)
    results = good_blocks(CHECKED, CLEAN, 12, noisy) + good_blocks(CHECKED, DELAY, 11, noisy)
    block = next_block(CHECKED, results, lambda condition: 100.0 if condition is DELAY else 1.0, 1e6)
    assert block is not None
    assert (block.condition, block.index) == (DELAY, 11)


def test_what_it_would_take_is_forecast() -> None:
    (item,) = still_open(CHECKED, good_blocks(CHECKED, CLEAN, 12) + good_blocks(CHECKED, DELAY, 7), lambda _: 2.5)
    assert item.condition is DELAY
    assert (item.n, item.block_s, item.outlook.blocks) == (7, 2.5, 1)


def test_stalls_that_hold_a_verdict_back_have_a_forecast_too() -> None:
    """Two of 20 h1 trials timed out: 20 blocks without another one make that 5 %."""
    results = good_blocks(CHECKED, CLEAN, 20)
    stalled = [timeout(r.trial) if r.trial.id.endswith(("#3/h1", "#5/h1")) else r for r in results]
    stalled += good_blocks(CHECKED, DELAY, 10)
    (item,) = still_open(replace(CHECKED, judge=("total_s",)), stalled, one_second)
    assert item.condition is CLEAN
    assert item.outlook.blocks == 20


def simulate(matrix: Matrix, budget_s: float, block_s: dict[str, float], noise: dict[str, float]) -> list[Block]:
    """The blocks that the scheduler gives to one lane, on a clock that only blocks move."""
    clock, blocks = [0.0], []
    scheduler = Scheduler(matrix, left_s=lambda: budget_s - clock[0])
    while task := scheduler.next():
        name = task.block.condition.id
        blocks.append(task.block)
        for trial in task.trials:
            each_s = block_s[name] / len(task.trials)
            scheduler.tell([ok(trial, usual(noise[name])(trial), phases_s={"client": each_s})])
        clock[0] += block_s[name]
    assert clock[0] <= budget_s + max(block_s.values())
    return blocks


def test_every_condition_gets_its_minimum_first_and_then_the_open_ones_get_more() -> None:
    blocks = simulate(CHECKED, 1e6, {CLEAN.id: 1.0, DELAY.id: 5.0}, {CLEAN.id: 0.1, DELAY.id: 0.005})
    assert blocks[:18] == plan_blocks(CHECKED)
    counts = {name: sum(block.condition.id == name for block in blocks) for name in (CLEAN.id, DELAY.id)}
    assert counts[DELAY.id] in (9, 10)
    assert counts[CLEAN.id] > 12


def test_a_budget_stops_between_blocks() -> None:
    blocks = simulate(CHECKED, 60.0, {CLEAN.id: 1.0, DELAY.id: 5.0}, {CLEAN.id: 0.5, DELAY.id: 0.5})
    spent_s = sum({CLEAN.id: 1.0, DELAY.id: 5.0}[block.condition.id] for block in blocks)
    assert 50 < spent_s <= 60


# Two runs


def lognormal(rng: np.random.Generator, count: int, sigma: float, median_s: float = 1.0) -> list[Observed]:
    return [Observed.finished(float(value)) for value in median_s * np.exp(rng.normal(0, sigma, count))]


def between(base: list[Observed], new: list[Observed]) -> tuple[Interval, float]:
    return gain(speeds(base), speeds(new), 0.95)


def test_the_interval_between_two_samples_covers_the_truth() -> None:
    """Different shapes and sizes, and a second run that stops when it likes what it sees: at least 95 % of 600."""
    rng, runs, missed, naive = np.random.default_rng(5), 600, 0, 0
    for _ in range(runs):
        base = lognormal(rng, int(rng.integers(9, 30)), 0.05)
        new = lognormal(rng, 40, 0.2, median_s=1 / 1.1)
        stops = [between(base, new[:n])[0] for n in (9, 15, 40)]
        chosen = max(stops, key=lambda interval: interval.low)  # the most flattering look
        missed += not chosen.low <= math.log(1.1) <= chosen.high
        naive += not stops[0].low <= math.log(1.1) <= stops[0].high
    assert naive <= missed <= 0.05 * runs


def test_the_interval_between_two_samples_closes_and_finds_a_difference() -> None:
    rng = np.random.default_rng(6)
    interval, log_e = between(lognormal(rng, 15, 0.03), lognormal(rng, 15, 0.03, 0.8))
    assert 0.05 < interval.low < math.log(1.25) < interval.high < 0.4
    assert log_e > math.log(20)
    narrow = between(lognormal(rng, 60, 0.03), lognormal(rng, 60, 0.03))[0]
    assert -0.049 < narrow.low < 0 < narrow.high < 0.049


def test_the_interval_between_two_samples_is_open_where_it_must_be() -> None:
    few = [Observed.finished(1.0 + index / 100) for index in range(3)]
    interval, log_e = between(few, few)
    assert (interval.low, interval.high) == (-math.inf, math.inf)
    assert log_e <= 0
    assert between([], few)[0].estimate is None
    stalled = [Observed.unfinished(60.0)] * 12
    slower = between([Observed.finished(1.0)] * 12, stalled)[0]
    assert slower.high <= math.log(1 / 60)
    assert slower.low == -math.inf


def test_completion_of_two_samples_errs_rarely() -> None:
    rng = np.random.default_rng(7)
    alarms = sum(
        share_changed([int(rng.binomial(20, p)), int(rng.binomial(30, p))], [20, 30]) >= math.log(20)
        for p in rng.uniform(0, 1, 3000)
    )
    assert alarms / 3000 <= 0.05
    assert share_changed([20, 5], [20, 20]) >= math.log(20)
