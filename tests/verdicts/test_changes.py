"""What changed between two runs: a protocol's own change is found, the machine's is told apart from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.model import CPU_BOUND, Matrix, Outcome, Proof, Repetition, Result, Trial
from headwind.plan.block_order import plan_block
from headwind.report.certainty import Certainty, most_apart
from headwind.report.compare.agreement import blocks_needed, certainty, change_word, machine_sentences, outcome, rest
from headwind.verdicts.changes import Changes, Shared, changes, with_unmeasured
from headwind.verdicts.findings import FALSE_SHARE
from headwind.verdicts.verdict import Verdict
from headwind.workloads.h2load import TOTAL
from headwind.workloads.objects import Objects
from impair.profile import Profile
from tests.fake import PROFILES, example_matrix, ok, timeout

ADAPTIVE = Repetition(least=9, most=60)
MATRIX = example_matrix(*PROFILES[:2], repeat=ADAPTIVE, judge=("total_s",))
USUAL_S: dict[Arm, float] = {H1: 1.0, H2: 1.2, H3: 0.9}
SLOW = 2.2  # times slower the machine is in a loaded run

Change = Callable[[Trial], float]


def run(
    seed: int, *, matrix: Matrix = MATRIX, machine: float = 1.0, blocks: int = 18, spread: float = 0.02,
    own: Mapping[Arm, float] | None = None, mood: float = 0.1,
) -> list[Result]:  # fmt: skip
    """Trials with noise of their own, and a mood that a block's trials share; `own` slows single arms."""
    random = np.random.default_rng(seed)
    found = []
    for condition in matrix.conditions:
        for index in range(blocks):
            shared = machine * math.exp(random.normal(0, mood))
            for trial in plan_block(matrix, condition, index).trials():
                noise = math.exp(spread * (random.gamma(2.0) - 2.0))
                time_s = USUAL_S[trial.arm] * (own or {}).get(trial.arm, 1.0) * shared * noise
                found.append(Result(trial, Outcome.OK, "", {"total_s": time_s}))
    return found


def sentences(found: Changes) -> list[str]:
    """What changed, then all that did not surely change."""
    return [*outcome(found), *rest(found.ratios, found.fewest)]


def told(found: Changes) -> list[str]:
    """Every ratio that changed, with who is to blame."""
    return sorted({f"{change.pair}: {change_word(change)}" for change in found.ratios if change.favours})


def test_a_machine_that_was_slower_is_said_to_be_and_is_no_regression() -> None:
    found = changes(MATRIX, run(1, mood=0.01), run(2, mood=0.01, machine=SLOW))
    assert told(found) == []
    assert not found.is_regression(absolute=False)
    assert found.is_regression(absolute=True)
    assert {change.is_shared for change in found.arms} == {True}
    (sentence,) = machine_sentences(found)
    assert sentence.startswith("the machine was 2.2 times slower: all arms alike in 2 of 2 conditions")
    (left_open,) = sentences(found)
    assert re.fullmatch(
        r"no change above 1\.\d\dx in 6 of 6 \((clean|delay)/article 1\.\d\dx, \w+/article 1\.\d\dx\)", left_open
    )
    (back,) = machine_sentences(changes(MATRIX, run(2, mood=0.01, machine=SLOW), run(1, mood=0.01)))
    assert back.startswith("the machine was 2.2 times faster")


@pytest.mark.parametrize("machine", [1.0, SLOW, 1 / SLOW])
def test_one_protocol_that_became_slower_is_to_blame_whatever_the_machine_did(machine: float) -> None:
    found = changes(MATRIX, run(3), run(4, machine=machine, own={H3: 1.4}))
    assert told(found) == ["h3 against h1: h3 worse", "h3 against h2: h3 worse"]
    assert found.is_regression(absolute=False)
    worse, left_open = sentences(found)
    assert re.sub(r" \(0\.[67]\dx(?: to 0\.[67]\dx)?\)", "", worse) == (
        "HTTP/3 worse: clean/article against h1 and h2 (total time); delay/article against h1 and h2 (total time)"
    )
    assert " in 2 of 6 " in left_open


@pytest.mark.parametrize("machine", [1.0, SLOW])
def test_one_protocol_that_became_faster_makes_no_regression_of_the_others(machine: float) -> None:
    found = changes(MATRIX, run(5), run(6, machine=machine, own={H1: 0.7}))
    assert told(found) == ["h2 against h1: h1 better", "h3 against h1: h1 better"]
    assert not found.is_regression(absolute=False)


def test_two_that_became_slower_are_not_taken_for_one_that_became_faster() -> None:
    found = changes(MATRIX, run(7), run(8, own={H2: 1.4, H3: 1.4}))
    assert told(found) == ["h2 against h1: h2 worse", "h3 against h1: h3 worse"]


