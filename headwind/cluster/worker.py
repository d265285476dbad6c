"""A worker: runs lanes on its testbeds for a controller on another machine.

Calls may be repeated after a lost connection or a suspended laptop: a trial that finished meanwhile is not run again,
because its result was kept. The journal is with the controller; a worker only keeps results until a lane's next call.
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

from headwind.cluster.messages import Answer, Asked, Call, Host, Kind, LaneSpec, Opened
from headwind.errors import HeadwindError
from headwind.plan.arms import refused
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.testbed import Testbed
from headwind.trial.block import LAB_TROUBLE
from headwind.trial.lane import Lane
from headwind.trial.trial import run_trial

BUSY_S = 60.0  # another run may displace a run that was silent for this long
IDLE_S = 900.0  # testbeds of a run that was silent for this long are taken down; its last results stay

Up = Callable[[BedSpec], AbstractContextManager[Testbed]]  # with the tags of the worker's own images


def code_digest(root: Path) -> str:
    """12 hex digits that depend on every byte of the host's code."""
    files = [root / "lab.py", *sorted((root / "headwind").rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


class RunWorker:
    """Executes calls in its own threads, so that the controller may disconnect and reconnect."""

    def __init__(
        self, name: str, host: Callable[[int], Host], up: Up, *, busy_s: float = BUSY_S, idle_s: float = IDLE_S
    ) -> None:
        self.name, self.host, self._up = name, host, up  # its properties, for a number of requested lanes
        self.busy_s, self.idle_s = busy_s, idle_s
        self._run, self._heard = "", 0.0
        self._lanes: dict[int, Lane] = {}
        self._lives: dict[int, list[dict[str, Any]]] = {}  # by lane, also of lanes that are gone
        self._ceiling: dict[str, Any] | None = None
        self._calls: dict[int, tuple[str, Future[Answer]]] = {}  # by lane: its last call
        self._guard = threading.Lock()

    def hear(self, call: Call, wait_s: float) -> Answer:
        """Start a new call, and wait for its end for a limited time."""
        with self._guard:
            if not self._is_free_for(call.spec.run):
                return Answer(Kind.BUSY, text="it is in use by another run")
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
        except Exception:  # noqa: BLE001 - the caller gets the error
            return Answer(Kind.ERROR, text=traceback.format_exc())

    def _is_free_for(self, run: str) -> bool:
        """Whether this run has the worker, or may take it now."""
        if run == self._run:
            return True
        if self._lanes and time.monotonic() - self._heard < self.busy_s:
            return False
        self._take_down()
        self._run = run
        self._lives, self._calls = {}, {}
        return True

    def _begun(self, call: Call) -> Future[Answer]:
        known, future = self._calls.get(call.spec.number, ("", Future[Answer]()))
        if known == call.id:
            return future
        future = Future()
        self._calls[call.spec.number] = call.id, future
        lane = self._lanes.get(call.spec.number)
        if lane and call.asked is Asked.DROP:
            lane.stop()  # in any state
        threading.Thread(target=self._do, args=(call, future), name=call.asked, daemon=True).start()
        return future

    def _do(self, call: Call, future: Future[Answer]) -> None:
        try:
            future.set_result(self._done(call))
        except BaseException as error:  # noqa: BLE001 - the caller gets the error
            future.set_exception(error)

    def _done(self, call: Call) -> Answer:
        number = call.spec.number
        if call.asked is Asked.DROP:
            if lane := self._lanes.pop(number, None):
                lane.drop(call.why)
            return self._opened(number, None)
        lane = self._lane(call.spec)
        if call.asked is Asked.LOOK_AGAIN:
            lane.look_again()
            return self._opened(number, lane)
        testbed = lane.open()
        path = testbed.path(call.trial.arm.server.name if call.trial else "")
        self._ceiling = self._ceiling or lane.ceiling
        if call.asked is Asked.OPEN:
            return self._opened(number, lane, refused(call.spec.tcp, path))
        assert call.trial
        result = run_trial(path, call.trial, call.spec.rules, call.attempt)
        return Answer(Kind.DONE, result=replace(result, place=lane.place))

    def _lane(self, spec: LaneSpec) -> Lane:
        with self._guard:
            if spec.number not in self._lanes:
                lane = Lane(
                    lambda engine: self._up(replace(spec.bed, engine=engine)), spec.rules, self._ceiling,
                    host=self.name, engine=spec.bed.engine, number=spec.number,
                    lives=self._lives.setdefault(spec.number, []),
                )  # fmt: skip
                self._lanes[spec.number] = lane
            return self._lanes[spec.number]

    def _opened(self, number: int, lane: Lane | None, lacks: dict[str, str] | None = None) -> Answer:
        testbed = lane.testbed if lane else None
        opened = Opened(
            lane.engine if lane else "", testbed.name if testbed else "", lane.facts if lane else {},
            list(self._lives.get(number, [])), lacks or {},
        )  # fmt: skip
        return Answer(Kind.DONE, opened)

    def rest(self) -> None:
        """Take down testbeds without a call for `idle_s`; called periodically."""
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
            lane.drop("its run has ended")
