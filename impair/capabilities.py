"""The capabilities of a kernel's netem. Standard library only: both sides of the wire use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from impair.profile import (
    Corrupt,
    Delay,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Profile,
    Rate,
    Reorder,
    Slot,
)
from impair.queues import Cake, Fifo, FqCodel, Pie, Red, kind_of

EVERY_KIND = tuple(
    Profile(name, uplink=link)
    for name, link in {
        "delay": Link(delay=Delay(0.01)),
        "jitter": Link(delay=Delay(0.01, 0.001)),
        "distribution": Link(delay=Delay(0.01, 0.001, "normal")),
        "loss": Link(loss=Loss(0.1)),
        "gemodel": Link(loss=GilbertElliott(0.1, 0.5)),
        "state": Link(loss=FourState(0.1, 0.5)),
        "ecn": Link(loss=Loss(0.1), ecn=True),
        "duplicate": Link(duplicate=Duplicate(0.1)),
        "corrupt": Link(corrupt=Corrupt(0.1)),
        "reorder": Link(delay=Delay(0.01), reorder=Reorder(0.1)),
        "rate": Link(rate=Rate(8_000_000)),
        "rate above 34 Gbit/s": Link(rate=Rate(8 * 2**33)),  # 32 bits of bytes/s hold no more
        "slot": Link(slot=Slot(0.001, 0.002)),
        **{
            f"queue {kind_of(queue)}": Link(rate=Rate(8_000_000), queue=queue)
            for queue in (Fifo(100), FqCodel(), Cake(), Red(100, 10, 30), Pie())
        },
    }.items()
)


@dataclass(frozen=True, slots=True)
class NetemCapabilities:
    """Capabilities of the running kernel's netem. Without `netem` it has none, and `why` has the error."""

    netem: bool
    why: str  # where it was tried, or the error
    kernel: str = ""  # its release
    seed: bool = False  # the random numbers can be repeated
    counters: bool = False  # one for each impairment
    refused: Mapping[str, str] = field(default_factory=dict)  # profile -> the kernel's error
