"""`lab.py advise`: from measured runs to a rule by which nginx offers HTTP/3, as texts, tables and a snippet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np

from headwind.arm import PLAIN, Arm, Role
from headwind.errors import UsageError
from headwind.format import arm_name, counted, enumerated, listed, measured, setting, significant
from headwind.model import Condition, Result
from headwind.observed import Observed, observed
from headwind.proof.trial_checks import SPREAD_PER_JITTER
from headwind.run.data import RunData
from headwind.verdicts.advice import Advice, Estimate, Network, OfferRule
from headwind.verdicts.findings import Rows
from headwind.verdicts.stats import Floats
from impair.profile import Direction, Profile
from servers.offer import OfferIf

FEWEST_BLOCKS = 3  # of a condition
FEWEST_NETWORKS = 4  # that the server can distinguish
# The kernel's variation of the round trip (tcp_rtt_estimator in net/ipv4/tcp_input.c, as RFC 6298) begins with half of
# the first sample; each further one moves it a quarter of the way to that sample's deviation. At the first answer there
# are three samples: the handshakes of TCP and TLS, and the request.
OF_RTT, OF_DEVIATION = (3 / 4) ** 2 / 2, 1 - (3 / 4) ** 2
MEAN_PER_STANDARD = math.sqrt(2 / math.pi)  # deviation of a normal distribution
WORDS = {"rtt_s": "round trip", "rttvar_s": "variation of the round trip"}
QUANTITIES = {"rtt_s": "rtt", "rttvar_s": "rttvar"}
OFFER = "'h3=\":$server_port\"; ma=86400'"  # for a day, the default of RFC 7838
VARIABLE = "headwind_offer"


@dataclass(frozen=True)
class Advised:
    """The advice from some runs, with the arms of its columns, and notes on what was left out."""

    advice: Advice
    arms: tuple[Arm, ...]
    runs: tuple[str, ...]  # their ids
    blocks: int  # that were used
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[int, ...]:
        """The columns of the arms between which a rule chooses."""
        return self.advice.tcp + self.advice.quic

    @cached_property
    def condition(self) -> OfferIf | None:
        """The condition of the rule as nginx decides it; None if it is a constant."""
        rule = self.advice.rule
        if rule.is_constant:
            return None
        return OfferIf(QUANTITIES[rule.feature], max(1, round(rule.threshold * 1e6)), rule.above)


def advised(runs: Sequence[RunData]) -> Advised:
    """Derive a rule from runs. Raises UsageError if they lack protocols, blocks, or networks that look different."""
    arms = _common_arms(runs)
    used, notes, blocks = dict[Profile, list[tuple[str, dict[str, float], Floats]]](), list[str](), 0
    for run in runs:
        for condition in run.matrix.conditions:
            costs, note = _costs(run, condition, arms)
            notes += [note] if note else []
            if costs is not None:
                network = replace(condition.profile, name="network")
                name = condition.profile.name
                used.setdefault(network, []).append((name, features(run, condition), costs))
                blocks += len(costs)
    networks = tuple(_network(found) for found in used.values())
    _check_networks(networks, notes)
    tcp, quic = ([number for number, arm in enumerate(arms) if arm in PLAIN and _is_quic(arm) is is_quic]
                 for is_quic in (False, True))  # fmt: skip
    advice = Advice(_distinct(networks), tuple(tcp), tuple(quic))
    return Advised(advice, arms, tuple(run.id for run in runs), blocks, tuple(notes))


def _is_quic(arm: Arm) -> bool:
    return arm.protocol.transport == "quic"


def _common_arms(runs: Sequence[RunData]) -> tuple[Arm, ...]:
    """The arms of all runs. Raises UsageError without plain ones over both TCP and QUIC."""
    common = [arm for arm in runs[0].matrix.arms if all(arm in run.matrix.arms for run in runs)]
    plain = [arm for arm in common if arm in PLAIN]
    if {_is_quic(arm) for arm in plain} != {False, True}:
        names = ", ".join(arm.name for arm in plain) or "none"
        where = "this run has" if len(runs) == 1 else "these runs have in common"
        raise UsageError(
            f"advise: a rule chooses between HTTP/3 and a protocol over TCP, and of `protocols` {where} {names}; "
            "give runs of matrices with `protocols: [h1, h2, h3]`"
        )
    return tuple(common)


def _costs(run: RunData, condition: Condition, arms: Sequence[Arm]) -> tuple[Floats | None, str]:
    """ln of the primary metric, by block and arm, and a note; None if the condition cannot be used, which is noted.

    A trial that did not finish counts as the timeout, at least.
    """
    metric, rows = condition.workload.primary(), run.rows.get(condition.id, {})
    found, unfinished = list[list[float]](), 0
    for row in rows.values():
        values = [observed(row.get(arm), metric) for arm in arms]
        if all(values):
            found.append([_seconds(value, run.matrix.timeout_s) for value in values if value])
            unfinished += sum(not value.is_finished for value in values if value)
    name = f"{run.id} {condition.id}"
    if len(found) < FEWEST_BLOCKS:
        blocks = counted(len(found), "complete block")
        return None, f"{name} was left out: {blocks}, and at least {FEWEST_BLOCKS} are needed"
    if doubts := run.network_doubts.get(condition.id):
        return None, f"{name} was left out: its network was not as requested: {doubts[0]}"
    note = f"{name}: {counted(unfinished, 'trial')} of {len(found) * len(arms)} did not finish, and "
    return np.log(np.array(found)), f"{note}count as the longest time: true regrets are larger" if unfinished else ""


def _seconds(value: Observed, timeout_s: float) -> float:
    return max(value.known if math.isfinite(value.known) else timeout_s, 1e-6)


def features(run: RunData, condition: Condition) -> dict[str, float]:
    """A condition's network as nginx sees it at its first answer: in seconds, by name.

    The round trip is that of the probes, before anything else was sent, and its variation follows from it and the
    profile's jitter.
    """
    trials = _trials(run.rows.get(condition.id, {}))
    rtt_s, variance = 0.0, 0.0
    for direction in Direction:
        delay = condition.profile.link(direction).delay
        seen = [check.measured for trial in trials for check in trial.proof.checks
                if (check.direction, check.quantity, check.span) == (direction, "delay_s", "")]  # fmt: skip
        probed = [value for value in seen if value is not None]
        rtt_s += max(0.0, median(probed)) if probed else delay.delay_s if delay else 0.0
        variance += (delay.jitter_s * SPREAD_PER_JITTER[delay.distribution]) ** 2 if delay else 0.0
    return {"rtt_s": rtt_s, "rttvar_s": OF_RTT * rtt_s + OF_DEVIATION * MEAN_PER_STANDARD * math.sqrt(variance)}


def _trials(rows: Rows) -> list[Result]:
    return [result for row in rows.values() for arm, result in row.items() if arm.role is not Role.SLOWER]


def _network(found: Sequence[tuple[str, Mapping[str, float], Floats]]) -> Network:
    """A network of one or more conditions."""
    looks = [features for _, features, _ in found]
    middle = {name: median(each[name] for each in looks) for name in WORDS}
    return Network(found[0][0], middle, tuple(costs for *_, costs in found))


def _distinct(networks: Iterable[Network]) -> tuple[Network, ...]:
    """The networks, with a number behind a name that an earlier one has."""
    counts, named = dict[str, int](), []
    for network in networks:
        count = counts[network.name] = counts.get(network.name, 0) + 1
        named.append(replace(network, name=f"{network.name} ({count})") if count > 1 else network)
    return tuple(named)


def _check_networks(networks: Sequence[Network], notes: Sequence[str]) -> None:
    if len(networks) < FEWEST_NETWORKS:
        names = f" ({listed([network.name for network in networks])})" if networks else ""
        reason = (
            f"advise: {counted(len(networks), 'network')}{names} with enough blocks, and a rule needs at least "
            f"{FEWEST_NETWORKS}, because it is judged on networks that it was not derived from; run a matrix with more "
            "`profiles`, or give more runs"
        )
        raise UsageError("\n".join([reason, *notes]))


def ratio_text(estimate: Estimate) -> str:
    """A mean regret or difference as a ratio: `1.07x [1.02, 1.15]`."""
    mean, low, high = (significant(math.exp(value)) for value in estimate)
    return f"{mean}x [{low}, {high}]"


NETWORK_COLUMNS = ("network", "round trip", "variation")
CHOICE_COLUMNS = ("choice", "mean regret", "worst network")


def network_table(found: Advised) -> Iterator[tuple[str, ...]]:
    """The heading, then a row for each network: how it looks, the regret of each arm, and the rule from the others."""
    yield *NETWORK_COLUMNS, *(arm.name for arm in found.arms), "rule of the others", "its regret"
    advice = found.advice
    for network, rule, regrets in zip(advice.networks, advice.held_out, advice.regrets, strict=True):
        arm = rule.arm(network.features)
        looks = (measured(name, network.features[name]) for name in WORDS)
        yield network.name, *looks, *map(_regret_text, regrets), found.arms[arm].name, _regret_text(regrets[arm])


def _regret_text(regret: float) -> str:
    return f"{math.exp(regret):.2f}x"


def choice_table(found: Advised) -> Iterator[tuple[str, ...]]:
    """The heading, then the mean regret of each arm alone and of the cross-validated rule, and its worst network."""
    advice = found.advice
    yield *CHOICE_COLUMNS, "the rule against it"
    for number, row in enumerate(arm_rows(found)):
        yield *row, ratio_text(advice.against(number))
    costs = [each[rule.arm(network.features)]
             for network, rule, each in zip(advice.networks, advice.held_out, advice.regrets, strict=True)]  # fmt: skip
    worst = int(np.argmax(costs))
    chosen = advice.held_out[worst].arm(advice.networks[worst].features)
    name = "the rule, on networks that it has not seen"
    yield name, ratio_text(advice.mean_regret()), _worst(found, worst, chosen), ""


def arm_rows(found: Advised) -> Iterator[tuple[str, str, str]]:
    """For each arm: its name, its mean regret, and its worst network."""
    for number, arm in enumerate(found.arms):
        worst = int(np.argmax(found.advice.regrets[:, number]))
        name = f"always {arm.name}" if number in found.chosen else arm.name
        yield name, ratio_text(found.advice.mean_regret(number)), _worst(found, worst, number)


def decided_table(found: Advised, decided: Arm) -> Iterator[tuple[str, ...]]:
    """The heading, then the regret of each arm, and that of the arm that follows a deciding server against it."""
    yield *CHOICE_COLUMNS, f"{decided.name} against it"
    number = found.arms.index(decided)
    for base, row in enumerate(arm_rows(found)):
        yield *row, "" if base == number else ratio_text(found.advice.difference(number, base))


def _worst(found: Advised, network: int, arm: int) -> str:
    return f"{_regret_text(found.advice.regrets[network, arm])} {found.advice.networks[network].name}"


def rule_text(found: Advised, rule: OfferRule) -> str:
    """A rule in words: `HTTP/3 if the round trip is at least 80 ms, else HTTP/2`, or `always HTTP/2`."""
    if rule.is_constant:
        return f"always {arm_name(found.arms[rule.tcp])}"
    side = "at least" if rule.above else "below"
    threshold = setting(rule.feature, rule.threshold)
    quic, tcp = arm_name(found.arms[rule.quic]), arm_name(found.arms[rule.tcp])
    return f"{quic} if the {WORDS[rule.feature]} is {side} {threshold}, else {tcp}"


def answer(found: Advised) -> Iterator[str]:
    """The advice in sentences: the rule and what it costs, or that no rule beats the best protocol alone."""
    advice = found.advice
    base = f"{counted(len(advice.networks), 'network')}, {counted(found.blocks, 'block')}"
    best = min(found.chosen, key=lambda arm: advice.mean_regret(arm).mean)
    always, name = advice.mean_regret(best), f"always {arm_name(found.arms[best])}"
    if advice.beats_all:
        yield f"Advice: {rule_text(found, advice.rule)} ({base})."
        yield (
            f"On networks that it was not derived from, its mean regret is {ratio_text(advice.mean_regret())}; that of "
            f"{name} is {ratio_text(always)}."
        )
        return
    yield f"No rule beats {name} with what nginx can see ({base}): its mean regret is {ratio_text(always)}."
    if advice.rule.is_constant:
        yield "No threshold of the round trip or its variation separates networks by their best protocol."
        return
    yield (
        f"The best rule for these networks would be {rule_text(found, advice.rule)}; but on networks that it was not "
        f"derived from, its mean regret is {ratio_text(advice.mean_regret())}, and against {name} "
        f"{ratio_text(advice.against(best))}, which is not below 1 beyond chance."
    )


def snippet(found: Advised) -> str:
    """The rule as lines for the `http` block of nginx; empty if no rule is advised."""
    if not found.advice.beats_all or not found.condition:
        return ""
    rule = found.advice.rule
    base = f"mean regret {ratio_text(found.advice.mean_regret())} on networks that it was not derived from"
    lines = (
        f"Offers {rule_text(found, rule)}.",
        f"Derived by `lab.py advise` from {enumerated(found.runs)}: {base}.",
        "For the http block. Servers also need `listen 443 quic reuseport;`. It has no effect in servers and locations",
        "that have an `add_header`: repeat the last line there. Answers over QUIC have no offer, so a browser",
        f"decides again after `ma` seconds. Over TCP the servers must prefer {arm_name(found.arms[rule.tcp])}.",
    )
    head = "".join(f"# {line}\n" for line in lines)
    return f"{head}{found.condition.nginx_map(VARIABLE, OFFER)}add_header Alt-Svc ${VARIABLE};\n"
