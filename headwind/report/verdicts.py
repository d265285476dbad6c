"""Verdicts in words, the winner first: the same in the page, in the terminal and in the files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from headwind.arm import PLAIN, Arm
from headwind.format import NOTHING, about, arm_name, counted, enumerated, setting
from headwind.metric import Metric
from headwind.model import Condition, Matrix
from headwind.report.certainty import Certainty, certainty_of, most_apart, verdict_of
from headwind.run.data import RunData
from headwind.verdicts.assumptions import Dependence
from headwind.verdicts.findings import FALSE_SHARE, Finding, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.outlook import Outlook
from headwind.verdicts.pairs import Pair
from headwind.verdicts.pending import Open
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule, Top, Verdict, winner

NO_BLOCK = "has no complete block"
LEAST_FOR_FORECAST = 2  # blocks
USUAL_MARGIN = 1 + Rule().margin_ratio
HUNDREDS = 100  # blocks that a forecast calls hundreds, at least
MARKS = {Certainty.SURE: "\N{CHECK MARK}", Certainty.LIKELY: "likely:", Certainty.UNCLEAR: "unclear:"}


def _ahead(finding: Finding) -> int:
    """1 if the candidate is ahead or neither is, -1 if the baseline is: by the verdict, the interval, the estimate."""
    interval = finding.comparison.interval
    is_behind = interval.high < 0 or (interval.low <= 0 and (interval.estimate or 0.0) < 0)
    return finding.verdict.favours or (-1 if is_behind else 1)


def sides(finding: Finding) -> tuple[Arm, Arm]:
    """The arms, the leading one first according to the data; the candidate first if neither leads."""
    pair = finding.pair
    return (pair.base, pair.new) if _ahead(finding) < 0 else (pair.new, pair.base)


def is_own(rival: Arm, winner: Arm) -> bool:
    """True if a rival is a variant of the winner: the same protocol with other settings."""
    return winner in PLAIN and rival not in PLAIN and rival.protocol is winner.protocol


def leader(finding: Finding) -> Arm | None:
    """The leading arm, if the lead is sure or likely."""
    return sides(finding)[0] if verdict_of(finding).favours else None


def claim_text(finding: Finding) -> str:
    """The claim: `HTTP/3 beats HTTP/2`, `HTTP/3 and HTTP/2 likely tie`, `HTTP/3 against HTTP/2: unclear`."""
    certainty, verdict = certainty_of(finding), verdict_of(finding)
    is_tie = verdict is Verdict.TIE
    first, second = map(arm_name, sides(finding))
    if certainty is Certainty.UNCLEAR:
        return f"{first} against {second}: {certainty}"
    likely = certainty.hedge
    return f"{first} and {second} {likely}tie" if is_tie else f"{first} {likely}beats {second}"


def lead_text(finding: Finding) -> str:
    """The lead of the first of `sides`: `1.2x [1.1, 1.3]`, with its unfinished trials as in `stalled_text`."""
    return ", ".join(filter(None, (ahead_text(finding), stalled_text(finding))))


def lead_size(finding: Finding) -> float:
    """Distance of the estimate from 1, as ln; infinite without an estimate."""
    estimate = finding.comparison.interval.estimate
    return math.inf if estimate is None else abs(estimate)


def ahead_text(finding: Finding) -> str:
    """The lead of the first of `sides`: `1.23x [1.10, 1.34]`, or `at least 1.18x faster` if only that is known.

    For a verdict about completion, how often both finished.
    """
    completion = finding.comparison.completion
    if finding.verdict.is_completion:
        finished = sorted((completion.new_finished, completion.base_finished), reverse=True)
        return f"finished {finished[0]} against {finished[1]} of {completion.n}"
    return ratio_text(toward(finding.comparison.interval, _ahead(finding)))


def range_text(ratios: Iterable[float]) -> str:
    """A range of ratios: `1.2x to 2.3x`."""
    ends = sorted(ratios)
    return " to ".join(dict.fromkeys(f"{two(ratio)}x" for ratio in (ends[0], ends[-1])))


def stalled_text(finding: Finding) -> str:
    """Unfinished trials of both arms if the faster one has some: `unfinished trials: HTTP/3: 3 of 60, HTTP/2: 5 of 60`.

    Arms without any are not named.
    """
    completion = finding.comparison.completion
    stalls = 0 if finding.verdict.is_completion else completion.stalled(finding.verdict.favours)
    if not stalls:
        return ""
    counts = zip(sides(finding), (stalls, completion.stalled(-finding.verdict.favours)), strict=True)
    return f"unfinished trials: {_of_blocks(counts, completion.n)}"


def withheld_text(finding: Finding) -> str:
    """Why a lead or a tie does not count: `no verdict: HTTP/3 left 3 of 24 trials unfinished`; empty if it counts."""
    withheld, completion = finding.comparison.withheld, finding.comparison.completion
    if withheld is None or not withheld.says_something:
        return ""
    side = withheld.favours or (1 if completion.stalled(1) > completion.stalled(-1) else -1)
    arm = finding.pair.new if side > 0 else finding.pair.base
    return f"no verdict: {arm_name(arm)} left {completion.stalled(side)} of {completion.n} trials unfinished"


def _of_blocks(counts: Iterable[tuple[Arm, int]], blocks: int) -> str:
    """Numbers of trials by arm: `HTTP/3: 3 of 60, HTTP/2: 5 of 60`; without arms that have none."""
    return ", ".join(f"{arm_name(arm)}: {count} of {blocks}" for arm, count in counts if count)


def toward(interval: Interval, side: int) -> Interval:
    """The interval as the lead of the candidate (side 1) or of the baseline (-1)."""
    if side >= 0:
        return interval
    return replace(interval, low=-interval.high, high=-interval.low,
                   estimate=None if interval.estimate is None else -interval.estimate)  # fmt: skip


def ahead(interval: Interval) -> Interval:
    """The interval as the lead of the arm whose estimate is ahead: at 1 or above."""
    return toward(interval, -1 if (interval.estimate or 0.0) < 0 else 1)


def ratio_text(interval: Interval) -> str:
    """A lead: `1.23x [1.10, 1.34]`; if unfinished trials leave it open, its range as in `possible_text`."""
    if interval.has_estimate:
        return interval_text(interval)
    return possible_text(interval) if interval.n else NOTHING


def interval_text(interval: Interval) -> str:
    """A ratio with its interval: `1.23x [1.18, 1.29]`; open ends are shown as such, a dash without blocks."""
    if not interval.n:
        return "\N{EM DASH}"
    estimate, low, high = interval.ratios
    centre = "?" if estimate is None else f"{_within(estimate, low, high)}x"
    return f"{centre} [{end(low) if low > 0 else '0'}, {end(high)}]"


def _within(estimate: float, low: float, high: float) -> str:
    """The estimate as `two`, or as `end` if `two` would round it out of the interval."""
    short = two(estimate)
    is_outside = math.isfinite(estimate) and estimate < 9.995 and not low <= float(short) <= high
    return end(estimate) if is_outside else short


def two(ratio: float) -> str:
    """A ratio to two decimals, from 10 on to none."""
    if not math.isfinite(ratio):
        return "\N{INFINITY}"
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:,.0f}"


def end(ratio: float) -> str:
    """As `two`, for an end of an interval: with up to four decimals if two would move it across 1 or the usual margin.

    So `1.05` is never more than the default margin of 1.05, and 1.052 is not shown as `1.05`.
    """
    for digits in (2, 3, 4) if ratio < 9.995 else ():
        text = f"{ratio:.{digits}f}"
        if _side(float(text)) == _side(ratio):
            return text
    return two(ratio)


def _side(ratio: float) -> tuple[bool, ...]:
    """On which side of 1, and of the default margin or its inverse, a ratio is."""
    return ratio > USUAL_MARGIN, ratio < 1 / USUAL_MARGIN, ratio > 1, ratio < 1


def finding_text(finding: Finding) -> str:
    """Certainty, leader and lead: `sure: h3 1.23x [1.18, 1.29]`, `unclear: only 3 blocks`.

    An unclear one has the largest possible differences: `unclear: h3 1.02x faster (1.09x slower to 1.19x faster)`.
    """
    certainty = certainty_of(finding)
    n = finding.comparison.interval.n
    needs = finding.rule.blocks_needed(n)
    if certainty is Certainty.UNCLEAR and n < needs:
        return f"{certainty}: {few_text(n)}"
    if certainty is Certainty.UNCLEAR:
        ratio = ahead_text(finding).partition(" [")[0]
        reach, interval = reach_text(finding, lambda arm: arm.name) or apart_text(finding), finding.comparison.interval
        if interval.estimate is not None and interval.has_estimate:
            name, word = finding.pair.new.name, "slower" if interval.estimate < 0 else "faster"
            middle = "equal in the median" if is_equal(interval) else f"{ratio} {word}"
            reach = f"{name} {middle} ({reach.removeprefix(f'{name} is ')})"
        return f"{certainty}: {', '.join(filter(None, (reach, stalled_text(finding))))}"
    who = "tie" if verdict_of(finding) is Verdict.TIE else sides(finding)[0].name
    return f"{certainty}: {who} {lead_text(finding)}"


def is_equal(interval: Interval) -> bool:
    """True if the estimate reads `1.00x`, so that it favours neither side."""
    return interval.estimate is not None and two(math.exp(abs(interval.estimate))) == "1.00"


def few_text(blocks: int) -> str:
    """Fewer blocks than an interval needs: `only 3 blocks`, `no data`."""
    return f"only {counted(blocks, 'block')}" if blocks else "no data"


def apart_text(finding: Finding) -> str:
    """The largest difference that the interval leaves open: `at most 1.19x`."""
    most, completion = most_apart(finding.comparison.interval), finding.comparison.completion
    if math.isinf(most):
        is_unfinished = min(completion.new_finished, completion.base_finished) < completion.n
        return f"anything is possible{', because trials did not finish' if is_unfinished else ''}"
    looks_as_margin = two(most) == two(1 + finding.rule.margin_ratio)  # 1.046 and 1.054 are not alike
    return f"at most {f'{most:.3f}' if looks_as_margin else two(most)}x"


def reach_text(finding: Finding, name: Callable[[Arm], str] = arm_name) -> str:
    """The candidate with its possible range: `HTTP/3 is 1.70x slower to 1.39x faster`; empty if nothing is excluded."""
    interval = finding.comparison.interval
    is_limited = math.isfinite(interval.low) or math.isfinite(interval.high)
    return f"{name(finding.pair.new)} is {possible_text(interval)}" if is_limited else ""


def possible_text(lead: Interval) -> str:
    """The range that an interval leaves possible: `1.18x slower to 1.03x faster`, `1.01x to 1.04x faster`."""
    low, high = lead.low, lead.high
    if low > 0 or high < 0:
        (least, most), word = sorted((abs(low), abs(high))), "faster" if low > 0 else "slower"
        if math.isinf(least):  # the other's values are 0, such as of blocked streams
            return f"{word} by any factor"
        return f"{times(least)} to {times(most)} {word}" if math.isfinite(most) else f"at least {times(least)} {word}"
    ends = [(abs(each), word) for each, word in ((low, "slower"), (high, "faster")) if math.isfinite(each)]
    reached = [f"{times(each)} {word}" for each, word in ends if f"{math.exp(each):.4f}" != "1.0000"]
    if len(ends) < 2:
        if reached:
            is_fast = math.isinf(high)
            return f"at most {reached[0]}, or {'faster' if is_fast else 'slower'} by any factor"
        return f"not {ends[0][1]}" if ends else "anything is possible"
    return " to ".join(reached) if reached[1:] else f"at most {reached[0]}" if reached else "equal"


def times(log_ratio: float) -> str:
    """The end of an interval from its logarithm: `1.23x`."""
    return f"{end(math.exp(log_ratio))}x"


def pair_text(pair: Pair, interval: Interval, rule: Rule, name: Callable[[Arm], str] = attrgetter("name")) -> str:
    """Like `finding_text`, for a metric without verdicts: the leader by the estimate, and the lead."""
    if interval.n < fewest_blocks(rule.confidence, rule.anytime):
        return NOTHING
    behind = (interval.estimate or 0.0) < 0
    named = interval.estimate is not None and math.isfinite(interval.estimate)
    who = f"{name(pair.base if behind else pair.new)} " if named else ""
    return f"{who}{ratio_text(ahead(interval))}"


def short_text(finding: Finding) -> str:
    """Like `finding_text`, for a cell of a grid: `h3 1.23x`, `likely: h3 1.03x`, `tie`, `unclear: at most 1.19x`."""
    certainty = certainty_of(finding)
    glyph = "" if certainty is Certainty.SURE else f"{certainty}: "
    n = finding.comparison.interval.n
    if certainty is Certainty.UNCLEAR:
        return f"{glyph}{few_text(n) if n < finding.rule.blocks_needed(n) else apart_text(finding)}"
    if verdict_of(finding) is Verdict.TIE:
        return f"{glyph}tie"
    lead = ahead_text(finding).partition(" [")[0]
    return f"{glyph}{sides(finding)[0].name} {lead}"


def cell_class(finding: Finding) -> str:
    """CSS classes of a verdict in a table: the leader and the certainty."""
    who = leader(finding)
    return f"{who.name if who else 'none'} {certainty_of(finding)}"


def metric_title(metric: Metric, conditions: Iterable[Condition], matrix: Matrix) -> str:
    """A metric's label, with the workloads of these conditions if they are not all of the matrix."""
    own, every = (dict.fromkeys(each.workload.name for each in some) for some in (conditions, matrix.conditions))
    return metric.label if len(own) == len(every) else f"{metric.label} ({enumerated(own)})"


