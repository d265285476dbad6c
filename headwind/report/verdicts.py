"""The verdicts of a run, as a table and as one sentence: the same in the page, in the terminal and in summary.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import groupby

from headwind.format import arm_name, counted, duration
from headwind.metric import Metric
from headwind.model import Arm, Protocol
from headwind.verdicts.findings import Finding, Pair, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.pending import Open
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule, Top, Verdict, winner


class Word(StrEnum):
    """How much is known of a comparison: the only words for it in the page, the terminal and the files."""

    BEATS = "beats"  # a difference that stands among all comparisons
    TIE = "tie"  # equality that does
    PERHAPS = "perhaps"  # either of them that does not, or is slight, or the machine's or another network's
    OPEN = "not decided"
    FEW = "too few blocks"  # for any verdict


MARKS = {
    Word.BEATS: "\N{BLACK UP-POINTING TRIANGLE}",
    Word.TIE: "=",
    Word.PERHAPS: "\N{WHITE UP-POINTING TRIANGLE}",
    Word.OPEN: "?",
    Word.FEW: "\N{HORIZONTAL ELLIPSIS}",
}


def word_of(finding: Finding, rule: Rule) -> Word:
    """How much is known of a comparison of protocols by one metric."""
    if finding.verdict.says_something:
        if not finding.survives:
            return Word.PERHAPS
        return Word.BEATS if finding.verdict.favours else Word.TIE
    return Word.FEW if finding.comparison.interval.n < fewest_blocks(rule.confidence, rule.anytime) else Word.OPEN


def word_class(word: Word | None) -> str:
    """How it looks: what is settled stands out."""
    return "settled" if word in (Word.BEATS, Word.TIE) else "unsettled"


def sides(finding: Finding) -> tuple[Arm, Arm]:
    """Who is ahead and who is behind; the candidate first where nobody is."""
    pair = finding.pair
    return (pair.base, pair.new) if finding.verdict.favours < 0 else (pair.new, pair.base)


def lead_text(finding: Finding) -> str:
    """How far ahead the leader is: `1.23x [1.10, 1.34]`, or `more than 1.18x` where unfinished trials leave it open.

    Where the verdict is about finishing, how often both did.
    """
    if finding.verdict.is_completion:
        completion = finding.comparison.completion
        finished = sorted((completion.new_finished, completion.base_finished), reverse=True)
        return f"finished {finished[0]} against {finished[1]} of {completion.n}"
    interval = toward(finding.comparison.interval, finding.verdict.favours)
    if interval.estimate is None or math.isinf(interval.estimate):
        return f"more than {_two(interval.ratios[1])}x"
    return interval_text(interval)


def toward(interval: Interval, favours: int) -> Interval:
    """The interval as seen from the side that is ahead: with candidate and baseline exchanged for the baseline's."""
    if favours >= 0:
        return interval
    return replace(interval, low=-interval.high, high=-interval.low,
                   estimate=None if interval.estimate is None else -interval.estimate)  # fmt: skip


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


def sentence(verdicts: Judgement) -> str:
    """What came of the run in plain words."""
    return " ".join(sentences(verdicts))


def sentences(verdicts: Judgement) -> list[str]:
    """One for each judged metric; verdicts count only where they survive e-BH over the matrix."""
    if not verdicts.pairs:
        return ["There is one protocol, so nothing to compare."]
    return [_by_metric(verdicts, metric) for metric in metrics_in(verdicts.compared)]


def metrics_in(lines: Iterable[Line]) -> list[Metric]:
    """Every judged metric of these lines once, a primary one first."""
    return list(dict.fromkeys(metric for line in lines for metric in line.findings))


def _by_metric(verdicts: Judgement, metric: Metric) -> str:
    lines = [line for line in verdicts.compared if metric in line.findings]
    parts = (
        f"{arm_name(pair.new)} against {arm_name(pair.base)}: "
        + _tally([line.findings[metric] for line in lines if line.pair == pair])
        for pair in dict.fromkeys(line.pair for line in lines)
    )
    return f"By {metric.label}, {'; '.join(parts)}."


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
    centre = "?" if estimate is None else f"{_two(estimate)}x"
    return f"{centre} [{_two(low) if low > 0 else '0'}, {_two(high)}]"


def _two(ratio: float) -> str:
    return f"{ratio:.2f}" if math.isfinite(ratio) else "\N{INFINITY}"


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


def tops(verdicts: Judgement, protocols: Sequence[Protocol]) -> dict[str, Top]:
    """Who is best in each condition, by the primary metric and verdicts that stand among all comparisons."""
    found: dict[str, Top] = {}
    for name, lines in groupby(verdicts.compared, key=lambda line: line.condition.id):
        judged = {(line.pair.base.value, line.pair.new.value): line.primary.counted for line in lines}
        found[name] = winner([protocol.value for protocol in protocols], judged)
    return found
