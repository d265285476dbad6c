"""Was the network of a whole run the requested one? All trials of a condition together tell what one is too short for.

Pure: results in, one `Pooled` for each question out. The rules are written here, before any run. A question is one
quantity in one direction of a condition: of each arm, of all arms together (what is wrong for everybody), and of each
arm against the others (what is wrong for one). Quantities are those that were asked for: loss, duplication, corruption
and reordering by netem's decisions, delay by all probes, rate by the trains of all trials.

The more is asked, the more comes out wrong by chance. So the questions of a run share FALSE_ALARM_PER_RUN (S. Holm, A
simple sequentially rejective multiple test procedure, Scand. J. Statist. 6, 1979): where the network was as requested,
one run in twenty has a finding. Arms of a block share netem's seeds, and with them many of its decisions: k arms of n
packets each are taken for n packets and not for k*n, which is true at worst. Trials that are no data are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from scipy.special import betainc, chdtrc, ndtr, ndtri

from headwind.delay import delay_seen
from headwind.expectation import full_frame_rate_bps, stationary_loss
from headwind.format import measured, quantity_name, setting
from headwind.model import DATA_OUTCOMES, Arm, Condition, Matrix, Result, Role, Twin
from headwind.passage import UNEXPLAINED_FRAMES, Events, Evidence, passage_of
from impair.profile import Direction, Link

FALSE_ALARM_PER_RUN = 0.05
DELAY_ALLOWANCE_S = 0.0015  # what a busy two-core machine adds to the middle of all probes of a run
RATE_ALLOWANCE = 0.02
RATIO_ALLOWANCE = 0.002  # of what was asked: nobody's comparison depends on so little
DECISIONS = ("loss", "duplicate", "corrupt", "reorder")
FEWEST_EXPECTED = 5.0  # events of each arm, below which the chi-square law does not hold (W. G. Cochran, 1954)


@dataclass(frozen=True, slots=True)
class Pooled:
    """One question about the network of a run, and the answer; figures in the quantity's SI unit."""

    condition: Condition
    direction: Direction
    quantity: str  # as in proof.py: "loss_ratio", "delay_s", "rate_bps"
    arms: tuple[Arm, ...]  # whose trials were pooled
    between: bool  # whether the arms are compared with each other instead of with the request
    requested: float
    measured: float  # between arms: the largest difference of two
    count: int
    of: str  # what was counted: "packets", "probes", "trials"
    p_value: float  # how often chance alone does as much
    spread: float  # standard deviation of `measured` where the network is as requested
    allowance: float  # what is never a finding, for the machine and the model
    least_p_value: float = 0.0  # that so few could have
    resolution: float = math.inf  # a deviation of this size would be a finding; infinite: none would
    passed: bool = True

    @property
    def text(self) -> str:
        """As in `downlink loss 2.2 % instead of 2 % (h3: 40,000 packets can tell +- 0.17 %)`."""
        arms = ", ".join(arm.value for arm in self.arms)
        figure = measured(self.quantity, self.measured)
        can_tell = f"{self.count:,} {self.of} can tell \N{PLUS-MINUS SIGN} {measured(self.quantity, self.resolution)}"
        what = f"{self.direction.value} {quantity_name(self.quantity)}"
        if self.between:
            return f"{what} differs by {figure} between {arms} ({can_tell})"
        return f"{what} {figure} instead of {setting(self.quantity, self.requested)} ({arms}: {can_tell})"


def pooled(matrix: Matrix, results: Iterable[Result]) -> tuple[Pooled, ...]:
    """Every question that can be asked of a run's latest results, in the matrix's order, answered together."""
    seen: dict[str, dict[Arm, list[Result]]] = {}
    for result in results:
        arm = result.trial.arm
        slower = isinstance(arm, Twin) and arm.role is Role.SLOWER  # its network is another one
        if result.outcome in DATA_OUTCOMES and result.proof.counters and not slower:
            seen.setdefault(result.trial.block.condition.id, {}).setdefault(arm, []).append(result)
    asked = [
        question
        for condition in matrix.conditions
        for direction in Direction
        for question in _questions(condition, direction, seen.get(condition.id, {}))
    ]
    return _answered(asked)


def _answered(asked: Sequence[Pooled]) -> tuple[Pooled, ...]:
    """Holm's procedure: the smallest of m probabilities must be below alpha/m, the next one below alpha/(m - 1), ..."""
    order = sorted(range(len(asked)), key=lambda index: asked[index].p_value)
    failed: set[int] = set()
    for rank, index in enumerate(order):
        if asked[index].p_value > FALSE_ALARM_PER_RUN / (len(asked) - rank):
            break
        failed.add(index)
    level = FALSE_ALARM_PER_RUN / max(1, len(asked))
    sigmas = -float(ndtri(level / 2))

    def resolution(question: Pooled) -> float:
        return question.allowance + sigmas * question.spread if question.least_p_value <= level else math.inf

    return tuple(
        replace(question, passed=index not in failed, resolution=resolution(question))
        for index, question in enumerate(asked)
    )


