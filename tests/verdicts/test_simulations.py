"""What the statistics promise, kept in simulated labs; and what the usual shortcuts do with the same data.

The truth is known here, so errors can be counted. Noise is skewed and has outliers, as times have. Every rate is
compared with its bound plus three standard errors of the simulation, except where it can be computed exactly.
The measured rates: pytest tests/verdicts/test_simulations.py --log-cli-level=INFO
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.model import Condition, Matrix, Repetition, SelfCheck
from headwind.observed import Observed
from headwind.plan.block_order import plan_block
from headwind.verdicts.assumptions import ALARM_PROBABILITY, WarningKind, warnings
from headwind.verdicts.findings import Key
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS, blocks_needed
from headwind.verdicts.pairs import Pair
from headwind.verdicts.settled import Settlement
from headwind.verdicts.stats import Interval, e_bh, interval_rank, log_e_against, ratio_interval, running_interval
from headwind.verdicts.verdict import FEWEST_STALLS, NO_CLAIM, Rule, Verdict, compare, follow, judge
from headwind.workloads.h2load import TOTAL, H2load
from impair.profile import Profile
from tests.sizes import size

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RULE, PAIR = Rule(), Pair(H1, H3)
LOOKS = range(12, 61, 3)  # adaptive repetition: at least 12 blocks, square by square, at most 60
PEEKS = range(6, 61)  # the shortcut: look after every block, stop when it pleases


def noise(random: np.random.Generator, shape: tuple[int, ...], spread: float = 0.05) -> Floats:
    """ln-time noise of single trials: skewed to the right, every thirtieth trial held up badly."""
    held_up = (random.random(shape) < 1 / 30) * random.exponential(0.7, shape)
    return spread * (random.gamma(2.0, 1.0, shape) - 2.0) + held_up


def differences(random: np.random.Generator, runs: int, blocks: int, effect: float, spread: float = 0.05) -> Floats:
    """ln(base / new), shape (runs, blocks), of which `effect` is the true median."""
    return effect + noise(random, (runs, blocks), spread) - noise(random, (runs, blocks), spread)


def adaptive(series: Floats, margin: float = RULE.margin) -> tuple[Verdict, Interval]:
    """Look after every square and stop at the first verdict."""
    for n in LOOKS:
        interval = ratio_interval(series[:n], series[:n], RULE.confidence, anytime=True)
        verdict = judge(interval, margin, exhausted=n == LOOKS[-1])
        if verdict is not Verdict.UNDECIDED:
            return verdict, interval
    raise AssertionError("an exhausted budget always ends in a verdict")


def at_most(rate: float, runs: int) -> float:
    """The largest share that chance gives an event of probability `rate` in `runs` runs: three standard errors more."""
    return rate + 3 * math.sqrt(rate * (1 - rate) / runs)


def t_test_p(x: Floats) -> Floats:
    """Two-sided p-values of the one-sample t-test along the last axis."""
    return np.asarray(scipy_stats.ttest_1samp(x, 0.0, axis=-1).pvalue)


def peeking_t_test(x: Floats) -> Bools:
    """Whether a t-test at 5 % ever says "different" when it is repeated after every block."""
    return np.asarray(np.any([t_test_p(x[..., :n]) < 0.05 for n in PEEKS], axis=0))


def chance_of_ever_leaving(rank_of: Callable[[int], int], looks: range) -> float:
    """Exact probability that the interval of some look misses the median, for differences of any continuous kind.

    The number of blocks below the median is a random walk; its law is carried forward step by step, and what has
    left the interval is taken out.
    """
    inside = np.ones(1)
    left = 0.0
    for n in range(1, looks[-1] + 1):
        inside = (np.append(inside, 0.0) + np.append(0.0, inside)) / 2
        rank = rank_of(n) if n in looks else 0
        if rank:
            left += inside[:rank].sum() + inside[-rank:].sum()
            inside[:rank] = inside[-rank:] = 0.0
    return float(left)


def test_looking_after_every_block_for_ever_errs_in_less_than_5_percent_exactly() -> None:
    ours = chance_of_ever_leaving(lambda n: interval_rank(n, 0.95, anytime=True), range(1, 1001))
    at_looks = chance_of_ever_leaving(lambda n: interval_rank(n, 0.95, anytime=True), LOOKS)
    naive = chance_of_ever_leaving(lambda n: interval_rank(n, 0.95, anytime=False), PEEKS)
    log.info("ever wrong: anytime %.4f in 1000 blocks, %.4f at the looks; fixed intervals %.4f", ours, at_looks, naive)
    assert at_looks < ours <= 0.05
    assert naive > 0.15


def test_the_fixed_interval_covers_the_median_in_at_least_95_percent_exactly() -> None:
    for n in range(6, 301):
        rank = interval_rank(n, 0.95, anytime=False)
        assert chance_of_ever_leaving(lambda _, rank=rank: rank, range(n, n + 1)) <= 0.05  # type: ignore[misc]


def test_equal_protocols_are_told_apart_in_at_most_5_percent_of_runs_however_often_one_looks() -> None:
    runs = 2000
    x = differences(np.random.default_rng(1), runs, LOOKS[-1], effect=0.0)
    different = np.mean([adaptive(series)[0] not in (Verdict.TIE, Verdict.INCONCLUSIVE) for series in x])
    no_margin = np.mean([adaptive(series, margin=0.0)[0] is not Verdict.INCONCLUSIVE for series in x])
    naive = peeking_t_test(x).mean()
    log.info("A/A told apart: ours %.4f, without margin %.4f; t-test with peeking %.4f", different, no_margin, naive)
    assert different <= no_margin <= at_most(0.05, runs)
    assert naive > 0.15


@pytest.mark.parametrize("effect", [RULE.margin, -RULE.margin])
def test_a_difference_exactly_at_the_margin_is_neither_overstated_nor_called_a_tie(effect: float) -> None:
    runs = 1500
    x = differences(np.random.default_rng(2), runs, LOOKS[-1], effect)
    verdicts = [adaptive(series)[0] for series in x]
    overstated = Verdict.FASTER if effect > 0 else Verdict.SLOWER
    assert verdicts.count(overstated) / runs <= at_most(0.025, runs)
    assert verdicts.count(Verdict.TIE) / runs <= at_most(0.025, runs)
    assert overstated.opposite not in verdicts


def t_interval(x: Floats) -> tuple[Floats, Floats]:
    """The textbook 95 % interval of the mean along the last axis."""
    n = x.shape[-1]
    half = scipy_stats.t.ppf(0.975, n - 1) * x.std(axis=-1, ddof=1) / math.sqrt(n)
    return x.mean(axis=-1) - half, x.mean(axis=-1) + half


def t_intervals_when_they_please(x: Floats) -> Iterator[tuple[float, float]]:
    """Of each run the t-interval at the first block after which it gives a verdict, or at the last."""
    looks = [t_interval(x[:, :n]) for n in PEEKS]  # of all runs at once
    for run in range(len(x)):
        for n, (lows, highs) in zip(PEEKS, looks, strict=True):
            low, high = float(lows[run]), float(highs[run])
            if judge(Interval(low, high, None, n), RULE.margin, n == PEEKS[-1]) is not Verdict.UNDECIDED:
                yield low, high
                break


@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_at_the_moment_of_stopping_covers_the_truth_in_at_least_95_percent(skewed: bool) -> None:
    runs, truth = 1000, RULE.margin  # where stopping at a lucky moment does most harm
    random = np.random.default_rng(3)
    x = differences(random, runs, LOOKS[-1], truth)
    if skewed:  # one protocol is held up often, the other never; median and mean both differ from the mode
        x = truth + 0.12 * (random.exponential(1.0, x.shape) - math.log(2))
    mean = truth if not skewed else truth + 0.12 * (1 - math.log(2))
    ours = np.mean([i.low <= truth <= i.high for i in (adaptive(series)[1] for series in x)])
    naive = np.mean([low <= mean <= high for low, high in t_intervals_when_they_please(x)])
    log.info("coverage when stopping: ours %.4f, t-interval of the mean %.4f", ours, naive)
    assert 1 - ours <= at_most(0.05, runs)
    assert 1 - naive > at_most(0.05, runs)


def test_a_fixed_interval_of_12_blocks_covers_where_the_bootstrap_does_not() -> None:
    runs, n = 3000, 12
    x = differences(np.random.default_rng(4), runs, n, effect=0.0)
    ours = np.mean([i.low <= 0 <= i.high for i in (ratio_interval(row, row, 0.95, anytime=False) for row in x)])
    picks = np.random.default_rng(5).integers(0, n, (400, n))
    means = x[:, picks].mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=1)
    bootstrap = np.mean((low <= 0) & (high >= 0))
    log.info("coverage of 12 blocks: ours %.4f, bootstrap of the mean %.4f", ours, bootstrap)
    assert 1 - ours <= at_most(0.05, runs)
    assert 1 - bootstrap > at_most(0.05, runs)


def false_share(survivors: Bools, real: Bools) -> float:
    """The share of false ones among the survivors; 0 when there are none."""
    return float((survivors & ~real).sum() / max(1, survivors.sum()))


def matrix_of_cells(random: np.random.Generator, cells: int) -> tuple[Bools, Floats]:
    """Half of the cells without a difference, half with one of 3 to 20 %; which are real, and the differences."""
    real = np.arange(cells) % 2 == 0
    effects = real * random.choice([0.03, 0.06, 0.10, 0.20], cells) * random.choice([-1, 1], cells)
    return real, np.stack([differences(random, 1, LOOKS[-1], effect)[0] for effect in effects])


def test_at_most_10_percent_of_the_surviving_cells_of_80_are_false() -> None:
    random = np.random.default_rng(6)
    matrices, ours, power, naive = size(15, 40), [], [], []
    for _ in range(matrices):
        real, x = matrix_of_cells(random, 80)
        blocks = [adaptive(series)[1].n for series in x]
        sides = [(int((series[:n] < 0).sum()), n) for series, n in zip(x, blocks, strict=True)]
        evidence = [float(log_e_against(n, min(below, n - below))) for below, n in sides]
        survivors = np.array(e_bh(evidence, rate=0.10))
        ours.append(false_share(survivors, real))
        power.append(float(survivors[real].mean()))
        naive.append(false_share(peeking_t_test(x), real))
    log.info("false discoveries: ours %.4f at power %.2f; t-test %.4f", np.mean(ours), np.mean(power), np.mean(naive))
    assert np.mean(ours) <= 0.10  # far below: the mean over 15 matrices has a standard error of less than 0.015
    assert np.mean(power) > 0.4
    assert np.mean(naive) > 0.15


def is_true(verdict: Verdict, effect: float) -> bool:
    """Whether what is said of a cell is so, with the margin that the words stand for."""
    if verdict is Verdict.TIE:
        return abs(effect) < RULE.margin
    return effect > RULE.margin if verdict is Verdict.FASTER else effect < -RULE.margin


def pursued(x: Floats) -> list[tuple[Verdict, bool]]:
    """Verdict of each cell and whether it is settled; squares go to all cells that are not, and what is settled stays.

    So the number of blocks of a cell depends on all others, as in a run.
    """
    whole, settlement = [True] * LOOKS[-1], Settlement(len(x))
    claims = [follow(series.tolist(), series.tolist(), whole, whole, RULE, exhausted=False)[1] for series in x]
    keys: list[Key] = [(str(cell), PAIR, TOTAL) for cell in range(len(x))]
    blocks = LOOKS[0]
    while True:
        said = {key: mine[blocks - 1] if mine else NO_CLAIM for key, mine in zip(keys, claims, strict=True)}
        settlement.see(said)
        blocks += 3
        if blocks > LOOKS[-1] or len(settlement.held) == len(x):
            return [(settlement.held.get(key, said[key]).verdict, key in settlement.held) for key in keys]


def test_at_most_10_percent_of_the_verdicts_that_count_are_false_as_they_are_worded() -> None:
    """True ratios of 1.04 and 1.06 lie at both sides of what "faster" means; ties count as well."""
    random = np.random.default_rng(61)
    kinds = np.log([1.0, 1.04, 1 / 1.045, 1.06, 1 / 1.06, 1.15])
    false, single, counted = [], [], []
    for _ in range(25):
        effects = random.choice(kinds, 48)
        x = np.stack([differences(random, 1, LOOKS[-1], effect, spread=0.03)[0] for effect in effects])
        said = pursued(x)
        wrong = [
            not is_true(verdict, effect) for (verdict, counts), effect in zip(said, effects, strict=True) if counts
        ]
        alone = [adaptive(series)[0] for series in x]
        clear = [(verdict, effect) for verdict, effect in zip(alone, effects, strict=True) if verdict.is_clear]
        false.append(float(np.mean(wrong)) if wrong else 0.0)
        single.append(float(np.mean([not is_true(verdict, effect) for verdict, effect in clear])) if clear else 0.0)
        counted.append(len(wrong))
    log.info("false as worded: %.4f of %.1f; cell by cell %.4f", np.mean(false), np.mean(counted), np.mean(single))
    assert np.mean(false) <= 0.10
    assert np.mean(counted) > 10


def test_what_is_settled_is_false_in_less_than_5_percent_of_runs_however_one_stops() -> None:
    """Running intervals, looked at after every block until a verdict, with true ratios where errors are easiest."""
    runs, errors = 400, 0
    random = np.random.default_rng(62)
    for effect in (0.0, RULE.margin, -RULE.margin):
        for series in differences(random, runs, 60, effect, spread=0.04).tolist():
            _, claims = follow(series, series, [True] * 60, [True] * 60, RULE, exhausted=False)
            first = next((claim.verdict for claim in claims if claim is not NO_CLAIM), None)
            assert len({claim.verdict for claim in claims if claim is not NO_CLAIM}) <= 1, "it stays"
            errors += first is not None and not is_true(first, effect)
    log.info("ever wrong, settled and stopped at once: %.4f", errors / (3 * runs))
    assert errors / (3 * runs) <= at_most(0.05, 3 * runs)


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_claim_that_is_false_has_an_expected_evidence_of_at_most_1_when_it_is_frozen(loss: float) -> None:
    """The e-value at the moment of the first claim, 0 without one; also with stalls of both sides."""
    runs, evidence = 1500, []
    random = np.random.default_rng(63)
    for effect in (RULE.margin, 0.0):
        for series in differences(random, runs, 40, effect, spread=0.03):
            stalls = random.random((2, 40)) < loss
            lows = np.where(stalls[1], -math.inf, series)
            highs = np.where(stalls[0], math.inf, series)
            done, new_done = ((~side).tolist() for side in stalls)
            _, claims = follow(lows.tolist(), highs.tolist(), done, new_done, RULE, exhausted=False)
            first = next((claim for claim in claims if claim is not NO_CLAIM), NO_CLAIM)
            false = first is not NO_CLAIM and (first.verdict.is_completion or not is_true(first.verdict, effect))
            evidence.append(math.exp(first.log_e_value) if false else 0.0)
    mean, error = float(np.mean(evidence)), float(np.std(evidence) / math.sqrt(len(evidence)))
    log.info("evidence for false claims: %.3f +- %.3f", mean, error)
    assert mean <= 1 + 3 * error


def squares(random: np.random.Generator, runs: int, blocks: int) -> NDArray[np.int64]:
    """Positions of three protocols in every block, shape (runs, blocks, 3), from randomised cyclic Latin squares."""
    first = random.permuted(np.tile(np.arange(3), (runs, blocks // 3, 1)), axis=2).reshape(runs, blocks)
    clockwise = np.repeat(random.choice([1, 2], (runs, blocks // 3)), 3, axis=1)
    return (first[..., None] + clockwise[..., None] * np.arange(3)) % 3


def test_a_drift_of_10_percent_over_the_run_makes_no_verdict_when_protocols_take_turns() -> None:
    runs, blocks = 1500, 24
    random = np.random.default_rng(7)
    slots = np.arange(3 * blocks)
    drift = np.log1p(0.10 * slots / slots[-1])
    own = noise(random, (runs, blocks, 3), spread=0.02)
    turns = own + drift[3 * np.arange(blocks)[:, None] + squares(random, runs, blocks)]
    in_a_row = own + drift.reshape(3, blocks).T  # all of h1, then all of h2, then all of h3

    def told_apart(times: Floats) -> float:
        x = times[..., 0] - times[..., 2]
        return float(np.mean([judge(ratio_interval(r, r, 0.95, anytime=False), 0.0, True).favours != 0 for r in x]))

    naive = np.mean(scipy_stats.ttest_ind(in_a_row[..., 0], in_a_row[..., 2], axis=1).pvalue < 0.05)
    ours, ours_in_a_row = told_apart(turns), told_apart(in_a_row)
    log.info("drift: taking turns %.4f; in a row %.4f, and with a t-test %.4f", ours, ours_in_a_row, naive)
    assert ours <= at_most(0.05, runs)
    assert naive > 0.5
    assert ours_in_a_row > 0.5  # no test on earth repairs a bad order


def test_a_cost_of_running_first_makes_no_verdict_when_positions_are_balanced() -> None:
    runs, blocks = 1500, 24
    random = np.random.default_rng(8)
    own = noise(random, (runs, blocks, 3), spread=0.02)
    first_costs = np.array([0.10, 0.0, 0.0])
    balanced = own + first_costs[squares(random, runs, blocks)]
    same_order = own + first_costs

    def told_apart(times: Floats) -> float:
        x = times[..., 0] - times[..., 2]
        return float(np.mean([judge(ratio_interval(r, r, 0.95, anytime=False), 0.0, True).favours != 0 for r in x]))

    assert told_apart(balanced) <= at_most(0.05, runs)
    assert told_apart(same_order) > 0.9


def test_what_an_arm_leaves_behind_for_the_next_makes_no_difference_between_equal_arms() -> None:
    """Whoever runs right after h3 is 5 % slower. In cyclic squares that is three times the same arm, or never."""
    runs, blocks = size(80, 150), 32
    random = np.random.default_rng(18)
    condition = Condition(Profile("clean"), H2load("page", 10, 2, 1))
    checks = SelfCheck(H2, again=("clean",))

    def cyclic(arms: tuple[Arm, ...]) -> list[tuple[Arm, ...]]:
        first = [arms[place] for place in random.permutation(len(arms))]
        return [tuple(first[shift:] + first[:shift]) for shift in range(len(arms))]

    def told_apart(planned: bool) -> float:
        found = 0
        for seed in range(runs):
            matrix = Matrix(PLAIN, (condition,), Repetition(), 60.0, seed, selfcheck=checks)
            arms, x = matrix.arms_in(condition), []
            plan = [plan_block(matrix, condition, index).order for index in range(blocks)]
            for order in plan if planned else [row for _ in range(blocks // 4) for row in cyclic(arms)]:
                cost = [0.05 if place and order[place - 1] is H3 else 0.0 for place in range(4)]
                times = noise(random, (4,), spread=0.01) + cost
                h2, again = (next(i for i, arm in enumerate(order) if arm.name == name) for name in ("h2", "h2-again"))
                x.append(float(times[h2] - times[again]))
            interval = running_interval(x, x, 0.95)
            found += interval.low > 0 or interval.high < 0
        return found / runs

    ours, usual = told_apart(planned=True), told_apart(planned=False)
    log.info("carry-over: as planned %.4f, in cyclic squares %.4f", ours, usual)
    assert ours <= at_most(0.05, runs)
    assert ours < usual


def test_a_trial_counts_once_however_many_requests_it_made() -> None:
    runs, blocks, requests = 600, 12, 100
    random = np.random.default_rng(9)
    trial = noise(random, (runs, blocks, 2), spread=0.05)
    every_request = trial[..., None] + random.gamma(2.0, 0.2, (runs, blocks, 2, requests))
    pooled = every_request.transpose(0, 2, 1, 3).reshape(runs, 2, blocks * requests)
    naive = np.mean(scipy_stats.ttest_ind(pooled[:, 0], pooled[:, 1], axis=1).pvalue < 0.05)
    medians = np.median(every_request, axis=3)
    x = medians[..., 0] - medians[..., 1]
    ours = np.mean([judge(ratio_interval(r, r, 0.95, anytime=False), 0.0, True).favours != 0 for r in x])
    log.info("equal protocols told apart: by trial %.4f, by pooled request %.4f", ours, naive)
    assert ours <= at_most(0.05, runs)
    assert naive > 0.3


def stalling(
    random: np.random.Generator, median_s: float, stall_ratio: float, timeout_s: float = 30.0
) -> Iterator[Observed]:
    """Trials of a protocol that stalls now and then, half of the times as a timeout, half as a failure."""
    while True:
        if random.random() < stall_ratio:
            yield Observed.unfinished(timeout_s if random.random() < 0.5 else 0.0)
        else:
            yield Observed.finished(median_s * math.exp(float(noise(random, (1,))[0])))


def judged(base: Iterator[Observed], new: Iterator[Observed]) -> tuple[Verdict, list[Observed], list[Observed]]:
    """The adaptive verdict on two streams of trials, and the trials that it took."""
    bases, news = [next(base) for _ in range(9)], [next(new) for _ in range(9)]
    for n in LOOKS:
        bases += [next(base) for _ in range(3)]
        news += [next(new) for _ in range(3)]
        verdict = compare(bases, news, RULE, exhausted=n == LOOKS[-1]).verdict
        if verdict is not Verdict.UNDECIDED:
            return verdict, bases, news
    raise AssertionError("an exhausted budget always ends in a verdict")


def survivors_favour_new(base: list[Observed], new: list[Observed]) -> bool:
    """The usual shortcut: drop what did not finish, compare the rest."""
    finished = [np.log([time.low for time in times if time.is_finished]) for times in (base, new)]
    if min(map(len, finished)) < 2:
        return False
    test = scipy_stats.ttest_ind(*finished)
    return bool(test.pvalue < 0.05 and test.statistic > 0)


@pytest.mark.parametrize("stall_ratio", [0.2, 0.35, 0.5, 0.8])
def test_a_protocol_that_stalls_never_wins_by_being_fast_when_it_does_not(stall_ratio: float) -> None:
    runs = size(80, 150)
    random = np.random.default_rng(10)
    unseen = won = shortcut = found = 0
    for _ in range(runs):
        verdict, base, new = judged(stalling(random, 2.0, 0.0), stalling(random, 1.0, stall_ratio))
        if sum(not time.is_finished for time in new) < max(FEWEST_STALLS, RULE.stall_ratio * len(new)):
            unseen += 1  # luck: hardly a stall in the blocks that were run, so there is nothing to hold against it
            continue
        won += verdict.favours > 0 or verdict is Verdict.TIE
        found += verdict is Verdict.COMPLETES_LESS
        shortcut += survivors_favour_new(base, new)
    seen = runs - unseen
    log.info("stalls in %.2f: won %d, found %d, survivors win %d of %d", stall_ratio, won, found, shortcut, seen)
    assert seen > (0.6 if stall_ratio == 0.2 else 0.8) * runs
    assert won == 0
    assert found > 0.8 * seen
    assert shortcut > 0.5 * seen


def test_two_protocols_that_stall_alike_are_told_apart_in_at_most_5_percent_of_runs() -> None:
    runs = 500
    random = np.random.default_rng(11)
    verdicts = [judged(stalling(random, 1.0, 0.2), stalling(random, 1.0, 0.2))[0] for _ in range(runs)]
    wrong = np.mean([verdict.favours != 0 for verdict in verdicts])
    log.info("both stall in 0.2: told apart %.4f", wrong)
    assert wrong <= at_most(0.05, runs)


def test_a_server_10_percent_slower_is_found_and_equal_ones_tie() -> None:
    runs = 300
    random = np.random.default_rng(12)
    slower = [adaptive(series)[0] for series in differences(random, runs, 60, effect=-math.log(1.10), spread=0.02)]
    equal = [adaptive(series)[0] for series in differences(random, runs, 60, effect=0.0, spread=0.02)]
    found, tied = slower.count(Verdict.SLOWER) / runs, equal.count(Verdict.TIE) / runs
    log.info("positive control found in %.3f, A/A ties in %.3f", found, tied)
    assert found > 0.95
    assert tied > 0.95


def test_the_forecast_of_blocks_holds_what_it_says() -> None:
    random = np.random.default_rng(13)
    held: list[bool] = []
    factors: list[float] = []
    never = LONGEST_FORECAST_BLOCKS + 1

    def undecided(series: Floats, n: int) -> bool:
        interval = ratio_interval(series[:n], series[:n], RULE.confidence, RULE.anytime)
        return judge(interval, RULE.margin, exhausted=False) is Verdict.UNDECIDED

    while len(held) < 200:
        effect, spread = random.choice([0.0, 0.02, 0.08, 0.10, 0.15]), random.choice([0.02, 0.04, 0.08])
        series = differences(random, 1, 12 + LONGEST_FORECAST_BLOCKS, float(effect), float(spread))[0]
        if undecided(series, 12):
            took = next((more for more in range(1, never) if not undecided(series, 12 + more)), never)
            outlook = blocks_needed(series[:12], series[:12], RULE)
            held.append((outlook.low or never) <= took <= (outlook.high or never))
            factors.append(math.log2((outlook.blocks or never) / took))
    bias, error = 2 ** np.median(factors), 2 ** np.median(np.abs(factors))
    log.info("forecast: 80 %% range held in %.2f; typically %.2f of the truth, off by %.1f", np.mean(held), bias, error)
    assert np.mean(held) > 0.8
    assert 0.5 < bias < 2
    assert error < 2.5


def test_sound_data_seldom_raise_a_false_alarm() -> None:
    runs = 1000
    random = np.random.default_rng(14)
    orders = [("h1", "h2"), ("h2", "h1")] * 12
    alarms = 0
    for base, new in noise(random, (runs, 2, 24)):
        found = warnings([*map(Observed.finished, np.exp(base))], [*map(Observed.finished, np.exp(new))], orders, RULE)
        assert {warning.kind for warning in found} <= {WarningKind.DRIFT, WarningKind.RATIO_DRIFT}
        alarms += len(found)
    log.info("false alarms in %d of %d checks", alarms, 2 * runs)
    assert alarms / (2 * runs) <= at_most(ALARM_PROBABILITY, 2 * runs)
