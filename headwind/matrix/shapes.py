"""Hints for values of the wrong shape: a list of single keys, words in a row, a name in place of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ValidationError

from headwind.arm import Protocol
from headwind.format import enumerated
from headwind.matrix.indentation import joined_key
from headwind.matrix.levels import NAME, Level, Path, kind_of, levels
from headwind.matrix.mistakes import NoContainer, Slip, value_at
from headwind.matrix.presets import NETWORKS
from headwind.matrix.published import of_row
from headwind.matrix.spelling import containing, form, nearest, respelt, synonym
from headwind.matrix.units import NOTHING, TIME, Mistake, harmless, listed, quoted, with_unit

LONGEST_VALUE, LONGEST_MAPPING = 40, 160  # characters of a value that a hint repeats
ROW_AT = 4  # steps to a row: `published`, the article, `times`, the row
MOST_ENTRIES = 8  # such as all arms of a block
PROTOCOLS = [protocol.value for protocol in Protocol]
DOWN = {"down", "off", "dead", "lost", "disconnected", "outage", "blackout", "offline"}  # said of a network
UP = {"up", "on", "restored", "recovered", "back", "online", "alive", "end", "ok"}  # that an outage is over
YES = ("true", "yes", "on")
ALL = ("all", "*", "any", "everything")
YES_OR_NO = {"true", "false", "yes", "no", "on", "off"}
_PAIR = re.compile(r"([A-Za-z_][\w-]*)\s*[:= ]\s*(\S+)")
_TUPLE = re.compile(r"\(\s*([\w-]+)\s*,\s*([\w-]+)\s*\)")  # cut by YAML in a list, which knows no parentheses
_RANGE = re.compile(r"([0-9]+)\s*(?:-|to|\.\.+)\s*([0-9]+)")
_IMAGE = re.compile(r"[\w.-]+(?:[/:][\w.-]+)+")
_COUNT_AND_SIZE = re.compile(r"\D*?([0-9]+)\D.*?([0-9.]+\s*[kKMm]?i?B)\b.*")


def shown(value: Any) -> str:
    """A value as it is written, if it is short; `...` otherwise."""
    if isinstance(value, dict):
        text = f"{{{', '.join(f'{harmless(key)}: {shown(each)}' for key, each in value.items())}}}"
    elif isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        return harmless(value) if isinstance(value, str) and len(value) <= LONGEST_VALUE else "..."
    return text if len(text) <= LONGEST_MAPPING else "..."


def of_each(entries: Mapping[str, str]) -> str:
    """Entries by their names, each with its keys as YAML; dots stand for those above a number that a hint can show."""
    text = [f"{harmless(name[:LONGEST_VALUE])}: {keys}" for name, keys in entries.items()]
    return f"{{{', '.join(text[:MOST_ENTRIES] + ['...'] * (len(text) > MOST_ENTRIES))}}}"


def of_value(path: Path, level: Level, tree: Any) -> str:
    """Hint for a value in place of a mapping or a list; empty if its meaning is unclear."""
    if found := of_condition(path, level, tree):
        return found
    if level.is_of_names and isinstance(level.written, list):
        return of_entries(str(path[-1]), level.written)
    if path[0] == "published" and path[2:3] == ("times",) and len(path) == ROW_AT:
        return of_row(level.written, _arms_of(tree))
    if path == ("selfcheck",) and isinstance(level.written, str) and (found := _of_selfcheck(level.written, tree)):
        return found
    if isinstance(level.written, list) and level.model:
        if path[0] == "profiles" and not level.written:
            return "did you mean {}? it is a clean network"
        if keys := merged(level.written):
            key = "-" if isinstance(path[-1], int) else f"{path[-1]}:"
            return f"write keys in braces, not in a list: {key} {_with_homes(keys, level)}"
        return one_key(level) or _in_order(level)
    return _of_text(path, level, tree)


def _arms_of(tree: Any) -> list[str]:
    """Names of the protocols and arms of a file."""
    groups = [tree.get(group) for group in ("protocols", "arms")]
    return [name for each in groups if isinstance(each, dict | list) for name in each if isinstance(name, str)]


def _of_selfcheck(word: str, tree: Any) -> str:
    """Hint with the smallest self-check of this file: of the named arm, of h2 or of the first, in the first profile."""
    if word in ("false", "no", "off"):
        return "leave `selfcheck` out for no self-check"
    groups = [tree.get(group) for group in ("protocols", "arms", "profiles")]
    protocols, arms, profiles = (list(each) if isinstance(each, dict | list) else [] for each in groups)
    profiles.sort(key=lambda name: value_at(tree, ("profiles", name)) != {})  # a clean network takes the least time
    arm = next((name for name in (word, "h2", *protocols, *arms) if name in (*protocols, *arms)), "h2")
    named = [word] if word in profiles else profiles[:1] if word != "slower" else profiles[-1:]
    key = "slower" if word == "slower" else "again"
    return f"did you mean {shown({'protocol': arm, key: named or ['PROFILE']})}?"


def of_pairs(path: Path, level: Level) -> str:
    """Hint with the written pairs, or with words for them, as a list of pairs."""
    if level.written in ("all", "*", *YES_OR_NO):
        return f"leave {quoted(path[-1])} out: by default every pair is compared"
    pairs = list(_pairs(level.written)) or [["CANDIDATE", "BASELINE"]]
    listed_ = ", ".join(f"[{', '.join(map(harmless, pair))}]" for pair in pairs)
    return f"each pair is a list: {path[-1]}: [{listed_}]"


def of_pair(written: Any) -> str:
    """Hint for an entry that is not a pair, in a list of pairs."""
    pair = next(_pairs(written), None) or [written if isinstance(written, str) else "CANDIDATE", "BASELINE"]
    return f"each pair is a list: [{', '.join(map(harmless, pair))}]"


def _pairs(written: Any) -> Iterator[list[str]]:
    """Pairs from `h3, h2`, `[h3, h2]`, `[h3 vs h2, h3 vs h1]`, `{h3: h2}` and `{candidate: h3, baseline: h2}`."""
    if isinstance(written, dict):
        is_spelt_out = len(written) == 2 and {form(key) for key in written} & {"candidate", "baseline", "base"}
        found = [list(written.values())] if is_spelt_out else [[key, value] for key, value in written.items()]
        yield from (pair for pair in found if all(isinstance(each, str) for each in pair))
        return
    if isinstance(written, list):
        yield from (pair for each in written if isinstance(each, dict) for pair in _pairs(each))
        text = ", ".join(each for each in written if isinstance(each, str))
        written = [f"{one} {other}" for one, other in _TUPLE.findall(text)] or written
    words = [_words(each) for each in ([written] if isinstance(written, str) else written) if isinstance(each, str)]
    if len(words) == 2 and all(len(each) == 1 for each in words):
        words = [[word for each in words for word in each]]
    yield from (each for each in words if len(each) == 2)


def _words(text: str) -> list[str]:
    joints = {"", "-", "vs", "vs.", "against", "and", "to"}
    return [word for word in re.split(r"[\s,/<>()]+", text) if word.casefold() not in joints]


def of_entries(group: str, entries: Sequence[Any]) -> str:
    """Hint for a list in place of named entries, with its first entry as an example."""
    first = entries[0] if entries and isinstance(entries[0], dict) else {}
    if group == "profiles" and entries and all(isinstance(each, str) for each in entries):
        presets = {name: respelt(name, list(NETWORKS)) for name in entries}
        named = {name: f"{{preset: {preset}}}" if preset else "{...}" for name, preset in presets.items()}
        return f"each name has its keys: {group}: {of_each(named)}"
    if len(first) == 1 and isinstance(entry := next(iter(first.values())), dict):
        return f"these are names, not a list: {group}: {{{harmless(next(iter(first)))}: {shown(entry)}}}"
    if (
        group == "env"
        and entries
        and all(isinstance(each, dict) and each.keys() == {"name", "value"} for each in entries)
    ):
        return f"each variable is a key: {group}: {shown({each['name']: each['value'] for each in entries})}"
    if group == "env" and (pairs := [each.split("=", 1) for each in entries if isinstance(each, str) and "=" in each]):
        return f"each variable is a key: {group}: {shown(dict(pairs))}"
    every = all(isinstance(each, dict) and each.get("name") for each in entries)
    inside = ", ".join(map(with_name, entries)) if every else with_name(first)
    return f"each has a name, instead of a place in a list: {group}: {{{inside}}}"


def with_name(keys: Mapping[str, Any]) -> str:
    """YAML of an entry with a name in front: its own, or one from what it is, such as `lte: {preset: lte}`."""
    own = {key: value for key, value in keys.items() if key != "name"}
    parts = [
        own[key] for key in ("protocol", "congestion", "server", "preset", "kind") if isinstance(own.get(key), str)
    ]
    return f"{harmless(keys.get('name') or '-'.join(parts) or NAME)}: {shown(own)}"


def merged(entries: Sequence[Any]) -> dict[str, Any]:
    """Keys of a list of mappings, or of texts such as `min:9`, as one mapping; empty for other lists."""
    found: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, str) and (pair := re.fullmatch(r"([A-Za-z_]\w*)\s*[:=]\s*(.+)", entry)):
            entry = {pair[1]: pair[2]}  # noqa: PLW2901 - the same in the other shape
        if not isinstance(entry, dict) or found.keys() & entry.keys():
            return {}
        found |= entry
    return found


def in_parentheses(text: str) -> list[str]:
    """Words of `(h1, h3)` at the beginning of a text; empty without them."""
    found = re.match(r"\(([\w., -]+)\)", text)
    return [word.strip() for word in found[1].split(",")] if found else []


def in_words(text: str) -> dict[str, Any]:
    """Mapping for `delay 10ms, rate 30mbit`; empty for other texts."""
    parts = re.split(r"[,;]", text)
    if len(parts) == 1 and re.fullmatch(rf"(?:{_PAIR.pattern}\s*)+", text):
        parts = [found[0] for found in _PAIR.finditer(text)]
    pairs = [_PAIR.fullmatch(part.strip()) for part in parts]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def is_objects(key: str) -> bool:
    """True if a workload's key stands for objects, for which there is a kind."""
    return form(key) == "object"


