"""The iproute2 command that sets the netem of one direction without the lab."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from decimal import Decimal

from impair.netem_options import ALL, Options
from impair.profile import Link

TIME_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def tc_command(link: Link, seed: int | None, device: str) -> str:
    """The `tc qdisc add` command that gives `device` the netem of `link`, with a random seed (None: any).

    A clean link has a command too: the lab gives every direction a netem. It is `add` and not `replace`, which changes
    an existing netem, and a changed netem keeps its old rate, corrupt, slot and ecn; `add` is refused if one exists
    (`tc qdisc del dev DEVICE root` first).

    The text is exact for iproute2 6.9 and later; earlier ones have no seed (6.6) and count delays in ticks of 64 ns. tc
    reads numbers as doubles (lib/utils.c, tc/tc_util.c, tc/q_netem.c): a percentage becomes rint(number / 100 * (2^32 -
    1)) in get_percent, a time is cut to whole ns in get_time64, a rate to whole bytes/s in get_rate64. So times are
    written in the largest unit of which they are a whole number, and a percentage with as few digits as give the
    fraction that the lab sent. Above 2^53 bit/s a double cannot distinguish rates. tc takes no ecn with a loss of 0 %,
    which has nothing to mark: it is left out.
    """
    distribution = link.delay.distribution if link.delay else "uniform"
    words = ["tc", "qdisc", "add", "dev", shlex.quote(device), "root", "netem"]
    return " ".join([*words, *_words(Options.of(link, seed), distribution)])


def _words(options: Options, distribution: str) -> Iterator[str]:
    """The options that the kernel gets, in tc's words."""
    yield from ("limit", str(options.limit))
    if options.latency or options.jitter:
        yield from ("delay", _time(options.latency))
        if options.jitter:
            yield _time(options.jitter)
    if distribution != "uniform":  # netem's default; tc has no table of that name
        yield from ("distribution", distribution)
    yield from _loss(options)
    for name, chance in (("duplicate", options.duplicate), ("corrupt", options.corrupt), ("reorder", options.reorder)):
        if chance:
            yield from (name, _percent(chance))
    if options.gap:
        yield from ("gap", str(options.gap))
    if options.rate:
        yield from _rate(options)
    if options.slot:
        yield from _slot(*options.slot[:4])
    if options.seed is not None:
        yield from ("seed", str(options.seed))


def _loss(options: Options) -> Iterator[str]:
    if options.gilbert_elliott:
        p, r, h, k1 = options.gilbert_elliott  # tc takes 1-h and sends h
        yield from ("loss", "gemodel", _percent(p), _percent(r), _percent(ALL - h), _percent(k1))
    elif options.four_state:
        p13, p31, p32, p14, p23 = options.four_state
        yield from ("loss", "state", _percent(p13), _percent(p31), _percent(p32), _percent(p23), _percent(p14))
    elif options.loss:
        yield from ("loss", "random", _percent(options.loss))
    else:
        return
    if options.ecn:
        yield "ecn"


def _rate(options: Options) -> Iterator[str]:
    yield from ("rate", f"{options.rate * 8}bit")
    if options.packet_overhead or options.cell_size:
        yield str(options.packet_overhead)
    if options.cell_size:
        yield from (str(options.cell_size), str(options.cell_overhead))


def _slot(shortest: int, longest: int, packets: int, size_bytes: int) -> Iterator[str]:
    yield from ("slot", _time(shortest), _time(longest))
    for name, count in (("packets", packets), ("bytes", size_bytes)):
        if count:
            yield from (name, str(count))


def _time(nanoseconds: int) -> str:
    """The time in the largest unit of which it is a whole number."""
    size, unit = next(part for part in TIME_UNITS if nanoseconds % part[0] == 0)
    return f"{nanoseconds // size}{unit}"


def _percent(chance: int) -> str:
    """The shortest percentage that tc turns into this fraction of 2^32 - 1; 17 digits distinguish all doubles."""
    texts = (f"{Decimal(f'{100 * chance / ALL:.{digits}g}'):f}" for digits in range(1, 18))
    return next(text for text in texts if round(float(text) / 100 * ALL) == chance) + "%"
