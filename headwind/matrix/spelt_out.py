"""Hints for keys that have a direction or a unit in their name, such as `downloadThroughput` and `latencyMs`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from headwind.matrix.link_keys import DirectionKeys
from headwind.matrix.nowhere import CPU_NOT_SLOWED
from headwind.matrix.shapes import shown
from headwind.matrix.spelling import form, has_word, in_words, respelt, synonym
from headwind.matrix.sweep import DIRECTIONS
from headwind.matrix.units import LEAST_KBIT, MEGA, TIME, USUAL_UNITS, Mistake, is_number, quoted, with_unit
from headwind.matrix.wording import NUMBER

UNITS = {  # in other tools' names of keys, such as `delay_ms` and `throughputKbps`, by form
    "ms": "ms", "millisecond": "ms", "us": "us", "s": "s", "sec": "s", "second": "s", "kbp": "kbit", "kbit": "kbit",
    "mbp": "mbit", "mbit": "mbit", "bp": "bit", "percent": "%", "pct": "%",
}  # fmt: skip
ROUND_TRIPS = {"rtt", "ping", "round trip", "roundtrip", "round time trip", "latency round trip", "roundtriplatency"}
TWO_WAY_LOSS = "plr"  # WebPageTest applies it in both directions: internal/traffic_shaping.py of its agent
IN_BOTH = "`both` has no directions in it"
LEAST_LINE = 56  # kbit/s: a smaller number is in mbit/s
TOGETHER = "in place of these keys"
ONE_WAY = "a delay is one way, half of a round trip"
BANDWIDTHS = {"in": "downlink", "out": "uplink"}  # in WebPageTest's `bwIn` and `bwOut`
COMCASTS = "bw target"  # in kbit/s
CHROMES = {"download", "upload"}  # in Chrome's names, alone or with `throughput`
_TWO_RATES = re.compile(rf"({NUMBER}) ?([a-z]*) ?/ ?({NUMBER}) ?([a-z]+)", re.IGNORECASE)
_BITS = re.compile(rf"({NUMBER}) ?([kmgKMG])([bB]ps|[bB]/s|[bB]its?/s|[bB]it)")


def as_rate(value: Any) -> str:
    """Rate for a number or a text such as `1.6Mbps` or `5MB/s`, in place of a direction's keys; empty for others.

    Units in which tc counts bytes and others bits, such as `mbps`, stay: the rate's own message has both.
    """
    found = _BITS.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return with_unit("rate", value) if is_number(value) else ""
    number, prefix, unit = found.groups()
    if unit == "bps" and prefix.islower():
        return str(value)
    amount = f"{(8 * Decimal(number)).normalize():f}" if unit in ("Bps", "B/s") else number
    return f"{amount}{prefix.lower()}bit"


def half(value: Any) -> str:
    """Delay in one direction, half of a round trip; dots if the value is no time."""
    value = re.sub(r"(?<=[0-9]) (?=[a-z])", "", value) if isinstance(value, str) else value
    try:
        TIME.parse(value)
    except Mistake:
        return "..."
    number = re.match(NUMBER, value)
    return f"{(Decimal(number[0]) / 2).normalize():f}{value[number.end() :]}" if number else "..."


def of_directions(inside: Sequence[str | int], keys: Mapping[str, Any]) -> str:
    """Hint for all keys of a profile, or of its `both`, of which some have a direction in their name."""
    is_one, keys = len(keys) < 2, _flat(keys)
    is_spelt_out = names_directions(keys) or (not inside and sum(bool(_parts(key)[1]) for key in keys) > 1)
    is_several = inside in ((), ("both",)) and not is_one and is_spelt_out
    directions = _of_directions(keys, is_both=bool(inside)) if is_several else {}
    if not directions:
        return ""
    sides = list(directions.values())
    is_alike = len(sides) > 1 and sides[0] == sides[1] and not inside and not names_directions(keys)
    text = f"write {shown({'both': sides[0]} if is_alike else directions)[1:-1]}"
    note = f"; {CPU_NOT_SLOWED}" if any(has_word(key, "cpu") for key in keys) else ""
    return (f"{IN_BOTH}: in its place {text}" if inside else f"{TOGETHER} {text}{_round_trip(keys)}") + note


def two_rates(value: Any) -> dict[str, str]:
    """The directions with the rates of `16mbit/1mbit` or `16/1 mbit`; empty for others."""
    rates = _TWO_RATES.fullmatch(value) if isinstance(value, str) else None
    return {"downlink": f"{rates[1]}{rates[2] or rates[4]}", "uplink": f"{rates[3]}{rates[4]}"} if rates else {}


def _flat(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys, of which one with a value for each direction is several: `rate down` and `rate up`."""
    found: dict[str, Any] = {}
    for key, value in keys.items():
        sides = value if isinstance(value, dict) else two_rates(value)
        is_by_direction = sides and all(respelt(each, DIRECTIONS) or synonym(each, DIRECTIONS) for each in sides)
        found |= {f"{key} {side}": own for side, own in sides.items()} if is_by_direction else {key: value}
    return found


