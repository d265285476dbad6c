"""Verdicts in words, the winner first: the same in the page, in the terminal and in the files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from headwind.arm import PLAIN, Arm
from headwind.format import NOTHING, about, arm_name, counted, enumerated, measured
from headwind.report.certainty import Certainty, certainty_of, most_apart, verdict_of
from headwind.verdicts.assumptions import Dependence
from headwind.verdicts.findings import Finding, Pair, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.outlook import Outlook
from headwind.verdicts.pending import Open
from headwind.verdicts.stats import Interval, fewest_blocks
from headwind.verdicts.verdict import Rule, Verdict
from headwind.verdicts.winner import Top, winner

LEAST_FOR_FORECAST = 2  # blocks
MARKS = {Certainty.SURE: "\N{CHECK MARK}", Certainty.LIKELY: "likely:", Certainty.UNCLEAR: "unclear:"}


def _ahead(finding: Finding) -> int:
    """1 if the candidate is ahead or neither is, -1 if the baseline is: by the verdict, the interval, the estimate."""
    interval = finding.comparison.interval
    is_behind = interval.high < 0 or (interval.low <= 0 and (interval.estimate or 0.0) < 0)
    return finding.verdict.favours or (-1 if is_behind else 1)


def sides(finding: Finding) -> tuple[Arm, Arm]:
    """Who is ahead and who is behind, as far as was seen; the candidate first where nobody is."""
    pair = finding.pair
    return (pair.base, pair.new) if _ahead(finding) < 0 else (pair.new, pair.base)


def is_own(rival: Arm, winner: Arm) -> bool:
    """Whether a rival is a variant of the winner: the same protocol with settings of its own."""
    return winner in PLAIN and rival not in PLAIN and rival.protocol is winner.protocol


def leader(finding: Finding, rule: Rule) -> Arm | None:
    """Who is ahead, if that is sure or at least likely."""
    return sides(finding)[0] if verdict_of(finding, rule).favours else None


def claim_text(finding: Finding, rule: Rule) -> str:
    """`HTTP/3 beats HTTP/2`, `HTTP/3 and HTTP/2 likely tie`, `HTTP/3 against HTTP/2: unclear`."""
    certainty, verdict = certainty_of(finding, rule), verdict_of(finding, rule)
    is_tie = verdict is Verdict.TIE
    first, second = map(arm_name, (finding.pair.new, finding.pair.base) if is_tie else sides(finding))
    if certainty is Certainty.UNCLEAR:
        return f"{first} against {second}: {certainty}"
    likely = "" if certainty is Certainty.SURE else f"{certainty} "
    return f"{first} and {second} {likely}tie" if is_tie else f"{first} {likely}beats {second}"


def lead_text(finding: Finding) -> str:
    """How far the first of `sides` is ahead, and how often not done: `1.2x [1.1, 1.3], HTTP/3 unfinished in 3 of 9`."""
    return ", ".join(filter(None, (ahead_text(finding), stalled_text(finding))))


def lead_size(finding: Finding) -> float:
    """How far from 1 the estimate is, as ln; infinite where there is none."""
    estimate = finding.comparison.interval.estimate
    return math.inf if estimate is None else abs(estimate)


def ahead_text(finding: Finding) -> str:
    """How far ahead the first of `sides` is: `1.23x [1.10, 1.34]`, or `at least 1.18x` where only that is known.

    Where the verdict is about finishing, how often both did.
    """
    completion = finding.comparison.completion
    if finding.verdict.is_completion:
        finished = sorted((completion.new_finished, completion.base_finished), reverse=True)
        return f"finished {finished[0]} against {finished[1]} of {completion.n}"
    return ratio_text(toward(finding.comparison.interval, _ahead(finding)))


def range_text(ratios: Iterable[float]) -> str:
    """`1.2x to 2.3x`."""
    ends = sorted(ratios)
    return " to ".join(dict.fromkeys(f"{two(ratio)}x" for ratio in (ends[0], ends[-1])))


def stalled_text(finding: Finding) -> str:
    """`HTTP/3 unfinished in 3 of 60`: in how many blocks the one who is ahead in speed was; empty for none."""
    completion = finding.comparison.completion
    stalls = 0 if finding.verdict.is_completion else completion.stalled(finding.verdict.favours)
    return f"{arm_name(sides(finding)[0])} unfinished in {stalls} of {completion.n}" if stalls else ""


def toward(interval: Interval, side: int) -> Interval:
    """The interval as the lead of the candidate (side 1) or of the baseline (-1)."""
    if side >= 0:
        return interval
    return replace(interval, low=-interval.high, high=-interval.low,
                   estimate=None if interval.estimate is None else -interval.estimate)  # fmt: skip


def ahead(interval: Interval) -> Interval:
    """The interval as the lead of the one whose estimate is ahead: at 1 or above."""
    return toward(interval, -1 if (interval.estimate or 0.0) < 0 else 1)


def ratio_text(interval: Interval) -> str:
    """`1.23x [1.10, 1.34]`; without an estimate, what unfinished trials leave of it."""
    if interval.has_estimate:
        return interval_text(interval)
    if interval.low > 0:
        return f"at least {two(interval.ratios[1])}x"
    return "left open by unfinished trials" if interval.n else NOTHING


def interval_text(interval: Interval) -> str:
    """`1.23x [1.18, 1.29]`; what is open is shown as such, and without blocks there is a dash."""
    if not interval.n:
        return "\N{EM DASH}"
    estimate, low, high = interval.ratios
    centre = "?" if estimate is None else f"{two(estimate)}x"
    return f"{centre} [{two(low) if low > 0 else '0'}, {two(high)}]"


def two(ratio: float) -> str:
    """A ratio to two decimals, from 10 on to none."""
    if not math.isfinite(ratio):
        return "\N{INFINITY}"
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:,.0f}"


def finding_text(finding: Finding, rule: Rule) -> str:
    """How sure, who is ahead and how far: `sure: h3 1.23x [1.18, 1.29]`, `unclear: 3 of 8 blocks`.

    What is unclear says how large a difference is possible: `unclear: h3 1.02x, h2 up to 1.09x, h3 up to 1.19x`.
    """
    certainty = certainty_of(finding, rule)
    n, needs = finding.comparison.interval.n, fewest_blocks(rule.confidence, rule.anytime)
    if certainty is Certainty.UNCLEAR and n < needs:
        return f"{certainty}: {n} of {counted(needs, 'block')}"
    if certainty is Certainty.UNCLEAR:
        ratio = ahead_text(finding).partition(" [")[0]
        seen = f"{sides(finding)[0].name} {ratio}" if finding.comparison.interval.has_estimate else ""
        reach = reach_text(finding, lambda arm: arm.name) or apart_text(finding)
        return f"{certainty}: {', '.join(filter(None, (seen, reach, stalled_text(finding))))}"
    who = "tie" if verdict_of(finding, rule) is Verdict.TIE else sides(finding)[0].name
    return f"{certainty}: {who} {lead_text(finding)}"


def apart_text(finding: Finding) -> str:
    """`at most 1.19x`: the largest difference that the interval leaves open."""
    most = most_apart(finding.comparison.interval)
    return f"at most {two(most)}x" if math.isfinite(most) else "no upper limit"


def reach_text(finding: Finding, name: Callable[[Arm], str] = arm_name) -> str:
    """How far each side may be ahead: `HTTP/1.1 up to 1.70x, HTTP/3 up to 1.39x`; empty if nothing is excluded.

    Of an interval that excludes 1 its ends: `HTTP/3 1.01x to 1.06x`.
    """
    interval, pair = finding.comparison.interval, finding.pair
    if not (math.isfinite(interval.low) or math.isfinite(interval.high)):
        return ""
    if interval.low > 0 or interval.high < 0:
        lead = toward(interval, _ahead(finding))
        return f"{name(sides(finding)[0])} {times(lead.low)} to {times(lead.high)}"
    return f"{name(pair.base)} {_up_to(-interval.low)}, {name(pair.new)} {_up_to(interval.high)}"


def _up_to(log_ratio: float) -> str:
    return f"up to {times(log_ratio)}" if math.isfinite(log_ratio) else "without limit"


def times(log_ratio: float) -> str:
    """`1.23x`, of a ratio's logarithm."""
    return f"{two(math.exp(log_ratio))}x" if math.isfinite(log_ratio) else "\N{INFINITY}"


