"""The keys of one profile in matrix.yaml, and their conversion to a Profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Self

from pydantic import model_validator

from headwind.format import as_written
from headwind.matrix.keys import Keys, key
from headwind.matrix.link_keys import DirectionKeys
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.presets import NETWORKS
from headwind.matrix.units import Mistake, choose, quoted, scalar
from headwind.matrix.values import Written
from headwind.settings import LARGEST_BDP_BYTES, largest_bdp_bytes
from impair.profile import Direction, Link, Profile

PresetName = Annotated[
    str, Written(lambda name: choose(scalar(name, "`lte`"), list(NETWORKS), "a network of `lab.py profiles`"),
                 {"enum": list(NETWORKS)}),
]  # fmt: skip

UNBELIEVABLE_DELAY_S = 3.0  # one way; a geostationary satellite's is 0.27 s
UNBELIEVABLE_JITTER_S = 1.0
UNBELIEVABLE_RATE_BPS = 20_000  # a modem of 1990 has 14.4 kbit/s
STEP = 1000  # from a unit to the next: a value off by this factor has the wrong unit


class ProfileKeys(Keys):
    """A network, by direction; {} is an unimpaired one."""

    uplink: DirectionKeys = key("from client to server", DirectionKeys())
    downlink: DirectionKeys = key("from server to client: the responses", DirectionKeys())
    both: DirectionKeys = key("each of the two directions", DirectionKeys())
    preset: PresetName | None = key("name of a published network; `lab.py profiles` lists them", None)

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.preset and (more := sorted(self.model_fields_set & {"uplink", "downlink", "both"})):
            hint = "keep one; to change a preset, write out its keys as `lab.py profiles` shows them"
            message = f"{quoted(more[0])} and `preset` both define the network"
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
                slips += [Slip((self.home(direction, slip.path[0]), *slip.path), slip.mistake) for slip in error.slips]
        raise_any(slips)
        return self

    def link(self, direction: Direction) -> Link:
        """Impairments of one direction. Raises Slips."""
        if self.preset:
            return network(self.preset).link(direction)
        own: DirectionKeys = getattr(self, direction)
        values = {name: getattr(own, name) for name in own.model_fields_set}
        return self.both.model_copy(update=values).link()

    def home(self, direction: Direction, name: str | int) -> str:
        """Key under which this field of the direction was written."""
        own: DirectionKeys = getattr(self, direction)
        return "both" if name in self.both.model_fields_set - own.model_fields_set else direction.value

    def to_model(self, name: str) -> Profile:
        """Convert to a Profile; cannot fail once the model exists."""
        return Profile(name, self.link(Direction.UPLINK), self.link(Direction.DOWNLINK))


@cache
def network(name: str) -> ProfileKeys:
    """Keys of a preset."""
    return ProfileKeys.model_validate(NETWORKS[name].written)


def window_slips(profiles: Mapping[str, ProfileKeys]) -> Iterator[Slip]:
    """Mistakes of networks over which a window would limit transfers."""
    for name, profile in profiles.items():
        in_flight = largest_bdp_bytes(profile.to_model(name))
        if in_flight <= LARGEST_BDP_BYTES:
            continue
        message = f"the rate of {quoted(name)} times its round trip is {in_flight / 1e6:.3g} MB"
        hint = (
            f"above {LARGEST_BDP_BYTES / 1e6:g} MB the windows of client and server would be measured, "
            "not the protocols: lower `rate` or `delay`"
        )
        delays = {direction: link.delay.delay_s for direction in Direction if (link := profile.link(direction)).delay}
        slowest = max(delays, key=lambda direction: delays[direction])
        if meant := another_unit("delay", delays[slowest]):
            place = ("profiles", name, profile.home(slowest, "delay"), "delay")
            yield Slip(place, Mistake(message, f"{meant}{hint}"), at_key=True)
        else:
            yield Slip(("profiles", name), Mistake(message, hint))


def another_unit(key: str, value: float) -> str:
    """Hint `did you mean `15ms`? ` for an implausible delay of 15 s, with the next unit; empty for plausible values."""
    unbelievable = {"delay": UNBELIEVABLE_DELAY_S, "jitter": UNBELIEVABLE_JITTER_S}
    if key == "rate" and value < UNBELIEVABLE_RATE_BPS:
        return f"did you mean `{as_written('rate_bps', value * STEP)}`? "
    if key in unbelievable and value >= unbelievable[key]:
        return f"did you mean `{as_written('delay_s', value / STEP)}`? "
    return ""
