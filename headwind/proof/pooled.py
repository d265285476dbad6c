"""Checks the network of a whole run: all trials of a condition together show deviations that one trial cannot show.

Pure: results in, one `Pooled` for each question out. The rules are written here, before any run. A question is one
quantity in one direction of a condition: of each arm, of all arms together (errors that all arms share), and of each
arm against the others (errors of one arm). Quantities are those requested: loss, duplication, corruption and reordering
by netem's decisions, delay by all probes, rate by the trains of all trials.

More questions give more false alarms. So the questions of a run share FALSE_ALARM_PER_RUN (S. Holm, A simple
sequentially rejective multiple test procedure, Scand. J. Statist. 6, 1979): if the network was as requested, one run in
twenty has a finding. Arms of a block share netem's seeds, and with them many of its decisions: k arms of n packets each
count as n packets and not as k*n, which is the worst case. Trials that are no data are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from scipy.special import betainc, ndtr, ndtri

from headwind.arm import Arm, Role
from headwind.format import measured, plus_minus, quantity_name, setting
from headwind.model import DATA_OUTCOMES, Condition, Matrix
from headwind.proof.expectation import DECISIONS, Expectation, delay_seen
from headwind.proof.spans import networks
from headwind.proof.tally import (
    Seen,
    Tally,
    ratio_p_value,
    same_ratio_p_value,
    tally_of,
    total,
    unmodelled,
    variance,
)
from impair.profile import NEXT_PACKET, Direction, Link

FALSE_ALARM_PER_RUN = 0.05
MIDDLE_ALLOWANCE_S = 0.002  # what a busy two-core machine adds to the middle of all probes of a run
RATE_ALLOWANCE = 0.02


@dataclass(frozen=True, slots=True)
class Pooled:
    """Question about the network of a run, and the answer; figures in the quantity's SI unit."""

    condition: Condition
    direction: Direction
    quantity: str  # as in trial_checks.py: "loss_ratio", "delay_s", "rate_bps"
    arms: tuple[Arm, ...]  # whose trials were pooled
    between: bool  # whether the arms are compared with each other instead of with the request
    requested: float
    measured: float  # between arms: the largest difference of two
    count: int
    of: str  # what was counted: "packets", "probes", "trials"
    p_value: float  # two-sided
    spread: float  # standard deviation of `measured` if the network is as requested
    allowance: float  # deviation that is never a finding, for the machine and the model
    least_p_value: float = 0.0  # smallest attainable with this sample size
    resolution: float = math.inf  # minimum detectable deviation; infinite: none is detectable
    passed: bool = True
    span: str = ""  # the network of a profile that changes, as in Check

    @property
    def text(self) -> str:
        """The result, such as `downlink loss 2.2 % instead of 2 %`, with the packets that it was measured from."""
        arms = ", ".join(arm.name for arm in self.arms)
        figure = measured(self.quantity, self.measured)
        found = math.isfinite(self.resolution)
        sample = f"{self.count:,} {self.of}, "
        limit = sample + (f"detection limit {plus_minus(self.quantity, self.resolution)}" if found else "too few")
        what = f"{self.direction.value} {quantity_name(self.quantity)}{self.span and f' {self.span}'}"
        if self.between:
            return f"{what} differs by {figure} between {arms} ({limit})"
        wanted = setting(self.quantity, self.requested)
        fit = f"as requested ({wanted})" if self.passed else f"instead of {wanted}"
        return f"{what} {figure} {fit} ({arms}: {limit})"


def pooled(matrix: Matrix, trials: Iterable[Seen]) -> tuple[Pooled, ...]:
    """All questions about a run's latest results, in the matrix's order, answered together."""
    found: dict[str, dict[Arm, list[Seen]]] = {}
    for seen in trials:
        result, arm = seen.result, seen.result.trial.arm
        slower = arm.role is Role.SLOWER  # its network differs
        if result.outcome in DATA_OUTCOMES and result.proof.counters and not slower:
            found.setdefault(result.trial.block.condition.id, {}).setdefault(arm, []).append(seen)
    questions = [
        question
        for condition in matrix.conditions
        for direction in Direction
        for question in _questions(condition, direction, found.get(condition.id, {}))
    ]
    return _answered(questions)


