"""Attributes a lead of one arm over another to a cause, as far as the counters account for it. Pure.

A cause is named only if the figures support it, block by block: the slower arm's loss by it is between three and five
quarters of its total loss, and without it at most a quarter of the difference is left in the median block. Everything
else nothing measured accounts for. Agreeing seconds do not prove a cause, except for the slowest handshake, since
nothing is done on a connection before its handshake.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headwind.arm import Arm
from headwind.format import arm_name, enumerated, measured
from headwind.metric import CPU_TIMES, GAP_ERROR_S, PACKET_GAP, WIRE_BYTES, WIRE_DOWN_BYTES, Metric
from headwind.model import Condition, Outcome, Result
from headwind.proof.windows import LIMITED
from headwind.report.certainty import Certainty, certainty_of, verdict_of
from headwind.report.page_waits import waits
from headwind.report.ranking import MOST_NAMED, Standing
from headwind.report.request_progress import Track, handshake_name, track_of
from headwind.report.verdicts import leader, sides
from headwind.run.data import RunData
from headwind.verdicts.congestion import difference_text
from headwind.verdicts.findings import Rows
from headwind.verdicts.judgement import Line
from impair.profile import Direction

MOST_LEFT = 0.25  # of a difference: how far a cause may miss it
MOSTLY = 0.8  # of a total: a part of this size is reported
BUSY = 0.5  # of a total: an arm that worked less waited for something else
NINE_TENTHS, ALL = 0.9, 1.0  # shares of the requests
LAST_TENTH = "in the last 10 % of the requests"
NO_CAUSE = "no cause found"

Seconds = Callable[[Result], float | None]  # seconds that a finished trial spent on something
Pairs = Sequence[tuple[Result, Result]]  # the faster and the slower trial of each block in which both finished


@dataclass(frozen=True, slots=True)
class Why:
    """The causes in one condition: its arms, and sentences about their figures."""

    condition: Condition
    tracks: tuple[Track, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The loss of one arm to another in the median block in which both finished, with its cause.

    `difference_s` is None if there are too few blocks; `cause` is empty if nothing accounts for it.
    """

    loser: Arm
    difference_s: float | None = None
    cause: str = ""
    place: str = ""  # part of a trial with the difference, if nothing explains it
    window: str = ""  # "limited by a window of 64 KB (its name)", if most of the loser's trials were
    share: float = 0.0  # part of the difference that belongs to the cause or the place
    is_partial: bool = False  # whether some blocks have no difference, because a trial did not finish


def whys(data: RunData, found: Sequence[Standing]) -> list[Why]:
    """The causes for each condition that ran, in the order of `found`."""
    lines: dict[str, list[Line]] = {}
    for line in data.judgement.compared:
        lines.setdefault(line.condition.id, []).append(line)
    explained = []
    for each in found:
        if each.rows:
            tracks = tuple(track_of(each.condition, each.rows, arm) for arm in data.matrix.arms)
            mine = lines.get(each.condition.id, [])
            sentences = (*_sentences(each, tracks, mine, data), *_waits(each.condition, data))
            explained.append(Why(each.condition, tracks, sentences))
    return explained


def _waits(condition: Condition, data: RunData) -> Iterator[str]:
    """Sentences on what requests waited for, for workloads whose requests are recorded one by one."""
    for arm in data.matrix.arms:
        if trials := data.page_trials.get((condition.id, arm.name)):
            yield from waits(condition, arm, trials.median)


def _sentences(standing: Standing, tracks: Sequence[Track], lines: Sequence[Line], data: RunData) -> Iterator[str]:
    led = [*_leads(standing, lines, data), *_others(standing)]
    by = standing.condition.workload.primary().label
    yield from led or ([f"No sure or likely lead by {by}."] if lines else [])
    yield from _mostly_handshake(standing, [track.arm for track in tracks])


