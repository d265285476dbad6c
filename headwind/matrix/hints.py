"""Hints that need the whole file, mainly for keys at the wrong level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from headwind.format import enumerated
from headwind.matrix import nowhere
from headwind.matrix.apart import GROUPS, as_network, of_group
from headwind.matrix.arm_hints import of_arm
from headwind.matrix.arms import PAIRS_ARMS
from headwind.matrix.concepts import (
    DIRECTION_IS_KEY,
    beside_a_preset,
    correlated,
    lacking,
    of_bdp,
    of_kind,
    of_no_mapping,
    of_other_model,
    of_other_tools,
    of_packets,
    of_span,
    of_two_moments,
    of_two_values,
    of_unit,
    share_in,
    varied_by,
    without_searched,
)
from headwind.matrix.keys import respelt_key
from headwind.matrix.kind_hints import as_kind, of_files, of_other_kinds
from headwind.matrix.levels import NAME, Level, Path, kind_of, levels
from headwind.matrix.link_keys import DirectionKeys, QueueKeys, SlotKeys
from headwind.matrix.mistakes import (
    NO_CORRELATION,
    TOO_FAR,
    MissingKey,
    NoContainer,
    Slip,
    Unindented,
    UnknownKey,
    from_pydantic,
    value_at,
)
from headwind.matrix.places import already, as_value, of_place, of_session
from headwind.matrix.presets import NETWORKS
from headwind.matrix.profile import ProfileKeys, of_moment
from headwind.matrix.proposals import PROPOSAL
from headwind.matrix.published import of_figure
from headwind.matrix.shapes import (
    YES_OR_NO,
    as_objects,
    count_and_size,
    of_condition,
    of_entries,
    of_pair,
    of_pairs,
    of_several,
    of_value,
    shown,
    takes,
    without_names,
)
from headwind.matrix.spelling import containing, form, nearest, respelt, synonym, synonyms
from headwind.matrix.spelt_out import IN_BOTH, ONE_WAY, TOGETHER, as_rate
from headwind.matrix.sweep import DIRECTIONS, RANGE, SWEPT
from headwind.matrix.tc_lines import of_tc
from headwind.matrix.units import NOTHING, Mistake, NotOneValue, harmless, listed, meant, quoted, with_unit
from headwind.matrix.workload import WorkloadKeys
from headwind.metric import Use
from headwind.servers import SERVERS
from servers.objects import size_of

COUNTS = {"iteration", "run", "count", "number", "n", "time", "trial", "block", "repetition", "sample", "round"}
LIKELIEST = ("both", "workloads")  # preferred among several homes of a key
IN_PROFILE = 2  # steps to a profile: `profiles`, the name
PROFILE_KEY = 3  # steps to a key of a profile: `profiles`, the name, the key
ONE_ROUND_TRIP = ("1 rtt", "1rtt", "one rtt")  # of a handshake, by form


def advised(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> list[Slip]:
    """The slips with the best hints that the whole file allows, without slips that another one explains."""
    slips = _spans_in_one(_with_heading(slips, root, tree), tree)
    explained = {each for slip in slips for each in _meant(slip, root, tree)}
    swallowed = {slip.path: place for slip in slips if isinstance(slip.mistake, MissingKey)
                 for place in _further_down(slip.path, tree)}  # fmt: skip
    found = dict[Slip, None]()
    nameless = without_names(slips, root, tree)
    for slip in slips:
        if slip.path[:2] in nameless:
            found[nameless[slip.path[:2]]] = None
        elif {path[0] for path in nameless} & set(slip.path[2:]):
            continue  # it names an entry of a group without names
        elif slip.path[4:] and slip.path[2] == "at" and slip.path[3] in DirectionKeys.model_fields:
            continue  # a key of a direction in place of a moment: what is in it depends on where it belongs
        elif (
            len(slip.path) == PROFILE_KEY + 1 and slip.path[2] == "at" and slip.path[3] in ProfileKeys.model_fields
            and isinstance(slip.mistake, NoContainer)
        ):  # fmt: skip
            continue  # likewise of a network
        elif slip.path[0] == "servers" and slip.path[1:2] and slip.path[1] in SERVERS and len(slip.path) > 2:
            continue  # a server of the lab has no keys: only its name is wrong here
        elif place := swallowed.get(slip.path):
            hint = f"it belongs {_next_to(place, 0)}: {TOO_FAR}"
            message = f"{quoted(place[-1])} is read as the name of one of the {quoted(place[0])}"
            found[Slip(place, Mistake(message, hint), at_key=True)] = None
        elif not (isinstance(slip.mistake, MissingKey) and slip.path in explained) and not any(
            slip.path[: len(place)] == place for place in swallowed.values()
        ):
            found[_advised(_pair(slip, root, tree), root, tree)] = None
    return _each_once(found)


def _with_heading(slips: Sequence[Slip], root: type[BaseModel], tree: Any) -> Sequence[Slip]:
    """The slips with a single one for all entries of a group whose first line, such as `workloads:`, is missing."""
    whole = levels(root, tree, ())[0]
    groups = {slip.path[0]: whole.below(slip.path[0]) for slip in slips if isinstance(slip.mistake, MissingKey)
              and len(slip.path) == 1 and whole.below(slip.path[0]).is_of_names}  # fmt: skip
    for group, level in groups.items():
        for other in [name for name in whole.written if whole.below(name).is_of_names]:
            if names := _of_another_group(level, whole.below(other)):
                message = f"{enumerated(map(quoted, names))} {'are' if names[1:] else 'is'} read as {other}"
                heading = Mistake(message, f"is the line `{group}:` missing above?")
                about = {(group,), *((other, name) for name in names)}
                rest = [slip for slip in slips if slip.path[:2] not in about and value_at(tree, slip.path) not in names]
                return [Slip((other, names[0]), heading, at_key=True), *rest]
    return slips


def _spans_in_one(slips: Sequence[Slip], tree: Any) -> Sequence[Slip]:
    """The slips with a single one for each `at` that has the beginning of a span in place of moments."""
    found = dict[Slip, None]()
    for slip in slips:
        at = slip.path[:PROFILE_KEY]
        hint = of_span(at, value_at(tree, at)) if slip.path[:1] == ("profiles",) else ""
        found[Slip(at, NoContainer("these are not moments", hint), at_key=True) if hint else slip] = None
    return list(found)


def _of_another_group(level: Level, other: Level) -> list[str]:
    """The names of entries that `other` has and does not allow, and that would be allowed at `level`."""
    entries = other.written.items() if isinstance(other.written, dict) else ()
    return [
        name for name, entry in entries
        if isinstance(entry, dict) and entry and level.takes_entry(entry) and not other.takes_entry(entry)
    ]  # fmt: skip


def _each_once(slips: Iterable[Slip]) -> list[Slip]:
    """The slips without misplaced keys that the hint of one next to them names or replaces as well."""
    found = dict[Any, Slip]()
    for slip in slips:
        names_all = " belong in " in slip.mistake.hint or " in bursts of " in slip.mistake.hint
        names_all = names_all or slip.mistake.hint.startswith(
            ("the direction comes first", DIRECTION_IS_KEY, "times of bursts", IN_BOTH, TOGETHER)
        )
        found.setdefault((slip.path[:-1], slip.mistake.hint) if names_all else slip, slip)
    return list(found.values())


def _pair(slip: Slip, root: type[BaseModel], tree: Any) -> Slip:
    """Slip at the list itself if it has no pair, such as one pair in place of a list of pairs: reported once."""
    *above, last = slip.path
    level = levels(root, tree, above)[-1]
    if not (isinstance(slip.mistake, NoContainer) and isinstance(last, int) and level.is_of_lists):
        return slip
    if any(isinstance(entry, list) for entry in level.written):
        return replace(slip, mistake=NoContainer("this must be a pair", of_pair(level.written[last])))
    return Slip(tuple(above), slip.mistake)


def _advised(slip: Slip, root: type[BaseModel], tree: Any) -> Slip:
    match slip.mistake:
        case _ if nowhere.is_site(slip.path, value_at(tree, slip.path)):
            hint = nowhere.LIVE
        case _ if slip.path[0] == "judge" and slip.path[1:] and isinstance(value_at(tree, slip.path), str):
            hint = _of_judged(value_at(tree, slip.path), root, tree)
        case UnknownKey():
            above = levels(root, tree, slip.path[:-1])
            hint = of_arm(slip, tree) or _of_unknown(slip.path, above)
            if group := _group_named(slip.path, above[-1], hint):
                return replace(slip, mistake=Unindented(str(slip.mistake), hint, group))
        case NoContainer() if not slip.mistake.hint:
            above = levels(root, tree, slip.path)
            hint = _swallowed((*slip.path, ""), above) or of_arm(slip, tree) or of_tc(slip.path, above[-1].written)
            if not hint and above[-1].is_of_lists:
                pairs = _of_networks(above[-1].written, tree) or of_pairs(slip.path, above[-1])
                return replace(slip, mistake=NoContainer("this must be a list of pairs", pairs))
            written = above[-1].written
            hint = hint or of_no_mapping(slip.path, written) or of_value(slip.path, above[-1], tree)
        case NoContainer():
            hint = ""
        case MissingKey() if hint := _of_no_kind(slip, tree):
            pass
        case _:
            hint = of_arm(slip, tree) or _of_wrong_value(slip, levels(root, tree, slip.path))
    return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), hint)) if hint else slip


def _of_no_kind(slip: Slip, tree: Any) -> str:
    """Hint for a workload that has only a path, as that of a page has; empty for others."""
    written = value_at(tree, slip.path[:2])
    if slip.path[0] != "workloads" or len(slip.path) != IN_PROFILE + 1 or not isinstance(written, dict):
        return ""
    if written.keys() - {"browser", "visit", "discovery", "isolation"} != {"path"}:
        return ""
    page = shown({"kind": "page", **written})
    return f"without a `kind` it is h2load, which needs {quoted(slip.path[-1])}; for a page in a browser write {page}"


def _group_named(path: Path, level: Level, hint: str) -> str:
    """Key of this level that has no value, and under which a hint puts an unknown key; empty without any."""
    if (group := _group(path, level)) and hint == _below(group):
        return group
    ways = level.homes(str(path[-1]))
    is_direct = len(ways) == 1 and len(ways[0]) == 1 and ways[0][0] not in level.written
    return ways[0][0] if is_direct and f" in {quoted(ways[0][0])}: " in hint else ""


def _of_networks(written: Any, tree: Any) -> str:
    """Hint for pairs of networks in place of pairs of arms."""
    words = [word for each in (written if isinstance(written, list) else [written]) if isinstance(each, str)
             for word in re.split(r"[\s,/]+", each)]  # fmt: skip
    profiles = tree.get("profiles") if isinstance(tree, dict) else None
    first = next((word for word in words if isinstance(profiles, dict) and word in profiles), "")
    return f"{quoted(first)} is a profile: {PAIRS_ARMS}, such as [[h3, h2]]" if first else ""


def _of_wrong_value(slip: Slip, above: Sequence[Level]) -> str:
    """Hint for a value that its key rejects, if the whole file has a better one; `above` ends with it."""
    path, level = slip.path, above[-1]
    written = level.written
    found = of_figure(path, written) or _of_paths(path, above) or _without_slash(path, above)
    if found := found or _of_row(slip, above) or _of_nothing(slip, above):
        return found
    if path[0] == "profiles" and written is None and isinstance(own := above[-2].written, str):  # `loss: 2`
        found = of_bdp(path[:-1], own, above[IN_PROFILE].written) or of_two_values(path, own)
        return found or of_unit(replace(slip, path=path[:-1]), own, above[-3].written)
    if found := _of_key(slip, above[-2].written, _along(above[0].written)) if slip.at_key and len(above) > 1 else "":
        return found
    found = _of_mapping(path, written) or of_two_values(path, written) or of_unit(slip, written, above[-2].written)
    if found := found or of_packets(path, written, above[-3:][0].written):
        return found
    if slip.at_key or not written or isinstance(written, dict):
        return ""
    outer = above[-2].model
    is_refused = level.model and outer and not takes(outer, str(path[-1]), written)
    if is_refused and (found := of_value(path, level, above[0].written)):
        return found
    if isinstance(written, str) and (found := _of_name(path, written, above[1].written)):
        return f"{found}; {slip.mistake.hint}"
    if isinstance(slip.mistake, NotOneValue):
        return of_several(path, written)
    return _purpose(path, slip, above[-2])


def _of_row(slip: Slip, above: Sequence[Level]) -> str:
    """Hint for a list in place of a value that is short for a mapping, such as `queue: [50, 200]`."""
    is_short = above[-1].written is None and not slip.at_key
    return of_several(slip.path[:-1], above[-2].written) if is_short and isinstance(above[-2].written, list) else ""


def _without_slash(path: Path, above: Sequence[Level]) -> str:
    """Hint for `path: index.html`, if a server of the file may have it; empty for others."""
    text, tree = above[-1].written, _around(above[0])
    is_path = {"path", "paths", "ready"} & {*path[-2:]} and isinstance(text, str)
    if not is_path or not re.fullmatch(r"[\w.~%&-][\w.~%?=&/-]*", text) or text in YES_OR_NO:
        return ""
    text = text.removeprefix(f"{str(tree.get('content')).rstrip('/')}/")
    is_there = {"content", "servers"} & tree.keys() or size_of(f"/{text}") not in (None, size_of("/"))
    return f"did you mean {quoted(f'/{text}')}? it begins with a slash, such as `/`" if is_there else ""


def _of_nothing(slip: Slip, above: Sequence[Level]) -> str:
    """Hint for `loss: none`: what a direction has not is left out; empty for others."""
    path = slip.path
    value, *rest = [level.written for level in reversed(above[PROFILE_KEY:]) if level.written is not None] or [None]
    key = next((str(step) for step in reversed(path) if step in DirectionKeys.model_fields), "")
    is_none = path[0] == "profiles" and isinstance(value, str) and value.casefold() in NOTHING and bool(rest)
    is_none = is_none and "did you mean" not in slip.mistake.hint
    return (
        f"remove it: without {quoted(key)} there is none"
        if is_none and key not in ("", "rate", "queue", "trace")
        else ""
    )


def _of_paths(path: Path, above: Sequence[Level]) -> str:
    """Hint for several paths of h2load in a file without `content`, whose files a workload of objects could fetch."""
    written = above[-1].written
    is_list = isinstance(written, list) and path[0] == "workloads" and path[2:] in (("path",), ("paths",))
    entry = _around(above[-2]).get("kind", "h2load") if is_list else ""
    if entry != "h2load" or "content" in _around(above[0]) or not all(isinstance(each, str) for each in written):
        return ""
    keys = {key: value for key, value in above[-2].written.items() if key not in ("path", "paths")}
    loads = {f"{path[1]}{number}": {**keys, "path": each} for number, each in enumerate(written, 1)}
    return f"a workload for each: {shown(loads)[1:-1]}" if shown(loads) != "..." else "write a workload for each"


def _of_judged(written: str, root: type[BaseModel], tree: Any) -> str:
    """The metrics that the workloads of the file have, for a name that is none and not close to another one."""
    entries = tree.get("workloads")
    found = [levels(root, tree, ("workloads", name))[-1] for name in entries] if isinstance(entries, dict) else []
    known = _compared(level.model for level in found if isinstance(level.written, dict))
    every = _compared(keys for level in found[:1] for keys in level.models)
    is_known = written in known  # it is there twice
    return meant(written, known) if known and not is_known and nearest(written, every) in (*known, "") else ""


def _compared(models: Iterable[type[BaseModel] | None]) -> list[str]:
    """The keys of the metrics by which workloads with these keys can be compared."""
    workloads = [keys.model for keys in models if keys and issubclass(keys, WorkloadKeys)]
    return list(dict.fromkeys(each.key for model in workloads for each in model.with_use(Use.JUDGED, Use.COMPARED)))


def _of_name(path: Path, written: str, group: Any) -> str:
    """Hint for a profile of this file in place of a preset, and for what is said of two sessions."""
    if path[-1] == "session" and form(written) in ONE_ROUND_TRIP:
        return "TLS 1.3 takes one round trip with and without an earlier session: did you mean `new` or `resumed`?"
    if path[-1] == "preset" and written in group and written != path[1]:
        return f"{quoted(written)} is a profile of this file: write its keys out here"
    return ""


def _in_place_of_moment(key: str, moments: Mapping[str, Any]) -> str:
    """Hint for a key of `at` that is no moment: of the network or of a direction, both ends of a change, or `+1s`."""
    if key in ProfileKeys.model_fields:
        return f"{quoted(key)} belongs next to `at`: {TOO_FAR}"
    if span := of_two_moments(key, moments[key]):
        return span
    if key.startswith("+"):
        return of_moment(key, [*moments][: [*moments].index(key)])
    if key in DirectionKeys.model_fields:
        inside = f"{key}: {shown(moments.get(key))}"
        return f"it belongs in a direction, such as both: {{{inside}}}, next to `at` or at a moment of it"
    return ""


def _along(tree: Any) -> Any:
    find = tree.get("find") if isinstance(tree, dict) else None
    return find.get("along") if isinstance(find, dict) else None


def _of_key(slip: Slip, beside: Any, along: Any = "") -> str:
    """Hint for a key that is not allowed at its place: a correlation, a direction next to a preset, a searched preset.

    `along` is the parameter of the file's search.
    """
    path, keys = slip.path, beside if isinstance(beside, dict) else {}
    if path[0] == "profiles" and path[-2:-1] == ("at",) and (found := _in_place_of_moment(str(path[-1]), keys)):
        return found
    if "correlation" in str(path[-1]) and "loss" not in {*path, *keys}:
        return f"remove it: {NO_CORRELATION}"
    if "correlation" in str(path[-1]):
        return correlated(keys.get("random") or keys.get("loss") or share_in(keys))
    is_direction = path[0] == "profiles" and len(path) == PROFILE_KEY and path[-1] in DIRECTIONS
    if is_direction and "preset" in keys:
        return beside_a_preset(keys)
    is_searched = path[0] == "profiles" and path[-1] == "preset" and isinstance(along, str) and "." in along
    return without_searched(str(keys["preset"]), along) if is_searched and keys.get("preset") in NETWORKS else ""


def _purpose(path: Path, slip: Slip, level: Level) -> str:
    """Purpose of a number that is written with a unit although it has none; both keys of `40 x 15kB`."""
    field = level.model.model_fields.get(str(path[-1])) if level.model else None
    written = level.written[path[-1]] if isinstance(level.written, dict) else None
    if path[-1] == "requests" and (both := count_and_size(written)):
        keys = f"`{shown(both)[1:-1]}`" if "size" in level.keys else shown(as_objects(written, {}))
        return f"did you mean {keys}?"
    has_unit = isinstance(written, str) and re.fullmatch(r"[0-9.]+ *(?!e[0-9])[A-Za-z%]{1,8}", written)
    if not field or not has_unit or not slip.mistake.hint.startswith("a whole number"):
        return ""
    return f"{path[-1]}: {field.description}; {slip.mistake.hint}"


def _meant(slip: Slip, root: type[BaseModel], tree: Any) -> Iterator[Path]:
    """Missing keys that a mistake next to them explains: another spelling, keys of another kind, two in one value."""
    level = levels(root, tree, slip.path[:-1])[-1]
    key = str(slip.path[-1])
    if (both := count_and_size(value_at(tree, slip.path))) and (key in both or synonym(key, level.keys) in both):
        yield from ((*slip.path[:-1], key) for key in both)
    elif not isinstance(slip.mistake, UnknownKey):
        return
    elif nowhere.of_unknown(slip.path, level) == nowhere.LIVE or of_files(
        slip.path, value_at(tree, slip.path), _around(level)
    ):
        yield from ((*slip.path[:-1], key) for key in level.keys)
    elif model := level.kind_as_key(str(slip.path[-1]), value_at(tree, slip.path)):
        yield from ((*slip.path[:-1], key) for key in (*level.keys, *model.model_fields))
    elif (
        of_other_kinds(str(slip.path[-1]), level)
        or _of_another_form(str(slip.path[-1]), level)
        or of_other_model(slip.path, level.written)
        or (slip.path[-2:-1] == ("rate",) and nearest(str(slip.path[-1]), DIRECTIONS))
    ):
        yield from ((*slip.path[:-1], key) for key in level.keys)
    elif near := nearest(str(slip.path[-1]), level.keys):
        yield (*slip.path[:-1], near)


def _of_unknown(path: Path, above: Sequence[Level]) -> str:
    """Hint for an unknown key; `above` are the levels from the file to the mapping that has the key."""
    key, level = str(path[-1]), above[-1]
    gone = nowhere.of_unknown(path, level)
    if respelt_key(key, level.keys) and not gone:
        return already(key, level)
    beside = _around(level)
    value = beside.get(key)
    if (
        found := of_condition(path[:-1], level, above[0].written)
        or of_tc(as_network(path), value)
        or of_other_model(path, beside)
        or of_files(path, value, beside)
        or of_other_tools(as_network(path), value, beside, above[-2:][0].written)
        or of_place(path, beside)
        or _of_count(path, value, beside)
    ):
        return found
    if found := gone or already(key, level) or of_group(path, above, value):
        return found
    if form(key) == "latency" and "delay" in level.keys and not {"delay", "burst", "limit"} & beside.keys():
        return f"did you mean `delay`? {ONE_WAY}"
    if found := of_session(path, value, level) or as_kind(key, value, level) or as_value(key, value, level):
        return found
    if (near := _of_another_form(key, level)) or ("kind" in beside and synonym(key, level.keys)):
        return near
    outer, dot, inner = key.partition(".")
    if dot and outer in level.keys and inner in level.below(outer).keys:
        return f"a dot joins no keys: write {_written((outer,), {inner: value}, level, beside)}"
    found = _of_slot(path, value, level) or of_other_kinds(key, level)
    found = found or _swallowed(path, above) or _entry(path, above, value)
    found = found or _by_value(key, value, level)
    found = found or ("" if level.meant_by(key) else _elsewhere(path, above))
    if found or respelt_key(key, level.keys) or level.meant_by(key):
        return found or _of_both_meanings(key, value, level)
    is_profile = path[0] == "profiles" and len(path) == PROFILE_KEY and not nearest(key, level.keys)
    listing = f"{listed(level.keys)}; a direction has {', '.join(DirectionKeys.model_fields)}" if is_profile else ""
    return _by_synonym(path, value, above) or listing or _of_every_form(level)


def _of_slot(path: Path, value: Any, level: Level) -> str:
    """Hint for a part of the name of a key of `slot`, such as `min` for `min_delay`; empty for others."""
    parts = containing(str(path[-1]), level.keys) if level.model is SlotKeys else []
    taking = [quoted(name) for name in parts if level.model and takes(level.model, name, value)]
    return f"did you mean {' or '.join(taking)}?" if taking else ""


def _of_count(path: Path, value: Any, beside: Mapping[Any, Any]) -> str:
    """Hint for a number of blocks under another name in `repeat`; empty for others."""
    if path[0] != "repeat" or form(str(path[-1])) not in COUNTS or not str(value).isdecimal():
        return ""
    if "min" in beside and "max" not in beside:
        return f"did you mean `max: {value}`? the number of blocks goes from `min` to `max`"
    if {"min", "max"} <= beside.keys():
        return "`min` and `max` are the numbers of blocks: remove it"
    if "budget" in beside and "min" not in beside:
        return f"did you mean `min: {value}`? the blocks that each condition gets first"
    exactly = "min: {0}, max: {0}" if beside.keys() - {path[-1]} else "repeat: {0}"
    return f"did you mean `{exactly.format(value)}`? exactly as many blocks"


def _of_every_form(level: Level) -> str:
    """The keys of all forms of the written kind; empty if it has one form."""
    if level.model is None or len(level.models) == 1:
        return ""
    alike = [model for model in level.models if kind_of(model) == kind_of(level.model)]
    return listed(list(dict.fromkeys(name for model in alike for name in model.model_fields))) if alike[1:] else ""


def _of_both_meanings(key: str, value: Any, level: Level) -> str:
    """Hint for a word for a key of this level, and for one directly below: `timeout` or `repeat: {budget}`."""
    first = synonym(key, level.keys)
    if not level.model or first not in level.model.model_fields or isinstance(value, dict):
        return ""
    purpose = str(level.model.model_fields[first].description).partition(";")[0]
    for other in synonyms(key):
        ways = [] if other in level.keys else level.homes(other)
        way = _likeliest(ways) if ways else ()
        if way[1:] in ((), (NAME,)) and way not in ((), (NAME,)):
            return f"did you mean `{first}`? {purpose}; or {_written(way, {other: value}, level, _around(level))}"
    return ""


def _by_synonym(path: Path, value: Any, above: Sequence[Level]) -> str:
    """Hint for another word for a key below this level or, from near the top of the file, anywhere.

    Groups that share no keys with others are not searched from elsewhere, and a key elsewhere must accept the value.
    """
    key, level = str(path[-1]), above[-1]
    is_near = path[0] not in GROUPS and len(path) <= PROFILE_KEY
    for each in dict.fromkeys([level, above[0]] if is_near else [level]):
        apart = {NAME} if path[0] in GROUPS else {*GROUPS} if each is not level else set()
        inner = [inner for way, inner in each.further() if not {*way} & apart]
        homes = list(dict.fromkeys(name for each_inner in inner for name in each_inner.keys))
        meant = ("" if nearest(key, level.keys) else respelt(key, homes)) or synonym(key, homes)
        meant = meant if each is level or _fits(meant, value, each) else ""
        if meant and each is level and len(_together(key, level, ways := level.homes(meant), level)) > 1:
            return _belongs(key, level, ways, level)
        if meant and _takes(reduce(Level.below, way := _likeliest(each.homes(meant)), each), meant, value):
            around = _around(each)
            if len(way) == 1 and isinstance(home := around.get(way[0]), dict) and meant in home:
                return f"did you mean `{meant}`? `{way[0]}` has one: change it to `{harmless(meant)}: {shown(value)}`"
            return f"did you mean `{meant}`? {_written(way, {meant: value}, each, around)}{_one_way({key: meant})}"
    return ""


def _fits(key: str, value: Any, start: Level) -> bool:
    """True if a key at its home below `start` accepts a value as it is."""
    home = reduce(Level.below, _likeliest(start.homes(key)), start) if key else start
    return home.model is not None and takes(home.model, key, value)


def _around(level: Level) -> dict[Any, Any]:
    return level.written if isinstance(level.written, dict) else {}


def _of_another_form(key: str, level: Level) -> str:
    """Hint for a key of another form of the written kind: its spelling, or that it belongs in `parts`."""
    written = _around(level)
    every = [name for model in level.models for name in model.model_fields]
    if not level.model or "kind" not in written or key in every:
        return ""
    for model in level.others:
        form = Level(model, written)
        if kind_of(model) != kind_of(level.model) or written.keys() & (set(level.keys) - set(form.keys)):
            continue
        own = [name for name in form.keys if name not in level.keys]
        if meant := respelt(key, own) or synonym(key, own) or respelt(synonym(key, every), own):
            return f"did you mean `{meant}`?"
        if key == "images" and (both := count_and_size(written[key])):
            every_part = f"`parts: {{images: {shown(written[key])}}}`"
            return (
                f"for a page of pictures alone write `{shown(both)[1:-1]}`, with scripts, fonts and styles {every_part}"
            )
        is_number = synonym(key, level.keys) and str(written.get(key)).isdecimal()
        if any(key in form.below(name).keys for name in own) and not is_number:
            return _belongs(key, level, form.homes(key), form)
    return ""


def _by_value(key: str, value: Any, level: Level) -> str:
    """Keys that accept the mapping written under an unknown key, such as the direction `from server` for `server`."""
    beside = _around(level)
    fitting = [
        name for name in level.keys
        if isinstance(value, dict) and value and name not in beside and all(map(level.below(name).knows, value))
    ]  # fmt: skip
    if "both" in fitting and set(DIRECTIONS) & beside.keys():
        fitting.remove("both")
    if not level.model or not 1 <= len(fitting) <= len(DIRECTIONS):
        return ""
    purposes = {name: str(level.model.model_fields[name].description) for name in fitting}
    sent = [name for name in fitting if f"from {key}" in purposes[name]]
    near = nearest(key, [*level.keys, *DirectionKeys.model_fields])
    if not sent and near and not level.below(near).is_of_one_value:
        return ""
    fitting = sent or fitting
    named = [f"{quoted(name)} ({purposes[name]})" for name in fitting]
    return f"did you mean {' or '.join(named)}?"


def _swallowed(path: Path, above: Sequence[Level]) -> str:
    """Hint for a mapping whose name is a key of a level above, or of the entry that it was read as."""
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    name, group = str(path[-2]), quoted(path[-3])
    if above[-1].has(name):
        return f"{quoted(name)} is read as the name of one of the {group}: is it indented too little?"
    for index, level in enumerate(above[:-2]):
        if name in level.keys:
            home = _next_to(path, index)
            return f"{quoted(name)} is read as the name of one of the {group}, and belongs {home}: {TOO_FAR}"
    return ""


def _entry(path: Path, above: Sequence[Level], value: Any) -> str:
    """Hint for a key that is the name of an entry: below a missing key, or next to the entry that contains it."""
    level = above[-1]
    if group := _group(path, level):
        return _below(group)
    if not isinstance(value, dict):
        return ""
    if len(above) < 3 or not above[-2].is_of_names:
        return ""
    if level.model and value.keys() <= set(level.keys):
        return f"as one more of the {quoted(path[-3])} it belongs next to {quoted(path[-2])}: {TOO_FAR}"
    return ""


def _group(path: Path, level: Level) -> str:
    """Key of this level under which another one belongs as an entry; empty without any."""
    value = level.written.get(path[-1]) if isinstance(level.written, dict) else None
    fitting = (group for group in level.names_expected() if (value or level.needs(group)))
    return next((group for group in fitting if isinstance(value, dict) and level.below(group).takes_entry(value)), "")


def _below(group: str) -> str:
    return f"as one of the {quoted(group)} it belongs below that key: is it indented too little?"


def _elsewhere(path: Path, above: Sequence[Level]) -> str:
    """Hint for a key of a level below, above or further away."""
    key = str(path[-1])
    direction = str(path[-2]) if len(path) > PROFILE_KEY else ""
    if key == "at" and direction in DIRECTIONS and (found := _at_in_direction(direction, _around(above[-1]))):
        return found
    if ways := above[-1].homes(key):
        return _belongs(key, above[-1], ways, above[-1])
    for index in reversed(range(len(above) - 1)):
        if key in above[index].keys:
            return f"{quoted(key)} belongs {_next_to(path, index)}: {TOO_FAR}"
    meant = respelt(key, above[0].keys) if len(above) > 1 and not above[-1].has(key) else ""
    meant = "" if path[0] in GROUPS and form(key) != form(meant) else meant
    outer = () if path[0] == "published" else reversed(above[:-1])
    homes = (_belongs(key, above[-1], ways, level) for level in outer if (ways := _homes_around(path, level)))
    if form(key) != form(meant) and (home := next(homes, "")):
        return home
    return f"did you mean `{meant}`? it belongs {_next_to(path, 0)}" if meant else ""
    return ""


def _homes_around(path: Path, level: Level) -> list[tuple[str, ...]]:
    """The homes of a key below a level around it, without those in groups that share no keys with others."""
    return [way for way in level.homes(str(path[-1])) if path[0] in GROUPS or not {*way} & {*GROUPS}]


def _at_in_direction(direction: str, written: Mapping[str, Any]) -> str:
    """Hint for `at` inside a direction: its place, with the direction at each moment; empty if that is too long."""
    changes = written["at"] if isinstance(written["at"], dict) else {}
    whole = {moment: {direction: keys} if _is_of_direction(keys) else keys for moment, keys in changes.items()}
    text = shown({"at": whole})[1:-1]
    where = "next to" if len(written) > 1 else "in place of"
    return f"did you mean `{text}`, {where} {quoted(direction)}?" if changes and "..." not in text else ""


def _is_of_direction(keys: Any) -> bool:
    return isinstance(keys, dict) and bool(keys) and keys.keys() <= DirectionKeys.model_fields.keys()


def _belongs(key: str, level: Level, ways: Sequence[tuple[str, ...]], start: Level) -> str:
    """Hint with the homes of a key on ways from `start`, and other misplaced keys of the same home."""
    beside = _around(level)
    homes = list(dict.fromkeys(way[-1] for way in ways if way[-1] != NAME))
    places = " or ".join([", ".join(map(quoted, homes[:-1])), quoted(homes[-1])] if homes[1:] else map(quoted, homes))
    way = _likeliest(ways, start, key, beside.get(key))
    if set(homes) == set(DIRECTIONS) and (written := [name for name in homes if name in beside]):
        having = [name for name in written if isinstance(beside[name], dict) and key in beside[name]]
        free = [name for name in ("both", "downlink", "uplink") if name not in having]
        if having and (not free or "both" in having or len(having) > 1):
            return f"{' and '.join(map(quoted, having))} {'has' if len(having) == 1 else 'have'} one: remove it"
        way = (free[1] if having else varied_by(key, {name: beside[name] for name in written}) or "both",)
    together, home = _together(key, level, ways, start), reduce(Level.below, way, start)
    entries = {meant: _fitting(beside[name], home, meant) for name, meant in together.items()}
    names = enumerated(map(quoted, together)) if len(together) > 1 else quoted(key)
    belongs = "belong" if len(together) > 1 else "belongs"
    text = _written(way, entries, start, beside) + _one_way(together)
    return f"{names} {belongs} in {places or 'an entry'}: {text}"


def _one_way(meant: Mapping[str, str]) -> str:
    """Note for a latency, which may be a round trip; `meant` has the keys that those of a file stand for."""
    return f"; {ONE_WAY}" if any(form(key) == "latency" and meant[key] == "delay" for key in meant) else ""


def _together(key: str, level: Level, ways: Sequence[tuple[str, ...]], start: Level) -> dict[str, str]:
    """The misplaced keys of a level that have the same homes as `key`, each with the key there that it stands for.

    A key that is right here, but follows a misplaced one, belongs with it in a home that is not written yet: such as
    the `loss` in lines below an empty `spells:`.
    """
    beside = level.written
    home = reduce(Level.below, way := _likeliest(ways, start, key, _around(level).get(key)), start)
    is_new = start is level and len(way) == 1 and isinstance(beside, dict) and not beside.get(way[0])
    found = dict[str, str]()
    for name, value in beside.items() if isinstance(beside, dict) else ():
        if name == key or (name not in level.keys and start.homes(name) == list(ways)):
            found[name] = name if home.has(name) else synonym(name, home.keys) or name
        elif name not in level.keys and (meant := synonym(name, home.keys)) and _is_clear(meant, value, home):
            found[name] = meant
        elif is_new and found and name in home.keys and name != way[0]:
            found[name] = name
    return found


def _is_clear(key: str, value: Any, home: Level) -> bool:
    """True unless a value is a number that could also be meant for another key than this one at home."""
    return not str(value).isdecimal() or (home.model is DirectionKeys and with_unit(key, value) != value)


def _fitting(value: Any, home: Level, key: str) -> Any:
    """Value if a key at home accepts it, at most with another unit; else the key's default if it is a word."""
    if home.model is DirectionKeys:
        value = (as_rate(value) if key == "rate" else "") or with_unit(key, value)
    if home.model is DirectionKeys and key in SWEPT and isinstance(value, list | dict):
        return _of_one_unit(key, value)
    if home.model and (better := _proposed(home.model, key, value)):
        return better
    if home.model is None or _takes(home, key, value):
        return value
    field = home.model.model_fields.get(key)
    more = field.json_schema_extra if field else None
    default = more.get("default") if isinstance(more, dict) else None
    return default if isinstance(default, str) and default.isalpha() else None


