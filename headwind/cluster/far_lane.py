"""A lane whose testbed is on another machine: it is asked there trial by trial, and results go to the run's journal."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from headwind.cluster.messages import Answer, Asked, Call, Kind, Opened, Order
from headwind.errors import HeadwindError
from headwind.model import Place, Result, Trial
from headwind.testbed.agent import AgentDied
from headwind.trial.block import Record, Task, run_each
from headwind.trial.lane import AnyLane, HostLost

GOODBYE_S = 30.0  # how long one waits for a host that is needed no more


class Line(Protocol):
    """The connection to stations: cluster/link.py."""

    def ask(self, host: str, call: Call, check_stop: Callable[[], None], patience_s: float | None = None) -> Answer:
        """The call's last answer, however often it takes to ask. Raises what check_stop raises.

        And HostLost, where there was none for patience_s; None: for as long as a run can do without a host.
        """


@dataclass(slots=True)
class FarLane(AnyLane):
    """A lane of the station on `host`.

    A host that is not heard of any more breaks the trial that runs, as a testbed does; then the lane raises HostLost.
    """

    line: Line
    host: str
    order: Order
    opened: Opened | None = None
    _lost: HostLost | None = field(default=None, repr=False)

    def open(self) -> Opened:
        """The testbed there. Raises HeadwindError, HostLost or Stopped, and AgentDied where the lab broke."""
        if self._lost:
            raise self._lost
        if self.opened is None:
            self.check_stop()
            opened = self._lane_there(Asked.OPEN)
            self.opened, self.engine, self.lives = opened, opened.engine, self._named(opened.lives)
        return self.opened

    def another(self, number: int) -> FarLane:
        """One of the same station."""
        order = replace(self.order, number=number, engine=self.engine)
        return FarLane(self.line, self.host, order, engine=self.engine, settings=self.settings, number=number)

    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """One call for each."""
        return run_each(task, record, self.place, self._attempt)

    def _attempt(self, trial: Trial, attempt: int) -> Result:
        try:
            result = self._ask(Asked.ATTEMPT, trial=trial, attempt=attempt).result
            if result is None:
                raise HeadwindError(f"{self.host}: its answer has no result")
            if result.place.testbed != self.place.testbed:  # it was built again after a long silence
                self.opened = None
                self.open()
        except HostLost as error:
            raise AgentDied(str(error)) from error
        return result

    def look_again(self) -> None:
        """There, where the host is still heard of."""
        if self.opened and not self._lost:
            with suppress(HeadwindError):
                self.lives = self._named(self._lane_there(Asked.LOOK_AGAIN, GOODBYE_S).lives)

    def drop(self, why: str) -> None:
        """There. A station that is not heard of does so by itself, in time."""
        opened, self.opened = self.opened, None
        if opened and not self._lost:
            with suppress(HeadwindError):
                self.lives = self._named(self._lane_there(Asked.DROP, GOODBYE_S, lambda: None, why=why).lives)

    @property
    def facts(self) -> dict[str, Any]:
        """Of the testbed's hosts, there."""
        return self.opened.facts if self.opened else {}

    @property
    def place(self) -> Place:
        """The host, as it calls itself."""
        return Place(self.host, self.number, self.opened.testbed if self.opened else "", self.engine)

    def _named(self, lives: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"host": self.host, **life} for life in lives]

    def _lane_there(self, *asked: Any, **more: Any) -> Opened:
        opened = self._ask(*asked, **more).opened
        if opened is None:
            raise HeadwindError(f"{self.host}: its answer has no lane")
        return opened

    def _ask(
        self,
        asked: Asked,
        patience_s: float | None = None,
        check_stop: Callable[[], None] | None = None,
        **more: Any,
    ) -> Answer:
        call = Call(uuid.uuid4().hex, asked, replace(self.order, engine=self.engine), **more)
        try:
            answer = self.line.ask(self.host, call, check_stop or self.check_stop, patience_s)
        except HostLost as error:
            self._lost = error
            raise
        if answer.kind is Kind.LAB_TROUBLE:
            raise AgentDied(answer.text)
        if answer.kind is not Kind.DONE:
            raise HeadwindError(f"{self.host}: {answer.text}")
        return answer
