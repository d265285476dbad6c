"""Hints for words that other tools have for a network: a round trip is two delays, bursts are a model of loss."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from headwind.matrix.direction import DirectionKeys
from headwind.matrix.library import NETWORKS, with_keys
from headwind.matrix.mistakes import CORRELATION_HINT
from headwind.matrix.shapes import shown
from headwind.matrix.spelling import form, nearest
from headwind.matrix.units import RATIO, TIME, Mistake, quoted
from headwind.matrix.wording import NUMBER

ROUND_TRIPS = {"rtt", "ping", "round trip", "roundtrip", "round time trip"}
BURSTS = {"burst", "bursty", "burstiness", "burst loss", "burst length", "burst size", "burst mean"}
DIRECTIONS = ("uplink", "downlink", "both")
IN_PROFILE = 3  # steps: `profiles`, the name, the key
_TWO = re.compile(rf"({NUMBER}[a-z%]+)\s*(?:\s|\u00b1|\+/?-)\s*({NUMBER}[a-z%]+)")
USUAL_P, USUAL_R = Decimal("0.01"), Decimal("0.25")  # of a hint's example: bursts of four packets


def of_other_tools(path: Sequence[str | int], value: Any, beside: Mapping[str, Any]) -> str:
    """What to write for a key in a profile, in a direction or in a loss; `path` leads there."""
    if path[0] != "profiles" or len(path) < IN_PROFILE:
        return ""
    key, inside = str(path[-1]), path[IN_PROFILE - 1 : -1]
    if not inside and "library" in beside and (found := beside_a_library(beside)):
        return found
    if form(key) in ROUND_TRIPS:
        delay = f"delay: {_half(value)}"
        return f"{quoted(key)} is two delays: {delay if inside == ('both',) else f'both: {{{delay}}}'}"
    if form(key) in BURSTS:
        model = _gemodel(value, beside.get("loss"))
        for name in ("loss", "downlink")[: max(0, 2 - len(inside))]:
            model = f"{name}: {{{model}}}"
        return f"bursts of losses are a model of the loss: {model}"
    return "" if inside else _by_direction(key, value)


def beside_a_library(beside: Mapping[str, Any]) -> str:
    """How to write a network of the library with other keys; empty without such a network."""
    library = str(beside["library"])
    name = library if library in NETWORKS else nearest(library, list(NETWORKS))
    if not name:
        return ""
    meant = {_key(key): value for key, value in beside.items() if key != "library"}
    keys = {key: value for key, value in meant.items() if key in (*DirectionKeys.model_fields, *DIRECTIONS)}
    return f"a profile has `library` or keys of its own; {name} with other values is {shown(with_keys(name, keys))}"


def _key(key: str) -> str:
    allowed = (*DIRECTIONS, *DirectionKeys.model_fields)
    return key if key in allowed else nearest(key, allowed)


def _by_direction(key: str, value: Any) -> str:
    """`rate: {down: 30mbit, up: 10mbit}` has the directions inside, and here they are around."""
    if not isinstance(value, dict) or (own := nearest(key, list(DirectionKeys.model_fields))) == "":
        return ""
    sides = {nearest(side, DIRECTIONS): each for side, each in value.items()}
    if not sides or "" in sides:
        return ""
    return f"the direction comes first: {shown({side: {own: each} for side, each in sides.items()})}"


def of_two_values(path: Sequence[str | int], value: Any) -> str:
    """`delay: 60ms 10ms` and `loss: 2% 25%`, where tc has a second number for jitter and for correlation."""
    found = _TWO.fullmatch(value) if path[0] == "profiles" and isinstance(value, str) else None
    if found and path[-1] == "delay":
        return f"did you mean `delay: {found[1]}, jitter: {found[2]}`?"
    return CORRELATION_HINT if found and path[-1] in ("loss", "duplicate", "corrupt", "reorder") else ""


def _half(value: Any) -> str:
    try:
        TIME.parse(value)
    except Mistake:
        return "..."
    number = re.match(NUMBER, value)
    return f"{(Decimal(number[0]) / 2).normalize():f}{value[number.end() :]}" if number else "..."


def _gemodel(packets: Any, loss: Any) -> str:
    """The model with bursts of so many packets and that share of lost ones, as far as both are numbers."""
    is_count = isinstance(packets, str) and packets.isdecimal() and 1 <= int(packets) <= 1000
    r = 1 / Decimal(packets) if is_count else USUAL_R
    try:
        share = RATIO.parse(loss)
    except Mistake:
        return f"gemodel: {{p: {_percent(USUAL_P)}, r: {_percent(r)}}}"
    p = share * r / (1 - share) if share < 1 else Decimal(1)
    return f"gemodel: {{p: {_percent(min(p, Decimal(1)))}, r: {_percent(r)}}}"


def _percent(share: Decimal) -> str:
    return f"{Decimal(f'{share * 100:.2g}').normalize():f}%"
