"""A long-lived agent process, spoken to in JSON lines (impair/wire.py is the other end)."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

from headwind.errors import HeadwindError
from headwind.testbed.operations import Operation
from impair.wire import encoded

T = TypeVar("T")
LIVENESS_S = 0.05  # how often a waiting call looks whether the agents are still there


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
    session of its own, so that Ctrl-C in the terminal reaches the lab alone.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._next_id = 1
        self._ended = False
        self._ready = False
        self._refusal = ""
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8",
                errors="replace",  # a console may say anything while it starts
                start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin
        assert self._process.stdout
        self._stdin: IO[str] = self._process.stdin
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        """False once the agent's output has ended."""
        return not self._ended

    def wait_ready(self, timeout_s: float) -> None:
        """Return when the agent has said that it is ready.

        Raises AgentDied when it ends or stays silent, AgentError when it says why it cannot start.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._ended or self._refusal, timeout_s)
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
            self._stdin.write(encoded({"id": request.id, "op": request.op.name, **arguments}) + "\n")
            self._stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise AgentDied(f"the {self.name} is gone (asked for {request.op.name})\n{self.last_words()}") from error
        return request

    def wait(self, request: Request[T], timeout_s: float, peers: Sequence[Agent] = ()) -> T:
        """The answer to a request. Raises AgentError, or AgentDied when this agent or a peer dies or time is up."""
        identity, deadline = request.id, time.monotonic() + timeout_s
        with self._changed:
            while identity not in self._answers:
                for agent in (self, *peers):
                    if not agent.alive:
                        raise AgentDied(f"the {agent.name} died\n{agent.last_words()}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AgentDied(f"the {self.name} did not answer within {timeout_s:g} s\n{self.last_words()}")
                self._changed.wait(min(left, LIVENESS_S) if peers else left)
            answer = self._answers.pop(identity)
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
        self._reader.join(1.0)

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._receive(message)
        stdout.close()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _receive(self, message: dict[str, Any]) -> None:
        with self._changed:
            if message.get("ready"):
                self._ready = True
            elif isinstance(message.get("id"), int):
                self._answers[message["id"]] = message
            elif "error" in message:
                self._refusal = str(message["error"])
            self._changed.notify_all()

    def last_words(self) -> str:
        """The last lines of its standard error, for people."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(f"  {self.name}: {line}" for line in lines[-8:])
