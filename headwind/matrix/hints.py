"""What to write instead, for mistakes that only the whole file explains: a key at the wrong level, above all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from headwind.matrix.arm_hints import of_arm
from headwind.matrix.concepts import beside_a_library, of_other_tools, of_two_values
from headwind.matrix.levels import NAME, Level, Path, kind_of, levels
from headwind.matrix.mistakes import MissingKey, NoContainer, Slip, Unindented, UnknownKey
from headwind.matrix.shapes import (
    as_objects,
    is_objects,
    of_entries,
    of_pairs,
    of_several,
    of_value,
    shown,
    takes,
    without_names,
)
from headwind.matrix.spelling import nearest, respelt, synonym
from headwind.matrix.units import Mistake, NotOneValue, harmless, quoted

DIRECTIONS = ("uplink", "downlink", "both")
LIKELIEST = ("downlink", "workloads")  # of several homes of a key
PROFILE_KEY = 3  # steps to a key of a profile: `profiles`, the name, the key
TOO_FAR = "is this indented too far?"


def advised(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> list[Slip]:
    """The slips with the best hint that the whole file allows; without those that another one explains."""
    explained = {each for slip in slips if isinstance(slip.mistake, UnknownKey) for each in _meant(slip, root, tree)}
    swallowed = {slip.path: place for slip in slips if isinstance(slip.mistake, MissingKey)
                 for place in _further_down(slip.path, tree)}  # fmt: skip
    found = dict[Slip, None]()
    nameless = without_names(slips, root, tree)
    for slip in slips:
        if slip.path in nameless:
            found[nameless[slip.path]] = None
        elif {path[0] for path in nameless} & set(slip.path[2:]):
            continue  # it names an entry of a group without names
        elif place := swallowed.get(slip.path):
            hint = f"it belongs {_beside(place, 0)}: {TOO_FAR}"
            message = f"{quoted(place[-1])} is read as the name of one of the {quoted(place[0])}"
            found[Slip(place, Mistake(message, hint), at_key=True)] = None
        elif not (isinstance(slip.mistake, MissingKey) and slip.path in explained) and not any(
            slip.path[: len(place)] == place for place in swallowed.values()
        ):
            found[_advised(_pair(slip, root, tree), root, tree)] = None
    return list(found)


def _pair(slip: Slip, root: type[BaseModel], tree: Any) -> Slip:
    """The list itself as the mistake, if one pair is written where a list of pairs is needed: once, not twice."""
    *above, last = slip.path
    level = levels(root, tree, above)[-1]
    if isinstance(slip.mistake, NoContainer) and isinstance(last, int) and level.is_of_lists:
        return Slip(tuple(above), slip.mistake)
    return slip


def _advised(slip: Slip, root: type[BaseModel], tree: Any) -> Slip:
    match slip.mistake:
        case UnknownKey():
            above = levels(root, tree, slip.path[:-1])
            hint = of_arm(slip, tree) or _of_unknown(slip.path, above)
            if (group := _group(slip.path, above[-1])) and hint == _below(group):
                return replace(slip, mistake=Unindented(str(slip.mistake), hint, group))
        case NoContainer():
            above = levels(root, tree, slip.path)
            hint = _swallowed((*slip.path, ""), above) or of_arm(slip, tree)
            if not hint and above[-1].is_of_lists:
                return replace(
                    slip, mistake=NoContainer("this must be a list of pairs", of_pairs(slip.path, above[-1]))
                )
            hint = hint or of_value(slip.path, above[-1], tree)
        case _:
            hint = of_arm(slip, tree) or _of_wrong_value(slip, levels(root, tree, slip.path))
    return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), hint)) if hint else slip


def _of_wrong_value(slip: Slip, above: Sequence[Level]) -> str:
    """The hint for a value that its key refuses, if the whole file tells more than the value; `above` ends with it."""
    path, level = slip.path, above[-1]
    written = level.written
    is_direction = slip.at_key and len(path) == PROFILE_KEY and path[-1] in DIRECTIONS
    if is_direction and path[0] == "profiles" and "library" in above[-2].written:
        return beside_a_library(above[-2].written)
    if found := _of_mapping(path, written) or of_two_values(path, written):
        return found
    if slip.at_key or not written or isinstance(written, dict):
        return ""
    outer = above[-2].model
    is_refused = level.model and outer and not takes(outer, str(path[-1]), written)
    if is_refused and (found := of_value(path, level, above[0].written)):
        return found
    if isinstance(slip.mistake, NotOneValue):
        return of_several(path, written)
    return _purpose(path, slip, above[-2])


def _purpose(path: Path, slip: Slip, level: Level) -> str:
    """What a number counts, if it is written with a unit that is none of it."""
    field = level.model.model_fields.get(str(path[-1])) if level.model else None
    written = level.written[path[-1]] if isinstance(level.written, dict) else None
    has_unit = isinstance(written, str) and re.fullmatch(r"[0-9.]+ *(?!e[0-9])[A-Za-z%]{1,8}", written)
    if not field or not has_unit or not slip.mistake.hint.startswith("a whole number"):
        return ""
    return f"{path[-1]}: {field.description}; {slip.mistake.hint}"


def _meant(slip: Slip, root: type[BaseModel], tree: Any) -> Iterator[Path]:
    """The missing keys beside an unknown one that it explains: its right spelling, or those of another kind."""
    level = levels(root, tree, slip.path[:-1])[-1]
    if _kinds(str(slip.path[-1]), level):
        yield from ((*slip.path[:-1], key) for key in level.keys)
    elif near := nearest(str(slip.path[-1]), level.keys):
        yield (*slip.path[:-1], near)


def _of_unknown(path: Path, above: Sequence[Level]) -> str:
    """`above` are the levels from the file to the mapping that has the key."""
    key, level = str(path[-1]), above[-1]
    if respelt(key, level.keys):
        return ""
    beside = level.written if isinstance(level.written, dict) else {}
    value = beside.get(key)
    if found := of_other_tools(path, value, beside):
        return found
    found = _kinds(key, level) or _swallowed(path, above) or _entry(path, above, value)
    found = found or ("" if nearest(key, level.keys) else _by_value(value, level)) or _elsewhere(path, above)
    if found or respelt(key, level.keys) or synonym(key, level.keys):
        return found
    for each in dict.fromkeys([level, above[0]]):
        homes = list(dict.fromkeys(name for _, inner in each.further() for name in inner.keys))
        if meant := ("" if nearest(key, level.keys) else respelt(key, homes)) or synonym(key, homes):
            return f"did you mean `{meant}`? {_written(_likeliest(each.homes(meant)), {meant: value}, each)}"
    return ""


def _by_value(value: Any, level: Level) -> str:
    """The keys that could have the mapping which is written under an unknown one, such as a direction of a network."""
    beside = level.written if isinstance(level.written, dict) else {}
    fitting = [
        name for name in level.keys
        if isinstance(value, dict) and value and name not in beside and value.keys() <= set(level.below(name).keys)
    ]  # fmt: skip
    if "both" in fitting and set(DIRECTIONS) & beside.keys():
        fitting.remove("both")
    if not level.model or not 1 <= len(fitting) <= len(DIRECTIONS):
        return ""
    named = [f"{quoted(name)} ({level.model.model_fields[name].description})" for name in fitting]
    return f"did you mean {' or '.join(named)}?"


def _kinds(key: str, level: Level) -> str:
    """Where a workload of another kind has the key."""
    written = level.written if isinstance(level.written, dict) else {}
    if is_objects(key) and level.others and "kind" not in written:
        return f"for objects of one size write {shown(as_objects(written.get(key), written))}"
    having = [model for model in level.others if key in model.model_fields]
    if not having or (level.model and key in level.model.model_fields):
        return ""
    strange = [len(written.keys() - model.model_fields.keys()) for model in having]
    best = [f"`kind: {kind_of(model)}`" for model, count in zip(having, strange, strict=True) if count == strange[0]]
    if level.model and "kind" in written and strange[0]:
        own = f"`kind: {kind_of(level.model)}`"
        return f"{quoted(key)} is a key of {' and '.join(best)}; {own} has none: remove it"
    verb = "change it to" if "kind" in written else "add"
    return f"{quoted(key)} is a key of workloads of another kind: {verb} {' or '.join(best)}"


def _swallowed(path: Path, above: Sequence[Level]) -> str:
    """Where the mapping's own name is a key of a level above, or of the entry that it is taken for."""
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    name, group = str(path[-2]), quoted(path[-3])
    if above[-1].has(name):
        return f"{quoted(name)} is read as the name of one of the {group}: is it indented too little?"
    for index, level in enumerate(above[:-2]):
        if name in level.keys:
            home = _beside(path, index)
            return f"{quoted(name)} is read as the name of one of the {group}, and belongs {home}: {TOO_FAR}"
    return ""