def _proposed(model: type[BaseModel], key: str, value: Any) -> str:
    """The value that a key's own hint proposes for a text, such as `30min` for `30 minutes`; empty without one."""
    try:
        model.model_validate({key: value})
    except ValidationError as error:
        hints = [slip.mistake.hint for slip in from_pydantic(error, model) if slip.path == (key,)]
        found = PROPOSAL.match(hints[0]) if hints and isinstance(value, str) else None
        return found[1] if found and takes(model, key, found[1]) else ""
    return ""


def _of_one_unit(key: str, values: Any) -> Any:
    """Values of a sweep, those of a list with a unit: of several numbers without one, that of the others."""
    if isinstance(values, dict):
        return values if values.keys() <= RANGE else None
    texts = [with_unit(key, each) for each in values]
    units = {each.lstrip("0123456789.") for each in texts if isinstance(each, str)} - {""}
    unit = units.pop() if len(units) == 1 else ""
    return [f"{each}{unit}" if isinstance(each, str) and each[-1:].isdecimal() else each for each in texts]


def _takes(home: Level, key: str, value: Any) -> bool:
    """True if a key at home accepts the value, or would with another unit."""
    is_quantity = isinstance(value, str) and re.fullmatch(r"[0-9.,]+ *[^0-9.,-]*", value) is not None
    return home.model is None or is_quantity or takes(home.model, key, value)


