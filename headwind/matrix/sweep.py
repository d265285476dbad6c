"""Expands a sweep in a matrix, a profile with several values of one key, into a profile for each value.

`loss: [0%, 1%, 5%]` lists the values, `delay: {from: 0ms, to: 200ms, steps: 5}` spaces them evenly. This module works
on the text as read, so that the keys of a profile need no knowledge of it; `Expanded.home` gives the place in the file
for later mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from headwind.format import counted
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.spelling import respelt, synonym
from headwind.matrix.units import RATE, RATIO, TIME, Mistake, Unit, quoted, whole

SWEPT: Mapping[str, Unit] = {
    "delay": TIME, "jitter": TIME, "loss": RATIO, "duplicate": RATIO, "corrupt": RATIO, "reorder": RATIO, "rate": RATE,
}  # fmt: skip
GRID = "only one key of a profile may: for a grid, write a profile for each value of the other one"
DIRECTIONS = ("uplink", "downlink", "both")
MOST_STEPS = 50
RANGE = frozenset({"from", "to", "steps"})
# Values that the lab itself chooses are multiples of these, in SI units, so that netem takes them as they are: it keeps
# times in ns and rates in bytes/s. A share has a resolution of 1 / (2^32 - 1); this is its next coarser power of ten.
_GRID = {TIME.what: Decimal("1e-9"), RATIO.what: Decimal("1e-8"), RATE.what: Decimal(8)}

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Expanded:
    """A matrix in which every profile is one network."""

    tree: dict[str, Any]
    slips: list[Slip] = field(default_factory=list)  # mistakes in the sweeps themselves
    names: dict[str, list[str]] = field(default_factory=dict)  # by sweep: the names of its profiles
    places: dict[str, tuple[str, Path, Path]] = field(default_factory=dict)  # by profile: sweep, its key, its value
    origins: dict[Path, list[int]] = field(default_factory=dict)  # by list of names: the index of each in the file

    def home(self, path: Path) -> Path:
        """Path in the file for a path in the tree."""
        if path[:1] == ("profiles",) and len(path) > 1 and path[1] in self.places:
            sweep, at, value = self.places[str(path[1])]
            rest = path[2:]
            return ("profiles", sweep, *(value if rest[: len(at)] == at else rest))
        for place, origins in self.origins.items():
            if path[: len(place)] == place and len(path) > len(place) and isinstance(index := path[len(place)], int):
                return (*place, origins[index], *path[len(place) + 1 :])
        return path


def expand(tree: Mapping[str, Any]) -> Expanded:
    """The matrix with a profile for each value of each sweep, and their names in place of a sweep's name."""
    found = Expanded(dict(tree))
    if isinstance(profiles := tree.get("profiles"), dict):
        found.tree["profiles"] = dict(_profiles(profiles, found))
    if found.names:
        _name(found)
    return found


def _profiles(profiles: Mapping[str, Any], found: Expanded) -> Iterator[tuple[str, Any]]:
    for name, profile in profiles.items():
        swept = list(_swept(profile))
        if not swept:
            yield name, profile
            continue
        if len(swept) > 1:
            message = f"{quoted(name)} has several values in {' and in '.join(quoted('.'.join(at)) for at in swept)}"
            found.slips.append(Slip(("profiles", name, *swept[1]), Mistake(message, GRID)))
        (direction, key), *others = swept
        for other, name_ in others:
            profile = {**profile, other: _without(profile[other], name_)}  # noqa: PLW2901 - reported above
        try:
            values = _values(key, profile[direction][key])
        except Slips as error:
            found.slips += [
                Slip(("profiles", name, direction, key, *each.path), each.mistake, each.at_key) for each in error.slips
            ]
            yield name, {**profile, direction: _without(profile[direction], key)}
            continue
        found.names[name] = []
        for index, text in values:
            one = f"{name} {text}"
            if one in profiles:
                taken = Mistake(f"the sweep makes a profile {quoted(one)}, which already exists", "rename one")
                found.slips.append(Slip(("profiles", name), taken, at_key=True))
            found.names[name].append(one)
            value: Path = (direction, key) if index is None else (direction, key, index)
            found.places[one] = (name, (direction, key), value)
            yield one, {**profile, direction: {**profile[direction], key: text}}


def _swept(profile: Any) -> Iterator[tuple[str, str]]:
    """Direction and key of everything in a profile that has several values."""
    for direction in DIRECTIONS:
        keys = profile.get(direction) if isinstance(profile, dict) else None
        for key, value in keys.items() if isinstance(keys, dict) else ():
            if key in SWEPT and (
                isinstance(value, list) or (isinstance(value, dict) and {"from", "to"} & {*map(_bound, value)})
            ):
                yield direction, key


