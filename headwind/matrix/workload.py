"""The keys of a workload in matrix.yaml, by its kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Self

from pydantic import ValidationError, WrapValidator, model_validator

from headwind.matrix import nowhere, values
from headwind.matrix.keys import Keys, key
from headwind.matrix.levels import form_of, kind_of
from headwind.matrix.mistakes import MissingKey, Slip, Slips, from_pydantic
from headwind.matrix.run_keys import OneOrBoth
from headwind.matrix.spelling import nearest, respelt
from headwind.matrix.units import Mistake, listed, quoted, scalar
from headwind.matrix.values import whole
from headwind.metric import Competing, Workload

MOST_WORKERS = 16
MOST_FLOWS = 16


class WorkloadKeys(Keys):
    """Keys of every kind of workload: `kind`, `model` (the class that it becomes), and its server."""

    model: ClassVar[type[Workload]]
    same_for_all: ClassVar[frozenset[str]] = frozenset({"kind", "server_delay", "congestion"})  # no arm overrides these
    mark: ClassVar[str] = ""  # a key that only this form of its kind has; empty: the usual form of the kind

    needs_content: ClassVar[bool] = False  # whether its paths are always those of `content`
    has_whole_site: ClassVar[bool] = False  # whether it may use all files of the content, not only those of its paths

    workers: Annotated[int, whole(1, MOST_WORKERS)] = key(
        "CPUs that the server can use: processes of nginx, GOMAXPROCS of caddy, threads of haproxy and nghttpd", 1
    )
    congestion: OneOrBoth | None = key("congestion control of both ends; default: that of the file", None)

    def check(self) -> None:
        """Check how the values fit together, also if an arm overrides some. Raises Slips."""

    def paths_used(self) -> dict[tuple[str | int, ...], str]:
        """The paths that may be of files of `content`, by their places in the workload."""
        return {}

    @abstractmethod
    def to_model(self, name: str) -> Workload:
        """Workload of this name without the keys of every kind, which `workload` adds."""

    def workload(self, name: str) -> Workload:
        """Workload of this name, with all of its keys."""
        own = self.congestion.written if self.congestion else {}
        return replace(
            self.to_model(name), workers=self.workers, tcp_congestion=own.get("tcp", ""),
            quic_congestion=own.get("quic", ""),
        )  # fmt: skip


class DelayedKeys(WorkloadKeys):
    """Keys of kinds whose answers the server can delay."""

    server_delay: values.ServerDelay | None = key(
        "nginx's delay of each answer, from the arrival of its request; default: none", None
    )

    def workload(self, name: str) -> Workload:
        """Workload of this name, with all of its keys."""
        return replace(super().workload(name), server_delay_s=self.server_delay or 0.0)


class CompetingKeys(Keys):
    """Bulk downloads over the same path, from before the client starts until after it has ended."""

    over: values.OverTcp = key("the protocol of the downloads")
    flows: Annotated[int, whole(1, MOST_FLOWS)] = key("number of downloads, each over a separate connection", 1)


class CompetedKeys(DelayedKeys):
    """Keys of kinds whose client can run next to competing downloads."""

    same_for_all: ClassVar[frozenset[str]] = DelayedKeys.same_for_all | {"competing"}

    competing: CompetingKeys | None = key("bulk downloads over the same path meanwhile; default: none", None)

    @model_validator(mode="after")
    def _unmixed(self) -> Self:
        if self.competing and self.server_delay:
            hint = "remove one of the two: the server's log does not tell whose answers waited"
            raise Slips([Slip(("competing",), Mistake("competing downloads with a server_delay", hint))])
        return self

    def workload(self, name: str) -> Workload:
        """Workload of this name, with all of its keys."""
        written = self.competing
        competing = Competing(written.over, written.flows) if written else None
        return replace(super().workload(name), competing=competing)


def of_its_kind(kinds: Sequence[type[WorkloadKeys]]) -> Any:
    """Type of a workload in a matrix: its `kind` is one of these, the first by default."""
    by_name = {kind_of(keys): keys for keys in kinds if not keys.mark}
    plain = kind_of(kinds[0])

    def read(written: Any, _: Any) -> WorkloadKeys:
        name = written.get("kind", plain) if isinstance(written, dict) else plain
        if isinstance(name, str) and name in by_name:
            return _read(form_of(by_name[name], kinds, written), written)
        near = _kind_meant(str(name), written, by_name)
        raise Slips(
            [Slip(("kind",), _wrong_kind(name, near, list(by_name))), *_beside_its_kind(written, near, by_name, kinds)]
        )

    return Annotated[reduce(or_, kinds), WrapValidator(read)]


def _read(keys: type[WorkloadKeys], written: Any) -> WorkloadKeys:
    try:
        return keys.model_validate(written)
    except ValidationError as error:
        raise Slips(from_pydantic(error, keys)) from None


def _wrong_kind(name: Any, near: str, kinds: list[str]) -> Mistake:
    try:
        text = scalar(name, f"`{kinds[0]}`")
    except Mistake as mistake:
        return mistake
    gone = "" if near else nowhere.answer(text, "workloads")
    hint = f"did you mean {quoted(near)}? {listed(kinds)}" if near else gone or listed(kinds)
    return Mistake(f"{quoted(text)} is not a kind of workload", hint)


def _kind_meant(name: str, written: Mapping[str, Any], by_name: Mapping[str, type[WorkloadKeys]]) -> str:
    """Kind that was most likely meant: by its spelling, by the keys next to it, or by a synonym."""
    keys = written.keys() - {"kind"}
    fitting = [kind for kind, model in by_name.items() if keys <= model.model_fields.keys() and _needed(model) <= keys]
    near = nearest(name, list(by_name))
    if nowhere.answer(name, "workloads"):
        return ""
    if respelt(name, list(by_name)) or near in fitting:
        return near
    return fitting[0] if len(fitting) == 1 else near


def _needed(model: type[WorkloadKeys]) -> set[str]:
    return {name for name, field in model.model_fields.items() if field.is_required()} - {"kind"}


def _beside_its_kind(
    written: Mapping[str, Any],
    near: str,
    by_name: Mapping[str, type[WorkloadKeys]],
    kinds: Sequence[type[WorkloadKeys]],
) -> list[Slip]:
    """Further mistakes of a workload with an unknown kind, as one of the most likely kind.

    Without a likely one: the mistakes that every kind reports, without missing keys.
    """
    found = []
    for name in [near] if near else by_name:
        try:
            _read(form_of(by_name[name], kinds, written), {**written, "kind": name})
            found.append(list[Slip]())
        except Slips as slips:
            found.append([slip for slip in slips.slips if near or not isinstance(slip.mistake, MissingKey)])
    places = [{slip.path for slip in slips} for slips in found]
    return [slip for slip in found[0] if all(slip.path in each for each in places)]