def test_two_arms_on_another_machine_do_not_tell_which_of_them_changed() -> None:
    two = replace(MATRIX, arms=(H1, H3))
    found = changes(two, run(9, matrix=two), run(10, matrix=two, machine=SLOW, own={H3: 1.4}))
    assert told(found) == ["h3 against h1: h3 worse, or h1 better"]
    assert found.is_regression(absolute=False), "one of both lost ground"
    same_machine = changes(two, run(9, matrix=two), run(10, matrix=two, own={H1: 0.7}))
    assert told(same_machine) == ["h3 against h1: h1 better"]


def test_without_enough_blocks_nothing_is_said() -> None:
    found = changes(MATRIX, run(11, blocks=3), run(12, blocks=3, own={H3: 2.0}))
    assert told(found) == []
    assert {change.verdict for change in found.ratios} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(("earlier", "later"), [(1, 45), (2, 13), (7, 200)])
def test_too_few_blocks_are_not_taken_for_no_change(earlier: int, later: int) -> None:
    found = changes(MATRIX, run(11, blocks=earlier), run(12, blocks=later))
    assert all(change.is_unknown for change in found.ratios)
    assert sentences(found) == [
        f"unknown: 6 of 6; needs 8 blocks in each run, has {earlier} and {later} (clean/article, delay/article)"
    ]


@pytest.mark.parametrize(("earlier", "later"), [(8, 8), (8, 200), (13, 9), (60, 8)])
def test_eight_blocks_bound_a_change_however_many_the_other_run_has(earlier: int, later: int) -> None:
    found = changes(MATRIX, run(11, blocks=earlier), run(12, blocks=later))
    assert not any(change.is_unknown for change in found.ratios)
    assert all(1 < most_apart(change.interval) < 1.5 for change in found.ratios)


def test_bounds_beyond_one_and_a_half_either_way_say_nothing() -> None:
    """Nine blocks of a noisy machine: a change of 2x is possible, which is no reason to say that none was found."""
    noisy = changes(MATRIX, run(31, spread=0.6, blocks=9), run(32, spread=0.6, blocks=9))
    assert {math.isfinite(change.interval.high) for change in noisy.ratios} == {True}
    wide = [change for change in noisy.ratios if most_apart(change.interval) > 1.5]
    assert wide
    assert [change for change in noisy.ratios if change.is_unknown] == wide
    assert {change_word(change) for change in wide} == {"unknown"}
    largest = max(most_apart(change.interval) for change in wide)
    assert any(
        f"rule out a change above 1.50x, up to {math.ceil(largest * 100) / 100:.2f}x is possible; needs" in line
        for line in sentences(noisy)
    )


def test_a_forecast_of_blocks_is_a_range_that_names_those_that_need_most() -> None:
    """With the largest number alone, all would seem to need as many."""
    noisy = changes(MATRIX, run(31, spread=0.6, blocks=9), run(32, spread=0.6, blocks=9))

    def line(*widths: float) -> str:
        found = [
            replace(change, interval=replace(change.interval, low=-width, high=width, estimate=0.0), log_e_value=0.0,
                    verdict=Verdict.INCONCLUSIVE)
            for change, width in zip(noisy.ratios, widths, strict=False)
        ]  # fmt: skip
        return rest(found, noisy.fewest)[-1].partition("; needs ")[2].partition(", has ")[0]

    assert line(0.5, 0.5) == "about 14 blocks in each run"
    assert line(0.5, 0.6, 0.5, 2.0) == (
        "about 14 to 219 blocks in each run (half at most 14, most in delay/article h3 against h1 by total time)"
    )
    assert line(0.5, 2.0, 4.0) == (
        "about 14 to 219 blocks in each run (half at most 14, most in clean/article h3 against h2 by total time), "
        "hundreds in 1 (clean/article h2 against h1 by total time)"
    )
    assert line(4.0, 4.0) == "hundreds of blocks in each run"


def test_blocks_settle_all_only_if_they_settle_each() -> None:
    """Those that no blocks settle, as in one run trials did not finish, did not count: 142 blocks were to do."""
    noisy = changes(MATRIX, run(31, spread=0.6, blocks=9), run(32, spread=0.6, blocks=9))
    wide = [
        replace(change, interval=replace(change.interval, low=-0.5, high=0.5, estimate=0.0), log_e_value=0.0,
                verdict=Verdict.INCONCLUSIVE)
        for change in noisy.ratios[:2]
    ]  # fmt: skip
    assert blocks_needed(wide, noisy.fewest) == 14
    assert blocks_needed([wide[0], replace(wide[1], trials=(9, 2))], noisy.fewest) == 14
    hopeless = replace(wide[1], interval=replace(wide[1].interval, high=math.inf))
    assert blocks_needed([wide[0], hopeless], noisy.fewest) is None


