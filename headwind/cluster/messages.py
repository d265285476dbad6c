"""What a run and the stations on other machines say to each other. Both sides run the same code: it is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headwind.arm import Congestion
from headwind.model import Trial
from headwind.settings import Settings
from impair.profile import Profile


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
    profiles: tuple[Profile, ...]
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
    trial: Trial | None = None
    attempt: int = 0
    why: str = ""


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
    value: Any = None
    text: str = ""  # of an error, for people
