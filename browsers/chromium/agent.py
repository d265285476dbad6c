"""The agent of Chromium, next to the client: `prepare` a fresh page, `run` it, and report its timing.

It runs without capabilities, and not as root, on the client's host: interface, routes and addresses are the client's.
"""

from __future__ import annotations

import ipaddress
import math
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from browsers.chromium.process import PROGRAM, Chromium, Page, Place
from browsers.devtools import BrowserGone, CallFailed, TooLate
from browsers.page import collecting, figures
from impair import processors
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.endpoint.packet_gap import Silence
from impair.endpoint.path import OnlyLink
from impair.endpoint.tcp_state import congestion_of
from impair.messages import Machine
from impair.pulse import Pulse
from impair.wire import Operation, serve

WARM_UP_S = 20.0  # longest time of the first page of a browser, over an unimpaired path
LOOK_AFTER_S = 0.05  # into the run: the sockets are there, and there is time to look at them
CRASH_S = 0.2  # longest time between the error of a load and the report that its renderer crashed
ABORTED = "net::ERR_ABORTED"  # by the browser, and not by server or network
COLLECT_S = 5.0  # longest time that a page takes to report its timing
PACKAGES = ("chromium-headless-shell", "libc6")
TROUBLE = (BrowserGone, CallFailed, TooLate)
NOTHING: dict[str, Any] = {"negotiated": {"alpn": None}, "metrics": {}, "samples": {}}  # of a page without timing
NOT_KILLED = 1  # exit status of a run whose browser lives on, but is of no use


class NotPrepared(RuntimeError):
    """A page is to be loaded, and `prepare` was not called before, or the browser ended since."""


@dataclass(slots=True)
class Loading:
    """How the load of a page went."""

    took_s: float = 0.0  # by this agent's clock, until the load event or the end
    is_begun: bool = False  # the document has come, or cannot come
    is_loaded: bool = False
    error: str = ""  # that of the browser: the document did not come
    crash: str = ""  # the page or the browser has ended
    congestion: list[str] = field(default_factory=list)
    sockets: dict[str, int | None] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return bool(self.is_loaded or self.error or self.crash)


class Browsers:
    """The browsers of a testbed, one for each protocol and server, started when they are first needed."""

    def __init__(self) -> None:
        self._running: dict[Place, Chromium] = {}
        self._opened: dict[Place, Page] = {}

    def prepare(self, protocol: str, host: str, port: int, path: str) -> dict[str, Any]:
        """Open a fresh page, in a browser that has loaded `path` once: {"started_s": None if it ran already}.

        Call it on an unimpaired path. Raises ValueError if the browser does not load the page.
        """
        place, start = Place(protocol, host, port), time.monotonic()
        with suppress(*TROUBLE):
            if self._reopened(place):
                return {"started_s": None}
        self._drop(place)
        browser = self._running[place] = Chromium.start(place)
        try:
            self._warm_up(browser, path)
            self._opened[place] = browser.open()
        except BaseException:
            self._drop(place)
            raise
        return {"started_s": time.monotonic() - start}

    def _reopened(self, place: Place) -> bool:
        """Open another page in the browser that runs already; False if none runs."""
        browser = self._running.get(place)
        if not browser or not browser.is_alive:
            return False
        if page := self._opened.pop(place, None):  # of a trial that was never run
            browser.close_page(page)
        self._opened[place] = browser.open()
        return True

    @staticmethod
    def _warm_up(browser: Chromium, path: str) -> None:
        page = browser.open()
        seen = load(browser, page, browser.place.url(path), WARM_UP_S)
        if not seen.is_loaded or seen.error:
            why = seen.error or seen.crash or f"it took longer than {WARM_UP_S:g} s"
            raise ValueError(f"Chromium cannot load {browser.place.url(path)} over {browser.place.protocol}: {why}")
        browser.close_page(page)

    def run(self, timeout_s: float, protocol: str, host: str, port: int, path: str, **_: Any) -> dict[str, Any]:
        """Load the prepared page: a ClientRun (impair/messages.py) and what browsers/page.py finds. Raises NotPrepared.

        `load_s` in "metrics" is missing if the load event did not come.
        """
        place = Place(protocol, host, port)
        browser, page = self._running.get(place), self._opened.pop(place, None)
        if not browser or not page:
            raise NotPrepared(f"no page is open for {place}")
        url = place.url(path)
        network = browser.network_process()
        before, machine = processors.kept_waiting(), processors.machine()
        with Silence(link().name) as silence, PULSE.along(silence.look):
            seen = load(browser, page, url, timeout_s, watch(place))
        after, busy = processors.kept_waiting(), processors.machine()
        if not seen.crash and browser.network_process() != network:
            seen.crash = "the browser's network process ended"  # its requests failed, and no protocol did
        collected, exit_code, words = self._ended(browser, page, seen, url)
        until_s = math.inf if seen.is_loaded else seen.took_s
        return {
            "command": [*browser.command[:-1], url], "exit_code": exit_code, "stderr_tail": words,
            "timed_out": not seen.has_ended, "wall_s": seen.took_s,
            "cpu_s": max(0.0, (after.cpu_s or 0.0) - (before.cpu_s or 0.0)),
            "machine": asdict(Machine(busy.cpus, busy.busy_s - machine.busy_s, busy.steal_s - machine.steal_s)),
            "packet_gap_max_s": silence.longest_s, "congestion": seen.congestion,
            "windows": {**tcp_limits(), **seen.sockets}, "error": seen.error,
            **(figures(collected, until_s) if collected else NOTHING),
        }  # fmt: skip

    def _ended(self, browser: Chromium, page: Page, seen: Loading, url: str) -> tuple[dict[str, Any], int, str]:
        """The page's timing, empty if there is none; the exit code, 0 if the browser can go on; and why it cannot."""
        collected: dict[str, Any] = {}
        try:
            if not seen.crash and not seen.error:
                collected = collect(browser, page, is_loaded=seen.is_loaded)
            if not seen.crash:
                browser.close_page(page)
                return (collected if collected.get("url") == url else {}), 0, ""
        except TROUBLE as error:
            seen.crash = str(error)
        words = "\n".join(filter(None, (browser.last_words(), seen.crash)))
        return collected, self._drop(browser.place) or NOT_KILLED, words

    def _drop(self, place: Place) -> int:
        """End the browser of a place, if there is one; its exit code."""
        self._opened.pop(place, None)
        browser = self._running.pop(place, None)
        return browser.close() if browser else 0


