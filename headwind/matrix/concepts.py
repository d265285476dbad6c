"""Hints for other tools' terms for a network: a round trip is two delays, bursts are a loss model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import BaseModel

from headwind.format import as_written, enumerated
from headwind.matrix.link_keys import (
    QUEUE_EXAMPLES,
    DirectionKeys,
    GemodelKeys,
    QueueKeys,
    SpellsKeys,
    StateKeys,
    queue_keys,
)
from headwind.matrix.mistakes import NO_CORRELATION, Slip
from headwind.matrix.places import END_OF_CHANGE
from headwind.matrix.presets import NETWORKS, with_keys
from headwind.matrix.profile import another_unit
from headwind.matrix.shapes import DOWN, UP, YES, shown, takes
from headwind.matrix.spelling import form, nearest, respelt, synonym
from headwind.matrix.spelt_out import ROUND_TRIPS, as_rate, half, of_directions, of_spelt_out, two_rates
from headwind.matrix.sweep import DIRECTIONS, SWEPT, as_list, as_range, in_a_row
from headwind.matrix.units import RATE, RATIO, SIZE, TIME, Mistake, Unit, is_number, quoted, with_unit
from headwind.matrix.wording import NUMBER
from impair.profile import FRAME_BYTES, Rebind
from impair.queues import KINDS

BURSTS = {"burst", "bursty", "burstiness", "burst loss", "burst length", "burst size", "burst mean"}
PARTNERS = {  # of a key: another one that it needs, and an example of a value
    "distribution": ("jitter", "5ms"), "jitter": ("delay", "20ms"), "reorder": ("delay", "20ms"), "ecn": ("loss", "1%"),
    "queue": ("rate", "10mbit"),
}  # fmt: skip
IN_PROFILE = 3  # steps: `profiles`, the name, the key
_TWO = re.compile(rf"(?:random )?({NUMBER}[a-z%]+)\s*(?:\s|\u00b1|\+/?-)\s*(?:correlation )?({NUMBER}[a-z%]+)")
_RANGE = re.compile(rf"({NUMBER}) ?([a-z]*) ?(?:-|to|\.\.+|\u2013) ?({NUMBER}) ?(ns|us|ms|s)")
_SPAN = re.compile(rf"({NUMBER}) ?([a-z%]*) ?(?:-|to|\.\.+|\u2013) ?({NUMBER}) ?([a-z%]+)")
_BURSTY = re.compile(rf"(?:ge|ge?model|gilbert\S*|bursty?|bursts)((?:[ ,]+{NUMBER}%){{0,4}})")
_IN_BURSTS = re.compile(
    rf"({NUMBER}%)[ ,]+(?:in |with )?burst(?:s|y)?(?: of| length| size)?[ =]*([0-9.]+[a-z]*)?(?: packets?)?"
)
_OF_TRIP = r"\(?(?:rtt|ping|round[ -]?trip)(?: time)?\)?"
_TRIP = re.compile(rf"({NUMBER} ?[a-z]+) *{_OF_TRIP}|{_OF_TRIP}[ :=]*({NUMBER} ?[a-z]+)", re.IGNORECASE)
_BDP = re.compile(rf"({NUMBER})? ?[x*]? ?bdps?")
_SPREAD = re.compile(rf"({NUMBER}) ?([a-z]*) ?(?:\u00b1|\+/?-) ?({NUMBER}) ?(ns|us|ms|s)")
_BIT_ERRORS = {"ber", "bit error", "bit error rate"}
_OUTAGES = {"outage", "blackout", "downtime", "offline", "dropout", "interruption", "disconnect", "blackhole"}
_SPREADS = {"stddev", "std", "dev std", "sd", "sigma", "deviation", "deviation standard", "variation"}
_PERIODS = {"every", "period", "interval", "repeat"}
_BEGINS, _ENDS = {"at", "from", "start", "begin", "after", "time", "moment", "when"}, {"to", "until", "end", "till"}
_LENGTHS = {"for", "duration", "length", "last", "hold"}
_LINK = {"link", "network", "state", "interface", "connection"}
DIRECTION_IS_KEY = "the direction is a key"
DEFAULT_OF_QUEUE = "remove it: the kernel's default applies, and no key changes it"
OF_QUEUES = {"flows": DEFAULT_OF_QUEUE, "quantum": DEFAULT_OF_QUEUE, "noecn": "did you mean `ecn: false`?"}
COMPLEMENTS = {"h": "bad", "k": "good"}  # keys by tc's parameters: each is 1 minus the other
USUAL_P, USUAL_R = Decimal("0.01"), Decimal("0.25")  # of a hint's example: bursts of four packets


def lacking(keys: Mapping[str, Any]) -> dict[str, str]:
    """Keys that a direction with these keys needs as well, with examples of values."""
    found: dict[str, str] = {}
    for key, (partner, example) in PARTNERS.items():
        if key in (*keys, *found) and partner not in (*keys, *found) and not (partner == "rate" and "trace" in keys):
            found[partner] = example
    if "jitter" in keys and "delay" in found:
        with suppress(Mistake):
            jitter_s = float(TIME.parse(keys["jitter"]))
            found["delay"] = found["delay"] if jitter_s <= 0.01 else as_written("delay_s", 2 * jitter_s)
    return found


def varied_by(key: str, directions: Mapping[str, Any]) -> str:
    """The only direction that has what the key needs; empty without one, or if every direction has it."""
    partner = PARTNERS.get(key, ("", ""))[0]
    having = [name for name, keys in directions.items() if isinstance(keys, dict) and partner in keys]
    return having[0] if len(having) == 1 else ""


def of_other_tools(path: Sequence[str | int], value: Any, beside: Mapping[str, Any], outer: Any) -> str:
    """Hint for a key in a profile, in a direction or in a loss; `path` leads to it, `outer` is the level above."""
    if path[0] != "profiles" or len(path) < IN_PROFILE:
        return ""
    key, inside = str(path[-1]), path[IN_PROFILE - 1 : -1]
    is_profile = not inside and path[1] != "at"
    if (
        found := _of_outage(path, key, value)
        or _of_toxics(key, value, inside)
        or _of_bit_errors(key, value)
        or (_of_moment(key, value, beside) if is_profile else "")
        or (beside_a_preset(beside) if not inside and "preset" in beside else "")
        or ((_named_direction(beside) or _joined_directions(key, value)) if is_profile else "")
        or of_directions(inside, beside)
    ):
        return found
    if form(key) in ROUND_TRIPS:
        return _of_round_trip(key, half(with_unit("delay", value)), beside, is_both=inside == ("both",))
    if key == "latency" and "rate" in beside and {"burst", "limit"} & {*beside}:
        queue = _of_share_or_time(Slip((*path[:-1], "queue"), Mistake("", "")), value, beside)
        return f"the latency of tc's token bucket is `queue`{f'; {queue}' if queue else ''}"
    if found := _of_queue(key, value, outer) if inside[-1:] == ("queue",) else of_spelt_out(key, value, inside, beside):
        return found
    if inside and (found := _inside(key, value, beside, inside)):
        return found
    if form(key) in BURSTS or (key == "spells" and isinstance(value, str)):
        return _of_burst_key(value, beside, inside)
    return "" if inside else _by_direction(key, value)


def _of_round_trip(key: str, delay: str, beside: Mapping[str, Any], *, is_both: bool) -> str:
    """Hint for a round trip, half of which is `delay`; `both` may be written as well, with a delay or without."""
    both = beside.get("both")
    if isinstance(both, dict) and "delay" in both:
        return f"{quoted(key)} is two delays, and `both` has one: remove it, or change that one to {delay}"
    more = ", ..." if isinstance(both, dict) and both else ""
    return f"{quoted(key)} is two delays: {f'delay: {delay}' if is_both else f'both: {{delay: {delay}{more}}}'}"


def _of_outage(path: Sequence[str | int], key: str, value: Any) -> str:
    """Hint for `link: down`, `blackout: 500ms` and `outage: {at: 1s, duration: 500ms}`; empty for others."""
    outage = "both: {loss: 100%}"
    is_down = form(key) in DOWN and value in YES
    if is_down or (form(key) in _LINK and isinstance(value, str) and form(value) in DOWN):
        return f"an outage is a loss: {outage if path[-3:-2] == ('at',) else f'at: {{1s: {{{outage}}}}}'}"
    if form(key) in _LINK and isinstance(value, str) and form(value) in UP and path[-3:-2] == ("at",):
        return f"did you mean `{path[-2]}: {{}}`? it restores the beginning"
    if form(key) not in _OUTAGES:
        return ""
    times = dict(value) if isinstance(value, dict) else {"length": value}
    period = next((str(times.pop(each)) for each in list(times) if form(str(each)) in _PERIODS), "")
    if times.keys() == {"on", "off"} and all(_is(TIME, str(each)) for each in times.values()):
        on_s, off_s = (float(TIME.parse(str(times[key]))) for key in ("on", "off"))
        moment, every = as_written("at_s", on_s), as_written("at_s", on_s + off_s)
        return f"an outage is a loss until the network starts over: at: {{{moment}: {{{outage}}}}}, every: {every}"
    begin, end = _from_to(times)
    again = f", every: {period}" if _is(TIME, period) else ""
    return f"an outage is a loss between two moments: at: {{{begin}: {{{outage}}}, {end}: {{}}}}{again}"


def _from_to(value: Mapping[Any, Any]) -> tuple[str, str]:
    """The moments at which an outage begins and ends, from its length, or from a mapping with two of the three."""
    times = {form(str(key)): str(each) for key, each in value.items()}
    known = {key: float(TIME.parse(text)) for key, text in times.items() if _is(TIME, text)}
    begin_s = next((each for key, each in known.items() if key in _BEGINS), 1.0)
    end_s = next((each for key, each in known.items() if key in _ENDS), 0.0)
    length_s = next((each for key, each in known.items() if key not in (*_BEGINS, *_ENDS)), 0.5)
    end_s = end_s if end_s > begin_s else begin_s + length_s
    return as_written("at_s", begin_s), as_written("at_s", end_s)


def of_two_moments(text: str, value: Any) -> str:
    """Hint for the ends of a change in place of its beginning, such as `1s-1.5s`; empty for others."""
    ends = [each.strip() for each in re.split(r"\s*(?:-|\u2013|to|\.\.)\s*", text)]
    try:
        begin_s, end_s = map(TIME.parse, ends)
    except (Mistake, ValueError):
        return ""
    if begin_s >= end_s:
        return ""
    change = shown(value) if value else "{both: {loss: 100%}}"
    return f"each moment is a key: {{{ends[0]}: {change}, {ends[1]}: {{}}}}"


def of_span(path: Sequence[str | int], value: Any) -> str:
    """Hint for `at: {from: 1s, to: 1.5s, loss: 100%}`, and for a list of such entries; empty for others."""
    entries = value if isinstance(value, list) else [value]
    if path[0] != "profiles" or path[-1:] != ("at",) or not all(map(_is_span, entries)):
        return ""
    moments = ", ".join(text for number, entry in enumerate(entries) for text in _moments(entry, is_first=not number))
    return f"each moment is a key: at: {{{moments}}}" if moments else ""


def _is_span(entry: Any) -> bool:
    return isinstance(entry, dict) and bool({*map(form, entry)} & _BEGINS) and not any(_is(TIME, key) for key in entry)


def _moments(entry: Mapping[str, Any], *, is_first: bool) -> Iterator[str]:
    """The changes at the beginning of a span and, if it is written, at its end.

    A later moment without changes is the end of the one before.
    """
    change = {key: each for key, each in entry.items() if key in (*DIRECTIONS, *DirectionKeys.model_fields)}
    inside = change if change.keys() & {*DIRECTIONS} else {"both": change or {"loss": "100%"}}
    times = {key: each for key, each in entry.items() if key not in change}
    begin, end = _from_to(times)
    is_end = not change and not is_first and len(times) == 1
    yield f"{begin}: {shown({} if is_end else inside)}"
    if len(times) > 1:
        yield f"{end}: {{}}"


def _of_toxics(key: str, value: Any, inside: Sequence[str | int]) -> str:
    """Hint for a list of toxiproxy's toxics, of which those for latency and bandwidth have keys; empty for others."""
    if form(key) != "toxic":
        return ""
    found = dict[str, dict[str, str]]()
    for each in [toxic for toxic in (value if isinstance(value, list) else [value]) if isinstance(toxic, dict)]:
        keys = {**each, **own} if isinstance(own := each.get("attributes"), dict) else each
        side = found.setdefault(_direction(str(keys.get("stream"))) or "downlink", {})
        if keys.get("type") == "bandwidth" and is_number(rate := keys.get("rate")):
            side["rate"] = f"{8 * Decimal(str(rate)):f}kbit"
        elif keys.get("type") == "latency":
            side |= {name: f"{ms}ms" for name, other in (("delay", "latency"), ("jitter", "jitter"))
                     if is_number(ms := keys.get(other)) and ms != "0"}  # fmt: skip
    sides = {side: keys for side, keys in found.items() if keys} or {"downlink": {"delay": "300ms"}}
    written = {key: each for keys in sides.values() for key, each in keys.items()} if inside else sides
    return f"write each toxic as a key of a direction, such as {shown(written)[1:-1]}"


