"""Workers that answer what they are asked with code to run: hostile_worker.py ADDRESS FOLDER, one for each of KINDS.

Each process in which a payload runs leaves a file in FOLDER, named by its number.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

KINDS = (
    "bytes",
    "object",
    "serialized",
    "pickled",
    "twice",
    "json",
    "raised",
    "extra",
)  # the ways in which dask carries objects
distributed: Any = import_module("distributed")
ADDRESS, FOLDER = sys.argv[1:]
CODE = f"__import__('pathlib').Path({FOLDER!r}, str(__import__('os').getpid())).touch()"
# Gives the scheduler that unpickles it an object which is pickled once more on its way to the lab that leads.
AGAIN = f"({CODE}, type('Again', (), {{'__reduce__': lambda self: (eval, ({CODE!r},))}})())[1]"


class Payload(Exception):
    """What unpickles it runs CODE."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (CODE,)


class Twice:
    """What unpickles it runs AGAIN."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (AGAIN,)


def operation(kind: str) -> Callable[[str], Awaitable[object]]:
    async def answer(question: str) -> object:
        del question
        match kind:
            case "bytes":
                return pickle.dumps(Payload())
            case "object":  # dask pickles it for the way
                return Payload()
            case "serialized":
                return distributed.protocol.Serialize(Payload())
            case "pickled":
                return distributed.protocol.ToPickle(Payload())
            case "twice":
                return distributed.protocol.ToPickle(Twice())
            case "json":
                return '{"name": "mallory", "code": {"py/reduce": []}}'
        raise Payload

    return answer


async def main() -> None:
    async with AsyncExitStack() as stack:
        for kind in KINDS:
            worker = distributed.Worker(ADDRESS, name=kind, nthreads=1, memory_limit=0)
            worker.handlers["headwind"] = operation(kind)
            if kind == "extra":  # part of what the scheduler says of it
                worker.startup_information = {"extra": lambda _: {"extra": distributed.protocol.Serialize(Payload())}}
            await stack.enter_async_context(worker)
        sys.stdout.write("all serve\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    Path(FOLDER).mkdir(exist_ok=True)
    asyncio.run(main())
