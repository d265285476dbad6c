"""All verdicts of a run so far, computed once: comparisons, open comparisons, and self-checks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from headwind.arm import Arm
from headwind.metric import Metric
from headwind.model import Block, Condition, Matrix, Proof, Result
from headwind.verdicts.assumptions import ComparisonWarning, Dependence, dependence
from headwind.verdicts.ended import has_ended
from headwind.verdicts.findings import (
    Finding,
    Key,
    Rows,
    SelfCheckFinding,
    columns_of,
    compared_beside,
    doubted,
    find_in,
    rule_of,
    self_checks,
    standing,
)
from headwind.verdicts.pairs import Pair, pairs_of
from headwind.verdicts.pending import Open, still_open
from headwind.verdicts.settled import Settlement, held_at_once
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Claim, Rule, interval_of

BlockSeconds = Callable[[Condition], float]  # seconds for one more block of a condition


@dataclass(frozen=True, slots=True)
class Line:
    """A comparison in one condition: its judged findings, and what is compared unjudged them."""

    condition: Condition
    pair: Pair
    findings: Mapping[Metric, Finding]  # the primary metric's first
    intervals: Mapping[Metric, Interval]  # of metrics that are compared and not judged

    @property
    def primary(self) -> Finding:
        """The finding by the primary metric."""
        return next(iter(self.findings.values()))

    @property
    def others(self) -> list[Finding]:
        """The findings by other metrics than the primary one."""
        return [finding for finding in self.findings.values() if finding is not self.primary]

    @property
    def blocks(self) -> int:
        """Number of blocks in which both arms gave data."""
        return self.primary.comparison.completion.n

    @property
    def unfinished(self) -> tuple[int, int]:
        """Trials of the candidate and of the baseline, of `blocks` each, that did not do their work."""
        completion = self.primary.comparison.completion
        return completion.n - completion.new_finished, completion.n - completion.base_finished

    @property
    def is_decided(self) -> bool:
        """True if one of the metrics decides it."""
        return any(self.findings[metric].is_decided for metric in self.pair.deciding(self.findings))

    @property
    def is_sure(self) -> bool:
        """True if the verdict by one of the metrics survives e-BH over the matrix and is not CPU-bound."""
        return any(finding.survives and finding.is_decided for finding in self.findings.values())

    @property
    def is_cpu_bound(self) -> bool:
        """True if CPUs may decide its ratios: then no metric's verdict is sure."""
        return self.primary.is_cpu_bound

    @property
    def settled_text(self) -> str:
        """Text of the first finding that settled it: `h3 beats h1`; of several metrics, `h3 beats h1 by total time`."""
        decided = (finding for finding in self.findings.values() if finding.is_decided)
        finding = max(decided, key=lambda finding: finding.survives, default=None)
        if finding is None:
            return str(self.pair)
        by = f" by {finding.metric.label}" if len(self.findings) > 1 else ""
        new, base = self.pair.new, self.pair.base
        favours = finding.verdict.favours
        return (
            f"{new} beats {base}" if favours > 0 else f"{base} beats {new}" if favours else f"{new} and {base} tie"
        ) + by

    @property
    def network_held(self) -> bool:
        """False if all trials together show that the network was not the requested one."""
        return all(finding.network_held for finding in self.findings.values())

    @property
    def warnings(self) -> tuple[ComparisonWarning, ...]:
        """Every warning once; one that holds for a single metric names it."""
        counts = Counter(warning for finding in self.findings.values() for warning in finding.warnings)
        named = (
            warning if counts[warning] > 1 else replace(warning, message=f"{metric.label}: {warning.message}")
            for metric, finding in self.findings.items()
            for warning in finding.warnings
        )
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class Judgement:
    """Settled and open comparisons of a run."""

    rule: Rule
    lines: tuple[Line, ...]  # in the matrix's order
    checks: tuple[SelfCheckFinding, ...]
    open: tuple[Open, ...]
    dependence: Dependence  # of neighbouring blocks, over all comparisons of protocols

    @property
    def promising(self) -> list[Open]:
        """The open comparisons that more blocks may settle.

        Once the minimum is complete, not the CPU-bound ones, which are never sure.
        """
        bound: dict[str, list[Pair]] = {}
        for line in self.lines:
            if line.is_cpu_bound:
                bound.setdefault(line.condition.id, []).append(line.pair)
        left = (item if item.missing else item.without(bound.get(item.condition.id, ())) for item in self.open)
        return [item for item in left if item.pairs]

    @property
    def compared(self) -> list[Line]:
        """The lines that compare protocols."""
        return [line for line in self.lines if not line.pair.is_check]

    @property
    def pairs(self) -> list[Pair]:
        """Every comparison of protocols once, in the matrix's order."""
        return list(dict.fromkeys(line.pair for line in self.compared))

    @property
    def other_metrics(self) -> list[Metric]:
        """The judged metrics other than the primary ones, by which protocols are compared, each label once."""
        found = dict.fromkeys(finding.metric for line in self.compared for finding in line.others)
        longest = {each.label: each for each in sorted(found, key=lambda metric: len(metric.meaning))}
        return [longest[label] for label in dict.fromkeys(each.label for each in found)]


@dataclass(frozen=True, slots=True)
class _Cell:
    """Findings and intervals of one condition by one rule."""

    findings: list[Finding]
    intervals: Mapping[Pair, Mapping[Metric, Interval]]


