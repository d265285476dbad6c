"""The verdicts of a run, as a table and as one sentence: the same in the page, in the terminal and in summary.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from headwind.findings import (
    JUDGED,
    METRIC_NAMES,
    TAIL,
    TOTAL,
    Finding,
    Pair,
    SelfCheckFinding,
    columns_of,
    doubted,
    find,
    rows_of,
    rule_of,
    self_checks,
)
from headwind.forecast import Forecast
from headwind.format import arm_name, counted, duration
from headwind.model import Condition, Protocol
from headwind.pursuit import block_seconds
from headwind.record import State
from headwind.report.data import RunData
from headwind.soundness import Caveat
from headwind.stats import Interval, ratio_interval
from headwind.undecided import Open, still_open
from headwind.verdict import Rule, Top, Verdict, winner

SYMBOLS = {
    Verdict.COMPLETES_MORE: "\N{BLACK UP-POINTING TRIANGLE}",
    Verdict.COMPLETES_LESS: "\N{BLACK DOWN-POINTING TRIANGLE}",
    Verdict.FASTER: "\N{BLACK UP-POINTING TRIANGLE}",
    Verdict.SLOWER: "\N{BLACK DOWN-POINTING TRIANGLE}",
    Verdict.TIE: "=",
    Verdict.SLIGHTLY_FASTER: "\N{WHITE UP-POINTING TRIANGLE}",
    Verdict.SLIGHTLY_SLOWER: "\N{WHITE DOWN-POINTING TRIANGLE}",
    Verdict.INCONCLUSIVE: "?",
    Verdict.UNDECIDED: "\N{HORIZONTAL ELLIPSIS}",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison in one condition: both judged findings, the tail beside them, and how many trials failed."""

    condition: Condition
    pair: Pair
    findings: Mapping[str, Finding]  # by metric
    tail: Interval

    @property
    def blocks(self) -> int:
        """In which both arms gave data."""
        return self.findings[TOTAL].comparison.completion.n

    @property
    def unfinished(self) -> tuple[int, int]:
        """Trials of the candidate and of the baseline, of `blocks` each, that did not do their work."""
        completion = self.findings[TOTAL].comparison.completion
        return completion.n - completion.new_finished, completion.n - completion.base_finished

    @property
    def is_decided(self) -> bool:
        """By one of the metrics."""
        return any(self.findings[metric].is_decided for metric in self.pair.metrics)

    @property
    def network_held(self) -> bool:
        """False where all trials together say that the network was not the requested one."""
        return all(finding.network_held for finding in self.findings.values())

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Every warning once; one that holds for a single metric names it."""
        said = Counter(caveat for finding in self.findings.values() for caveat in finding.caveats)
        named = (
            caveat if said[caveat] > 1 else replace(caveat, message=f"{METRIC_NAMES[metric]}: {caveat.message}")
            for metric, finding in self.findings.items()
            for caveat in finding.caveats
        )
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Everything that a run decided, and what it left open."""

    rule: Rule
    lines: tuple[Line, ...]  # protocols, in the matrix's order
    checks: tuple[SelfCheckFinding, ...]
    open: tuple[Open, ...]

    @classmethod
    def of(cls, data: RunData) -> Verdicts:
        """Judge a run as far as it went. While it runs, what is open is undecided; afterwards it is inconclusive."""
        matrix, running = data.matrix, data.status.state is State.RUNNING
        complete = data.status.state is State.FINISHED
        rule = rule_of(matrix, complete=complete)
        findings = doubted(find(matrix, data.latest, complete=complete, exhausted=not running), network_doubts(data))
        rows = rows_of(data.latest)
        lines = []
        for (_, pair), group in groupby(findings, key=lambda finding: (finding.condition.id, finding.pair)):
            members = {finding.metric: finding for finding in group}
            condition = members[TOTAL].condition
            columns = columns_of(rows.get(condition.id, {}), pair, TAIL)
            tail = ratio_interval(*columns.bounds, rule.confidence, rule.anytime)
            lines.append(Line(condition, pair, members, tail))
        costs = block_seconds(matrix, Forecast(matrix.timeout_s, data.latest))
        left = still_open(matrix, data.latest, costs) if matrix.repeat.is_adaptive else []
        return cls(rule, tuple(lines), tuple(self_checks(findings, rule)), tuple(left))

    @property
    def compared(self) -> list[Line]:
        """The lines that compare protocols."""
        return [line for line in self.lines if not line.pair.is_check]

    @property
    def pairs(self) -> list[Pair]:
        """Every comparison of protocols once, in the matrix's order."""
        return list(dict.fromkeys(line.pair for line in self.compared))


def network_doubts(data: RunData) -> dict[str, list[str]]:
    """By condition, what its trials together found wrong with its network; conditions without a finding are absent."""
    found: dict[str, list[str]] = {}
    for question in data.pooled:
        if not question.passed:
            found.setdefault(question.condition.id, []).append(question.text)
    return found


def sentence(verdicts: Verdicts) -> str:
    """What came of the run in plain words."""
    return " ".join(sentences(verdicts))


def sentences(verdicts: Verdicts) -> list[str]:
    """One for each judged metric; verdicts count only where they survive e-BH over the matrix."""
    if not verdicts.pairs:
        return ["There is one protocol, so nothing to compare."]
    return [_by_metric(verdicts, metric) for metric in JUDGED]


