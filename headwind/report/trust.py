"""The validity of a run's figures: its meaning for a reader, and the reasons. Pure."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import bdtrc

from headwind.arm import H2, Arm
from headwind.format import arm_name, counted, enumerated, setting
from headwind.metric import BUSY, STEAL
from headwind.model import Condition, Matrix, Result
from headwind.proof.attempts import is_unproven
from headwind.proof.processors import ALONE_SHARE, MOST_STEAL
from headwind.proof.spans import earlier_moment, early_by_arm, has_spells, met_bad_spell
from headwind.report.row_text import named
from headwind.report.times_table import by_arm
from headwind.report.verdicts import dependence_text
from headwind.run.codec import State
from headwind.run.data import RunData, is_data
from headwind.verdicts.assumptions import ALARM_PROBABILITY, WarningKind
from headwind.verdicts.findings import SelfCheckFinding
from headwind.verdicts.judgement import Judgement

MOST_ACCOMPANIED = 0.1  # of a condition's trials: share above which several testbeds are reported
MOST_FLOORS = 4  # noise floors that a sentence names; of more, only those above the margin
OTHER_LABS = "other_labs"  # key in a run's environment
_PLAIN = re.compile(r"[A-Za-z][\w.-]*(?: [\w.-]+)*")  # needs no quotes in YAML
SHARED = (
    "times are longer and vary more, so verdicts need more blocks; a verdict compares only trials of the same block, "
    "which ran close together"
)


@dataclass(frozen=True, slots=True)
class WarningGroup:
    """A warning about comparisons, and its conditions."""

    kind: WarningKind
    comparisons: int
    condition_ids: tuple[str, ...]


def doubts(verdicts: Judgement) -> list[WarningGroup]:
    """Warnings about comparisons, grouped: first those about the network, then the most frequent."""
    concerned: dict[WarningKind, list[str]] = {}
    for line in verdicts.lines:
        for kind in dict.fromkeys(warning.kind for warning in line.warnings):
            concerned.setdefault(kind, []).append(line.condition.id)
    found = [WarningGroup(kind, len(ids), tuple(dict.fromkeys(ids))) for kind, ids in concerned.items()]
    return sorted(found, key=lambda doubt: (doubt.kind is not WarningKind.NETWORK, -doubt.comparisons))


def trust_line(data: RunData) -> str:
    """Sentences on the validity of the run: whether to rely on it, and which leads may be noise."""
    checks = [check.passed for result in data.latest if is_data(result) for check in result.proof.checks]
    failures = list(_failures(data, checks.count(False)))
    if failures:
        sentences = [f"do not rely on this run: {'; '.join(failures)}"]
    else:
        before = "; for trials that ended before a change, without it" if data.unchanged else ""
        sentences = [f"the network of every compared trial was verified{before}"] if checks else []
        sentences += [_noise(data), *_passed(data)]
    sentences += [*_unmet(data), *_unequal(data), *_machine(data)]
    if data.judgement.dependence.is_excessive:
        sentences.append(dependence_text(data.judgement.dependence))
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in sentences)


def _passed(data: RunData) -> Iterator[str]:
    """How many self-checks passed, and how many have no result, if the run has ended and none failed."""
    results = [check.passed for check in data.judgement.checks]
    if not results or data.status.state is State.RUNNING:
        return
    if left := [check.finding for check in data.judgement.checks if check.passed is None]:
        passed = f"{counted(len(results), 'self-check')}: {results.count(True)} passed"
        places = named([*dict.fromkeys(data.matrix.name_of(each.condition) for each in left)])
        them = "it" if len(left) == 1 else "them"
        yield f"{passed}, {len(left)} inconclusive so far (in {places}; more blocks may settle {them})"
    else:
        yield {1: "the self-check passed", 2: "both self-checks passed"}.get(
            len(results), f"all {len(results)} self-checks passed"
        )


def failed_checks(data: RunData) -> list[str]:
    """Names of the conditions in which a self-check failed."""
    failed = {check.finding.condition.id for check in data.judgement.checks if check.passed is False}
    return [data.matrix.name_of(each) for each in data.matrix.conditions if each.id in failed]


def _failures(data: RunData, failed: int) -> Iterator[str]:
    """Reasons not to rely on the figures."""
    if failed:
        yield f"{counted(failed, 'network check')} failed"
    deviating = {each.condition.id for each in data.pooled if not each.passed}
    if names := [data.matrix.name_of(each) for each in data.matrix.conditions if each.id in deviating]:
        yield f"not the requested network in {named(names)}"
    if names := failed_checks(data):
        yield f"self-checks FAILED in {named(names)}"


def noise_floors(checks: Iterable[SelfCheckFinding]) -> dict[str, float]:
    """By condition id, how far from 1 the ratio of a protocol to itself was, if known."""
    found: dict[str, float] = {}
    for check in checks:
        floor = check.noise_floor_ratio
        if floor is not None and math.isfinite(floor):
            found.setdefault(check.finding.condition.id, floor)
    return found


def _noise(data: RunData) -> str:
    """Sentence on the noise floor of each network: a lead of that size may be noise."""
    if not data.judgement.checks:
        unknown = "no self-check ran, so how far a protocol differs from itself is unknown"
        return unknown + _how_to_check(data.searched or data.matrix)
    checks = [check for check in data.judgement.checks if check.noise_floor_ratio is not None]
    floors, margin = noise_floors(checks), data.judgement.rule.margin_ratio
    if not floors:
        return "self-checks have too few blocks to measure the noise"
    shown = floors if len(floors) <= MOST_FLOORS else {name: each for name, each in floors.items() if each > margin}
    names = {condition.id: data.matrix.name_of(condition) for condition in data.matrix.conditions}
    arms = enumerated(dict.fromkeys(arm_name(check.finding.pair.base) for check in checks))
    repeated = {check.finding.condition.id for check in checks}
    few, without = len(repeated) - len(floors), len(names) - len(repeated)
    rest = [f"{few} more with too few blocks"] if few else []
    others = counted(without, data.matrix.place).removeprefix("1 ")
    rest += [f"not measured in the other {others}"] if without else []
    left = f" ({', '.join(rest)})" if rest else ""
    confidence = setting("confidence_ratio", data.judgement.rule.confidence)
    floor_of = f"noise floor: with {confidence} confidence, {arms} differs from itself by"
    if max(floors.values()) <= margin:
        places = counted(len(floors), data.matrix.place).partition(" ")[2]
        where = f" in the {places} {named([names[name] for name in floors])}" if len(floors) <= MOST_FLOORS else ""
        return f"{floor_of} less than {setting('margin_ratio', margin)}{where if left else ''}{left}"
    by = enumerated(f"{1 + floor:.2f}x in {names[name]}" for name, floor in shown.items())
    return f"{floor_of} at most {by}{left}; smaller leads may be noise"


def _unmet(data: RunData) -> Iterator[str]:
    """Sentences on networks with changes or bad spells that most trials ended before, or were excluded for."""
    arms_early = early_by_arm(data.latest)
    for condition in data.matrix.conditions:
        if early := data.unchanged.get(condition.id):
            name = data.matrix.name_of(condition)
            yield f"in {name}, {early}: for a new run, {earlier_moment(condition.workload)}"
        elif unequal := _early_arms(data.matrix.name_of(condition), arms_early.get(condition.id, {})):
            yield unequal
        if excluded := data.milder.get(condition.id):
            yield f"in {data.matrix.name_of(condition)}, {excluded}"
        met, of = met_spells(condition, data.latest)
        if met < of / 2:
            some = f"only {met}" if met else "none"
            others = "the others" if met else "they"
            name = data.matrix.name_of(condition)
            yield f"in {name}, {some} of {counted(of, 'trial')} met a bad spell: {others} ended before one"


def met_spells(condition: Condition, results: Iterable[Result]) -> tuple[int, int]:
    """Number of trials of a condition that met a bad spell, and of all with data; zeros without spells."""
    if not has_spells(condition.profile):
        return 0, 0
    met = [met_bad_spell(each) for each in results if each.trial.block.condition == condition and is_data(each)]
    return sum(met), len(met)


def _early_arms(name: str, early: Mapping[Arm, Sequence[bool]]) -> str:
    """A sentence on arms of which most trials ended before a network changed, if others met the change; else empty.

    `name` is that of the condition, `early` whether each of its trials ended before.
    """
    some = {arm: each for arm, each in early.items() if 2 * sum(each) > len(each)}
    if not some or len(some) == len(early):
        return ""
    counts = enumerated(f"{arm_name(arm)} {sum(each)} of {len(each)}" for arm, each in some.items())
    return (
        f"in {name}, trials ended before the network changed ({counts}), and most of the "
        "other protocols' did not: ratios depend on the moment of the change"
    )


def _how_to_check(matrix: Matrix) -> str:
    """Suggested self-check, with names of the matrix; empty if it has one, or is a search."""
    if matrix.selfcheck or matrix.find:
        return ""
    name, arm = matrix.conditions[0].profile.name, H2 if H2 in matrix.arms else matrix.arms[0]
    profile = name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    return f": add `selfcheck: {{protocol: {arm.name}, again: [{profile}]}}` to the matrix of a new run"


def _unequal(data: RunData) -> Iterator[str]:
    """Sentences on arms whose attempts were left unverified far more often than those of the others.

    By chance one of the arms has that many of all unproven attempts in at most ALARM_PROBABILITY of runs: binomial,
    with its share of the attempts, times the number of arms (Bonferroni).
    """
    unproven = [result for result in data.results if is_unproven(result)]
    lost, ran = (Counter(each.trial.arm for each in results) for results in (unproven, data.results))
    for arm, count in lost.items():
        chance = float(bdtrc(count - 1, len(unproven), ran[arm] / len(data.results)))
        if len(ran) * chance < ALARM_PROBABILITY:
            counts = by_arm(data.results, unproven)
            yield f"network checks failed far more often with {arm_name(arm)} (of all attempts {counts})"


def _limited_by_cpus(data: RunData) -> list[str]:
    """The names of conditions whose trials keep much of the CPUs busy, if several testbeds were up during many of them.

    Idle testbeds lengthen such trials (docs/noise.md).
    """
    cores = data.environment.get("host", {}).get("cores")
    busy: dict[tuple[str, Arm], list[float]] = {}
    measured = [result for result in data.latest if BUSY.key in result.metrics] if cores else []
    for result in measured:
        key = result.trial.block.condition.id, result.trial.arm
        busy.setdefault(key, []).append(result.metrics[BUSY.key])
    limited = {name for (name, _), used in busy.items() if statistics.fmean(used) > ALONE_SHARE * int(cores)}
    accompanied: dict[str, list[bool]] = {name: [] for name in limited}
    for result in measured:
        if (name := result.trial.block.condition.id) in limited:
            accompanied[name].append(_testbeds_up(data, result) > 1)
    names = {name for name, several in accompanied.items() if statistics.fmean(several) > MOST_ACCOMPANIED}
    return [data.matrix.name_of(each) for each in data.matrix.conditions if each.id in names]


def _testbeds_up(data: RunData, result: Result) -> int:
    """Number of testbeds that were up on its host when a trial ended; 0 if the run did not record it."""
    lives = data.environment.get("testbeds", ())
    here = [life for life in lives if life.get("host", result.place.host) == result.place.host]
    return sum(life["began_at"] <= result.ended_at <= life.get("ended_at", math.inf) for life in here)


def _machine(data: RunData) -> Iterator[str]:
    """Sentences on parallel testbeds, other labs on the machine, and CPU steal."""
    if names := _limited_by_cpus(data):
        its = "its" if len(names) == 1 else "their"
        yield f"CPUs limit {named(names)}, and several testbeds lengthen {its} times: measure with `LANES=1`"
    if others := data.environment.get(OTHER_LABS):
        yield f"at least {counted(len(others), 'other Headwind run')} used this machine during this run: {SHARED}"
    stolen = [result.metrics[STEAL.key] for result in data.latest if STEAL.key in result.metrics]
    if stolen and (share := statistics.fmean(stolen)) > MOST_STEAL:
        yield f"{100 * share:.0f} % CPU steal: so much of the CPUs the hypervisor gave to others"
