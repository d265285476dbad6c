"""The questions of a run and the answers of stations on other machines, as data classes and as JSON.

Nothing is pickled: whoever reads a pickle runs what its writer wants.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from headwind.arm import Congestion
from headwind.model import Result, Trial
from headwind.run.codec import result_from_json, result_to_json, trial_from_json, trial_to_json
from headwind.settings import Settings
from impair.profile import Profile

T = TypeVar("T")


def _result_to_json(result: Result) -> dict[str, Any]:
    return {"record": result_to_json(result), "samples": dict(result.samples)}


def _result_from_json(data: Mapping[str, Any]) -> Result:
    return result_from_json(data["record"], data["samples"])


SentProfile = Annotated[Profile, PlainValidator(Profile.from_json), PlainSerializer(Profile.to_json)]
SentTrial = Annotated[Trial, PlainValidator(trial_from_json), PlainSerializer(trial_to_json)]
SentResult = Annotated[Result, PlainValidator(_result_from_json), PlainSerializer(_result_to_json)]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that offers itself: what must be alike on all machines of a run, and what it can carry."""

    name: str
    code: str  # of the lab, as a digest
    images: Mapping[str, str]  # ids
    facts: Mapping[str, Any]  # as a run's environment has them
    lanes: int  # at most


@dataclass(frozen=True, slots=True)
class Order:
    """What a lane is to be like, with every call: a station that began anew can make it again."""

    run: str  # drawn anew by each lab that runs
    number: int  # the lane's
    engine: str
    timeout_s: float
    settings: Settings
    congestion: Congestion
    profiles: tuple[SentProfile, ...]
    tcp: tuple[str, ...]  # further congestion controls of TCP that the run needs


class Asked(StrEnum):
    """What a station can be asked to do with a lane."""

    OPEN = "open"  # gives Opened
    ATTEMPT = "attempt"  # gives a Result
    LOOK_AGAIN = "look again"  # gives Opened, too
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Call:
    """One question. Asked again under the same id, it is not done again: its answer was kept."""

    id: str
    asked: Asked
    order: Order
    trial: SentTrial | None = None
    attempt: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a station is asked: a call; or, without one, what machine it is, given the lanes that a run asks for."""

    call: Call | None = None
    lanes: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A lane's testbed, which is up, and all before it."""

    engine: str
    testbed: str
    facts: dict[str, Any]
    lives: list[dict[str, Any]]
    refused: dict[str, str]  # why a congestion control cannot be had there, by its name


class Kind(StrEnum):
    """How a call ended."""

    NOT_YET = "not yet"
    BUSY = "busy"  # another run has the station
    DONE = "done"
    LAB_TROUBLE = "lab trouble"  # a new testbed may do better
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call, so far."""

    kind: Kind
    opened: Opened | None = None
    result: SentResult | None = None
    text: str = ""  # of an error, for people


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in (Question, Answer, Host)}


def to_text(message: Question | Answer | Host) -> str:
    """A message as JSON text. What is infinite stays so, which pydantic's own text would make null."""
    return json.dumps(_ADAPTERS[type(message)].dump_python(message))


def from_text(kind: type[T], text: str) -> T:
    """What `to_text` was given. Raises KeyError, TypeError or ValueError for anything else."""
    message: T = _ADAPTERS[kind].validate_python(json.loads(text))
    return message