def _likeliest(
    ways: Sequence[tuple[str, ...]], start: Level | None = None, key: str = "", value: Any = None
) -> tuple[str, ...]:
    """The first of the preferred ways from `start` whose end accepts the key with its value, if there is one."""
    preferred = [each for each in ways if set(each) & set(LIKELIEST)] or ways
    ends = ((each, reduce(Level.below, each, start).model) for each in preferred) if start and value else ()
    return next((each for each, model in ends if model and takes(model, key, value)), preferred[0])


def _written(
    way: Sequence[str], entries: Mapping[str, Any], start: Level, around: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """YAML for entries on a way from `start`: `repeat: {budget: 15min}`; dots stand for other keys there."""
    home = reduce(Level.below, way, start)
    needed = {} if NAME in way else {name: None for name in home.keys if home.needs(name)}
    inside = around.get(way[0]) if len(way) == 1 else None
    own = _key_of(inside, home, entries) if isinstance(inside, str) else ""
    known = ({own: inside} if own else {}) | dict(entries)
    known |= of_kind(known) if home.model is QueueKeys and not isinstance(inside, dict) else {}
    every = known | needed | known
    text = ", ".join(f"{harmless(key)}: {shown(value)}" for key, value in every.items())
    if isinstance(inside, dict) and inside:
        text += ", ..."
    note = f"; for at most {inside} blocks write `max: {inside}`" if own == "min" else ""
    if home.model is DirectionKeys and (more := lacking({**(inside if isinstance(inside, dict) else {}), **every})):
        example, needing = shown(more)[1:-1], quoted(next(iter(entries)))
        text, note = f"{example}, {text}", f"; {quoted(example)} is an example of what {needing} needs"
    for name in reversed(way):
        text = f"{name}: {{{text}}}"
    return text + note


def _key_of(value: str, home: Level, others: Mapping[str, Any]) -> str:
    """Key that accepts the value written in place of a mapping: `min` for `repeat: 9`."""
    fitting = (name for name in home.keys if name not in others and home.model and takes(home.model, name, value))
    return next(fitting, "")


def _next_to(path: Path, index: int) -> str:
    """Description of a key's home: the level of a key on the path."""
    return f"{'at the top of the file, ' if index == 0 else ''}next to {quoted(path[index])}"


def _further_down(path: Path, tree: Any) -> Iterator[Path]:
    """Places where a key that is missing at the top of the file was read as the name of an entry."""
    for group, entries in tree.items() if len(path) == 1 and isinstance(tree, dict) else ():
        if isinstance(entries, dict) and path[0] in entries:
            yield group, path[0]


def _of_mapping(path: Path, written: Any) -> str:
    """Hint for a mapping that is written in place of a protocol."""
    if path[:1] != ("protocols",) or not isinstance(written, dict) or "protocol" not in written:
        return ""
    if len(written) == 1:
        return f"did you mean `{harmless(written['protocol'])}`?"
    return f"a protocol with overrides is an arm: {of_entries('arms', [written]).partition(': ')[2]}"