def _questions(condition: Condition, direction: Direction, arms: Mapping[Arm, Sequence[Result]]) -> Iterator[Pooled]:
    link = condition.profile.link(direction)
    for name in DECISIONS:
        ratio = _ratio(link, name)
        if ratio > 0:
            tallies = {arm: _tally(direction, link, name, results) for arm, results in arms.items()}
            kept = {arm: tally for arm, tally in tallies.items() if tally.effective > 0}
            yield from _of_ratio(condition, direction, name, link, kept)
    if link.delay:
        probes = {arm: [delay for result in results for delay in _delays(direction, result)]
                  for arm, results in arms.items()}  # fmt: skip
        yield from _of_delay(condition, direction, link, {arm: delays for arm, delays in probes.items() if delays})
    if link.rate:
        rates = {arm: list(_rates(direction, results)) for arm, results in arms.items()}
        yield from _of_rate(condition, direction, link, {arm: each for arm, each in rates.items() if each})


def _each_and_all(arms: Iterable[Arm]) -> list[tuple[Arm, ...]]:
    """Every arm by itself, then all together where there are several."""
    names = tuple(arms)
    return [*((arm,) for arm in names), *([names] if len(names) > 1 else [])]


# Ratios of packets


@dataclass(frozen=True, slots=True)
class Tally:
    """Decisions of netem over several trials."""

    events: int
    decisions: int
    share: float  # of the decisions that can show
    trials: int
    doubt: float = 0.0  # by how much of itself the share may be another
    slack: int = 0  # packets that may be in one of the two and not in the other

    @property
    def effective(self) -> float:
        """The decisions that can show."""
        return self.decisions * self.share


def _ratio(link: Link, name: str) -> float:
    if name == "loss":
        return stationary_loss(link.loss)[0]
    impairment = getattr(link, name)
    return float(impairment.ratio) if impairment else 0.0


def _tally(direction: Direction, link: Link, name: str, results: Iterable[Result]) -> Tally:
    found: list[Events] = [
        getattr(passage_of(direction, link, Evidence(**result.proof.counters)), name) for result in results
    ]
    share, doubt = (found[0].share, found[0].doubt) if found else (1.0, 0.0)
    return Tally(sum(one.count for one in found), sum(one.decisions for one in found), share, len(found), doubt,
                 sum(one.slack for one in found))  # fmt: skip


def _of_ratio(
    condition: Condition, direction: Direction, name: str, link: Link, tallies: Mapping[Arm, Tally]
) -> Iterator[Pooled]:
    ratio, inflation = _ratio(link, name), stationary_loss(link.loss)[1] if name == "loss" else 1.0

    def off_by(tally: Tally, arms: int) -> tuple[float, float]:
        """(standard deviation, allowance) of a measured share."""
        variance = tally.decisions * _variance(ratio * tally.share) * inflation * arms
        return math.sqrt(variance) / tally.effective, _slack(tally, ratio, inflation) / tally.effective

    def question(arms: tuple[Arm, ...], measured: float, p_value: float, spread: float, slack: float, *,
                 between: bool = False) -> Pooled:  # fmt: skip
        packets = sum(tallies[arm].decisions for arm in arms)
        return Pooled(condition, direction, f"{name}_ratio", arms, between, ratio, measured, packets, "packets",
                      p_value, spread, slack)  # fmt: skip

    for arms in _each_and_all(tallies):
        tally = _sum(tallies[arm] for arm in arms)
        p_value = ratio_p_value(tally, ratio, inflation, len(arms))
        yield question(arms, tally.events / tally.effective, p_value, *off_by(tally, len(arms)))
    if len(tallies) > 1:
        every = sorted(tallies.values(), key=lambda tally: tally.effective)
        shares = [tally.events / tally.effective for tally in every]
        (one, its_slack), (other, other_slack) = (off_by(tally, 1) for tally in every[:2])  # who can tell least
        p_value = _same_ratio_p_value(every, inflation)
        yield question(tuple(tallies), max(shares) - min(shares), p_value, math.hypot(one, other),
                       its_slack + other_slack, between=True)  # fmt: skip


def _sum(tallies: Iterable[Tally]) -> Tally:
    every = list(tallies)
    return replace(
        every[0], events=sum(tally.events for tally in every), decisions=sum(tally.decisions for tally in every),
        trials=sum(tally.trials for tally in every), slack=sum(tally.slack for tally in every),
    )  # fmt: skip


def _variance(ratio: float) -> float:
    return ratio * (1 - ratio)


def _slack(tally: Tally, ratio: float, inflation: float) -> float:
    """Events that the model does not know of: strays, what kernels without counters leave in doubt, young chains.

    A Gilbert-Elliott chain that begins good has lost ratio/(1 - rho) packets less than one that is well under way; with
    the inflation (1 + rho)/(1 - rho) that is ratio * (inflation + 1)/2 in each trial.
    """
    beginning = ratio * (inflation + 1) / 2 * tally.trials if inflation > 1 else 0.0
    strays = ratio * UNEXPLAINED_FRAMES * tally.trials + tally.slack
    return (RATIO_ALLOWANCE + tally.doubt) * ratio * tally.effective + beginning + strays