def pair_text(pair: Pair, interval: Interval, rule: Rule) -> str:
    """As `finding_text`, of a metric that has no verdicts: who was seen ahead, and how far."""
    if interval.n < fewest_blocks(rule.confidence, rule.anytime):
        return NOTHING
    behind = (interval.estimate or 0.0) < 0
    named = interval.estimate is not None and math.isfinite(interval.estimate)
    who = f"{(pair.base if behind else pair.new).name} " if named else ""
    return f"{who}{ratio_text(ahead(interval))}"


def short_text(finding: Finding, rule: Rule) -> str:
    """As `finding_text`, for a cell of a grid: `h3 1.23x`, `likely: h3 1.03x`, `tie`, `unclear: at most 1.19x`."""
    certainty = certainty_of(finding, rule)
    glyph = "" if certainty is Certainty.SURE else f"{certainty}: "
    if certainty is Certainty.UNCLEAR:
        return f"{glyph}{apart_text(finding)}"
    if verdict_of(finding, rule) is Verdict.TIE:
        return f"{glyph}tie"
    lead = ahead_text(finding).partition(" [")[0]
    return f"{glyph}{sides(finding)[0].name} {lead}"


def cell_class(finding: Finding, rule: Rule) -> str:
    """How a verdict looks in a table: whose it is, and how sure."""
    who = leader(finding, rule)
    return f"{who.name if who else 'nobody'} {certainty_of(finding, rule)}"


