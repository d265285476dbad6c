"""Results -> findings: the compared arms, the metrics, and the verdict of each comparison. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import expm1, log, log1p

from headwind.arm import Arm, Role
from headwind.format import arm_name
from headwind.metric import Metric, Use
from headwind.model import DATA_OUTCOMES, Block, Condition, Matrix, Outcome, Result
from headwind.observed import Observed, observed
from headwind.verdicts.assumptions import ComparisonWarning, WarningKind, disagreement, noise_floor, warnings
from headwind.verdicts.contention import contention
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.stats import fewest_blocks, log_e_of_count, paired_bounds
from headwind.verdicts.verdict import SPEED_SHARE, Claim, Comparison, Rule, Verdict, ended, follow

BOUND_SHARE = 0.5  # of the blocks: if this share was CPU-bound, CPUs decide the comparison
LEAST_SLOWER_RATIO = 0.02  # a 10 % slower network need not slow the total by 10 %, but must slow it by this
FALSE_SHARE = 0.10  # maximum expected share of false ones among the differences that the headline counts (e-BH)


def fewest_for_sure(confidence: float, anytime: bool) -> int:
    """The smallest number of blocks after which a comparison can be sure: 7 (fixed) or 8 (anytime) at 95 %.

    Of an interval, and of evidence that can survive e-BH (stats.e_bh): 1 / FALSE_SHARE, if all comparisons have it.
    """
    n = fewest_blocks(confidence, anytime)
    while log_e_of_count(n, 0) + log(SPEED_SHARE) < -log(FALSE_SHARE):
        n += 1
    return n


def rule_of(matrix: Matrix, *, complete: bool) -> Rule:
    """The rule for differences. Intervals for a fixed number of blocks hold only once all of them have run."""
    repeat = matrix.repeat
    is_fixed = not repeat.is_adaptive
    return Rule(repeat.confidence, repeat.margin_ratio, anytime=not (is_fixed and complete), fixed=is_fixed)


Rows = Mapping[int, Mapping[Arm, Result]]  # by block: the latest result of every arm


def rows_of(results: Iterable[Result]) -> dict[str, dict[int, dict[Arm, Result]]]:
    """Condition id -> block -> arm -> its latest result; blocks in the order of their number."""
    found: dict[str, dict[int, dict[Arm, Result]]] = {}
    for result in results:
        block = result.trial.block
        found.setdefault(block.condition.id, {}).setdefault(block.index, {})[result.trial.arm] = result
    return {condition: dict(sorted(blocks.items())) for condition, blocks in found.items()}


def metrics_of(matrix: Matrix, *uses: Use) -> tuple[Metric, ...]:
    """The metrics of the matrix's trials with one of these uses, each once, in the order of their kinds."""
    kinds = dict.fromkeys(type(condition.workload) for condition in matrix.conditions)
    possible = {metric for condition in matrix.conditions for metric in condition.metrics(*uses)}
    return tuple(dict.fromkeys(metric for kind in kinds for metric in kind.with_use(*uses) if metric in possible))


def judged_metrics(matrix: Matrix) -> tuple[Metric, ...]:
    """Every metric that has a verdict in some condition, once, in the order of the matrix."""
    return tuple(dict.fromkeys(metric for each in matrix.conditions for metric in matrix.judged(each)))


def judged_by(matrix: Matrix, condition: Condition, pair: Pair) -> tuple[Metric, ...]:
    """The metrics by which a pair has verdicts in a condition, the primary one first.

    Times that begin when a request is sent leave out its wait before that: they favour an arm with fewer requests in
    flight. So they count only if both arms have as many, or if nothing else is judged.
    """
    judged = matrix.judged(condition)
    is_equal = pair.base.in_flight(condition.workload) == pair.new.in_flight(condition.workload)
    fair = tuple(metric for metric in judged if not metric.is_from_sending)
    return judged if is_equal or not fair else fair