def of_spelt_out(key: str, value: Any, inside: Sequence[str | int], neighbours: Mapping[str, Any]) -> str:
    """Hint for `bwDown: 1600`, `downlink_rate: 5mbit`, `download: 1.6Mbps` and `delay_ms: 50`; empty for other keys.

    `inside` is the way from the profile to the key, `neighbours` are the keys of its level with their values.
    """
    sides, units, name = _parts(key)
    if "." in key or (sides and inside) or len(sides) > 1:
        return ""
    if sides and not name and not units and (rate := _rate(key, value, neighbours)):
        return f"did you mean {shown({sides[0]: {'rate': rate}})[1:-1]}?{_taken(value, rate)}"
    own = _own_key(name)
    is_among_keys = not inside and any(each in DirectionKeys.model_fields for each in neighbours)  # named together
    is_bare = is_number(value) and name != own and own in USUAL_UNITS and not is_among_keys
    is_latency = form(name) == "latency" and not inside
    is_trip = form(name) in ROUND_TRIPS or (is_latency and bool(_tools(neighbours)))
    if not own or not (sides or units or is_bare or (is_latency and is_trip)):
        return ""
    if _is_no_loss(own, value):
        return "remove it: without `loss` nothing is lost"
    written, note = _written(key, value, neighbours)
    if is_latency and is_trip:
        note = _round_trip(neighbours)
    elif is_latency and not sides:
        note = f"{note}; {ONE_WAY}" if note else f" {ONE_WAY}"
    keys: dict[str, Any] = {own: half(written) if is_trip else written}
    for side in sides or ([] if inside else ["downlink" if _is_one_way(key, own) else "both"]):
        keys = {side: keys}
    text = shown(keys)[1:-1]
    if own == "rate" and is_number(value) and not (sides or units) and form(key) != COMCASTS and Decimal(value) < MEGA:
        other = text.replace("mbit", "kbit") if "mbit" in text else text.replace("kbit", "mbit")
        return f"{quoted(value)} has no unit: write `{text}` or `{other}`"
    return f"did you mean {text}?{note}"


def names_directions(keys: Iterable[str]) -> bool:
    """True if a key such as `uploadThroughput` or `down` has a direction in its name."""
    return any(_parts(key)[0] for key in keys)


def _of_directions(keys: Mapping[str, Any], *, is_both: bool) -> dict[str, dict[str, Any]]:
    """The directions for keys of which some name one; empty if one of the keys is unknown.

    The others are those of both directions, except for a loss, unless they are written in `both`.
    """
    directions: dict[str, dict[str, Any]] = {"downlink": {}, "uplink": {}}
    for key, value in keys.items():
        sides, _, name = _parts(key)
        rate = _rate(key, value, keys) if sides and not name else ""
        own = "rate" if rate else _own_key(name)
        if not own and has_word(key, "cpu"):
            continue  # `cpuSlowdownMultiplier` is no part of a network
        if not own:
            return {}
        if _is_no_loss(own, value):
            continue
        written = rate or _written(key, value, keys)[0]
        is_trip = form(name) in ROUND_TRIPS or (bool(_tools(keys)) and form(name) == "latency")
        usual = ["downlink"] if _is_one_way(key, own) and not is_both else list(directions)
        for side in usual if not sides or "both" in sides else sides:
            directions[side][own] = half(written) if is_trip else written
    return {side: own for side, own in directions.items() if own}