def unfinished_text(line: Line) -> str:
    """Arms with unfinished trials: `HTTP/1.1: 3 of 9`; empty if all finished."""
    return _of_blocks(zip((line.pair.new, line.pair.base), line.unfinished, strict=True), line.blocks)


def open_text(item: Open, name: str) -> str:
    """Sentence on an open condition, by its `name`.

    Such as `clean: HTTP/3 against HTTP/2 is not sure by any metric; about 9 more blocks (likely 4 to 30), which take 4
    min`.
    """
    if not item.n:
        return f"{name} {NO_BLOCK}"
    pairs = item.counted
    verb, by = "is" if len(pairs) == 1 else "are", " by any metric" if len(item.judged) > 1 else ""
    checks = f"the self-check{'s' if len(pairs) > 1 else ''} " if item.is_of_checks else ""
    state = "without a result" if item.is_of_checks else f"not sure{by}"
    return f"{name}: {checks}{names_of(pairs)} {verb} {state}; {more_text(item)}"


def open_names(item: Open) -> list[str]:
    """The names of an open condition's comparisons, such as `HTTP/3 against HTTP/2`; those of self-checks say so."""
    check = "self-check " if item.is_of_checks else ""
    return [f"{check}{names_of([pair])}" for pair in item.counted]


def names_of(pairs: Iterable[Pair]) -> str:
    """The names of comparisons: `HTTP/3 against HTTP/1.1, and HTTP/3 against HTTP/2`."""
    names = [f"{arm_name(pair.new)} against {arm_name(pair.base)}" for pair in pairs]
    return f"{', '.join(names[:-1])}, and {names[-1]}" if names[1:] else "".join(names)


