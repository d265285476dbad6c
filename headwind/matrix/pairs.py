"""The keys of an entry under `conditions` and `smoke` in matrix.yaml: which profiles meet which workloads."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from headwind.matrix import values
from headwind.matrix.direction import Keys, key
from headwind.matrix.mistakes import Slip, raise_any
from headwind.matrix.units import Mistake, choose


class PairsKeys(Keys):
    """Some profiles, each with some workloads. A key that is left out stands for all of them."""

    profiles: list[values.NameUsed] | None = key("names from `profiles` of this file", None, minItems=1)
    workloads: list[values.NameUsed] | None = key("names from `workloads` of this file", None, minItems=1)

    @field_validator("profiles", "workloads")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        """`context` holds the names that the file defines, so that a misspelt one is found beside other mistakes."""
        if not names:
            raise Mistake("the list is empty", "leave the key out to mean all of them")
        slips = []
        defined: list[str] = (info.context or {}).get(info.field_name, [])
        for index, name in enumerate(names):
            try:
                choose(name, defined, f"one of the {info.field_name} of this file")
            except Mistake as mistake:
                slips.append(Slip((index,), mistake))
        raise_any(slips)
        return names