def _of_bit_errors(key: str, value: Any) -> str:
    """Hint for a ratio of bit errors: netem flips one bit of a share of the packets. Empty for other keys."""
    if form(key) not in _BIT_ERRORS:
        return ""
    reason = "netem corrupts packets, each in one bit"
    try:
        share = 1 - (1 - Decimal(str(value))) ** (8 * FRAME_BYTES)
    except (InvalidOperation, ValueError):
        share = Decimal(0)
    if not 0 < share < 1:
        return f"{reason}: corrupt: 1%"
    return f"{reason}: corrupt: {_percent(share)}, for full packets of {FRAME_BYTES} bytes"


def _of_moment(key: str, value: Any, beside: Mapping[str, Any]) -> str:
    """Hint for what belongs below `at` and stands in the profile: a moment, or a rebinding; empty for other keys."""
    if _is(TIME, key) and isinstance(value, dict):
        return f"a change belongs below `at`: at: {{{key}: {shown(value)}}}"
    if isinstance(beside.get("at"), dict) and _is(TIME, str(value)) and (found := _beside_at(key, value, beside)):
        return found
    if key != "rebind":
        return ""
    own = value if isinstance(value, dict) else {}
    moment = next((each for each in (*own, beside.get("at")) if isinstance(each, str) and _is(TIME, each)), "500ms")
    what = next((each for each in (value, *own.values()) if each in [*Rebind]), Rebind.PORT)
    return f"the client is rebound at a moment: at: {{{moment}: {{rebind: {what}}}}}"