def has_forecast(item: Open) -> bool:
    """True if a condition has enough blocks for a forecast: its minimum, and not a single one."""
    return not item.missing and item.n >= LEAST_FOR_FORECAST


def more_text(item: Open) -> str:
    """`more_texts` as one text."""
    return "; ".join(more_texts(item))


def more_texts(item: Open) -> list[str]:
    """Forecast until all of a condition is sure: `about 9 more blocks (likely 4 to 30), which take 4 min`.

    Or its missing blocks.
    If one of its comparisons is probably settled earlier, that one's forecast comes first: it is the one by which
    the advice on resuming finds the condition that is settled soonest.
    """
    if not item.n:
        return [NO_BLOCK]
    if item.missing:
        return [f"{counted(item.missing, 'more block')} needed for the minimum"]
    if not has_forecast(item):
        return ["too few blocks for a forecast"]
    count = len(item.counted)
    if item.allows(item.first) and item.first.blocks != item.outlook.blocks:
        first = _forecast_text(item, item.first, f"{_by(item, item.first)} after ".lstrip(), is_limited=False)
        every = _forecast_text(item, item.outlook)
        return [f"the first probably sure {first}", f"{'both' if count == 2 else f'all {count}'} comparisons: {every}"]
    by = _by(item, item.outlook) if item.outlook.blocks is not None else ""
    every = "all " if count > 1 else ""
    text = _forecast_text(item, item.outlook, f"{every}probably sure{by} after " if by else "")
    return [f"needs {text}" if text.startswith("at least") else text]


