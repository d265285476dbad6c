"""A worker that answers what it is asked with code to run: hostile_worker.py ADDRESS NAME FOLDER KIND.

Each process in which a payload runs leaves a file in FOLDER, named by its number.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from pathlib import Path
from typing import Any, cast

import distributed

ADDRESS, NAME, FOLDER, KIND = sys.argv[1:]
CODE = f"__import__('pathlib').Path({FOLDER!r}, str(__import__('os').getpid())).touch()"


class Payload(Exception):
    """What unpickles it runs CODE."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (CODE,)


async def answer(question: str) -> object:
    del question
    match KIND:
        case "bytes":
            return pickle.dumps(Payload())
        case "object":  # dask pickles it for the way
            return Payload()
        case "serialized":
            return distributed.protocol.Serialize(Payload())
        case "pickled":
            return distributed.protocol.ToPickle(Payload())
        case "json":
            return '{"name": "mallory", "code": {"py/reduce": []}}'
    raise Payload


async def main() -> None:
    extra = {"extra": distributed.protocol.Serialize(Payload())}
    worker = distributed.Worker(ADDRESS, name=NAME, nthreads=1, memory_limit=0)
    cast("dict[str, object]", worker.handlers)["headwind"] = answer
    if KIND == "extra":  # part of what the scheduler says of it
        worker.startup_information = {"extra": lambda _: extra}
    async with worker:
        sys.stdout.write(f"{NAME} serves\n")
        sys.stdout.flush()
        await worker.finished()


if __name__ == "__main__":
    Path(FOLDER).mkdir(exist_ok=True)
    asyncio.run(main())
