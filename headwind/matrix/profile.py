"""The keys of one profile in matrix.yaml, and their conversion to a Profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Self

from pydantic import model_validator

from headwind.format import as_written
from headwind.matrix import values
from headwind.matrix.keys import Keys, key
from headwind.matrix.link_keys import DirectionKeys, SpellsKeys
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.presets import NETWORKS
from headwind.matrix.units import TIME, Mistake, choose, quoted, scalar, seconds
from headwind.matrix.values import Written
from headwind.settings import LARGEST_BDP_BYTES, largest_bdp_bytes
from impair.bounds import ImpossibleImpairment
from impair.profile import NEXT_PACKET, Changes, Clock, Direction, Link, Profile, Rebind, Rebinding, Steps
from impair.trace import Trace

PresetName = Annotated[
    str, Written(lambda name: choose(scalar(name, "`lte`"), list(NETWORKS), "a network of `lab.py profiles`"),
                 {"enum": list(NETWORKS)}),
]  # fmt: skip

UNBELIEVABLE_DELAY_S = 3.0  # one way; a geostationary satellite's is 0.27 s
UNBELIEVABLE_JITTER_S = 1.0
UNBELIEVABLE_RATE_BPS = 20_000  # a modem of 1990 has 14.4 kbit/s
STEP = 1000  # from a unit to the next: a value off by this factor has the wrong unit


def _moment(value: Any) -> str:
    """Return the text of a moment after the beginning. Raises Mistake."""
    if seconds(value) == 0:
        raise Mistake(f"{quoted(value)} is the beginning", "what a network begins with is written next to `at`")
    return str(value)


Moment = Annotated[str, Written(_moment, {"type": "string", "pattern": TIME.pattern, "examples": [TIME.example]})]
ClockName = Annotated[Clock, Written(
    lambda value: Clock(choose(scalar(value, f"`{Clock.PACKET}`"), [*Clock], "`packet` or `trial`")),
    {"enum": [each.value for each in Clock]},
)]  # fmt: skip


RebindKind = Annotated[Rebind, Written(
    lambda value: Rebind(choose(scalar(value, f"`{Rebind.PORT}`"), [*Rebind], "`port` or `address`")),
    {"enum": [each.value for each in Rebind]},
)]  # fmt: skip


KEEP_ONE = "keep one of them; a burst at a fixed time is `500ms: {downlink: {loss: 100%}}, 600ms: {}` under `at`"
OWN_CHANGES = {  # keys of a direction that change it by themselves: why they are not under `at`
    "spells": (
        "`spells` begin with the trial",
        "a network has `at` or `spells`: write a loss here, or `spells` without `at`",
    ),
    "trace": ("a `trace` begins with the trial", "give it a profile without `at`, or write a rate here"),
}


class StepKeys(Keys):
    """Differences of a network from its beginning, from a moment on; {} restores the beginning."""

    uplink: DirectionKeys = key("from client to server", DirectionKeys())
    downlink: DirectionKeys = key("from server to client: the responses", DirectionKeys())
    both: DirectionKeys = key("each of the two directions", DirectionKeys())

    def own(self, direction: Direction) -> DirectionKeys:
        """The keys that only this direction has."""
        found: DirectionKeys = getattr(self, direction)
        return found

    def written(self, direction: Direction) -> dict[str, Any]:
        """Values of a direction as they were written, those of `both` among them."""
        return {
            name: getattr(each, name) for each in (self.both, self.own(direction)) for name in each.model_fields_set
        }

    def home(self, direction: Direction, name: str | int) -> str:
        """Key under which this field of the direction was written."""
        return "both" if name in self.both.model_fields_set - self.own(direction).model_fields_set else direction.value

    def twice(self) -> Iterator[Slip]:
        """Mistakes of keys that are both in a direction and in `both`."""
        for direction in Direction:
            for name in sorted(self.own(direction).model_fields_set & self.both.model_fields_set):
                hint = (
                    f"remove it from `both`: each direction has its own `{name}`"
                    if name in self.own(direction.other).model_fields_set
                    else f"move the one in `both` to `{direction.other}`, or remove one of the two"
                )
                yield Slip((direction, name), Mistake(f"`{name}` is already in `both`", hint), at_key=True)


class MomentKeys(StepKeys):
    """Changes that begin at a moment."""

    rebind: RebindKind | None = key(
        "`port` or `address`: a NAT gives the client another one, once, and packets to the old one are lost", None
    )


class ProfileKeys(StepKeys):
    """A network, by direction; {} is an unimpaired one."""

    preset: PresetName | None = key("name of a published network; `lab.py profiles` lists them", None)
    at: dict[Moment, MomentKeys] = key(
        "changes during a trial, by the moment at which each begins, such as `1s: {downlink: {loss: 100%}}`: the keys "
        "that differ from the beginning",
        {}, additionalProperties=False,
    )  # fmt: skip
    every: values.Seconds | None = key("time after which the changes start over; default: they happen once", None)
    clock: ClockName = key(
        "start of the time of `at`: the client's first packet, or the start of the client in a trial", Clock.PACKET,
        "packet",
    )  # fmt: skip

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.preset and (more := sorted(self.model_fields_set & {"uplink", "downlink", "both"})):
            hint = "keep one; to change a preset, write out its keys as `lab.py profiles` shows them"
            message = f"{quoted(more[0])} and `preset` both define the network"
            raise Slips([Slip((more[0],), Mistake(message, hint), at_key=True)])
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        slips = [*self.twice()]
        for direction in Direction:
            try:
                self.link(direction)
            except Slips as error:
                slips += [Slip((self.home(direction, slip.path[0]), *slip.path), slip.mistake) for slip in error.slips]
        for home in ("both", *Direction):
            own: DirectionKeys = getattr(self, home)
            if own.loss and own.loss.packets:
                mistake = Mistake(
                    "the next packet would be one of the lab's probes", "write it under `at`, at a moment"
                )
                slips.append(Slip((home, "loss", "packets"), mistake, at_key=True))
        raise_any(slips)
        raise_any(self._changing_slips())
        return self

    def _changing_slips(self) -> list[Slip]:
        """Mistakes of changes."""
        slips = [*self._slips_next_to_changes(), *self._rebind_slips()]
        for text, step in self.at.items():
            slips += [Slip(("at", text, *slip.path), slip.mistake, slip.at_key) for slip in self._step_slips(step)]
        if not slips:
            try:
                self.to_model("network")
            except ImpossibleImpairment as error:
                return [self._of_changes(error)]
            slips += self._idle_slips() if self.at else ()  # thousands of networks have none
        return slips

    def _idle_slips(self) -> Iterator[Slip]:
        """Mistakes of moments at which nothing changes."""
        before, moments = [self.link(direction) for direction in Direction], [*self.at]
        for text, step in sorted(self.at.items(), key=lambda item: seconds(item[0])):
            links = [self._linked(direction, step) for direction in Direction]
            is_next = any(link.loss == NEXT_PACKET for link in links)  # each moment takes another one
            if links == before and not step.rebind and not is_next:
                hint = "write what is different from then on, or `{}` to restore the beginning"
                hint = of_moment(text, moments[: moments.index(text)]) or hint
                yield Slip(("at", text), Mistake("nothing changes at this moment", hint), at_key=True)
            before = links

    def _slips_next_to_changes(self) -> Iterator[Slip]:
        """Mistakes of keys that need changes, or exclude them."""
        written = [name for name in ("at", *OWN_CHANGES) if name in self.model_fields_set or self._has(name)]
        if len(written) > 1:
            message = f"{quoted(written[0])} and {quoted(written[1])} both change the network"
            where = ("at",) if written[0] == "at" else (self._home(written[1]), written[1])
            yield Slip(where, Mistake(message, KEEP_ONE), at_key=True)
        if "at" in written:
            if not self.at:
                yield Slip(
                    ("at",), Mistake("`at` has no moment", "write one, such as `1s: {...}`, or remove it"), at_key=True
                )
            return
        for name in sorted(self.model_fields_set & ({"every"} if written else {"every", "clock"})):
            yield Slip((name,), Mistake(f"{quoted(name)} needs changes", "add `at`, or remove it"), at_key=True)

    def _rebind_slips(self) -> Iterator[Slip]:
        """Mistakes of a rebinding."""
        moments = [text for text, step in self.at.items() if step.rebind]
        for text in moments:
            if text != moments[0]:
                mistake = Mistake("a second rebinding", f"the client is rebound once, at {moments[0]}")
                yield Slip(("at", text, "rebind"), mistake, at_key=True)
            elif len(self.at) > 1 or self.at[text].model_fields_set != {"rebind"} or self.every is not None:
                hint = "leave the other changes to a separate profile"
                yield Slip(
                    ("at", text, "rebind"), Mistake("a rebinding is the only change of a network", hint), at_key=True
                )

    def _step_slips(self, step: StepKeys) -> Iterator[Slip]:
        """Mistakes of what begins at a moment."""
        yield from step.twice()
        for home in ("both", *Direction):
            for name, (message, hint) in OWN_CHANGES.items():
                if getattr(getattr(step, home), name):
                    yield Slip((home, name), Mistake(message, hint), at_key=True)
        for direction in Direction:
            try:
                self._linked(direction, step)
            except Slips as error:
                for slip in error.slips:
                    yield Slip((step.home(direction, slip.path[0]), *slip.path), slip.mistake, slip.at_key)

    def place_of_rate(self) -> tuple[str, ...]:
        """Way to the highest rate, at the beginning or at a moment; empty without any."""
        found: dict[tuple[str, ...], int] = {}
        for way, step in [((), self), *((("at", text), step) for text, step in self.at.items())]:
            for direction in Direction:
                if rate := self._linked(direction, step).rate:
                    found.setdefault((*way, step.home(direction, "rate"), "rate"), rate.rate_bps)
        return max(found, key=lambda way: found[way], default=())

    def _has(self, name: str) -> bool:
        return any(getattr(each, name, None) for each in (self.both, self.uplink, self.downlink))

    def _home(self, name: str) -> str:
        """The first direction, or `both`, that has a key."""
        return next(str(home) for home in ("both", *Direction) if getattr(getattr(self, home), name))

    def _of_changes(self, error: ImpossibleImpairment) -> Slip:
        """Mistake of changes, at the spell that is too short or at all of them."""
        group, _, name = error.where.partition(".")
        mistake = Mistake(str(error), error.hint)
        for direction in ("both", *Direction):
            if group == "spells" and getattr(self, direction).spells:
                return Slip((direction, group, name), mistake)
            if group == "queue" and getattr(self, direction).queue:
                return Slip((direction, group), mistake)
        return Slip(("every",), mistake) if group == "every" else Slip(("at",), mistake, at_key=True)

    def link(self, direction: Direction) -> Link:
        """Impairments with which one direction begins. Raises Slips."""
        return self._linked(direction, StepKeys())

    def _linked(self, direction: Direction, step: StepKeys) -> Link:
        """Impairments of one direction during a step. Raises Slips."""
        base = network(self.preset) if self.preset else self
        return DirectionKeys().model_copy(update=base.written(direction) | step.written(direction)).link()

    def changes(self, direction: Direction) -> Changes | None:
        """Changes of one direction. Raises Slips, and ImpossibleImpairment."""
        spells: SpellsKeys | None = self.written(direction).get("spells")
        if spells:
            return spells.changes(self.link(direction))
        trace: Trace | None = self.written(direction).get("trace")
        if trace:
            return trace
        steps = sorted(((seconds(text), step) for text, step in self.at.items()), key=itemgetter(0))
        links = tuple(self._linked(direction, step) for _, step in steps)
        if all(link == self.link(direction) for link in links):
            return None
        return Steps(tuple(at_s for at_s, _ in steps), links, self.every)

    def to_model(self, name: str) -> Profile:
        """Convert to a Profile; cannot fail once the model exists."""
        up, down = (self.changes(direction) for direction in Direction)
        links = (self.link(direction) for direction in Direction)
        found = (Rebinding(seconds(text), step.rebind) for text, step in self.at.items() if step.rebind)
        return Profile(
            name, *links, uplink_changes=up, downlink_changes=down, clock=self.clock, rebinding=next(found, None)
        )


def of_moment(text: str, before: Sequence[str]) -> str:
    """Hint for a moment that is probably a time after the last one written before it; empty if it is later anyway."""
    last_s = 0.0
    try:
        for each in before:
            last_s = float(TIME.parse(each.removeprefix("+"))) + (last_s if each.startswith("+") else 0.0)
        moment_s = float(TIME.parse(text.removeprefix("+")))
    except Mistake:
        return ""
    if last_s == 0.0 or (moment_s > last_s and not text.startswith("+")):
        return ""
    last, meant = (as_written("delay_s", each) for each in (last_s, last_s + moment_s))
    return f"moments count from the start, and ascend: {text.removeprefix('+')} after {last} is `{meant}`"


@cache
def network(name: str) -> ProfileKeys:
    """Keys of a preset."""
    return ProfileKeys.model_validate(NETWORKS[name].written)


def _most_rate(profile: Profile, in_flight: float) -> str:
    """The highest rate whose product with the round trip is accepted, in whole Mbit/s or kbit/s."""
    links = [link for direction in Direction for link in profile.links(direction)]
    most_bps = max(link.rate.rate_bps for link in links if link.rate) * LARGEST_BDP_BYTES / in_flight
    step = 1_000_000 if most_bps >= 1_000_000 else 1_000
    return as_written("rate_bps", most_bps // step * step)


def window_slips(profiles: Mapping[str, ProfileKeys]) -> Iterator[Slip]:
    """Mistakes of networks over which a window would limit transfers."""
    for name, profile in profiles.items():
        model = profile.to_model(name)
        in_flight = largest_bdp_bytes(model)
        if in_flight <= LARGEST_BDP_BYTES:
            continue
        message = f"the rate of {quoted(name)} times its round trip is {in_flight / 1e6:.3g} MB"
        hint = (
            f"above {LARGEST_BDP_BYTES / 1e6:g} MB the windows of client and server would be measured, "
            f"not the protocols: with these delays, a rate of at most {_most_rate(model, in_flight)}; "
            "or `settings: as-shipped`, with which windows are part of the comparison"
        )
        delays = {direction: link.delay.delay_s for direction in Direction if (link := profile.link(direction)).delay}
        slowest = max(delays, key=lambda direction: delays[direction])
        if meant := another_unit("delay", delays[slowest]):
            place = ("profiles", name, profile.home(slowest, "delay"), "delay")
            yield Slip(place, Mistake(message, f"{meant}{hint}"), at_key=True)
        else:
            yield Slip(("profiles", name, *profile.place_of_rate()), Mistake(message, hint))


def another_unit(key: str, value: float) -> str:
    """Hint `did you mean `15ms`? ` for an implausible delay of 15 s, with the next unit; empty for plausible values."""
    unbelievable = {"delay": UNBELIEVABLE_DELAY_S, "jitter": UNBELIEVABLE_JITTER_S}
    if key == "rate" and 0 < value < UNBELIEVABLE_RATE_BPS:
        return f"did you mean `{as_written('rate_bps', value * STEP)}`? "
    if key in unbelievable and value >= unbelievable[key]:
        return f"did you mean `{as_written('delay_s', value / STEP)}`? "
    return ""