def compared_beside(matrix: Matrix, condition: Condition, pair: Pair) -> tuple[Metric, ...]:
    """The metrics of a pair in a condition that have an interval and no verdict."""
    judged = judged_by(matrix, condition, pair)
    return tuple(each for each in condition.metrics(Use.JUDGED, Use.COMPARED) if each not in judged)


Key = tuple[str, Pair, Metric]
Bounds = tuple[tuple[float, ...], tuple[float, ...]]  # lowest and highest possible ln ratio of every block


@dataclass(frozen=True, slots=True)
class Columns:
    """The blocks in which both arms of a pair gave data, in the order in which they ran."""

    metric: Metric
    base: tuple[Observed, ...]
    new: tuple[Observed, ...]
    finished: tuple[tuple[bool, ...], tuple[bool, ...]]  # per block: baseline done, candidate done
    blocks: tuple[Block, ...]
    rows: tuple[int, ...]  # their row numbers in the condition, from 0

    @property
    def bounds(self) -> Bounds:
        """Lowest and highest possible ln ratio of every block."""
        lows, highs = paired_bounds(self.base, self.new, self.metric.better)
        return tuple(lows.tolist()), tuple(highs.tolist())


ObservedBy = Callable[[Arm, Metric], Sequence[Observed | None]]  # (arm, metric) -> a value for each row


def observed_in(rows: Rows) -> ObservedBy:
    """Observed values in rows, each looked up once, since an arm is in several pairs."""
    return cache(lambda arm, metric: [observed(row.get(arm), metric) for row in rows.values()])


def columns_of(rows: Rows, pair: Pair, metric: Metric, values: ObservedBy | None = None) -> Columns:
    """The blocks of one condition for a pair; `values` is observed_in of the same rows, if already computed."""
    values_of = values or observed_in(rows)
    kept = []
    both = zip(values_of(pair.base, metric), values_of(pair.new, metric), rows.values(), strict=True)
    for number, (base, new, row) in enumerate(both):
        if base and new:
            done = (row[arm].outcome is Outcome.OK for arm in (pair.base, pair.new))
            kept.append((base, new, *done, row[pair.new].trial.block, number))
    base_values, new_values, base_done, new_done, blocks, numbers = zip(*kept, strict=True) if kept else ((),) * 6
    return Columns(metric, base_values, new_values, (base_done, new_done), blocks, numbers)


@dataclass(frozen=True, slots=True)
class Finding:
    """A comparison in one condition by one metric."""

    condition: Condition
    pair: Pair
    metric: Metric
    comparison: Comparison
    rule: Rule
    claims: tuple[Claim, ...] = ()  # after each of its blocks; empty if there never was one
    rows: tuple[int, ...] = ()  # row numbers of its blocks in the condition, from 0
    warnings: tuple[ComparisonWarning, ...] = ()
    survives: bool = False  # e-BH over the matrix lets the headline count it, and it is not CPU-bound
    bounds: Bounds = ((), ())

    @property
    def key(self) -> Key:
        """Its key, the same through the whole run."""
        return self.condition.id, self.pair, self.metric

    @property
    def verdict(self) -> Verdict:
        """The verdict of its comparison."""
        return self.comparison.verdict

    @property
    def counted(self) -> Verdict:
        """The verdict if it survives e-BH over all comparisons of the matrix, else inconclusive."""
        return self.verdict if self.survives else Verdict.INCONCLUSIVE

    @property
    def is_cpu_bound(self) -> bool:
        """True if the machine was the limit, so that no verdict is about a protocol."""
        return any(warning.kind is WarningKind.PROCESSORS for warning in self.warnings)

    @property
    def ratio_drifts(self) -> bool:
        """True if the ratio changed during the run, so that the verdict is about a mixture."""
        return any(warning.kind is WarningKind.RATIO_DRIFT for warning in self.warnings)

    @property
    def network_held(self) -> bool:
        """False if all trials together show that the network was not the requested one."""
        return all(warning.kind is not WarningKind.NETWORK for warning in self.warnings)

    @property
    def is_decided(self) -> bool:
        """True if its verdict needs no more blocks, and the network was the requested one."""
        return self.network_held and is_decided(self.pair, self.comparison)


