"""The keys of a workload in matrix.yaml: those of its kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar

from pydantic import ValidationError, WrapValidator

from headwind.matrix.direction import Keys
from headwind.matrix.mistakes import Slip, Slips, from_pydantic
from headwind.matrix.units import Mistake, choose, scalar
from headwind.metric import Workload


class WorkloadKeys(Keys):
    """What every kind of workload has: its name under `kind`, and `model`, the class that it becomes."""

    model: ClassVar[type[Workload]]
    same_for_all: ClassVar[frozenset[str]] = frozenset({"kind"})  # keys that no arm can set for itself

    def check(self) -> None:
        """Raises Slips for values that do not go together, also where an arm brings them together."""

    @abstractmethod
    def to_model(self, name: str) -> Workload:
        """The workload of this name."""


def of_its_kind(kinds: Sequence[type[WorkloadKeys]]) -> Any:
    """The type of a workload in a matrix, where `kind` names one of these; without it, it is of the first."""
    by_name = {keys.model.kind: keys for keys in kinds}
    plain = kinds[0].model.kind

    def read(written: Any, _: Any) -> WorkloadKeys:
        name = written.get("kind", plain) if isinstance(written, dict) else plain
        try:
            keys = by_name[choose(scalar(name, f"`{plain}`"), list(by_name), "a kind of workload")]
        except Mistake as mistake:
            raise Slips([Slip(("kind",), mistake)]) from None
        try:
            return keys.model_validate(written)
        except ValidationError as error:
            raise Slips(from_pydantic(error, keys)) from None

    return Annotated[reduce(or_, kinds), WrapValidator(read)]
