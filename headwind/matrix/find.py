"""The key `find` of matrix.yaml: a search for the value of a network parameter at which the winner changes.

A search is a sweep of which only a few values are measured: this module writes its values into the single profile of
the file, in the format of headwind/matrix/sweep.py. Steps are half of the requested width, so that a value that is too
close to call may lie within the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any

from headwind.arm import Arm
from headwind.matrix.mistakes import Slip, unknown
from headwind.matrix.spelling import form, nearest, respelt, synonym
from headwind.matrix.sweep import DIRECTIONS, MOST_STEPS, SWEPT, Expanded, not_above, spaced
from headwind.matrix.sweep import expand as sweeps
from headwind.matrix.units import Mistake, choose, quoted, scalar
from headwind.matrix.values import Written
from headwind.model import STEPS_WITHIN, Condition, Search

KEYS = ("crossover", "along", "from", "to", "within")
NEEDED = KEYS[:4]
EXAMPLE = "{crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}"
_RANGES = {"range", "between", "span", "value", "interval", "bound", "limit"}  # of both ends of a search
ALONG = [f"{direction}.{key}" for direction in DIRECTIONS for key in SWEPT]
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "crossover": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2, "uniqueItems": True,
                      "description": "candidate and baseline, by the names of their arms"},
        "along": {"enum": ALONG, "description": "network parameter that is varied"},
        "from": {"type": "string", "description": "lowest value"},
        "to": {"type": "string", "description": "highest value"},
        "within": {"type": "string", "description": "maximum width of the answer; default: a tenth of the range"},
    },
    "required": list(NEEDED),
    "additionalProperties": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search with its values in SI units."""

    crossover: tuple[str, str]
    along: str
    values: tuple[float, ...]

    def to_model(self, arms: Mapping[str, Arm], conditions: tuple[Condition, ...]) -> Search:
        """Convert to the model; `conditions` are those of the values, in their order."""
        new, base = (arms[name] for name in self.crossover)
        points = zip(self.values, (condition.id for condition in conditions), strict=True)
        return Search(new, base, self.along, tuple(points))


def _as_it_is(value: Any) -> Any:
    return value


WantedKey = Annotated[Wanted | None, Written(_as_it_is, _SCHEMA)]


def as_sweep(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[Slip]]:
    """The tree with the search's values in its profile and a Wanted under `find`, and the mistakes found."""
    if "find" not in tree:
        return dict(tree), []
    rest = {name: value for name, value in tree.items() if name != "find"}
    written = tree["find"]
    if not isinstance(written, dict):
        return rest, [Slip(("find",), Mistake("this must be a mapping of keys", f"such as {EXAMPLE}"))]
    wrong_pair = list(_wrong_pair(written))
    slips = [*_wrong_keys(written), *wrong_pair, *_wrong_surroundings(tree)]
    wanted = None
    try:
        wanted = _wanted(written)
    except _Wrong as wrong:
        slips += wrong.slips
    if wanted is None or slips:
        return rest if wanted is None or wrong_pair or "crossover" not in written else {**rest, "find": wanted}, slips
    profiles = tree.get("profiles")
    for name, profile in profiles.items() if isinstance(profiles, dict) else ():
        direction, _, key = wanted.along.partition(".")
        if taken := _taken(profile, direction, key):
            mistake = Mistake(f"the search sets {quoted(key)}", "remove it here")
            return rest, [Slip(("profiles", name, *taken), mistake, at_key=True)]
        swept = {"from": written["from"], "to": written["to"], "steps": str(len(wanted.values))}
        rest["profiles"] = {name: _with(profile, direction, key, swept)}
    return {**rest, "find": wanted}, []


def _with(profile: Any, direction: str, key: str, swept: Mapping[str, str]) -> Any:
    """Profile with these values under a key; unchanged if it or its direction is no mapping: that is rejected later."""
    own = profile.get(direction, {}) if isinstance(profile, dict) else None
    return {**profile, direction: {**own, key: swept}} if isinstance(own, dict) else profile


def expand(tree: Mapping[str, Any]) -> Expanded:
    """Expand searches and sweeps: in the result every profile is one network."""
    searched, slips = as_sweep(tree)
    expanded = sweeps(searched)
    expanded.slips += slips
    return expanded


class _Wrong(Exception):
    """Mistakes in the values of a search."""

    def __init__(self, slips: list[Slip]) -> None:
        super().__init__()
        self.slips = slips


def ends(key: str, value: Any) -> list[str]:
    """The ends of `range: [0%, 10%]` and `between: 0% - 10%`; empty for other keys."""
    words = re.split(r"\s*(?:-|\bto\b|\.\.+|,)\s*", value) if isinstance(value, str) else value
    is_range = form(key) in _RANGES and isinstance(words, list) and len(words) == 2
    return list(words) if is_range and all(isinstance(word, str) for word in words) else []


def _wrong_keys(written: Mapping[str, Any]) -> Iterator[Slip]:
    for name in written:
        if name not in KEYS:
            yield Slip(("find", name), unknown(name, list(KEYS)), at_key=True)
    meant = {nearest(name, list(KEYS)) for name in written}
    meant |= {"from", "to"} if any(ends(name, value) for name, value in written.items()) else set()
    for name in NEEDED:
        if name not in written and name not in meant:
            yield Slip(("find",), Mistake(f"`{name}` is missing", f"such as {EXAMPLE}"), at_key=True)


def _wrong_pair(written: Mapping[str, Any]) -> Iterator[Slip]:
    pair = written.get("crossover")
    if pair is None:
        return
    good = isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
    if not good or pair[0] == pair[1]:
        words = re.split(r"[\s,/]+(?:vs\.?\s+)?", pair) if isinstance(pair, str) else []
        is_pair = len({*words}) == len(words) == 2
        hint = f"did you mean [{', '.join(words)}]?" if is_pair else "[candidate, baseline], such as [h3, h2]"
        yield Slip(("find", "crossover"), Mistake("a crossover is of two different arms", hint))


