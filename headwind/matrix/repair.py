"""A matrix as it was probably meant: with it, what is wrong below a misspelt key is found as well."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from headwind.matrix.levels import Path, kind_of, levels
from headwind.matrix.mistakes import Slip, UnknownKey
from headwind.matrix.spelling import respelt


@dataclass(slots=True)
class Repair:
    """The repaired tree, and where in the file each repaired key is."""

    tree: dict[str, Any]
    places: dict[Path, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, slips: Sequence[Slip], root: type[BaseModel], tree: dict[str, Any]) -> Repair:
        """Keys that are misspelt get their names, and workloads with a key of another kind that kind."""
        found = cls(copy.deepcopy(tree))
        for slip in slips:
            if isinstance(slip.mistake, UnknownKey):
                found._mend(slip.path, root)
        return found

    def _mend(self, path: Path, root: type[BaseModel]) -> None:
        *above, key = path
        level = levels(root, self.tree, above)[-1]
        if not isinstance(level.written, dict) or key not in level.written:
            return
        if right := respelt(str(key), level.keys):
            if right not in level.written:
                level.written[right] = level.written.pop(str(key))
                self.places[*above, right] = path
        elif "kind" not in level.written:
            other = next((model for model in level.others if key in model.model_fields), None)
            if other:
                level.written["kind"] = kind_of(other)
                self.places[path] = path

    def found(self, slips: Sequence[Slip]) -> list[Slip]:
        """Those about what was repaired, at their places in the file."""
        return [
            replace(slip, path=(*home, *slip.path[len(place) :]))
            for slip in slips
            for place, home in self.places.items()
            if slip.path[: len(place)] == place and not (slip.at_key and slip.path == place)
        ]