def is_found(pair: Pair, comparison: Comparison) -> bool:
    """True for a control whose difference was detected."""
    return pair.is_control and comparison.interval.high < 0


def is_decided(pair: Pair, comparison: Comparison) -> bool:
    """True if the comparison has a verdict that needs no more blocks."""
    return comparison.verdict is Verdict.TIE or comparison.verdict.is_clear or is_found(pair, comparison)


def find_in(matrix: Matrix, condition: Condition, rows: Rows, rule: Rule) -> list[Finding]:
    """Findings from the blocks of one condition while more can come, by pair and judged metric, in their order."""
    values = observed_in(rows)
    return [
        _finding(condition, pair, metric, rows, values, rule)
        for pair in pairs_of(matrix, condition)
        for metric in judged_by(matrix, condition, pair)
    ]


def standing(findings: Iterable[Finding], held: Mapping[Key, Claim], rule: Rule, *, exhausted: bool) -> list[Finding]:
    """The findings of a whole matrix, corrected for each other.

    A claim in `held` (headwind/verdicts/settled.py) keeps the verdict and the evidence with which it was settled, and
    survives unless it is CPU-bound. `exhausted`: no more blocks will come, so an open comparison is inconclusive.
    """
    return [
        replace(finding, survives=not finding.is_cpu_bound, comparison=settled(finding.comparison, claim))
        if (claim := held.get(finding.key))
        else replace(finding, comparison=ended(finding.comparison, rule) if exhausted else finding.comparison)
        for finding in findings
    ]


def settled(comparison: Comparison, claim: Claim) -> Comparison:
    """The comparison with the verdict that was settled, and everything else as it is now."""
    return replace(comparison, verdict=claim.verdict, log_e_value=claim.log_e_value, withheld=None)