def _leads(standing: Standing, lines: Sequence[Line], data: RunData) -> Iterator[str]:
    """Sentences on leads: `HTTP/3 beats HTTP/1.1 by 24.0 s; the slowest handshake accounts for 98 % of the lead`.

    Equal causes are merged.
    """
    alike: dict[tuple[Certainty, Arm, str, str, str, str], list[Account]] = {}
    for line in lines:
        certainty = certainty_of(line.primary)
        if leader(line.primary) and line.primary.metric == standing.condition.workload.primary():
            winner, loser = sides(line.primary)
            if verdict_of(line.primary).is_completion:
                yield f"{arm_name(winner)} {certainty.hedge}finishes more trials than {arm_name(loser)}."
                continue
            account = account_of(standing.condition, standing.rows, winner, loser)
            differ = "" if account.cause else difference_text(winner, loser, data.matrix, standing.condition)
            key = certainty, winner, account.cause, account.place, account.window, differ
            alike.setdefault(key, []).append(account)
    for (certainty, winner, cause, place, window, differ), accounts in alike.items():
        which, each = ("these leads", "each lead") if accounts[1:] else ("this lead", "the lead")
        share = _shares(accounts, f"all of {which}" if cause else f"nearly all of {each}")
        reason = (
            f"{cause} accounts for {share}" if cause else f"the slower trials were {window}" if window else NO_CAUSE
        )
        if place and not window:
            reason += f", but {share} arose {place}"
        if differ:
            reason += f"; they {differ}"
        yield f"{arm_name(winner)} {certainty.hedge}beats {_losers(accounts)}; {reason}."


def _others(standing: Standing) -> Iterator[str]:
    """Sentences on leads by other metrics, without a cause: `By mean completion time, HTTP/2 beats HTTP/3.`.

    A metric has one sentence, and arms that beat the same ones are named together.
    """
    losers: dict[tuple[str, Certainty, Arm], list[str]] = {}
    explained = standing.condition.workload.primary()
    found = (finding for known in standing.known for finding in (known.line.primary, *known.others))
    for finding in (each for each in found if leader(each) and each.metric != explained):
        winner, loser = sides(finding)
        losers.setdefault((finding.metric.label, certainty_of(finding), winner), []).append(arm_name(loser))
    winners: dict[str, dict[tuple[Certainty, str], list[str]]] = {}
    for (metric, certainty, winner), names in losers.items():
        who = enumerated(names) if len(names) <= MOST_NAMED else f"{len(names)} others"
        winners.setdefault(metric, {}).setdefault((certainty, who), []).append(arm_name(winner))
    for metric, by_losers in winners.items():
        leads = (
            f"{enumerated(ahead)} {certainty.hedge}{'beat' if ahead[1:] else 'beats'} {who}"
            for (certainty, who), ahead in by_losers.items()
        )
        yield f"By {metric}, {'; '.join(leads)}."


def _losers(accounts: Sequence[Account]) -> str:
    """The losers with their losses: `HTTP/1.1 by 24.0 s and HTTP/2 by 10.2 s`."""
    finished = f" ({'each ' if accounts[1:] else ''}in blocks that both protocols finished)"
    where = finished if any(account.is_partial for account in accounts) else ""
    if len(accounts) <= MOST_NAMED:
        return enumerated(arm_name(account.loser) + _by([account]) for account in accounts) + where
    return f"{len(accounts)} others{_by(accounts)}{where}"


def _by(accounts: Sequence[Account]) -> str:
    known = [account.difference_s for account in accounts if account.difference_s is not None]
    if not known:
        return ""
    least, most = measured("by_s", min(known)), measured("by_s", max(known))
    return f" by {least}" if least == most else f" by {least} to {most}"


def _shares(accounts: Sequence[Account], whole: str) -> str:
    """The shares of causes or places: `98 % of the lead over HTTP/1.1 and ...`, or the words for the `whole`.

    Each is a ratio of two medians.
    """
    shares = [round(100 * min(account.share, 1.0)) for account in accounts]
    if min(shares) == 100:
        return whole
    if len(shares) > MOST_NAMED:
        return f"{min(shares)} % or more of each"
    leads = [f"the lead{f' over {arm_name(account.loser)}' if accounts[1:] else ''}" for account in accounts]
    return enumerated(f"{share} % of {lead}" for share, lead in zip(shares, leads, strict=True))


def account_of(condition: Condition, rows: Rows, winner: Arm, loser: Arm) -> Account:
    """The first cause that accounts for the loser's longer time; else the part of a trial with the difference."""
    metric = condition.workload.primary()
    both = [(row[winner], row[loser]) for row in rows.values() if winner in row and loser in row]
    pairs = [pair for pair in both if all(each.outcome is Outcome.OK and metric.key in each.metrics for each in pair)]
    if metric.unit != "s" or not pairs or 2 * len(pairs) < len(both):
        return Account(loser)
    total = _of(metric)
    difference_s = statistics.median(_lost(pairs, total))
    account = partial(Account, loser, difference_s, is_partial=len(pairs) < len(both))
    if difference_s > 0:
        for name, seconds, least in _causes(condition, difference_s):
            if (share := _carried(pairs, total, seconds, least)) is not None:
                return account(cause=name, share=share)
        window = _window([slow for _, slow in pairs])
        if (share := _carried(pairs, total, _last_tenth(condition), 0.0)) is not None:
            return account(place=LAST_TENTH, window=window, share=share)
        return account(window=window)
    return account()


