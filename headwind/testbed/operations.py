"""The operations of the agents, and the types of their answers (impair/messages.py).

`agent.call(COUNTERS)` is an EndpointCounters. An operation requested by name gives its JSON answer unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from headwind.proof.evidence import Fingerprint, WindowSizes
from impair.capabilities import NetemCapabilities
from impair.messages import (
    Answers,
    ClientRun,
    Competed,
    Course,
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
    """A name on the wire, and the type of the answer; None if it is unspecified JSON."""

    name: str
    answer: TypeAdapter[T] | None = None

    def read(self, data: Any) -> T:
        """Parse the answer from JSON. Raises ValueError with the error and its position."""
        if self.answer is None:
            anything: T = data
            return anything
        try:
            return self.answer.validate_python(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join([self.name, *map(str, first['loc'])])}: {first['msg']}") from error


# Every host with counters
EXAMINE = Operation("examine", TypeAdapter(list[str]))
FAR_ENDS = Operation("veth_peers", TypeAdapter(FarEnds))
FINGERPRINT = Operation("fingerprint", TypeAdapter(Fingerprint))
# Client and server
HELLO = Operation("hello", TypeAdapter(Hello))
SENT = Operation("sent", TypeAdapter(int))
COUNTERS = Operation("counters", TypeAdapter(EndpointCounters))
USE_CONGESTION = Operation("use_congestion", TypeAdapter(dict[str, Any]))
CONGESTION_SEEN = Operation("congestion_seen", TypeAdapter(list[str]))
SEND_TRAIN = Operation("send_train", TypeAdapter(TrainSent))
TRAIN_SEEN = Operation("train_seen", TypeAdapter(TrainSeen))
COMPETE = Operation("compete", TypeAdapter(None))
END_COMPETITION = Operation("end_competition", TypeAdapter(Competed))
RUN = Operation("run", TypeAdapter(ClientRun))  # and the additions of its kind of workload
FETCH = Operation("fetch", TypeAdapter(Fetched))
HEALTH = Operation("health", TypeAdapter(Health))
WINDOWS = Operation("windows", TypeAdapter(WindowSizes))
ANSWERS = Operation("answers", TypeAdapter(Answers))
LOG = Operation("log", TypeAdapter(str))
# The router
PROBE = Operation("probe", TypeAdapter(NetemCapabilities))
SETUP = Operation("setup", TypeAdapter(RouterHello))
APPLY = Operation("apply", TypeAdapter(dict[Direction, NetemState]))
SHOW = Operation("show", TypeAdapter(RouterCounters))
REBOUND = Operation("rebound", TypeAdapter(int))
STOP_SCHEDULE = Operation("stop_schedule", TypeAdapter(Course))
