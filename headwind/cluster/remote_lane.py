"""A lane whose testbed is on another machine: it is called trial by trial, and results go to the run's journal."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from headwind.cluster.messages import Answer, Asked, Call, Kind, LaneSpec, Opened
from headwind.errors import HeadwindError
from headwind.model import Place, Result, Trial
from headwind.testbed.agent import AgentDied
from headwind.trial.block import Record, Task, run_each
from headwind.trial.lane import AnyLane, HostLost

GOODBYE_S = 30.0  # timeout for a host that is no longer needed


class Line(Protocol):
    """The connection to workers: cluster/connection.py."""

    def ask(self, host: str, call: Call, check_stop: Callable[[], None], patience_s: float | None = None) -> Answer:
        """The call's last answer, however often it is polled. Raises what check_stop raises.

        Raises HostLost after patience_s without an answer; None: for as long as a run can wait for a host.
        """


@dataclass(slots=True)
class RemoteLane(AnyLane):
    """A lane of the worker on `host`.

    A lost host breaks its current trial, as a broken testbed does; then the lane raises HostLost.
    """

    line: Line
    host: str
    spec: LaneSpec
    opened: Opened | None = None
    _lost: HostLost | None = field(default=None, repr=False)

    def open(self) -> Opened:
        """Bring its testbed up. Raises HeadwindError, HostLost or Stopped, and AgentDied if the lab broke."""
        if self._lost:
            raise self._lost
        if self.opened is None:
            self.check_stop()
            opened = self._lane_there(Asked.OPEN)
            self.opened, self.engine, self.lives = opened, opened.engine, self._named(opened.lives)
        return self.opened

    def another(self, number: int) -> RemoteLane:
        """Another lane of the same worker."""
        spec = replace(self.spec, number=number)
        return RemoteLane(self.line, self.host, spec, engine=self.engine, number=number)

    def trials(self, task: Task, record: Record) -> Iterator[Result]:
        """Run the trials, with a call for each."""
        return run_each(task, record, self.place, self._attempt)

    def _attempt(self, trial: Trial, attempt: int) -> Result:
        try:
            result = self._ask(Asked.ATTEMPT, trial=trial, attempt=attempt).result
            if result is None:
                raise HeadwindError(f"{self.host}: its answer has no result")
            if result.place.testbed != self.place.testbed:  # it was rebuilt after a long pause
                self.opened = None
                self.open()
        except HostLost as error:
            raise AgentDied(str(error)) from error
        return result

    def look_again(self) -> None:
        """Run the end-of-run path check on the remote testbed, if its host still answers."""
        if self.opened and not self._lost:
            with suppress(HeadwindError):
                self.lives = self._named(self._lane_there(Asked.LOOK_AGAIN, GOODBYE_S).lives)

    def drop(self, why: str) -> None:
        """Take the remote testbed down. An unreachable worker does so itself, after a timeout."""
        opened, self.opened = self.opened, None
        if opened and not self._lost:
            with suppress(HeadwindError):
                self.lives = self._named(self._lane_there(Asked.DROP, GOODBYE_S, lambda: None, why=why).lives)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the remote testbed's hosts."""
        return self.opened.facts if self.opened else {}

    @property
    def place(self) -> Place:
        """The remote host and testbed, by the worker's name."""
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
        call = Call(uuid.uuid4().hex, asked, self.spec.on(self.engine), **more)
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
