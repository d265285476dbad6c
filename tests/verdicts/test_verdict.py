"""Verdicts as promises: what an interval may be called, what stalls forbid, and who wins."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from headwind.observed import Observed
from headwind.verdicts.outlook import LONGEST_FORECAST_BLOCKS, blocks_needed
from headwind.verdicts.stats import Interval, log_e_against, log_e_of_count, paired_bounds
from headwind.verdicts.verdict import (
    NO_CLAIM,
    SPEED_SHARE,
    Lead,
    Rule,
    Top,
    Verdict,
    compare,
    completion,
    follow,
    judge,
    share_of,
    winner,
)

RULE = Rule()
M = RULE.margin
INF = math.inf
V = Verdict


@pytest.mark.parametrize(
    ("low", "high", "while_running", "at_the_end"),
    [
        (0.06, 0.20, V.FASTER, V.FASTER),
        (-0.20, -0.06, V.SLOWER, V.SLOWER),
        (-0.04, 0.04, V.TIE, V.TIE),
        (0.01, 0.04, V.TIE, V.TIE),  # different from 1, but by less than matters
        (0.01, 0.20, V.UNDECIDED, V.SLIGHTLY_FASTER),
        (-0.20, -0.01, V.UNDECIDED, V.SLIGHTLY_SLOWER),
        (-0.01, 0.20, V.UNDECIDED, V.INCONCLUSIVE),
        (M, INF, V.UNDECIDED, V.SLIGHTLY_FASTER),  # exactly the margin is not more than the margin
        (-M, M, V.UNDECIDED, V.INCONCLUSIVE),
        (-INF, INF, V.UNDECIDED, V.INCONCLUSIVE),
    ],
)
def test_an_interval_is_called_what_it_shows(
    low: float, high: float, while_running: Verdict, at_the_end: Verdict
) -> None:
    interval = Interval(low, high, None, 12)
    mirrored = Interval(-high, -low, None, 12)
    assert judge(interval, M, exhausted=False) is while_running
    assert judge(interval, M, exhausted=True) is at_the_end
    assert judge(mirrored, M, exhausted=True) is at_the_end.opposite


def test_the_margin_is_the_same_distance_in_both_directions() -> None:
    assert math.exp(RULE.margin) == pytest.approx(1.05)
    assert math.exp(-RULE.margin) == pytest.approx(1 / 1.05)


def test_every_verdict_knows_whom_it_favours() -> None:
    better = {V.COMPLETES_MORE, V.FASTER, V.SLIGHTLY_FASTER}
    worse = {V.COMPLETES_LESS, V.SLOWER, V.SLIGHTLY_SLOWER}
    assert {verdict for verdict in V if verdict.favours > 0} == better
    assert {verdict for verdict in V if verdict.favours < 0} == worse
    assert {verdict for verdict in V if verdict.is_clear} == (better | worse) - {V.SLIGHTLY_FASTER, V.SLIGHTLY_SLOWER}
    assert all(verdict.opposite.opposite is verdict and verdict.opposite.favours == -verdict.favours for verdict in V)


@pytest.mark.parametrize("fields", [{"confidence": 95}, {"confidence": 0}, {"margin_ratio": 0}, {"stall_ratio": 1}])
def test_an_impossible_rule_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="impossible"):
        Rule(**fields)  # type: ignore[arg-type]


# ---- completion


def flags(both: int, only_base: int, only_new: int, neither: int = 0) -> tuple[list[bool], list[bool]]:
    base = [True] * both + [True] * only_base + [False] * only_new + [False] * neither
    new = [True] * both + [False] * only_base + [True] * only_new + [False] * neither
    return base, new


@pytest.mark.parametrize("discordant", range(41))
def test_the_fixed_completion_verdict_is_the_exact_sign_test(discordant: int) -> None:
    for only_base in range(discordant + 1):
        found = completion(*flags(5, only_base, discordant - only_base, 2), Rule(anytime=False))
        p = binomtest(only_base, discordant).pvalue if discordant else 1.0
        assert (found.verdict is not V.UNDECIDED) == (p <= 0.05)
        if found.verdict is not V.UNDECIDED:
            assert (found.verdict is V.COMPLETES_LESS) == (only_base > discordant - only_base)


@given(st.lists(st.sampled_from([(True, True), (True, False), (False, True)]), max_size=60))
def test_the_anytime_completion_verdict_is_there_once_the_evidence_was_20_to_1(blocks: list[tuple[bool, bool]]) -> None:
    found = completion([base for base, _ in blocks], [new for _, new in blocks], RULE)
    counts = [[blocks[:n].count(only) for only in ((True, False), (False, True))] for n in range(1, len(blocks) + 1)]
    sure = [n for n, (base, new) in enumerate(counts, 1) if log_e_of_count(base + new, base) >= math.log(20)]
    assert found.decided_at == (sure[0] if sure else 0)
    if sure:
        base, new = counts[sure[0] - 1]
        assert found.verdict is (V.COMPLETES_LESS if base > new else V.COMPLETES_MORE)
    else:
        assert found.verdict is V.UNDECIDED


def test_completion_counts_what_happened() -> None:
    found = completion(*flags(both=4, only_base=9, only_new=0, neither=3), RULE)
    assert (found.n, found.base_finished, found.new_finished) == (16, 13, 4)
    assert (found.only_base, found.only_new) == (9, 0)
    assert found.verdict is V.COMPLETES_LESS


# ---- comparisons


def times(*seconds: float) -> list[Observed]:
    return [Observed.finished(s) for s in seconds]


def twice_as_fast(finished: int, timeouts: int = 0, failures: int = 0) -> tuple[list[Observed], list[Observed]]:
    n = finished + timeouts + failures
    new = times(*[1.0] * finished) + [Observed.unfinished(30.0)] * timeouts + [Observed.unfinished()] * failures
    return times(*[2.0] * n), new


def test_a_protocol_twice_as_fast_is_faster() -> None:
    found = compare(*twice_as_fast(12), RULE, exhausted=False)
    assert found.verdict is V.FASTER
    assert found.interval.ratios == pytest.approx((2.0, 2.0, 2.0))
    assert found.withheld is None


def test_completion_comes_first() -> None:
    base, new = twice_as_fast(finished=40, timeouts=8)
    found = compare(base, new, RULE, exhausted=False)
    assert found.interval.low > M  # fast in most blocks
    assert found.verdict is V.COMPLETES_LESS
    assert compare(new, base, RULE, exhausted=False).verdict is V.COMPLETES_MORE


@pytest.mark.parametrize(("timeouts", "failures"), [(3, 0), (0, 3), (2, 1)])
def test_a_win_of_a_protocol_that_stalls_is_withheld_until_completion_is_settled(timeouts: int, failures: int) -> None:
    base, new = twice_as_fast(21, timeouts, failures)
    running, ended = (compare(base, new, RULE, exhausted) for exhausted in (False, True))
    assert (running.verdict, running.withheld) == (V.UNDECIDED, V.FASTER)
    assert (ended.verdict, ended.withheld) == (V.INCONCLUSIVE, V.FASTER)
    mirrored = compare(new, base, RULE, exhausted=True)
    assert (mirrored.verdict, mirrored.withheld) == (V.INCONCLUSIVE, V.SLOWER)


def test_a_tie_of_a_protocol_that_stalls_is_withheld_too() -> None:
    base, new = times(*[1.0] * 24), times(*[1.0] * 21) + [Observed.unfinished(30.0)] * 3
    for one, other in ((base, new), (new, base)):
        found = compare(one, other, RULE, exhausted=True)
        assert (found.verdict, found.withheld) == (V.INCONCLUSIVE, V.TIE)


@pytest.mark.parametrize(("finished", "stalls", "verdict"), [(9, 1, V.FASTER), (18, 2, V.UNDECIDED), (40, 2, V.FASTER)])
def test_only_from_two_excess_stalls_on_a_verdict_is_withheld(finished: int, stalls: int, verdict: Verdict) -> None:
    """One stall in ten blocks is 10 %, and says nothing of how often a protocol stalls; the count is told instead."""
    found = compare(*twice_as_fast(finished, timeouts=stalls), RULE, exhausted=False)
    assert found.verdict is verdict
    assert found.completion.stalled(1) == stalls
    assert found.completion.stalled(-1) == found.completion.stalled(0) == 0


def test_a_protocol_that_is_slow_and_stalls_is_slower() -> None:
    new = times(*[2.0] * 20) + [Observed.unfinished(30.0)] * 4
    assert compare(times(*[1.0] * 24), new, RULE, exhausted=False).verdict is V.SLOWER


def test_two_protocols_that_never_finish_are_not_compared_in_speed() -> None:
    never = [Observed.unfinished(30.0)] * 60
    found = compare(never, never, RULE, exhausted=True)
    assert found.verdict is V.INCONCLUSIVE
    assert found.interval.estimate is None
    assert found.log_e_value < 0


def test_without_blocks_there_is_no_verdict() -> None:
    assert compare([], [], RULE, exhausted=False).verdict is V.UNDECIDED
    assert compare([], [], RULE, exhausted=True).verdict is V.INCONCLUSIVE


def test_the_evidence_is_that_for_the_claim_which_is_made() -> None:
    """Each times the share that its kind of claim was given beforehand; the shares add up to 1."""
    n = 24
    fast = compare([Observed.finished(2.0)] * n, [Observed.finished(1.0)] * n, RULE, exhausted=True)
    tie = compare([Observed.finished(1.0)] * n, [Observed.finished(1.0)] * n, RULE, exhausted=True)
    stalled = compare([Observed.finished(1.0)] * n, [Observed.unfinished(30.0)] * n, RULE, exhausted=True)
    assert (fast.verdict, tie.verdict, stalled.verdict) == (V.FASTER, V.TIE, V.COMPLETES_LESS)
    for found in (fast, tie, stalled):
        assert found.log_e_value == pytest.approx(log_e_of_count(n, 0) + math.log(share_of(found.verdict)))
    assert share_of(fast.verdict) == share_of(tie.verdict) == SPEED_SHARE
    assert share_of(fast.verdict) + share_of(stalled.verdict) == 1


def test_a_difference_within_the_margin_is_no_evidence_for_one_beyond_it() -> None:
    """4 % is there without any doubt, but it is not the 5 % that "faster" means."""
    small = compare([Observed.finished(1.04)] * 60, [Observed.finished(1.0)] * 60, RULE, exhausted=True)
    assert small.verdict is V.TIE
    wide = [Observed.finished(1.02 if block % 3 else 1.2) for block in range(60)]
    found = compare(wide, [Observed.finished(1.0)] * 60, RULE, exhausted=True)
    assert found.verdict is V.SLIGHTLY_FASTER
    assert found.log_e_value == -math.inf


def test_what_was_found_on_the_way_stays_found() -> None:
    """Twelve blocks say "faster", the next forty say nothing: the interval does not open again."""
    torn = [math.log(2.0)] * 12 + [math.log(1.5), math.log(0.7)] * 20
    found, claims = follow(torn, torn, [True] * 52, [True] * 52, RULE, exhausted=False)
    assert found.verdict is V.FASTER
    assert [claim.verdict for claim in claims] == [V.UNDECIDED] * 7 + [V.FASTER] * 45
    assert claims[:7] == [NO_CLAIM] * 7
    assert claims[11].log_e_value == pytest.approx(log_e_of_count(12, 0) + math.log(SPEED_SHARE))
    assert claims[-1].log_e_value == found.log_e_value == pytest.approx(log_e_of_count(52, 20) + math.log(SPEED_SHARE))
    assert -INF < found.interval.low <= (found.interval.estimate or 0.0) <= found.interval.high


def test_blocks_that_contradict_the_interval_do_not_turn_it_round() -> None:
    turned = [math.log(2.0)] * 12 + [math.log(0.5)] * 60
    found, _ = follow(turned, turned, [True] * 72, [True] * 72, RULE, exhausted=False)
    assert found.verdict is V.FASTER
    assert found.log_e_value == pytest.approx(float(log_e_against(72, 60)) + math.log(SPEED_SHARE))
    assert found.log_e_value < 0, "there is no evidence for it any more: it survives only if it was settled before"


differences = st.lists(st.one_of(st.floats(-0.4, 0.4), st.sampled_from([0.0, M, -M])), min_size=1, max_size=50)


@given(differences, st.floats(-0.4, 0.4))
def test_whatever_is_claimed_falsely_has_no_more_evidence_than_one_martingale(x: list[float], median: float) -> None:
    """The proof of `follow`: at any true median, after any block, whichever of the three claims on speed is made."""
    _, claims = follow(x, x, [True] * len(x), [True] * len(x), RULE, exhausted=False)
    true = {V.FASTER: median > M, V.SLOWER: median < -M, V.TIE: -M < median < M}
    for n, claim in enumerate(claims, 1):
        if claim is not NO_CLAIM and not true[claim.verdict]:
            below = {sum(value < median for value in x[:n]), sum(value <= median for value in x[:n])}
            assert claim.log_e_value - math.log(SPEED_SHARE) <= max(log_e_of_count(n, k) for k in below) + 1e-9


trial = st.one_of(
    st.floats(0.1, 10).map(Observed.finished), st.just(Observed.unfinished(30.0)), st.just(Observed.unfinished())
)


@given(st.lists(st.tuples(trial, trial), max_size=40), st.booleans(), st.booleans())
def test_exchanging_the_protocols_turns_the_verdict_round(
    blocks: list[tuple[Observed, Observed]], anytime: bool, exhausted: bool
) -> None:
    base, new = [b for b, _ in blocks], [c for _, c in blocks]
    rule = Rule(anytime=anytime)
    assert compare(new, base, rule, exhausted).verdict is compare(base, new, rule, exhausted).verdict.opposite


@given(st.lists(st.tuples(trial, trial), min_size=1, max_size=40), st.booleans())
def test_who_stalls_in_half_of_the_blocks_more_than_the_other_never_wins(
    blocks: list[tuple[Observed, Observed]], anytime: bool
) -> None:
    base, new = [b for b, _ in blocks], [c for _, c in blocks]
    stalls = sum(b.is_finished for b in base) - sum(c.is_finished for c in new)
    found = compare(base, new, Rule(anytime=anytime), exhausted=True)
    if stalls > max(1, RULE.stall_ratio * len(blocks)):
        assert found.verdict.favours <= 0
        assert found.verdict is not V.TIE


# ---- how many more blocks


def test_a_forecast_is_short_where_little_is_missing_and_says_never_on_the_margin() -> None:
    clear = [0.30 + i / 1000 for i in range(6)]
    soon = blocks_needed(clear, clear, RULE)
    assert soon.blocks is not None
    assert 2 <= soon.blocks <= 6  # 8 blocks close an interval
    on_the_margin = [M + (-1) ** i * (i + 1) / 1000 for i in range(60)]
    assert blocks_needed(on_the_margin, on_the_margin, RULE).blocks is None


def test_a_forecast_is_a_function_of_its_blocks() -> None:
    x = [0.08 + 0.01 * (-1) ** i * i for i in range(12)]
    once, again = blocks_needed(x, x, RULE), blocks_needed(x, x, RULE)
    assert once == again
    assert once.low is not None
    assert 1 <= once.low <= (once.blocks or LONGEST_FORECAST_BLOCKS) <= (once.high or LONGEST_FORECAST_BLOCKS)
    mirrored = blocks_needed([-d for d in x], [-d for d in x], RULE)
    assert once.blocks is not None
    assert mirrored.blocks == pytest.approx(once.blocks, rel=0.3)  # three times what chance moves it


def test_a_forecast_works_with_stalls_and_with_nothing() -> None:
    lows, highs = paired_bounds(*twice_as_fast(5, timeouts=1, failures=1))
    assert blocks_needed(lows, highs, RULE).blocks is not None
    nothing = blocks_needed([], [], RULE)
    assert nothing.low is not None
    assert nothing.low >= 8


# ---- the best of three


def top(h2_h1: Verdict, h3_h1: Verdict, h3_h2: Verdict) -> Top:
    """Who wins when h2 against h1, h3 against h1 and h3 against h2 ended so."""
    return winner(("h1", "h2", "h3"), {("h1", "h2"): h2_h1, ("h1", "h3"): h3_h1, ("h2", "h3"): h3_h2})


@pytest.mark.parametrize(
    ("verdicts", "protocols", "lead"),
    [
        ((V.TIE, V.FASTER, V.FASTER), ("h3",), Lead.WINNER),
        ((V.SLOWER, V.SLOWER, V.TIE), ("h1",), Lead.WINNER),
        ((V.FASTER, V.FASTER, V.TIE), ("h2", "h3"), Lead.TIE),
        ((V.TIE, V.TIE, V.TIE), ("h1", "h2", "h3"), Lead.TIE),
        ((V.FASTER, V.FASTER, V.SLIGHTLY_FASTER), ("h2", "h3"), Lead.OPEN),  # the margin is not cleared
        ((V.FASTER, V.FASTER, V.UNDECIDED), ("h2", "h3"), Lead.OPEN),
        ((V.FASTER, V.INCONCLUSIVE, V.FASTER), ("h3",), Lead.OPEN),  # beats the runner-up, not yet the third
        ((V.COMPLETES_LESS, V.SLOWER, V.FASTER), ("h1",), Lead.WINNER),
        ((V.FASTER, V.SLOWER, V.FASTER), ("h1", "h2", "h3"), Lead.OPEN),  # a circle
    ],
)
def test_the_winner_clears_the_margin_against_every_other(
    verdicts: tuple[Verdict, Verdict, Verdict], protocols: tuple[str, ...], lead: Lead
) -> None:
    assert top(*verdicts) == Top(protocols, lead)


def test_the_winner_does_not_depend_on_which_way_a_pair_was_compared() -> None:
    assert winner(("h1", "h2"), {("h2", "h1"): V.SLOWER}) == winner(("h1", "h2"), {("h1", "h2"): V.FASTER})


def test_whom_nobody_compared_with_it_a_winner_has_not_beaten() -> None:
    assert winner(("h1", "h2", "h3"), {("h1", "h2"): V.FASTER}) == Top(("h2", "h3"), Lead.OPEN)


def test_the_rate_of_a_forecast_is_that_of_its_best_horizon() -> None:
    """Seven blocks that agree need one more; three leave five, and some doubt; noise around 1 promises little."""
    sure = blocks_needed([0.5] * 7, [0.5] * 7, RULE)
    early = blocks_needed([0.5] * 3, [0.5] * 3, RULE)
    torn = blocks_needed([0.5, -0.5] * 15, [0.5, -0.5] * 15, RULE)
    assert sure.rate > 0.8
    assert 1 / 20 < early.rate <= 1 / 5 < sure.rate
    assert torn.rate < 0.02
