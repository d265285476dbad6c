"""What the lab set in one direction, as the iproute2 command that sets the same where there is no lab."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from decimal import Decimal

from impair.profile import Delay, FourState, GilbertElliott, Link, Loss, LossModel, Rate, Slot

ALL = 2**32 - 1  # netem keeps chances as fractions of it, and so does tc
TIME_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def tc_command(link: Link, seed: int | None, device: str) -> str:
    """The `tc qdisc add` that gives `device` the netem of `link` and the seed of its random numbers (None: any).

    A clean link has one as well: the lab gives every direction a netem. It is `add` and not `replace`, which changes a
    netem that is there already, and a changed netem keeps its old rate, corrupt, slot and ecn; `add` is refused where
    there is one (`tc qdisc del dev DEVICE root` first).

    The text is exact for iproute2 6.9 and later; earlier ones know no seed (6.6) and count delays in ticks of 64 ns.
    tc reads numbers as doubles (lib/utils.c, tc/tc_util.c, tc/q_netem.c): a percentage becomes rint(number / 100 *
    (2^32 - 1)) in get_percent, a time is cut to whole ns in get_time64, a rate to whole bytes/s in get_rate64. So times
    are written in the largest unit of which they are a whole number, and a percentage with as few digits as give the
    fraction that the lab sent. Above 2^53 bit/s a double cannot tell rates apart. tc takes no ecn with a loss of 0 %,
    where there is nothing to mark: it is left out.
    """
    words = ["tc", "qdisc", "add", "dev", shlex.quote(device), "root", "netem", *_impairments(link)]
    return " ".join(words if seed is None else [*words, "seed", str(seed)])


def _impairments(link: Link) -> Iterator[str]:
    yield from ("limit", str(link.limit))
    if link.delay:
        yield from _delay(link.delay)
    if link.loss:
        yield from _loss(link.loss, ecn=link.ecn)
    for name in ("duplicate", "corrupt", "reorder"):
        if (part := getattr(link, name)) and part.ratio:
            yield from (name, _percent(part.ratio))
    if link.reorder and link.reorder.ratio:
        yield from ("gap", str(link.reorder.gap))
    if link.rate:
        yield from _rate(link.rate)
    if link.slot:
        yield from _slot(link.slot)


def _delay(delay: Delay) -> Iterator[str]:
    yield from ("delay", _time(delay.delay_s))
    if delay.jitter_s:
        yield _time(delay.jitter_s)
    if delay.distribution != "uniform":  # which is netem's own; tc has no table of that name
        yield from ("distribution", delay.distribution)


def _loss(loss: LossModel, *, ecn: bool) -> Iterator[str]:
    """The chances are those of impair/options.py, also where rounding makes a difference of one in 2^32."""
    if isinstance(loss, Loss):
        if not loss.ratio:
            return
        yield from ("loss", "random", _percent(loss.ratio))
    elif isinstance(loss, GilbertElliott):
        bad_loss = ALL - _chance(1 - loss.bad_loss)  # tc takes 1-h and sends h
        yield from ("loss", "gemodel", _percent(loss.p), _percent(loss.r), _fraction(bad_loss))
        yield _percent(loss.good_loss)
    elif isinstance(loss, FourState):
        p32 = min(_chance(loss.p32), ALL - _chance(loss.p31))
        p14 = min(_chance(loss.p14), ALL - _chance(loss.p13))
        yield from ("loss", "state", _percent(loss.p13), _percent(loss.p31), _fraction(p32))
        yield from (_percent(loss.p23), _fraction(p14))
    if ecn:
        yield "ecn"


def _rate(rate: Rate) -> Iterator[str]:
    yield from ("rate", f"{rate.rate_bps}bit")
    if rate.packet_overhead or rate.cell_size:
        yield str(rate.packet_overhead)
    if rate.cell_size:
        yield from (str(rate.cell_size), str(rate.cell_overhead))


def _slot(slot: Slot) -> Iterator[str]:
    yield from ("slot", _time(slot.min_delay_s), _time(slot.max_delay_s))
    for name, count in (("packets", slot.max_packets), ("bytes", slot.max_bytes)):
        if count:
            yield from (name, str(count))


def _time(seconds: float) -> str:
    """In the largest unit of which it is a whole number, after rounding to ns as the lab does."""
    nanoseconds = round(seconds * 1e9)
    size, unit = next(part for part in TIME_UNITS if nanoseconds % part[0] == 0)
    return f"{nanoseconds // size}{unit}"


def _chance(ratio: float) -> int:
    return round(ratio * ALL)


def _percent(ratio: float) -> str:
    return _fraction(_chance(ratio))


def _fraction(chance: int) -> str:
    """The shortest percentage that tc turns into this fraction of 2^32 - 1; 17 digits tell all doubles apart."""
    texts = (f"{Decimal(f'{100 * chance / ALL:.{digits}g}'):f}" for digits in range(1, 18))
    return next(text for text in texts if round(float(text) / 100 * ALL) == chance) + "%"
