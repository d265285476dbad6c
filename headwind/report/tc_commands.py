"""The iproute2 command that sets the netem of one direction without the lab."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from decimal import Decimal

from headwind.format import setting
from impair.netem_options import ALL, Options
from impair.profile import FRAME_BYTES, Link
from impair.queue_options import discipline, settings_of, tokens_bytes
from impair.queues import Cake, Fifo, FqCodel, Pie, Queue, Red
from impair.trace import Trace

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


def tc_change(link: Link, others: Iterable[Link], device: str) -> str:
    """The `tc qdisc change` command that gives a netem which had one of the `others` the settings of `link`.

    A change keeps the corruption, reordering and rate that it does not name (netem_change in net/sched/sch_netem.c), so
    those that one of the others has are named with 0. tc has no word that takes back ecn and slots. The seed is not
    named: the lab's is another one for each change.
    """
    options, earlier = Options.of(link, None), [Options.of(each, None) for each in others]
    distribution = link.delay.distribution if link.delay and link.delay.jitter_s else "uniform"
    words = ["tc", "qdisc", "change", "dev", shlex.quote(device), "root", "netem", *_words(options, distribution)]
    for name, nothing in (("corrupt", "0%"), ("reorder", "0%"), ("rate", "0bit")):
        if not getattr(options, name) and any(getattr(each, name) for each in earlier):
            words += [name, nothing]
    return " ".join(words)


def bottleneck_commands(link: Link, port: str, device: str) -> list[str]:
    """The commands that put the bottleneck of `link` before its netem; none without a queue.

    Frames that come in at `port` pass `device` first.
    """
    if not (link.queue and link.rate):
        return []
    port, device, queue = shlex.quote(port), shlex.quote(device), link.queue
    rate, words = f"{link.rate.rate_bps}bit", " ".join(_queue_words(link))
    cake = f"tc qdisc add dev {device} root handle 1: cake bandwidth {rate} {words}"
    # tc refuses a limit of 0, which the lab sends; the queue takes the place of the one that tbf makes of it
    tbf = f"tc qdisc add dev {device} root handle 1: tbf rate {rate} burst {tokens_bytes(link.rate.rate_bps)} limit 1mb"
    child = f"tc qdisc add dev {device} parent 1:1 handle 2: {discipline(queue)} {words}"
    return [
        f"ip link add {device} type ifb",
        f"ip link set dev {device} up",
        *([cake] if isinstance(queue, Cake) else [tbf, child]),
        f"tc qdisc add dev {port} ingress",
        f"tc filter add dev {port} ingress matchall action mirred egress redirect dev {device}",
    ]


def trace_commands(trace: Trace, queue: Queue, device: str) -> Iterator[str]:
    """The commands that give a bottleneck the rates of a trace, without end, each with its moment."""
    limit = queue.packets if isinstance(queue, Fifo) else 0
    for step in trace.steps():
        shape = f"tbf rate {step.rate_bps}bit burst {step.tokens_bytes} limit {limit}"
        yield f"tc qdisc change dev {shlex.quote(device)} root handle 1: {shape}  # at {setting('at_s', step.at_s)}"


def _queue_words(link: Link) -> Iterator[str]:
    """The options of a queue, in tc's words."""
    assert link.queue
    assert link.rate
    queue, settings = link.queue, settings_of(link.queue, link.rate.rate_bps)
    times = [(name, f"{settings[name]}us") for name in ("target", "interval") if name in settings]
    match queue:
        case Cake():
            yield from ("besteffort", "triple-isolate", "rtt", f"{settings['rtt']}us")
        case Red():
            yield from ("limit", str(settings["limit"]), "min", str(settings["qth_min"]))
            yield from ("max", str(settings["qth_max"]), "avpkt", str(FRAME_BYTES))
            yield from ("burst", str((2 * queue.min_packets + queue.max_packets) // 3))
            yield from ("probability", f"{queue.probability:.9g}", "bandwidth", f"{link.rate.rate_bps}bit")
            yield from ("ecn",) if queue.ecn else ()
        case _:
            yield from ("limit", str(settings["limit"]))
            for name, text in times:
                yield from (name, text)
            if isinstance(queue, FqCodel):
                yield from ("quantum", str(settings["quantum"]), "memory_limit", f"{settings['memory_limit']}b")
            if isinstance(queue, FqCodel | Pie):
                yield "ecn" if queue.ecn else "noecn"


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