def _by(item: Open, outlook: Outlook) -> str:
    return f" by {outlook.metric.label}" if outlook.metric and len(item.judged) > 1 else ""


def _forecast_text(item: Open, outlook: Outlook, aim: str = "", *, is_limited: bool = True) -> str:
    """A forecast, with its aim in front, and with the matrix's limit if that may be too low."""
    left = item.most - item.n
    allowed = f"only {left} more" if left > 0 else f"{item.most} in all"
    limit = f"{', but' if left > 0 else ';'} the matrix file allows {allowed}"
    if outlook.blocks is None:
        beyond = limit if (outlook.low or 0) > left else ""
        known = f"at least {outlook.low} more blocks, perhaps far more{beyond}"
        return known if outlook.low else "probably hundreds more blocks"
    range_ = f"likely {outlook.low} to {outlook.high or 'hundreds'}" if outlook.low != outlook.high else ""
    most = f"; the matrix file allows {left}" if is_limited and 0 < left < (outlook.high or HUNDREDS) else ""
    spread = f" ({range_}{most if item.allows(outlook) else ''})" if range_ else ""
    beyond = "" if item.allows(outlook) else limit
    raised = ": raise `max` in a new run" if item.n >= item.most else ""
    more = f"{aim}about {counted(outlook.blocks, 'more block')}{spread}"
    take = "takes" if outlook.blocks == 1 else "take"
    return f"{more}, which {take} {about(outlook.blocks * item.block_s)}{beyond}{raised}"


