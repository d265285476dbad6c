"""What the agents can be asked for, and the types of their answers (impair/messages.py).

`agent.call(COUNTERS)` is an EndpointCounters. What is kept as it comes, for people and other programs, is asked for by
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from headwind.proof.evidence import Fingerprint, WindowSizes
from impair.ability import Ability
from impair.messages import (
    Answers,
    ClientRun,
    EndpointCounters,
    FarEnds,
    Fetched,
    Health,
    Hello,
    NetemState,
    RouterCounters,
    RouterHello,
    TrainSeen,
    TrainSent,
)
from impair.profile import Direction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """A name on the wire, and the type of the answer; None where it is whatever JSON came."""

    name: str
    answer: TypeAdapter[T] | None = None

    def read(self, data: Any) -> T:
        """The answer, out of its JSON. Raises ValueError, which says what is wrong where."""
        if self.answer is None:
            anything: T = data
            return anything
        try:
            return self.answer.validate_python(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join([self.name, *map(str, first['loc'])])}: {first['msg']}") from error


# Of every host that has counters
EXAMINE = Operation("examine", TypeAdapter(list[str]))
FAR_ENDS = Operation("far_ends", TypeAdapter(FarEnds))
FINGERPRINT = Operation("fingerprint", TypeAdapter(Fingerprint))
# Of client and server
HELLO = Operation("hello", TypeAdapter(Hello))
COUNTERS = Operation("counters", TypeAdapter(EndpointCounters))
USE_CONGESTION = Operation("use_congestion", TypeAdapter(dict[str, Any]))
CONGESTION_SEEN = Operation("congestion_seen", TypeAdapter(list[str]))
SEND_TRAIN = Operation("send_train", TypeAdapter(TrainSent))
TRAIN_SEEN = Operation("train_seen", TypeAdapter(TrainSeen))
RUN = Operation("run", TypeAdapter(ClientRun))  # and what its kind of workload adds
FETCH = Operation("fetch", TypeAdapter(Fetched))
HEALTH = Operation("health", TypeAdapter(Health))
WINDOWS = Operation("windows", TypeAdapter(WindowSizes))
ANSWERS = Operation("answers", TypeAdapter(Answers))
# Of the router
PROBE = Operation("probe", TypeAdapter(Ability))
SETUP = Operation("setup", TypeAdapter(RouterHello))
APPLY = Operation("apply", TypeAdapter(dict[Direction, NetemState]))
SHOW = Operation("show", TypeAdapter(RouterCounters))