def test_a_machine_that_was_little_slower_has_a_factor_that_says_so() -> None:
    """With a margin of 1 %, `1.0 times slower` was printed."""
    found = changes(MATRIX, run(1), run(2))
    shared = tuple(
        Shared(condition, TOTAL, -1, 1 / slower)
        for condition, slower in zip(MATRIX.conditions, (1.03, 1.24), strict=True)
    )
    (one,) = machine_sentences(replace(found, shared=shared[:1]))
    assert one.startswith("the machine was 1.03 times slower: ")
    (both,) = machine_sentences(replace(found, shared=shared))
    assert both.endswith(", 1.03 to 1.2 times")


def test_places_beyond_six_are_counted() -> None:
    profiles = [Profile(f"p{number}") for number in range(8)]
    many = example_matrix(*profiles, repeat=ADAPTIVE, judge=("total_s",))
    (line,) = sentences(changes(many, run(11, blocks=2, matrix=many), run(12, blocks=2, matrix=many)))
    assert line.endswith("p4/article, p5/article and 2 more)")


def test_a_condition_whose_arms_have_different_numbers_of_blocks_is_named_once() -> None:
    """`2 and 2 (far), 1 and 2 (far)`, of two comparisons."""
    later = [each for each in run(12, blocks=5) if each.trial.arm != H3 or each.trial.block.index < 2]
    (line,) = sentences(changes(MATRIX, run(11, blocks=9), later))
    assert line.endswith("needs 8 blocks in each run, has 9 and 2 to 5 (clean/article, delay/article)")


def test_different_numbers_of_blocks_are_a_range() -> None:
    first, later = run(11, blocks=9), run(12, blocks=5)
    later = [each for each in later if each.trial.block.condition == MATRIX.conditions[0] or each.trial.block.index < 2]
    assert sentences(changes(MATRIX, first, later)) == [
        "unknown: 6 of 6; needs 8 blocks in each run, has 9 and 2 to 5 (clean/article, delay/article)"
    ]


def test_a_change_that_is_not_sure_among_all_is_likely() -> None:
    """It changed in one of two conditions, with 8 blocks in each run: by itself it would count, of six it may not."""
    first, same, worse = run(3, blocks=8), run(4, blocks=8), run(4, blocks=8, own={H3: 1.6})
    later = [each for each in worse if each.trial.block.condition == MATRIX.conditions[0]]
    later += [each for each in same if each.trial.block.condition != MATRIX.conditions[0]]
    found = changes(MATRIX, first, later)
    likely = [change for change in found.ratios if change.is_likely]
    assert len(likely) == 2
    assert {certainty(change) for change in likely} == {Certainty.LIKELY}
    assert {change_word(change) for change in likely} == {"h3 lost ground"}
    assert "likely changed, but not sure among all: 2 of 6" in sentences(found)


def test_what_finishes_less_often_is_no_small_change_of_speed() -> None:
    """Three of eighteen stopped: too few to be sure that fewer finish, too many to speak of the others alone."""
    stopping = [
        timeout(each.trial) if each.trial.arm is H3 and each.trial.block.index in (3, 9, 15) else each
        for each in run(16)
    ]
    found = changes(MATRIX, run(15), stopping)
    mine = [change for change in found.ratios if change.pair.new is H3]
    assert all(change.is_unknown for change in mine)
    assert any("more trials did not finish in one run than in the other" in line for line in sentences(found))


def test_what_one_run_does_not_have_is_left_out() -> None:
    found = changes(MATRIX, [each for each in run(13) if each.trial.arm is not H3], run(14))
    assert {str(change.pair) for change in found.ratios} == {"h2 against h1"}
    assert {change.arm for change in found.arms} == {H1, H2}
    assert changes(MATRIX, [], run(14)) == Changes((), (), (), 8)


def test_false_alarms_stay_rare_while_the_machine_is_slower_in_one_run() -> None:
    """No arm changed: any regression is false, so e-BH allows it in FALSE_SHARE of comparisons. The shortcut cries."""
    runs, alarms, naive = 150, 0, 0
    for seed in range(runs):
        first = run(1000 + seed, spread=0.1, blocks=12)
        second = run(5000 + seed, spread=0.1, machine=SLOW, blocks=int(12 + seed % 20))
        found = changes(MATRIX, first, second)
        alarms += found.is_regression(absolute=False)
        naive += found.is_regression(absolute=True)
    assert alarms <= FALSE_SHARE * runs
    assert naive == runs


def test_intervals_of_a_change_of_ratio_hold_the_truth() -> None:
    """h3 is 1.2 times slower in the later run and the machine 2.2 times: 0.83 lies in at least 95 % of intervals."""
    missed = total = 0
    for seed in range(60):
        found = changes(MATRIX, run(100 + seed, spread=0.1), run(900 + seed, spread=0.1, machine=SLOW, own={H3: 1.2}))
        for change in found.ratios:
            truth = -math.log(1.2) if change.pair.new is H3 else 0.0
            missed += not change.interval.low <= truth <= change.interval.high
            total += 1
    assert missed <= 0.05 * total


