"""What to write instead, for mistakes that only the whole file explains: a key at the wrong level, above all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from headwind.matrix.indentation import joined_key
from headwind.matrix.levels import NAME, Level, Path, kind_of, levels
from headwind.matrix.library import NETWORKS
from headwind.matrix.mistakes import MissingKey, NoContainer, Slip, UnknownKey
from headwind.matrix.spelling import nearest, respelt
from headwind.matrix.units import harmless, listed, quoted

LIKELIEST = ("downlink", "workloads")  # of several homes of a key
LONGEST_VALUE = 40  # characters of a value that a hint repeats
TOO_FAR = "is this indented too far?"


def advised(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> list[Slip]:
    """The slips with the best hint that the whole file allows; without what is missing only since it is misspelt."""
    explained = {each for slip in slips if isinstance(slip.mistake, UnknownKey) for each in _meant(slip, root, tree)}
    return [_advised(slip, root, tree) for slip in slips
            if not (isinstance(slip.mistake, MissingKey) and slip.path in explained)]  # fmt: skip


def _advised(slip: Slip, root: type[BaseModel], tree: Any) -> Slip:
    match slip.mistake:
        case UnknownKey():
            hint = _of_unknown(slip.path, levels(root, tree, slip.path[:-1]))
        case MissingKey():
            hint = _of_missing(slip.path, tree)
        case NoContainer():
            above = levels(root, tree, slip.path)
            hint = _swallowed((*slip.path, ""), above) or _of_scalar(above[-1])
        case _:
            hint = ""
    return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), hint)) if hint else slip


def _meant(slip: Slip, root: type[BaseModel], tree: Any) -> Iterator[Path]:
    """The missing keys beside an unknown one that it explains: its right spelling, or those of another kind."""
    level = levels(root, tree, slip.path[:-1])[-1]
    if near := nearest(str(slip.path[-1]), level.keys):
        yield (*slip.path[:-1], near)
    elif _kinds(str(slip.path[-1]), level):
        yield from ((*slip.path[:-1], key) for key in level.keys)


def _of_unknown(path: Path, above: Sequence[Level]) -> str:
    """`above` are the levels from the file to the mapping that has the key."""
    key, level = str(path[-1]), above[-1]
    if respelt(key, level.keys):
        return ""
    value = level.written.get(key) if isinstance(level.written, dict) else None
    found = (
        _kinds(key, level) or _swallowed(path, above) or _entry(path, above, value) or _elsewhere(path, value, above)
    )
    if found or nearest(key, level.keys):
        return found
    homes = {name: way for way, level in above[0].further() for name in level.keys}
    if meant := respelt(key, list(homes)):
        return f"did you mean `{meant}`? {_written(homes[meant], meant, value)}"
    return ""


def _kinds(key: str, level: Level) -> str:
    """Where a workload of another kind has the key."""
    having = [model for model in level.others if key in model.model_fields]
    if not having or (level.model and key in level.model.model_fields):
        return ""
    written = level.written.keys() if isinstance(level.written, dict) else set[str]()
    strange = [len(written - model.model_fields.keys()) for model in having]
    best = [f"`kind: {kind_of(model)}`" for model, count in zip(having, strange, strict=True) if count == strange[0]]
    is_said = isinstance(level.written, dict) and "kind" in level.written
    verb = "change it to" if is_said else "add"
    return f"{quoted(key)} is a key of workloads of another kind: {verb} {' or '.join(best)}"


def _swallowed(path: Path, above: Sequence[Level]) -> str:
    """Where the mapping's own name is a key of a level above, or of the entry that it is taken for."""
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    name, group = str(path[-2]), quoted(path[-3])
    if name in above[-1].keys:
        return f"{quoted(name)} is read as the name of one of the {group}: is it indented too little?"
    for index, level in enumerate(above[:-2]):
        if name in level.keys:
            home = _beside(path, index)
            return f"{quoted(name)} is read as the name of one of the {group}, and belongs {home}: {TOO_FAR}"
    return ""


def _entry(path: Path, above: Sequence[Level], value: Any) -> str:
    """Where the key looks like the name of an entry: below a key that is missing, or beside the entry it stands in."""
    level = above[-1]
    if not isinstance(value, dict):
        return ""
    for group in level.names_missing():
        likely = bool(value) or level.needs(group)
        if likely and value.keys() <= set(level.below(group).below(NAME).keys):
            return f"as one of the {quoted(group)} it belongs below that key: is it indented too little?"
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    if level.model and value.keys() <= set(level.keys):
        return f"as one more of the {quoted(path[-3])} it belongs beside {quoted(path[-2])}: {TOO_FAR}"
    return ""


def _elsewhere(path: Path, value: Any, above: Sequence[Level]) -> str:
    """Where the key is one of a level below, above or further away."""
    key = str(path[-1])
    if ways := above[-1].homes(key):
        return _belongs(key, value, ways)
    for index in reversed(range(len(above) - 1)):
        if key in above[index].keys:
            return f"{quoted(key)} belongs {_beside(path, index)}: {TOO_FAR}"
    for level in reversed(above[:-1]):
        if ways := level.homes(key):
            return _belongs(key, value, ways)
    return ""


def _belongs(key: str, value: Any, ways: Sequence[tuple[str, ...]]) -> str:
    homes = [way[-1] for way in ways if way[-1] != NAME]
    places = " or ".join([", ".join(map(quoted, homes[:-1])), quoted(homes[-1])] if homes[1:] else map(quoted, homes))
    way = next((each for each in ways if set(each) & set(LIKELIEST)), ways[0])
    return f"{quoted(key)} belongs in {places or 'an entry'}: {_written(way, key, value)}"


def _written(way: Sequence[str], key: str, value: Any) -> str:
    """`repeat: {budget: 15min}`."""
    shown = harmless(value) if isinstance(value, str) and len(value) <= LONGEST_VALUE else "..."
    text = f"{harmless(key)}: {shown}"
    for name in reversed(way):
        text = f"{name}: {{{text}}}"
    return text


def _beside(path: Path, index: int) -> str:
    """Where a key belongs: at the level of one that leads to it."""
    return f"{'at the top of the file, ' if index == 0 else ''}beside {quoted(path[index])}"


def _of_missing(path: Path, tree: Any) -> str:
    """Where the key that is missing stands further down."""
    key = path[-1]
    for group, entries in tree.items() if len(path) == 1 and isinstance(tree, dict) else ():
        places = [group, *entries] if isinstance(entries, dict) else []
        for name in places:
            inner = entries if name == group else entries[name]
            if isinstance(inner, dict) and key in inner:
                return f"there is one in {quoted(name)}: is it indented too far?"
    return ""


def _of_scalar(level: Level) -> str:
    """What the value may have been meant as, where a mapping or a list is needed."""
    text = level.written
    if isinstance(text, str) and level.is_of_names and (joined := joined_key(text)):
        return f"a space is missing after the colon: {joined[-1]}"
    if not isinstance(text, str) or len(text) > LONGEST_VALUE:
        return ""
    if level.model is None:
        return "" if level.is_of_names else f"did you mean [{harmless(text)}]?"
    for value in dict.fromkeys([text, text.casefold(), nearest(text, list(NETWORKS))]):
        for name in level.keys:
            if value and _takes(level.model, name, value):
                return f"did you mean {{{name}: {harmless(value)}}}?"
    return listed(level.keys)


def _takes(model: type[BaseModel], name: str, value: str) -> bool:
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        return all(each["loc"] and each["loc"][0] != name for each in error.errors())
    return True
