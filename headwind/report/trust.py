"""How far the figures of a run can be relied on: what that means for a reader, and the reasons. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scipy.special import bdtrc

from headwind.format import arm_name, counted, setting
from headwind.metric import STOLEN
from headwind.model import DATA_OUTCOMES, Outcome
from headwind.proof.attempts import is_unproven
from headwind.proof.processors import MOST_STOLEN
from headwind.report.doubts import doubts
from headwind.report.networks import networks_of, placed
from headwind.report.summary import by_arm
from headwind.report.verdicts import dependence_text
from headwind.report.words import named
from headwind.run.data import RunData, is_data, was_stopped
from headwind.verdicts.assumptions import ALARM_PROBABILITY, Concern
from headwind.verdicts.findings import SelfCheckFinding

GOOD, BAD, UNKNOWN, WARNING = "\N{CHECK MARK}", "\N{BALLOT X}", "?", "\N{WARNING SIGN}"
OTHER_LABS = "other_labs"  # in a run's environment
SHARED = (
    "they share its processors, so times are longer and vary more, and verdicts need more blocks; a verdict compares "
    "only times of the same block, which that concerns alike"
)
TOLD_ELSEWHERE = (Concern.NETWORK, Concern.FEW_BLOCKS, Concern.UNFINISHED, Concern.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Trust:
    """One thing that says how far the figures can be believed."""

    mark: str  # for those who see no colour; none for what is as it should be told, and no reason to doubt
    text: str

    def __str__(self) -> str:
        return f"{self.mark} {self.text}".strip()

    @property
    def tone(self) -> str:
        """`good`, `bad`, or neither."""
        return {GOOD: "good", BAD: "bad"}.get(self.mark, "")


def trust(data: RunData) -> list[Trust]:
    """Checks of the network, of the lab by itself with its noise, and trials that did not go well; the worst first."""
    found = [*_network_checks(data), *_self_checks(data), *_not_ok(data), *_unequal(data), *_machine(data),
             *_warnings(data)]  # fmt: skip
    return sorted(found, key=lambda item: (BAD, WARNING, UNKNOWN, "", GOOD).index(item.mark))


def trust_line(data: RunData) -> str:
    """What the checks mean for a reader, in a few sentences: whether to rely on it, and which leads are noise."""
    if bad := [item.text for item in trust(data) if item.mark == BAD]:
        return f"Do not rely on this run: {'; '.join(bad)}."
    checked = any(is_data(result) and result.proof.checks for result in data.latest)
    told = ["The network of every counted trial was verified"] if checked else []
    told += [_noise(data)]
    told += [item.text for item in (*_unequal(data), *_machine(data), *_dependence(data))]
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in told if text)


def noise_floors(checks: Iterable[SelfCheckFinding]) -> dict[str, float]:
    """By condition id: how far from 1 a protocol was seen from itself, where that is known."""
    found: dict[str, float] = {}
    for check in checks:
        floor = check.noise_floor_ratio
        if floor is not None and math.isfinite(floor):
            found.setdefault(check.finding.condition.id, floor)
    return found


def _noise(data: RunData) -> str:
    """`leads may be noise under 100 ms delay (below 1.09x)`: what self-checks found, network by network."""
    if not data.judgement.checks:
        return "no self-check ran, so the noise is unknown"
    floors, networks = noise_floors(data.judgement.checks), networks_of(data.matrix)
    margin = data.judgement.rule.margin_ratio
    noisy = {networks[name]: f"below {1 + floor:.2f}x" for name, floor in floors.items() if floor > margin}
    if not floors:
        return "self-checks have too few blocks to measure the noise"
    if not noisy:
        return f"noise is below {setting('margin_ratio', margin)} where it was checked"
    unchecked = len(networks) - len(floors)
    rest = f"; {counted(unchecked, data.matrix.place)} had no such check" if unchecked else ""
    return f"leads may be noise {placed(noisy)}{rest}"


def _network_checks(data: RunData) -> Iterator[Trust]:
    checks = [check for result in data.latest if is_data(result) for check in result.proof.checks]
    failed = sum(not check.passed for check in checks)
    if failed:
        yield Trust(BAD, f"{failed:,} of {counted(len(checks), 'network check')} failed")
    elif checks:
        yield Trust(GOOD, f"{counted(len(checks), 'network check')} passed")
    if data.network_doubts:
        names = [data.matrix.name_of(each) for each in data.matrix.conditions if each.id in data.network_doubts]
        yield Trust(BAD, f"not the requested network in {named(names)}")


def _self_checks(data: RunData) -> Iterator[Trust]:
    checks, told = data.judgement.checks, set[str]()
    for passed, mark, words in ((False, BAD, "FAILED"), (None, UNKNOWN, "open"), (True, GOOD, "passed")):
        mine = dict.fromkeys(check.finding.condition for check in checks if check.passed is passed)
        names = [data.matrix.name_of(condition) for condition in mine if condition.id not in told]
        told |= {condition.id for condition in mine}
        if names:
            yield Trust(mark, f"self-checks {words} in {named(names)}")


TOLD_OF_PROTOCOLS = {
    Outcome.TIMEOUT: "stopped at the timeout",
    Outcome.FAILED: "failed",
}  # of a protocol, not of the lab


def _not_ok(data: RunData) -> Iterator[Trust]:
    if stopped := sum(map(was_stopped, data.latest)):
        yield Trust("", f"{counted(stopped, 'trial')} stopped with the run, in no figure")
    for outcome in Outcome:
        arms = [result.trial.arm for result in data.latest if result.outcome is outcome and not was_stopped(result)]
        if not arms or outcome is Outcome.OK:
            continue
        if outcome in TOLD_OF_PROTOCOLS:
            counts = {**dict.fromkeys(data.matrix.arms, 0), **Counter(arms)}
            told = ", ".join(f"{arm_name(arm)} {count:,}" for arm, count in counts.items())
            yield Trust("", f"{TOLD_OF_PROTOCOLS[outcome]}: {told}")
        else:
            names = named([arm_name(arm) for arm in dict.fromkeys(arms)])
            where = "" if outcome in DATA_OUTCOMES else ", in no figure"
            yield Trust(WARNING, f"{counted(len(arms), 'trial')} {outcome.value}{where} ({names})")


def _unequal(data: RunData) -> Iterator[Trust]:
    """Whether one arm's attempts were left unproven far more often than those of the others.

    By chance one of the arms has so many of all unproven attempts in ALARM_PROBABILITY of runs at most: binomial, with
    its share of the attempts, times the number of arms (Bonferroni).
    """
    unproven = [result for result in data.results if is_unproven(result)]
    lost, ran = (Counter(each.trial.arm for each in results) for results in (unproven, data.results))
    for arm, count in lost.items():
        chance = float(bdtrc(count - 1, len(unproven), ran[arm] / len(data.results)))
        if len(ran) * chance < ALARM_PROBABILITY:
            told = by_arm(data.results, unproven)
            yield Trust(WARNING, f"the network was not proven far more often with {arm_name(arm)}: {told} attempts")


def _machine(data: RunData) -> Iterator[Trust]:
    """Whether the lab had the machine to itself, and the machine its processors."""
    if others := data.environment.get(OTHER_LABS):
        yield Trust(WARNING, f"{counted(len(others), 'other lab')} measured on this machine meanwhile: {SHARED}")
    stolen = [result.metrics[STOLEN.key] for result in data.latest if STOLEN.key in result.metrics]
    if stolen and (share := statistics.fmean(stolen)) > MOST_STOLEN:
        yield Trust(WARNING, f"the machine's own host kept {share:.0%} of its processors from it (steal)")


def _warnings(data: RunData) -> Iterator[Trust]:
    """What the proofs of trials and the assumptions behind verdicts warn of; what has its own place is left out."""
    warned = sum(bool(result.proof.warnings) for result in data.latest)
    if warned:
        yield Trust(WARNING, f"{counted(warned, 'trial')} with a warning")
    yield from _dependence(data)
    for doubt in doubts(data.judgement):
        if doubt.concern not in TOLD_ELSEWHERE:
            yield Trust(WARNING, f"{counted(doubt.comparisons, 'comparison')} with a warning: {doubt.concern.value}")


def _dependence(data: RunData) -> Iterator[Trust]:
    if data.judgement.dependence.is_excessive:
        yield Trust(WARNING, dependence_text(data.judgement.dependence))