def _entry(path: Path, above: Sequence[Level], value: Any) -> str:
    """Where the key looks like the name of an entry: below a key that is missing, or beside the entry it stands in."""
    level = above[-1]
    if group := _group(path, level):
        return _below(group)
    if not isinstance(value, dict):
        return ""
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    if level.model and value.keys() <= set(level.keys):
        return f"as one more of the {quoted(path[-3])} it belongs beside {quoted(path[-2])}: {TOO_FAR}"
    return ""


def _group(path: Path, level: Level) -> str:
    """The key of this level below which another one belongs as an entry; empty without any."""
    value = level.written.get(path[-1]) if isinstance(level.written, dict) else None
    fitting = (group for group in level.names_expected() if (value or level.needs(group)))
    return next((group for group in fitting if isinstance(value, dict) and level.below(group).takes_entry(value)), "")


def _below(group: str) -> str:
    return f"as one of the {quoted(group)} it belongs below that key: is it indented too little?"


def _elsewhere(path: Path, above: Sequence[Level]) -> str:
    """Where the key is one of a level below, above or further away."""
    key = str(path[-1])
    if ways := above[-1].homes(key):
        return _belongs(key, above[-1], ways, above[-1])
    for index in reversed(range(len(above) - 1)):
        if key in above[index].keys:
            return f"{quoted(key)} belongs {_beside(path, index)}: {TOO_FAR}"
    for level in reversed(above[:-1]):
        if ways := level.homes(key):
            return _belongs(key, above[-1], ways, level)
    return ""


