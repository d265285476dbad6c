"""A rule for offering HTTP/3: found if there is one, judged on networks that it has not seen, never invented."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from headwind.verdicts.advice import Advice, Network, OfferRule, between, rules
from tests.sizes import size

H1, H2, H3 = range(3)
RTTS_S = (0.004, 0.01, 0.02, 0.03, 0.06, 0.1, 0.16, 0.3)


def network(rtt_s: float, logs: Sequence[float], random: np.random.Generator, noise: float = 0.02) -> Network:
    """A network on which arms take exp(logs) s, give or take, in 9 blocks."""
    costs = np.array(logs) + random.normal(0, noise, (9, len(logs)))
    return Network(f"{rtt_s * 1000:g} ms", {"rtt_s": rtt_s, "rttvar_s": 0.28 * rtt_s}, (costs,))


def advice(of: Sequence[Sequence[float]], rtts_s: Sequence[float] = RTTS_S, seed: int = 1) -> Advice:
    """Advice from networks of these round trips, on which arms take exp(of) s."""
    random = np.random.default_rng(seed)
    return Advice(tuple(network(*each, random) for each in zip(rtts_s, of, strict=True)), (H1, H2), (H3,))


def test_a_rule_is_found_where_a_round_trip_separates_the_protocols() -> None:
    found = advice([(0.3, 0.0, 0.2 if rtt_s < 0.05 else -0.4) for rtt_s in RTTS_S])
    assert found.rule.arm({"rtt_s": 0.02, "rttvar_s": 0.006}) == H2
    assert found.rule.arm({"rtt_s": 0.08, "rttvar_s": 0.022}) == H3
    assert found.beats_all
    assert found.mean_regret().mean == pytest.approx(0.0, abs=0.02)
    assert found.mean_regret(H2).mean == pytest.approx(0.2, abs=0.02)
    assert found.mean_regret(H3).mean == pytest.approx(0.1, abs=0.02)
    assert found.against(H3).mean == pytest.approx(found.mean_regret().mean - found.mean_regret(H3).mean)


def test_the_opposite_rule_is_found_as_well() -> None:
    found = advice([(0.3, 0.0, -0.2 if rtt_s < 0.05 else 0.4) for rtt_s in RTTS_S])
    assert (found.rule.above, found.rule.tcp, found.rule.quic) == (False, H2, H3)
    assert found.beats_all


def test_a_network_is_judged_by_the_rule_of_the_others() -> None:
    """One network that contradicts its neighbours is what the rule gets wrong: fitted to all, it would get it right."""
    logs = [(0.5, 0.0, 0.3)] * 4 + [(0.5, 0.0, -0.3)] * 3 + [(0.5, 0.0, 0.9)]
    found = advice(logs)
    assert found.held_out[-1].arm(found.networks[-1].features) == H3
    assert found.mean_regret().mean >= 0.9 / 8 - 0.02
    assert not found.beats_all


def test_a_protocol_that_is_best_everywhere_needs_no_rule() -> None:
    found = advice([(0.5, 0.2, 0.0)] * len(RTTS_S))
    assert found.rule == OfferRule(H3)
    assert (found.beats_all, found.mean_regret().mean) == (False, found.mean_regret(H3).mean)


def test_networks_that_look_the_same_have_no_rule() -> None:
    logs = [(0.5, 0.0, 0.4), (0.5, 0.0, -0.4)] * 4
    found = advice(logs, [0.05] * 8)
    assert [rule.is_constant for rule in rules(found.networks, (H1, H2), (H3,))] == [True] * 3
    assert not found.beats_all


def test_chance_rarely_passes_for_a_rule() -> None:
    """Which protocol is best depends on what the server cannot see: at most one run in twenty may find a rule."""
    random, runs = np.random.default_rng(7), size(30, 300)
    found = [advice(random.normal(0, 0.2, (8, 3)).tolist(), seed=seed).beats_all for seed in range(runs)]
    assert sum(found) <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)
    assert sum(found) <= runs / 10


def test_arms_that_no_rule_chooses_are_judged_and_set_no_standard() -> None:
    random = np.random.default_rng(3)
    networks = tuple(network(rtt_s, (0.2, 0.1, 0.0, -0.5), random, 0.0) for rtt_s in RTTS_S)
    found = Advice(networks, (H1, H2), (H3,))
    assert found.mean_regret(3).mean == pytest.approx(-0.5)
    assert found.mean_regret(H3).mean == 0


def test_conditions_of_one_network_count_as_one() -> None:
    slow, quick = (np.tile([0.0, 0.0, cost], (5, 1)) for cost in (0.4, 0.2))
    look = {"rtt_s": 0.01, "rttvar_s": 0.003}
    two = Advice((Network("one", look, (slow, quick)), Network("other", look, (slow,))), (H1, H2), (H3,))
    assert two.regrets[:, H3].tolist() == pytest.approx([0.3, 0.4])
    with pytest.raises(ValueError, match="two or more"):
        Advice(two.networks[:1], (H1, H2), (H3,))


@pytest.mark.parametrize(
    ("low", "high", "middle"), [(0.06, 0.1, 0.077), (0.0, 0.01, 0.005), (0.1001, 0.1002, pytest.approx(0.10015))]
)
def test_a_threshold_separates_two_networks(low: float, high: float, middle: float) -> None:
    assert between(low, high) == middle
    assert low < between(low, high) <= high