def _answered(questions: Sequence[Pooled]) -> tuple[Pooled, ...]:
    """Apply Holm's procedure: the smallest of m p-values must be below alpha/m, the next below alpha/(m - 1), ..."""
    order = sorted(range(len(questions)), key=lambda index: questions[index].p_value)
    failed: set[int] = set()
    for rank, index in enumerate(order):
        if questions[index].p_value > FALSE_ALARM_PER_RUN / (len(questions) - rank):
            break
        failed.add(index)
    level = FALSE_ALARM_PER_RUN / max(1, len(questions))
    sigmas = -float(ndtri(level / 2))

    def resolution(question: Pooled) -> float:
        return question.allowance + sigmas * question.spread if question.least_p_value <= level else math.inf

    return tuple(
        replace(question, passed=index not in failed, resolution=resolution(question))
        for index, question in enumerate(questions)
    )


def _questions(condition: Condition, direction: Direction, arms: Mapping[Arm, Sequence[Seen]]) -> Iterator[Pooled]:
    for label, each in networks(condition.profile, direction).items():
        for name in DECISIONS:
            if Expectation.of(each).ratio(name) > 0 and not (name == "loss" and each.loss == NEXT_PACKET):
                tallies = {arm: tally_of(direction, name, trials, label) for arm, trials in arms.items()}
                kept = {arm: tally for arm, tally in tallies.items() if tally.effective > 0}
                yield from (replace(one, span=label) for one in _of_ratio(condition, direction, name, each, kept))
    link = condition.profile.link(direction)
    if link.delay:
        probes = {
            arm: {seen.result.trial.block.index: delays for seen in trials if (delays := seen.delays_s.get(direction))}
            for arm, trials in arms.items()
        }
        yield from _of_delay(condition, direction, link, {arm: seen for arm, seen in probes.items() if seen})
    if link.rate:
        rates = {arm: list(_rates(direction, trials)) for arm, trials in arms.items()}
        yield from _of_rate(condition, direction, link, {arm: each for arm, each in rates.items() if each})


def _each_and_all(arms: Iterable[Arm]) -> list[tuple[Arm, ...]]:
    """Every arm alone, then all together if there are several."""
    names = tuple(arms)
    return [*((arm,) for arm in names), *([names] if len(names) > 1 else [])]


# Ratios of packets


def _of_ratio(
    condition: Condition, direction: Direction, name: str, link: Link, tallies: Mapping[Arm, Tally]
) -> Iterator[Pooled]:
    expected = Expectation.of(link)
    ratio, inflation = expected.ratio(name), expected.inflation if name == "loss" else 1.0

    def off_by(tally: Tally, arms: int) -> tuple[float, float]:
        """Standard deviation and allowance of a measured share."""
        squared = tally.decisions * variance(ratio * tally.share) * inflation * arms
        return math.sqrt(squared) / tally.effective, unmodelled(tally, ratio, inflation) / tally.effective

    def question(arms: tuple[Arm, ...], measured: float, p_value: float, spread: float, slack: float, *,
                 between: bool = False) -> Pooled:  # fmt: skip
        packets = sum(tallies[arm].decisions for arm in arms)
        return Pooled(condition, direction, f"{name}_ratio", arms, between, ratio, measured, packets, "packets",
                      p_value, spread, slack)  # fmt: skip

    for arms in _each_and_all(tallies):
        tally = total(tallies[arm] for arm in arms)
        p_value = ratio_p_value(tally, ratio, inflation, len(arms))
        yield question(arms, tally.events / tally.effective, p_value, *off_by(tally, len(arms)))
    if len(tallies) > 1:
        every = sorted(tallies.values(), key=lambda tally: tally.effective)
        shares = [tally.events / tally.effective for tally in every]
        (one, its_slack), (other, other_slack) = (off_by(tally, 1) for tally in every[:2])  # fewest decisions
        p_value = same_ratio_p_value(every, inflation)
        yield question(tuple(tallies), max(shares) - min(shares), p_value, math.hypot(one, other),
                       its_slack + other_slack, between=True)  # fmt: skip


# Delay


Probes = Mapping[int, Sequence[float]]  # one-way delays in seconds, by block


