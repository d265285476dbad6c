"""The keys under `arms` and `compare` in matrix.yaml: protocols with overrides, and the pairs to compare."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, create_model, model_validator

from headwind.arm import ARM_NAME, NO_OVERRIDES, TWINS, Arm, Overrides, Protocol
from headwind.format import enumerated
from headwind.matrix import values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Misspelt, Slip, Slips, Unserved
from headwind.matrix.servers import ServerKeys
from headwind.matrix.spelling import nearest
from headwind.matrix.units import Mistake, choose, quoted, scalar
from headwind.matrix.values import Short, Written
from headwind.matrix.workload import WorkloadKeys
from headwind.metric import Workload
from headwind.servers import FURTHER, NGINX, SERVERS, Offer, Program, Server
from headwind.settings import Windows
from headwind.workloads import KEYS

MOST_ARMS = 8  # in a block
MOST_PAIRS = 15  # comparisons in each condition: six arms with each other. Each more makes every verdict dearer
PAIRS_ARMS = "`compare` pairs protocols or arms, in each network"
LONGEST_NAME = 32  # characters


def arm_name(value: Any) -> str:
    """Check the name of an arm, `h2-bbr`: its protocol, then words of letters and digits. Raises Mistake."""
    text = scalar(value, "`h2-bbr`")
    found = ARM_NAME.fullmatch(text)
    if not found or len(text) > LONGEST_NAME:
        raise Mistake(
            f"{quoted(text)} cannot be the name of an arm",
            f"its protocol, then letters, digits and dashes, such as `h2-bbr`; at most {LONGEST_NAME} characters",
        )
    if found[2].rpartition("-")[2] in list(TWINS):
        raise Mistake(
            f"{quoted(text)} is what a self-check's twin of {quoted(text.rpartition('-')[0])} is called",
            "another last word",
        )
    return text


ArmName = Annotated[
    str,
    Written(arm_name, {"type": "string", "pattern": f"^{ARM_NAME.pattern}$", "maxLength": LONGEST_NAME}),
]


ServerUsed = Annotated[
    str, Written(lambda value: scalar(value, f"`{FURTHER[0]}`"), {"type": "string", "examples": list(SERVERS)})
]


class ArmSettingsKeys(Keys):
    """Windows and buffers of the programs at both ends, for one arm; an omitted one follows the matrix."""

    server: values.Windows | None = key("the server's", None)
    client: values.Windows | None = key("h2load's, and whether it pads QUIC packets", None)


def _each_optional(kinds: Sequence[type[WorkloadKeys]]) -> type[Keys]:
    """The type of a mapping with all keys, each optional, of all kinds that an arm can set.

    A key that several kinds have is read as the first of them reads it.
    """
    fields: dict[str, Any] = {}
    for keys in kinds:
        for name, field in keys.model_fields.items():
            if name in keys.same_for_all or name in fields:
                continue
            read: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            fields[name] = (read | None, Field(None, description=field.description))
    return create_model("WorkloadOverridesKeys", __base__=Keys, **fields)


if TYPE_CHECKING:
    WorkloadOverrides = Keys
else:
    WorkloadOverrides = _each_optional(KEYS)


def _other_control(text: str, server: Server) -> str:
    """Hint for a congestion control that a server's QUIC lacks."""
    if near := nearest(text, list(server.quic_congestion)):
        return f"did you mean {quoted(near)}?"
    having = [each.name for each in SERVERS.values() if nearest(text, list(each.quic_congestion)) and each != server]
    other = f", or write `server: {having[0]}`" if having else ""
    others = "" if having else f"; {values.OTHER_QUIC}"
    return f"remove the arm, or this key{other}: arms of h1 and h2 can have all that Linux has{others}"


