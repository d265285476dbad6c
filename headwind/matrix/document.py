"""The keys of matrix.yaml as pydantic models, and their conversion to the lab's data classes.

The models define the keys and how they fit together; headwind/matrix/reader.py knows the place of each value in the
file. A parsed field is in SI units. docs/matrix.schema.json is generated from the same models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import GenerateJsonSchema

from headwind.arm import Arm, Protocol, arm_named
from headwind.format import enumerated
from headwind.matrix import sweep, values
from headwind.matrix.arms import (
    ArmKeys,
    ArmName,
    arm_slips,
    compared,
    pair_slips,
    plain_slips,
    server_slips,
    unused_slips,
)
from headwind.matrix.content import ContentFolder, arm_content_slips, content_slips, with_files
from headwind.matrix.find import WantedKey, searched_slips
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.profile import ProfileKeys, window_slips
from headwind.matrix.published import Conditions, SourceKeys, published_slips
from headwind.matrix.run_keys import CongestionKeys, OneOrBoth, OrCount, PairsKeys, RepeatKeys, SelfCheckKeys
from headwind.matrix.servers import ServerKeys, ServerName
from headwind.matrix.shortest import endless_slips, unprobed_slips
from headwind.matrix.units import Mistake, choose, meant, quoted, scalar
from headwind.matrix.values import Short, whole
from headwind.matrix.workload import WorkloadKeys, of_its_kind
from headwind.metric import Use, Workload
from headwind.model import AUTO, Condition, Matrix
from headwind.servers import SERVERS, Server
from headwind.settings import Settings, Windows
from headwind.site import Site
from headwind.workloads import KEYS, KINDS, PLAIN
from impair.profile import Clock, Direction

USUALLY_JUDGED = tuple(metric.key for metric in KINDS[PLAIN].judged(None))
JUDGEABLE = list(dict.fromkeys(
    metric.key for kind in KINDS.values() for metric in kind.with_use(Use.JUDGED, Use.COMPARED)
))  # fmt: skip
Judged = Annotated[
    str, values.Written(lambda name: choose(scalar(name, USUALLY_JUDGED[0]), JUDGEABLE, "a metric that can be judged"),
                        {"enum": JUDGEABLE}),
]  # fmt: skip
if TYPE_CHECKING:
    AnyWorkloadKeys = WorkloadKeys
else:
    AnyWorkloadKeys = of_its_kind(KEYS)
MOST_TRIALS = 10_000  # at a second each nearly three hours; more is a typing error
LARGEST_SEED = 2**63 - 1  # largest integer of SQLite


class SettingsKeys(Keys):
    """Windows and buffers of the programs at both ends: `unlimited`, or `as-shipped`; docs/windows.md lists them."""

    server: values.Windows = key("windows of nginx", Windows.UNLIMITED, "unlimited")
    client: values.Windows = key("windows of h2load, and whether it pads QUIC packets", Windows.UNLIMITED, "unlimited")


class MatrixKeys(Keys):
    """An experiment: protocols x profiles x workloads. It needs `protocols`, `arms` or both."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["protocols"]}, {"required": ["arms"]}]})

    title: values.Title = key("heading of the report", "")
    protocols: list[values.Protocol] = key(
        "protocols to compare, without overrides; required without `arms`", [], minItems=1, uniqueItems=True
    )
    arms: dict[ArmName, ArmKeys] = key(
        "protocols with overrides, by a name that begins with the protocol, such as `h2-bbr`",
        {}, minProperties=1, additionalProperties=False,
    )  # fmt: skip
    servers: dict[ServerName, ServerKeys] = key(
        "your own servers, by name: images, which arms name under `server`", {}, minProperties=1,
        additionalProperties=False,
    )  # fmt: skip
    content: Annotated[Site, ContentFolder()] | None = key(
        "folder with your own site, relative to this file; every server of the lab serves its files", None
    )
    compare: list[list[values.NameUsed]] | None = key(
        "comparisons as [candidate, baseline]; default: every pair", None, minItems=1
    )
    congestion: OneOrBoth = key("congestion control", CongestionKeys(), "cubic")
    settings: Annotated[SettingsKeys, Short(("server", "client"))] = key(
        "windows and buffers of nginx and h2load: too large to limit a transfer, or their defaults",
        SettingsKeys(), "unlimited",
    )  # fmt: skip
    timeout: values.Timeout = key(
        "time limit of a trial; a stopped trial counts as slower than this", values.USUAL_TIMEOUT_S, "60s"
    )
    repeat: Annotated[RepeatKeys, OrCount()] = key(
        "blocks per condition (a block runs every protocol once): a number, or bounds within which the data decide",
        RepeatKeys(),
    )
    lanes: values.Lanes = key(
        "maximum number of parallel testbeds; `auto`: as many as the host has room for", AUTO, "auto"
    )
    seed: Annotated[int, whole(0, LARGEST_SEED)] = key("seed of the order of trials and of netem's random numbers", 1)
    profiles: dict[values.Name, ProfileKeys] = key("networks by name", minProperties=1, additionalProperties=False)
    workloads: dict[values.Name, AnyWorkloadKeys] = key(
        "workloads by name", minProperties=1, additionalProperties=False
    )
    conditions: list[PairsKeys] | None = key("combinations of profiles and workloads; default: all", None, minItems=1)
    smoke: list[PairsKeys] | None = key(
        "conditions of which `--smoke` runs one block each, to check that the experiment works; default: all",
        None, minItems=1,
    )  # fmt: skip
    judge: list[Judged] | None = key(
        "metrics with a verdict, by their names in files; default: those usual for the workload's kind, "
        f"for {PLAIN} {', '.join(USUALLY_JUDGED)}",
        None, minItems=1, uniqueItems=True,
    )  # fmt: skip

    selfcheck: SelfCheckKeys | None = key("self-check of the lab; default: none", None)
    find: WantedKey = key("search for the value of a network parameter at which the winner changes", None)
    published: dict[values.Name, SourceKeys] | None = key(
        "figures of earlier articles over these networks, by a short name; the report shows them next to its own",
        None, minProperties=1, additionalProperties=False,
    )  # fmt: skip

    @field_validator(
        "protocols", "arms", "servers", "compare", "profiles", "workloads", "conditions", "smoke", "judge", "published"
    )
    @classmethod
    def _some(cls, value: Any, info: ValidationInfo) -> Any:
        if not value:
            raise Mistake(f"`{info.field_name}` is empty", "at least one is needed")
        return value

    @field_validator("protocols")
    @classmethod
    def _each_once(cls, protocols: list[Protocol]) -> list[Protocol]:
        slips = [
            Slip((index,), Mistake(f"`{protocol}` appears twice", "a block runs each protocol once"))
            for index, protocol in enumerate(protocols)
            if protocol in protocols[:index]
        ]
        raise_any(slips)
        return protocols

    @property
    def _arm_names(self) -> list[str]:
        return [*self.protocols, *self.arms, *(name for names in self._unmeasured.values() for name in names)]

    @property
    def _unmeasured(self) -> dict[str, list[str]]:
        """Protocols that a file without `protocols` names elsewhere, by the key that names them first."""
        named = {
            "compare": [name for pair in self.compare or () for name in pair],
            "selfcheck": [self.selfcheck.protocol] if self.selfcheck else [],
            "find": [*self.find.crossover] if self.find else [],
        }
        found, seen = dict[str, list[str]](), {*self.arms}
        for place, names in named.items() if not self.protocols else ():
            own = sorted({name for name in names if name in list(Protocol)} - seen)
            found |= {place: own} if own else {}
            seen |= {*own}
        return found

    def _unmeasured_slips(self) -> Iterator[Slip]:
        """Mistake of a file that names protocols and lacks `protocols`: one for all of them."""
        every = sorted(name for names in self._unmeasured.values() for name in names)
        for place in [*self._unmeasured][:1]:
            message = f"`{place}` names {enumerated(every)}, and this file has no `protocols`"
            alike = [name for name, arm in self.arms.items() if arm.protocol in every]
            is_enough = {self.arms[name].protocol for name in alike} >= {*every}
            instead = f"name {' or '.join(map(quoted, alike))} instead, or " if is_enough else ""
            yield Slip((place,), Mistake(message, f"{instead}add `protocols: [{', '.join(every)}]`"), at_key=True)

    @property
    def _arms_word(self) -> str:
        return "arm" if self.arms else "protocol"

    @model_validator(mode="after")
    def _sane(self, info: ValidationInfo) -> Self:
        """Check that the keys fit together.

        A check is skipped if a key that it needs is wrong; the context lists those.
        """
        wrong: set[str] = (info.context or {}).get("wrong", set())
        self._few_enough(wrong)
        arms_word = "arms" if self.arms else "protocols"
        checks: dict[str, Callable[[], Iterable[Slip]]] = {
            "conditions": self._twice_slips,
            "conditions smoke": self._smoke_slips,
            "conditions profiles workloads published": lambda: published_slips(
                self.published or {}, Conditions(self._conditions())
            ),
            "protocols arms workloads": lambda: arm_slips(self.protocols, self.arms, self.workloads),
            "arms servers workloads settings": lambda: server_slips(
                self.arms, self._servers, self.workloads, self.settings.server
            ),
            "protocols workloads": lambda: plain_slips(self.protocols, self.workloads),
            "arms overrides servers": lambda: unused_slips(self.arms, self.servers),
            "protocols arms compare selfcheck find": self._unmeasured_slips,
            "protocols arms compare": lambda: pair_slips(self.compare, self._arm_names, arms_word, self.profiles),
            "protocols arms compare find": lambda: searched_slips(self.find, self._arm_names, self.compare),
            "protocols arms selfcheck": self._twin_slips,
            "profiles selfcheck": self._slower_slips,
            "profiles settings": lambda: [] if self.settings != SettingsKeys() else window_slips(self.profiles),
            "content servers workloads": lambda: content_slips(
                self.content, self.workloads, has_own_servers=bool(self.servers)
            ),
            "content arms": lambda: arm_content_slips(
                self.content, {name: "path" in dict(arm.overrides.workload) for name, arm in self.arms.items()}
            ),
            "judge": self._judged_twice_slips,
            "workloads judge": self._unjudged_slips,
            "conditions profiles workloads judge": self._lossless_slips,
            "workloads timeout": self._delay_slips,
            "conditions profiles workloads": self._rebound_slips,
        }
        found = [slip for needs, check in checks.items() if wrong.isdisjoint(needs.split()) for slip in check()]
        careful: dict[str, Callable[[], Iterable[Slip]]] = {
            "protocols arms overrides servers profiles workloads conditions timeout settings": self._endless_slips,
            "protocols arms overrides servers congestion workloads": self._uneven_slips,
            "profiles timeout": lambda: unprobed_slips(self.profiles, self.timeout),
        }
        for needs, check in careful.items():  # of keys in which the checks above found nothing
            if {*wrong, *(str(slip.path[0]) for slip in found)}.isdisjoint(needs.split()):
                found += check()
        raise_any(found)
        return self

    def _few_enough(self, wrong: set[str]) -> None:
        """Count the trials without listing them: two long lists make very many pairs. Raises Slips."""
        entries = self.conditions or [PairsKeys()]
        count = sum(len(pairs.profiles or self.profiles) * len(pairs.workloads or self.workloads) for pairs in entries)
        blocks = self.repeat.max if self.repeat.budget is None else self.repeat.min  # a budget bounds the others
        arms = len(self._arm_names)
        if (trials := count * blocks * arms) > MOST_TRIALS:
            if wrong:
                raise Slips([])
            product_ = f"{count} conditions x {blocks} blocks x {arms} {self._arms_word}s"
            mistake = Mistake(f"{product_} = {trials} trials", f"a run has at most {MOST_TRIALS}")
            raise Slips([Slip(("repeat",), mistake)])

    def _twice_slips(self) -> Iterator[Slip]:
        seen = set()
        entries = self.conditions or []
        for index, (one, other) in enumerate(pairwise(entries), 1):
            if one.model_fields_set == {"profiles"} and other.model_fields_set == {"workloads"}:
                message = "two entries, each with half of a condition"
                hint = "is the dash before `workloads` one too many? then it belongs to the entry above"
                yield Slip(("conditions", index), Mistake(message, hint))
                return
        for entry, *condition in self._pairs():
            if tuple(condition) in seen:
                message = f"the condition {quoted('/'.join(condition))} appears twice"
                yield Slip(("conditions", entry), Mistake(message, "for more blocks of it raise `repeat`"))
            seen.add(tuple(condition))

    def _smoke_slips(self) -> Iterator[Slip]:
        known = {tuple(condition) for _, *condition in self._pairs()}
        for entry, *condition in self._pairs(self.smoke or []):
            if tuple(condition) not in known:
                mistake = Mistake(f"there is no condition {quoted('/'.join(condition))}", "`conditions` leaves it out")
                yield Slip(("smoke", entry), mistake)

    def _judged_twice_slips(self) -> Iterator[Slip]:
        judged = self.judge or []
        for index, name in enumerate(judged):
            if name in judged[:index]:
                yield Slip(("judge", index), Mistake(f"`{name}` appears twice", "it is judged once"))

    def _unjudged_slips(self) -> Iterator[Slip]:
        """Mistakes of workloads that are left without a metric."""
        loads = self._loads() if self.judge is not None else {}
        known = {metric.key for load in loads.values() for metric in load.judged(JUDGEABLE)}
        for name, load in loads.items():
            if not load.judged(self.judge):
                possible = " or ".join(quoted(metric.key) for metric in load.judged(JUDGEABLE))
                message = f"no metric of the workload {quoted(name)} is judged"
                change = f"write {possible} instead" if known.isdisjoint(self.judge or []) else f"add {possible}"
                yield Slip(("judge",), Mistake(message, f"each workload needs a metric that it has: {change}"))
        for index, name in enumerate(self.judge or []):
            if name not in known and not known.isdisjoint(self.judge or []):
                hint = f"remove it, or judge {' or '.join(map(quoted, sorted(known)))}"
                yield Slip(("judge", index), Mistake(f"no workload of this file has {quoted(name)}", hint))

    def _endless_slips(self) -> Iterator[Slip]:
        """Mistakes of networks over which no arm can finish within the timeout."""
        settings = Settings(self.settings.server, self.settings.client)
        return endless_slips(self.profiles, self._conditions(), self._arms().values(), self.timeout, settings)

    def _lossless_slips(self) -> Iterator[Slip]:
        """Mistake of judging only what follows a loss, over a network that causes none."""
        for condition in self._conditions() if self.judge is not None else ():
            judged = condition.workload.judged(self.judge)
            if judged and not condition.possible(judged):
                name, metric = quoted(condition.profile.name), judged[0].key
                why = f"no change of {name} drops packets of the downlink"
                if condition.drops_by_a_change:
                    why = f"{name} has {'a `rate`' if condition.profile.clock is Clock.PACKET else '`clock: trial`'}"
                message = f"{quoted(metric)} is judged alone, and {why}"
                hint = f"add {quoted(condition.workload.primary().key)}, or list the pairs you want under `conditions`"
                yield Slip(("judge",), Mistake(message, hint))
                return

    def _loads(self) -> dict[str, Workload]:
        return {
            name: with_files(written, written.workload(name), self.content) for name, written in self.workloads.items()
        }

    def _delay_slips(self) -> list[Slip]:
        """Mistakes of server delays that no trial would wait for."""
        hint = f"a trial is stopped after the `timeout`, {self.timeout:g}s"
        return [
            Slip(("workloads", name, "server_delay"), Mistake("the server would answer when the trial is over", hint))
            for name, load in self._loads().items()
            if load.server_delay_s >= self.timeout
        ]

    def _uneven_slips(self) -> Iterator[Slip]:
        """Mistakes of competing downloads that would have another congestion control in each arm: TCP's is a host's."""
        arms, usual = self._arms().values(), self.congestion.to_model()
        for name, load in self._loads().items():
            used = sorted({arm.congestion(usual, load).tcp for arm in arms})
            if load.competing and used[1:]:
                message = f"competing downloads over TCP would have {' or '.join(used)}, as the arm of the trial"
                hint = "use arms with the same congestion control of TCP"
                yield Slip(("workloads", name, "competing"), Mistake(message, hint))

    def _rebound_slips(self) -> Iterator[Slip]:
        """Mistakes of competing downloads whose connections the rebinding of a network breaks."""
        hint = "list the pairs that you want under `conditions`, without this one"
        for condition in self._conditions():
            if condition.workload.competing and condition.profile.rebinding:
                message = f"competing downloads over TCP end when {quoted(condition.profile.name)} rebinds the client"
                yield Slip(("workloads", condition.workload.name, "competing"), Mistake(message, hint))

    def _twin_slips(self) -> Iterator[Slip]:
        """Mistake of a self-check whose arm does not exist."""
        if self.selfcheck and self.selfcheck.protocol not in self._arm_names:
            message = f"`{self.selfcheck.protocol}` is not one of the {self._arms_word}s of this file"
            hint = f"a twin is compared with its {self._arms_word}; {meant(self.selfcheck.protocol, self._arm_names)}"
            yield Slip(("selfcheck", "protocol"), Mistake(message, hint))

    def _slower_slips(self) -> Iterator[Slip]:
        """Mistakes of self-checks over a network that cannot be made slower."""
        for index, name in enumerate(self.selfcheck.slower if self.selfcheck else ()):
            links = [self.profiles[name].link(direction) for direction in Direction]
            if not any(link.rate or (link.delay and link.delay.delay_s > 0) for link in links):
                message = f"{quoted(name)} has no delay and no rate that could be slower"
                yield Slip(("selfcheck", "slower", index), Mistake(message, "choose a profile with a delay or a rate"))

    def _pairs(self, entries: Sequence[PairsKeys] | None = None) -> list[tuple[int, str, str]]:
        """Entry, profile and workload of every pair in `conditions`, or in other entries, in the order of the file."""
        return [
            (entry, profile, workload)
            for entry, pairs in enumerate(self.conditions or [PairsKeys()] if entries is None else entries)
            for profile, workload in product(pairs.profiles or self.profiles, pairs.workloads or self.workloads)
        ]

    def _conditions(self) -> tuple[Condition, ...]:
        profiles = {name: written.to_model(name) for name, written in self.profiles.items()}
        workloads = self._loads()
        return tuple(Condition(profiles[profile], workloads[load]) for _, profile, load in self._pairs())

    def _arms(self) -> dict[str, Arm]:
        return {name.value: arm_named(name) for name in self.protocols} | {
            name: written.to_model(name, self._servers) for name, written in self.arms.items()
        }

    @property
    def _servers(self) -> dict[str, Server]:
        return SERVERS | {name: written.to_model(name) for name, written in self.servers.items()}

    def to_model(self, source: str, path: str) -> Matrix:
        """Convert to the experiment; `source` is the text of the file at `path`."""
        conditions = self._conditions()
        called = Conditions(conditions)
        arms = self._arms()
        compare = compared(self.compare, tuple(arms.values()))
        pairs = [frozenset(map(str, pair)) for pair in compare or combinations(arms, 2)]
        return Matrix(
            arms=tuple(arms.values()),
            conditions=conditions,
            repeat=self.repeat.to_model(),
            timeout_s=self.timeout,
            seed=self.seed,
            congestion=self.congestion.to_model(),
            settings=Settings(self.settings.server, self.settings.client),
            lanes=self.lanes,
            title=self.title,
            source=source,
            path=path,
            selfcheck=self.selfcheck.to_model(arms) if self.selfcheck else None,
            judge=None if self.judge is None else tuple(self.judge),
            published=tuple(
                written.to_model(name, called, list(arms), pairs) for name, written in (self.published or {}).items()
            ),
            compare=compare,
            find=self.find.to_model(arms, conditions) if self.find else None,
            content=self.content,
            smoke=tuple(f"{profile}/{workload}" for _, profile, workload in self._pairs(self.smoke or [])),
        )


class _Schema(GenerateJsonSchema):
    """JSON schema without the titles and nulls that pydantic derives from Python: YAML omits an absent key."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the signature is pydantic's
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        if isinstance(schema.get("default"), str | int) and not isinstance(schema["default"], float):
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of matrix.yaml, for editors."""
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    found = dialect | MatrixKeys.model_json_schema(schema_generator=_Schema)
    sweep.as_written(found["$defs"]["DirectionKeys"]["properties"])
    return found
