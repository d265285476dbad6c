"""Corruption and reordering measured by probes, for kernels whose netem does not count them (before 7.2). Pure.

A probe is a datagram whose every byte is known. A corrupted probe is missing, unless the bit has no effect
(headwind/proof/corruption.py: the sender's Ethernet address except its group bit, and the group bit of the receiver's);
one that arrives changed is always a fault. A reordered probe skips the delay: it arrives in less than half of it.
Enough probes are sent to distinguish half of the requested share from all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headwind.model import Check
from headwind.proof.evidence import Train
from headwind.proof.expectation import Expectation
from headwind.proof.netem_counts import SIGMAS
from headwind.settings import PROBE_BYTES, PROBE_COUNT
from impair.distribution import DISTRIBUTION_REACH
from impair.profile import Direction, Link

PROBE_INTERVAL_S = 0.001
LONGEST_TRAIN_S = 1.0  # of a trial's time, if netem does not count
HARMLESS_BITS = 47 + 1
SHOWN_SHARE = 1 - HARMLESS_BITS / (8 * PROBE_BYTES)  # share of corrupted probes that are missing
SHORTEST_DELAY_S = 0.006  # half of it must be more than a busy machine adds: DELAY_ALLOWANCE_S in proof/trial_checks.py
WIDEST_SPREAD = 1 / 3  # of the delay: with more jitter, some delayed probes arrive as early as reordered ones
POWER_SIGMAS = 3.0  # distance from half of the requested share to the tolerance
STRAYS = 2  # probes that the machine lost or delayed


def probes_for(link: Link, *, counted: bool) -> int:
    """Number of probes to send through `link`; `counted` is true if its netem counts its decisions."""
    wanted = 0 if counted else max(_enough(_corrupt(link)), _enough(_seen_to_overtake(link)))
    return max(PROBE_COUNT, min(_most_probes(link), wanted))


def probe_interval_s(link: Link) -> float:
    """Seconds between probes, enough that the probes themselves never queue at the rate."""
    return max(PROBE_INTERVAL_S, 2 * Expectation.of(link).probe_s)


def shows_reordering(link: Link) -> bool:
    """True if probes can distinguish half of the reordering of `link` from all of it, or if it has none."""
    detectable = _seen_to_overtake(link)
    return detectable == Expectation.of(link).overtaking and _enough(detectable) <= _most_probes(link)


def check_probes_known(direction: Direction, link: Link, train: Train) -> Iterator[Check]:
    """Check corruption and reordering by probes, for a netem that does not count; `train` is from the receiver."""
    if _corrupt(link):
        yield _check_missing(direction, link, train.sent, train.unique)
    if _seen_to_overtake(link) and train.delays_s:
        yield _check_overtaking(direction, link, train.delays_s)


def check_contents(direction: Direction, train: Train) -> Check:
    """Check that no probe was delivered with changed content, on any kernel."""
    changed = train.bad_payloads
    return Check(
        direction, "probe_bad_payloads", 0.0, None, float(changed), 0.0, changed == 0,
        f"{changed} datagrams arrived with changed bytes",
    )  # fmt: skip


def missing_ratio(link: Link) -> float:
    """Share of probes without any arriving copy.

    netem_enqueue: a packet that is both duplicated and lost leaves one, which is not lost again; a copy goes through
    all decisions again.
    """
    loss, corrupt = Expectation.of(link).loss, _corrupt(link) * SHOWN_SHARE
    double = link.duplicate.ratio if link.duplicate else 0.0
    single = 1 - (1 - loss) * (1 - corrupt)
    return (1 - double) * single + double * (loss * corrupt + (1 - loss) * corrupt * single)


def _most_probes(link: Link) -> int:
    return int(LONGEST_TRAIN_S / probe_interval_s(link))


def _corrupt(link: Link) -> float:
    return link.corrupt.ratio if link.corrupt else 0.0


def _seen_to_overtake(link: Link) -> float:
    """Share of packets that are reordered, if their delay distinguishes them from the others; else 0."""
    delay = link.delay
    if delay is None or delay.delay_s < SHORTEST_DELAY_S or link.slot:
        return 0.0
    spread_s = DISTRIBUTION_REACH[delay.distribution] * delay.jitter_s
    return Expectation.of(link).overtaking if spread_s <= WIDEST_SPREAD * delay.delay_s else 0.0


def _enough(ratio: float) -> int:
    """Number of probes that shows half of a share of `ratio` to be wrong; 0 for no share."""
    if ratio == 0:
        return 0
    # (S * sqrt(p(1-p)) + P * sqrt(p/2 (1-p/2))) / sqrt(n) + k/n = p/2, solved for sqrt(n).
    spread = SIGMAS * math.sqrt(ratio * (1 - ratio)) + POWER_SIGMAS * math.sqrt(ratio / 2 * (1 - ratio / 2))
    return math.ceil(((spread + math.sqrt(spread**2 + 2 * ratio * STRAYS)) / ratio) ** 2)


def _check_missing(direction: Direction, link: Link, sent: int, unique: int) -> Check:
    expected, inflation = missing_ratio(link), Expectation.of(link).inflation
    measured = (sent - unique) / sent
    tolerance = SIGMAS * math.sqrt(expected * (1 - expected) * inflation / sent)
    tolerance += (STRAYS + SIGMAS**2 / 4 * (inflation - 1)) / sent  # bursts: see `_check_probes` in trial_checks.py
    return Check(
        direction, "probe_missing_ratio", expected, None, measured, tolerance, abs(measured - expected) <= tolerance,
        f"{sent - unique} of {sent} probes are missing; {100 * SHOWN_SHARE:.1f} % of corrupted ones must be",
    )  # fmt: skip


def _check_overtaking(direction: Direction, link: Link, delays_s: Sequence[float]) -> Check:
    assert link.delay
    expected, count = Expectation.of(link).overtaking, len(delays_s)
    quick = sum(delay_s < link.delay.delay_s / 2 for delay_s in delays_s)
    tolerance = SIGMAS * math.sqrt(expected * (1 - expected) / count) + STRAYS / count
    return Check(
        direction, "probe_reorder_ratio", expected, None, quick / count, tolerance,
        abs(quick / count - expected) <= tolerance, f"{quick} of {count} probes skipped the delay",
    )  # fmt: skip
