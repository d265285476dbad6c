"""Results -> findings: which arms are compared, by which metric, and the verdict of each comparison. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import expm1, log1p

from headwind.arm import Arm, Role
from headwind.metric import Metric, Use
from headwind.model import Block, Condition, Matrix, Outcome, Result
from headwind.observed import Observed, observed
from headwind.verdicts.assumptions import Caveat, Concern, caveats, disagreement, noise_floor
from headwind.verdicts.contention import contention
from headwind.verdicts.stats import fewest_blocks, paired_bounds
from headwind.verdicts.verdict import Claim, Comparison, Rule, Verdict, ended, follow

BOUND_SHARE = 0.5  # of the blocks: where processors limited so many, they decide the comparison
LEAST_SLOWER_RATIO = 0.02  # a network that is 10 % slower need not slow the total by 10 %, but it must slow it
FALSE_SHARE = 0.10  # of the differences that the headline counts, at most (e-BH)


@dataclass(frozen=True, slots=True)
class Pair:
    """Who is compared with whom: `new` is the candidate, `base` the baseline."""

    base: Arm
    new: Arm

    def __str__(self) -> str:
        return f"{self.new} against {self.base}"

    @property
    def is_check(self) -> bool:
        """Whether the lab checks itself with it."""
        return self.new.is_twin

    @property
    def is_control(self) -> bool:
        """Whether a difference is there to be found, of whatever size."""
        return self.new.role is Role.SLOWER

    def deciding(self, judged: Iterable[Metric]) -> tuple[Metric, ...]:
        """Which of the judged metrics can decide it: of a self-check the primary one alone, which is the first."""
        metrics = tuple(judged)
        return metrics[:1] if self.is_check else metrics


def pairs_of(matrix: Matrix, condition: Condition) -> list[Pair]:
    """Every comparison in a condition: those that the matrix names, else h3:h1, h3:h2, h2:h1; then the twins."""
    arms, check = matrix.arms, matrix.selfcheck
    named = [Pair(base, new) for new, base in matrix.compare]
    every = [Pair(base, arms[index]) for index in range(len(arms) - 1, 0, -1) for base in arms[:index]]
    twins = [Pair(check.arm, twin) for twin in check.twins(condition)] if check else []
    return (named or every) + twins


def rule_of(matrix: Matrix, *, complete: bool) -> Rule:
    """What counts as a difference. Intervals for a fixed number of blocks hold only once all of them have run."""
    repeat = matrix.repeat
    return Rule(repeat.confidence, repeat.margin_ratio, anytime=repeat.is_adaptive or not complete)


Rows = Mapping[int, Mapping[Arm, Result]]  # by block: the latest result of every arm


def rows_of(results: Iterable[Result]) -> dict[str, dict[int, dict[Arm, Result]]]:
    """Condition id -> block -> arm -> its latest result; blocks in the order of their number."""
    found: dict[str, dict[int, dict[Arm, Result]]] = {}
    for result in results:
        block = result.trial.block
        found.setdefault(block.condition.id, {}).setdefault(block.index, {})[result.trial.arm] = result
    return {condition: dict(sorted(blocks.items())) for condition, blocks in found.items()}


def metrics_of(matrix: Matrix, *uses: Use) -> tuple[Metric, ...]:
    """Every metric of its workloads that is used so, once, in their order."""
    kinds = dict.fromkeys(type(condition.workload) for condition in matrix.conditions)
    return tuple(dict.fromkeys(metric for kind in kinds for metric in kind.with_use(*uses)))


def judged_metrics(matrix: Matrix) -> tuple[Metric, ...]:
    """Every metric that has a verdict in some condition, once, in the order of the matrix."""
    return tuple(dict.fromkeys(metric for each in matrix.conditions for metric in matrix.judged(each)))


def compared_beside(matrix: Matrix, condition: Condition) -> tuple[Metric, ...]:
    """The metrics of a condition that have an interval and no verdict."""
    judged = matrix.judged(condition)
    return tuple(each for each in condition.workload.with_use(Use.JUDGED, Use.COMPARED) if each not in judged)


Key = tuple[str, Pair, Metric]
Bounds = tuple[tuple[float, ...], tuple[float, ...]]  # lowest and highest possible ln ratio of every block


@dataclass(frozen=True, slots=True)
class Columns:
    """The blocks in which both arms of a pair gave data, in the order in which they ran."""

    metric: Metric
    base: tuple[Observed, ...]
    new: tuple[Observed, ...]
    finished: tuple[tuple[bool, ...], tuple[bool, ...]]  # whether the baseline and the candidate did their work
    blocks: tuple[Block, ...]
    rows: tuple[int, ...]  # which of the condition's, from 0

    @property
    def bounds(self) -> Bounds:
        """Lowest and highest possible ln ratio of every block."""
        lows, highs = paired_bounds(self.base, self.new, self.metric.better)
        return tuple(lows.tolist()), tuple(highs.tolist())


ObservedBy = Callable[[Arm, Metric], Sequence[Observed | None]]  # of an arm and a metric: a value for each row


def observed_in(rows: Rows) -> ObservedBy:
    """What was observed in rows, each looked up once: an arm is in several pairs."""
    return cache(lambda arm, metric: [observed(row.get(arm), metric) for row in rows.values()])


def columns_of(rows: Rows, pair: Pair, metric: Metric, seen: ObservedBy | None = None) -> Columns:
    """What the blocks of one condition say about a pair; `seen` is observed_in of the same rows, where there is one."""
    tell = seen or observed_in(rows)
    kept = []
    both = zip(tell(pair.base, metric), tell(pair.new, metric), rows.values(), strict=True)
    for number, (base, new, row) in enumerate(both):
        if base and new:
            done = (row[arm].outcome is Outcome.OK for arm in (pair.base, pair.new))
            kept.append((base, new, *done, row[pair.new].trial.block, number))
    base_values, new_values, base_done, new_done, blocks, numbers = zip(*kept, strict=True) if kept else ((),) * 6
    return Columns(metric, base_values, new_values, (base_done, new_done), blocks, numbers)


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison in one condition by one metric."""

    condition: Condition
    pair: Pair
    metric: Metric
    comparison: Comparison
    claims: tuple[Claim, ...] = ()  # after each of its blocks; none: it never made one
    rows: tuple[int, ...] = ()  # of the condition, in their order: those that are its blocks
    caveats: tuple[Caveat, ...] = ()
    survives: bool = False  # e-BH over the matrix lets the headline count it, and no processor was the limit
    bounds: Bounds = ((), ())

    @property
    def key(self) -> Key:
        """What it is about, through the whole run."""
        return self.condition.id, self.pair, self.metric

    @property
    def verdict(self) -> Verdict:
        """The comparison's."""
        return self.comparison.verdict

    @property
    def counted(self) -> Verdict:
        """The verdict as far as it stands among all comparisons of the matrix; inconclusive where it does not."""
        return self.verdict if self.survives else Verdict.INCONCLUSIVE

    @property
    def is_processor_bound(self) -> bool:
        """Whether the machine was the limit, so that no verdict is a protocol's."""
        return any(caveat.concern is Concern.PROCESSORS for caveat in self.caveats)

    @property
    def network_held(self) -> bool:
        """False where all trials together say that the network was not the requested one."""
        return all(caveat.concern is not Concern.NETWORK for caveat in self.caveats)

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict that more blocks would not be run for, on the network that was asked for."""
        return self.network_held and is_decided(self.pair, self.comparison)


def is_found(pair: Pair, comparison: Comparison) -> bool:
    """Whether this is a control of which the difference shows."""
    return pair.is_control and comparison.interval.high < 0


def is_decided(pair: Pair, comparison: Comparison) -> bool:
    """Whether a comparison has a verdict that more blocks would not be run for."""
    return comparison.verdict is Verdict.TIE or comparison.verdict.is_clear or is_found(pair, comparison)


def find_in(matrix: Matrix, condition: Condition, rows: Rows, rule: Rule) -> list[Finding]:
    """What the blocks of one condition say while more can come, by pair and judged metric, in their order."""
    seen = observed_in(rows)
    return [
        _finding(condition, pair, metric, rows, seen, rule)
        for pair in pairs_of(matrix, condition)
        for metric in matrix.judged(condition)
    ]


def standing(findings: Iterable[Finding], held: Mapping[Key, Claim], rule: Rule, *, exhausted: bool) -> list[Finding]:
    """The findings of a whole matrix as they stand among each other.

    What is `held` (headwind/verdicts/settled.py) keeps the verdict and the evidence with which it was settled, and
    survives unless the processors were the limit. `exhausted`: no more blocks will come, so what is open is
    inconclusive.
    """
    return [
        replace(finding, survives=not finding.is_processor_bound, comparison=settled(finding.comparison, claim))
        if (claim := held.get(finding.key))
        else replace(finding, comparison=ended(finding.comparison, rule) if exhausted else finding.comparison)
        for finding in findings
    ]


def settled(comparison: Comparison, claim: Claim) -> Comparison:
    """The comparison with the verdict that was settled, and everything else as it is now."""
    return replace(comparison, verdict=claim.verdict, log_e_value=claim.log_e_value, withheld=None)


def doubted(findings: Iterable[Finding], doubts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """The findings, but none of a condition whose network did not hold is decided or counted: it says why.

    `doubts` are sentences by the condition's id (headwind/proof/pooled.py). The verdict stays: it is of another
    network.
    """
    return [
        replace(
            finding,
            survives=False,
            caveats=(*(Caveat(Concern.NETWORK, doubt) for doubt in doubts[finding.condition.id]), *finding.caveats),
        )
        if finding.condition.id in doubts
        else finding
        for finding in findings
    ]


def _finding(condition: Condition, pair: Pair, metric: Metric, rows: Rows, seen: ObservedBy, rule: Rule) -> Finding:
    columns = columns_of(rows, pair, metric, seen)
    bounds = columns.bounds
    comparison, claims = follow(*bounds, *columns.finished, rule, exhausted=False)
    trials = _trials(rows, pair, columns)
    orders = [[arm.name for arm in block.order] for block in columns.blocks]
    doubts = (
        *_processor_bound(rows, pair),
        *_left_out(rows, pair, seen, metric),
        *disagreement([new.place.host for _, new in trials], *bounds, rule),
        *contention(trials, bounds, comparison.interval, rule),
        *caveats(columns.base, columns.new, orders, rule, bounds, columns.finished),
    )
    return Finding(condition, pair, metric, comparison, tuple(claims), columns.rows, doubts, bounds=bounds)


def is_bound(rows: Rows, pair: Pair) -> bool:
    """Whether processors were the limit in BOUND_SHARE of the blocks in which both arms ran."""
    bound, ran = _bound_blocks(rows, pair)
    return ran > 0 and bound >= BOUND_SHARE * ran


def _bound_blocks(rows: Rows, pair: Pair) -> tuple[int, int]:
    ran = [(row[pair.base], row[pair.new]) for row in rows.values() if pair.base in row and pair.new in row]
    return sum(any(result.is_processor_bound for result in results) for results in ran), len(ran)


def _processor_bound(rows: Rows, pair: Pair) -> Iterator[Caveat]:
    """A warning where the processors were the limit: how fast the machine is says nothing of the protocols."""
    if is_bound(rows, pair):
        bound, ran = _bound_blocks(rows, pair)
        yield Caveat(
            Concern.PROCESSORS, f"processors were the limit in {bound} of {ran} blocks: the headline counts none"
        )


def _trials(rows: Rows, pair: Pair, columns: Columns) -> list[tuple[Result, Result]]:
    """The baseline's and the candidate's of each block."""
    order = list(rows.values())
    return [(order[number][pair.base], order[number][pair.new]) for number in columns.rows]


def _left_out(rows: Rows, pair: Pair, seen: ObservedBy, metric: Metric) -> Iterator[Caveat]:
    """A warning where blocks are missing: what keeps a trial from being data may have to do with how slow it was."""
    arms = (pair.new, pair.base)
    ran = [all(arm in row for arm in arms) for row in rows.values()]
    counts = {arm: sum(both and value is None for both, value in zip(ran, seen(arm, metric), strict=True))
              for arm in arms}  # fmt: skip
    if any(counts.values()):
        said = ", ".join(f"{arm.name} {count}" for arm, count in counts.items())
        yield Caveat(Concern.LEFT_OUT, f"blocks left out, because a trial was no data: {said} of {sum(ran)}")


@dataclass(frozen=True, slots=True)
class SelfCheckFinding:
    """One self-check in one condition: whether it passed (None: too little was measured), and a sentence about it."""

    finding: Finding
    passed: bool | None
    message: str

    @property
    def noise_floor_ratio(self) -> float | None:
        """How far from 1 an A/A interval reaches, infinite while it is open; None for a control."""
        return None if self.finding.pair.is_control else expm1(noise_floor(self.finding.comparison.interval))


def self_checks(findings: Iterable[Finding], rule: Rule) -> list[SelfCheckFinding]:
    """What the lab found when it compared a protocol with itself, by the primary metric of each condition."""
    first: dict[tuple[str, Pair], Finding] = {}
    for finding in findings:
        first.setdefault((finding.condition.id, finding.pair), finding)
    return [_check(finding, rule) for finding in first.values() if finding.pair.is_check]


def _check(finding: Finding, rule: Rule) -> SelfCheckFinding:
    verdict, n = finding.verdict, finding.comparison.interval.n
    if n < fewest_blocks(rule.confidence, rule.anytime):
        return SelfCheckFinding(finding, None, f"too few blocks ({n}) to tell")
    if finding.pair.new.role is Role.AGAIN:
        if verdict.is_clear:
            return SelfCheckFinding(finding, False, "the lab sees a difference where there is none: trust no verdict")
        if verdict is Verdict.TIE:
            return SelfCheckFinding(finding, True, "a tie, as it must be")
        seen = "a difference that chance may give: " if verdict.favours else "no difference seen, but "
        return SelfCheckFinding(finding, None, f"{seen}the noise is wider than the margin")
    if is_found(finding.pair, finding.comparison):
        return SelfCheckFinding(finding, True, "a network that is 10 % slower was found")
    if finding.comparison.interval.low > -log1p(LEAST_SLOWER_RATIO):
        return SelfCheckFinding(finding, False, "a network that is 10 % slower does not even slow it by 2 %")
    return SelfCheckFinding(finding, None, "a 10 % slower network was not found, but may slow it by 2 % or more")
