"""The keys under `conditions`, `congestion`, `repeat` and `selfcheck` in matrix.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo, field_validator, model_validator
from pydantic_core import CoreSchema, core_schema

from headwind.arm import Arm, Congestion
from headwind.matrix import units, values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.units import Mistake, choose, quoted
from headwind.matrix.values import Short, whole
from headwind.model import Repetition, SelfCheck


def _defined(names: list[str], info: ValidationInfo, section: str) -> list[str]:
    """Return `names` if the file defines all of them in this section. Raises Slips with every other one.

    `context` holds the names that the file defines, so that a misspelt one is reported together with other mistakes.
    Among them are the sweeps, which are proposed, too: in a list their networks stand in their place.
    """
    slips = []
    defined: list[str] | None = (info.context or {}).get(section, [])
    if defined is None:  # unreadable, which is reported at its place
        return names
    sweeps = (info.context or {}).get("sweeps", []) if section == "profiles" else []
    for index, name in enumerate(names):
        try:
            choose(name, [*sweeps, *defined], f"one of the {section} of this file")
        except Mistake as mistake:
            other = next(each for each in ("profiles", "workloads") if each != section)
            is_other = name in ((info.context or {}).get(other) or ())
            hint = f"{quoted(name)} is one of the {other}" if is_other else mistake.hint
            slips.append(Slip((index,), Mistake(str(mistake), hint)))
    raise_any(slips)
    return names


class PairsKeys(Keys):
    """Some profiles, each with some workloads. A key that is left out stands for all of them."""

    profiles: list[values.NameUsed] | None = key("names from `profiles` of this file", None, minItems=1)
    workloads: list[values.NameUsed] | None = key("names from `workloads` of this file", None, minItems=1)

    @field_validator("profiles", "workloads")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        if not names:
            raise Mistake("the list is empty", "leave the key out to mean all of them")
        return _defined(names, info, str(info.field_name))


class CongestionKeys(Keys):
    """Congestion control of TCP and of QUIC, on both endpoints."""

    tcp: values.TcpCongestion = key("TCP's, in the kernel, for h1 and h2", "cubic")
    quic: values.QuicCongestion = key("QUIC's, in nginx, for h3", "cubic")

    @property
    def written(self) -> dict[str, str]:
        """Names that the file has, by transport: one or both."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def to_model(self) -> Congestion:
        """Congestion control of both transports."""
        return Congestion(self.tcp, self.quic)


OneOrBoth = Annotated[CongestionKeys, Short(("tcp", "quic"))]


MOST_BLOCKS = 1_000  # of one condition


class RepeatKeys(Keys):
    """Blocks of each condition: until it is decided, within these bounds."""

    min: Annotated[int, whole(1, MOST_BLOCKS)] = key(
        "blocks that every condition gets first, if the budget has room for all of them", Repetition().least
    )
    max: Annotated[int, whole(1, MOST_BLOCKS)] = key(
        "blocks after which a condition gets no more, even if something is not sure", 60
    )
    margin: values.Margin = key("times closer than this are a tie", 0.05, "5%")
    confidence: values.Confidence = key("confidence level of each interval", 0.95, "95%")
    budget: values.Budget | None = key("wall time for all blocks together", 900.0, "15min")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise Slips([self._out_of_order()])
        return self

    def _out_of_order(self) -> Slip:
        """The mistake of bounds in the wrong order; a default was not written, and cannot be swapped."""
        if "min" not in self.model_fields_set:
            hint = f"write a `max` of at least {self.min}, or a fixed number: `repeat: {self.max}`"
            return Slip(("max",), Mistake(f"max {self.max} is below min, which is {self.min} by default", hint))
        if "max" not in self.model_fields_set:
            mistake = Mistake(
                f"min {self.min} is above max, which is {self.max} by default", "write a higher `max`, too"
            )
            return Slip(("min",), mistake)
        return Slip(("min",), Mistake(f"min {self.min} is above max {self.max}", "swap them"))

    @classmethod
    def fixed(cls, blocks: int) -> RepeatKeys:
        """Keys for a fixed number such as `repeat: 3`."""
        return cls.model_construct(min=blocks, max=blocks, margin=0.05, confidence=0.95, budget=None)

    def to_model(self) -> Repetition:
        """Convert to the model; cannot fail."""
        return Repetition(self.min, self.max, self.margin, self.confidence, self.budget)


@dataclass(frozen=True, slots=True)
class OrCount:
    """Annotates a RepeatKeys that may also be one whole number: that number of blocks, without stopping early."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_BLOCKS}, handler(schema)]}

    def _expand(self, value: Any) -> Any:
        if isinstance(value, dict | RepeatKeys):
            return value
        if isinstance(value, list):
            hint = "such as `repeat: {min: 9, budget: 15min}`"
            raise Mistake("a number or keys in braces are expected, not a list", hint)
        return RepeatKeys.fixed(units.whole(value, 1, MOST_BLOCKS))


class SelfCheckKeys(Keys):
    """An arm that runs again under other names, in the blocks of some profiles."""

    protocol: values.NameUsed = key("protocol, or name of another arm, that has twins", "h2")
    again: list[values.NameUsed] = key("profiles in which it runs twice unchanged: the lab must find a tie", [])
    slower: list[values.NameUsed] = key("profiles in which it runs over a network 10 % slower: the lab must see it", [])

    @field_validator("again", "slower")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        return _defined(names, info, "profiles")

    def to_model(self, arms: Mapping[str, Arm]) -> SelfCheck:
        """Convert to the model; `arms` are by name. Raises KeyError if the arm does not exist."""
        return SelfCheck(arms[self.protocol], tuple(self.again), tuple(self.slower))
