"""Keys that a matrix allows at each level, and the levels at which a misplaced key belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel

from headwind.matrix.find import KEYS as FIND_KEYS
from headwind.matrix.find import Wanted
from headwind.matrix.spelling import nearest, synonym
from headwind.matrix.units import TIME

NAME = "NAME"  # in a path: any name of an entry
DEEPEST = 3  # levels that are searched for a home: a key further away was not meant

Path = tuple[str | int, ...]
Form = TypeVar("Form", bound=type[BaseModel])


class Level:
    """Place in a matrix: the type that is allowed there, and the value that was written."""

    def __init__(self, kind: Any, written: Any) -> None:
        self.kind, self.written = kind, written
        self.models = list(_models(kind))

    @property
    def is_of_names(self) -> bool:
        """True if its keys are names that the user chooses."""
        keys = [get_args(each)[0] for each in _parts(self.kind) if get_origin(each) is dict]
        return not self.models and any(not _is_quantity(each) for each in keys)

    @property
    def is_search(self) -> bool:
        """True if it has the keys of a search."""
        return Wanted in _parts(self.kind)

    @property
    def is_of_entries(self) -> bool:
        """True if its keys are names or moments."""
        return not self.models and any(get_origin(each) is dict for each in _parts(self.kind))

    @property
    def words(self) -> list[str]:
        """Words that are allowed in a list; empty if it is not a list of words."""
        entries = [get_args(each)[0] for each in _parts(self.kind) if get_origin(each) is list]
        return [word for each in entries for word in _words(each)]

    @property
    def is_of_list(self) -> bool:
        """True if a list is allowed."""
        return any(get_origin(each) is list for each in _parts(self.kind))

    @property
    def is_of_one_value(self) -> bool:
        """True if it is neither a mapping nor a list."""
        inner = [each for each in _parts(self.kind) if each not in (None, type(None))]
        return bool(inner) and not self.models and all(get_origin(each) not in {dict, list} for each in inner)

    @property
    def is_of_lists(self) -> bool:
        """True if it is a list of lists."""
        return any(
            get_origin(each) is list and any(get_origin(inner) is list for inner in get_args(each))
            for each in _parts(self.kind)
        )

    @property
    def model(self) -> type[BaseModel] | None:
        """Model of the keys allowed here; of several, as for workloads, that of the written `kind`."""
        if len(self.models) > 1 and isinstance(self.written, dict):
            kinds = {kind_of(model): model for model in reversed(self.models)}  # of several forms the first
            found = kinds.get(nearest(str(self.written.get("kind", "")), list(kinds)[::-1]), self.models[0])
            return form_of(found, self.models, self.written)
        return self.models[0] if self.models else None

    def kind_as_key(self, key: str, value: Any) -> type[BaseModel] | None:
        """Model of the kind of workload that a key with keys below it names, if no kind is written; None for others."""
        if not isinstance(value, dict) or not isinstance(self.written, dict) or "kind" in self.written:
            return None
        return next((each for each in self.models if "kind" in each.model_fields and kind_of(each) == key), None)

    @property
    def others(self) -> list[type[BaseModel]]:
        """Models of other kinds, best fit to the written keys first."""
        keys = self.written.keys() if isinstance(self.written, dict) else set[str]()

        def fits(model: type[BaseModel]) -> tuple[int, int]:
            required = {name for name, field in model.model_fields.items() if field.is_required()} - {"kind"}
            return len(keys - model.model_fields.keys()), len(required - keys)

        return sorted((model for model in self.models if model is not self.model), key=fits)

    @property
    def keys(self) -> list[str]:
        """Keys that are allowed; empty for names and for values."""
        if self.is_search:
            return list(FIND_KEYS)
        return list(self.model.model_fields) if self.model else []

    def knows(self, key: str) -> bool:
        """True for a key that is allowed here, and for another word for one."""
        return key in self.keys or bool(synonym(key, self.keys))

    def meant_by(self, key: str) -> str:
        """The key that another word stands for, if it could have the value of that word; empty without one."""
        meant = synonym(key, self.keys)
        value, home = self.written.get(key) if isinstance(self.written, dict) else None, self.below(meant)
        is_other = (isinstance(value, dict) and home.is_of_one_value) or _is_file(value)
        return "" if meant and is_other else meant

    def keys_of(self, word: str) -> list[str]:
        """Keys that have the word among their values."""
        fields = self.model.model_fields if self.model else {}
        parts = {name: (*_parts(field.annotation), *field.metadata) for name, field in fields.items()}
        return [name for name, own in parts.items() if any(word in _enum(part) for part in own)]

    def below(self, name: str | int) -> Level:
        """Level under a key, a name or an index."""
        value = self.written
        if isinstance(value, dict) and name in value:
            value = value[str(name)]
        elif isinstance(value, list) and isinstance(name, int) and name < len(value):
            value = value[name]
        else:
            value = None
        if self.is_search and name == "crossover":
            return Level(list[str], value)
        if self.model and name in self.model.model_fields:
            return Level(self.model.model_fields[str(name)].annotation, value)
        return Level(next((get_args(each)[-1] for each in _parts(self.kind) if get_args(each)), None), value)

    def homes(self, key: str) -> list[tuple[str, ...]]:
        """Shortest ways down to the levels that allow the key."""
        found = [way for way, level in self.further() if key in level.keys or level.has(key)]
        return [way for way in found if len(way) == len(found[0])]

    def names_expected(self) -> list[str]:
        """Keys under which names belong: first those that are required and missing, then those that are written."""
        found = [name for name in self.ways() if self.below(name).is_of_names]
        return sorted(found, key=lambda name: 1 if name in self.written else 0 if self.needs(name) else 2)

    def takes_entry(self, entry: Mapping[str, Any]) -> bool:
        """True if a mapping could be one of the entries here: no unknown key, and all required ones."""
        model = Level(self.below(NAME).kind, entry).model
        return model is not None and entry.keys() <= model.model_fields.keys() and (
            not entry or {name for name, field in model.model_fields.items() if field.is_required()} <= entry.keys()
        )  # fmt: skip

    def needs(self, key: str) -> bool:
        """True if the key is required."""
        return self.model is not None and key in self.model.model_fields and self.model.model_fields[key].is_required()

    def has(self, key: str) -> bool:
        """True if one of the kinds that are possible here has the key."""
        return any(key in model.model_fields for model in self.models)

    def further(self) -> Iterator[tuple[tuple[str, ...], Level]]:
        """Every level below with the way to it, the nearest first."""
        found: list[tuple[tuple[str, ...], Level]] = [((), self)]
        for _ in range(DEEPEST):
            found = [((*way, name), level.below(name)) for way, level in found for name in level.ways()]
            yield from found

    def ways(self) -> Iterator[str]:
        """Keys under which there are further ones."""
        if self.is_of_names:
            yield NAME
        elif self.model:
            yield from (name for name, field in self.model.model_fields.items() if _leads_on(field.annotation))


def levels(root: type[BaseModel], tree: Any, path: Sequence[str | int]) -> list[Level]:
    """Level of the whole file, and of each step on the way to a place."""
    found = [Level(root, tree)]
    for step in path:
        found.append(found[-1].below(step))
    return found


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.endswith((".yaml", ".yml"))


def _parts(kind: Any) -> list[Any]:
    """X and Y of Annotated[X | Y | None, ...]; a dict and a list stay as they are."""
    if get_origin(kind) in {dict, list} or not get_args(kind):
        return [kind]
    return [part for each in get_args(kind) for part in _parts(each)]


def _is_quantity(kind: Any) -> bool:
    """True for the keys of `at`, which are moments."""
    return any(getattr(each, "schema", {}).get("pattern") == TIME.pattern for each in get_args(kind))


def _words(kind: Any) -> list[str]:
    """Words that a type allows, from its JSON schema."""
    return next((words for each in get_args(kind) if (words := _enum(each))), [])


def _enum(part: Any) -> list[str]:
    """Words that an annotation of a type allows."""
    schema = getattr(part, "schema", None)  # of a model it is a method
    return schema.get("enum", []) if isinstance(schema, dict) else []


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    yield from (each for each in _parts(kind) if isinstance(each, type) and issubclass(each, BaseModel))


def _leads_on(kind: Any) -> bool:
    return any(
        each is Wanted or get_origin(each) is dict or (isinstance(each, type) and issubclass(each, BaseModel))
        for each in _parts(kind)
    )


def kind_of(model: type[BaseModel]) -> str:
    """Name under `kind` of workloads with these keys."""
    return str(get_args(model.model_fields["kind"].annotation)[0])


def form_of(usual: Form, models: Sequence[Form], written: Any) -> Form:
    """The form of a kind of workload whose `mark`, a key, is written; else the usual one."""
    keys = written if isinstance(written, dict) else {}
    marked = (model for model in models if getattr(model, "mark", "") in keys and kind_of(model) == kind_of(usual))
    return next(marked, usual)
