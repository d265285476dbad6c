"""The agent of any browser, next to the client: `prepare` a fresh page, `run` it, and report its timing.

It runs without capabilities, and not as root, on the client's host: interface, routes and addresses are the client's.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from browsers.browser import CLOSE_S, DOWNLOAD, Browser, Loading, Page, Place, collect, load
from browsers.devtools import BrowserGone, CallFailed, TooLate
from browsers.page import figures
from browsers.watch import Watch
from impair import processors
from impair.endpoint.buffers import tcp_limits
from impair.endpoint.packet_gap import Silence
from impair.endpoint.path import OnlyLink
from impair.messages import Machine
from impair.pulse import Pulse
from impair.taken import FILES
from impair.taken import OPERATIONS as TAKEN
from impair.wire import Operation, serve

WARM_UP_S = 20.0  # longest time of the first page of a browser, over an unimpaired path
TROUBLE = (BrowserGone, CallFailed, TooLate)
NOTHING: dict[str, Any] = {"negotiated": {"alpn": None}, "metrics": {}, "samples": {}}  # of a page without timing
ALONE = "browser"  # the isolation in which each trial has its own browser
NOT_KILLED = 1  # exit status of a run whose browser lives on, but is of no use


class NotPrepared(RuntimeError):
    """A page is to be loaded, and `prepare` was not called before, or the browser ended since."""


class Browsers:
    """The browsers of a testbed, one for each protocol and server, started when they are first needed."""

    def __init__(self, kind: type[Browser]) -> None:
        self._kind = kind
        self._running: dict[Place, Browser] = {}
        self._opened: dict[Place, Page] = {}
        self._failed: dict[Place, Loading] = {}  # first visits that did not end with a load event

    def prepare(
        self, protocol: str, host: str, port: int, path: str, isolation: str = "", *, discovers: bool = False,
        captured: bool = False, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Open a fresh page, in a browser that has loaded `path` once: {"started_s": None if it ran already}.

        With the isolation ALONE, in a new browser that has loaded nothing. For a trial that is `captured` it is a new
        one, which logs, and ends with the trial. Call it on an unimpaired path. Raises
        ValueError if the browser cannot load the page. One that takes longer than WARM_UP_S, or is a download, raises
        nothing: it will be the outcome of the trial.
        """
        place, start = Place(protocol, host, port, discovers), time.monotonic()
        self._failed.pop(place, None)
        with suppress(*TROUBLE):
            if isolation != ALONE and not captured and self._reopened(place):
                return {"started_s": None}
        self._drop(place)
        logs = Path(tempfile.mkdtemp(prefix="logs-")) if captured else None
        browser = self._running[place] = self._kind.start(place, logs)
        try:
            if isolation != ALONE:
                self._warm_up(browser, path)
            self._opened[place] = browser.open()
        except BaseException:
            self._drop(place)
            raise
        return {"started_s": time.monotonic() - start}

    def _reopened(self, place: Place) -> bool:
        """Open another page in the browser that runs already; False if none runs."""
        browser = self._running.get(place)
        if not browser or browser.logs or not browser.is_alive:
            return False
        if page := self._opened.pop(place, None):  # of a trial that was never run
            browser.close_page(page)
        self._opened[place] = browser.open()
        return True

    @staticmethod
    def _warm_up(browser: Browser, path: str) -> None:
        page = browser.open()
        seen = load(browser, page, browser.place.url(path), WARM_UP_S)
        if why := seen.crash or seen.error.removeprefix(DOWNLOAD):
            place = browser.place
            raise ValueError(f"{browser.name} cannot load {place.url(path)} over {place.protocol}: {why}")
        browser.close_page(page)

    def visit(
        self, timeout_s: float, protocol: str, host: str, port: int, path: str, *, discovers: bool = False, **_: Any
    ) -> dict[str, Any]:
        """Load the prepared page, so that `run` is a repeat visit: {"took_s"}. Raises NotPrepared.

        If there is no load event in time, nothing is raised: the repeat visit ends at once with the reason. The browser
        keeps connections until their sockets are destroyed (`forget` of the client's agent), or closes them now.
        """
        place = Place(protocol, host, port, discovers)
        browser, page = self._taken(place)
        seen = load(browser, page, place.url(path), timeout_s)
        try:
            self._opened[place] = browser.again(page) if seen.is_loaded else page
        except TROUBLE as error:
            seen.crash, self._opened[place] = str(error), page
        if seen.crash or not seen.is_loaded:
            seen.error = f"its first visit: {seen.error or f'no load event within {timeout_s:g} s'}"
            seen.timed_out = False  # which would be a bound of the repeat visit
            self._failed[place] = seen
        return {"took_s": seen.took_s}

    def _taken(self, place: Place) -> tuple[Browser, Page]:
        """The browser and the page that were prepared for a place, once. Raises NotPrepared."""
        browser, page = self._running.get(place), self._opened.pop(place, None)
        if not browser or not page:
            raise NotPrepared(f"no page is open for {place}")
        return browser, page

    def run(
        self, timeout_s: float, protocol: str, host: str, port: int, path: str, isolation: str = "", *,
        discovers: bool = False, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Load the prepared page: a ClientRun (impair/messages.py) and what browsers/page.py finds. Raises NotPrepared.

        `load_s` in "metrics" is missing if the load event did not come.
        """
        place = Place(protocol, host, port, discovers)
        browser, page = self._taken(place)
        url, watch = place.url(path), Watch(place)
        network = browser.network_process()
        before, machine = processors.kept_waiting(), processors.machine()
        failed = self._failed.pop(place, None)
        with Silence(link().name) as silence, PULSE.along(silence.look):
            seen = failed or load(browser, page, url, timeout_s, watch.look)
        connections = watch.connections(seen)
        after, busy = processors.kept_waiting(), processors.machine()
        if not seen.crash and browser.network_process() != network:
            seen.crash = "the browser's network process ended"  # its requests failed, and no protocol did
        until_s = math.inf if seen.is_loaded else seen.took_s
        collected, exit_code, words = self._ended(browser, page, seen)
        if failed or isolation == ALONE:
            self._drop(place)
        found = figures(collected, until_s) if collected else NOTHING
        return {
            "command": [*browser.command[:-1], url], "exit_code": exit_code, "stderr_tail": words,
            "timed_out": seen.timed_out and not seen.crash, "wall_s": seen.took_s,
            "cpu_s": max(0.0, (after.cpu_s or 0.0) - (before.cpu_s or 0.0)),
            "machine": asdict(Machine(busy.cpus, busy.busy_s - machine.busy_s, busy.steal_s - machine.steal_s)),
            "packet_gap_max_s": silence.longest_s, "congestion": seen.congestion,
            "windows": {**tcp_limits(), **seen.sockets}, "error": seen.error, "warnings": refusals(seen.refused),
            **found, "metrics": {**found["metrics"], **connections},
        }  # fmt: skip

    def _ended(self, browser: Browser, page: Page, seen: Loading) -> tuple[dict[str, Any], int, str]:
        """The page's timing, empty if there is none; the exit code, 0 if the browser can go on; and why it cannot."""
        collected: dict[str, Any] = {}
        try:
            if not seen.crash and not seen.error:
                collected = collect(browser, page, seen)
            if not seen.crash:
                browser.close_page(page, CLOSE_S)
                if browser.logs or seen.timed_out:  # perhaps because a process of the browser stands still
                    self._drop(browser.place)
                return collected, 0, ""
        except TROUBLE as error:
            seen.crash = str(error)
        words = "\n".join(filter(None, (seen.crash, browser.last_words())))
        return collected, self._drop(browser.place) or NOT_KILLED, words

    def _drop(self, place: Place) -> int:
        """End the browser of a place, if there is one, and keep its logs for the lab; its exit code."""
        self._opened.pop(place, None)
        browser = self._running.pop(place, None)
        code = browser.close() if browser else 0
        if browser and browser.logs:
            FILES.keep_folder(browser.logs)
            shutil.rmtree(browser.logs, ignore_errors=True)
        return code


def refusals(refused: Sequence[str]) -> list[str]:
    """The warning of a page that wanted to open something; none if it did not."""
    counts = ", ".join(f"{name}: {count}" for name, count in sorted(Counter(refused).items()))
    return [f"the page wanted to open what a browser without a window refuses at once ({counts})"] if counts else []


def link() -> OnlyLink:
    """The link to the router."""
    if not LINKS:
        LINKS.append(OnlyLink.find())
    return LINKS[0]


def info(program: str, packages: Sequence[str]) -> dict[str, Any]:
    """The browser's version, and its packages."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *packages],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {"version": said.strip(), "packages": dict(line.split() for line in listing.splitlines())}


def serve_pages(kind: type[Browser], program: str, packages: Sequence[str]) -> None:
    """Answer the lab's requests until it hangs up. `program` and its Debian `packages` are those of the browser."""
    browsers = Browsers(kind)
    operations: dict[str, Operation] = {
        **TAKEN, "prepare": browsers.prepare, "visit": browsers.visit, "run": browsers.run,
        "info": partial(info, program, packages),
    }  # fmt: skip
    serve(operations, sys.stdin, sys.stdout)


LINKS: list[OnlyLink] = []
PULSE = Pulse()