def _belongs(key: str, level: Level, ways: Sequence[tuple[str, ...]], start: Level) -> str:
    """Where a key belongs by ways from `start`, with those beside it that do; not where one is already."""
    beside = level.written if isinstance(level.written, dict) else {}
    homes = [way[-1] for way in ways if way[-1] != NAME]
    places = " or ".join([", ".join(map(quoted, homes[:-1])), quoted(homes[-1])] if homes[1:] else map(quoted, homes))
    way = _likeliest(ways)
    if set(homes) == set(DIRECTIONS) and (written := [name for name in homes if name in beside]):
        having = [name for name in written if isinstance(beside[name], dict) and key in beside[name]]
        free = [name for name in ("both", "downlink", "uplink") if name not in having]
        if having and (not free or "both" in having or len(having) > 1):
            return f"{' and '.join(map(quoted, having))} {'has' if len(having) == 1 else 'have'} one: remove it"
        way = (free[1] if having else "both",)
    together = {
        name: _fitting(beside[name], reduce(Level.below, way, start), name) for name in beside
        if name == key or (name not in level.keys and level.homes(name) == list(ways))
    }  # fmt: skip
    return f"{quoted(key)} belongs in {places or 'an entry'}: {_written(way, together, start, beside)}"


def _fitting(value: Any, home: Level, key: str) -> Any:
    """The value, if a key at home takes it; a number has at most the wrong unit. Else the key's default, if a word."""
    if home.model is None or (isinstance(value, str) and value[:1].isdecimal()) or takes(home.model, key, value):
        return value
    field = home.model.model_fields.get(key)
    more = field.json_schema_extra if field else None
    default = more.get("default") if isinstance(more, dict) else None
    return default if isinstance(default, str) and default.isalpha() else None


def _likeliest(ways: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return next((each for each in ways if set(each) & set(LIKELIEST)), ways[0])


def _written(
    way: Sequence[str], entries: Mapping[str, Any], start: Level, around: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """`repeat: {budget: 15min}`, the way being one from `start`; with dots for what must or does stand beside it."""
    home = reduce(Level.below, way, start)
    needed = {} if NAME in way else {name: None for name in home.keys if home.needs(name)}
    every = dict(entries) | needed | dict(entries)
    text = ", ".join(f"{harmless(key)}: {shown(value)}" for key, value in every.items())
    inside = around.get(way[0]) if len(way) == 1 else None
    if isinstance(inside, dict) and inside:
        text += ", ..."
    elif isinstance(inside, str) and (own := _key_of(inside, home, every)):
        text = f"{own}: {shown(inside)}, {text}"
    for name in reversed(way):
        text = f"{name}: {{{text}}}"
    return text


def _key_of(value: str, home: Level, others: Mapping[str, Any]) -> str:
    """The key for which a value stands that is written in place of a mapping: `repeat: 9` has `min`."""
    fitting = (name for name in home.keys if name not in others and home.model and takes(home.model, name, value))
    return next(fitting, "")


def _beside(path: Path, index: int) -> str:
    """Where a key belongs: at the level of one that leads to it."""
    return f"{'at the top of the file, ' if index == 0 else ''}beside {quoted(path[index])}"


def _further_down(path: Path, tree: Any) -> Iterator[Path]:
    """Where a key that is missing at the top of the file is taken for the name of an entry."""
    for group, entries in tree.items() if len(path) == 1 and isinstance(tree, dict) else ():
        if isinstance(entries, dict) and path[0] in entries:
            yield group, path[0]


def _of_mapping(path: Path, written: Any) -> str:
    """Where a mapping belongs that is written in the place of a protocol."""
    if path[:1] != ("protocols",) or not isinstance(written, dict) or "protocol" not in written:
        return ""
    if len(written) == 1:
        return f"did you mean `{harmless(written['protocol'])}`?"
    return f"a protocol with settings of its own is an arm: {of_entries('arms', [written]).partition(': ')[2]}"