def _of_delay(condition: Condition, direction: Direction, link: Link, probes: Mapping[Arm, Probes]) -> Iterator[Pooled]:
    """Judge by the middle of all probes, and by the trials off on its side: a busy moment makes one trial late."""
    assert link.delay
    requested = link.delay.delay_s

    def question(arms: tuple[Arm, ...], off: float, spread: float, slack: float, trials: Sequence[float],
                 **more: Any) -> Pooled:  # fmt: skip
        allowance, count = MIDDLE_ALLOWANCE_S + slack, sum(len(seen) for arm in arms for seen in probes[arm].values())
        alike = 1 if more["between"] else len(arms)
        by_probes = min(1.0, more.pop("tries", 1) * normal_p_value(abs(off) - allowance, spread))
        by_trials = sign_p_value([math.copysign(1.0, off) * one > allowance / 2 for one in trials], alike)
        return Pooled(condition, direction, "delay_s", arms, requested=requested, count=count, of="probes",
                      p_value=max(by_probes, by_trials), spread=spread, allowance=allowance,
                      least_p_value=2 * 0.5 ** (len(trials) / alike), **more)  # fmt: skip

    trials = {arm: {block: delay_seen(link, seen) for block, seen in each.items()} for arm, each in probes.items()}
    whole = {
        arms: delay_seen(link, [delay for arm in arms for seen in probes[arm].values() for delay in seen])
        for arms in _each_and_all(probes)
    }
    for arms, one in whole.items():
        offs = [each.measured_s - each.expected_s for arm in arms for each in trials[arm].values()]
        yield question(arms, one.measured_s - one.expected_s, one.spread_s * math.sqrt(len(arms)), one.slack_s, offs,
                       between=False, measured=one.measured_s)  # fmt: skip
    pairs = list(combinations(probes, 2))
    if pairs:
        first, second = max(pairs, key=lambda pair: abs(whole[pair[:1]].measured_s - whole[pair[1:]].measured_s))
        off = whole[first,].measured_s - whole[second,].measured_s
        both = trials[first].keys() & trials[second].keys()
        offs = [trials[first][block].measured_s - trials[second][block].measured_s for block in both]
        spread = math.hypot(whole[first,].spread_s, whole[second,].spread_s)
        yield question(tuple(probes), off, spread, 0.0, offs, between=True, measured=abs(off), tries=len(pairs))


def sign_p_value(hits: Sequence[bool], alike: int = 1) -> float:
    """Two-sided sign test: p-value of the number of hits, if at most half of the trials should be hits.

    If `alike` arms share seeds, n trials are worth n/alike.
    """
    count, n = sum(hits) / alike, len(hits) / alike
    return min(1.0, 2 * float(betainc(count, n - count + 1, 0.5))) if count else 1.0


def normal_p_value(off: float, spread: float) -> float:
    """Two-sided p-value of a deviation `off` with this standard deviation; 1 if there is none."""
    if off <= 0:
        return 1.0
    return 2 * float(ndtr(-off / spread)) if spread > 0 else 0.0


# Rate


def _rates(direction: Direction, trials: Iterable[Seen]) -> Iterator[float]:
    for seen in trials:
        for check in seen.result.proof.checks:
            if (check.direction, check.quantity) == (direction, "rate_bps") and check.measured is not None:
                yield check.measured


def _of_rate(
    condition: Condition, direction: Direction, link: Link, rates: Mapping[Arm, Sequence[float]]
) -> Iterator[Pooled]:
    """Judge by how many trials are beyond the allowance on one side: the sign test ignores how trains scatter."""
    assert link.rate
    requested = float(link.rate.rate_bps)
    expected = Expectation.of(link).full_frame_rate_bps
    allowance = RATE_ALLOWANCE * expected
    for arms in _each_and_all(rates):
        values = [rate for arm in arms for rate in rates[arm]]
        n = len(values)
        side = math.copysign(1.0, statistics.median(values) - expected)
        p_value = sign_p_value([side * (value - expected) > allowance for value in values])
        # of the median, if values scatter normally
        spread = statistics.stdev(values) * math.sqrt(math.pi / 2 / n) if n > 1 else math.inf
        yield Pooled(condition, direction, "rate_bps", arms, False, requested, statistics.median(values), n, "trials",
                     p_value, spread, allowance, 2 * 0.5**n)  # fmt: skip
