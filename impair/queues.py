"""Queues of a bottleneck: the disciplines that a matrix can choose, as data classes. Standard library only.

A value that the kernel would clip, round to zero or ignore is refused when the object is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from impair.bounds import ImpossibleImpairment, check_count, check_ratio, check_time

MOST_PACKETS = 100_000  # as many fit into the memory of the user-mode kernel
RED_BITS = 20  # for the weight and the packets of RED's average: 12 more are bytes of a frame, and a sign
LONGEST_S = 60.0  # of a target, an interval or a round trip


def _check_us(where: str, seconds: float) -> None:
    check_time(where, seconds)
    if not 1e-5 <= seconds <= LONGEST_S:
        raise ImpossibleImpairment(where, f"{seconds:g} s is not between 10 us and {LONGEST_S:g} s")


@dataclass(frozen=True, slots=True)
class Fifo:
    """Packets leave in their order; one that finds `packets` others waiting is dropped."""

    packets: int

    def __post_init__(self) -> None:
        check_count("queue.packets", self.packets, 1, MOST_PACKETS)


@dataclass(frozen=True, slots=True)
class FqCodel:
    """A queue for each flow, served in turns, each with CoDel (RFC 8290).

    CoDel drops (with ecn: marks) packets of a queue whose shortest wait was above target_s for interval_s.
    """

    packets: int = 10_240  # the kernel's default, as all others here
    target_s: float = 0.005
    interval_s: float = 0.1
    ecn: bool = True

    def __post_init__(self) -> None:
        check_count("queue.packets", self.packets, 1, MOST_PACKETS)
        _check_us("queue.target", self.target_s)
        _check_us("queue.interval", self.interval_s)
        if self.target_s >= self.interval_s:
            raise ImpossibleImpairment("queue.target", "must be shorter than the interval")


@dataclass(frozen=True, slots=True)
class Cake:
    """A queue for each flow, with its own shaper: T. Høiland-Jørgensen et al., "Piece of CAKE", 2018.

    Its parameters follow from the rate and from rtt_s, the round trip that is to be expected.
    """

    rtt_s: float = 0.1
    packets: ClassVar[int] = MOST_PACKETS  # it counts bytes: at least 4 MB

    def __post_init__(self) -> None:
        _check_us("queue.rtt", self.rtt_s)


@dataclass(frozen=True, slots=True)
class Red:
    """Random early detection: S. Floyd and V. Jacobson, IEEE/ACM Transactions on Networking 1, 1993.

    A packet is dropped (with ecn: marked) with a probability that grows from 0 at an average of min_packets to
    `probability` at max_packets, and always above these. Packets are full frames.
    """

    packets: int
    min_packets: int
    max_packets: int
    probability: float = 0.1
    ecn: bool = False

    def __post_init__(self) -> None:
        check_count("queue.packets", self.packets, 1, MOST_PACKETS)
        check_count("queue.min", self.min_packets, 1, MOST_PACKETS)
        check_ratio("queue.probability", self.probability)
        if not self.min_packets < self.max_packets <= self.packets:
            raise ImpossibleImpairment("queue.max", "must be above min, and not above packets")
        if self.probability == 0:
            raise ImpossibleImpairment("queue.probability", "0 % never drops a packet early")
        if self.weight_log + self.max_packets.bit_length() > RED_BITS:  # net/sched/sch_red.c, red_check_params
            raise ImpossibleImpairment("queue.min", "is too small for this max: the kernel's 32 bits hold no such mean")

    @property
    def weight_log(self) -> int:
        """Minus the logarithm of the weight W of a packet in the average.

        W is the largest power of 2 at which a burst of (2 min + max)/3 packets that finds an empty queue does not
        push the average above min (Floyd and Jacobson 1993, equation 3).
        """
        burst = (2 * self.min_packets + self.max_packets) // 3
        surplus = burst + 1 - self.min_packets
        return next((w for w in range(1, RED_BITS) if surplus <= (1 - (1 - 2**-w) ** burst) * 2**w), RED_BITS)


@dataclass(frozen=True, slots=True)
class Pie:
    """Proportional integral controller enhanced (RFC 8033): drops at random to hold the wait at target_s."""

    packets: int = 1000
    target_s: float = 0.015
    ecn: bool = False

    def __post_init__(self) -> None:
        check_count("queue.packets", self.packets, 1, MOST_PACKETS)
        _check_us("queue.target", self.target_s)


Queue = Fifo | FqCodel | Cake | Red | Pie
KINDS: dict[str, type[Queue]] = {"fifo": Fifo, "fq_codel": FqCodel, "cake": Cake, "red": Red, "pie": Pie}


def kind_of(queue: Queue) -> str:
    """The kernel's name of a queue's discipline, except that of `fifo`."""
    return next(name for name, kind in KINDS.items() if type(queue) is kind)
