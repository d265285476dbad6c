"""JSON lines on standard input and output: the protocol between the lab and its agents.

A request is `{"id": 7, "op": "apply", ...arguments}`; its answer is `{"id": 7, "ok": {...}}` or `{"id": 7, "error":
"what was tried and what went wrong", "kind": "ExceptionName"}`. An agent ends when its input ends. A data class is the
JSON object that its `to_json` gives, or that of its fields (impair/messages.py). A line can hold a list of requests:
they are carried out in their order, and the answer is one line with the list of their answers.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import IO, Any

Operation = Callable[..., Any]
LAB = 0  # the file descriptor of standard input, from which requests come


def encoded(message: Mapping[str, Any]) -> str:
    """A message as one line of JSON. Raises TypeError for what has no JSON form."""
    return json.dumps(message, default=_plain)


def _plain(value: object) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def answer(operations: Mapping[str, Operation], line: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Carry out the request, or the list of requests, in a line; a failure becomes an error answer, never a dead agent.

    A request that fails does not keep the next one of the list from being carried out.
    """
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _failure(None, error)
    if isinstance(asked, list):
        return [_answer(operations, request) for request in asked]
    return _answer(operations, asked)


def _answer(operations: Mapping[str, Operation], request: Any) -> dict[str, Any]:
    identity = None
    try:
        identity = request.pop("id")
        name = request.pop("op")
        if name not in operations:
            raise LookupError(f"no operation {name!r}; there are {', '.join(sorted(operations))}")
        return {"id": identity, "ok": operations[name](**request)}
    except Exception as error:  # noqa: BLE001 - the agent must outlive any bad request
        return _failure(identity, error)


def _failure(identity: Any, error: Exception) -> dict[str, Any]:
    traceback.print_exception(error, file=sys.stderr)
    return {"id": identity, "error": str(error), "kind": type(error).__name__}


def serve(operations: Mapping[str, Operation], source: Iterable[str] = sys.stdin, sink: IO[str] = sys.stdout) -> None:
    """Answer request lines from `source` on `sink` until `source` ends; first send `{"ready": true}`."""
    print(json.dumps({"ready": True}), file=sink, flush=True)
    for line in source:
        if line.strip():
            print(_encoded(answer(operations, line)), file=sink, flush=True)


def _encoded(found: Mapping[str, Any] | list[dict[str, Any]]) -> str:
    if isinstance(found, list):
        return f"[{', '.join(map(_encoded, found))}]"
    try:
        return encoded(found)
    except (TypeError, ValueError) as error:
        return json.dumps({"id": found["id"], "error": f"the answer is no JSON: {error}", "kind": type(error).__name__})