def _beside_at(key: str, value: str, beside: Mapping[str, Any]) -> str:
    """Hint for a time next to `at`: the period, end, length or beginning of its changes; empty for others."""
    word, changes = form(key), {moment: each for moment, each in beside["at"].items() if _is(TIME, moment)}
    first, change = next(((moment, each) for moment, each in changes.items() if each), ("1s", {}))
    if word in _PERIODS and "every" not in beside:
        return f"did you mean `every: {value}`? the network starts over after this time"
    if word in _ENDS:
        return f"{END_OF_CHANGE}: `{value}: {{}}`"
    if word in _LENGTHS:
        return f"{END_OF_CHANGE}: `{as_written('at_s', float(TIME.parse(first) + TIME.parse(value)))}: {{}}`"
    if word not in _BEGINS:
        return ""
    known = [moment for moment in changes if TIME.parse(moment) == TIME.parse(value)]
    change = shown(change or {"both": {"loss": "100%"}})
    return f"`at` has this moment: remove {quoted(key)}" if known else f"a change belongs below `at`: {value}: {change}"


def _inside(key: str, value: Any, beside: Mapping[str, Any], inside: Sequence[str | int]) -> str:
    """Hint for a key of a direction, or below one, that belongs to a whole network, a direction or another model."""
    if swept := _of_values(inside[-1], value):
        return swept
    if key == "preset":
        return "a preset is a whole network: NAME: {preset: lte}; it cannot be a part of another one"
    if inside[-1:] == ("gemodel",) and key in COMPLEMENTS:
        return f"tc's {key} is the share that arrives: write `{COMPLEMENTS[key]}: {_complement(value)}`, the share lost"
    if inside[-1:] == ("queue",) and key in OF_QUEUES:
        return OF_QUEUES[key]
    if inside[-1] in SWEPT and (sides := _by_sides(str(inside[-1]), beside)):
        return sides
    if inside[-1:] == ("loss",):
        return of_bursts(beside) or _of_times(beside) or _only_share(key, value, beside)
    if inside == ("queue",) or not synonym(key, DIRECTIONS) or len(inside) > 1 or not as_rate(value):
        return ""
    return f"did you mean `rate: {as_rate(value)}`?"