def _wrong_surroundings(tree: Mapping[str, Any]) -> Iterator[Slip]:
    """Mistakes in other keys: a search allows one network, one workload and any number of blocks."""
    for name, what in (("profiles", "profile"), ("workloads", "workload")):
        if isinstance(tree.get(name), dict) and len(tree[name]) > 1:
            yield Slip((name,), Mistake(f"a search has one {what}", f"this file has {len(tree[name])}"), at_key=True)
    for name in ("conditions", "smoke", "selfcheck"):
        if name in tree:
            yield Slip((name,), Mistake(f"a search has no `{name}`", "its values are its conditions"), at_key=True)
    unused = {
        "min": "its values get blocks where they are needed: remove it",
        "margin": "it looks for the value at which the winner changes, by however little: remove it",
    }
    for name, hint in unused.items() if isinstance(tree.get("repeat"), dict) else ():
        if name in tree["repeat"]:
            yield Slip(("repeat", name), Mistake(f"a search has no `{name}`", hint), at_key=True)
    if isinstance(tree.get("repeat"), str):
        mistake = Mistake("a search determines the number of blocks", "set the maximum per value, such as {max: 60}")
        yield Slip(("repeat",), mistake)


def _parameter(value: Any) -> str:
    """Parse `downlink.loss`. Raises Mistake, with all directions for a parameter without one."""
    text = scalar(value, "`downlink.loss`")
    if text in ALONG:
        return text
    words = re.split(r"[.\s/]+", text, maxsplit=1)
    sides = [side for word in words if (side := respelt(word, DIRECTIONS) or synonym(word, DIRECTIONS))]
    keys = [key for word in words if (key := respelt(word, list(SWEPT)) or synonym(word, list(SWEPT)))]
    if len(keys) == 1 and len(sides) == 1:
        raise Mistake(f"{quoted(text)} is not a network parameter", f"did you mean `{sides[0]}.{keys[0]}`?")
    if len(keys) == 1:
        ways = [f"`{direction}.{keys[0]}`" for direction in ("downlink", "uplink", "both")]
        raise Mistake(f"{quoted(text)} has no direction", f"did you mean {ways[0]}, {ways[1]} or {ways[2]}?")
    return choose(text, ALONG, "a network parameter")


def _wanted(written: Mapping[str, Any]) -> Wanted:
    """Parse a search. Raises _Wrong if its values are unreadable or cannot be searched."""
    try:
        along = _parameter(written.get("along"))
    except Mistake as mistake:
        raise _Wrong([Slip(("find", "along"), mistake)] if "along" in written else []) from None
    unit, slips, found = SWEPT[along.partition(".")[2]], list[Slip](), dict[str, Any]()
    for name in ("from", "to", "within"):
        try:
            if name in written:
                found[name] = unit.parse(written[name])
        except Mistake as mistake:
            slips.append(Slip(("find", name), mistake))
    if slips or not {"from", "to"} <= found.keys():
        raise _Wrong(slips)
    span = found["to"] - found["from"]
    if span <= 0:
        raise _Wrong([Slip(("find", "to"), not_above(written["from"], written["to"]))])
    within = found.get("within", span / 10)
    if not 0 < within < span:
        message = f"{quoted(written['within'])} is not between 0 and the whole range"
        least = f"at least a {(MOST_STEPS - 1) // STEPS_WITHIN}th of it"
        hint = least if within <= 0 else "less than the whole range: a tenth of it without `within`"
        raise _Wrong([Slip(("find", "within"), Mistake(message, hint))])
    steps = ceil(span * STEPS_WITHIN / within) + 1
    if steps > MOST_STEPS:
        message = f"{quoted(written['within'])} would take {steps} values; at most {MOST_STEPS} are allowed"
        hint = f"at least a {(MOST_STEPS - 1) // STEPS_WITHIN}th of the range; a second search can look closer"
        raise _Wrong([Slip(("find", "within"), Mistake(message, hint))])
    pair = written.get("crossover")
    names = (pair[0], pair[1]) if isinstance(pair, list) and len(pair) == 2 else ("", "")
    try:
        texts = spaced(unit, written["from"], written["to"], steps)
    except Mistake as mistake:
        raise _Wrong([Slip(("find", "within" if "within" in written else "to"), mistake)]) from None
    return Wanted(names, along, tuple(float(unit.parse(text)) for text in texts))


def searched_slips(
    wanted: Wanted | None, arms: Sequence[str], compare: Sequence[Sequence[str]] | None
) -> Iterator[Slip]:
    """Mistakes of searched arms that the file does not have, or does not compare."""
    if wanted is None:
        return
    wrong = False
    for index, name in enumerate(wanted.crossover):
        try:
            choose(name, list(arms), "one of the arms of this file")
        except Mistake as mistake:
            wrong = True
            yield Slip(("find", "crossover", index), mistake)
    if not wrong and compare is not None and not any(set(pair) == set(wanted.crossover) for pair in compare):
        left_out = Mistake("`compare` leaves this pair out", f"add [{', '.join(wanted.crossover)}]")
        yield Slip(("find", "crossover"), left_out)


def _taken(profile: Any, direction: str, key: str) -> tuple[str, ...] | None:
    """Path of a value that the profile already has for the searched parameter; None without one."""
    if not isinstance(profile, dict):
        return None
    if "preset" in profile:
        return ("preset",)
    meeting = DIRECTIONS if direction == "both" else (direction, "both")
    return next(((each, key) for each in meeting if isinstance(profile.get(each), dict) and key in profile[each]), None)
