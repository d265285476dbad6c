"""The keys under `repeat` and `selfcheck` in matrix.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo, field_validator, model_validator
from pydantic_core import CoreSchema, core_schema

from headwind.arm import Arm
from headwind.matrix import units, values
from headwind.matrix.direction import Keys, key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.units import Mistake, choose
from headwind.matrix.values import whole
from headwind.model import Repetition, SelfCheck

MOST_BLOCKS = 1_000  # of one condition


class RepeatKeys(Keys):
    """Blocks of each condition: until it is decided, within these bounds."""

    min: Annotated[int, whole(1, MOST_BLOCKS)] = key("blocks that every condition gets first", Repetition().least)
    max: Annotated[int, whole(1, MOST_BLOCKS)] = key("blocks after which a condition stays undecided", 60)
    margin: values.Margin = key("times closer than this are a tie", 0.05, "5%")
    confidence: values.Confidence = key("of each interval", 0.95, "95%")
    budget: values.Budget | None = key("wall time for all blocks together", 900.0, "15min")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise Slips(
                [Slip(("min",), Mistake(f"min {self.min} is above max {self.max}", "write them the other way"))]
            )
        return self

    @classmethod
    def fixed(cls, blocks: int) -> RepeatKeys:
        """What `repeat: 3` means."""
        return cls.model_construct(min=blocks, max=blocks, margin=0.05, confidence=0.95, budget=None)

    def to_model(self) -> Repetition:
        """Cannot fail."""
        return Repetition(self.min, self.max, self.margin, self.confidence, self.budget)


@dataclass(frozen=True, slots=True)
class OrCount:
    """Annotates a RepeatKeys that may also be one whole number: so many blocks, whatever is seen."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_BLOCKS}, handler(schema)]}

    def _expand(self, value: Any) -> Any:
        if isinstance(value, dict | RepeatKeys):
            return value
        if isinstance(value, list):
            hint = "such as `repeat: {min: 9, budget: 15min}`"
            raise Mistake("there is a list where a number or keys in braces are expected", hint)
        return RepeatKeys.fixed(units.whole(value, 1, MOST_BLOCKS))


class SelfCheckKeys(Keys):
    """An arm that runs again under other names, in the blocks of some profiles."""

    protocol: values.NameUsed = key("which protocol, or which other arm by its name, has twins", "h2")
    again: list[values.NameUsed] = key("profiles in which it runs twice alike: the lab must see a tie", [])
    slower: list[values.NameUsed] = key("profiles in which it runs over a network 10 % slower: the lab must see it", [])

    @field_validator("again", "slower")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        slips = []
        defined: list[str] = (info.context or {}).get("profiles", [])
        for index, name in enumerate(names):
            try:
                choose(name, defined, "one of the profiles of this file")
            except Mistake as mistake:
                slips.append(Slip((index,), mistake))
        raise_any(slips)
        return names

    def to_model(self, arms: Mapping[str, Arm]) -> SelfCheck:
        """`arms` by name; KeyError where it has no such arm."""
        return SelfCheck(arms[self.protocol], tuple(self.again), tuple(self.slower))