def _of_values(key: str | int, value: Any) -> str:
    """Hint for a list of texts below a key that a sweep varies: `loss: {values: [1%, 2%]}`; empty for others."""
    is_row = key in SWEPT and isinstance(value, list) and all(isinstance(each, str) for each in value)
    return as_list(str(key), value) if is_row else ""


def _of_times(loss: Mapping[str, Any]) -> str:
    """Hint for the times of spells in place of a loss model: `loss: {good: 2s, bad: 200ms}`; empty for others."""
    if not all(_is(TIME, str(loss.get(each, ""))) for each in ("good", "bad")):
        return ""
    return f"times of bursts are not part of a loss: in place of `loss` write {shown(_spells(loss))[1:-1]}"


def _by_sides(key: str, sides: Mapping[str, Any]) -> str:
    """Hint for directions below a key of one: `{rate: {down: 16mbit, up: 1mbit}}`; empty for other mappings."""
    values = {_direction(name): as_rate(each) if key == "rate" else each for name, each in sides.items()}
    if not values or "" in values or not all(isinstance(each, str) and each for each in values.values()):
        return ""
    return f"the direction comes first: {shown({side: {key: each} for side, each in values.items()})[1:-1]}"


def _direction(word: str) -> str:
    """The direction that a word stands for; empty for others."""
    return respelt(word, DIRECTIONS) or synonym(word, DIRECTIONS)


def _named_direction(beside: Mapping[str, Any]) -> str:
    """Hint for keys of a direction next to its name, as in `{direction: downlink, delay: 5ms}`; empty for others."""
    named = next((str(value) for key, value in beside.items() if form(key) in ("direction", "dir", "side")), "")
    side = "both" if form(named) in ("all", "bidirectional", "both way", "both direction") else _direction(named)
    keys = {key: value for key, value in beside.items() if key in DirectionKeys.model_fields}
    return f"{DIRECTION_IS_KEY}: {shown({side: keys})[1:-1]}" if side and keys else ""


def _joined_directions(key: str, value: Any) -> str:
    """Hint for `uplink+downlink: {...}`, which is `both`; empty for other keys."""
    words = {_direction(word) for word in re.split(r"\s*(?:[+&,/|]|\band\b)\s*", key)}
    return f"did you mean {shown({'both': value})[1:-1]}?" if words == {"uplink", "downlink"} else ""


def _of_burst_key(value: Any, beside: Mapping[str, Any], inside: Sequence[str | int]) -> str:
    """Hint for a key such as `burst`: a loss model, spells, or nothing as with tc's token bucket."""
    if isinstance(value, dict) and (found := of_bursts({"burst": "", **value}, inside)):
        return found
    loss = next((beside[name] for name in ("loss", "mean", "random", "ratio") if name in beside), None)
    if found := _of_a_burst(value, loss, inside):
        return found
    return f"bursts of losses are a model of the loss: {_from_profile(_gemodel(value, loss), inside)}"


def _from_profile(model: str, inside: Sequence[str | int]) -> str:
    """A loss model with the keys above it that are not yet written; `inside` is the way from the profile."""
    for name in ("loss", "downlink")[: max(0, 2 - len(inside))]:
        model = f"{name}: {{{model}}}"
    return model


