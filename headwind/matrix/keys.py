"""A group of keys of matrix.yaml: a pydantic model that refuses unknown keys, and the fields of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from headwind.matrix.spelling import form, respelt


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


def respelt_key(text: str, allowed: Sequence[str]) -> str:
    """Allowed key that a text is a misspelling of; empty without one, and if the text is a key of another level."""
    near = respelt(text, allowed)
    return near if form(near) == form(text) or text not in every_key() else ""


@cache
def every_key(model: type[Keys] = Keys) -> frozenset[str]:
    """All keys of a model and of its subclasses; of `Keys`: all keys of a matrix at any level."""
    return frozenset(model.model_fields).union(*map(every_key, model.__subclasses__()))
