"""Hints for unknown keys of groups that share no keys with others: servers, a search, published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwind.arm import Protocol
from headwind.matrix.find import ends
from headwind.matrix.keys import respelt_key
from headwind.matrix.levels import Level, Path
from headwind.matrix.link_keys import DirectionKeys
from headwind.matrix.shapes import PROTOCOLS, YES_OR_NO, shown
from headwind.matrix.spelling import form, synonym
from headwind.matrix.units import quoted

GROUPS = ("find", "published", "servers")
ROW = 3  # steps before the keys of a row, whose network is written as in a profile: as many as before its name
NO_SETTING = "your own server has no such setting: its `command` or `env` can have one"
SETTINGS = {"workers", "server_delay", "settings", *DirectionKeys.model_fields}  # of the lab's servers, of networks
_COUNTS = {"step", "point", "count", "number", "num", "n", "value"}  # of what a search measures


def as_network(path: Path) -> Path:
    """The path of a key in a row of an article as one in a profile; other paths stay."""
    is_in_row = path[0] == "published" and path[2:3] == ("times",) and len(path) > ROW + 1
    return ("profiles", *path[ROW:]) if is_in_row else path


def of_group(path: Path, above: Sequence[Level], value: Any) -> str:
    """Hint for an unknown key of one of these groups; `above` are the levels from the file to the mapping with it."""
    key = str(path[-1])
    match path[0]:
        case "servers" if len(path) > 2:
            return _of_server(path, above, value)
        case "find":
            if found := ends(key, value):
                return f"did you mean `from: {found[0]}, to: {found[1]}`?"
            return "a search chooses its values: `within` is how exact the answer is" if form(key) in _COUNTS else ""
        case "published":
            return _of_row(key, value, above[0].written) if len(path) == ROW + 2 else ""
    return ""


def _of_row(key: str, value: Any, tree: Mapping[str, Any]) -> str:
    """Hint for the name of a profile in a row of an article, and for a transport in place of a protocol."""
    profiles = tree.get("profiles")
    if form(key) in ("profile", "network") and isinstance(profiles, dict) and isinstance(value, str):
        network = profiles.get(value)
        return f"write the network out here: {shown(network)[1:-1]}" if isinstance(network, dict) and network else (
            "remove it: the network is written out here, and a clean one has no keys")  # fmt: skip
    over = [each for each in PROTOCOLS if Protocol(each).transport == key.casefold()]
    return f"did you mean {quoted(over[-1])}? it runs over {key.upper()}" if over else ""


def _of_server(path: Path, above: Sequence[Level], value: Any) -> str:
    """Hint for a key of another group in a server, and for a word under another key than its own."""
    key, level, top = str(path[-1]), above[-1], above[0]
    if respelt_key(key, level.keys) or synonym(key, level.keys) or not isinstance(level.written, dict):
        return ""
    names = level.keys_of(value) if isinstance(value, str) and value not in YES_OR_NO else []
    if names and names[0] not in level.written:
        return f"did you mean `{names[0]}: {value}`?"
    if key == "congestion" and isinstance(top.written, dict):
        return (
            f"TCP's is that of an arm: arms: {shown(_with_congestion(str(path[1]), value, top.written))}; {NO_SETTING}"
        )
    return NO_SETTING if key in SETTINGS else ""


def _with_congestion(name: str, value: Any, tree: Mapping[str, Any]) -> dict[str, Any]:
    """The arm over TCP that names a server, with a congestion control."""
    arms = tree.get("arms")
    own = {arm: keys for arm, keys in arms.items() if isinstance(keys, dict)} if isinstance(arms, dict) else {}
    over_tcp = [each for each in PROTOCOLS if Protocol(each).transport == "tcp"]
    found = {arm: keys for arm, keys in own.items()
             if keys.get("server") == name and keys.get("protocol") in over_tcp}  # fmt: skip
    arm, keys = next(iter(found.items()), (f"h2-{name}", {"protocol": "h2", "server": name}))
    return {arm: {**keys, "congestion": value}}