def of_bursts(written: Any, inside: Sequence[str | int] = ("", "loss")) -> str:
    """Hint for bursts with a share of losses and a length in packets or in time, such as `{burst: 2%, length: 5}`.

    `inside` is the way from the profile to them. Empty for other mappings.
    """
    if not isinstance(written, dict) or not {*map(form, written)} & BURSTS:
        return ""
    values = [str(value) for value in written.values()]
    share = next((value for value in values if _is(RATIO, value)), "")
    lengths = [value for value in values if _is(TIME, value) or value.isdecimal()]
    if not share or len(lengths) != 1:
        return ""
    (length,) = lengths
    if spells := _outages(length, share, inside):
        return spells
    model = _from_profile(_gemodel(length, share), inside)
    return f"for a mean loss of {share} in bursts of {length} packets write {model}"


def _is(unit: Unit, text: str) -> bool:
    """True if a text is a quantity of this unit."""
    with suppress(Mistake):
        return bool(unit.parse(text) >= 0)
    return False


def _only_share(key: str, value: Any, beside: Mapping[str, Any]) -> str:
    """Hint for a share that is the only key of a loss, such as `{rate: 2%}`; empty for others."""
    if share_in({key: value}) and key in DirectionKeys.model_fields:
        if beside.keys() == {key}:
            return f"did you mean `random: {value}`?"
        return correlated(value) if beside.keys() == {key, "correlation"} else ""
    return ""


def share_in(keys: Mapping[str, Any]) -> str:
    """The first share, such as `2%`, among the values; empty without one."""
    return next((value for value in keys.values() if isinstance(value, str) and _is(RATIO, value)), "")


def beside_a_preset(beside: Mapping[str, Any]) -> str:
    """Way to write a preset with other keys; empty without such a network."""
    preset = str(beside["preset"])
    name = preset if preset in NETWORKS else nearest(preset, list(NETWORKS))
    if not name:
        return ""
    meant = {_key(key): value for key, value in beside.items() if key != "preset"}
    keys = {
        key: value for key, value in meant.items()
        if key in DIRECTIONS or (key in DirectionKeys.model_fields and takes(DirectionKeys, key, value))
    }  # fmt: skip
    written = shown(with_keys(name, keys)) if keys else "..."
    return "" if written == "..." else f"a profile has `preset` or its own keys; {name} with other values is {written}"


def without_searched(name: str, along: str) -> str:
    """Way to write a preset without the parameter that a search sets, such as `downlink.loss`."""
    direction, _, key = along.partition(".")
    own = with_keys(name, {})
    if "both" in own and direction != "both":
        own = {each: dict(own["both"]) for each in ("downlink", "uplink")}
    for each in own if direction == "both" else [direction]:
        own.get(each, {}).pop(key, None)
    return f"write the network out without it: {shown({each: keys for each, keys in own.items() if keys})}"


def _key(key: str) -> str:
    allowed = (*DIRECTIONS, *DirectionKeys.model_fields)
    return key if key in allowed else nearest(key, allowed)


def _by_direction(key: str, value: Any) -> str:
    """Hint for `rate: {down: 30mbit, up: 10mbit}`, with the directions inside instead of outside."""
    if not isinstance(value, dict) or (own := nearest(key, list(DirectionKeys.model_fields))) == "":
        return ""
    sides = {nearest(side, DIRECTIONS): each for side, each in value.items()}
    if not sides or "" in sides:
        return ""
    return f"the direction comes first: {shown({side: {own: each} for side, each in sides.items()})[1:-1]}"


def of_two_values(path: Sequence[str | int], value: Any) -> str:
    """Hint for `delay: 60ms 10ms` and `loss: 2% 25%`: tc has a second number for jitter and for correlation."""
    if path[0] != "profiles":
        return ""
    if path[-1] in SWEPT and isinstance(value, dict) and (found := _by_sides(str(path[-1]), value)):
        return found
    if path[-1] == "delay" and isinstance(value, dict | str) and (found := _in_a_delay(path, value)):
        return found
    if path[-1] == "jitter" and isinstance(value, str) and _RANGE.fullmatch(value):
        return _of_spread(value)
    if path[1:] and (swept := _of_values(path[-2], value)):
        return swept
    if not isinstance(value, str):
        return ""
    if "loss" in path[-2:] and (hint := _in_bursts(value)):
        return hint
    swept = next((str(each) for each in path[:1:-1] if each in SWEPT), "")
    if hint := _of_both_ways(str(path[-1]), value) or _in_tc(path, value) or _of_sweep(swept, value):
        return hint
    return _with_correlation(path, value)


def _with_correlation(path: Sequence[str | int], value: str) -> str:
    """Hint for a share and its correlation, `2% 25%`; empty for others."""
    found = _TWO.fullmatch(value)
    key = next((each for each in ("loss", "duplicate", "corrupt", "reorder") if each in path[-2:]), "")
    if not found or not key:
        return ""
    note = correlated(found[1]) if key == "loss" else NO_CORRELATION
    return f"did you mean `{key}: {found[1]}`? {note}"


def _in_a_delay(path: Sequence[str | int], value: Mapping[str, Any] | str) -> str:
    """Hint for a delay with its jitter, as keys or as a text, and for a round trip; empty for others."""
    if not isinstance(value, str):
        return _beside_a_delay(path, value)
    trip = _TRIP.fullmatch(value)
    return _of_trip(path, trip[1] or trip[2]) if trip else _of_spread(value)


