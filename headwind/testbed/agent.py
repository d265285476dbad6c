"""A long-lived agent process that speaks JSON lines (impair/wire.py is the other end).

The thread that waits for an answer reads the pipe itself, and the pipes of the peers that it watches: a separate reader
thread would cost two wake-ups for each of some forty messages of a trial.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    """A request to an agent."""

    id: int
    op: Operation[T]


class Agent:
    """An agent: `call` sends a request and waits; `start` and `wait` let several agents work in parallel.

    `command` is run with its standard input and output as the wire, and its standard error appended to `log`. It
    gets its own session, so that Ctrl-C in the terminal reaches the lab alone. Only one thread at a time can
    use an agent; any can `close` it.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        self._answers: dict[int, dict[str, Any]] = {}
        self._reading = threading.Lock()
        self._unfinished = b""  # the beginning of a line
        self._next_id = 1
        self._held: list[str] | None = None  # requests that are to be sent together
        self.ended = False  # its output, as far as it was read
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
        return not self.ended

    def fileno(self) -> int:
        """The descriptor of its answers, for select.poll. Raises AgentDied when it is closed."""
        try:
            return self._stdout.fileno()
        except ValueError as error:
            raise AgentDied(f"the {self.name} was closed") from error

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until the agent reports that it is ready.

        Raises AgentDied if it ends or stays silent, AgentError if it reports why it cannot start.
        """
        self._listen(lambda: self._ready or bool(self._refusal), timeout_s)
        if self._refusal:
            raise AgentError(f"the {self.name} cannot start: {self._refusal}")
        if not self._ready:
            trouble = "ended before it was ready" if self.ended else f"did not start within {timeout_s:g} s"
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
        line = encoded({"id": request.id, "op": request.op.name, **arguments})
        if self._held is None:
            self._send(line, request.op.name)
        else:
            self._held.append(line)
        return request

    @contextmanager
    def together(self) -> Iterator[None]:
        """Send the requests started inside as one message at the end; the answers come as one message, too.

        Raises AgentDied when the agent is gone. If anything is raised inside, nothing is sent.
        """
        held: list[str] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
        if held:
            self._send(held[0] if len(held) == 1 else f"[{', '.join(held)}]", f"{len(held)} operations")

    def _send(self, line: str, asked_for: str) -> None:
        try:
            self._stdin.write(f"{line}\n".encode())
            self._stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise AgentDied(f"the {self.name} has ended (request: {asked_for})\n{self.last_words()}") from error

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
            raise AgentError(f"the {self.name} failed: {answer['error']} ({answer.get('kind', 'error')})")
        return self.understood(request.op, answer["ok"])

    def understood(self, op: Operation[T], answer: Any) -> T:
        """Parse an answer as the operation's type. Raises AgentError."""
        try:
            return op.read(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(f"the {self.name} sent an answer of another format: {error}") from error

    @overload
    def call(self, op: Operation[T], limit_s: float = ..., peers: Sequence[Agent] = ..., /, **arguments: Any) -> T: ...
    @overload
    def call(self, op: str, limit_s: float = ..., peers: Sequence[Agent] = ..., /, **arguments: Any) -> Any: ...
    def call(
        self, op: Operation[Any] | str, limit_s: float = 10.0, peers: Sequence[Agent] = (), /, **arguments: Any
    ) -> Any:
        """`start` and `wait` in one; three parameters are positional, so operations may use any argument name."""
        return self.wait(self.start(op, **arguments), limit_s, peers)

    def close(self) -> None:
        """End the agent: close its input, and kill it after a second."""
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
        """Read from this agent and its peers until a condition holds, one of them ends, or time is up."""
        deadline = time.monotonic() + timeout_s
        self.take()
        if until() or any(agent.ended for agent in (self, *peers)):
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
        """Read the pending output of the agent."""
        with self._reading:
            while not self.ended:
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
        self.ended = True
        self._stdout.close()

    def _heed(self, line: bytes) -> None:
        """Process a line; a console may print anything while it starts."""
        try:
            message = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            return
        for each in message if isinstance(message, list) else [message]:
            if not isinstance(each, dict):
                continue
            if each.get("ready"):
                self._ready = True
            elif isinstance(each.get("id"), int):
                self._answers[each["id"]] = each
            elif "error" in each:
                self._refusal = str(each["error"])

    def last_words(self) -> str:
        """The last lines of its standard error, for messages."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(f"  {self.name}: {line}" for line in lines[-8:])


def ask_all(agents: Mapping[str, Agent], op: Operation[T], /, **arguments: Any) -> dict[str, T]:
    """Call an operation on several agents in parallel; their answers, by name. Raises AgentError or AgentDied."""
    asked = {name: agent.start(op, **arguments) for name, agent in agents.items()}
    return {name: agents[name].wait(request, 10.0, [*agents.values()]) for name, request in asked.items()}
