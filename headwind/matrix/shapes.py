"""What a value of another shape was meant as: a list of single keys, words in a row, a name in place of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from headwind.arm import Protocol
from headwind.matrix.indentation import joined_key
from headwind.matrix.levels import NAME, Level, Path, levels
from headwind.matrix.library import NETWORKS
from headwind.matrix.mistakes import NoContainer, Slip
from headwind.matrix.spelling import form, nearest
from headwind.matrix.units import Mistake, harmless, listed, quoted

LONGEST_VALUE, LONGEST_MAPPING = 40, 160  # characters of a value that a hint repeats
PROTOCOLS = [protocol.value for protocol in Protocol]
YES_OR_NO = {"true", "false", "yes", "no", "on", "off"}
_PAIR = re.compile(r"([A-Za-z_][\w-]*)\s*[:= ]\s*(\S+)")
_RANGE = re.compile(r"([0-9]+)\s*(?:-|to|\.\.+)\s*([0-9]+)")
_COUNT_AND_SIZE = re.compile(r"\D*?([0-9]+)\D.*?([0-9.]+\s*[kKMm]?i?B)\b.*")


def shown(value: Any) -> str:
    """A value as it is written, if it is short."""
    if isinstance(value, dict):
        text = f"{{{', '.join(f'{harmless(key)}: {shown(each)}' for key, each in value.items())}}}"
    elif isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        return harmless(value) if isinstance(value, str) and len(value) <= LONGEST_VALUE else "..."
    return text if len(text) <= LONGEST_MAPPING else "..."


def of_value(path: Path, level: Level, tree: Any) -> str:
    """What a value may have been meant as where a mapping or a list is needed; empty if it could be anything."""
    if path[:1] in (("conditions",), ("smoke",)) and len(path) <= 2 and (found := _of_condition(path, level, tree)):
        return found
    if level.is_of_names and isinstance(level.written, list):
        return of_entries(str(path[-1]), level.written)
    if path == ("selfcheck",) and isinstance(level.written, str) and (found := _of_selfcheck(level.written, tree)):
        return found
    if isinstance(level.written, list) and level.model:
        if keys := merged(level.written):
            key = "-" if isinstance(path[-1], int) else f"{path[-1]}:"
            return f"keys stand in braces, not in a list: {key} {_with_homes(keys, level)}"
        return one_key(level)
    return _of_text(path, level)


def _of_selfcheck(word: str, tree: Any) -> str:
    """The smallest self-check of this file, of the arm that is named, of h2 or of the first, in the first profile."""
    if word in ("false", "no", "off"):
        return "leave `selfcheck` out: without it there is no self-check"
    groups = [tree.get(group) for group in ("protocols", "arms", "profiles")]
    protocols, arms, profiles = (list(each) if isinstance(each, dict | list) else [] for each in groups)
    arm = next((name for name in (word, "h2", *protocols, *arms) if name in (*protocols, *arms)), "h2")
    if word not in YES_OR_NO and word != arm:
        return ""
    return f"did you mean {shown({'protocol': arm, 'again': profiles[:1] or ['PROFILE']})}?"


def of_pairs(path: Path, level: Level) -> str:
    """The pairs that were written, or words for them, as a list of pairs."""
    pairs = list(_pairs(level.written)) or [["CANDIDATE", "BASELINE"]]
    listed_ = ", ".join(f"[{', '.join(map(harmless, pair))}]" for pair in pairs)
    return f"each pair is a list of its own: {path[-1]}: [{listed_}]"


def _pairs(written: Any) -> Iterator[list[str]]:
    """`h3, h2`, `[h3, h2]`, `[h3 vs h2, h3 vs h1]` and `{h3: h2}` as pairs."""
    if isinstance(written, dict):
        yield from ([key, value] for key, value in written.items() if isinstance(value, str))
        return
    words = [_words(each) for each in ([written] if isinstance(written, str) else written) if isinstance(each, str)]
    if len(words) == 2 and all(len(each) == 1 for each in words):
        words = [[word for each in words for word in each]]
    yield from (each for each in words if len(each) == 2)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,/<>]+", text) if word and word.casefold() not in {"vs", "vs.", "against"}]


def of_entries(group: str, entries: Sequence[Any]) -> str:
    """The first entry of a list as it is written where each has a name."""
    first = entries[0] if entries and isinstance(entries[0], dict) else {}
    if len(first) == 1 and isinstance(entry := next(iter(first.values())), dict):
        return f"names in place of the dashes: {group}: {{{harmless(next(iter(first)))}: {shown(entry)}}}"
    own = {key: value for key, value in first.items() if key != "name"}
    name = first.get("name") or "-".join(str(own[key]) for key in ("protocol", "congestion") if key in own) or NAME
    return f"each has a name in place of its dash: {group}: {{{harmless(name)}: {shown(own)}}}"


def merged(entries: Sequence[Any]) -> dict[str, Any]:
    """The keys of a list of mappings, or of texts such as `min:9`, as one mapping; empty if it is no such list."""
    found: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, str) and (pair := re.fullmatch(r"([A-Za-z_]\w*)\s*[:=]\s*(.+)", entry)):
            entry = {pair[1]: pair[2]}  # noqa: PLW2901 - the same, in the other shape
        if not isinstance(entry, dict) or found.keys() & entry.keys():
            return {}
        found |= entry
    return found


def in_words(text: str) -> dict[str, Any]:
    """`delay 10ms, rate 30mbit` as a mapping; empty if it is something else."""
    parts = re.split(r"[,;]", text)
    if len(parts) == 1 and re.fullmatch(rf"(?:{_PAIR.pattern}\s*)+", text):
        parts = [found[0] for found in _PAIR.finditer(text)]
    pairs = [_PAIR.fullmatch(part.strip()) for part in parts]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def is_objects(key: str) -> bool:
    """Whether a workload's key stands for objects, of which the file has a kind."""
    return form(key) == "object"


