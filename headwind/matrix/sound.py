"""Sound copies of a matrix with mistakes, so that mistakes in the rest of it are found as well.

Each copy has other values in place of the wrong ones. What is wrong in both copies is wrong whatever the replaced
values should have been: a jitter needs a delay in a copy without the misspelt delay, and needs none in the other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwind.arm import Protocol
from headwind.matrix.levels import Path
from headwind.matrix.mistakes import MissingKey, Slip, UnknownKey, value_at
from headwind.matrix.sweep import DIRECTIONS

IN_DIRECTION = 4  # steps to a key of a direction: `profiles`, the name, the direction, the key
UNREAD = ("budget", "margin", "confidence")  # keys of `repeat` on which no other check depends
FILLED = {  # keys of a direction that other keys need or limit, with values that allow them
    "delay": "200ms", "jitter": "1ms", "distribution": "normal", "loss": "1%", "rate": "10mbit", "queue": "1000",
    "limit": "2000",
}  # fmt: skip
NEEDED = {"requests": ("10000", "10000"), "connections": ("1", "64")}  # of a workload, for both copies
SERVER = {"image": "image", "protocols": [protocol.value for protocol in Protocol]}


@dataclass(frozen=True, slots=True)
class Sound:
    """Two copies of a tree without its wrong values.

    `removed` are keys at the top of the file that both copies lack.
    """

    copies: tuple[dict[str, Any], dict[str, Any]]
    replaced: frozenset[Path]
    removed: frozenset[str]

    @classmethod
    def of(cls, slips: Sequence[Slip], tree: Mapping[str, Any], *, whole_profiles: bool = False) -> Sound:
        """Replace the values that have a slip; a key of the file without replacement is removed.

        `whole_profiles`: replace a profile with a slip as a whole, because what is left of it may be a mistake.
        """
        places = [(_place(slip, tree), slip) for slip in slips if slip.path]
        if whole_profiles:
            places = [(place[:2] if place[:1] == ("profiles",) else place, slip) for place, slip in places]
        removed = frozenset(str(slip.path[0]) for place, slip in places if not place)
        kept = [(place, slip) for place, slip in places if place and place[0] not in removed]
        kept.sort(key=lambda each: -len(each[0]))  # the keys of an entry before the entry
        rest = {key: value for key, value in tree.items() if key not in removed}
        copies = copy.deepcopy(rest), copy.deepcopy(rest)
        for place, slip in kept:
            for each, is_filled in zip(copies, (False, True), strict=True):
                _replace(each, place, slip, is_filled=is_filled)
        return cls(copies, frozenset(place for place, _ in kept), removed)

    @property
    def wrong(self) -> set[str]:
        """Keys whose checks are skipped, since they would judge a replaced value in the same way in both copies."""
        groups = {place[0] for place in self.replaced}
        unjudged = {"published"} if groups & {"profiles", "workloads"} else set[str]()
        unjudged |= {"overrides"} if groups & {"arms", "workloads"} else set()
        unjudged |= {"judge"} if "workloads" in groups else set()  # its kind may be wrong, and so its metrics
        return unjudged | self.removed | ({"find"} if "compare" in groups else set())

    def has(self, path: Path) -> bool:
        """True if the value at a path is the file's own."""
        return not any(path[: len(place)] == place for place in self.replaced)


def _place(slip: Slip, tree: Any) -> Path:
    """Path of the value to replace; empty if the whole key of the file is removed."""
    path, group = slip.path, slip.path[0]
    if len(path) < 2 or (len(path) == 2 and slip.at_key) or not isinstance(tree.get(group), dict | list):
        return ()
    match group:
        case "profiles":
            if path[2:3] == ("at",):
                return path[:3]
            is_key = len(path) >= IN_DIRECTION and isinstance(value_at(tree, path[: IN_DIRECTION - 1]), dict)
            return path[:IN_DIRECTION] if is_key else path[:2]
        case "arms":
            return path[:3] if isinstance(value_at(tree, path[:2]), dict) else path[:2]
        case "workloads" if len(path) > 2 and path[2] not in ("kind", "paths"):
            return path[:3] if isinstance(value_at(tree, path[:2]), dict) else ()
        case "servers" if len(path) > 2 and value_at(tree, (*path[:2], "image")):
            return path[:3]
        case "servers" | "compare":
            return path[:2]
        case "repeat" if path[1] in UNREAD:
            return path[:2]
    return ()


def _replace(tree: dict[str, Any], place: Path, slip: Slip, *, is_filled: bool) -> None:
    *above, last = place
    home = value_at(tree, above)
    if home is None:
        return
    if len(place) == 2:
        home[last] = _entry(str(place[0]), str(last), is_filled=is_filled)
        if home[last] is None:
            del home[last]
        return
    home.pop(last, None)
    if place[2:] == ("at",):
        home[last] = {}
    if place[0] == "arms" and last in ("protocol", "congestion"):  # either may be the one that was not meant
        home["protocol"] = str(place[1]).partition("-")[0]
    elif place[0] == "servers":
        home |= {last: SERVER[str(last)]} if last in SERVER else {}
        if is_filled and (last == "contract" or isinstance(slip.mistake, UnknownKey)):
            home.setdefault("protocols", SERVER["protocols"])  # it may have been what implies them
    elif place[0] == "workloads":
        home |= {last: NEEDED[str(last)][is_filled]} if last in NEEDED else {}
    elif place[0] == "profiles" and is_filled and place[2] in DIRECTIONS:
        is_lacking = isinstance(slip.mistake, UnknownKey | MissingKey)
        key = "rate" if last == "trace" else str(last)  # a queue needs either
        _fill(home, FILLED if is_lacking else [key], _beside(tree, above))


def _entry(group: str, name: str, *, is_filled: bool) -> Any:
    """A sound entry of a group, or a pair to compare that is none; None for a key that may be left out."""
    match group:
        case "profiles":
            return {"both": {key: FILLED[key] for key in ("delay", "rate")}} if is_filled else {}
        case "arms":
            return {"protocol": name.partition("-")[0]}
        case "servers":
            return SERVER
        case "compare":
            return []
    return None


def _beside(tree: dict[str, Any], above: Sequence[str | int]) -> set[str]:
    """Keys of the directions that meet this one."""
    *profile, direction = above
    meeting = DIRECTIONS if direction == "both" else ("both",)
    directions = [value_at(tree, (*profile, each)) for each in meeting if each != direction]
    return {key for each in directions if isinstance(each, dict) for key in each}


def _fill(home: dict[str, Any], keys: Iterable[str], taken: set[str]) -> None:
    for key in keys:
        if key in FILLED and key not in taken:
            home.setdefault(key, FILLED[key])
