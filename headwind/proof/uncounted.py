"""Corruption and reordering proven by probes, for kernels whose netem does not count them (before 7.2). Pure.

A probe is a datagram whose every byte is known. One that netem corrupts is missing, unless the bit was of no
consequence (headwind/proof/corruption.py: the sender's Ethernet address but for its group bit, and the group bit of the
receiver's); one that arrives changed is a fault in any case. One that overtakes skips the delay: it comes in less than
half of it. So many probes are sent that half of what was asked for can be told from the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headwind.model import Check
from headwind.proof.evidence import Train
from headwind.proof.expectation import PROBE_BYTES, Expectation
from headwind.proof.passage import SIGMAS
from impair.distribution import DISTRIBUTION_REACH
from impair.profile import Direction, Link

PROBE_COUNT = 20  # where netem counts its decisions: enough for a delay
PROBE_INTERVAL_S = 0.001
LONGEST_TRAIN_S = 1.0  # of a trial's time, where netem does not count
HARMLESS_BITS = 47 + 1
SHOWN_SHARE = 1 - HARMLESS_BITS / (8 * PROBE_BYTES)  # of the probes that netem corrupts, those that are missing
SHORTEST_DELAY_S = 0.006  # half of it must be more than a busy machine adds: DELAY_ALLOWANCE_S in proof/proof.py
WIDEST_SPREAD = 1 / 3  # of the delay: with more jitter, some that were held come as early as those that overtake
POWER_SIGMAS = 3.0  # by which half of what was asked for must be outside the tolerance
STRAYS = 2  # probes that the machine lost, or brought late


def probes_for(link: Link, *, counted: bool) -> int:
    """How many probes to send through `link`; `counted` says whether its netem counts what it does."""
    wanted = 0 if counted else max(_enough(_corrupt(link)), _enough(_seen_to_overtake(link)))
    return max(PROBE_COUNT, min(_most_probes(link), wanted))


def probe_interval_s(link: Link) -> float:
    """Far enough apart that the probes themselves never queue at the rate."""
    return max(PROBE_INTERVAL_S, 2 * Expectation.of(link).probe_s)


def shows_reordering(link: Link) -> bool:
    """Whether probes can tell half of the reordering of `link` from the whole; true where it has none."""
    seen = _seen_to_overtake(link)
    return seen == Expectation.of(link).overtaking and _enough(seen) <= _most_probes(link)


def check_probes_known(direction: Direction, link: Link, train: Train) -> Iterator[Check]:
    """What a train of probes shows where netem does not count; `train` as the receiving end saw it."""
    if _corrupt(link):
        yield _check_missing(direction, link, train.sent, train.unique)
    if _seen_to_overtake(link) and train.delays_s:
        yield _check_overtaking(direction, link, train.delays_s)


def check_contents(direction: Direction, train: Train) -> Check:
    """No probe was changed on its way and delivered all the same, whatever the kernel."""
    changed = train.bad_payloads
    return Check(
        direction, "probe_bad_payloads", 0.0, None, float(changed), 0.0, changed == 0,
        f"{changed} datagrams were delivered with other bytes than were sent",
    )  # fmt: skip


def missing_ratio(link: Link) -> float:
    """The share of probes of which no copy arrives.

    netem_enqueue: of a packet that is both doubled and lost one is left, which is not lost again; a copy goes through
    everything anew.
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
    """The share of packets that overtake, where their delay tells them from the others; else 0."""
    delay = link.delay
    if delay is None or delay.delay_s < SHORTEST_DELAY_S or link.slot:
        return 0.0
    spread_s = DISTRIBUTION_REACH[delay.distribution] * delay.jitter_s
    return Expectation.of(link).overtaking if spread_s <= WIDEST_SPREAD * delay.delay_s else 0.0


def _enough(ratio: float) -> int:
    """So many probes that half of a share of `ratio` is seen to be wrong; 0 for no share."""
    if ratio == 0:
        return 0
    # (S * sqrt(p(1-p)) + P * sqrt(p/2 (1-p/2))) / sqrt(n) + k/n = p/2, solved for sqrt(n).
    spread = SIGMAS * math.sqrt(ratio * (1 - ratio)) + POWER_SIGMAS * math.sqrt(ratio / 2 * (1 - ratio / 2))
    return math.ceil(((spread + math.sqrt(spread**2 + 2 * ratio * STRAYS)) / ratio) ** 2)


def _check_missing(direction: Direction, link: Link, sent: int, unique: int) -> Check:
    expected, inflation = missing_ratio(link), Expectation.of(link).inflation
    measured = (sent - unique) / sent
    tolerance = SIGMAS * math.sqrt(expected * (1 - expected) * inflation / sent)
    tolerance += (STRAYS + SIGMAS**2 / 4 * (inflation - 1)) / sent  # bursts: see `_check_probes` in proof.py
    return Check(
        direction, "probe_missing_ratio", expected, None, measured, tolerance, abs(measured - expected) <= tolerance,
        f"{sent - unique} of {sent} probes are missing; {SHOWN_SHARE:.1%} of those that are corrupted must be",
    )  # fmt: skip


def _check_overtaking(direction: Direction, link: Link, delays_s: Sequence[float]) -> Check:
    assert link.delay
    expected, count = Expectation.of(link).overtaking, len(delays_s)
    quick = sum(delay_s < link.delay.delay_s / 2 for delay_s in delays_s)
    tolerance = SIGMAS * math.sqrt(expected * (1 - expected) / count) + STRAYS / count
    return Check(
        direction, "probe_reorder_ratio", expected, None, quick / count, tolerance,
        abs(quick / count - expected) <= tolerance, f"{quick} of {count} probes overtook the delay",
    )  # fmt: skip