def _by_metric(verdicts: Verdicts, metric: str) -> str:
    parts = (
        f"{arm_name(pair.new)} against {arm_name(pair.base)}: "
        + _tally([line.findings[metric] for line in verdicts.compared if line.pair == pair])
        for pair in verdicts.pairs
    )
    return f"By {METRIC_NAMES[metric]}, {'; '.join(parts)}."


def _tally(findings: Sequence[Finding]) -> str:
    counts = Counter(map(_word, findings))
    order = (
        "completes more often", "faster", "tie", "slower", "completes less often", "perhaps faster", "perhaps tie",
        "perhaps slower", "not decided",
    )  # fmt: skip
    told = ", ".join(f"{word} in {counts[word]}" for word in order if counts[word])
    return f"{told} of {counted(len(findings), 'condition')}"


def _word(finding: Finding) -> str:
    """Perhaps: slight, or processor-bound, or it would not survive among all comparisons. The matrix shows it pale."""
    verdict = finding.verdict
    if not verdict.says_something:
        return "not decided"
    side = {1: "faster", 0: "tie", -1: "slower"}[verdict.favours]
    if not finding.survives:
        return f"perhaps {side}"
    return verdict.value if verdict.is_completion else side


def ratio_text(finding: Finding) -> str:
    """`1.23x [1.18, 1.29]`, or how often both finished where that is the verdict."""
    completion = finding.comparison.completion
    if finding.verdict.is_completion:
        return f"finished {completion.new_finished} against {completion.base_finished} of {completion.n}"
    return interval_text(finding.comparison.interval)


def interval_text(interval: Interval) -> str:
    """`1.23x [1.18, 1.29]`; what is open is shown as such, and without blocks there is a dash."""
    if not interval.n:
        return "\N{EM DASH}"
    estimate, low, high = interval.ratios
    centre = "?" if estimate is None else f"{estimate:.2f}x"
    ends = f"{low:.2f}" if low > 0 else "0", f"{high:.2f}" if math.isfinite(high) else "\N{INFINITY}"
    return f"{centre} [{ends[0]}, {ends[1]}]"


def finding_text(finding: Finding) -> str:
    """Symbol, ratio and interval; `~` where a verdict would not survive e-BH over the matrix."""
    doubt = "~" if finding.verdict.says_something and not (finding.survives or finding.pair.is_check) else ""
    return f"{SYMBOLS[finding.verdict]}{doubt} {ratio_text(finding)}"


def cell_class(finding: Finding) -> str:
    """How a verdict looks in the matrix: who is ahead, and how far the verdict carries."""
    if not finding.verdict.says_something:
        return "open"
    side = {1: "ahead", 0: "tie", -1: "behind"}[finding.verdict.favours]
    return f"{side} {'survives' if finding.survives else 'pale'}"


def unfinished_text(line: Line) -> str:
    """`h1 3 of 9`, for the arms that did not always finish; empty where all did."""
    arms = zip((line.pair.new, line.pair.base), line.unfinished, strict=True)
    return ", ".join(f"{arm.value} {count} of {line.blocks}" for arm, count in arms if count)


def open_text(item: Open) -> str:
    """`clean/article is not decided after 60 blocks (h3 against h2): about 9 more blocks (4 to 30), 4 min`."""
    blocks, lacks = counted(item.n, "block"), []
    if item.undecided:
        lacks.append(f"not decided after {blocks} ({_names(item.undecided)})")
    if item.unconfirmed:
        after = "" if item.undecided else f" after {blocks}"
        lacks.append(f"not yet sure among all comparisons{after} ({_names(item.unconfirmed)})")
    return f"{item.condition.id} is {' and '.join(lacks)}: {_more(item)}"


def _names(pairs: Iterable[Pair]) -> str:
    return ", ".join(map(str, pairs))


def _more(item: Open) -> str:
    outlook = item.outlook
    if outlook.blocks is None:
        return "hundreds of blocks more, so probably never"
    spread = f" ({outlook.low} to {outlook.high or 'hundreds'})" if outlook.low != outlook.high else ""
    beyond = f"; the matrix allows {item.most}" if item.n + outlook.blocks > item.most else ""
    return f"about {counted(outlook.blocks, 'more block')}{spread}, {duration(outlook.blocks * item.block_s)}{beyond}"


def check_text(check: SelfCheckFinding) -> str:
    """One line about a self-check, with its figures, and the noise floor where it is A/A."""
    finding = check.finding
    mark = {True: "passed", False: "FAILED", None: "open"}[check.passed]
    text = f"self-check {mark}: {finding.condition.id}, {finding.pair}: {check.message}; "
    text += f"{ratio_text(finding)} n={finding.comparison.completion.n}"
    floor = check.noise_floor_ratio
    if floor is not None:
        text += f"; noise floor {floor:.1%}" if math.isfinite(floor) else "; noise floor unknown"
    return text


def tops(verdicts: Verdicts, protocols: Sequence[Protocol]) -> dict[str, Top]:
    """Who is best in each condition, by total time and verdicts that stand among all comparisons."""
    found: dict[str, Top] = {}
    for name, lines in groupby(verdicts.compared, key=lambda line: line.condition.id):
        judged = {(line.pair.base.value, line.pair.new.value): line.findings[TOTAL].counted for line in lines}
        found[name] = winner([protocol.value for protocol in protocols], judged)
    return found