def _of_spread(value: str) -> str:
    """Hint for the ends of a delay, `5ms-20ms`, or its middle and jitter, `5 +- 2 ms`; empty for others."""
    if (ends := _RANGE.fullmatch(value)) and ends[2] in ("", ends[4]):
        low, high = sorted((Decimal(ends[1]), Decimal(ends[3])))
        middle, half = ((each / 2).normalize() for each in (low + high, high - low))
        return f"did you mean `delay: {middle:f}{ends[4]}, jitter: {half:f}{ends[4]}`?"
    if spread := _SPREAD.fullmatch(value):
        return f"did you mean `delay: {spread[1]}{spread[2] or spread[4]}, jitter: {spread[3]}{spread[4]}`?"
    return ""


def _of_sweep(key: str, value: str) -> str:
    """Hint for several values in a row, or for both ends of a range, of a key that a sweep varies; empty for others."""
    if row := in_a_row(key, value):
        return as_list(key, row)
    span = _SPAN.fullmatch(value)
    return as_range(key, f"{span[1]}{span[2] or span[4]}", f"{span[3]}{span[4]}") if span else ""


def _in_bursts(value: str) -> str:
    """Hint for a loss with bursts: `gemodel 1% 10% 70% 0.1%` as in tc, `bursty 1%` and `1% burst 5`."""
    if burst := _IN_BURSTS.fullmatch(value):
        return _outages(burst[2], burst[1]) or f"did you mean {{{_gemodel(burst[2], burst[1])}}}?"
    if not (found := _BURSTY.fullmatch(value)):
        return ""
    shares = re.findall(rf"{NUMBER}%", found[1])
    if len(shares) > 1:
        return f"did you mean {shown({'gemodel': dict(zip(GemodelKeys.model_fields, shares, strict=False))})}?"
    return f"did you mean {{{_gemodel('', shares[0] if shares else '')}}}?"


def _outages(bad: Any, loss: str, inside: Sequence[str | int] = ("",)) -> str:
    """Hint for a mean share of losses in bursts that last for a time: spells with that share; empty without a time.

    `inside` is empty if they are written in no direction.
    """
    try:
        bad_s, share = TIME.parse(bad), RATIO.parse(loss)
        good = as_written("delay_s", float(bad_s * (1 - share) / share)) if share < 1 else ""
    except (Mistake, ZeroDivisionError, InvalidOperation):
        return ""
    spells = f"spells: {{good: {good}, bad: {bad}, loss: 100%}}"
    spells = spells if inside else f"downlink: {{{spells}}}"
    return f"for a mean loss of {loss} in bursts of {bad} in place of `loss` write {spells}" if good else ""


def _of_trip(path: Sequence[str | int], round_trip: str) -> str:
    """Hint for a round trip in place of a delay: both delays, or that of the direction and the other one."""
    delay = half(re.sub(r"\s", "", round_trip.casefold()))
    if "both" in path:
        return f"a round trip is two delays: both: {{delay: {delay}}}"
    return f"a round trip is two delays, one in each direction: delay: {delay}"


def _of_both_ways(key: str, value: str) -> str:
    """Hint for `rate: 16mbit/1mbit` and `rate: lte.trace`."""
    if key == "rate" and value.endswith(".trace"):
        return f"did you mean `trace: {value}`?"
    if key == "rate" and (rates := two_rates(value)):
        return f"the direction comes first: {shown({side: {'rate': each} for side, each in rates.items()})}"
    return ""


def _in_tc(path: Sequence[str | int], value: str) -> str:
    """Hint for several numbers in tc's syntax: a delay and its jitter, a loss model, a gap of reordering."""
    if path[-1] == "delay" and (found := _TWO.match(value)):
        rest = re.fullmatch(rf"( {NUMBER}%)?(?: distribution ([a-z]+))?", value[found.end() :])
        more = f", distribution: {rest[2]}" if rest and rest[2] else ""
        note = " netem's correlation has no key" if rest and rest[1] else ""
        return f"did you mean `delay: {found[1]}, jitter: {found[2]}{more}`?{note}" if rest else ""
    if "reorder" in path[-2:] and (found := re.fullmatch(rf"({NUMBER}%) gap ([0-9]+)", value)):
        return f"did you mean `reorder: {{ratio: {found[1]}, gap: {found[2]}}}`?"
    if "loss" in path[-2:] and re.fullmatch(rf"state(?: {NUMBER}%){{2,5}}", value):
        states = dict(zip(StateKeys.model_fields, value.split()[1:], strict=False))
        return f"did you mean {shown({'state': states})}?"
    return ""


