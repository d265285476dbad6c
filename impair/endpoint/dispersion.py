"""The rate of the slowest link on a path, from the arrival times of a back-to-back train. Pure.

Pairs of arrivals a fixed number of frames apart each show a rate. On a busy machine most of them can be wrong: a pause
of the sender (or jitter) leaves the link idle, and pairs across it are too slow; a pause of the router or the receiver
makes frames late, then they come in a burst, and pairs from late to punctual frames are too fast. So neither the
fastest pair (too fast) nor the median (wrong if most pairs were disturbed) is reliable. But a link with a backlog sends
frame after frame at its rate: all its punctual pairs agree at any distance. A disturbance moves a pair by a time that
is independent of its distance, so the pairs that it moves do not agree over several distances. Therefore the most
frequent rate counts, if it is frequent enough over each of three distances. It is not chosen by whether it is fast or
slow, so it has no bias to either side. Frames that were sent as slowly as they arrived show the sender's rate instead
of a link's: their pairs do not count.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from impair.messages import RateEstimate

SHORTEST_CUT = 30  # frames; a shorter distance would see the bunches
STRETCHES = (1.0, 1.5, 2.0)  # distances, in units of the first one: one pause has another rate over each of them
AGREEMENT = 0.02  # how far the rates of two pairs may differ that agree
# Of the pairs over each distance must agree, and this number in all. Of 2,684 trains through 20 to 300 Mbit/s on two
# CPUs that 15 to 30 programs wanted, 1,032 had that, and each of these showed the rate within 1.5 %.
STEADY, STEADY_PAIRS = 0.25, 10
QUEUED = 0.9  # of the time in which frames arrived, in which they may have been sent, if the link made them wait


def estimate_rate(
    arrivals_s: Sequence[float],
    sequences: Sequence[int],
    frame_bytes: int,
    sent_s: Sequence[float] | None = None,
    *,
    missing_took_time: bool = True,
) -> RateEstimate:
    """The rate at which frames of `frame_bytes` left the bottleneck, from their arrivals in order.

    This is packet dispersion. A missing frame may have been lost before the link (it took no time there) or
    corrupted on it and dropped by its checksum (it did). If the link is known to corrupt nothing, set
    `missing_took_time` to False; then only the order of arrival counts. Otherwise only stretches without a missing
    sequence number are used; a copy takes its own time. The distance of pairs averages out how the machine bunches
    packets: it is the median of the remaining stretch lengths, so that half of all starting points reach that far,
    but at most a quarter of a long train: then one pause, wherever it falls, lies within a third of the pairs only.
    If copies come and frames are missing, a corrupted copy may hide between any two arrivals: then the distance is
    1.

    `sent_s` are the times at which the frames were sent, if known. If too few pairs agree, the median counts:
    stretches may be too short to be exact.
    """
    frame_bits = frame_bytes * 8
    if not missing_took_time:
        sequences = range(len(arrivals_s))
    reaches = _reaches(sequences)
    usable = [reach for reach in reaches if reach]
    span_s = arrivals_s[-1] - arrivals_s[0] if arrivals_s else 0.0
    span_rate_bps = frame_bits * (len(arrivals_s) - 1) / span_s if span_s > 0 else None
    if not usable:
        return RateEstimate(span_rate_bps=span_rate_bps)

    def pairs(distance: int) -> list[tuple[int, int]]:
        return [(first, first + distance) for first, reach in enumerate(reaches) if reach >= distance]

    def median_rate(distance: int) -> tuple[float | None, int]:
        times_s = [arrivals_s[last] - arrivals_s[first] for first, last in pairs(distance)]
        middle_s = statistics.median(times_s)
        return (frame_bits * distance / middle_s if middle_s > 0 else None), len(times_s)

    distinct = set(sequences)
    hidden_copies = len(distinct) < len(sequences) and len(distinct) < max(distinct) - min(distinct) + 1
    distance = min(statistics.median_high(usable), max(SHORTEST_CUT, len(arrivals_s) // 4))
    gap_rate_bps, _ = median_rate(1)
    if hidden_copies:
        rate_bps, count = median_rate(1)
        return RateEstimate(rate_bps, gap_rate_bps, span_rate_bps, count)
    compared = [pair for each in sorted({int(distance * stretch) for stretch in STRETCHES}) for pair in pairs(each)]
    rates = [(frame_bits * (last - first) / (arrivals_s[last] - arrivals_s[first]), last - first)
             for first, last in compared if _queued(arrivals_s, sent_s, first, last)]  # fmt: skip
    agreeing = densest(rates)
    if _is_steady([last - first for first, last in compared], [distance for _, distance in agreeing]):
        rate_bps = statistics.median(rate_bps for rate_bps, _ in agreeing)
        return RateEstimate(rate_bps, gap_rate_bps, span_rate_bps, len(compared), len(agreeing))
    rate_bps, count = median_rate(distance)
    return RateEstimate(rate_bps, gap_rate_bps, span_rate_bps, count)


def _reaches(sequences: Sequence[int]) -> list[int]:
    """For each arrival, the number of following ones without a gap."""
    reaches: list[int] = []
    for before, after in reversed(list(pairwise(sequences))):
        reaches.append(1 + (reaches[-1] if reaches else 0) if after - before in (0, 1) else 0)
    reaches.reverse()
    return reaches


def _queued(arrivals_s: Sequence[float], sent_s: Sequence[float] | None, first: int, last: int) -> bool:
    """Whether the arrivals from `first` to `last` can have waited for the link, and took a time."""
    took_s = arrivals_s[last] - arrivals_s[first]
    return took_s > 0 and (sent_s is None or sent_s[last] - sent_s[first] <= QUEUED * took_s)


def densest(rates: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """The largest set of these rates, each with its distance, whose largest is within AGREEMENT of its smallest."""
    ordered = sorted(rates)
    begin, best = 0, range(0)
    for end, (rate, _) in enumerate(ordered, 1):
        while rate > ordered[begin][0] * (1 + AGREEMENT):
            begin += 1
        best = max(best, range(begin, end), key=len)
    return [ordered[place] for place in best]


def _is_steady(compared: Sequence[int], agreeing: Sequence[int]) -> bool:
    """Whether enough pairs agree over each distance; both are given by the distances of their pairs."""
    wanted, found = Counter(compared), Counter(agreeing)
    return len(agreeing) >= STEADY_PAIRS and all(found[each] >= STEADY * wanted[each] for each in wanted)