def without_forecast(data: RunData) -> list[str]:
    """Sentences on comparisons that are not sure, or not by the primary metric, and have no forecast."""
    return [*_cpu_bound(data), *_settled_by_others(data)]


def _cpu_bound(data: RunData) -> list[str]:
    """CPU-bound comparisons, which are likely at most."""
    found: dict[str, list[Pair]] = {}
    for line in data.judgement.compared:
        if line.is_cpu_bound:
            found.setdefault(data.matrix.name_of(line.condition), []).append(line.pair)
    return [
        f"{name}: {names_of(pairs)} {'is' if len(pairs) == 1 else 'are'} CPU-bound, so at most likely: measure again "
        "with fewer other programs, or on more CPUs"
        for name, pairs in found.items()
    ]


def _settled_by_others(data: RunData) -> list[str]:
    """Comparisons that get no separate blocks because another metric settled them, and how to settle the primary one.

    There is a sentence for each primary metric.
    """
    if not data.matrix.repeat.is_adaptive:
        return []
    left: dict[Metric, dict[str, list[Pair]]] = {}
    for line in data.judgement.compared:
        is_sure_by_other = any(certainty_of(finding) is Certainty.SURE for finding in line.others)
        if certainty_of(line.primary) is not Certainty.SURE and is_sure_by_other:
            found = left.setdefault(line.primary.metric, {})
            found.setdefault(data.matrix.name_of(line.condition), []).append(line.pair)
    return [
        f"No more blocks are planned for these comparisons, since another metric is sure ({metric.label} is not): "
        f"{'; '.join(f'{name} ({names_of(pairs)})' for name, pairs in found.items())}. To run until {metric.label} is "
        f"sure as well, start a new run with `judge: [{metric.key}]` in its matrix file."
        for metric, found in left.items()
    ]