def _bound(key: str) -> str:
    """Key of a range, `min` as `from`."""
    return key if key in RANGE else synonym(key, sorted(RANGE))


def _without(keys: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in keys.items() if name != key}


def in_a_row(key: str, text: str, least: int = 3) -> list[str]:
    """Values of a sweep of `key` that a text has in a row, each with its unit: `0%, 1%, 3%`, `0 1 3%` or `(0%/1%/3%)`.

    Empty for other texts, and for fewer than `least` values; two are enough if a comma or a semicolon, and a space,
    separate them.
    """
    parts = [part for part in re.split(r"[\s,;/|()\[\]{}]+", text) if part]
    if key not in SWEPT or len(parts) < (2 if re.search("[,;] ", text) else least):
        return []
    unit = parts[-1].lstrip("0123456789.")
    values = [part + unit if part[-1].isdecimal() else part for part in parts]
    try:
        return values if len({SWEPT[key].parse(value) for value in values}) == len(values) else []
    except Mistake:
        return []


def as_list(key: str, values: Sequence[str]) -> str:
    """Hint for a sweep of `key` over these values without brackets or commas."""
    return f"for a network of each value write `{key}: [{', '.join(values)}]`"


def as_range(key: str, first: str, last: str) -> str:
    """Hint for a sweep of `key` from one end to the other, in the steps that give the shortest numbers.

    Empty if the key is not one of a sweep, or if these are not ends of a range.
    """
    try:
        low, high = (SWEPT[key].parse(each) for each in (first, last))
        usual = {steps: spaced(SWEPT[key], first, last, steps) for steps in (4, 5, 3, 6) if low < high}
    except (Mistake, KeyError):
        return ""
    steps = min(usual, key=lambda each: max(map(len, usual[each])), default=0)
    written = f"{{from: {first}, to: {last}, steps: {steps}}}"
    return f"for a network of each value write `{key}: {written}`" if steps else ""


def _values(key: str, written: Any) -> Sequence[tuple[int | None, str]]:
    """Texts of a sweep's values, and the index of each in its list. Raises Slips."""
    if isinstance(written, dict):
        return [(None, text) for text in _range(SWEPT[key], written)]
    if row := _commas_missing(key, written):
        raise Slips([Slip((), Mistake("a comma is missing between two values", as_list(key, row)))])
    if not 2 <= len(written) <= MOST_STEPS:
        hint = f"a single one needs no list: {written[0]}" if len(written) == 1 else f"a sweep has 2 to {MOST_STEPS}"
        raise Slips([Slip((), Mistake(f"this list has {counted(len(written), 'value')}", hint))])
    slips, seen = [], set[Decimal]()
    for index, text in enumerate(written):
        try:
            value = SWEPT[key].parse(text)
        except Mistake as mistake:
            slips.append(Slip((index,), _with_point(mistake, SWEPT[key], written, index)))
            continue
        if value in seen:
            slips.append(Slip((index,), Mistake(f"{quoted(text)} appears twice", "each value is one network")))
        seen.add(value)
    if slips:
        raise Slips(slips)
    return list(enumerate(written))


def _commas_missing(key: str, written: Sequence[Any]) -> list[str]:
    """Values of a list such as `[0% 1%, 3%]`, each by itself; empty if no entry has several."""
    texts = [each for each in written if isinstance(each, str)]
    has_several = len(texts) == len(written) and any(in_a_row(key, each, 2) for each in texts)
    return in_a_row(key, ", ".join(texts), 2) if has_several else []


def _with_point(mistake: Mistake, unit: Unit, written: Sequence[Any], index: int) -> Mistake:
    """The mistake of an entry, with the hint that it and the next one are a single number: `[0%, 0,5%, 3%]`."""
    first, last = (*written[index : index + 2], "")[:2]
    if not (isinstance(first, str) and first.isdecimal() and isinstance(last, str) and last[:1].isdecimal()):
        return mistake
    offers = [first + last.lstrip("0123456789."), f"{first}.{last}"]
    try:
        unit.parse(offers[1])
    except Mistake:
        return mistake
    offers = offers[1:] if offers[0] in written else offers
    return Mistake(str(mistake), f"did you mean {' or '.join(map(quoted, offers))}?")


