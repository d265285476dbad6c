"""Mistakes in a matrix and their places, from this package's validators and from pydantic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from headwind.matrix.keys import every_key, respelt_key
from headwind.matrix.spelling import nearest, part_of, synonym
from headwind.matrix.units import Mistake, listed, meant, quoted

NO_CORRELATION = (
    "netem's correlation does not keep the requested share (measured: a loss of 1 % with 25 % correlation "
    "dropped 0 of 20,000 packets)"
)
TOO_FAR = "is this indented too far?"
_CONTAINERS = {
    "model_type": "a mapping of keys, such as {key: value}",
    "dict_type": "a mapping of names, such as {name: {...}}",
    "list_type": "a list, such as [a, b]",
}


class UnknownKey(Mistake):
    """A key that is not allowed at its level."""


class Unindented(UnknownKey):
    """A key that belongs below `group`, the key of its level which therefore has no value."""

    def __init__(self, message: str, hint: str, group: str) -> None:
        super().__init__(message, hint)
        self.group = group


class Misspelt(Mistake):
    """A word that is close to an allowed one, which its hint names."""


class MissingKey(Mistake):
    """A required key that is missing."""


class Unserved(Mistake):
    """A feature that a server lacks: reported last, since it may only be needed because of another mistake."""


class NoContainer(Mistake):
    """A value in place of a mapping or of a list."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A Mistake and its place: `path` leads there from the checked value."""

    path: tuple[str | int, ...]
    mistake: Mistake
    at_key: bool = False  # the key itself is wrong, not its value


def value_at(tree: Any, path: Sequence[str | int]) -> Any:
    """The value to which a path leads in what was written; None if it leads nowhere."""
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


class Slips(ValueError):
    """All mistakes of one check."""

    def __init__(self, slips: list[Slip]) -> None:
        super().__init__("; ".join(str(slip.mistake) for slip in slips))
        self.slips = slips


def raise_any(slips: list[Slip]) -> None:
    """Raise Slips if there are any."""
    if slips:
        raise Slips(slips)


def from_pydantic(error: ValidationError, root: type[BaseModel]) -> list[Slip]:
    """Slips for the errors of pydantic's validation of a `root`."""
    slips: list[Slip] = []
    for found in error.errors(include_url=False, include_input=False):
        path = found["loc"]
        cause = found.get("ctx", {}).get("error")
        if isinstance(cause, Slips):
            slips += [Slip((*path, *slip.path), slip.mistake, slip.at_key) for slip in cause.slips]
        elif isinstance(cause, Mistake):
            at_key = path[-1] == "[key]"  # pydantic's mark for the name of an entry
            slips.append(Slip(path[:-1] if at_key else path, cause, at_key))
        elif found["type"] == "extra_forbidden":
            slips.append(Slip(path, unknown(str(path[-1]), _keys_of(root, path[:-1])), at_key=True))
        elif found["type"] == "missing":
            slips.append(
                Slip(
                    path,
                    MissingKey(f"{quoted(path[-1])} is missing", f"{path[-1]}: {_purpose(root, path)}"),
                    at_key=True,
                )
            )
        elif path[-1:] == ("at",) and found["type"] == "dict_type":
            slips.append(Slip(path, NoContainer("this must be a mapping of moments, without dashes, such as "
                                                "{1s: {both: {loss: 100%}}, 1.5s: {}}")))  # fmt: skip
        else:
            slips.append(Slip(path, NoContainer(f"this must be {_CONTAINERS.get(found['type'], found['msg'])}")))
    return slips


def unknown(key: str, allowed: list[str]) -> Mistake:
    """Mistake for a key that is not allowed."""
    if "correlation" in key:
        return Mistake(f"{quoted(key)} is refused", NO_CORRELATION)
    message = f"unknown key {quoted(key)}"
    if key in every_key() and not (respelt_key(key, allowed) or synonym(key, allowed)):
        return UnknownKey(message, listed(allowed))  # a key of another level is no misspelling
    word = key if nearest(key, allowed) else part_of(key, allowed) or key
    return UnknownKey(message, meant(word, allowed))


def why_empty(path: Sequence[str | int], key: str, *, is_inline: bool) -> str:
    """Hint for a key without a value in the mapping at `path`."""
    if path[-1:] == ("at",):
        return f"write what changes at this moment, or {quoted(f'{key}: {{}}')} to restore the beginning"
    if is_inline:
        return f"its value follows it: {quoted(f'{key}: ...')}; or remove the key"
    return "write {} for an empty mapping, or remove the key; lines that belong to it are indented further than it is"


def _keys_of(root: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """Keys that are allowed in the mapping at a path."""
    return list(_model_at(root, path).model_fields)


def _purpose(root: type[BaseModel], path: tuple[str | int, ...]) -> str:
    field = _model_at(root, path[:-1]).model_fields[str(path[-1])]
    examples = [example for each in field.metadata for example in getattr(each, "schema", {}).get("examples", [])]
    return (field.description or "") + (f", such as `{examples[0]}`" if examples else "")


def _model_at(root: type[BaseModel], path: tuple[str | int, ...]) -> type[BaseModel]:
    model, steps = root, iter(path)
    for step in steps:
        model = _model_in(model.model_fields[str(step)].annotation, steps) or model
    return model


def _model_in(kind: Any, steps: Iterator[str | int]) -> type[BaseModel] | None:
    """Model inside X | None, Annotated[X, ...], list[X] or dict[name, X]; takes an index or a name from `steps`."""
    if get_origin(kind) in {dict, list}:
        next(steps, None)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for each in get_args(kind) if (found := _model_in(each, steps))), None)