def _window(results: Sequence[Result]) -> str:
    """The window that limited most of these trials, as their proofs name it; empty if none did."""
    named = Counter(text.partition(":")[0] for each in results for text in each.proof.warnings if LIMITED in text)
    return next((text for text, count in named.most_common(1) if 2 * count > len(results)), "")


def _lost(pairs: Pairs, seconds: Seconds) -> list[float]:
    """Extra seconds of the slower trial of each block; empty unless all of them are known."""
    known = [(seconds(fast), seconds(slow)) for fast, slow in pairs]
    extra_s = [slow - fast for fast, slow in known if fast is not None and slow is not None]
    return extra_s if len(extra_s) == len(pairs) else []


def _carried(pairs: Pairs, total: Seconds, part: Seconds, least: float) -> float | None:
    """Share of the difference in `total` that the difference in `part` carries; None if it does not carry it.

    `least`: minimum share of the part in the slower trial's total, to exclude that two small numbers match by chance.
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


def _causes(condition: Condition, difference_s: float) -> Iterator[tuple[str, Seconds, float]]:
    """Possible causes of a longer trial, the surest first: name, seconds, and minimum share of the total.

    A difference that is smaller than the error of packet gaps cannot be attributed to them.
    """
    workload = condition.workload
    if workload.handshake:
        yield f"the {handshake_name(workload)}", _of(workload.handshake[-1]), 0.0
    if workload.resumes:
        return  # the other counters include the earlier connection, which leaves the session
    if difference_s >= GAP_ERROR_S:
        yield "the longest time without a packet", _of(PACKET_GAP), 0.0
    for direction in Direction:
        if (rate := condition.profile.link(direction).rate) and not condition.profile.changes(direction):
            yield f"sending more bytes at the {direction.value}'s rate", _sending(direction, rate.rate_bps), BUSY
    for metric in CPU_TIMES:
        yield metric.label, _of(metric), BUSY


def _of(metric: Metric) -> Seconds:
    return lambda result: result.metrics.get(metric.key)


def _sending(direction: Direction, rate_bps: float) -> Seconds:
    """Seconds that the bytes of a direction take at its rate."""

    def seconds(result: Result) -> float | None:
        both, down = (result.metrics.get(metric.key) for metric in (WIRE_BYTES, WIRE_DOWN_BYTES))
        if both is None or down is None:
            return None
        return 8 * (down if direction is Direction.DOWNLINK else both - down) / rate_bps

    return seconds


def _last_tenth(condition: Condition) -> Seconds:
    """Seconds from the time at which nine tenths were done until all were."""
    ends = [condition.workload.progress.get(share) for share in (NINE_TENTHS, ALL)]

    def seconds(result: Result) -> float | None:
        first, last = (result.metrics.get(metric.key) if metric else None for metric in ends)
        return None if first is None or last is None else last - first

    return seconds


def _mostly_handshake(standing: Standing, arms: Sequence[Arm]) -> Iterator[str]:
    """The share of the slowest handshake in the total, if it is most of some arm's: medians."""
    workload, shares = standing.condition.workload, dict[Arm, float]()
    for arm in arms if workload.handshake else ():
        finished = [row[arm].metrics for row in standing.rows.values() if arm in row and row[arm].outcome is Outcome.OK]
        total, slowest = workload.primary().key, workload.handshake[-1].key
        parts = [each[slowest] / each[total] for each in finished if slowest in each and each.get(total)]
        if parts:
            shares[arm] = min(statistics.median(parts), 1.0)
    name, total_name = handshake_name(workload), workload.primary().label
    mostly = [share for share in shares.values() if share >= MOSTLY]
    if mostly and len(shares) > MOST_NAMED:
        yield f"The {name} takes at least {_whole(min(mostly))} of the {total_name} in {len(mostly)} rows (medians)."
    elif mostly:
        shown = (f"{_whole(share)} ({arm_name(arm)})" for arm, share in shares.items())
        yield f"The {name} takes {enumerated(shown)} of the {total_name} (medians)."


def _whole(share: float) -> str:
    return f"{100 * share:.0f} %"
