"""Derives a rule by which a server decides whether to offer HTTP/3, and judges it by regret. Pure.

A server that decides sees of a network only what TCP knows at the first answer: the smoothed round trip and its
variation. A rule compares one of them with a threshold. Its *regret* in a condition is how much slower the protocol
that it chooses is than the best one of that condition. It is cross-validated: on each network the rule is the one
derived from all others, so a rule gains nothing by fitting noise or the networks that it was derived from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwind.verdicts.stats import Floats

DRAWS = 1000  # of the bootstrap
CONFIDENCE = 0.95
FEATURES = ("rtt_s", "rttvar_s")


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network: how it looks to the server at the first answer, and the measurements of each of its conditions.

    Measurements are ln of the metric, one row for each block, one column for each arm; lower is better.
    """

    name: str
    features: Mapping[str, float]  # by name, as in FEATURES
    conditions: tuple[Floats, ...]


@dataclass(frozen=True, slots=True)
class OfferRule:
    """Offer `quic` if `feature` is at least `threshold` (or, not `above`, below it); else `tcp` is used.

    Without a feature it is a constant: always `tcp`, which then is any arm. Arms are columns of the measurements.
    """

    tcp: int
    quic: int = -1
    feature: str = ""
    threshold: float = 0.0
    above: bool = True

    @property
    def is_constant(self) -> bool:
        """Whether it chooses the same arm on all networks."""
        return not self.feature

    def arm(self, features: Mapping[str, float]) -> int:
        """The arm that it chooses on a network."""
        offers = not self.is_constant and (features[self.feature] >= self.threshold) == self.above
        return self.quic if offers else self.tcp


class Estimate(NamedTuple):
    """A mean of ln ratios with its interval; exp() of each gives ratios."""

    mean: float
    low: float
    high: float


def rules(networks: Sequence[Network], tcp: Sequence[int], quic: Sequence[int]) -> Iterator[OfferRule]:
    """The constants, then all rules that treat some of these networks differently."""
    yield from (OfferRule(arm) for arm in (*tcp, *quic))
    for feature in FEATURES:
        values = sorted({network.features[feature] for network in networks})
        for threshold in (between(*each) for each in pairwise(values)):
            for base in tcp:
                for offered in quic:
                    yield from (OfferRule(base, offered, feature, threshold, above) for above in (True, False))


def between(low: float, high: float) -> float:
    """A threshold midway between two values by ratio, rounded to two digits if that still separates them."""
    middle = float(np.sqrt(low * high)) if low > 0 else high / 2
    rounded = float(f"{middle:.1e}")
    return rounded if low < rounded <= high else middle


