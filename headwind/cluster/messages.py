"""The questions of a run and the answers of workers on other machines, as data classes and as JSON.

Nothing is pickled: reading a pickle runs code of its writer's choice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from headwind.model import Result, Trial
from headwind.run.codec import result_from_json, result_to_json, trial_from_json, trial_to_json
from headwind.servers import SERVERS
from headwind.settings import TrialRules
from headwind.testbed.bed_spec import BedSpec
from impair.profile import Profile

T = TypeVar("T")


def _result_to_json(result: Result) -> dict[str, Any]:
    return {"record": result_to_json(result), "samples": dict(result.samples)}


def _result_from_json(data: Mapping[str, Any]) -> Result:
    return result_from_json(data["record"], data["samples"])


def _bed_to_json(bed: BedSpec) -> dict[str, Any]:
    """All but the images of the user's servers and the content, which runs on other machines do not have."""
    bare = asdict(replace(bed, profiles=(), servers=(), own_images={}, content=None))
    profiles, servers = [profile.to_json() for profile in bed.profiles], [server.name for server in bed.servers]
    return {**bare, "profiles": profiles, "servers": servers}


def _bed_from_json(data: Mapping[str, Any]) -> BedSpec:
    profiles = tuple(map(Profile.from_json, data["profiles"]))
    servers = tuple(SERVERS[name] for name in data["servers"])
    bare = _BARE_BED.validate_python({**data, "profiles": (), "servers": ()})
    return replace(bare, profiles=profiles, servers=servers)


_BARE_BED = TypeAdapter(BedSpec)
SentBedSpec = Annotated[BedSpec, PlainValidator(_bed_from_json), PlainSerializer(_bed_to_json)]
SentTrial = Annotated[Trial, PlainValidator(trial_from_json), PlainSerializer(trial_to_json)]
SentResult = Annotated[Result, PlainValidator(_result_from_json), PlainSerializer(_result_to_json)]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine offered as a worker: its properties, which must match those of the run, and its number of lanes."""

    name: str
    code: str  # of the lab, as a digest
    images: Mapping[str, str]  # as in a run's environment
    facts: Mapping[str, Any]  # the same
    lanes: int  # at most

    def using(self, names: Collection[str]) -> Host:
        """The same machine with the named images only: others make no difference to a run."""
        return replace(self, images={name: image for name, image in self.images.items() if name in names})


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """The specification of a lane, sent with every call: a restarted worker can build the lane again."""

    run: str  # random, new for each lab process
    number: int  # the lane's
    bed: SentBedSpec  # each worker uses the tags of the images that it has
    rules: TrialRules
    tcp: tuple[str, ...]  # further congestion controls of TCP that the run needs

    def on(self, engine: str) -> LaneSpec:
        """The same lane on another engine."""
        return replace(self, bed=replace(self.bed, engine=engine))


class Asked(StrEnum):
    """The operations on a worker's lane."""

    OPEN = "open"  # gives Opened
    ATTEMPT = "attempt"  # gives a Result
    LOOK_AGAIN = "look again"  # gives Opened, too
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Call:
    """A call. Asked again under the same id, it is not repeated: its answer was kept."""

    id: str
    asked: Asked
    spec: LaneSpec
    trial: SentTrial | None = None
    attempt: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a worker: a call; or, without one, its properties for the requested number of lanes."""

    call: Call | None = None
    lanes: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """The testbed of a lane, now up, and all before it."""

    engine: str
    testbed: str
    facts: dict[str, Any]
    lives: list[dict[str, Any]]
    refused: dict[str, str]  # why a congestion control is not available there, by its name


class Kind(StrEnum):
    """The result type of a call."""

    NOT_YET = "not yet"
    BUSY = "busy"  # another run has the worker
    DONE = "done"
    LAB_TROUBLE = "lab trouble"  # a new testbed may help
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of a call so far."""

    kind: Kind
    opened: Opened | None = None
    result: SentResult | None = None
    text: str = ""  # an error message


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in (Question, Answer, Host)}


def to_text(message: Question | Answer | Host) -> str:
    """A message as JSON text. Infinity stays infinite, which pydantic's own text would turn into null."""
    return json.dumps(_ADAPTERS[type(message)].dump_python(message))


def from_text(kind: type[T], text: str) -> T:
    """The inverse of `to_text`. Raises KeyError, TypeError or ValueError for anything else."""
    try:
        message: T = _ADAPTERS[kind].validate_python(json.loads(text))
    except RecursionError as error:
        raise ValueError("a message is nested too deeply") from error
    return message
