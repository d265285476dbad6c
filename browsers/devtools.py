"""The DevTools protocol over a pair of pipes: JSON messages that end with a zero byte.

There is no driver between a browser and its agent: a driver would need CPU time next to the measured page.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LAB = 0  # the file descriptor connected to the lab
CLOSED = -1  # that of a connection which is not open yet
CHUNK_BYTES = 1 << 16
CALL_S = 10.0  # longest time of a call


class BrowserGone(ConnectionError):
    """The browser closed its pipe: it has ended."""


class CallFailed(ValueError):
    """The browser refused a call; the message is the browser's."""


class TooLate(TimeoutError):
    """The browser did not answer a call in time."""


class LabIsGone(ConnectionAbortedError):
    """The agent's input ended while it waited for the browser."""


@dataclass(slots=True)
class DevTools:
    """A connection to a browser: `call` asks and waits; `event` is the next thing that it reports by itself.

    `answers` are calls that are sent as soon as an event comes, by the event, to the page that it came from.
    """

    receiving: int  # file descriptors of our ends
    sending: int
    answers: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    _events: deque[dict[str, Any]] = field(default_factory=deque)
    _answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    _unfinished: bytes = b""
    _next_id: int = 1

    def start(self, method: str, session: str = "", **parameters: Any) -> int:
        """Send a call; its number, for `answered`. Raises BrowserGone."""
        number, self._next_id = self._next_id, self._next_id + 1
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        left = self._packed(json.dumps(message).encode())
        try:
            while left:
                left = left[os.write(self.sending, left) :]
        except (BrokenPipeError, ConnectionResetError) as error:
            raise BrowserGone(f"the browser has ended (call: {method})") from error
        return number

    def call(self, method: str, session: str = "", *, limit_s: float = CALL_S, **parameters: Any) -> dict[str, Any]:
        """Send a call and wait for its result. Raises CallFailed, TooLate, BrowserGone or LabIsGone."""
        number, deadline = self.start(method, session, **parameters), time.monotonic() + limit_s
        while number not in self._answers:
            if not self._receive(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise TooLate(f"the browser did not answer {method} within {limit_s:g} s")
        return self._result(number, method)

    def answered(self, number: int, method: str) -> dict[str, Any] | None:
        """The result of a call that was started; None if there is none yet. Raises CallFailed."""
        return self._result(number, method) if number in self._answers else None

    def _result(self, number: int, method: str) -> dict[str, Any]:
        answer = self._answers.pop(number)
        if "error" in answer:
            raise CallFailed(f"{method}: {self._refusal(answer)}")
        result: dict[str, Any] = answer.get("result", {})
        return result

    def event(self, limit_s: float) -> dict[str, Any] | None:
        """The next event, or None if there is none in time, or if an answer came first.

        Raises BrowserGone or LabIsGone.
        """
        if not self._events:
            self._receive(limit_s)
        return self._events.popleft() if self._events else None

    def forget_events(self) -> None:
        """Drop the pending events, and answers that nothing waits for."""
        self._events.clear()
        self._answers.clear()

    def _receive(self, limit_s: float) -> bool:
        """Read what there is, after waiting for it; False if nothing came."""
        poller = select.poll()
        poller.register(self.receiving, select.POLLIN)
        poller.register(LAB, 0)  # no event requested: a hang-up is always reported
        ready = dict(poller.poll(max(0.0, limit_s) * 1000))
        if self.receiving not in ready:
            if LAB in ready:
                raise LabIsGone("the lab hung up while a browser was at work")
            return False
        try:
            data = os.read(self.receiving, CHUNK_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise BrowserGone("the browser has ended")
        self._unfinished += data
        messages = self._unpacked()
        for text in messages:
            self._heed(json.loads(text))
        return bool(messages)

    def _packed(self, text: bytes) -> bytes:
        """A message as it is sent."""
        return text + b"\0"

    def _unpacked(self) -> list[bytes]:
        """The messages that are complete; the rest stays in `_unfinished`."""
        *messages, self._unfinished = self._unfinished.split(b"\0")
        return messages

    @staticmethod
    def _refusal(answer: dict[str, Any]) -> str:
        """The browser's words in an answer that is an error."""
        return str(answer["error"].get("message", answer["error"]))

    def _heed(self, message: Mapping[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = dict(message)
        else:
            self._events.append(dict(message))
            if message["method"] in self.answers:
                method, parameters = self.answers[message["method"]]
                self.start(method, message.get("sessionId", ""), **parameters)

    def close(self) -> None:
        """Close both pipes, or the connection."""
        for descriptor in {self.receiving, self.sending} - {CLOSED}:
            os.close(descriptor)