@dataclass(frozen=True)
class Advice:
    """The best rule for some networks; and what it, and each arm alone, costs on networks that it has not seen.

    `tcp` and `quic` are the columns of the arms between which it chooses; other columns are only judged. Networks count
    alike, whatever the number of their conditions. Raises ValueError for fewer than two networks.
    """

    networks: tuple[Network, ...]
    tcp: tuple[int, ...]
    quic: tuple[int, ...]
    seed: int = 1

    def __post_init__(self) -> None:
        if len(self.networks) < 2:
            raise ValueError("a rule is judged on networks that it was not derived from: two or more are needed")

    @cached_property
    def rule(self) -> OfferRule:
        """The rule with the least mean regret on all networks; of equal ones a constant, else the first."""
        return self._best(self.networks)

    @cached_property
    def held_out(self) -> tuple[OfferRule, ...]:
        """For each network the rule that the others give."""
        return tuple(self._best([each for each in self.networks if each is not left]) for left in self.networks)

    def _best(self, shown: Sequence[Network]) -> OfferRule:
        candidates = list(rules(shown, self.tcp, self.quic))
        weights = np.array([[float(network in shown) for network in self.networks]])
        return candidates[int(self._cheapest(candidates, self.regrets[None], weights)[0])]

    @cached_property
    def regrets(self) -> Floats:
        """ln of how much slower each arm is than the best of each network: (networks, arms)."""
        medians = [[np.median(each, axis=0)[None] for each in network.conditions] for network in self.networks]
        found: Floats = self._regrets(medians)[0]
        return found

    def _regrets(self, medians: Sequence[Sequence[Floats]]) -> Floats:
        """From medians (draws, arms) of each condition of each network: (draws, networks, arms)."""
        arms = [*self.tcp, *self.quic]
        of_networks = [
            np.mean([each - each[:, arms].min(axis=1, keepdims=True) for each in conditions], axis=0)
            for conditions in medians
        ]
        return np.stack(of_networks, axis=1)

    def _cheapest(self, candidates: Sequence[OfferRule], regrets: Floats, weights: Floats) -> NDArray[np.int_]:
        """The number of the candidate with the least total regret, for each draw with its weights of the networks."""
        chosen = np.array([[rule.arm(network.features) for network in self.networks] for rule in candidates])
        picks = np.eye(regrets.shape[2])[chosen].reshape(len(candidates), -1)  # one-hot: (candidates, networks * arms)
        totals = (regrets * weights[:, :, None]).reshape(len(regrets), -1) @ picks.T
        return np.asarray(np.argmin(totals.round(12), axis=1))  # rounded: sums of equal terms are equal

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats, Floats]:
        """Bootstrap: regrets (draws, networks, arms), those of the cross-validated rule, and the networks' weights.

        The first draw is the measurement. Each other one draws the blocks of every condition again, derives the rules
        from them, and draws the networks on which these are judged.
        """
        random, count = np.random.default_rng(self.seed), len(self.networks)
        medians = [[_redrawn_medians(each, random) for each in network.conditions] for network in self.networks]
        regrets = self._regrets(medians)
        weights = random.multinomial(count, np.full(count, 1 / count), DRAWS).astype(np.float64)
        weights[0] = 1
        ruled = np.empty(regrets.shape[:2])
        for number, left in enumerate(self.networks):
            candidates = list(rules([each for each in self.networks if each is not left], self.tcp, self.quic))
            others = np.ones_like(weights)
            others[:, number] = 0
            arms = np.array([rule.arm(left.features) for rule in candidates])
            best = arms[self._cheapest(candidates, regrets, others)]
            ruled[:, number] = np.take_along_axis(regrets[:, number], best[:, None], axis=1)[:, 0]
        return regrets, ruled, weights

    def mean_regret(self, arm: int | None = None) -> Estimate:
        """Mean regret over the networks of always this arm, or (None) of the cross-validated rule."""
        regrets, ruled, weights = self._drawn
        return _estimate(ruled if arm is None else regrets[:, :, arm], weights)

    def against(self, arm: int) -> Estimate:
        """How much slower the cross-validated rule is than always this arm; below 0 the rule is ahead."""
        regrets, ruled, weights = self._drawn
        return _estimate(ruled - regrets[:, :, arm], weights)

    def difference(self, arm: int, base: int) -> Estimate:
        """How much slower always this arm is than always `base`; below 0 it is ahead."""
        regrets, _, weights = self._drawn
        return _estimate(regrets[:, :, arm] - regrets[:, :, base], weights)

    @property
    def beats_all(self) -> bool:
        """Whether it is no constant, and its cross-validated regret below that of every constant beyond chance."""
        return not self.rule.is_constant and all(self.against(arm).high < 0 for arm in (*self.tcp, *self.quic))


def _redrawn_medians(costs: Floats, random: np.random.Generator) -> Floats:
    """Medians of each arm in draws of whole blocks: (draws, arms); the first draw is the measurement."""
    rows = random.integers(0, len(costs), (DRAWS, len(costs)))
    rows[0] = np.arange(len(costs))
    return np.median(costs[rows], axis=1)


def _estimate(values: Floats, weights: Floats) -> Estimate:
    """The mean over networks of the first draw, and the middle CONFIDENCE of those of all draws."""
    means = np.average(values, axis=1, weights=weights)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(means[0]), float(low), float(high))
