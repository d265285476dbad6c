"""The only file that touches dask.distributed: links to stations through a scheduler, and serving as one.

Calls are short: a station begins with one and is then asked again and again whether it is done. So no task is lost with
a connection, a worker or a scheduler; only patience ends.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from headwind.cluster.messages import Answer, Call, Host, Kind
from headwind.errors import HeadwindError, UsageError
from headwind.trial.lane import HostLost

if TYPE_CHECKING:
    from headwind.cluster.station import Station

PATIENCE_S = 90.0  # a station that answers nothing for so long is lost; longer than station.BUSY_S
WAIT_S = 2.0  # how long a station waits for the end of a call before it says "not yet"
REPLY_S = 10.0  # how long beyond that an answer may take
CONNECT_S = 10.0
AGAIN_S = 1.0  # between two tries
THREADS = 64  # of a worker: they only wait, the station works in its own
QUIET = {  # a worker must not disturb what it measures
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.comm.timeouts.connect": f"{CONNECT_S:g}s",
}

_station: Station | None = None  # of this process, where it is a worker


def told(question: bytes) -> bytes:
    """What this process's station says to a pickled Call, or to a number of lanes: an Answer or a Host, pickled."""
    if _station is None:
        raise RuntimeError("this worker was not started with `lab.py worker`")
    asked: Call | int = pickle.loads(question)  # noqa: S301 - who may run programs here can run this one, too
    return pickle.dumps(_station.host(asked) if isinstance(asked, int) else _station.hear(asked, WAIT_S))


def _messenger() -> Callable[[bytes], bytes]:
    """A function that is sent as it is, since it is in no module: the scheduler needs to know nothing of this lab."""

    def tell(question: bytes) -> bytes:
        from headwind.cluster import link  # noqa: PLW0406 - where it is called

        return link.told(question)

    return tell


class Link:
    """`with Link(address) as link`: the stations that a scheduler knows, by name. Any thread may ask."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        self._address, self._patience_s = address, patience_s
        self._guard = threading.Lock()
        self._client: Any = None  # distributed.Client

    def __enter__(self) -> Self:
        """Raises UsageError where no scheduler answers, or the extra is not installed."""
        try:
            self._connected()
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(
                f"--cluster {self._address}: no scheduler answers there ({error}); start one with "
                "`.venv/bin/dask scheduler`, and `lab.py worker ADDRESS` on each machine"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._disconnect()

    def _connected(self) -> Any:
        """The client, made anew where it has lost the scheduler. Raises OSError or TimeoutError."""
        distributed = _distributed()
        with self._guard:
            if self._client is not None and self._client.status != "running":
                self._disconnect()
            if self._client is None:
                self._client = distributed.Client(self._address, timeout=CONNECT_S, set_as_default=False)
            return self._client

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close(timeout=1)

    def hosts(self, lanes: int) -> tuple[list[Host], dict[str, str]]:
        """Every station that answers, in the order of their names, and why others do not.

        `lanes` are asked for (model.AUTO: they decide).
        """
        found: list[Host] = []
        silent: dict[str, str] = {}
        for name in sorted(self._workers()):
            try:
                found.append(self._once(name, lanes))
            except Exception as error:  # noqa: BLE001 - a worker may be anything; it is named, and done without
                silent[name] = f"it does not answer as a worker of this lab: {str(error) or type(error).__name__}"
        return found, silent

    def _workers(self) -> dict[str, str]:
        """Name -> address."""
        workers = self._connected().scheduler_info()["workers"]
        return {str(worker["name"]): address for address, worker in workers.items()}

    def ask(self, host: str, call: Call, check_stop: Callable[[], None], patience_s: float | None = None) -> Answer:
        """The call's last answer. Raises HostLost after patience_s without any, and what check_stop raises."""
        patience_s = self._patience_s if patience_s is None else min(patience_s, self._patience_s)
        heard = time.monotonic()
        while True:
            check_stop()
            try:
                answer: Answer = self._once(host, call)
            except _lost() as error:
                trouble = str(error) or type(error).__name__
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

    def _once(self, host: str, question: Call | int) -> Any:
        address = self._workers().get(host)
        if address is None:
            raise OSError("the scheduler knows no such worker now")
        future = self._connected().submit(
            _messenger(), pickle.dumps(question), key=f"headwind-{uuid.uuid4().hex}", workers=[address],
            allow_other_workers=False, pure=False,
        )  # fmt: skip
        try:
            return pickle.loads(future.result(timeout=WAIT_S + REPLY_S))  # noqa: S301 - from our own station
        finally:
            future.release()


def serve(address: str, name: str, station: Station, say: Callable[[str], None]) -> None:
    """Be a worker of the scheduler at `address` until interrupted; where it is gone, until it is back."""
    global _station  # noqa: PLW0603 - a worker runs functions, which find their station only so
    distributed = _distributed()
    _station = station
    with tempfile.TemporaryDirectory(prefix="headwind-worker-") as folder:
        asyncio.run(_serve(distributed, address, name, folder, station, say))


async def _serve(
    distributed: Any, address: str, name: str, folder: str, station: Station, say: Callable[[str], None]
) -> None:
    told = ""
    while True:
        try:
            async with distributed.Worker(
                address, name=name, nthreads=THREADS, memory_limit=0, local_directory=folder, death_timeout=CONNECT_S
            ) as worker:
                say(f"{name} serves {address}; Ctrl-C ends it")
                told = ""
                while worker.status.name == "running":
                    await asyncio.sleep(AGAIN_S)
                    await asyncio.to_thread(station.rest)
                say(f"{name}: the scheduler is gone")
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            if told != str(error):
                say(f"{name}: {error}; trying again")
            told = str(error)
        await asyncio.sleep(AGAIN_S)


def _distributed() -> Any:
    """The library, told to be quiet. Raises UsageError where it is not installed."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise UsageError(
            "lanes on other machines need dask.distributed: .venv/bin/python -m pip install 'distributed>=2025.1'"
        ) from error
    dask.config.set(QUIET)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


def _lost() -> tuple[type[Exception], ...]:
    """What it looks like when a connection, a worker or the scheduler is gone."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    return OSError, TimeoutError, asyncio.TimeoutError, CancelledError, KilledWorker, RuntimeError, HeadwindError
