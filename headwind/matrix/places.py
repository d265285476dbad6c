"""Hints for what has its own place in a matrix: servers, protocols, names of networks and workloads, sessions, ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwind.format import as_written
from headwind.matrix.keys import respelt_key
from headwind.matrix.levels import Level, Path
from headwind.matrix.shapes import PROTOCOLS, YES, YES_OR_NO, count_and_size, shown
from headwind.matrix.spelling import form, respelt, synonym
from headwind.matrix.units import Mistake, quoted, seconds

SESSIONS = ("new", "resumed", "early")  # of workloads of kind ttfb
END_OF_CHANGE = "end it at a later moment of `at`"
ENTRY_KEY = 3  # steps to a key of an entry: the group, the name, the key
_REFERENCES = {  # groups of names by keys that would name entries
    **dict.fromkeys(("profile", "profiles", "network", "networks"), "profiles"),
    **dict.fromkeys(("workload", "workloads"), "workloads"),
}


def of_place(path: Path, beside: Mapping[str, Any]) -> str:
    """Hint for what is written elsewhere: a server in a workload, a protocol or a network of it, an end in `at`."""
    key, group, value = str(path[-1]), path[0], beside.get(str(path[-1]))
    if key == "server" and len(path) > 1 and group in ("profiles", "workloads") and not isinstance(value, dict):
        name = value if isinstance(value, str) else "NAME"
        return f"arms name their server: arms: {{h3-{name}: {{protocol: h3, server: {name}}}}}"
    if group in ("conditions", "smoke") and form(key) in ("protocol", "arm"):
        return "every arm runs in each condition: remove it; other arms for a condition are another matrix"
    word = form(key).removesuffix(" only")
    if (spoken := respelt(word, PROTOCOLS) or synonym(word, PROTOCOLS)) and group != "arms" and str(value) in YES_OR_NO:
        example = f"[{spoken}]" if word != form(key) else f"[h1, {spoken}]"
        return f"protocols have a key at the top of the file, such as protocols: {example}"
    if key in ("for", "duration", "until") and "at" in path:
        return f"{END_OF_CHANGE}: `{_end(str(path[path.index('at') + 1]), key, value)}: {{}}`"
    listed = value if isinstance(value, list) else [value]
    names = [name for name in listed if isinstance(name, str)]
    return _of_reference(path, names) if names and len(names) == len(listed) else ""


def _end(moment: str, key: str, value: Any) -> str:
    """The moment at which a change ends that begins at `moment` and has `for`, `duration` or `until` as a key."""
    try:
        return as_written("delay_s", seconds(value) + (0.0 if key == "until" else seconds(moment)))
    except Mistake:
        return "LATER"


def _of_reference(path: Path, names: list[str]) -> str:
    """Hint for a protocol in a workload, and for the names of networks or of workloads in another entry."""
    key = str(path[-1])
    if form(key) == "protocol" and path[0] == "workloads" and len(path) == ENTRY_KEY and {*names} <= {*PROTOCOLS}:
        return (
            f"did you mean `protocols`? it belongs at the top of the file, such as protocols: {shown(names)}: "
            "every workload runs over each of them"
        )
    if (group := _REFERENCES.get(form(key), path[0])) == path[0] or len(path) <= 2:
        return ""
    pairs = {group: names} if path[0] == "arms" else {group: names, path[0]: [path[1]]}
    reason = "every arm runs in each condition" if path[0] == "arms" else "profiles and workloads meet in `conditions`"
    return f"{reason}: conditions: [{shown(pairs)}]" if path[0] in ("arms", *_REFERENCES.values()) else ""


def of_session(path: Path, value: Any, level: Level) -> str:
    """Hint for a key that is the name of a session, such as `0-rtt: true`."""
    session = synonym(str(path[-1]), SESSIONS)
    if form(str(path[-1])) == "session" and path[0] != "arms" and "session" not in level.keys:
        word = value if value in SESSIONS else synonym(str(value), SESSIONS) or "resumed"
        meant = f"{{kind: ttfb, session: {word}}}"
        home = "" if path[0] == "workloads" else "workloads: {NAME: "
        return f"sessions are measured by kind ttfb: {home}{meant}{'}' if home else ''}"
    if path[0] not in ("workloads", "arms") or not session or value in ("false", "no", "off"):
        return ""
    if path[0] == "arms" or (level.model and "session" in level.model.model_fields):
        return f"did you mean `session: {session}`?"
    return f"sessions are measured by kind ttfb: {{kind: ttfb, session: {session}}}"


def as_value(key: str, value: Any, level: Level) -> str:
    """Hint for a word that is the value of a key: `bbr: true` for `congestion: bbr`; and for `objects: 30 x 4kB`."""
    is_count = synonym(key, level.keys) == "requests" and key != "images"  # a page has other parts as well
    if is_count and (both := count_and_size(value)) and both.keys() <= {*level.keys}:
        return f"did you mean {quoted(shown(both)[1:-1])}?"
    names = level.keys_of(key) if value in YES else []
    return f"did you mean `{names[0]}: {key}`?" if names else ""


def already(key: str, level: Level) -> str:
    """Hint for a key that stands for another one of its level, which is written as well."""
    meant = respelt_key(key, level.keys) or synonym(key, level.keys)
    if not isinstance(level.written, dict) or meant not in level.written:
        return ""
    return f"did you mean {quoted(meant)}? it is written as well: keep one of the two"
