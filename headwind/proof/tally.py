"""Sums up netem's decisions over many trials, and computes the p-values of the sums. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import betainc, chdtrc

from headwind.model import Result
from headwind.proof.evidence import Evidence
from headwind.proof.netem_counts import UNEXPLAINED_FRAMES, Events, NetemCounts
from headwind.proof.spans import FIRST, counts_by_network
from impair.profile import Direction

RATIO_ALLOWANCE = 0.002  # of the request: too small to matter to any comparison
NEEDED = ("before", "after", "trains")  # of the evidence: reading all of it takes twice as long, for each trial
FEWEST_EXPECTED = 5.0  # events of each arm, below which the chi-square law does not hold (W. G. Cochran, 1954)


@dataclass(frozen=True, slots=True)
class Tally:
    """Decisions of netem over several trials."""

    events: int
    decisions: int
    share: float  # of the decisions that are visible
    trials: int
    doubt: float = 0.0  # relative uncertainty of the share
    slack: int = 0  # packets that may be in only one of events and decisions

    @property
    def effective(self) -> float:
        """Number of decisions that are visible."""
        return self.decisions * self.share


@dataclass(frozen=True, slots=True)
class Seen:
    """Data from the stored evidence of one trial, read once: by direction netem's counts, and the probes' delays.

    The counts are those of each network of a profile that changes, by its label (headwind/proof/spans.py).
    """

    result: Result
    passages: Mapping[Direction, Mapping[str, NetemCounts]]  # without directions whose netem was gone
    delays_s: Mapping[Direction, Sequence[float]]

    @classmethod
    def of(cls, result: Result) -> Seen:
        """Read a trial whose network was the condition's; empty if no counters are on record."""
        if not result.proof.counters:
            return cls(result, {}, {})
        profile, counters = result.trial.block.condition.profile, dict(result.proof.counters)
        if profile.is_steady:
            counters = {"configured": {}} | {key: value for key, value in counters.items() if key in NEEDED}
        evidence = Evidence.from_json(counters)
        routers = evidence.before.router, evidence.after.router
        whole = [direction for direction in Direction if all(router.netem(direction) for router in routers)]
        return cls(
            result,
            {direction: counts_by_network(profile, direction, evidence) for direction in whole},
            {direction: array("f", trains.probe.delays_s) for direction, trains in evidence.trains.items()},
        )


def tally_of(direction: Direction, name: str, trials: Iterable[Seen], network: str = FIRST) -> Tally:
    """Sum of one kind of netem's decisions in one direction of these trials, each of which has its counters.

    `network`: its label; trials that it did not come to are left out.
    """
    counts = [seen.passages[direction][network] for seen in trials if network in seen.passages[direction]]
    found: list[Events] = [getattr(each, name) for each in counts]
    share, doubt = (found[0].share, found[0].doubt) if found else (1.0, 0.0)
    return Tally(sum(one.count for one in found), sum(one.decisions for one in found), share, len(found), doubt,
                 sum(one.slack for one in found))  # fmt: skip


def total(tallies: Iterable[Tally]) -> Tally:
    """Sum of one or more tallies of the same kind."""
    every = list(tallies)
    return replace(
        every[0], events=sum(tally.events for tally in every), decisions=sum(tally.decisions for tally in every),
        trials=sum(tally.trials for tally in every), slack=sum(tally.slack for tally in every),
    )  # fmt: skip


def variance(ratio: float) -> float:
    """Variance of a single decision."""
    return ratio * (1 - ratio)


def unmodelled(tally: Tally, ratio: float, inflation: float) -> float:
    """Events outside the model: strays, the uncertainty of kernels without counters, young chains.

    A Gilbert-Elliott chain that begins good has lost ratio/(1 - rho) packets less than a stationary one; with the
    inflation (1 + rho)/(1 - rho) that is ratio * (inflation + 1)/2 in each trial.
    """
    beginning = ratio * (inflation + 1) / 2 * tally.trials if inflation > 1 else 0.0
    strays = ratio * UNEXPLAINED_FRAMES * tally.trials + tally.slack
    return (RATIO_ALLOWANCE + tally.doubt) * ratio * tally.effective + beginning + strays


def ratio_p_value(tally: Tally, ratio: float, inflation: float, arms: int) -> float:
    """Two-sided p-value of the number of events, if decisions are independent: the binomial tails, twice.

    Bursts, and arms that share seeds, make n decisions worth n/(inflation * arms): the tails of the binomial law hold
    for such fractions as well, as the incomplete beta function (Abramowitz and Stegun, 26.5.24).
    """
    share, n = ratio * tally.share, tally.decisions
    expected, slack = n * share, unmodelled(tally, ratio, inflation)
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


def same_ratio_p_value(tallies: Sequence[Tally], inflation: float) -> float:
    """P-value of arms having the same ratio, whatever it is: chi-square of a table of two columns (Pearson, 1900)."""
    whole = total(tallies)
    common = whole.events / whole.decisions
    if min(tally.decisions * variance(common) for tally in tallies) < FEWEST_EXPECTED * inflation:
        return 1.0
    distances = (
        max(0.0, abs(tally.events - tally.decisions * common) - unmodelled(tally, common / whole.share, inflation)) ** 2
        / (tally.decisions * variance(common) * inflation)
        for tally in tallies
    )
    return float(chdtrc(len(tallies) - 1, math.fsum(distances)))
