"""Repairs misspelt keys of a matrix, so that mistakes below them are found as well."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from headwind.matrix import nowhere
from headwind.matrix.concepts import of_bursts
from headwind.matrix.keys import respelt_key
from headwind.matrix.kind_hints import as_path
from headwind.matrix.levels import Level, Path, kind_of, levels
from headwind.matrix.link_keys import DirectionKeys
from headwind.matrix.mistakes import Slip, UnknownKey
from headwind.matrix.servers import OF_SERVERS
from headwind.matrix.shapes import YES, as_objects, count_and_size, is_objects
from headwind.matrix.spelt_out import as_rate, names_directions
from headwind.matrix.sweep import DIRECTIONS
from headwind.matrix.units import with_unit


@dataclass(slots=True)
class Repair:
    """The repaired tree, the place of each repaired key in the file, and the mistake there."""

    tree: dict[str, Any]
    places: dict[Path, Path] = field(default_factory=dict)
    repaired: list[Slip] = field(default_factory=list)

    @classmethod
    def of(cls, slips: Sequence[Slip], root: type[BaseModel], tree: dict[str, Any]) -> Repair:
        """Rename keys that are misspelt or synonyms, and give workloads the kind that has their key."""
        found = cls(copy.deepcopy(tree))
        for slip in sorted(slips, key=lambda slip: len(slip.path)):
            if isinstance(slip.mistake, UnknownKey) and found._repair(slip.path, root):
                found.repaired.append(slip)
        return found

    def _repair(self, path: Path, root: type[BaseModel]) -> bool:
        *above, key = path
        level = levels(root, self.tree, above)[-1]
        if not isinstance(level.written, dict) or key not in level.written:
            return False
        if above[-1:] == ["both"] and names_directions(level.written):
            return False  # the hint has both directions
        is_of_server = above[:1] == ["arms"] and key in OF_SERVERS  # the hint has the server
        if is_of_server or nowhere.of_unknown(path, level) or (above[-1:] == ["loss"] and of_bursts(level.written)):
            return False
        if model := level.kind_as_key(str(key), level.written[str(key)]):
            return self._repair_kind_as_key(path, level, model)
        right = respelt_key(str(key), level.keys)
        if not right and level.others and "kind" not in level.written and self._repair_kind(path, level):
            return True
        right = right or level.meant_by(str(key))
        if not right or right in level.written or count_and_size(level.written[str(key)]):
            return False
        if isinstance(level.written[str(key)], str) and level.below(right).is_of_names:
            return False  # `server: caddy` is no misspelt `servers`, which has entries
        is_other_word = not respelt_key(str(key), level.keys)  # its hint has the value as well
        is_name = above[:1] == ["published"] and right == "preset"  # of a profile
        is_rate = right in DIRECTIONS and (as_rate(value := level.written[str(key)]) or value in YES)
        if is_other_word and (is_name or is_rate):
            return False
        value = level.written.pop(str(key))
        level.written[right] = with_unit(right, value) if is_other_word and level.model is DirectionKeys else value
        self.places[*above, right] = path
        return True

    def _repair_kind_as_key(self, path: Path, level: Level, model: type[BaseModel]) -> bool:
        """Move the keys below the name of a kind next to it, if none is missing."""
        *above, key = path
        inside = level.written[str(key)]
        own = {name: each for name, each in inside.items() if name in model.model_fields} | {"kind": key}
        if any(field.is_required() and name not in own for name, field in model.model_fields.items()):
            return False
        del level.written[str(key)]
        level.written.update(own)
        self.places |= {(*above, name): (*path, name) for name in inside} | {(*above, "kind"): path}
        return True

    def _repair_kind(self, path: Path, level: Level) -> bool:
        """Give a workload the kind that has the key."""
        *above, key = path
        meant: dict[str, Any] = {}
        if object_path := as_path(str(key), level.written):
            del level.written[str(key)]
            meant = {"path": object_path}
        elif is_objects(str(key)):
            meant = as_objects(level.written.pop(str(key)), level.written)
        elif other := next((model for model in level.others if key in model.model_fields), None):
            meant = {"kind": kind_of(other)}
            for each in [name for name in level.written if level.has(name) and name not in other.model_fields]:
                del level.written[each]  # the hint of the key says so
        level.written.update(meant)
        self.places |= {(*above, each): path for each in meant}
        return bool(meant)

    def found(self, slips: Sequence[Slip]) -> list[Slip]:
        """Mistakes of the repaired tree, at their places in the file."""
        return [replace(slip, path=self._home(slip.path)) for slip in slips]

    def _home(self, path: Path) -> Path:
        """Path in the file: with each key as it is written there."""
        for length in range(len(path), 0, -1):
            if home := self.places.get(path[:length]):
                return (*home, *path[length:])
        return path
