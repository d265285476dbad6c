"""Competing traffic: bulk downloads next to the measured client, from before it starts until after it has ended.

`python3 -m client.competing PROTOCOL FLOWS URL` downloads the object again and again over FLOWS connections, each of
them kept, until it is killed. Every STEP_S it prints the time on the monotonic clock and the bytes of each flow.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from client.curl import download_on
from impair.messages import Competed

LEASH = ("setpriv", "--pdeathsig", "KILL")  # it ends with the agent, however that ends
STEP_S = 0.02
ALONE_S = 1.0  # at the end of the time before the measured client: what the flows get without it
AFTER_S = 5.0  # longest wait for every flow to go on once the measured client has ended
GRACE_S = 1.0  # between SIGTERM and SIGKILL


class NoCompetition(Exception):
    """The competing downloads did not begin, or did not go on."""


@dataclass(slots=True)
class Competition:
    """The agent's competing downloads, of which there is at most one program."""

    _process: subprocess.Popen[bytes] | None = None
    _output: IO[bytes] | None = None
    _protocol: str = ""
    _measured: list[float] = field(default_factory=list)  # when the measured client started and ended

    def start(
        self, protocol: str, flows: int, host: str, port: int, path: str, lead_s: float, timeout_s: float
    ) -> None:
        """Begin to download, and return `lead_s` after every flow has received something.

        Raises NoCompetition if that takes longer than `timeout_s`, or the program ends.
        """
        self._end()
        self._protocol, self._measured = protocol, []
        self._output = tempfile.TemporaryFile(dir="/dev/shm")  # noqa: SIM115 - read when it is stopped
        command = [*LEASH, "python3", "-m", "client.competing", protocol, str(flows), f"https://{host}:{port}{path}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            self._wait_for_all(timeout_s)
        except NoCompetition:
            self._end()
            raise
        time.sleep(lead_s)

    def _wait_for_all(self, timeout_s: float, since: list[int] | None = None) -> None:
        """Wait until every flow has received more than `since`. Raises NoCompetition."""
        assert self._process
        ends = time.monotonic() + timeout_s
        while not (lines := self._lines()) or not all(
            now > then for now, then in zip(lines[-1].bytes, since or [0] * len(lines[-1].bytes), strict=True)
        ):
            if self._process.poll() is not None:
                raise NoCompetition(f"the competing downloads ended: {self._said()}")
            if time.monotonic() > ends:
                raise NoCompetition(f"the competing downloads received nothing for {timeout_s:g} s")
            time.sleep(STEP_S)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Note when the measured client runs."""
        self._measured = [time.monotonic()]
        try:
            yield
        finally:
            self._measured.append(time.monotonic())

    def stop(self) -> Competed:
        """Wait until every flow has gone on after the measured client, end the program; what it received, and when."""
        error, start, end = "", *self._measured
        try:
            self._wait_for_all(AFTER_S, since=_at(self._lines(), end))
        except NoCompetition as failure:
            error = str(failure)
        lines = self._lines()
        self._end()
        before, first, last, later = (_at(lines, at) for at in (start - ALONE_S, start, end, float("inf")))
        return Competed(
            self._protocol, ALONE_S, end - start, _grown(before, first), _grown(first, last), _grown(last, later), error
        )

    def _end(self) -> None:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self._process and self._process.poll() is None:
                os.killpg(self._process.pid, sign)
                try:
                    self._process.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    continue
        if self._output:
            self._output.close()
        self._process = self._output = None

    def _said(self) -> str:
        assert self._output
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-500:].strip() or "no message"

    def _lines(self) -> list[Line]:
        assert self._output
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), size, 0).decode(errors="replace")
        return [Line.of(line) for line in text.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()]


@dataclass(frozen=True, slots=True)
class Line:
    """The bytes that each flow had received at a time of the monotonic clock."""

    at: float
    bytes: list[int]

    @classmethod
    def of(cls, text: str) -> Line:
        """Parse a line of the program."""
        at, *received = text.split()
        return cls(float(at), [int(each) for each in received])


def _at(lines: list[Line], at: float) -> list[int]:
    """The bytes of each flow at a time, between two lines in proportion; the last ones for a later time."""
    place = bisect_right(lines, at, key=lambda line: line.at)
    if place == len(lines):
        return lines[-1].bytes
    if place == 0:
        return [0] * len(lines[0].bytes)
    before, after = lines[place - 1], lines[place]
    part = (at - before.at) / (after.at - before.at)
    return [round(then + part * (now - then)) for then, now in zip(before.bytes, after.bytes, strict=True)]


def _grown(before: list[int], after: list[int]) -> list[int]:
    return [now - then for then, now in zip(before, after, strict=True)]


def main(protocol: str, flows: int, url: str) -> None:
    """Download until killed; a failure ends the program with its message."""
    received, printed = [0] * flows, 0.0

    def tell() -> None:
        nonlocal printed
        if (now := time.monotonic()) >= printed + STEP_S:
            sys.stdout.write(f"{now:.6f} {' '.join(map(str, received))}\n")
            sys.stdout.flush()
            printed = now

    sys.exit(download_on(protocol, url, received, tell, STEP_S))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
