"""The keys of one profile in matrix.yaml, and their conversion to a Profile."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Self

from pydantic import model_validator

from headwind.matrix.direction import DirectionKeys, Keys, key
from headwind.matrix.library import NETWORKS
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.units import Mistake, choose, quoted, scalar
from headwind.matrix.values import Written
from impair.profile import Direction, Link, Profile

LibraryName = Annotated[
    str, Written(lambda name: choose(scalar(name, "`lte`"), list(NETWORKS), "a network of `lab.py profiles`"),
                 {"enum": list(NETWORKS)}),
]  # fmt: skip


class ProfileKeys(Keys):
    """A network, by direction; {} is a clean one."""

    uplink: DirectionKeys = key("from client to server", DirectionKeys())
    downlink: DirectionKeys = key("from server to client: the responses", DirectionKeys())
    both: DirectionKeys = key("each of the two directions", DirectionKeys())
    library: LibraryName | None = key("a network of the library instead; `lab.py profiles` lists them", None)

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.library and (more := sorted(self.model_fields_set & {"uplink", "downlink", "both"})):
            hint = "keep one; to change a network of the library, write out what `lab.py profiles` shows"
            message = f"{quoted(more[0])} and `library` say both what the network is"
            raise Slips([Slip((more[0],), Mistake(message, hint), at_key=True)])
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        slips: list[Slip] = []
        for direction in Direction:
            own: DirectionKeys = getattr(self, direction)
            for name in sorted(own.model_fields_set & self.both.model_fields_set):
                hint = f"keep it in `{direction}` or in `both`"
                slips.append(Slip((direction, name), Mistake(f"`{name}` is already in `both`", hint), at_key=True))
            try:
                self.link(direction)
            except Slips as error:
                slips += [Slip((self._home(direction, slip.path[0]), *slip.path), slip.mistake) for slip in error.slips]
        raise_any(slips)
        return self

    def link(self, direction: Direction) -> Link:
        """What the profile does to one direction. Raises Slips."""
        if self.library:
            return network(self.library).link(direction)
        own: DirectionKeys = getattr(self, direction)
        values = {name: getattr(own, name) for name in own.model_fields_set}
        return self.both.model_copy(update=values).link()

    def _home(self, direction: Direction, name: str | int) -> str:
        """The key under which this field of the direction was written."""
        own: DirectionKeys = getattr(self, direction)
        return "both" if name in self.both.model_fields_set - own.model_fields_set else direction.value

    def to_model(self, name: str) -> Profile:
        """Cannot fail once the model exists."""
        return Profile(name, self.link(Direction.UPLINK), self.link(Direction.DOWNLINK))


@cache
def network(name: str) -> ProfileKeys:
    """A network of the library as if it had been written in the matrix."""
    return ProfileKeys.model_validate(NETWORKS[name].written)