def collect(browser: Chromium, page: Page, *, is_loaded: bool) -> dict[str, Any]:
    """The timing of a page; empty if it cannot tell. Raises BrowserGone."""
    try:
        found = browser.devtools.call(
            "Runtime.evaluate", page.session, limit_s=COLLECT_S, expression=collecting(at_once=not is_loaded),
            awaitPromise=True, returnByValue=True,
        )  # fmt: skip
    except (CallFailed, TooLate):
        return {}
    value = found.get("result", {}).get("value")
    return value if isinstance(value, dict) else {}


def watch(place: Place) -> Callable[[Loading], bool]:
    """A look at the sockets of the page: it notes what it finds, and returns whether it found something."""
    network, known = ipaddress.IPv4Network(place.host), {each.inode for each in udp_sockets()}

    def look(seen: Loading) -> bool:
        if place.protocol == "h3":
            new = [each for each in udp_sockets() if each.inode not in known]
            seen.sockets = smallest(new)
            return bool(new)
        seen.congestion = sorted(set(congestion_of(network)))
        return bool(seen.congestion)

    return look


def load(
    browser: Chromium, page: Page, url: str, timeout_s: float, look: Callable[[Loading], bool] | None = None
) -> Loading:
    """Load a page, for at most `timeout_s`. Raises LabIsGone.

    `look` is called LOOK_AFTER_S later, and in steps that double until it has found something.
    """
    devtools, seen, start = browser.devtools, Loading(), time.monotonic()
    pause_s = LOOK_AFTER_S
    look_at = start + pause_s if look else start + timeout_s
    try:
        number = devtools.start("Page.navigate", page.session, url=url)
        while not seen.has_ended and time.monotonic() < start + timeout_s:
            event = devtools.event(min(look_at, start + timeout_s) - time.monotonic())
            if answer := devtools.answered(number, "Page.navigate"):
                seen.is_begun, seen.error = True, answer.get("errorText", "")
            _note(seen, event, page)
            if look and time.monotonic() >= look_at:
                pause_s *= 2
                look_at = start + timeout_s if look(seen) else time.monotonic() + pause_s
    except (BrowserGone, CallFailed) as error:
        seen.crash = str(error)
    seen.took_s = time.monotonic() - start
    if seen.error and not seen.crash:
        _await_crash(browser, page, seen)
    return seen


def _await_crash(browser: Chromium, page: Page, seen: Loading) -> None:
    """Wait a moment for the cause of an error: a renderer that crashed before the document came aborts its load."""
    deadline = time.monotonic() + CRASH_S
    try:
        while not seen.crash and time.monotonic() < deadline:
            _note(seen, browser.devtools.event(deadline - time.monotonic()), page)
    except BrowserGone as error:
        seen.crash = str(error)
    if seen.error == ABORTED and not seen.crash:
        seen.crash = "the browser aborted the load of the page"


def _note(seen: Loading, event: dict[str, Any] | None, page: Page) -> None:
    """Take note of an event that ends a load."""
    match event:
        case {"method": "Page.loadEventFired", "sessionId": page.session} if seen.is_begun:  # not of the empty page
            seen.is_loaded = True
        case {"method": "Inspector.targetCrashed" | "Inspector.detached", "sessionId": page.session}:
            seen.crash = "the page's renderer crashed"
        case {"method": "Target.detachedFromTarget", "params": {"sessionId": page.session}}:
            seen.crash = "the page was closed"


def link() -> OnlyLink:
    """The link to the router."""
    if not LINKS:
        LINKS.append(OnlyLink.find())
    return LINKS[0]


def info() -> dict[str, Any]:
    """The browser's version, and its packages."""
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *PACKAGES],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {"version": said.strip(), "packages": dict(line.split() for line in listing.splitlines())}


LINKS: list[OnlyLink] = []
PULSE = Pulse()
BROWSERS = Browsers()
OPERATIONS: dict[str, Operation] = {"prepare": BROWSERS.prepare, "run": BROWSERS.run, "info": info}


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
