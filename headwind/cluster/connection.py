"""The only file that touches dask.distributed: links to workers through a scheduler, and serving as one.

Questions and answers are JSON text that the scheduler passes on (its operation `proxy`); no task is submitted, because
the result or error of a task is a pickle, and a run does not unpickle data from workers. Calls are short: a worker
starts one and is then polled until it is done. So a lost connection, worker or scheduler loses no result until the
timeout.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from headwind.cluster.messages import Answer, Call, Host, Kind, Question, from_text, to_text
from headwind.errors import HeadwindError, UsageError
from headwind.testbed.scratch import scratch
from headwind.trial.lane import HostLost

if TYPE_CHECKING:
    from headwind.cluster.worker import RunWorker

T = TypeVar("T")

PATIENCE_S = 90.0  # a worker without an answer for this long is lost; longer than worker.BUSY_S
WAIT_S = 2.0  # how long a worker waits for the end of a call before it answers "not yet"
REPLY_S = 10.0  # how long beyond that an answer may take
CONNECT_S = 10.0
AGAIN_S = 1.0  # between two tries
THREADS = 64  # of a worker: they only wait, the worker works in its own
OPERATION = "headwind"  # an addition to dask's own operations
QUIET = {  # a worker must not disturb its measurements
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.comm.timeouts.connect": f"{CONNECT_S:g}s",
}


class NoAnswer(HeadwindError):
    """The scheduler, a worker or the connection is gone, or the peer is not a worker of this lab."""


def answered(worker: RunWorker, question: str) -> str:
    """The worker's answer to a Question: an Answer or a Host, as text."""
    asked = from_text(Question, question)
    return to_text(worker.host(asked.lanes) if asked.call is None else worker.hear(asked.call, WAIT_S))


class Link:
    """The workers that a scheduler knows, by name. Any thread may ask; nothing is open between two questions."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        """Raises UsageError if no scheduler answers, or the extra is not installed."""
        self._address, self._patience_s = address, patience_s
        _unpickle_nothing()
        try:
            asyncio.run(self._workers())
        except NoAnswer as error:
            raise UsageError(
                f"--cluster {address}: no scheduler answers there ({error}); start one with "
                "`.venv/bin/dask scheduler`, and `lab.py worker ADDRESS` on each machine"
            ) from error

    def hosts(self, lanes: int) -> tuple[list[Host], dict[str, str]]:
        """Every worker that answers, sorted by name, and why others do not.

        `lanes` is the requested number (model.AUTO: they decide). Raises NoAnswer if the scheduler is gone.
        """
        found: list[Host] = []
        silent: dict[str, str] = {}
        for name in sorted(asyncio.run(self._workers())):
            try:
                found.append(self._once(name, Question(lanes=lanes), Host))
            except NoAnswer as error:
                silent[name] = f"it does not answer as a worker of this lab: {error}"
        return found, silent

    def ask(self, host: str, call: Call, check_stop: Callable[[], None], patience_s: float | None = None) -> Answer:
        """The call's last answer. Raises HostLost after patience_s without any, and what check_stop raises."""
        patience_s = self._patience_s if patience_s is None else min(patience_s, self._patience_s)
        heard = time.monotonic()
        while True:
            check_stop()
            try:
                answer = self._once(host, Question(call), Answer)
            except NoAnswer as error:
                trouble = str(error)
            else:
                if answer.kind is not Kind.BUSY:
                    heard = time.monotonic()
                if answer.kind not in (Kind.NOT_YET, Kind.BUSY):
                    return answer
                trouble = answer.text
            if time.monotonic() - heard > patience_s:
                raise HostLost(f"{host} has not answered for {patience_s:.0f} s: {trouble}")
            if trouble:
                time.sleep(AGAIN_S)

    def _once(self, host: str, question: Question, kind: type[T]) -> T:
        text = asyncio.run(self._asked(host, to_text(question)))
        try:
            return from_text(kind, text)
        except Exception as error:
            raise NoAnswer(f"its answer cannot be read: {str(error).partition(chr(10))[0]}") from error

    async def _workers(self) -> dict[str, str]:
        """Name -> address."""
        async with _scheduler(self._address) as scheduler:
            return _names(await scheduler.identity())

    async def _asked(self, host: str, question: str) -> str:
        async with _scheduler(self._address) as scheduler:
            address = _names(await scheduler.identity()).get(host)
            if address is None:
                raise NoAnswer("the scheduler knows no such worker now")
            text = await scheduler.proxy(worker=address, msg={"op": OPERATION, "question": question})
            if not isinstance(text, str):
                raise NoAnswer("its answer is no text")
            return text


@asynccontextmanager
async def _scheduler(address: str) -> AsyncIterator[Any]:
    """The scheduler's operations, for one question. Raises NoAnswer for every error inside."""
    distributed = _distributed()
    try:
        security = distributed.Security().get_connection_args("client")
        async with (
            asyncio.timeout(CONNECT_S + WAIT_S + REPLY_S),
            distributed.rpc(address, deserialize=False, timeout=CONNECT_S, connection_args=security) as scheduler,
        ):
            yield scheduler
    except Exception as error:  # any program may register as a worker; it is named, and skipped
        raise error if isinstance(error, NoAnswer) else NoAnswer(str(error) or type(error).__name__) from error


def _names(identity: Any) -> dict[str, str]:
    return {str(worker["name"]): str(address) for address, worker in identity["workers"].items()}


def _unpickle_nothing() -> None:
    """Stop this process from unpickling data that dask receives.

    Even a comm with `deserialize=False` unpickles what a message marks as a pickle (distributed/protocol/core.py,
    `__Pickled__`), and a scheduler passes on what a worker made it unpickle.
    """
    _distributed().protocol.pickle.loads = _refuse


def _refuse(*_: object, **__: object) -> NoReturn:
    raise NoAnswer("it sent a pickle, which could run any code: not read")


def serve(address: str, name: str, worker: RunWorker, say: Callable[[str], None]) -> None:
    """Serve as a worker of the scheduler at `address` until interrupted; wait while it is gone."""
    distributed = _distributed()
    with scratch() as folder, ThreadPoolExecutor(THREADS) as threads:

        async def operation(question: str) -> str:
            return await asyncio.get_running_loop().run_in_executor(threads, answered, worker, question)

        def dask_worker() -> Any:
            made = distributed.Worker(
                address, name=name, nthreads=1, memory_limit=0, local_directory=str(folder), death_timeout=CONNECT_S
            )
            made.handlers[OPERATION] = operation
            return made

        asyncio.run(_serve(dask_worker, f"{name} serves {address}; Ctrl-C ends it", name, worker, say))


async def _serve(
    dask_worker: Callable[[], Any], greeting: str, name: str, worker: RunWorker, say: Callable[[str], None]
) -> None:
    reported = ""
    while True:
        try:
            async with dask_worker() as serving:
                say(greeting)
                reported = ""
                while serving.status.name == "running":
                    await asyncio.sleep(AGAIN_S)
                    await asyncio.to_thread(worker.rest)
                say(f"{name}: the scheduler is gone")
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            if reported != str(error):
                say(f"{name}: {error}; trying again")
            reported = str(error)
        await asyncio.sleep(AGAIN_S)


def _distributed() -> Any:
    """The library, configured to be quiet. Raises UsageError if it is not installed."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise UsageError(
            "lanes on other machines need dask.distributed: .venv/bin/python -m pip install 'distributed>=2025.1'"
        ) from error
    dask.config.set(QUIET)
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    return distributed
