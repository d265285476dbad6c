"""Hints for keys that have a direction or a unit in their name, such as `downloadThroughput` and `latencyMs`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from headwind.matrix.link_keys import DirectionKeys
from headwind.matrix.shapes import shown
from headwind.matrix.spelling import form, in_words, respelt, synonym
from headwind.matrix.sweep import DIRECTIONS
from headwind.matrix.units import TIME, USUAL_UNITS, Mistake, is_number, with_unit
from headwind.matrix.wording import NUMBER

UNITS = {  # in other tools' names of keys, such as `delay_ms` and `throughputKbps`, by form
    "ms": "ms", "millisecond": "ms", "us": "us", "s": "s", "sec": "s", "second": "s", "kbp": "kbit", "kbit": "kbit",
    "mbp": "mbit", "mbit": "mbit", "bp": "bit", "percent": "%", "pct": "%",
}  # fmt: skip
ROUND_TRIPS = {"rtt", "ping", "round trip", "roundtrip", "round time trip"}
IN_BOTH = "`both` has no directions in it"
ONE_WAY = "a delay is one way, half of a round trip"
CHROMES = {"download", "upload"}  # in Chrome's names, alone or with `throughput`
_BITS = re.compile(rf"({NUMBER}) ?([kmg])(?:bps|b/s|bits?/s|bit)", re.IGNORECASE)


def as_rate(value: Any) -> str:
    """Rate for a number or a text such as `1.6Mbps`, in place of a direction's keys; empty for others."""
    bits = _BITS.fullmatch(value) if isinstance(value, str) else None
    return f"{bits[1]}{bits[2].lower()}bit" if bits else with_unit("rate", value) if is_number(value) else ""


def half(value: Any) -> str:
    """Delay in one direction, half of a round trip; dots if the value is no time."""
    try:
        TIME.parse(value)
    except Mistake:
        return "..."
    number = re.match(NUMBER, value)
    return f"{(Decimal(number[0]) / 2).normalize():f}{value[number.end() :]}" if number else "..."


def of_spelt_out(key: str, value: Any, inside: Sequence[str | int], neighbours: Mapping[str, Any]) -> str:
    """Hint for `bwDown: 1600`, `downlink_rate: 5mbit`, `download: 1.6Mbps` and `delay_ms: 50`; empty for other keys.

    `inside` is the way from the profile to the key, `neighbours` are the keys of its level with their values.
    """
    if inside == ("both",) and names_directions(neighbours) and (directions := _of_both(neighbours)):
        return f"{IN_BOTH}: in its place write {shown(directions)[1:-1]}"
    sides, units, name = _parts(key)
    if "." in key or (sides and inside) or len(sides) > 1:
        return ""
    if sides and not units and not name and (rate := as_rate(value)):
        return f"did you mean {shown({sides[0]: {'rate': rate}})[1:-1]}?{_taken(value, rate)}"
    own = _own_key(name)
    is_among_keys = not inside and any(each in DirectionKeys.model_fields for each in neighbours)  # named together
    is_bare = is_number(value) and name != own and own in USUAL_UNITS and not is_among_keys
    is_latency = form(name) == "latency" and not inside
    is_chromes = is_latency and any(map(_is_chromes, neighbours))
    if not own or not (sides or units or is_bare or is_chromes):
        return ""
    written, note = _written(own, value, units, is_bytes=bool(sides) and name == "throughput")
    if is_chromes:
        note = " Chrome's latency is a round trip, half of it each way"
    elif is_latency and not sides:
        note = f"{note}; {ONE_WAY}" if note else f" {ONE_WAY}"
    keys: dict[str, Any] = {own: half(written) if is_chromes or form(name) in ROUND_TRIPS else written}
    for side in sides or ([] if inside else ["downlink" if own == "loss" else "both"]):
        keys = {side: keys}
    return f"did you mean {shown(keys)[1:-1]}?{note}"


def names_directions(keys: Iterable[str]) -> bool:
    """True if a key such as `uploadThroughput` or `down` has a direction in its name."""
    return any(_parts(key)[0] for key in keys)


def _of_both(keys: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Both directions for keys of `both` of which some name a direction; empty if one of the keys is unknown."""
    directions: dict[str, dict[str, Any]] = {"downlink": {}, "uplink": {}}
    is_chromes = any(map(_is_chromes, keys))
    for key, value in keys.items():
        sides, units, name = _parts(key)
        rate = as_rate(value) if sides and not name else ""
        own = "rate" if rate else _own_key(name)
        if not own:
            return {}
        written = rate or _written(own, value, units, is_bytes=name == "throughput" and bool(sides))[0]
        is_trip = form(name) in ROUND_TRIPS or (is_chromes and form(name) == "latency")
        for side in sides or directions:
            directions[side][own] = half(written) if is_trip else written
    return directions


def _own_key(name: str) -> str:
    """Key of a direction that a name stands for; empty if it is none."""
    allowed = list(DirectionKeys.model_fields)
    return "delay" if form(name) in ROUND_TRIPS else respelt(name, allowed) or synonym(name, allowed)


def _parts(key: str) -> tuple[list[str], list[str], str]:
    """Directions, units, and the other words of a key's name."""
    words = re.findall(r"[^\W_]+", in_words(key).casefold())
    sides = {word: side for word in words if (side := respelt(word, DIRECTIONS) or synonym(word, DIRECTIONS))}
    units = [form(word) for word in words if form(word) in UNITS]
    name = " ".join(word for word in words if word not in sides and form(word) not in UNITS)
    return list(dict.fromkeys(sides.values())), units, name


def _is_chromes(key: str) -> bool:
    """True for a key of Chrome's networks, such as `downloadThroughput`."""
    words = {*form(in_words(key)).split()}
    return bool(words & CHROMES) and words <= CHROMES | {"throughput"}


def _written(own: str, value: Any, units: Sequence[str], *, is_bytes: bool) -> tuple[Any, str]:
    """The value with the unit of its key's name or its usual one, and a note; `is_bytes` if Chrome counts bytes."""
    if not is_number(value) or own not in USUAL_UNITS:
        return value, ""
    if units:
        return f"{value}{UNITS[units[0]]}", ""
    if is_bytes:
        return f"{Decimal(value) * 8 / 1000:f}kbit", " a throughput of Chrome's is in bytes per second"
    return (written := with_unit(own, value)), _taken(value, written)


def _taken(value: Any, written: str) -> str:
    """Note with the unit that a number without one is taken to have."""
    is_added = is_number(value) and written != value
    if is_number(value) and written == value:
        return f" its unit is missing: {value}% or {(Decimal(value) * 100).normalize():f}%"
    return f" a number without a unit is taken for {written.removeprefix(value)}" if is_added else ""
