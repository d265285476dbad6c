"""The rate of the slowest link on a path, out of when the frames of a back-to-back train arrived. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from impair.messages import RateEstimate

SHORTEST_CUT = 30  # frames; a shorter distance would see the bunches


def estimate_rate(
    arrivals_s: Sequence[float], sequences: Sequence[int], frame_bytes: int, *, missing_took_time: bool = True
) -> RateEstimate:
    """The rate at which frames of `frame_bytes` left the bottleneck, from their arrivals in order (packet dispersion).

    A missing frame may have been lost before the link (it took no time there) or corrupted on it and dropped by its
    checksum (it did). Whoever knows that the link corrupts nothing says so (`missing_took_time` is False); then only
    the order of arrival counts. Otherwise only stretches without a missing sequence number are used; a copy takes its
    own time. Pairs of arrivals a fixed number of frames apart are compared, and the median is taken: a long distance
    averages out how the machine bunches packets, the median ignores a disturbed minority. The distance is the median of
    what is left of a stretch, so that half of all starting points reach that far, but at most a quarter of a long
    train: then one pause, wherever it falls, lies within a third of the pairs only. Where copies come and frames are
    missing, a corrupted copy may hide between any two arrivals: then the distance is 1.
    """
    frame_bits = frame_bytes * 8
    if not missing_took_time:
        sequences = range(len(arrivals_s))
    reaches: list[int] = []  # for each arrival: over how many following ones nothing is missing
    for before, after in reversed(list(pairwise(sequences))):
        reaches.append(1 + (reaches[-1] if reaches else 0) if after - before in (0, 1) else 0)
    reaches.reverse()
    usable = [reach for reach in reaches if reach]
    span_s = arrivals_s[-1] - arrivals_s[0] if arrivals_s else 0.0
    span_rate_bps = frame_bits * (len(arrivals_s) - 1) / span_s if span_s > 0 else None
    if not usable:
        return RateEstimate(span_rate_bps=span_rate_bps)

    def median_rate(distance: int) -> tuple[float | None, int]:
        times_s = [arrivals_s[i + distance] - arrivals_s[i] for i, reach in enumerate(reaches) if reach >= distance]
        middle_s = statistics.median(times_s)
        return (frame_bits * distance / middle_s if middle_s > 0 else None), len(times_s)

    distinct = set(sequences)
    hidden_copies = len(distinct) < len(sequences) and len(distinct) < max(distinct) - min(distinct) + 1
    distance = min(statistics.median_high(usable), max(SHORTEST_CUT, len(arrivals_s) // 4))
    rate_bps, pairs = median_rate(1 if hidden_copies else distance)
    return RateEstimate(rate_bps, median_rate(1)[0], span_rate_bps, pairs)
