"""A station: what a machine does for a run that is led elsewhere. It has lanes with testbeds of its own.

Calls may be asked again, after a connection was lost or a laptop was closed: a trial that was finished meanwhile is not
run again, its result was kept. The journal is with the run; nothing is kept here beyond a lane's next call.
"""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwind.cluster.messages import Answer, Asked, Call, Host, Kind, Opened, Order
from headwind.errors import HeadwindError
from headwind.plan.arms import refused
from headwind.testbed.testbed import Testbed
from headwind.trial.block import LAB_TROUBLE
from headwind.trial.lane import Lane
from headwind.trial.trial import run_trial

BUSY_S = 60.0  # a run that was silent for so long may be displaced by another one
IDLE_S = 900.0  # testbeds of a run that was silent for so long are taken down; its last results stay

Up = Callable[[Order], AbstractContextManager[Testbed]]


def code_digest(root: Path) -> str:
    """12 hex digits that change with a byte of the host's code."""
    files = [root / "lab.py", *sorted((root / "headwind").rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


class Station:
    """Does what it is asked in threads of its own, so that whoever asks may go and come back."""

    def __init__(
        self, name: str, host: Callable[[int], Host], up: Up, *, busy_s: float = BUSY_S, idle_s: float = IDLE_S
    ) -> None:
        self.name, self.host, self._up = name, host, up  # what this machine is, given the lanes that are asked for
        self.busy_s, self.idle_s = busy_s, idle_s
        self._run, self._heard = "", 0.0
        self._lanes: dict[int, Lane] = {}
        self._lives: dict[int, list[dict[str, Any]]] = {}  # by lane, also of lanes that are gone
        self._ceiling: dict[str, Any] | None = None
        self._calls: dict[int, tuple[str, Future[Answer]]] = {}  # by lane: its last call
        self._guard = threading.Lock()

    def hear(self, call: Call, wait_s: float) -> Answer:
        """Begin with a call that is new, and wait so long for its end."""
        with self._guard:
            if not self._is_free_for(call.order.run):
                return Answer(Kind.BUSY, text="it works for another run")
            self._heard = time.monotonic()
            future = self._begun(call)
        if wait([future], wait_s).not_done:
            return Answer(Kind.NOT_YET)
        try:
            return future.result()
        except LAB_TROUBLE as error:
            return Answer(Kind.LAB_TROUBLE, text=str(error))
        except HeadwindError as error:
            return Answer(Kind.ERROR, text=str(error))
        except Exception:  # noqa: BLE001 - whoever asked is told
            return Answer(Kind.ERROR, text=traceback.format_exc())

    def _is_free_for(self, run: str) -> bool:
        """Whether this run has the station, or may have it now."""
        if run == self._run:
            return True
        if self._lanes and time.monotonic() - self._heard < self.busy_s:
            return False
        self._take_down()
        self._run = run
        self._lives, self._calls = {}, {}
        return True

    def _begun(self, call: Call) -> Future[Answer]:
        known, future = self._calls.get(call.order.number, ("", Future[Answer]()))
        if known == call.id:
            return future
        future = Future()
        self._calls[call.order.number] = call.id, future
        lane = self._lanes.get(call.order.number)
        if lane and call.asked is Asked.DROP:
            lane.stop()  # whatever it does now
        threading.Thread(target=self._do, args=(call, future), name=call.asked, daemon=True).start()
        return future

    def _do(self, call: Call, future: Future[Answer]) -> None:
        try:
            future.set_result(self._done(call))
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            future.set_exception(error)

    def _done(self, call: Call) -> Answer:
        number = call.order.number
        if call.asked is Asked.DROP:
            if lane := self._lanes.pop(number, None):
                lane.drop(call.why)
            return self._opened(number, None)
        lane = self._lane(call.order)
        if call.asked is Asked.LOOK_AGAIN:
            lane.look_again()
            return self._opened(number, lane)
        testbed = lane.open()
        self._ceiling = self._ceiling or lane.ceiling
        if call.asked is Asked.OPEN:
            return self._opened(number, lane, refused(call.order.tcp, testbed))
        assert call.trial
        result = run_trial(testbed, call.trial, call.order.timeout_s, call.attempt, settings=call.order.settings)
        return Answer(Kind.DONE, result=replace(result, place=lane.place))

    def _lane(self, order: Order) -> Lane:
        with self._guard:
            if order.number not in self._lanes:
                lane = Lane(
                    lambda engine: self._up(replace(order, engine=engine)),
                    order.timeout_s, self._ceiling, host=self.name, engine=order.engine, settings=order.settings,
                    number=order.number, lives=self._lives.setdefault(order.number, []),
                )  # fmt: skip
                self._lanes[order.number] = lane
            return self._lanes[order.number]

    def _opened(self, number: int, lane: Lane | None, lacks: dict[str, str] | None = None) -> Answer:
        testbed = lane.testbed if lane else None
        opened = Opened(
            lane.engine if lane else "", testbed.name if testbed else "", lane.facts if lane else {},
            list(self._lives.get(number, [])), lacks or {},
        )  # fmt: skip
        return Answer(Kind.DONE, opened)

    def rest(self) -> None:
        """Take testbeds down that nobody has asked for in `idle_s`; called now and then."""
        with self._guard:
            if self._lanes and time.monotonic() - self._heard > self.idle_s:
                self._take_down()

    def close(self) -> None:
        """Take everything down."""
        with self._guard:
            self._take_down()

    def _take_down(self) -> None:
        lanes, self._lanes = list(self._lanes.values()), {}
        for lane in lanes:
            lane.stop()
            lane.drop("its run is gone")