def doubted(findings: Iterable[Finding], doubts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """The findings, with those of conditions whose network did not hold neither decided nor counted, and the reason.

    `doubts` are sentences by the condition's id (headwind/proof/pooled.py). The verdict stays, but is about another
    network.
    """
    return [
        replace(
            finding,
            survives=False,
            warnings=(
                *(ComparisonWarning(WarningKind.NETWORK, doubt) for doubt in doubts[finding.condition.id]),
                *finding.warnings,
            ),
        )
        if finding.condition.id in doubts
        else finding
        for finding in findings
    ]


def _finding(condition: Condition, pair: Pair, metric: Metric, rows: Rows, values: ObservedBy, rule: Rule) -> Finding:
    columns = columns_of(rows, pair, metric, values)
    bounds = columns.bounds
    comparison, claims = follow(*bounds, *columns.finished, rule, exhausted=False)
    trials = _trials(rows, pair, columns)
    orders = [[arm.name for arm in block.order] for block in columns.blocks]
    names = arm_name(pair.base), arm_name(pair.new)
    doubts = (
        *_processor_bound(rows, pair),
        *_left_out(rows, pair, values, metric),
        *disagreement([new.place.host for _, new in trials], *bounds, rule),
        *contention(trials, bounds, comparison.interval, rule),
        *warnings(columns.base, columns.new, orders, rule, bounds, columns.finished, names),
    )
    return Finding(condition, pair, metric, comparison, rule, tuple(claims), columns.rows, doubts, bounds=bounds)


def is_bound(rows: Rows, pair: Pair) -> bool:
    """True if at least BOUND_SHARE of the blocks in which both arms gave data were CPU-bound."""
    bound, ran = _bound_blocks(rows, pair)
    return ran > 0 and bound >= BOUND_SHARE * ran


def _bound_blocks(rows: Rows, pair: Pair) -> tuple[int, int]:
    both = ((row[pair.base], row[pair.new]) for row in rows.values() if pair.base in row and pair.new in row)
    ran = [results for results in both if all(result.outcome in DATA_OUTCOMES for result in results)]
    return sum(any(result.is_cpu_bound for result in results) for results in ran), len(ran)


def _processor_bound(rows: Rows, pair: Pair) -> Iterator[ComparisonWarning]:
    """A warning if CPUs were the limit: then the speed of the machine decides, not the protocols."""
    if is_bound(rows, pair):
        bound, ran = _bound_blocks(rows, pair)
        yield ComparisonWarning(
            WarningKind.PROCESSORS,
            f"CPU-bound in {bound} of {ran} blocks: CPUs may decide the ratio, so it is never sure",
        )


def _trials(rows: Rows, pair: Pair, columns: Columns) -> list[tuple[Result, Result]]:
    """The baseline's and the candidate's result of each block."""
    order = list(rows.values())
    return [(order[number][pair.base], order[number][pair.new]) for number in columns.rows]


def _left_out(rows: Rows, pair: Pair, values: ObservedBy, metric: Metric) -> Iterator[ComparisonWarning]:
    """A warning if blocks are missing: the reason why a trial gave no data can be related to its speed."""
    arms = (pair.new, pair.base)
    ran = [all(arm in row for arm in arms) for row in rows.values()]
    counts = {arm: sum(both and value is None for both, value in zip(ran, values(arm, metric), strict=True))
              for arm in arms}  # fmt: skip
    if any(counts.values()):
        counts_text = ", ".join(f"{arm.name} {count}" for arm, count in counts.items())
        yield ComparisonWarning(
            WarningKind.EXCLUDED, f"blocks excluded because a trial gave no usable data: {counts_text} of {sum(ran)}"
        )


@dataclass(frozen=True, slots=True)
class SelfCheckFinding:
    """A self-check in one condition: whether it passed (None: too little was measured), and a sentence about it."""

    finding: Finding
    passed: bool | None
    message: str

    @property
    def noise_floor_ratio(self) -> float | None:
        """Distance of an A/A interval's far end from ratio 1, infinite while it is open; None for a control."""
        return None if self.finding.pair.is_control else expm1(noise_floor(self.finding.comparison.interval))


def self_checks(findings: Iterable[Finding], rule: Rule) -> list[SelfCheckFinding]:
    """Comparisons of a protocol with itself, by the primary metric of each condition."""
    first: dict[tuple[str, Pair], Finding] = {}
    for finding in findings:
        first.setdefault((finding.condition.id, finding.pair), finding)
    return [_check(finding, rule) for finding in first.values() if finding.pair.is_check]


def _check(finding: Finding, rule: Rule) -> SelfCheckFinding:
    verdict, n = finding.verdict, finding.comparison.interval.n
    if n < fewest_blocks(rule.confidence, rule.anytime):
        return SelfCheckFinding(finding, None, f"too few blocks ({n})")
    if finding.pair.new.role is Role.AGAIN:
        if verdict.is_clear:
            return SelfCheckFinding(
                finding, False, "a protocol differs from itself; do not trust any verdict of this run"
            )
        if verdict is Verdict.TIE:
            return SelfCheckFinding(finding, True, "a tie, as it should be")
        if verdict.favours:
            return SelfCheckFinding(finding, None, "the difference may be chance")
        return SelfCheckFinding(finding, None, "no difference found, but the noise is too large to exclude one")
    if is_found(finding.pair, finding.comparison):
        return SelfCheckFinding(finding, True, "a network that is 10 % slower was detected (the interval excludes 1)")
    if finding.comparison.interval.low > -log1p(LEAST_SLOWER_RATIO):
        return SelfCheckFinding(finding, False, "over a network that is 10 % slower, times were less than 2 % longer")
    return SelfCheckFinding(finding, None, "the 10 % slower network was not detected; more blocks may still show it")
