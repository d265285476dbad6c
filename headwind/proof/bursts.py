"""Warnings about bursts of loss, which netem counts in packets and not in time: which profiles have them.

netem's Gilbert-Elliott and 4-state chains take one step with each packet and none while nobody sends (loss_gilb_ell and
loss_4state in net/sched/sch_netem.c). On a radio link or behind a full buffer, a burst lasts for a time instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwind.format import significant
from impair.profile import Direction, FourState, GilbertElliott, Link, Profile

STALL_S = 1.0  # QUIC's and TCP's first timeout before a round trip is known (RFC 9002, 6.2.2; RFC 6298, 2.1)
WHAT_FOLLOWS = (
    "Bursts are counted in packets, not in time: a link on which nobody sends does not heal. A protocol that waits and "
    "then tries a single packet meets the rest of the same burst, and doubles its wait after each loss: TCP may end at "
    "one packet in two minutes"
)
ALTERNATIVES = "Losses that do not last through a silence: a plain share (`loss: 2%`), or a `rate` with a short `queue`"


def burst_packets(link: Link) -> float | None:
    """How many packets a burst has on average, from entering it until it is over; None where losses are independent."""
    loss = link.loss
    if isinstance(loss, GilbertElliott):
        return 1 / loss.r
    if isinstance(loss, FourState) and loss.p13:
        return (1 + (loss.p32 / loss.p23 if loss.p32 else 0.0)) / loss.p31
    return None


def bursty(profiles: Iterable[Profile]) -> Iterator[str]:
    """`train (downlink: about 5 packets)` for each profile and direction with bursts; each profile once."""
    for profile in {each.name: each for each in profiles}.values():
        for direction in Direction:
            packets = burst_packets(profile.link(direction))
            if packets is not None:
                yield f"{profile.name} ({direction.value}: about {significant(packets, 2)} packets)"


def describe(profiles: Iterable[Profile]) -> Iterator[str]:
    """One sentence or two about the profiles with bursts; nothing where there are none."""
    if places := ", ".join(bursty(profiles)):
        yield f"{WHAT_FOLLOWS}. So it is in: {places}. {ALTERNATIVES}."


def stalls(profile: Profile, silence_s: float) -> Iterator[str]:
    """A warning where a trial was silent for longer than a first timeout, over a link with bursts."""
    if silence_s > STALL_S and (places := ", ".join(bursty([profile]))):
        yield (
            f"no frame for {silence_s:.1f} s: a silence over bursts that are counted in packets, {places}, and do not "
            "heal with time; a link whose bursts last for a time may have been back by then"
        )
