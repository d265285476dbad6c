"""Carries out actions at their moments while a client runs, in its own thread, and stamps each.

An action is anything that the router can do to the path at a moment: `agent.py` has the kinds. Its clock starts at once
or with the client's first packet, as the kernel of the router stamped it. Whatever takes time is done before the moment
(`Action.prepare`, and the reading of the counters) or after it.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby

from impair.messages import Carried, Course, RouterReading
from impair.profile import Direction

AHEAD_S = 0.005  # before a moment, for what takes time
LOOK_S = 0.1  # how long a stop may take to be noticed while no packet comes
ETH_P_IP = 0x0800
PACKET_HOST = 0  # linux/if_packet.h: a frame for this machine, not a bridge's own multicast
SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the control message has the same number

Answer = dict[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Action:
    """An action at a moment, in s since the clock's start.

    `prepare` is called shortly before and returns the function that carries it out, which returns the function that
    reports: its answer goes into the record. Each may raise OSError or ValueError: then nothing follows.
    """

    at_s: float
    kind: str
    prepare: Callable[[], Callable[[], Callable[[], Answer]]]
    direction: Direction | None = None


class FirstPacket:
    """The moment of the first IPv4 packet that an interface receives from now on, by the monotonic clock."""

    def __init__(self, interface: str) -> None:
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._packets.settimeout(LOOK_S)
        self._packets.bind((interface, ETH_P_IP))

    def wait(self, stopped: threading.Event) -> float | None:
        """Wait for it; None if `stopped` before."""
        with closing(self._packets):
            while not stopped.is_set():
                try:
                    _, control, _, address = self._packets.recvmsg(0, socket.CMSG_SPACE(16))
                except TimeoutError:
                    continue
                if address[2] == PACKET_HOST:
                    return _monotonic(control)
        return None


def _monotonic(control: Sequence[tuple[int, int, bytes]]) -> float:
    """The kernel's stamp of a packet by the monotonic clock; now if it has none."""
    now_s, wall_s = time.monotonic(), time.time()
    for _, kind, data in control:
        if kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("@qq", data[:16])
            ago_s: float = wall_s - seconds - nanoseconds / 1e9
            return now_s - max(0.0, ago_s)
    return now_s


def at_once(stopped: threading.Event) -> float | None:
    """The start of a clock that waits for nothing."""
    del stopped
    return time.monotonic()


class Timed:
    """Does something at moments of a clock, in its own thread, until `stop`; a subclass says what (`_play`).

    `start` waits for the start of the clock and returns it in monotonic s, or None once its argument is set.
    """

    def __init__(self, start: Callable[[threading.Event], float | None]) -> None:
        self._start = start
        self._stopped = threading.Event()
        self._clock_s: float | None = None
        self._stopped_s = 0.0
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)
        self._thread.start()

    def stop(self) -> Course:
        """Stop, after the actions that are due, and return what was carried out."""
        self._stopped_s = time.monotonic()
        self._stopped.set()
        self._thread.join()
        return Course(None if self._clock_s is None else round(self._stopped_s - self._clock_s, 6))

    def _run(self) -> None:
        self._clock_s = self._start(self._stopped)
        if self._clock_s is not None:
            self._play(self._clock_s)

    def _play(self, clock_s: float) -> None:
        """Do it all; the clock started at clock_s."""
        raise NotImplementedError

    def _is_due(self, moment_s: float) -> bool:
        """Wait until shortly before a moment in monotonic s; False if the schedule is stopped before the moment."""
        self._stopped.wait(max(0.0, moment_s - AHEAD_S - time.monotonic()))
        return not self._stopped.is_set() or moment_s <= self._stopped_s


class Schedule(Timed):
    """Carries out `actions`, which are in the order of their moments.

    `read` reads the router, from the schedule's own thread.
    """

    def __init__(
        self, actions: Sequence[Action], start: Callable[[threading.Event], float | None],
        read: Callable[[], RouterReading],
    ) -> None:  # fmt: skip
        self._actions, self._read = actions, read
        self._carried: list[Carried] = []
        super().__init__(start)

    def stop(self) -> Course:
        """Stop, after the actions that are due, and return what was carried out."""
        return replace(super().stop(), carried=self._carried)

    def _play(self, clock_s: float) -> None:
        for at_s, actions in groupby(self._actions, key=lambda action: action.at_s):
            if not self._is_due(clock_s + at_s):
                return
            self._carried += self._carry_out(clock_s, at_s, [*actions])
            if self._carried[-1].error:
                return

    def _carry_out(self, clock_s: float, at_s: float, actions: Sequence[Action]) -> Iterator[Carried]:
        """Carry out the actions of one moment, one right after the other, until one fails."""
        before, error = self._read(), ""
        times: list[tuple[float, float]] = []
        reports: list[Callable[[], Answer]] = []
        answers: list[Answer] = []
        try:
            prepared = [action.prepare() for action in actions]
            time.sleep(max(0.0, clock_s + at_s - time.monotonic()))
            for carry_out in prepared:
                began_s = time.monotonic()
                reports.append(carry_out())
                times.append((began_s - clock_s, time.monotonic() - clock_s))
        except (OSError, ValueError) as refused:
            error = str(refused)
        after = self._read()
        try:
            answers = [report() for report in reports]
        except (OSError, ValueError) as refused:
            error = error or str(refused)
        missing = len(actions) - len(times)
        times += [(time.monotonic() - clock_s,) * 2] * missing  # not carried out: `error` has the reason
        answers += [Answer()] * (len(actions) - len(answers))
        for action, (began_s, done_s), answer in zip(actions, times, answers, strict=True):
            yield Carried(
                action.kind, at_s, round(began_s, 6), round(done_s, 6), before, after, action.direction, answer, error
            )
