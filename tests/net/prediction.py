"""What a seeded netem does to each packet, worked out beforehand: the kernel must do exactly that.

netem takes all its decisions, except which bit to flip and how far slots are apart, from one generator per qdisc, in a
fixed order per packet. The generator is prandom_u32_state() of lib/random32.c, L'Ecuyer's LFSR113 ("Tables of maximally
equidistributed combined LFSR generators", 1999); the order of the draws is that of netem_enqueue() in
net/sched/sch_netem.c. Any stray packet (ARP, IPv6) shifts the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from impair.distribution import TABLE_SCALE
from impair.netem_options import Options

WORD = 2**32 - 1


class Lfsr113:
    """32-bit numbers from four shift registers of 31, 29, 28 and 25 bits, seeded as prandom_seed_state() does."""

    REGISTERS = ((6, 13, 1, 18), (2, 27, 3, 2), (13, 21, 4, 7), (3, 12, 7, 13))  # in, out, unused low bits, step

    def __init__(self, seed: int) -> None:
        folded = (seed >> 32 ^ seed << 10 ^ seed) & WORD
        self._state = [folded + least if folded < least else folded for least in (2, 8, 16, 128)]

    def draw(self) -> int:
        result = 0
        for number, (inward, outward, unused, step) in enumerate(self.REGISTERS):
            value = self._state[number]
            feedback = ((value << inward & WORD) ^ value) >> outward
            value = (value >> unused << unused << step & WORD) ^ feedback
            self._state[number] = value
            result ^= value
        return result


@dataclass(frozen=True, slots=True)
class Copy:
    """One packet that netem lets through. `delay` in ns is None for one that overtakes (`reorder`)."""

    offered: int  # which of the offered packets it is, from 0
    corrupted: bool
    delay: int | None


class SeededNetem:
    """netem as the kernel runs it, fed with packets one by one; `counters` are those of kernel 7.2 and later."""

    def __init__(self, options: Options, table: Sequence[int] = ()) -> None:
        """`table` is the delay distribution's; empty for netem's own, which is uniform."""
        assert options.seed is not None, "without a seed nothing can be predicted"
        assert options.slot is None, "slots draw from another generator"
        self._options = options
        self._table = table
        self._random = Lfsr113(options.seed)
        self._bad = False  # Gilbert-Elliott
        self._state = 1  # 4-state: 1 good, 2 good within a burst, 3 lost in a burst, 4 lost alone
        self._delayed_in_a_row = 0
        self._offered = 0
        names = ("packets", "drops", "requeues", "delayed", "dropped", "corrupted", "duplicated", "reordered")
        self.counters = dict.fromkeys(names, 0)

    def offer(self) -> list[Copy]:
        """The copies of the next packet that get through, in the order in which they join the queue."""
        self._offered += 1
        return list(self._enqueue(may_duplicate=True))

    def _happens(self, chance: int) -> bool:
        return chance > 0 and chance >= self._random.draw()

    def _count(self, *names: str) -> None:
        for name in names:
            self.counters[name] += 1

    def _enqueue(self, *, may_duplicate: bool) -> Iterator[Copy]:
        options = self._options
        duplicated = may_duplicate and self._happens(options.duplicate)
        if duplicated:
            self._count("duplicated")
        lost = self._is_lost()
        if lost:
            self._count("dropped")
        if lost and not duplicated:
            self._count("drops")
            return
        corrupted = self._happens(options.corrupt)
        if corrupted:
            self._count("corrupted")
        if duplicated and not lost:
            yield from self._enqueue(may_duplicate=False)  # the copy goes through everything again, and first
        yield Copy(self._offered - 1, corrupted, self._delay())
        self._count("packets")

    def _delay(self) -> int | None:
        options = self._options
        if options.gap and self._delayed_in_a_row >= options.gap - 1 and options.reorder >= self._random.draw():
            self._delayed_in_a_row = 0
            self._count("reordered", "requeues")
            return None
        self._delayed_in_a_row += 1
        delay = options.latency + (self._deviation(options.jitter) if options.jitter else 0)
        if delay or options.rate:
            self._count("delayed")
        return delay

    def _deviation(self, jitter: int) -> int:
        drawn = self._random.draw()
        if not self._table:
            return drawn % (2 * jitter) - jitter
        entry = self._table[drawn % len(self._table)]
        rest = (jitter % TABLE_SCALE) * entry
        rounded = (abs(rest) + TABLE_SCALE // 2) // TABLE_SCALE
        return jitter // TABLE_SCALE * entry + (rounded if rest >= 0 else -rounded)

    def _is_lost(self) -> bool:
        if self._options.four_state:
            return self._four_state_loses(*self._options.four_state)
        if self._options.gilbert_elliott:
            return self._gilbert_elliott_loses(*self._options.gilbert_elliott)
        return self._happens(self._options.loss)

    def _gilbert_elliott_loses(self, p: int, r: int, h: int, k1: int) -> bool:
        was_bad = self._bad
        if self._random.draw() < (r if was_bad else p):
            self._bad = not was_bad
        fate = self._random.draw()
        return fate > h if was_bad else fate < k1  # a packet meets the state that it found

    def _four_state_loses(self, p13: int, p31: int, p32: int, p14: int, p23: int) -> bool:
        fate = self._random.draw()
        moves = {
            1: ((p14, 4), (p13 + p14, 3)),
            2: ((p23, 3),),
            3: ((p32, 2), (p31 + p32, 1)),
            4: ((WORD + 1, 1),),
        }  # fmt: skip
        for below, state in moves[self._state]:
            if fate < below:
                self._state = state
                break
        return self._state in (3, 4)
