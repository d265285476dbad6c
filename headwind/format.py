"""Numbers as people read them. Everything inside the lab is SI; the units of this file are for display only.

Two kinds of number: a *measured* value has three significant digits ("406 ms", "30.1 %"), a *setting* is exact and as
short as it can be ("100 ms", "30 %"). The unit follows from the ending of the quantity's name: `_s`, `_ratio`, `_bps`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal

from headwind.arm import Arm, Protocol
from headwind.metric import Workload
from headwind.model import Matrix, Repetition
from headwind.observed import Kind, Observed
from headwind.servers import NGINX, Program
from headwind.settings import Windows
from impair.profile import NEXT_PACKET, Clock, Direction, GilbertElliott, Link, Loss, LossModel, Profile, Spells
from impair.queues import Queue, kind_of
from impair.trace import Trace

NOTHING = "\N{EM DASH}"  # no such value
DIGITS = 3
SECONDS_COUNT_S = 300  # shorter times have seconds

# (size of the unit, its name in a report, its name in matrix.yaml), largest first
_UNITS = {
    "_per_s": ((1.0, "/s", "/s"),),
    "_s": ((1.0, "s", "s"), (1e-3, "ms", "ms"), (1e-6, "µs", "us"), (1e-9, "ns", "ns")),
    "_ratio": ((1e-2, "%", "%"),),
    "_memory_bytes": ((1e9, "GB", "GB"), (1e6, "MB", "MB"), (1e3, "kB", "kB"), (1.0, "B", "B")),
    "_bps": ((1e9, "Gbit/s", "gbit"), (1e6, "Mbit/s", "mbit"), (1e3, "kbit/s", "kbit"), (1.0, "bit/s", "bit")),
}
_PLAIN = ((1.0, "", ""),)

Setting = tuple[str, str, float | str]  # key in matrix.yaml, ending that names the unit, value
Write = Callable[[str, float], str]  # (quantity's name, value in SI units) -> text


def measured(quantity: str, value: float | None) -> str:
    """A measured value with three significant digits: `measured("delay_s", 0.1004)` is "100 ms"; None is a dash."""
    if value is None:
        return NOTHING
    rounded = float(f"{value:.{DIGITS - 1}e}")  # first: 0.9996 s is 1.00 s, not 1,000 ms
    size, name, _ = _fitting(quantity, rounded)
    return _with_unit(significant(value / size), name)


def plus_minus(quantity: str, deviation: float) -> str:
    """A measured deviation: `± 3.84 ms`; that of a share: `± 0.5 percentage points`."""
    return f"\N{PLUS-MINUS SIGN} {measured(quantity, deviation).replace('%', 'percentage points')}"


def setting(quantity: str, value: float | None) -> str:
    """A value as set, to six digits: `setting("loss_ratio", 0.3)` is "30 %"; None is a dash."""
    if value is None:
        return NOTHING
    size, name, _ = _fitting(quantity, value)
    return _with_unit(f"{_exact(value / size, 6):,f}", name)


def as_written(quantity: str, value: float) -> str:
    """An exact value as in matrix.yaml: `as_written("rate_bps", 10_000_000)` is "10mbit"."""
    size, _, name = _fitting(quantity, value)
    return f"{_exact(value / size, 15):f}{name}"


def _exact(value: float, digits: int) -> Decimal:
    """`value` without the noise of binary fractions in its last digits; prints without an exponent."""
    return Decimal(f"{value:.{digits}g}")


def significant(value: float, digits: int = DIGITS) -> str:
    """`value` rounded to significant digits, with thousands separators and no exponent: "24,600", "0.0123", "1.90"."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa + 'e' + exponent):,.{max(0, digits - 1 - int(exponent))}f}"


def above(value: float, quantity: str = "timeout_s") -> str:
    """A lower bound, "> 60 s": rounded down to three digits, so that it stays a bound."""
    exponent = math.floor(math.log10(value)) if value > 0 else 0
    step = 10.0 ** (exponent - DIGITS + 1)
    # The nudge keeps a value that is already round (60 s, 0.29 s) where it is.
    return f"> {setting(quantity, math.floor(value / step + 1e-9) * step)}"


def below(quantity: str, value: float) -> str:
    """An upper bound, "< 60 s": rounded up to three digits."""
    step = 10.0 ** ((math.floor(math.log10(value)) if value > 0 else 0) - DIGITS + 1)
    return f"< {setting(quantity, math.ceil(value / step - 1e-9) * step)}"


