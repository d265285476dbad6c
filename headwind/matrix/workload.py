"""The keys of a workload in matrix.yaml: those of its kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar

from pydantic import ValidationError, WrapValidator

from headwind.matrix import values
from headwind.matrix.congestion import OneOrBoth
from headwind.matrix.direction import Keys, key
from headwind.matrix.mistakes import Slip, Slips, from_pydantic
from headwind.matrix.units import Mistake, choose, scalar
from headwind.matrix.values import whole
from headwind.metric import Workload

MOST_WORKERS = 16


class WorkloadKeys(Keys):
    """What every kind of workload has: its name under `kind`, `model`, the class that it becomes, and its server."""

    model: ClassVar[type[Workload]]
    same_for_all: ClassVar[frozenset[str]] = frozenset({"kind", "server_delay", "congestion"})  # no arm sets these here

    workers: Annotated[int, whole(1, MOST_WORKERS)] = key("processes of nginx that share the connections", 1)
    congestion: OneOrBoth | None = key("congestion control of both ends, in place of what the file says for all", None)

    def check(self) -> None:
        """Raises Slips for values that do not go together, also where an arm brings them together."""

    @abstractmethod
    def to_model(self, name: str) -> Workload:
        """The workload of this name; `workload` adds what is every kind's."""

    def workload(self, name: str) -> Workload:
        """The workload of this name, with all that was written."""
        own = self.congestion.written if self.congestion else {}
        return replace(
            self.to_model(name), workers=self.workers, tcp_congestion=own.get("tcp", ""),
            quic_congestion=own.get("quic", ""),
        )  # fmt: skip


class DelayedKeys(WorkloadKeys):
    """... of kinds whose answers the server can hold back."""

    server_delay: values.ServerDelay | None = key(
        "how long nginx waits with each answer, from its request's arrival on; without it not at all", None
    )

    def workload(self, name: str) -> Workload:
        """The workload of this name, with all that was written."""
        return replace(super().workload(name), server_delay_s=self.server_delay or 0.0)


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