class Judge:
    """Turns results into verdicts. Conditions without new results are not judged again.

    The blocks of a condition count in the order in which they began, each once all earlier ones have ended. In the
    order of their ends, slow blocks would come late, so that an early look would see a selection of them: if an arm has
    fast and slow times, three parallel blocks made 7 % of intervals ever wrong instead of 3 %, six of them 29 %.
    """

    def __init__(self, matrix: Matrix, results: Iterable[Result] = ()) -> None:
        self.matrix = matrix
        self._rows: dict[str, dict[int, dict[Arm, Result]]] = {}  # by condition id and block, the latest of each arm
        self._counted = Counter[str]()  # by condition id: ended blocks, from the first on without a gap
        self._looks: list[str] = []  # condition of each counted block, in the order in which they came to count
        self._settlements: dict[Rule, Settlement] = {}
        self._cells: dict[str, dict[Rule, _Cell]] = {}
        self.tell(results)

    def tell(self, results: Iterable[Result]) -> None:
        """Take in results; a later attempt replaces an earlier one.

        They count in the order in which they ended, as during the run: what is settled first depends on it.
        """
        for result in sorted(results, key=lambda each: max(each.started_at, each.ended_at)):
            block = result.trial.block
            row = self._rows.setdefault(block.condition.id, {}).setdefault(block.index, {})
            if block.index < self._counted[block.condition.id]:  # it runs again, which voids its earlier claims
                self._settlements.clear()
            row[result.trial.arm] = in_short(result)
            self._count(block)
            self._cells.pop(block.condition.id, None)

    def _count(self, block: Block) -> None:
        """Count the blocks of this block's condition that now have ended."""
        name = block.condition.id
        while (row := self._rows[name].get(self._counted[name])) and has_ended(row):
            self._counted[name] += 1
            self._looks.append(name)

    def judgement(
        self,
        block_s: BlockSeconds,
        *,
        complete: bool,
        exhausted: bool,
        doubts: Mapping[str, Sequence[str]] | None = None,
    ) -> Judgement:
        """The judgement of the results so far. `complete`: all planned blocks have run; `exhausted`: no more will come.

        Intervals of a matrix with a fixed number of blocks hold only once it is complete. An open comparison is
        undecided until the run is exhausted, and inconclusive then. `block_s` returns the seconds that one more block
        costs; `doubts` has, by condition id, deviations of its network.
        """
        rule = rule_of(self.matrix, complete=complete)
        cells = self._judged(rule)
        every = [finding for cell in cells.values() for finding in cell.findings]
        held = self._held(cells, rule)
        findings = doubted(standing(every, held, rule, exhausted=exhausted), doubts or {})
        lines = []
        for (name, pair), group in groupby(findings, key=lambda finding: (finding.condition.id, finding.pair)):
            by_metric = {finding.metric: finding for finding in group}
            condition = next(iter(by_metric.values())).condition
            lines.append(Line(condition, pair, by_metric, cells[name].intervals[pair]))
        left = self._open(cells, held, rule, block_s) if self.matrix.repeat.is_adaptive else []
        alike = dependence([f.bounds for f in cell.findings if not f.pair.is_check] for cell in cells.values())
        return Judgement(rule, tuple(lines), tuple(self_checks(findings, rule)), tuple(left), alike)

    def _open(
        self, cells: Mapping[str, _Cell], held: Mapping[Key, Claim], rule: Rule, block_s: BlockSeconds
    ) -> list[Open]:
        """Every condition with comparisons that are not settled, in the matrix's order."""
        findings = {name: cell.findings for name, cell in cells.items()}
        return still_open(self.matrix, findings, held, self._rows, rule, block_s)

    def _held(self, cells: Mapping[str, _Cell], rule: Rule) -> Mapping[Key, Claim]:
        """The settled claims: block by block, in the order of the run; at once if the number of blocks was fixed."""
        if not rule.anytime:
            return held_at_once([finding for cell in cells.values() for finding in cell.findings])
        protocols = {name: [f for f in cell.findings if not f.pair.is_check] for name, cell in cells.items()}
        settlement = self._settlements.setdefault(rule, Settlement(sum(map(len, protocols.values()))))
        rows = Counter(self._looks[: settlement.looks])
        for name in self._looks[settlement.looks :]:
            settlement.look(protocols.get(name, ()), rows[name])
            rows[name] += 1
        return settlement.held

    def _judged(self, rule: Rule) -> dict[str, _Cell]:
        """The judged conditions of the matrix by id, in its order."""
        for condition in self.matrix.conditions:
            known = self._cells.setdefault(condition.id, {})
            if rule not in known:
                known[rule] = self._cell(condition, rule)
        return {condition.id: self._cells[condition.id][rule] for condition in self.matrix.conditions}

    def _cell(self, condition: Condition, rule: Rule) -> _Cell:
        rows = {index: row for index, row in self.rows_of(condition.id).items()
                if index < self._counted[condition.id] or has_ended(row)}  # fmt: skip
        intervals = {
            pair: {metric: interval_of(*columns_of(rows, pair, metric).bounds, rule)
                   for metric in compared_beside(self.matrix, condition, pair)}
            for pair in pairs_of(self.matrix, condition)
        }  # fmt: skip
        return _Cell(find_in(self.matrix, condition, rows, rule), intervals)

    def rows_of(self, name: str) -> Rows:
        """The blocks of a condition, by its id, in the order in which they began."""
        return dict(sorted(self._rows.get(name, {}).items()))

    def counted_rows(self, name: str) -> Rows:
        """The blocks of a condition that count. A look during a run must not see quick blocks sooner than slow ones."""
        return dict(islice(self.rows_of(name).items(), self._counted[name]))


def in_short(result: Result) -> Result:
    """The result without samples, counters and other data that verdicts do not need: all results stay in memory.

    A single check shows whether its proof passed.
    """
    checks = result.proof.checks
    failed = tuple(check for check in checks if not check.passed)
    proof = Proof((failed or checks)[:1], {}, result.proof.warnings)
    return replace(result, proof=proof, samples={}, command="", phases_s={})