def stopped(results: list[Result], *arms: Arm) -> list[Result]:
    """The same with the trials of some arms stopped, but for the first block."""
    return [
        timeout(each.trial)
        if each.trial.arm in arms and each.trial.block.index
        else ok(each.trial, each.metrics["total_s"])
        for each in results
    ]


def test_a_protocol_that_stops_finishing_is_a_regression_however_fast_it_was() -> None:
    found = changes(MATRIX, stopped(run(15)), stopped(run(16, own={H3: 0.3}), H3))
    assert told(found) == ["h3 against h1: h3 worse", "h3 against h2: h3 worse"]
    assert {change.verdict for change in found.ratios if change.favours} == {Verdict.COMPLETES_LESS}
    back = changes(MATRIX, stopped(run(16), H3), stopped(run(15)))
    assert told(back) == ["h3 against h1: h3 better", "h3 against h2: h3 better"]


def test_trials_without_the_metric_count_neither_as_finished_nor_as_trials() -> None:
    later = run(16, own={H3: 2.0})
    gaps = [replace(each, metrics={}) if each.trial.block.index < 4 else each for each in later]
    (found, *_) = [each for each in changes(MATRIX, run(15), gaps).arms if each.arm == H3]
    assert (found.trials, found.finished) == ((18, 14), (18, 14))
    assert found.verdict is Verdict.SLOWER


def test_where_nothing_finishes_any_more_the_machine_is_said_to_finish_less() -> None:
    found = changes(MATRIX, stopped(run(17)), stopped(run(18), H1, H2, H3))
    assert told(found) == []
    assert machine_sentences(found)[0].startswith("on this machine less was finished: all arms alike in 2 of 2")


def test_a_run_that_processors_limited_is_not_held_against_one_that_they_did_not() -> None:
    limited = Proof(warnings=(f"{CPU_BOUND}: the client was busy for 98 % of the time",))
    first, second = run(19), run(20, own={H3: 1.4})
    bound = [replace(each, proof=limited) for each in second]
    assert told(changes(MATRIX, first, bound)) == []
    assert {change_word(change) for change in changes(MATRIX, first, bound).ratios} == {"CPU-bound in one run only"}
    assert told(changes(MATRIX, [replace(each, proof=limited) for each in first], bound)), "both were: it counts"


def test_an_arms_own_change_keeps_the_words_of_the_machine() -> None:
    found = changes(MATRIX, run(21), run(22, machine=SLOW))
    assert {change_word(change) for change in found.arms} == {"worse like all"}
    alone = changes(MATRIX, run(21), run(22, own={H3: 1.5}))
    words = {(change.arm.name, change_word(change)) for change in alone.arms if change.metric is TOTAL}
    assert ("h3", "worse") in words
    assert not any(change.is_shared for change in alone.arms)


def test_a_condition_that_is_bounded_by_one_metric_and_open_by_another_names_them() -> None:
    """It stood on both sides, without a word why."""
    matrix = example_matrix(*PROFILES[:2], repeat=ADAPTIVE, judge=("total_s", "mean_done_s"))

    def noisy(seed: int) -> list[Result]:
        return [
            replace(each, metrics={**each.metrics, "mean_done_s": USUAL_S[each.trial.arm]})
            for each in run(seed, matrix=matrix, spread=1.0)
        ]

    found = changes(matrix, noisy(1), noisy(2))
    bounded, unknown = rest(found.ratios, found.fewest)
    for name in ("clean/article h3 against h2", "delay/article h3 against h2"):
        assert f"{name} by mean completion time 1.00x" in bounded
        assert f"{name} by total time" in unknown, "also the arms, because other pairs may be bounded"
        assert f"{name} by mean completion time" not in unknown


def test_pairs_without_a_verdict_by_a_metric_are_not_compared_by_it() -> None:
    """`unknown: 14 of 36` counted pairs that neither run judges by a time from sending."""
    load = Objects("objects", 24, 0, 0, path="/bytes/15000")
    conditions = tuple(replace(each, workload=load) for each in MATRIX.conditions)
    matrix = replace(MATRIX, conditions=conditions, judge=("total_s", "request_p95_s"))
    results = [
        replace(each, metrics={**each.metrics, "request_p95_s": each.metrics["total_s"]})
        for each in run(1, matrix=matrix)
    ]
    found = changes(matrix, results, results)
    by_request = {(each.pair.new, each.pair.base) for each in found.ratios if each.metric.is_from_sending}
    assert by_request == {(H3, H2)}
    every = with_unmeasured(found, matrix, results, results)
    assert len(every.ratios) == len(found.ratios)