def as_objects(text: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a workload of objects, from `40`, `40 x 15kB` or `40 objects of 15kB` and from what is beside it."""
    found = _COUNT_AND_SIZE.fullmatch(text) if isinstance(text, str) else None
    requests, size = (found[1], found[2].replace(" ", "")) if found else (text, beside.get("size", "15kB"))
    return {"kind": "objects", "requests": requests, "size": size}


def _of_text(path: Path, level: Level) -> str:
    """What a text may have been meant as, where a mapping or a list is needed."""
    text = level.written
    if isinstance(text, dict) and text and text.keys() <= set(level.words):
        return f"did you mean [{', '.join(text)}]?"
    if isinstance(text, str) and level.is_of_names and (joined := joined_key(text)):
        return f"a space is missing after the colon: {joined[-1]}"
    if not isinstance(text, str) or len(text) > LONGEST_VALUE:
        return ""
    if level.model is None:
        return "" if level.is_of_names else _of_list(path, text, level.words)
    if bounds := _RANGE.fullmatch(text) if path == ("repeat",) else None:
        return f"did you mean {{min: {bounds[1]}, max: {bounds[2]}}}?"
    if level.others and _COUNT_AND_SIZE.fullmatch(text):
        return f"did you mean {shown(as_objects(text, {}))}?"
    if keys := in_words(text):
        return f"did you mean {_with_homes(keys, level)}?"
    return one_key(level) or (listed(level.keys) if path != ("repeat",) else "")


def _of_list(path: Path, text: str, allowed: list[str]) -> str:
    """What a text may have been meant as, where a list is needed, of these words if there are any."""
    if text in ("all", "*"):
        every = f"did you mean [{', '.join(allowed)}]?"
        return every if allowed else f"leave {quoted(path[-1])} out, which means all of them"
    words = [word if word in allowed else nearest(word, allowed) for word in re.split(r"[\s/+&,;]+", text)]
    return f"did you mean [{', '.join(words) if all(words) else harmless(text)}]?"


def one_key(level: Level) -> str:
    """The key of a mapping that takes the text, or the list, which was written in place of the mapping."""
    written = level.written
    if isinstance(written, str) and written not in YES_OR_NO:
        tried: list[Any] = [written, written.casefold(), nearest(written, list(NETWORKS))]
    else:
        tried = [written] if isinstance(written, list) else []
    if level.model is None:
        return ""
    for value in tried:
        for name in level.keys:
            if value and takes(level.model, name, value):
                return f"did you mean {{{name}: {shown(value)}}}?"
    return ""


def takes(model: type[BaseModel], name: str, value: Any) -> bool:
    """Whether a mapping could have the key with that value, if its words are names of the file."""
    names = value if isinstance(value, list) else [value]
    try:
        model.model_validate({name: value}, context={"profiles": names, "workloads": names, "metrics": names})
    except ValidationError as error:
        return all(each["loc"] and each["loc"][0] != name for each in error.errors())
    return True


def _with_homes(keys: Mapping[str, Any], level: Level) -> str:
    """A mapping of these keys; those that belong one level further down stand there, for a network in `both`."""
    way = next((level.homes(key) for key in keys if key not in level.keys), [])
    if not way:
        return shown(dict(keys))
    home = next((each for each in way if each[-1] == "both"), way[0])
    text = shown(dict(keys))
    for name in reversed(home):
        text = f"{{{name}: {text}}}"
    return text


def _of_condition(path: Path, level: Level, tree: Any) -> str:
    """`[wifi/page]`, `[[wifi, page]]`, `{wifi: [page]}` and a mapping without its dash, as an entry of the list."""
    written = level.written
    if isinstance(written, dict) and written.keys() <= {"profiles", "workloads"}:
        return f"each entry of the list begins with a dash: `- {shown(written)}`"
    first = dict([next(iter(written.items()))]) if isinstance(written, dict) and written else written
    names = list(_names(first))
    found = {
        group: [name for name in names if isinstance(tree.get(group), dict) and name in tree[group]]
        for group in ("profiles", "workloads")
    }
    if not names or sum(map(len, found.values())) < len(names):
        return ""
    entry = shown({group: own for group, own in found.items() if own})
    return f"did you mean {f'`- {entry}`' if len(path) == 1 else entry}?"


def _names(written: Any) -> Iterator[str]:
    if isinstance(written, dict):
        for key, value in written.items():
            yield key
            yield from _names(value)
    elif isinstance(written, list):
        for each in written:
            yield from _names(each)
    elif isinstance(written, str):
        yield from (word.strip() for word in re.split(r"[/,]|\s+x\s+", written))


def of_several(path: Path, values: Sequence[Any]) -> str:
    """What to write for several values, where a list is and one value is expected."""
    if len(values) == 1:
        return f"did you mean `{shown(values[0])}`?"
    entry = {"workloads": "a workload", "profiles": "a profile", "arms": "an arm"}.get(str(path[0]))
    return f"one value stands here: for several write {quoted(path[0])} with {entry} for each" if entry else ""


def without_names(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> dict[Path, Slip]:
    """For each key of an entry that stands where names are, beside others of its kind, one mistake for all of them."""
    found: dict[Path, Slip] = {}
    for group in dict.fromkeys(slip.path[0] for slip in slips if len(slip.path) == 2):
        level = levels(root, tree, (group,))[-1]
        inner = [slip.path for slip in slips if slip.path[:1] == (group,) and isinstance(slip.mistake, NoContainer)]
        keys = [str(path[1]) for path in inner if len(path) == 2 and level.below(path[1]).has(str(path[1]))]
        if len(keys) > 1 and level.is_of_names:
            message = f"{', '.join(map(quoted, keys[:-1]))} and {quoted(keys[-1])} are read as names"
            hint = f"write a name around them: `{NAME}: {shown({key: level.written[key] for key in keys})}`"
            found |= dict.fromkeys([(group, key) for key in keys], Slip((group, keys[0]), Mistake(message, hint), True))
    return found