OFF = ("false", "no", "off")  # a word with one of these is not wanted


def as_objects(text: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a workload of objects, from `40`, `40 x 15kB` or `40 objects of 15kB` and from the keys next to it."""
    return {"kind": "objects", **(count_and_size(text) or {"requests": text, "size": beside.get("size", "15kB")})}


def count_and_size(text: Any) -> dict[str, Any]:
    """`requests` and `size` of `40 x 15kB` or `40 objects of 15kB`; empty for others."""
    found = _COUNT_AND_SIZE.fullmatch(text) if isinstance(text, str) else None
    return {"requests": found[1], "size": found[2].replace(" ", "")} if found else {}


def _of_text(path: Path, level: Level, tree: Any) -> str:
    """Hint for a text in place of a mapping or a list."""
    text = level.written
    if isinstance(text, dict) and text and text.keys() <= set(level.words):
        return f"did you mean [{', '.join(name for name, value in text.items() if form(str(value)) not in OFF)}]?"
    if isinstance(text, str) and level.is_of_names and (joined := joined_key(text)):
        return f"a space is missing after the colon: {joined[-1]}"
    if not isinstance(text, str) or len(text) > (LONGEST_MAPPING if text[:1] == "{" else LONGEST_VALUE):
        return ""
    if level.model is None:
        return _of_entry(path, text, tree) if level.is_of_entries else _of_list(path, text, level.words)
    if bounds := _RANGE.fullmatch(text) if path == ("repeat",) else None:
        return f"did you mean {{min: {bounds[1]}, max: {bounds[2]}}}?"
    if level.others and _COUNT_AND_SIZE.fullmatch(text):
        return f"did you mean {shown(as_objects(text, {}))}?"
    is_tool_in_front = text.partition(" ")[0].isalnum()
    for part in (text, *([text.partition(" ")[2]] if is_tool_in_front else [])):
        if keys := _known_as(in_words(part), level):
            return f"did you mean {_with_homes(keys, level)}?"
    if len(path) == 2 and path[0] == "servers" and _IMAGE.fullmatch(text):
        return f"did you mean {{image: {text}, protocols: [h2, h3]}}?"
    in_a_row = _in_order(Level(level.kind, text.split()))
    return in_a_row or one_key(level) or _of_word(path, level) or (listed(level.keys) if path != ("repeat",) else "")


def _known_as(keys: Mapping[str, str], level: Level) -> dict[str, Any]:
    """The keys by their names at a level or directly below it, their values without quotes; empty if one is unknown."""
    below = [name for _, inner in level.further() for name in inner.keys]
    names = {key: key if key in level.keys or level.homes(key) else synonym(key, below) for key in keys}
    return {name: with_unit(name, keys[key].strip("'\"")) for key, name in names.items()} if all(names.values()) else {}


def _of_entry(path: Path, text: str, tree: Any) -> str:
    """Hint for a moment in place of changes."""
    if path[-1] != "at" or not re.fullmatch(TIME.pattern, text):
        return ""
    rebind = value_at(tree, (*path[:-1], "rebind"))
    change = {"rebind": rebind} if isinstance(rebind, str) else {"both": {"loss": "100%"}}
    return f"a moment comes with what changes then: at: {{{text}: {shown(change)}}}"


def _of_word(path: Path, level: Level) -> str:
    """Hint for a mapping in quotes, a word for nothing, or a kind of workload, in place of a mapping."""
    text = level.written
    if text[:1] == "{" and text[-1:] == "}":
        return f"remove the quotes: {harmless(text)}"
    if path[-3:-2] == ("at",) and text.casefold() in DOWN:
        return "did you mean {loss: 100%}?"
    if "at" in path[-3:-1] and text.casefold() in UP:
        return f"did you mean `{path[path.index('at') + 1]}: {{}}`? it restores the beginning"
    if path[0] == "profiles" and text.casefold() in {*NOTHING, "", "clean"}:
        if any(map(level.needs, level.keys)):
            return f"remove it: without {quoted(path[-1])} there is none"
        return f"did you mean {{}}? it {'restores the beginning' if path[-2:-1] == ('at',) else 'is a clean network'}"
    if path[-2:-1] == ("at",):
        if text.casefold() in DOWN:
            return "did you mean {both: {loss: 100%}}?"
        network = NETWORKS.get(respelt(text, list(NETWORKS)))
        return f"write what changes at this moment: {shown(network.written)}" if network else ""
    if path[0] == "profiles" and (networks := containing(text, list(NETWORKS))):
        return f"did you mean {{preset: {min(networks, key=len)}}}? `lab.py profiles` lists all networks"
    return _of_kind(text, level)


def _of_kind(text: str, level: Level) -> str:
    """Hint for a kind of workload in place of its keys; empty for other words."""
    for model in level.others:
        if text == kind_of(model) and not getattr(model, "mark", ""):
            needed = (name for name, field in model.model_fields.items() if field.is_required() and name != "kind")
            return f"did you mean {{{', '.join([f'kind: {text}', *(f'{name}: ...' for name in needed)])}}}?"
    return ""


def _in_order(level: Level) -> str:
    """Hint for the values of a list, each for the first key that accepts it: `[1%, 25%]` for p and r."""
    for model in level.models if len(level.written) > 1 else ():
        found: dict[str, Any] = {}
        for value in level.written:
            names = (name for name in model.model_fields if name not in found and takes(model, name, value))
            if (name := next(names, None)) is None:
                break
            found[name] = value
        else:
            return f"did you mean {shown(found)}?"
    return ""


def _of_list(path: Path, text: str, allowed: list[str]) -> str:
    """Hint for a text in place of a list, with the allowed words if there are any."""
    if path[-1] == "paths" and not text.startswith("/"):
        return "list the paths of your files: paths: [/, /app.css]"
    if path == ("judge",) and text in ALL:
        return "leave `judge` out: the usual metrics of each workload are judged; or list those you want"
    if text in (*ALL, *YES_OR_NO) and path[0] != "selfcheck":
        every = f"did you mean [{', '.join(allowed)}]?"
        return every if allowed else f"leave {quoted(path[-1])} out to mean all of them"
    parts = [word for word in re.split(r"[\s/+&,;|\u2010-\u2015\u2022]+", text) if word not in ("", "and")]
    words = [word if word in allowed else nearest(word, allowed) for word in parts]
    return f"did you mean [{', '.join(words) if all(words) else harmless(text)}]?"


def one_key(level: Level) -> str:
    """Hint with the key of a mapping that accepts the text, or the list, written in place of the mapping."""
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
    """True if a mapping could have the key with that value, if its words are names of the file."""
    names = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    try:
        model.model_validate({name: value}, context={"profiles": names, "workloads": names, "metrics": names})
    except ValidationError as error:
        return all(each["loc"] and each["loc"][0] != name for each in error.errors())
    return True


def _with_homes(keys: Mapping[str, Any], level: Level) -> str:
    """Mapping of these keys; keys of the next level are put there, for a network in `both`."""
    way = next((level.homes(key) for key in keys if key not in level.keys), [])
    if not way:
        return shown(dict(keys))
    home = next((each for each in way if each[-1] == "both"), way[0])
    text = shown(dict(keys))
    for name in reversed(home):
        text = f"{{{name}: {text}}}"
    return text


def of_condition(path: Path, level: Level, tree: Any) -> str:
    """Hint with an entry of the list for `[wifi/page]`, `[[wifi, page]]`, `{wifi: [page]}`, or a missing dash."""
    if path[:1] not in (("conditions",), ("smoke",)) or len(path) > 2:
        return ""
    written = level.written
    if isinstance(written, dict) and written and all(map(_group_of, written)):
        entry = {_group_of(key): _known_names(each, tree.get(_group_of(key))) for key, each in written.items()}
        return f"each entry of the list begins with a dash: `- {shown(entry)}`"
    entries = [{key: value} for key, value in written.items()] if isinstance(written, dict) and written else [written]
    groups = {group: [*own] for group in ("profiles", "workloads") if isinstance(own := tree.get(group), dict)}
    found: list[dict[str, Any]] = [each for entry in entries if (each := _condition(entry, groups))]
    if len(found) > 1 and len(path) == 1:
        return f"write {path[0]}: [{', '.join(map(shown, found))}]"
    if whole := _of_halves(tree.get(path[0]), groups):
        return f"did you mean one entry: {path[0]}: [{shown(whole)}]?"
    if not found:
        return ""
    text = shown(_in_conditions(found[0], tree) if path[0] == "smoke" else found[0])
    if len(path) == 1 and isinstance(written, str):
        return f"did you mean [{text}]?"
    return f"did you mean {f'`- {text}`' if len(path) == 1 else text}?"


def _in_conditions(entry: Mapping[str, list[str]], tree: Any) -> dict[str, Any]:
    """The entry with those workloads that `conditions` has for its profiles; as it is if that key says nothing."""
    listed_ = tree.get("conditions")
    if "workloads" in entry or not isinstance(listed_, list):
        return dict(entry)
    having = [
        each for each in listed_ if isinstance(each, dict) and {*each.get("profiles", ())} >= {*entry["profiles"]}
    ]
    return {**entry, "workloads": having[0]["workloads"]} if having and having[0].get("workloads") else dict(entry)


def _known_names(names: Any, group: Any) -> list[Any]:
    """The names of one or several entries of a group, spelt as there."""
    known = list(group) if isinstance(group, dict) else []
    return [respelt(str(each), known) or each for each in (names if isinstance(names, list) else [names])]


def _group_of(key: str) -> str:
    """`profiles` or `workloads` for either in plural or singular; empty for other keys."""
    return respelt(key, ["profiles", "workloads"])


def _of_halves(entries: Any, groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The one entry that two lists make, of profiles and of workloads; empty for others."""
    halves = [_condition(each, groups) for each in entries] if isinstance(entries, list) and len(entries) == 2 else []
    whole = {group: names for half in halves for group, names in half.items()}
    return whole if [len(half) for half in halves] == [1, 1] and len(whole) == 2 else {}


def _condition(written: Any, groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The entry of `conditions` with the profiles and workloads that are named; empty if one is unknown."""
    names = list(_names(written))
    found = {group: [own for name in names if (own := respelt(name, list(known)))] for group, known in groups.items()}
    is_known = names and sum(map(len, found.values())) >= len(names)
    return {group: own for group, own in found.items() if own} if is_known else {}


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
    """Hint for several values in place of one."""
    if len(values) == 1:
        return f"did you mean `{shown(values[0])}`?"
    entry = {"workloads": "a workload", "profiles": "a profile", "arms": "an arm", "servers": "a server"}.get(
        str(path[0])
    )
    if path == ("selfcheck", "protocol"):
        return f"one arm has twins: protocol: {shown(values[0])}"
    if path[0] == "workloads" and path[-1] == "browser":
        return "one browser stands here: for another one write arms: {h3-firefox: {protocol: h3, browser: firefox}}"
    files = "; or fetch files of your site (`content`, `paths`)" if path[-1] == "size" else ""
    return f"one value stands here: for several write {quoted(path[0])} with {entry} for each{files}" if entry else ""


def without_names(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> dict[Path, Slip]:
    """A single mistake for all keys of an entry that are written in place of names."""
    found: dict[Path, Slip] = {}
    for group in dict.fromkeys(slip.path[0] for slip in slips if len(slip.path) == 2):
        level, own = levels(root, tree, (group,))[-1], [slip for slip in slips if slip.path[0] == group]
        is_arm = group == "arms"  # no arm is called like a key, but a profile may be
        wrong = [
            slip.path[1] for slip in own
            if (is_arm and slip.path[1:]) or (len(slip.path) == 2 and isinstance(slip.mistake, NoContainer))
        ]  # fmt: skip
        keys = [key for key in map(str, dict.fromkeys(wrong)) if level.below(key).has(key)]
        if level.is_of_names and len(keys) > (0 if is_arm else 1):
            mistake = _of_nameless(keys, level.written)
            found |= dict.fromkeys([(group, key) for key in keys], Slip((group, keys[0]), mistake, at_key=True))
    return found


def _of_nameless(keys: Sequence[str], entries: Mapping[str, Any]) -> Mistake:
    """Mistake of these keys among entries: one alone belongs in the last entry before it, several lack a name."""
    own = {key: entries[key] for key in keys}
    named, *others = keys
    if others:
        hint = f"write a name around them: `{NAME}: {shown(own)}`"
        return Mistake(f"{enumerated(map(quoted, keys))} are read as names", hint)
    above = [
        name for name, entry in takewhile(lambda item: item[0] != named, entries.items()) if isinstance(entry, dict)
    ]
    name = above[-1] if above else NAME
    hint = f"is it indented too little? `{harmless(name)}: {shown({**(entries[name] if above else {}), **own})}`"
    return Mistake(f"{quoted(named)} is read as a name", hint)