def unfinished_text(line: Line) -> str:
    """`h1 3 of 9`, for the arms that did not always finish; empty where all did."""
    arms = zip((line.pair.new, line.pair.base), line.unfinished, strict=True)
    return ", ".join(f"{arm.name} {count} of {line.blocks}" for arm, count in arms if count)


def open_text(item: Open, name: str) -> str:
    """`clean is unclear (h3 against h2): about 9 more blocks (4 to 30), 4 min`; `name` is that of its condition."""
    if not item.n:
        return f"{name} is not run"
    labels = [f"by {metric.label}" for metric in item.undecided_by]
    by = f" {enumerated(labels)}" if len(labels) > 1 else ""
    lacks = [f"unclear{by} ({_names(item.undecided)})"] if item.undecided else []
    lacks += [f"likely, not sure ({_names(item.unconfirmed)})"] if item.unconfirmed else []
    return f"{name} is {' and '.join(lacks)}: {more_text(item)}"


def _names(pairs: Iterable[Pair]) -> str:
    return ", ".join(map(str, pairs))


def more_text(item: Open) -> str:
    """`about 9 more blocks (4 to 30), 4 min`: the forecast until all of a condition is settled.

    If that cannot be, but one of its comparisons can be settled, that one's forecast comes first.
    """
    if item.n < LEAST_FOR_FORECAST:
        return "too few blocks for a forecast"
    whole = _forecast_text(item, item.outlook)
    if item.allows(item.soonest) and not item.allows(item.outlook):
        return f"{_forecast_text(item, item.soonest)}, for the first; for all {whole}"
    return whole


def _forecast_text(item: Open, outlook: Outlook) -> str:
    if outlook.blocks is None:
        return "probably never: it would take hundreds of blocks more"
    spread = f" ({outlook.low} to {outlook.high or 'hundreds'})" if outlook.low != outlook.high else ""
    raised = "repeat" if item.is_fixed else "max"
    beyond = "" if item.allows(outlook) else f"; the matrix allows {item.most} in all: raise `{raised}`"
    return f"about {counted(outlook.blocks, 'more block')}{spread}, {about(outlook.blocks * item.block_s)}{beyond}"


def dependence_text(alike: Dependence) -> str:
    """What neighbouring blocks have to do with each other, with its figure; empty where nothing can be told."""
    if not alike.blocks:
        return ""
    figure = (
        f"lag-1 rank correlation {alike.correlation:.2f} \N{PLUS-MINUS SIGN} {alike.error:.2f} over "
        f"{counted(alike.blocks, 'block')}"
    )
    if alike.is_excessive:
        return (
            f"neighbouring blocks resemble each other ({figure}): intervals are too narrow by {alike.too_narrow:.1f}x"
        )
    return f"neighbouring blocks do not resemble each other more than chance allows ({figure})"


def check_text(check: SelfCheckFinding, name: str) -> str:
    """One line about a self-check in the condition of this name, with its figures, and the noise floor if it is A/A."""
    finding = check.finding
    mark = {True: "passed", False: "FAILED", None: "open"}[check.passed]
    text = f"self-check {mark}: {name}, {finding.pair}: {check.message}; "
    interval = finding.comparison.interval
    if math.isfinite(interval.low) or math.isfinite(interval.high) or finding.verdict.is_completion:
        text += f"{sides(finding)[0].name} {lead_text(finding)}, "
    text += counted(finding.comparison.completion.n, "block")
    floor = check.noise_floor_ratio
    if floor is not None:
        text += f"; noise floor {measured('floor_ratio', floor)}" if math.isfinite(floor) else "; noise floor unknown"
    return text


def tops(verdicts: Judgement, arms: Sequence[str]) -> dict[str, Top]:
    """Who is best in each condition, by the primary metric and verdicts that stand among all comparisons."""
    found: dict[str, Top] = {}
    for name, lines in groupby(verdicts.compared, key=lambda line: line.condition.id):
        judged = {(line.pair.base.name, line.pair.new.name): line.primary.counted for line in lines}
        found[name] = winner(arms, judged)
    return found


def first_judged(lines: Iterable[Line]) -> str:
    """What comparisons go by first: "total time"."""
    return " or ".join(dict.fromkeys(line.primary.metric.label for line in lines))


def others_judged(lines: Iterable[Line]) -> str:
    """What is judged besides: "median time per request"; empty where nothing is."""
    return ", ".join(dict.fromkeys(finding.metric.label for line in lines for finding in line.others))