def sure_text(rule: Rule) -> str:
    """The definition of "sure", the same everywhere, as docs/report.md has it."""
    margin = setting("margin_ratio", rule.margin_ratio)
    return f"a difference over {margin} or a tie, significant after correction for multiple comparisons"


def wrong_share() -> str:
    """The largest expected share of sure results that are wrong: "10 %"."""
    return setting("share_ratio", FALSE_SHARE)


def dependence_text(alike: Dependence) -> str:
    """Sentence on the dependence of neighbouring blocks, with its figure; empty if unknown."""
    if not alike.blocks:
        return ""
    figure = (
        f"lag-1 rank correlation {alike.correlation:.2f}, standard error {alike.error:.2f}, "
        f"{counted(alike.blocks, 'block')}"
    )
    if alike.is_excessive:
        return f"neighbouring blocks are correlated ({figure}): intervals are too narrow by {alike.too_narrow:.1f}x"
    return f"neighbouring blocks are not significantly correlated ({figure})"


def check_text(check: SelfCheckFinding, name: str) -> str:
    """A line about a self-check in the condition of this name, with its figures, and the noise floor if it is A/A."""
    finding = check.finding
    mark = {True: "passed", False: "FAILED", None: "open"}[check.passed]
    text = f"self-check {mark}: {name}, {finding.pair}: {check.message}; "
    interval = finding.comparison.interval
    if math.isfinite(interval.low) or math.isfinite(interval.high) or finding.verdict.is_completion:
        text += f"{sides(finding)[0].name} {lead_text(finding)}, "
    text += counted(finding.comparison.completion.n, "block")
    floor = check.noise_floor_ratio
    if floor is not None:
        text += f"; noise floor {end(1 + floor)}x" if math.isfinite(floor) else "; noise floor unknown"
    return text


def tops(verdicts: Judgement, arms: Sequence[str]) -> dict[str, Top]:
    """The best arms of each condition, by the primary metric and verdicts that survive e-BH over all comparisons."""
    found: dict[str, Top] = {}
    for name, lines in groupby(verdicts.compared, key=lambda line: line.condition.id):
        judged = {(line.pair.base.name, line.pair.new.name): line.primary.counted for line in lines}
        found[name] = winner(arms, judged)
    return found


def first_judged(lines: Iterable[Line]) -> str:
    """The primary metrics of comparisons: "total time"."""
    return " or ".join(dict.fromkeys(line.primary.metric.label for line in lines))


def others_shown(lines: Iterable[Line]) -> str:
    """Sentence on the metrics that a table of results shows next to the primary one."""
    first = first_judged(lines)
    return f"The table adds another metric only where that metric is more certain than {first}, or contradicts it."


def others_judged(lines: Iterable[Line]) -> str:
    """The other judged metrics: "mean completion time and median time per request"; empty if there are none."""
    labels = dict.fromkeys(finding.metric.label for line in lines for finding in line.others)
    return enumerated(labels) if labels else ""
