"""A long-lived agent process, spoken to in JSON lines (impair/wire.py is the other end).

Whoever waits for an answer reads the wire itself, and that of the peers that it watches: a thread that read for it
would have to be woken up, and wake it up, for each of some forty messages of a trial.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

from headwind.errors import HeadwindError
from headwind.testbed.operations import Operation
from impair.wire import encoded

T = TypeVar("T")
CHUNK_BYTES = 1 << 16


class AgentError(HeadwindError):
    """An agent answered that an operation failed; the message is the agent's own."""


class AgentDied(HeadwindError):
    """An agent's process ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """What an agent was asked for."""

    id: int
    op: Operation[T]


class Agent:
    """One agent: `call` asks and waits; `start` and `wait` let several agents work at once.

    `command` is run with its standard input and output as the wire, and its standard error appended to `log`. It gets a
    session of its own, so that Ctrl-C in the terminal reaches the lab alone. One thread uses an agent at a time; any
    may `close` it.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        self._answers: dict[int, dict[str, Any]] = {}
        self._reading = threading.Lock()
        self._unfinished = b""  # the beginning of a line
        self._next_id = 1
        self._ended = False
        self._ready = False
        self._refusal = ""
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
            )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)

    @property
    def alive(self) -> bool:
        """False once the agent's output has ended."""
        self.take()
        return not self._ended

    def fileno(self) -> int:
        """Where its answers come from, for select.poll. Raises AgentDied when it is closed."""
        try:
            return self._stdout.fileno()
        except ValueError as error:
            raise AgentDied(f"the {self.name} was closed") from error

    def wait_ready(self, timeout_s: float) -> None:
        """Return when the agent has said that it is ready.

        Raises AgentDied when it ends or stays silent, AgentError when it says why it cannot start.
        """
        self._listen(lambda: self._ready or bool(self._refusal), timeout_s)
        if self._refusal:
            raise AgentError(f"the {self.name} cannot start: {self._refusal}")
        if not self._ready:
            trouble = "ended before it was ready" if self._ended else f"did not start within {timeout_s:g} s"
            raise AgentDied(f"the {self.name} {trouble}\n{self.last_words()}")

    @overload
    def start(self, op: Operation[T], /, **arguments: Any) -> Request[T]: ...
    @overload
    def start(self, op: str, /, **arguments: Any) -> Request[Any]: ...
    def start(self, op: Operation[Any] | str, /, **arguments: Any) -> Request[Any]:
        """Send a request, to be given to `wait`. An operation that has only a name gives its answer as JSON.

        Raises AgentDied when the agent is gone.
        """
        request = Request(self._next_id, Operation(op) if isinstance(op, str) else op)
        self._next_id += 1
        try:
            self._stdin.write(f"{encoded({'id': request.id, 'op': request.op.name, **arguments})}\n".encode())
            self._stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise AgentDied(f"the {self.name} is gone (asked for {request.op.name})\n{self.last_words()}") from error
        return request

    def wait(self, request: Request[T], timeout_s: float, peers: Sequence[Agent] = ()) -> T:
        """The answer to a request. Raises AgentError, or AgentDied when this agent or a peer dies or time is up."""
        self._listen(lambda: request.id in self._answers, timeout_s, peers)
        answer = self._answers.pop(request.id, None)
        if answer is None:
            for agent in (self, *peers):
                if not agent.alive:
                    raise AgentDied(f"the {agent.name} died\n{agent.last_words()}")
            raise AgentDied(f"the {self.name} did not answer within {timeout_s:g} s\n{self.last_words()}")
        if "error" in answer:
            raise AgentError(f"the {self.name} could not do it: {answer['error']} ({answer.get('kind', 'error')})")
        return self.understood(request.op, answer["ok"])

    def understood(self, op: Operation[T], answer: Any) -> T:
        """What an answer says by the operation's type. Raises AgentError."""
        try:
            return op.read(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(f"the {self.name} and the lab do not understand each other: {error}") from error

    @overload
    def call(self, op: Operation[T], limit_s: float = ..., peers: Sequence[Agent] = ..., /, **arguments: Any) -> T: ...
    @overload
    def call(self, op: str, limit_s: float = ..., peers: Sequence[Agent] = ..., /, **arguments: Any) -> Any: ...
    def call(
        self, op: Operation[Any] | str, limit_s: float = 10.0, peers: Sequence[Agent] = (), /, **arguments: Any
    ) -> Any:
        """`start` and `wait` in one; the first three go by position, so that an operation may have any argument."""
        return self.wait(self.start(op, **arguments), limit_s, peers)

    def close(self) -> None:
        """End the agent: its input ends, and after a second it is killed."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.take()
        with self._reading:
            self._end()

    def _listen(self, until: Callable[[], bool], timeout_s: float, peers: Sequence[Agent] = ()) -> None:
        """Take in what this agent and its peers say, until something is so, one of them ends, or time is up."""
        deadline = time.monotonic() + timeout_s
        self.take()
        if until() or not all(agent.alive for agent in (self, *peers)):
            return
        agents = {agent.fileno(): agent for agent in (self, *peers)}
        poller = select.poll()
        for file in agents:
            poller.register(file, select.POLLIN)
        while not until() and (left_s := deadline - time.monotonic()) > 0:
            for file, _ in poller.poll(math.ceil(left_s * 1000)):
                if not agents[file].alive:
                    return

    def take(self) -> None:
        """Take in what the agent has said by now."""
        with self._reading:
            while not self._ended:
                try:
                    said = os.read(self._stdout.fileno(), CHUNK_BYTES)
                except BlockingIOError:
                    return
                *lines, self._unfinished = (self._unfinished + said).split(b"\n")
                if not said:
                    lines.append(self._unfinished)
                    self._end()
                for line in lines:
                    self._heed(line)

    def _end(self) -> None:
        self._ended = True
        self._stdout.close()

    def _heed(self, line: bytes) -> None:
        """A console may say anything while it starts."""
        try:
            message = json.loads(line.decode(errors="replace"))
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if message.get("ready"):
            self._ready = True
        elif isinstance(message.get("id"), int):
            self._answers[message["id"]] = message
        elif "error" in message:
            self._refusal = str(message["error"])

    def last_words(self) -> str:
        """The last lines of its standard error, for people."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(f"  {self.name}: {line}" for line in lines[-8:])