def _of_share_or_time(slip: Slip, value: Any, beside: Mapping[str, Any]) -> str:
    """Jitter given as a share of its delay, or queue given as a time at its rate, in the units of their keys."""
    key, rate = str(slip.path[-1]), beside.get("rate")
    rate = rate.get("rate") if isinstance(rate, dict) else rate
    try:
        if key == "jitter" and "delay" in beside:
            jitter_s = RATIO.parse(value) * TIME.parse(beside["delay"])
            return f"did you mean `{as_written('delay_s', float(jitter_s))}`, {value} of the delay?"
        if key == "queue" and isinstance(value, str) and (kind := nearest(value, list(KINDS))):
            return f"did you mean `queue: {_discipline(kind, value)}`?"
        if key == "queue" and isinstance(value, str) and value.endswith("B"):
            packets = math.ceil(SIZE.parse(value) / FRAME_BYTES)
            return f"did you mean `{packets}` packets, which have {value}?"
        if key == "queue" and rate:
            packets = math.ceil(TIME.parse(value) * RATE.parse(rate) / 8 / FRAME_BYTES)
            return f"did you mean `{packets}` packets, which take {value} at {rate}?"
        if key == "queue" and isinstance(value, str) and TIME.parse(value):
            return "a queue is a number of packets, such as `queue: 100`, and only at a rate do they take a time"
    except Mistake:
        pass
    if key == "queue" and isinstance(value, str) and not re.match("[0-9]", value):
        return "a number of packets, such as `queue: 100`, or a discipline, such as `queue: {kind: fq_codel}`"
    return ""


def _discipline(kind: str, text: str) -> str:
    """YAML for a kind of queue, with the number of packets in a text if it needs no other keys."""
    keys = queue_keys(KINDS[kind])
    if (packets := re.search(r"\d+", text.replace(kind, ""))) and "packets" in keys and "min" not in keys:
        return f"{{kind: {kind}, packets: {packets[0]}}}"
    return QUEUE_EXAMPLES.get(kind, f"{{kind: {kind}}}")


def of_kind(keys: Mapping[str, Any]) -> dict[str, str]:
    """The kind of a queue that has keys which the usual one lacks, with what it needs as well; empty for others."""
    others = keys.keys() - {"kind"}
    kinds = [str(keys["kind"])] if "kind" in keys else [*KINDS] if others - {"packets"} else []
    fitting = [name for name in kinds if name in KINDS and others <= queue_keys(KINDS[name]).keys()]
    if not fitting:
        return {}
    needed = [name for name, item in queue_keys(KINDS[fitting[0]]).items() if item.default is MISSING]
    return {"kind": fitting[0], **{name: "..." for name in needed if name not in keys}}


def of_bdp(path: Sequence[str | int], value: Any, profile: Any) -> str:
    """Hint for a queue in bandwidth-delay products of its profile: a number of packets."""
    found = _BDP.fullmatch(value.casefold()) if isinstance(value, str) and path[-1] == "queue" else None
    if not found or not isinstance(profile, Mapping):
        return ""
    both, *sides = (profile.get(name) or {} for name in DIRECTIONS[::-1])
    rate = both.get("rate", profile.get(str(path[-2]), {}).get("rate"))
    try:
        trip_s = sum(TIME.parse({**both, **side}["delay"]) for side in sides)
        bits = RATE.parse(rate) * trip_s
        packets = max(1, math.ceil(Decimal(found[1] or 1) * bits / 8 / FRAME_BYTES))
    except (Mistake, KeyError, TypeError, AttributeError):
        return "a queue is a number of packets, such as `queue: 100`"
    trip = as_written("delay_s", float(trip_s))
    return f"did you mean `{packets}` packets, which are {value} at {rate} and a round trip of {trip}?"


def _beside_a_delay(path: Sequence[str | int], written: Mapping[str, Any]) -> str:
    """Hint for `{mean: 10ms, jitter: 2ms}` in place of a delay: its keys are those of the direction."""
    trip = next((value for key, value in written.items() if form(key) in ROUND_TRIPS and isinstance(value, str)), "")
    if len(written) == 1 and trip:
        return _of_trip(path, trip)
    keys = {"jitter" if form(key) in _SPREADS else key: value for key, value in written.items()}
    own = [value for key, value in keys.items() if key == "delay" or key not in DirectionKeys.model_fields]
    rest = {key: value for key, value in keys.items() if key != "delay" and key in DirectionKeys.model_fields}
    text = shown({"delay": own[0], **rest}) if len(own) == 1 and isinstance(own[0], str) else ""
    return f"did you mean `{text[1:-1]}`?" if text else ""


def of_unit(slip: Slip, value: Any, beside: Any) -> str:
    """Hint for a jitter or a rate that netem rejects and is probably in the wrong unit, or for another unit."""
    if slip.path[0] == "profiles" and isinstance(beside, dict) and (found := _of_share_or_time(slip, value, beside)):
        return found
    units, key = {"jitter": TIME, "rate": RATE}, str(slip.path[-1])
    if key not in units or not isinstance(value, str):
        return ""
    try:
        found = another_unit(key, float(units[key].parse(value)))
    except Mistake:
        return ""
    return f"{found}{slip.mistake.hint}".strip() if found and found not in slip.mistake.hint else ""