def _range(unit: Unit, written: Mapping[str, Any]) -> list[str]:
    """Evenly spaced values. Raises Slips."""
    slips = [Slip((name,), Mistake(f"unknown key {quoted(name)}", _meant(unit, name, written)), at_key=True)
             for name in written if name not in RANGE]  # fmt: skip
    explained = {respelt(name, sorted(RANGE)) or _bound(name) for name in written}
    usual = {
        "from": "1mbit" if unit is RATE else f"0{unit.example.lstrip('0123456789')}",
        "to": unit.example,
        "steps": 5,
    }
    example = ", ".join(f"{name}: {written.get(name, each)}" for name, each in usual.items())
    slips += [Slip((), Mistake(f"`{name}` is missing", f"such as {{{example}}}")) for name in sorted(RANGE - explained)]
    parsed: dict[str, Any] = {}
    for name in RANGE & written.keys():
        try:
            parsed[name] = whole(written[name], 2, MOST_STEPS) if name == "steps" else unit.parse(written[name])
        except Mistake as mistake:
            slips.append(Slip((name,), mistake))
    if not slips and parsed["from"] >= parsed["to"]:
        slips.append(Slip(("to",), not_above(written["from"], written["to"])))
    if slips:
        raise Slips(slips)
    try:
        return spaced(unit, written["from"], written["to"], parsed["steps"])
    except Mistake as mistake:
        raise Slips([Slip(("steps",), mistake)]) from None


def not_above(first: str, last: str) -> Mistake:
    """Mistake of the ends of a range in the wrong order."""
    hint = "swap them" if first != last else "one value needs no range"
    return Mistake(f"{quoted(last)} is not above {quoted(first)}", hint)


def _meant(unit: Unit, key: str, written: Mapping[str, Any]) -> str:
    """Hint for a key that a range does not have: another name of one, or the width of a step for their number."""
    width = written[key]
    if respelt(key, ["steps"]):
        try:
            ends = {
                _bound(name): unit.parse(value) for name, value in written.items() if _bound(name) in ("from", "to")
            }
            steps = (ends["to"] - ends["from"]) / unit.parse(width) + 1
        except (Mistake, KeyError, ArithmeticError):
            return "did you mean `steps`? it is the number of values"
        return f"did you mean `steps: {steps.to_integral_value()}`? it is the number of values"
    near = _bound(key)
    return f"did you mean `{near}`? a range has from, to and steps" if near else "a range has from, to and steps"


def spaced(unit: Unit, first: str, last: str, steps: int) -> list[str]:
    """The ends as written and evenly spaced values between them that netem takes exactly. Raises Mistake.

    They are in the unit of the last one, or in bits, since fractions of a `mibit` are long.
    """
    low, high, grid = unit.parse(first), unit.parse(last), _GRID[unit.what]
    suffix = last.lstrip("0123456789.")
    suffix = "bit" if suffix.removesuffix("bit").endswith("i") else suffix
    inner = [round((low + (high - low) * step / (steps - 1)) / grid) * grid for step in range(1, steps - 1)]
    values = [low, *inner, high]
    if any(one >= other for one, other in pairwise(values)):
        message = f"{steps} values from {quoted(first)} to {quoted(last)} are closer together than netem's resolution"
        raise Mistake(message, "use fewer values, or ends that are further apart")
    return [first, *(f"{(value / unit.factors[suffix]).normalize():f}{suffix}" for value in inner), last]


def _name(found: Expanded) -> None:
    """Put the names of its profiles in place of a sweep's name: in `conditions`, `smoke` and `selfcheck`."""
    for key in ("conditions", "smoke"):
        if isinstance(entries := found.tree.get(key), list):
            found.tree[key] = [_named(entry, ("profiles",), (key, index), found) for index, entry in enumerate(entries)]
    check = found.tree.get("selfcheck")
    found.tree.update({"selfcheck": _named(check, ("again", "slower"), ("selfcheck",), found)} if check else {})


def _named(entry: Any, lists: Sequence[str], place: Path, found: Expanded) -> Any:
    if not isinstance(entry, dict):
        return entry
    entry = dict(entry)
    for name in lists:
        if isinstance(entry.get(name), list):
            pairs = [(index, one) for index, each in enumerate(entry[name])
                     for one in (found.names.get(each, [each]) if isinstance(each, str) else [each])]  # fmt: skip
            entry[name] = [one for _, one in pairs]
            found.origins[*place, name] = [index for index, _ in pairs]
    return entry


def as_written(properties: dict[str, Any]) -> None:
    """Let the JSON schema of a direction accept the values of a sweep."""
    for name, unit in SWEPT.items():
        value = {"type": "string", "pattern": unit.pattern}
        several = {"type": "array", "items": value, "minItems": 2, "maxItems": MOST_STEPS, "uniqueItems": True}
        steps = {"type": "integer", "minimum": 2, "maximum": MOST_STEPS}
        spaced = {"type": "object", "properties": {"from": value, "to": value, "steps": steps},
                  "required": sorted(RANGE), "additionalProperties": False}  # fmt: skip
        own = properties[name]
        description = {"description": own.pop("description")}
        properties[name] = description | {"anyOf": [*own.pop("anyOf", [own] if own else []), several, spaced]}