class ArmKeys(WorkloadOverrides):
    """A protocol with its overrides: server, keys of the workload, congestion control, windows."""

    protocol: values.Protocol = key("HTTP version; the arm's name begins with it")
    server: ServerUsed = key(
        f"which serves the arm: {', '.join(SERVERS)}, or a name from `servers` of this file", NGINX.name, NGINX.name
    )
    congestion: (
        Annotated[str, Written(lambda value: scalar(value, "`bbr`"), {"enum": values.TCP_CONGESTION})] | None
    ) = key("the kernel's for h1 and h2, the server's for h3, in place of what `congestion` says for all", None)
    settings: Annotated[ArmSettingsKeys, Short(("server", "client"))] | None = key(
        "windows and buffers, in place of what `settings` says for all", None
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        server = SERVERS.get(self.server)  # `server_slips` refuses it for the user's server
        if self.congestion is not None and (
            self.protocol is not Protocol.H3 or (server and server.speaks(self.protocol))
        ):
            try:
                if self.protocol is not Protocol.H3:
                    values.tcp_congestion(self.congestion)
                else:
                    values.quic_congestion(self.congestion, server or NGINX)
            except Mistake as mistake:
                is_other = self.protocol is Protocol.H3 and not isinstance(mistake, Misspelt)
                own = Mistake(str(mistake), _other_control(self.congestion, server or NGINX)) if is_other else mistake
                raise Slips([Slip(("congestion",), own)]) from None
        return self

    @property
    def overrides(self) -> Overrides:
        """The settings that differ from those of the matrix."""
        settings = self.settings or ArmSettingsKeys()
        own = ((name, getattr(self, name)) for name in WorkloadOverrides.model_fields if name in self.model_fields_set)
        return Overrides(tuple(own), self.congestion, settings.server, settings.client)

    def to_model(self, name: str, servers: Mapping[str, Server]) -> Arm:
        """The arm of this name; `servers` are those that it can have, by name."""
        return Arm(name, self.protocol, overrides=self.overrides, server=servers[self.server])


def arm_slips(
    protocols: Sequence[Protocol], arms: Mapping[str, ArmKeys], workloads: Mapping[str, WorkloadKeys]
) -> Iterator[Slip]:
    """Mistakes of arms among each other, and with the workloads that they override."""
    for name, arm in arms.items():
        place = ("arms", name)
        spoken, dash, _ = name.partition("-")
        if spoken != arm.protocol:
            mistake = Mistake(
                f"{quoted(name)} speaks {arm.protocol}", f"begin its name with {quoted(arm.protocol + '-')}"
            )
            yield Slip((*place, "protocol"), mistake)
        elif not dash and (arm.overrides != NO_OVERRIDES or arm.server != NGINX.name):
            hint = f"such as `{name}-{_word(arm)}`: {quoted(name)} is the one that sets nothing for itself"
            yield Slip(
                place,
                Mistake(f"{quoted(name)} sets something for itself and needs a name that says so", hint),
                at_key=True,
            )
        elif name in protocols:
            yield Slip(place, Mistake(f"{quoted(name)} appears twice", "it is in `protocols`, too"), at_key=True)
        yield from _workload_slips(name, arm, workloads)
        yield from _protocol_slips((*place, "protocol"), arm.protocol, workloads)
    for index, protocol in enumerate(protocols):
        yield from _protocol_slips(("protocols", index), protocol, workloads)
    if (count := len(protocols) + len(arms)) > MOST_ARMS:
        yield Slip(("arms",), Mistake(f"{count} arms are too many", f"a block runs at most {MOST_ARMS}"))


def _protocol_slips(
    place: tuple[str | int, ...], protocol: Protocol, workloads: Mapping[str, WorkloadKeys]
) -> Iterator[Slip]:
    """Mistake of a workload that cannot be carried out over a protocol."""
    for load, written in workloads.items():
        if protocol not in (written.model.protocols or Protocol):
            message = f"the workload {quoted(load)}, which is of kind {written.model.kind_key()}, has no {protocol}"
            yield Slip(place, Mistake(message, f"its client speaks {enumerated(written.model.protocols)} only"))


def _word(arm: ArmKeys) -> str:
    server = "" if arm.server == NGINX.name else arm.server
    return server or arm.congestion or next((str(value) for _, value in arm.overrides.workload), "other")


def server_slips(
    arms: Mapping[str, ArmKeys], servers: Mapping[str, Server], workloads: Mapping[str, WorkloadKeys], windows: Windows
) -> Iterator[Slip]:
    """Mistakes of arms with their servers; `windows` are those of servers for arms without windows."""
    for name, arm in arms.items():
        place = ("arms", name, "server")
        try:
            server = servers[choose(arm.server, list(servers), "a server of the lab or of this file")]
        except Mistake as mistake:
            yield Slip(place, mistake)
            continue
        if not server.speaks(arm.protocol) and not server.program:
            yield Slip(
                place,
                Mistake(
                    f"{server.name} does not speak {arm.protocol}", f"it speaks {enumerated(server.protocols)} only"
                ),
            )
        if Offer.WINDOWS not in server.offers and (arm.overrides.server_windows or windows) is Windows.AS_SHIPPED:
            yield Slip(
                place, Mistake(f"{server.name} has no windows `as-shipped`", "set `settings: {server: unlimited}`")
            )
        yield from _unoffered(name, arm, server, workloads)
        if server.program:
            yield from _own_slips(name, arm, server, server.program)
            yield from _certificate_slips(name, server, server.program, workloads)


def plain_slips(protocols: Sequence[Protocol], workloads: Mapping[str, WorkloadKeys]) -> Iterator[Slip]:
    """Mistakes of workloads that nginx, which serves `protocols`, cannot serve."""
    for load, written in workloads.items() if protocols else ():
        yield from _lacking(("workloads", load), written.workload(load), NGINX)


def unused_slips(arms: Mapping[str, ArmKeys], servers: Mapping[str, ServerKeys]) -> Iterator[Slip]:
    """Servers of the file that no arm names; none if an arm names an unknown one, which may be meant."""
    named = {arm.server for arm in arms.values()}
    if named - servers.keys() - SERVERS.keys():
        return
    for name in servers.keys() - named:
        spoken = next(iter(servers[name].protocols), Protocol.H3).value
        example = f"arms: {{{spoken}-{name}: {{protocol: {spoken}, server: {name}}}}}"
        yield Slip(
            ("servers", name), Mistake(f"no arm uses {quoted(name)}", f"remove it, or add {example}"), at_key=True
        )


def _unoffered(name: str, arm: ArmKeys, server: Server, workloads: Mapping[str, WorkloadKeys]) -> Iterator[Slip]:
    """Features that a workload of the arm needs and its server lacks."""
    for load, written in workloads.items():
        workload = _with_overrides(arm, written.workload(load)).over(arm.protocol.value)
        yield from _lacking(("arms", name, "server"), workload, server)


def _lacking(place: tuple[str, ...], workload: Workload, server: Server) -> Iterator[Slip]:
    for lacking in sorted(workload.needs - server.offers):
        having = enumerated(each.name for each in SERVERS.values() if lacking in each.offers)
        message = f"{server.name} cannot serve the workload {quoted(workload.name)}: it has no {lacking.words}"
        way = (
            f"name a server that can: {having}; or remove the arm" if place[0] == "arms" else f"{having} can, for arms"
        )
        if workload.kind == "ttfb" and lacking is Offer.SESSIONS:
            way += "; or, for new connections, use `kind: transfer`, which has `ttfb_s` as well"
        yield Slip(place, Unserved(message, f"{way}; or put {quoted(workload.name)} into a separate matrix file"))


def _with_overrides(arm: ArmKeys, workload: Workload) -> Workload:
    """The workload with the arm's values of the keys that it has."""
    names = {each.name for each in fields(workload)}
    own: dict[str, Any] = {key: value for key, value in arm.overrides.workload if key in names}
    return replace(workload, **own)


def _own_slips(name: str, arm: ArmKeys, server: Server, program: Program) -> Iterator[Slip]:
    """Settings of an arm that the user's server cannot have."""
    if not server.speaks(arm.protocol):
        message = f"{server.name} does not speak {arm.protocol}: its `protocols` are {', '.join(program.protocols)}"
        hint = f"add {arm.protocol} to `protocols` of {quoted(server.name)} if it does, or remove the arm"
        yield Slip(("arms", name, "server"), Mistake(message, hint))
    if arm.protocol is Protocol.H3 and arm.congestion is not None:
        message = f"the lab cannot set the congestion control of {server.name}'s QUIC"
        yield Slip(
            ("arms", name, "congestion"), Mistake(message, "remove it; `command` or `env` of the server may set it")
        )


def _certificate_slips(
    name: str, server: Server, program: Program, workloads: Mapping[str, WorkloadKeys]
) -> Iterator[Slip]:
    """Pages of the user's server of h3 alone: the browser's agent reads the certificate over TCP."""
    pages = [load for load, written in workloads.items() if written.workload(load).browser]
    if pages and not {"h1", "h2"} & set(program.protocols):
        message = f"{quoted(server.name)} speaks h3 alone, and a browser needs its certificate over TCP"
        hint = f"leave {enumerated(map(quoted, pages))} to a separate matrix file"
        yield Slip(("arms", name, "server"), Mistake(message, hint))


def _lacking_keys(name: str, own: Mapping[str, Any], workloads: Mapping[str, WorkloadKeys]) -> Iterator[Slip]:
    """Mistakes of an arm's keys that some workloads do not have, each once."""
    for field, value in own.items():
        if alike := [load for load, keys in workloads.items() if field in type(keys).same_for_all]:
            message = f"{quoted(field)} of the workload {quoted(alike[0])} is the same for all arms"
            yield Slip(("arms", name, field), Mistake(message, "remove it from this arm, or write a second workload"))
            continue
        having = [load for load, keys in workloads.items() if field in type(keys).model_fields]
        lacking = {load: keys.model.kind_key() for load, keys in workloads.items() if load not in having}
        if not lacking:
            continue
        names, kinds = enumerated(map(quoted, lacking)), enumerated(dict.fromkeys(lacking.values()))
        one, of_kind = len(lacking) == 1, f"of kind {kinds}"
        message = f"the workload{'' if one else 's'} {names}, {of_kind}, {'has' if one else 'have'} no {quoted(field)}"
        shared = f"`{field}: {value}` in the workload {quoted(having[0])} is for all arms; or " if having else ""
        possible = dict.fromkeys(f"`kind: {each.model.kind_key()}`" for each in KEYS if field in each.model_fields)
        rest = f"leave {names} to a separate matrix file" if having else f"use {' or '.join(possible)}, or remove it"
        yield Slip(("arms", name, field), Mistake(message, f"an arm sets keys that every workload has: {shared}{rest}"))


def _workload_slips(name: str, arm: ArmKeys, workloads: Mapping[str, WorkloadKeys]) -> Iterator[Slip]:
    """Mistakes of workloads with the overrides of an arm; each mistake once."""
    own = dict(arm.overrides.workload)
    reported: set[str] = set()
    yield from _lacking_keys(name, own, workloads)
    for load, written in workloads.items():
        workload = _with_overrides(arm, written.workload(load))
        over = workload.over(arm.protocol.value)
        named = own.keys() & type(written).model_fields & {each.name for each in fields(workload)}
        for field in named - type(written).same_for_all:
            if getattr(over, field) != getattr(workload, field) and field not in reported:
                reported.add(field)
                message = f"`{field}: {own[field]}` has no effect on {arm.protocol}"
                yield Slip(("arms", name, field), Mistake(message, "remove it from this arm"))
        try:
            written.model_copy(update=own).check()
        except Slips as slips:
            for slip in slips.slips:
                if str(slip.mistake) not in reported:
                    reported.add(str(slip.mistake))
                    field = next((each for each in (*slip.path, *own) if each in own), "")
                    yield Slip(
                        ("arms", name, str(field)),
                        Mistake(f"with the workload {quoted(load)} {slip.mistake}", slip.mistake.hint),
                    )


def pair_slips(
    compare: Sequence[Sequence[str]] | None, names: Sequence[str], place: str, profiles: Collection[str]
) -> Iterator[Slip]:
    """Mistakes in the pairs to compare, or in comparing all.

    `names` are those of the arms, `place` is the key that lists them, `profiles` are the names of the networks.
    """
    if compare is None:
        count = len(list(combinations(names, 2)))
        if count > MOST_PAIRS:
            yield Slip(
                (place,),
                Mistake(
                    f"{len(names)} arms make {count} comparisons in each condition, and {MOST_PAIRS} are the most",
                    "name those that you want: `compare: [[h2-bbr, h2], ...]`",
                ),
            )
        return
    if len(compare) > MOST_PAIRS:
        yield Slip(("compare",), Mistake(f"{len(compare)} comparisons are too many", f"at most {MOST_PAIRS}"))
    seen: list[set[str]] = []
    for index, pair in enumerate(compare):
        wrong = list(_wrong_names(index, pair, names, profiles))
        yield from wrong
        if wrong:
            continue
        if not len(pair) == len(set(pair)) == 2:
            hint = "two arms: [candidate, baseline], such as [h2-bbr, h2]"
            if len(set(pair)) > 2:
                pairs = [f"[{one}, {two}]" for one, two in combinations(pair, 2)]
                hint = f"each pair is a list: {', '.join(pairs)}"
            yield Slip(("compare", index), Mistake("a comparison is of two different arms", hint))
        elif set(pair) in seen:
            mistake = Mistake(f"{quoted(' against '.join(pair))} appears twice", "each two arms are compared once")
            yield Slip(("compare", index), mistake)
        seen.append(set(pair))


def _wrong_names(index: int, pair: Sequence[str], names: Sequence[str], profiles: Collection[str]) -> Iterator[Slip]:
    for side, name in enumerate(pair):
        try:
            choose(name, list(names), "one of the arms of this file")
        except Mistake as mistake:
            hint = f"{quoted(name)} is a profile: {PAIRS_ARMS}; {mistake.hint}" if name in profiles else mistake.hint
            yield Slip(("compare", index, side), Mistake(str(mistake), hint))


def compared(compare: Sequence[Sequence[str]] | None, arms: Sequence[Arm]) -> tuple[tuple[Arm, Arm], ...]:
    """Candidate and baseline of each comparison; empty where all are compared with all."""
    by_name = {arm.name: arm for arm in arms}
    return tuple((by_name[new], by_name[base]) for new, base in compare or ())
