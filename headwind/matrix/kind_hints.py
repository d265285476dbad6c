"""Hints for keys of another kind of workload, or of another form of the same kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from headwind.format import enumerated
from headwind.matrix.levels import Level, Path, kind_of
from headwind.matrix.shapes import as_objects, is_objects, shown, takes
from headwind.matrix.spelling import form, synonym
from headwind.matrix.units import SIZE, Mistake, quoted
from servers.objects import path_of

MOST = 1024  # requests of a workload of another kind than h2load
_KEYS = {"connections": "1"}  # of h2load alone
FILES = frozenset({"path", "file", "filename", "url", "object", "page", "resource", "asset"})  # by their form


def as_kind(key: str, value: Any, level: Level) -> str:
    """Hint for a kind of workload in place of a key, with its keys below it: `transfer: {size: 1MB}`."""
    if not (model := level.kind_as_key(key, value)):
        return ""
    own = {name: each for name, each in {**level.written, **value}.items() if name in model.model_fields}
    needed = {name: "..." for name, field in model.model_fields.items() if field.is_required()}
    gone = [quoted(name) for name in value if name not in model.model_fields]
    note = f" it has no {enumerated(gone)}" if gone else ""
    return f"the kind is a key: did you mean {shown(needed | own | {'kind': key})}?{note}"


def of_files(path: Path, value: Any, beside: Mapping[Any, Any]) -> str:
    """Hint for a list of files that a workload has under another key than `paths`; empty for others."""
    is_list = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
    if path[0] != "workloads" or form(str(path[-1])) not in FILES or not is_list or "paths" in beside:
        return ""
    is_of_objects = beside.get("kind") == "objects"
    return f"did you mean `paths`?{'' if is_of_objects else ' it is a key of `kind: objects`'}"


def as_path(key: str, written: Mapping[Any, Any]) -> str:
    """The path of an object that has the size of a workload which only h2load can be; empty for other keys."""
    requests = str(written.get("requests", ""))
    is_h2load = {"connections", "threads"} & {*written} or ({"requests", "streams"} <= {*written})
    is_h2load = is_h2load or (requests.isdecimal() and int(requests) > MOST)
    if key != "size" or "kind" in written or "path" in written or not is_h2load:
        return ""
    with suppress(Mistake):
        return path_of(int(SIZE.parse(written[key])))
    return ""


def of_other_kinds(key: str, level: Level) -> str:
    """Hint for a key of another kind of workload, or for a synonym of one."""
    others = [name for each in level.others for name in each.model_fields]
    return _kinds(key, level) or _kinds(synonym(key, others), level)


def _kinds(key: str, level: Level) -> str:
    """Hint for a key of another kind of workload."""
    written = level.written if isinstance(level.written, dict) else {}
    if level.others and (path := as_path(key, written)):
        return f"write `path: {path}` instead: h2load fetches one object, of any size"
    if is_objects(key) and level.others and "kind" not in written:
        return f"for objects of one size write {shown(as_objects(written.get(key), written))}"
    if written.get("kind") == "transfer" and key in ("requests", "connections") and written.get(key) == "1":
        return "remove it: a transfer is one object over one connection"
    having = [model for model in level.others if key in model.model_fields]
    if level.model and "kind" in written and (found := _of_two_forms(key, level, having)):
        return found
    if not having or (level.model and key in level.model.model_fields):
        return ""
    strange = [len(written.keys() - model.model_fields.keys()) for model in having]
    best = [f"`kind: {kind_of(model)}`" for model, count in zip(having, strange, strict=True) if count == strange[0]]
    is_only_one = level.model and written.keys() - {key} <= level.model.model_fields.keys()
    if level.model and "kind" in written and (strange[0] or is_only_one):
        own = f"`kind: {kind_of(level.model)}`"
        others = ["others"] if {*map(kind_of, having)} - {name[7:-1] for name in best} else []
        return f"{quoted(key)} is a key of {enumerated([*best, *others])}; {own} has none: {_in_place_of(key, level)}"
    gone = [name for name in written if level.has(name) and name not in having[0].model_fields and name != key]
    if "kind" not in written and gone:
        named = " and ".join(map(quoted, gone))
        either = f"add {best[0]} and remove {named}, or remove {quoted(key)}"
        return f"{quoted(key)} is a key of {best[0]}, which has no {named}: {either}"
    verb = "change it to" if "kind" in written else "add"
    return f"{quoted(key)} is a key of workloads of another kind: {verb} {' or '.join(best)}"


def _of_two_forms(key: str, level: Level, having: Sequence[type[BaseModel]]) -> str:
    """Hint for a key of another form of the written kind, of which other keys are written: both forms' keys."""
    every = level.keys
    other = next((model for model in having if level.model and kind_of(model) == kind_of(level.model)), None)
    mine = [quoted(name) for name in level.written if name in every and other and name not in other.model_fields]
    if not other or not mine or key in every:
        return ""
    stand_for = {name: name if name in other.model_fields else synonym(name, [key]) for name in level.written}
    its = [name for name, meant in stand_for.items() if meant and name not in every]
    named, theirs = enumerated([quoted(stand_for[name]) for name in its]), enumerated(map(quoted, its))
    both = f"`kind: {kind_of(other)}` has {enumerated(mine)}, or {named}, but not both"
    return f"{both}: remove {enumerated(mine)}, or {theirs}"


def _without_kind(level: Level) -> dict[str, Any]:
    return {key: value for key, value in level.written.items() if key != "kind"}


def _in_place_of(key: str, level: Level) -> str:
    """Remedy for a key that the written kind does not have: the keys that it needs, or to remove it."""
    lacking = [name for name in level.keys if level.needs(name) and name not in level.written]
    named = dict.fromkeys(lacking, "...")
    if level.model and kind_of(level.model) == "h2load" and (path := as_path(key, {**_KEYS, **_without_kind(level)})):
        return f"write `path: {path}` instead"
    if key == "paths" and level.has("path"):
        listed = level.written[key] if isinstance(level.written[key], list) else [level.written[key]]
        pages = [each for each in listed if str(each).endswith(("/", ".html", ".htm"))]
        return f"write `path: {(pages or ['/'])[0]}` instead: the page, which loads the other files"
    paths = (str(value) for name, value in level.written.items() if key in (name, synonym(name, [key])))
    size = re.fullmatch("/([0-9]+)([km])", next(paths, ""))
    if size and level.model and takes(level.model, "size", value := f"{size[1]}{size[2].upper()}iB"):
        named |= {"size": value} if "size" in lacking else {}
    return f"write `{shown(named)[1:-1]}` instead" if named else "remove it"