def _of_a_burst(value: Any, loss: Any, inside: Sequence[str | int]) -> str:
    """Hint for bursts that are times, or a size as tc's token bucket has it; empty if it is neither."""
    with suppress(Mistake):
        SIZE.parse(str(value).replace("bit", "B"))
        return "remove it: the burst of tc's token bucket has no key, since a rate delays packet by packet"
    if "spells" in inside and isinstance(value, str):
        return f"did you mean `bad: {value}`? the mean length of a bad spell"
    if isinstance(value, str) and isinstance(loss, str) and (found := _outages(value, loss, inside)):
        return found
    if not (spells := _spells(value)):
        return ""
    place = "in place of `loss` " if loss or inside[-1:] == ("loss",) else ""
    return f"for bursts that last for a time {place}write {shown(spells if inside else {'downlink': spells})[1:-1]}"


def _spells(value: Any) -> dict[str, Any]:
    """Spells for the length of a burst, or for a mapping with it and the time between bursts; empty for others."""
    written = value if isinstance(value, dict) else {"bad": value}
    own = {"good": "1s"} | {nearest(key, list(SpellsKeys.model_fields)): each for key, each in written.items()}
    try:
        for key in ("good", "bad"):
            TIME.parse(own.get(key, ""))
    except Mistake:
        return {}
    return {"spells": {"good": own["good"], "bad": own["bad"], "loss": own.get("loss", "100%")}}


def of_no_mapping(path: Sequence[str | int], value: Any) -> str:
    """Hint for a number or `5Mbps` in place of a direction, which is a rate, and for a time in place of spells."""
    if path[0] == "profiles" and path[-1] in DIRECTIONS and (rate := as_rate(value)):
        is_number = str(value)[-1:].isdigit()
        return f"{quoted(value)} has no unit: for a rate write {{rate: {rate}}}" if is_number else (
            f"did you mean {{rate: {rate}}}?")  # fmt: skip
    if path[0] == "profiles" and path[-1] == "spells" and (spells := _spells(value)):
        return f"bursts have a mean length, a mean time between them and a loss: {shown(spells)[1:-1]}"
    return ""


def _of_discipline(key: str, value: Any) -> str:
    """Hint for `queue: {fifo: 100}`; empty if the key names no discipline."""
    if not (kind := respelt(key, list(KINDS)) or synonym(key, list(KINDS))):
        return ""
    return f"did you mean {shown({'kind': kind, **(value if isinstance(value, dict) else {'packets': value})})}?"


def _of_kind(key: str, direction: Any) -> str:
    """Hint with the keys of the written kind of queue; empty if the key stands for one of any kind."""
    queue = direction.get("queue") if isinstance(direction, dict) else None
    name = queue.get("kind") if isinstance(queue, dict) else None
    kind = KINDS.get(str(name))
    if not kind or key in OF_QUEUES or nearest(key, list(QueueKeys.model_fields)):
        return ""
    return f"`kind: {name}` has no other keys than {enumerated(map(quoted, queue_keys(kind)))}"


def _of_queue(key: str, value: Any, direction: Any) -> str:
    """Hint for a discipline, the bytes or the time of a queue in place of its packets; empty for other keys."""
    if not {*form(key).split()} & {"byte", "latency", "time", "delay"}:
        return _of_discipline(key, value) or _of_kind(key, direction)
    written = f"{value}B" if str(value).isdecimal() else value
    return _in_packets(written, direction).replace("mean `", "mean `packets: ")


def of_packets(path: Sequence[str | int], value: Any, direction: Any) -> str:
    """Hint for the packets of a queue as bytes or as a time; empty for others."""
    if path[-2:] != ("queue", "packets"):
        return ""
    found = _in_packets(value, direction)
    return found if "`, which" in found else ""


def _in_packets(value: Any, direction: Any) -> str:
    """Hint for a queue as bytes or as a time at the rate of its direction."""
    found = _of_share_or_time(
        Slip(("queue",), Mistake("", "")), value, direction if isinstance(direction, dict) else {}
    )
    return found.replace("` packets, which", "`, which")


def _complement(share: Any) -> str:
    try:
        return _percent(1 - RATIO.parse(share))
    except Mistake:
        return "..."


def correlated(share: Any) -> str:
    """Hint for a loss with netem's correlation: bursts with the same share of losses."""
    return f"{NO_CORRELATION}; for bursts write loss: {{{_gemodel('', share)}}}"


def of_other_model(path: Sequence[str | int], beside: Any) -> str:
    """Hint for a key of `state` in `gemodel`, or the other way round, with all such keys next to it."""
    models: dict[Any, type[BaseModel]] = {"gemodel": GemodelKeys, "state": StateKeys}
    other = next((name for name in models if path[-2:-1] in [(each,) for each in models if each != name]), "")
    if not other or not isinstance(beside, dict) or path[-1] not in models[other].model_fields:
        return ""
    keys = {name: value for name, value in beside.items() if name in models[other].model_fields}
    needed = {name: "..." for name, field in models[other].model_fields.items() if field.is_required()}
    belong = "belong in" if len(keys) > 1 else "belongs in"
    return f"{enumerated(map(quoted, keys))} {belong} {quoted(other)}: {other}: {shown(needed | keys)}"


def _gemodel(packets: Any, loss: Any) -> str:
    """Loss model with bursts of `packets` packets and a share `loss` of lost ones, if both are numbers."""
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
