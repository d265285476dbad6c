"""A group of keys of matrix.yaml: a pydantic model that refuses unknown keys, and the fields of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def key(description: str, default: Any = ..., shown: Any = None, **schema: Any) -> Any:
    """Define a key of the file; `shown` is its default in YAML, `schema` has further entries of the JSON schema."""
    more = schema if shown is None else {"default": shown, **schema}
    return Field(default, description=description, json_schema_extra=more)


class Keys(BaseModel):
    """Mapping that accepts only the keys of its fields."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        model_title_generator=lambda model: model.__name__.removesuffix("Keys").lower(),
    )


@cache
def every_key(model: type[Keys] = Keys) -> frozenset[str]:
    """All keys of a model and of its subclasses; of `Keys`: all keys of a matrix at any level."""
    return frozenset(model.model_fields).union(*map(every_key, model.__subclasses__()))
