"""Warnings about bursts of loss, which netem counts in packets and not in time.

netem's Gilbert-Elliott and 4-state chains take one step with each packet and none while the link is idle (loss_gilb_ell
and loss_4state in net/sched/sch_netem.c). On a radio link or behind a full buffer, a burst lasts for a time instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwind.format import measured, significant
from headwind.proof.expectation import Expectation
from impair.profile import NEXT_PACKET, Direction, FourState, GilbertElliott, Link, Profile

STALL_S = 1.0  # QUIC's and TCP's first timeout before a round trip is known (RFC 9002, 6.2.2; RFC 6298, 2.1)
WHAT_FOLLOWS = (
    "Bursts are counted in packets, not in time: an idle link does not recover. A protocol that waits and "
    "then tries a single packet meets the rest of the same burst, and doubles its wait after each loss: TCP may end at "
    "one packet in two minutes"
)
ALTERNATIVES = (
    "Losses that do not outlast an idle time, for example: `spells: {good: 1s, bad: 50ms}` (4.8 %), a plain share "
    "(`loss: 2%`), or a `rate` with a short `queue`"
)


def burst_packets(link: Link) -> float | None:
    """Average number of packets of a burst, from its start to its end; None if losses are independent."""
    loss = link.loss
    if isinstance(loss, GilbertElliott) and loss != NEXT_PACKET:
        return 1 / loss.r
    if isinstance(loss, FourState) and loss.p13:
        return (1 + (loss.p32 / loss.p23 if loss.p32 else 0.0)) / loss.p31
    return None


def bursty(profiles: Iterable[Profile]) -> Iterator[str]:
    """Text for each profile and direction with bursts: `train (downlink: about 5 packets, 6 % lost on average)`."""
    for profile in {each.name: each for each in profiles}.values():
        for direction, link in ((each, link) for each in Direction for link in dict.fromkeys(profile.links(each))):
            if (packets := burst_packets(link)) is not None:
                lost = f"{measured('loss_ratio', Expectation.of(link).loss)} lost on average"
                yield f"{profile.name} ({direction.value}: about {significant(packets, 2)} packets, {lost})"


def describe(profiles: Iterable[Profile]) -> Iterator[str]:
    """Warning about the profiles with bursts; empty if there are none."""
    if places := ", ".join(bursty(profiles)):
        yield f"{WHAT_FOLLOWS}. This applies to: {places}. {ALTERNATIVES}."


def stalls(profile: Profile, packet_gap_max_s: float) -> Iterator[str]:
    """Warn if no frame arrived for longer than a first retransmission timeout, over a link with bursts."""
    if packet_gap_max_s > STALL_S and (places := ", ".join(bursty([profile]))):
        yield (
            f"no frame for {packet_gap_max_s:.1f} s over a link with bursts of loss ({places}). netem advances bursts "
            "per packet: they do not end while the link is idle, but a real link might recover"
        )
