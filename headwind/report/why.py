"""Why one arm was faster than another, as far as what was counted accounts for it. Pure.

A cause is named only where the figures carry it, block by block: what the slower arm lost by it is between three and
five quarters of what it lost in all, and without it at most a quarter of the difference is left in the median block.
Everything else is not explained by what was counted. That seconds agree is no proof that the ones made the others; of
the slowest handshake it is, since nothing is done on a connection before its handshake.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, enumerated, measured, observed_text
from headwind.metric import PROCESSOR_TIMES, SILENCE, WIRE_BYTES, WIRE_DOWN_BYTES, Metric
from headwind.model import Condition, Outcome, Result
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.standing import MOST_NAMED, Standing
from headwind.report.tracks import Track, track_of
from headwind.report.verdicts import leader, sides
from headwind.run.data import RunData
from headwind.verdicts.findings import Rows
from headwind.verdicts.judgement import Line
from headwind.verdicts.verdict import Rule
from impair.profile import Direction

MOST_LEFT = 0.25  # of a difference, by which a cause may miss it
MOSTLY = 0.8  # of a total: a part that is as large is worth saying
EARLY = 0.5  # of the time until all was done: nine tenths that were done sooner are worth saying
BUSY = 0.5  # of a total: who worked less than that waited for something else
NINE_TENTHS, ALL = 0.9, 1.0  # shares of what there is to do
UNEXPLAINED = "not explained by what was counted"
LAST_TENTH = "the last tenth of the requests"

Seconds = Callable[[Result], float | None]  # what a finished trial spent on something
Pairs = Sequence[tuple[Result, Result]]  # the faster and the slower trial of each block in which both finished


@dataclass(frozen=True, slots=True)
class Why:
    """One condition: its arms side by side, and what their figures say."""

    condition: Condition
    tracks: tuple[Track, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """What one arm lost to another in the median block in which both finished, and what of it something accounts for.

    `difference_s` is None where too few blocks can tell; `cause` is empty where nothing does.
    """

    loser: Arm
    difference_s: float | None = None
    cause: str = ""
    place: str = ""  # where in a trial the difference lies, if nothing explains it
    share: float = 0.0  # of the difference, that is of the cause or lies in this place


def whys(data: RunData, found: Sequence[Standing]) -> list[Why]:
    """One for each condition that ran, in the order of `found`."""
    lines: dict[str, list[Line]] = {}
    for line in data.judgement.compared:
        lines.setdefault(line.condition.id, []).append(line)
    told = []
    for each in found:
        if each.rows:
            tracks = tuple(track_of(each.condition, each.rows, arm) for arm in data.matrix.arms)
            mine = lines.get(each.condition.id, [])
            told.append(Why(each.condition, tracks, tuple(_sentences(each, tracks, mine, data.judgement.rule))))
    return told


def _sentences(standing: Standing, tracks: Sequence[Track], lines: Sequence[Line], rule: Rule) -> Iterator[str]:
    led = list(_leads(standing, lines, rule))
    yield from led or (["No lead to explain."] if lines else [])
    yield from _mostly_handshake(standing, [track.arm for track in tracks])
    yield from _early(tracks)


def _leads(standing: Standing, lines: Sequence[Line], rule: Rule) -> Iterator[str]:
    """`HTTP/3 beats HTTP/1.1 by 24.0 s; 98 % of that is the slowest handshake.` Like causes are in one sentence."""
    alike: dict[tuple[Certainty, Arm, str, str], list[Account]] = {}
    for line in lines:
        certainty = certainty_of(line.primary, rule)
        if leader(line.primary, rule):
            winner, loser = sides(line.primary)
            account = account_of(standing.condition, standing.rows, winner, loser)
            alike.setdefault((certainty, winner, account.cause, account.place), []).append(account)
    for (certainty, winner, cause, place), accounts in alike.items():
        verb = "beats" if certainty is Certainty.SURE else "likely beats"
        why = f"{_shares(accounts)} of that is {cause}" if cause else UNEXPLAINED
        if place:
            why += f", but {_shares(accounts)} of it lies in {place}"
        yield f"{arm_name(winner)} {verb} {_losers(accounts)}; {why}."


def _losers(accounts: Sequence[Account]) -> str:
    """`HTTP/1.1 by 24.0 s and HTTP/2 by 10.2 s`."""
    if len(accounts) <= MOST_NAMED:
        return enumerated(arm_name(account.loser) + _by([account]) for account in accounts)
    return f"{len(accounts)} others{_by(accounts)}"


def _by(accounts: Sequence[Account]) -> str:
    known = [account.difference_s for account in accounts if account.difference_s is not None]
    if not known:
        return ""
    least, most = measured("by_s", min(known)), measured("by_s", max(known))
    return f" by {least}" if least == most else f" by {least} to {most}"


def _shares(accounts: Sequence[Account]) -> str:
    """`98 % and 97 %`, or `all`."""
    shares = [round(100 * min(account.share, 1.0)) for account in accounts]
    if min(shares) == 100:
        return "all"
    return enumerated(f"{each} %" for each in shares) if len(shares) <= MOST_NAMED else f"{min(shares)} % or more"


def account_of(condition: Condition, rows: Rows, winner: Arm, loser: Arm) -> Account:
    """The first cause that accounts for what the loser took longer; else the place in a trial where it lies."""
    metric = condition.workload.primary()
    both = [(row[winner], row[loser]) for row in rows.values() if winner in row and loser in row]
    pairs = [pair for pair in both if all(each.outcome is Outcome.OK and metric.key in each.metrics for each in pair)]
    if metric.unit != "s" or not pairs or 2 * len(pairs) < len(both):
        return Account(loser)
    total = _of(metric)
    difference_s = statistics.median(_lost(pairs, total))
    if difference_s > 0:
        for name, seconds, least in _causes(condition):
            if (share := _carried(pairs, total, seconds, least)) is not None:
                return Account(loser, difference_s, cause=name, share=share)
        if (share := _carried(pairs, total, _last_tenth(condition), 0.0)) is not None:
            return Account(loser, difference_s, place=LAST_TENTH, share=share)
    return Account(loser, difference_s)


def _lost(pairs: Pairs, seconds: Seconds) -> list[float]:
    """By how much more the slower trial of each block spent on something; empty unless all of them tell."""
    known = [(seconds(fast), seconds(slow)) for fast, slow in pairs]
    told = [slow - fast for fast, slow in known if fast is not None and slow is not None]
    return told if len(told) == len(pairs) else []


def _carried(pairs: Pairs, total: Seconds, part: Seconds, least: float) -> float | None:
    """The share of the difference in `total` that the one in `part` carries; None where it does not carry it.

    `least`: how much of the slower trial's total the part must be, lest two small numbers meet by chance.
    """
    whole, by_part = _lost(pairs, total), _lost(pairs, part)
    if not by_part:
        return None
    difference_s = statistics.median(whole)
    share = statistics.median(by_part) / difference_s
    left_s = statistics.median(abs(all_s - part_s) for all_s, part_s in zip(whole, by_part, strict=True))
    weight = statistics.median((part(slow) or 0.0) / (total(slow) or 1.0) for _, slow in pairs)
    is_carried = abs(1 - share) <= MOST_LEFT and left_s <= MOST_LEFT * difference_s and weight >= least
    return share if is_carried else None


def _causes(condition: Condition) -> Iterator[tuple[str, Seconds, float]]:
    """What can make a trial longer, the surest first: its name, its seconds, and how much of a total it must be."""
    workload = condition.workload
    if workload.handshake:
        yield "the slowest handshake", _of(workload.handshake[-1]), 0.0
    yield "the longest time without a packet", _of(SILENCE), 0.0
    for direction in Direction:
        if rate := condition.profile.link(direction).rate:
            yield f"more bytes at the {direction.value}'s rate", _sending(direction, rate.rate_bps), BUSY
    for metric in PROCESSOR_TIMES:
        yield metric.label, _of(metric), BUSY


def _of(metric: Metric) -> Seconds:
    return lambda result: result.metrics.get(metric.key)


def _sending(direction: Direction, rate_bps: float) -> Seconds:
    """How long the bytes of a direction take at its rate."""

    def seconds(result: Result) -> float | None:
        both, down = (result.metrics.get(metric.key) for metric in (WIRE_BYTES, WIRE_DOWN_BYTES))
        if both is None or down is None:
            return None
        return 8 * (down if direction is Direction.DOWNLINK else both - down) / rate_bps

    return seconds


def _last_tenth(condition: Condition) -> Seconds:
    """From when nine tenths were done until all were."""
    ends = [condition.workload.progress.get(share) for share in (NINE_TENTHS, ALL)]

    def seconds(result: Result) -> float | None:
        first, last = (result.metrics.get(metric.key) if metric else None for metric in ends)
        return None if first is None or last is None else last - first

    return seconds


def _mostly_handshake(standing: Standing, arms: Sequence[Arm]) -> Iterator[str]:
    """Whose total is little else than its slowest handshake: each trial by itself, then the median, rounded down."""
    workload, shares = standing.condition.workload, dict[Arm, float]()
    for arm in arms if workload.handshake else ():
        finished = [row[arm].metrics for row in standing.rows.values() if arm in row and row[arm].outcome is Outcome.OK]
        total, slowest = workload.primary().key, workload.handshake[-1].key
        parts = [each[slowest] / each[total] for each in finished if slowest in each and each.get(total)]
        if parts and statistics.median(parts) >= MOSTLY:
            shares[arm] = min(statistics.median(parts), 1.0)
    if len(shares) > MOST_NAMED:
        least = 100 * min(shares.values())
        yield f"The slowest handshake is {math.floor(least)} % or more of the total for {len(shares)} arms."
    elif len(shares) > 1:
        told = (f"{math.floor(100 * share)} % ({arm})" for arm, share in shares.items())
        yield f"The slowest handshake is {enumerated(told)} of the total."
    for arm, share in shares.items() if len(shares) == 1 else ():
        yield f"{arm_name(arm)}'s total is {math.floor(100 * share)} % its slowest handshake."


def _early(tracks: Sequence[Track]) -> Iterator[str]:
    """When nine tenths were done, where for some arm the rest took longer than they did."""
    known = {track.arm: track.reached for track in tracks if {NINE_TENTHS, ALL} <= track.reached.keys()}
    early = (
        each[NINE_TENTHS].is_finished and each[ALL].low > 0 and each[NINE_TENTHS].known <= EARLY * each[ALL].low
        for each in known.values()
    )
    if any(early) and len(known) <= MOST_NAMED:
        told = (f"{observed_text('done_s', each[NINE_TENTHS])} ({arm})" for arm, each in known.items())
        yield f"90 % of the requests were done after {enumerated(told)}."