def _is_one_way(key: str, own: str) -> bool:
    return own == "loss" and form(key) != TWO_WAY_LOSS


def _is_no_loss(own: str, value: Any) -> bool:
    return own == "loss" and is_number(value) and not Decimal(value)


def _own_key(name: str) -> str:
    """Key of a direction that a name stands for; empty if it is none."""
    allowed = list(DirectionKeys.model_fields)
    return "delay" if form(name) in ROUND_TRIPS else respelt(name, allowed) or synonym(name, allowed)


def _parts(key: str) -> tuple[list[str], list[str], str]:
    """Directions, units, and the other words of a key's name."""
    words = re.findall(r"[^\W_]+", in_words(key).casefold())
    sides = {word: side for word in words if (side := respelt(word, DIRECTIONS) or synonym(word, DIRECTIONS))}
    if "bw" in words:
        sides |= {word: BANDWIDTHS[word] for word in words if word in BANDWIDTHS}
    units = [form(word) for word in words if form(word) in UNITS]
    name = " ".join(word for word in words if word not in sides and form(word) not in UNITS)
    return list(dict.fromkeys(sides.values())), units, name


def _tools(keys: Iterable[str]) -> list[str]:
    """The tools that have such keys as `downloadThroughput` or `bwDown` in their networks, and round trips there."""
    words = [{*form(in_words(key)).split()} for key in keys]
    chromes = any(each & CHROMES and each <= CHROMES | {"throughput"} for each in words)
    return ["Chrome"] * chromes + ["WebPageTest"] * any(
        "bw" in each and each & {"down", "up", *BANDWIDTHS} for each in words
    )


def _round_trip(keys: Iterable[str]) -> str:
    if not any(form(_parts(key)[2]) == "latency" for key in keys):
        return ""
    tools = _tools(keys)
    return f"; the latency of {tools[0]} is a round trip, half of it each way" if tools else f"; {ONE_WAY}"


def _rate(key: str, value: Any, neighbours: Mapping[str, Any]) -> str:
    """The rate for a value; a number is in kbit/s if the tool of its key has it so. Empty for what is no rate."""
    rate = as_rate(value)
    if not rate or not is_number(value):
        return rate
    if form(key) == COMCASTS:
        return f"{value}kbit"
    lines = [Decimal(str(each)) for name, each in neighbours.items() if _parts(name)[0] and is_number(each)]
    most = max(lines, default=Decimal(0))
    is_chromes = "Chrome" in _tools([key]) and (most >= LEAST_KBIT or "latency" in map(form, neighbours))
    is_kbit = (is_chromes or ("WebPageTest" in _tools([key]) and most >= LEAST_LINE)) and most < MEGA
    return f"{value}kbit" if is_kbit else rate


def _written(key: str, value: Any, neighbours: Mapping[str, Any]) -> tuple[Any, str]:
    """The value with the unit of its key's name or its usual one, and a note."""
    sides, units, name = _parts(key)
    own = _own_key(name)
    if not is_number(value) or own not in USUAL_UNITS:
        return value, ""
    if units:
        return f"{value}{UNITS[units[0]]}", ""
    if sides and name == "throughput":
        return f"{Decimal(value) * 8 / 1000:f}kbit", " a throughput of Chrome's is in bytes per second"
    written = _rate(key, value, neighbours) if own == "rate" else with_unit(own, value)
    if form(key) == COMCASTS:
        return written, " target-bw of comcast is in kbit per second"
    return written, _taken(value, written)


def _taken(value: Any, written: str) -> str:
    """Note with the unit that a number without one is taken to have."""
    is_added = is_number(value) and written != value
    if is_number(value) and written == value:
        return f" its unit is missing: {value}% or {(Decimal(value) * 100).normalize():f}%"
    return f" its unit is missing: {written.removeprefix(value)} is a guess" if is_added else ""