def observed_text(quantity: str, value: Observed | None) -> str:
    """A trial's value, or the median of many: "406 ms", "> 60 s", "not completed"; None is a dash."""
    if value is None:
        return NOTHING
    if value.is_finished:
        return measured(quantity, value.low)
    if value.kind is Kind.NOTHING:
        return "not completed"
    return above(value.low, quantity) if value.low else below(quantity, value.high)


def _units(quantity: str) -> tuple[tuple[float, str, str], ...]:
    return next((units for ending, units in _UNITS.items() if quantity.endswith(ending)), _PLAIN)


def _fitting(quantity: str, value: float) -> tuple[float, str, str]:
    """The largest unit of which there is at least one; zero has the SI unit."""
    units = _units(quantity)
    least = abs(value) or 1.0
    return next((unit for unit in units if least >= unit[0] * (1 - 1e-12)), units[-1])


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}" if unit else number


def duration(seconds: float) -> str:
    """Elapsed time, to the second: "12 min 5 s"; a fraction of a second only below ten, as a measured time."""
    if seconds < 10 and seconds % 1:
        return measured("duration_s", seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def about(seconds: float) -> str:
    """Estimated time, as exact as is useful: "45 s", "1 min 30 s", "12 min", "3 h 5 min"."""
    return duration(round(seconds) if seconds < SECONDS_COUNT_S else round(seconds / 60) * 60)


def budget_text(seconds: float) -> str:
    """A budget as `--budget` takes it, in whole seconds: 900.0 -> `15min`."""
    whole = math.ceil(seconds)
    size, unit = next((each for each in ((3600, "h"), (60, "min")) if whole % each[0] == 0), (1, "s"))
    return f"{whole // size}{unit}"


def moment(epoch_s: float | None) -> str:
    """A point in time in UTC, to the second: "2026-11-21 09:35:12 UTC"; None is a dash."""
    if epoch_s is None:
        return NOTHING
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def protocol_name(protocol: Protocol) -> str:
    """HTTP/1.1, HTTP/2 or HTTP/3."""
    return {Protocol.H1: "HTTP/1.1", Protocol.H2: "HTTP/2", Protocol.H3: "HTTP/3"}[protocol]


def arm_name(arm: Arm | str) -> str:
    """HTTP/2 for the arm h2, "HTTP/2 (bbr)" for h2-bbr, "HTTP/2 (again)" for a twin of h2."""
    protocol, dash, rest = str(arm).partition("-")
    name = protocol_name(Protocol(protocol))
    return f"{name} ({rest})" if dash else name


def program_settings(program: Program) -> dict[str, str]:
    """The keys of the user's server, in the words of a matrix; empty ones are left out."""
    found = {
        "image": program.image,
        "command": " ".join(program.command),
        **{f"env.{name}": value for name, value in program.env},
        "port": str(program.port),
        "ready": program.ready,
        "protocols": ", ".join(program.protocols),
        "contract": program.contract.value,
        "fresh": program.fresh.value,
    }
    return {key: value for key, value in found.items() if value}


def override_settings(arm: Arm) -> dict[str, str]:
    """The settings of a single arm, in the words of a matrix: {"connections": "6", "congestion": "bbr"}."""
    own = arm.overrides
    found = {} if arm.server == NGINX else {"server": arm.server.name}
    found |= {key: str(value) for key, value in own.workload}
    if own.congestion:
        found["congestion"] = own.congestion
    windows = {"server": own.server_windows, "client": own.client_windows}
    if own.server_windows and own.server_windows is own.client_windows:
        return {**found, "settings": own.server_windows.value}
    return {**found, **{f"settings.{end}": size.value for end, size in windows.items() if size}}


def served_text(*workloads: Workload) -> str:
    """Requirements of workloads on the server besides its objects, as further sentences; empty if none.

    All workloads have the same requirements, except for the delay.
    """
    parts, workload = list[str](), workloads[0]
    delays = sorted({each.server_delay_s for each in workloads})
    if delays[-1]:
        waits = " to ".join(dict.fromkeys(setting("delay_s", delay) for delay in (delays[0], delays[-1])))
        parts.append(f"The server waits {waits} with each answer.")
    if workload.workers != 1:
        subject = "It" if parts else "The server"
        parts.append(f"{subject} has {workload.workers} workers.")
    own = {"TCP": workload.tcp_congestion, "QUIC": workload.quic_congestion}
    if names := [f"{name} of {transport}" for transport, name in own.items() if name]:
        parts.append(f"Congestion control here: {' and '.join(names)}.")
    if workload.competing:
        parts.append(f"Meanwhile the same server has {workload.competing} on the same path.")
    return "".join(f" {text}" for text in parts)


def override_texts(arms: Iterable[Arm]) -> list[str]:
    """A text for each arm that sets anything: `HTTP/2 (bbr): congestion bbr`."""
    overrides = ((arm, override_settings(arm)) for arm in arms)
    return [
        f"{arm_name(arm)}: {', '.join(f'{key} {value}' for key, value in settings.items())}"
        for arm, settings in overrides
        if settings
    ]


def variants_text(arms: Sequence[Arm]) -> str:
    """The arms with their own settings, in sentences."""
    shipped = any(Windows.AS_SHIPPED in (arm.overrides.server_windows, arm.overrides.client_windows) for arm in arms)
    meaning = " As shipped are the windows and buffers that the programs come with." if shipped else ""
    return f"Variants: {'; '.join(override_texts(arms))}.{meaning}"


def blocks_text(repeat: Repetition) -> str:
    """`1 block`, or `9 to 60 blocks`."""
    return counted(repeat.least, "block") if repeat.least == repeat.most else f"{repeat.least} to {repeat.most} blocks"


def planned_text(matrix: Matrix) -> str:
    """The blocks of each condition: `9 to 60 blocks`; of a search `up to 100 blocks at each of 21 values`."""
    if matrix.find is None:
        return blocks_text(matrix.repeat)
    return f"up to {counted(matrix.repeat.most, 'block')} at each of {counted(len(matrix.conditions), 'value')}"


def quantity_name(quantity: str) -> str:
    """`unexplained_loss_ratio` is "unexplained loss": the name without its unit."""
    for ending in _UNITS:
        quantity = quantity.removesuffix(ending)
    return quantity.replace("_", " ")


def short_digests(text: str) -> str:
    """The text with each SHA-1 or SHA-256 digest cut to its first 12 digits."""
    return re.sub(r"\b(?:sha256:)?([0-9a-f]{12})[0-9a-f]{28,52}\b", r"\1", text)


def counted(count: int, one: str, many: str = "") -> str:
    """A count and its noun: "1 trial", "2 trials", "1,000 requests"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """`a, b, c`; of more than `most` the first ones, and how many more there are: `a, b and 5 more`; never one."""
    most = most + 1 if len(names) == most + 1 else most
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def enumerated(items: Iterable[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = items
    return f"{', '.join(others)} {word} {last}" if others else last


def clean(text: str) -> str:
    """`text` with the replacement character for anything that a page or a terminal would interpret.

    These are control characters other than line ends and tabs, controls of the text direction, halves of surrogate
    pairs, and the code points that Unicode keeps out of text.
    """
    if text.isascii() and text.isprintable():  # nearly all
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _obeyed(character) else character for character in text)


def _obeyed(character: str) -> bool:
    if character in "\n\t":
        return False
    code = ord(character)
    turns = code in (0x061C, 0x200E, 0x200F) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    kept_out = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
    return turns or kept_out or unicodedata.category(character) in ("Cc", "Cs")


def link_settings(link: Link, write: Write = setting) -> dict[str, str]:
    """Every requested impairment of a direction, by its key in matrix.yaml, in the units `write` gives."""
    return {key: value if isinstance(value, str) else write(key + unit, value) for key, unit, value in _settings(link)}


def network_settings(profile: Profile, direction: Direction, write: Write = setting) -> dict[str, str]:
    """The requested impairments of a direction as `link_settings`, and its changes by the moment: "at 1 s"."""
    first, changes = link_settings(profile.link(direction), write), profile.changes(direction)
    if profile.rebinding and direction is Direction.UPLINK:
        return first | {
            f"at {write('at_s', profile.rebinding.at_s)}": f"another {profile.rebinding.kind} of the client"
        }
    if changes is None:
        return first
    if isinstance(changes, Spells):
        spells = f"{write('good_s', changes.good_s)} good, {write('bad_s', changes.bad_s)} bad"
        return {**first, "spells": f"{spells}: {_difference(first, link_settings(changes.bad, write))}"}
    if isinstance(changes, Trace):
        first = {key: value for key, value in first.items() if key != "rate"}  # its average
        return {**first, "trace": trace_text(changes, write), **_clock(profile)}
    found = {
        f"at {write('at_s', at_s)}": _difference(first, link_settings(link, write))
        for at_s, link in zip(changes.moments_s, changes.links, strict=True)
    }
    found |= {} if changes.period_s is None else {"every": write("every_s", changes.period_s)}
    return first | found | _clock(profile)


def _clock(profile: Profile) -> dict[str, str]:
    return {} if profile.clock is Clock.PACKET else {"clock": profile.clock.value}


def trace_text(trace: Trace, write: Write = setting) -> str:
    """A rate trace: `train.trace (sha256 0f3c52a1b7d9): 60 s, 4.81 Mbit/s on average, up to 12.1 Mbit/s, dark 9 s`."""
    blackout_s = f", dark {write('dark_s', round(trace.blackout_s, 3))}" if trace.blackout_s else ""
    mean, peak = (
        write("rate_bps", float(significant(bps).replace(",", ""))) for bps in (trace.mean_bps, trace.peak_bps)
    )
    return (
        f"{trace.file} (sha256 {trace.sha256[:12]}): {write('length_s', trace.length_s)}, {mean} on average, "
        f"up to {peak}{blackout_s}"
    )


def _difference(first: Mapping[str, str], then: Mapping[str, str]) -> str:
    """Differences of a later network from the first one: "loss 100 %", "no loss"; or that there are none."""
    other = [f"{key} {value}" for key, value in then.items() if first.get(key) != value]
    return ", ".join([*other, *(f"no {key}" for key in first if key not in then)]) or "as at the beginning"


def _settings(link: Link) -> Iterator[Setting]:
    """Everything in `link` that is not a default."""
    if link.delay:
        yield "delay", "_s", link.delay.delay_s
        yield from _unless(0, "jitter", "_s", link.delay.jitter_s)
        yield from _unless("uniform", "distribution", "", link.delay.distribution)
    if link.loss:
        yield from _loss_settings(link.loss)
    for name in ("duplicate", "corrupt", "reorder"):
        if part := getattr(link, name):
            yield name, "_ratio", part.ratio
    if link.reorder:
        yield from _unless(1, "reorder.gap", "", link.reorder.gap)
    if link.rate:
        yield "rate", "_bps", link.rate.rate_bps
        for name in ("packet_overhead", "cell_size", "cell_overhead"):
            yield from _unless(0, f"rate.{name}", "", getattr(link.rate, name))
    if link.slot:
        yield "slot.min_delay", "_s", link.slot.min_delay_s
        yield "slot.max_delay", "_s", link.slot.max_delay_s
        for name in ("max_packets", "max_bytes"):
            yield from _unless(0, f"slot.{name}", "", getattr(link.slot, name))
    yield from _unless("off", "ecn", "", "on" if link.ecn else "off")
    yield from _unless(None, "limit", "", link.limit_packets)
    yield from _unless(None, "queue", "", link.queue_packets)
    yield from _queue_settings(link.queue)


def _queue_settings(queue: Queue | None) -> Iterator[Setting]:
    """The kind of a bottleneck's queue, and its parameters with their units: `queue.target`."""
    if queue:
        yield "queue", "", kind_of(queue)
    for item in fields(queue) if queue else ():
        value, name = getattr(queue, item.name), item.name.removesuffix("_packets").removesuffix("_s")
        unit = "_s" if item.name.endswith("_s") else "_ratio" if name == "probability" else ""
        yield f"queue.{name}", unit, ("on" if value else "off") if isinstance(value, bool) else value


def _loss_settings(loss: LossModel) -> Iterator[Setting]:
    if loss == NEXT_PACKET:
        yield "loss", "", "of the next packet"
    elif isinstance(loss, Loss):
        yield "loss", "_ratio", loss.ratio
    else:
        model = "gemodel" if isinstance(loss, GilbertElliott) else "state"
        for item in fields(loss):
            yield f"loss.{model}.{item.name.removesuffix('_loss')}", "_ratio", getattr(loss, item.name)


def _unless(default: float | str | None, key: str, unit: str, value: float | str | None) -> Iterator[Setting]:
    if value is not None and value != default:
        yield key, unit, value