def ratio_p_value(tally: Tally, ratio: float, inflation: float, arms: int) -> float:
    """How often so many events or more extreme ones come of independent decisions: the binomial tails, twice.

    Bursts, and arms that share seeds, make n decisions worth n/(inflation * arms): the tails of the binomial law hold
    for such fractions as well, as the incomplete beta function (Abramowitz and Stegun, 26.5.24).
    """
    share, n = ratio * tally.share, tally.decisions
    expected, slack = n * share, _slack(tally, ratio, inflation)
    off = max(0.0, abs(tally.events - expected) - slack)
    if off == 0:
        return 1.0
    if share >= 1:
        return 0.0
    alike = inflation * arms
    if tally.events > expected:
        events = min(float(n), expected + off)
        tail = betainc(events / alike, (n - events) / alike + 1, share)
    else:
        events = max(0.0, expected - off)
        tail = betainc((n - events) / alike, events / alike + 1, 1 - share)
    return min(1.0, 2 * float(tail))


def _same_ratio_p_value(tallies: Sequence[Tally], inflation: float) -> float:
    """Whether the arms had the same ratio, whatever that is: chi-square of a table of two columns (Pearson, 1900)."""
    whole = _sum(tallies)
    common = whole.events / whole.decisions
    if min(tally.decisions * _variance(common) for tally in tallies) < FEWEST_EXPECTED * inflation:
        return 1.0
    distances = (
        max(0.0, abs(tally.events - tally.decisions * common) - _slack(tally, common / whole.share, inflation)) ** 2
        / (tally.decisions * _variance(common) * inflation)
        for tally in tallies
    )
    return float(chdtrc(len(tallies) - 1, math.fsum(distances)))


# Delay


def _delays(direction: Direction, result: Result) -> Sequence[float]:
    train = result.proof.counters.get("trains", {}).get(direction.value, {}).get("probe") or {}
    delays: Sequence[float] = train.get("delays_s", ())
    return delays


def _of_delay(
    condition: Condition, direction: Direction, link: Link, probes: Mapping[Arm, Sequence[float]]
) -> Iterator[Pooled]:
    assert link.delay
    requested = link.delay.delay_s

    def question(arms: tuple[Arm, ...], *, between: bool, off: float, spread: float, slack: float, measured: float,
                 tries: int = 1) -> Pooled:  # fmt: skip
        allowance = DELAY_ALLOWANCE_S + slack
        count = sum(len(probes[arm]) for arm in arms)
        p_value = min(1.0, tries * normal_p_value(off - allowance, spread))
        return Pooled(condition, direction, "delay_s", arms, between, requested, measured, count, "probes", p_value,
                      spread, allowance)  # fmt: skip

    seen = {arms: delay_seen(link, [delay for arm in arms for delay in probes[arm]]) for arms in _each_and_all(probes)}
    for arms, one in seen.items():
        off = abs(one.measured_s - one.expected_s)
        spread = one.spread_s * math.sqrt(len(arms))
        yield question(arms, between=False, off=off, spread=spread, slack=one.slack_s, measured=one.measured_s)
    pairs = list(combinations([one for arms, one in seen.items() if len(arms) == 1], 2))
    if pairs:
        first, second = max(pairs, key=lambda pair: abs(pair[0].measured_s - pair[1].measured_s))
        off = abs(first.measured_s - second.measured_s)
        yield question(tuple(probes), between=True, off=off, spread=math.hypot(first.spread_s, second.spread_s),
                       slack=0.0, measured=off, tries=len(pairs))  # fmt: skip


def normal_p_value(off: float, spread: float) -> float:
    """How often chance is `off` or more to either side, with this standard deviation; 1 where nothing is off."""
    if off <= 0:
        return 1.0
    return 2 * float(ndtr(-off / spread)) if spread > 0 else 0.0


# Rate


def _rates(direction: Direction, results: Iterable[Result]) -> Iterator[float]:
    for result in results:
        for check in result.proof.checks:
            if (check.direction, check.quantity) == (direction, "rate_bps") and check.measured is not None:
                yield check.measured


def _of_rate(
    condition: Condition, direction: Direction, link: Link, rates: Mapping[Arm, Sequence[float]]
) -> Iterator[Pooled]:
    """By how many trials are beyond the allowance on one side: the sign test knows nothing of how trains scatter."""
    assert link.rate
    requested = float(link.rate.rate_bps)
    expected = full_frame_rate_bps(link)
    allowance = RATE_ALLOWANCE * expected
    for arms in _each_and_all(rates):
        values = [rate for arm in arms for rate in rates[arm]]
        n = len(values)
        beyond = max(sum(value > expected + allowance for value in values),
                     sum(value < expected - allowance for value in values))  # fmt: skip
        p_value = min(1.0, 2 * float(betainc(beyond, n - beyond + 1, 0.5))) if beyond else 1.0
        # of the median, where values scatter normally
        spread = statistics.stdev(values) * math.sqrt(math.pi / 2 / n) if n > 1 else math.inf
        yield Pooled(condition, direction, "rate_bps", arms, False, requested, statistics.median(values), n, "trials",
                     p_value, spread, allowance, 2 * 0.5**n)  # fmt: skip
