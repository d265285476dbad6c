"""Sums up netem's decisions over many trials, and computes how likely so many or so few are by chance. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import betainc, chdtrc

from headwind.model import Result
from headwind.proof.evidence import Evidence
from headwind.proof.passage import UNEXPLAINED_FRAMES, Events, Passage, passage_of
from impair.profile import Direction

RATIO_ALLOWANCE = 0.002  # of what was asked: nobody's comparison depends on so little
NEEDED = ("before", "after", "trains")  # of the evidence: reading all of it takes twice as long, for each trial
FEWEST_EXPECTED = 5.0  # events of each arm, below which the chi-square law does not hold (W. G. Cochran, 1954)


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


@dataclass(frozen=True, slots=True)
class Seen:
    """What the stored evidence of one trial tells, read once: by direction what netem did, and the probes' delays."""

    result: Result
    passages: Mapping[Direction, Passage]  # none of a direction whose netem was gone
    delays_s: Mapping[Direction, Sequence[float]]

    @classmethod
    def of(cls, result: Result) -> Seen:
        """Of a trial whose network was the condition's; nothing where no counters are on record."""
        if not result.proof.counters:
            return cls(result, {}, {})
        told = {key: value for key, value in result.proof.counters.items() if key in NEEDED}
        evidence, profile = Evidence.from_json({"configured": {}, **told}), result.trial.block.condition.profile
        routers = evidence.before.router, evidence.after.router
        whole = [direction for direction in Direction if all(router.netem(direction) for router in routers)]
        return cls(
            result,
            {direction: passage_of(direction, profile.link(direction), evidence) for direction in whole},
            {direction: array("f", trains.probe.delays_s) for direction, trains in evidence.trains.items()},
        )


def tally_of(direction: Direction, name: str, trials: Iterable[Seen]) -> Tally:
    """All that netem decided about one thing in one direction of these trials, each of which has its counters."""
    found: list[Events] = [getattr(seen.passages[direction], name) for seen in trials]
    share, doubt = (found[0].share, found[0].doubt) if found else (1.0, 0.0)
    return Tally(sum(one.count for one in found), sum(one.decisions for one in found), share, len(found), doubt,
                 sum(one.slack for one in found))  # fmt: skip


def total(tallies: Iterable[Tally]) -> Tally:
    """One or more tallies of the same thing together."""
    every = list(tallies)
    return replace(
        every[0], events=sum(tally.events for tally in every), decisions=sum(tally.decisions for tally in every),
        trials=sum(tally.trials for tally in every), slack=sum(tally.slack for tally in every),
    )  # fmt: skip


def variance(ratio: float) -> float:
    """Of a single decision."""
    return ratio * (1 - ratio)


def unmodelled(tally: Tally, ratio: float, inflation: float) -> float:
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
    """Whether the arms had the same ratio, whatever that is: chi-square of a table of two columns (Pearson, 1900)."""
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
