"""The base class of browsers: start, loads of pages that are watched, and end.

Each browser has a folder with its image and its agent, which drives it.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from browsers.devtools import CALL_S, BrowserGone, CallFailed, DevTools, TooLate
from browsers.page import collecting

HOST = "server"  # in the certificates of the lab's servers; each browser resolves it by its own rule
# setpriv: the browser dies with the agent, however that dies.
LEASH = ("setpriv", "--pdeathsig", "KILL")
USUAL_PORT = 443
WINDOW = (1366, 768)
GRACE_S = 2.0  # for the end of a closed browser
START_S = 20.0  # longest time until a started browser answers
LOOK_AFTER_S = 0.05  # into the run: the sockets are there, and there is time to look at them
COLLECT_S = 4.0  # longest time that a page takes to report its timing
CLOSE_S = 2.0  # longest time that a browser takes to close a page; with COLLECT_S below the lab's patience
CLOCK_S = 0.05  # between a browser's clock and this agent's
DOWNLOAD = "it is a download, and no document"
FILM = "film"  # in the logs: what the window showed, a picture whenever it changed


@dataclass(frozen=True, slots=True)
class Place:
    """The server that a browser talks to, and the protocol.

    `discovers` (h3 only): it starts over TCP, and follows the server's offer of HTTP/3 (Alt-Svc, RFC 7838).
    """

    protocol: str
    host: str  # its address
    port: int
    discovers: bool = False

    def url(self, path: str) -> str:
        """The address of an object, as a browser writes it: without the usual port."""
        port = "" if self.port == USUAL_PORT else f":{self.port}"
        return f"https://{HOST}{port}{path}"


@dataclass(frozen=True, slots=True)
class Page:
    """An empty page in its own context; `session` is how its calls are addressed, if a browser has such.

    `is_repeat`: its context has loaded the page before, and it is to be loaded without the HTTP cache.
    """

    context: str
    target: str
    session: str = ""
    is_repeat: bool = False


@dataclass(slots=True)
class Loading:
    """How the load of a page went."""

    url: str
    started_at: float = 0.0  # s since the epoch
    took_s: float = 0.0  # by this agent's clock, until the load event or the end
    is_begun: bool = False  # the document has come, or cannot come
    is_loaded: bool = False
    timed_out: bool = False
    error: str = ""  # that of the browser: the document did not come
    crash: str = ""  # the page or the browser has ended
    refused: list[str] = field(default_factory=list)  # what the page wanted to open, and the browser did not
    congestion: list[str] = field(default_factory=list)
    sockets: dict[str, int | None] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return bool(self.is_loaded or self.error or self.crash)


@dataclass(slots=True)
class Browser(ABC):
    """A running browser that speaks one protocol with one server, and its pages, each in its own context.

    A context has its own connections, cache, TLS sessions and alternative services, and forgets them when it is closed.
    """

    name: ClassVar[str]  # in sentences
    place: Place
    command: list[str]  # the last word is the address of an empty page
    process: subprocess.Popen[bytes]
    devtools: DevTools
    profile: Path
    logs: Path | None = None  # of a browser that logs what it does: where

    @classmethod
    @abstractmethod
    def start(cls, place: Place, logs: Path | None = None) -> Self:
        """Start a browser, and wait until it answers; it logs what it can into the folder `logs`, if there is one.

        Raises BrowserGone with its last words, TooLate or OSError.
        """

    @abstractmethod
    def open(self) -> Page:
        """Open an empty page in a new context. Raises BrowserGone, CallFailed or TooLate."""

    @abstractmethod
    def close_page(self, page: Page, limit_s: float = CALL_S) -> None:
        """Close a page with its context and connections. Raises BrowserGone, CallFailed or TooLate."""

    @abstractmethod
    def again(self, page: Page) -> Page:
        """The page for a repeat visit, once `page` is loaded: in the same context, whose HTTP cache will not be used.

        Raises BrowserGone, CallFailed or TooLate.
        """

    @abstractmethod
    def navigate(self, page: Page, url: str) -> int:
        """Start to load an address; the number of the call. Raises BrowserGone."""

    @abstractmethod
    def arrived(self, seen: Loading, page: Page, number: int) -> None:
        """Take note of the answer to `navigate`, if it has come. Raises CallFailed."""

    def note(self, seen: Loading, page: Page, event: dict[str, Any] | None) -> None:
        """Take note of an event that ends a load, or of something that the browser did not open. Raises BrowserGone."""
        del seen, page, event

    @abstractmethod
    def ask(self, page: Page, script: str) -> int:
        """Start a script in a page, which is a promise; the number of the call. Raises BrowserGone."""

    @abstractmethod
    def given(self, number: int) -> dict[str, Any] | None:
        """The object that a script gave, empty if it gave none; None while it runs. Raises CallFailed."""

    @contextmanager
    def starting(self) -> Iterator[None]:
        """End the browser if it does not answer: BrowserGone and TooLate then have its last words."""
        try:
            yield
        except (BrowserGone, TooLate) as error:
            words = self.last_words()
            self.close()
            raise type(error)(f"{error}\n{words}") from error

    def explain(self, seen: Loading, page: Page) -> None:
        """Look for the cause of an error in `seen`, if the browser reports it later."""
        del seen, page

    def network_process(self) -> int:
        """The pid of the process that has all connections, which the browser starts again if it ends; 0 without one."""
        return 0

    def last_words(self) -> str:
        """The last lines that it printed."""
        file = self.profile / "stderr"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return "\n".join(lines[-8:])

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process.poll() is None

    def close(self) -> int:
        """End the browser with all its processes; its exit code, minus the signal's number if it was killed."""
        self.devtools.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        shutil.rmtree(self.profile, ignore_errors=True)
        return self.process.wait()


def launched(
    words: Sequence[str], profile: Path, pass_fds: Sequence[int] = (), **environment: str
) -> subprocess.Popen[bytes]:
    """Start a browser that leaves its words in `profile`, and nothing outside of it. Raises OSError."""
    with (profile / "stderr").open("wb") as stderr:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, pass_fds=pass_fds, start_new_session=True,
            env={**os.environ, "HOME": str(profile), **environment},
        )  # fmt: skip


def load(
    browser: Browser, page: Page, url: str, timeout_s: float, look: Callable[[Loading], bool] | None = None
) -> Loading:
    """Load a page, for at most `timeout_s`. Raises LabIsGone.

    `look` is called LOOK_AFTER_S later, and in steps that double until it has found something.
    """
    seen, start = Loading(url, time.time()), time.monotonic()
    pause_s = LOOK_AFTER_S
    look_at = start + pause_s if look else start + timeout_s
    try:
        number = browser.navigate(page, url)
        while not seen.has_ended and time.monotonic() < start + timeout_s:
            event = browser.devtools.event(min(look_at, start + timeout_s) - time.monotonic())
            browser.arrived(seen, page, number)
            browser.note(seen, page, event)
            if look and time.monotonic() >= look_at:
                pause_s *= 2
                look_at = start + timeout_s if look(seen) else time.monotonic() + pause_s
    except (BrowserGone, CallFailed) as error:
        seen.crash = str(error)
    seen.took_s, seen.timed_out = time.monotonic() - start, not seen.has_ended
    if seen.error and not seen.crash:
        browser.explain(seen, page)
    return seen


def collect(browser: Browser, page: Page, seen: Loading) -> dict[str, Any]:
    """The timing of a page; empty if it has none, and then `seen` has the reason. Raises BrowserGone.

    The reason is empty if the document did not come in time: that of before the load is still there.
    """
    deadline = time.monotonic() + COLLECT_S
    script = collecting(at_once=not seen.is_loaded)
    number, is_again = browser.ask(page, script), False
    while not seen.crash and time.monotonic() < deadline:
        browser.note(seen, page, browser.devtools.event(deadline - time.monotonic()))
        try:
            found = browser.given(number)
        except CallFailed as error:
            if not is_again:  # perhaps there is another document now
                number, is_again = browser.ask(page, script), True
                continue
            seen.error = f"it ended before it reported its times ({error})"
            browser.explain(seen, page)
            return {}
        if found is not None:
            if seen.timed_out and found.get("origin", math.inf) < (seen.started_at - CLOCK_S) * 1000:
                return {}
            if found.get("url") == seen.url:
                if browser.logs:
                    date_frames(browser.logs, found["origin"])
                return found
            seen.error = f"it went on to {found.get('url', 'another address')}"
            return {}
    seen.error = f"it did not report its times within {COLLECT_S:g} s: one of its scripts does not end"
    return {}


def keep_frame(logs: Path, at_s: float, picture: bytes) -> None:
    """Keep a picture of the window, shown from `at_s` on, in s since the epoch."""
    (logs / FILM).mkdir(exist_ok=True)
    (logs / FILM / f"{at_s * 1000:.0f}").write_bytes(picture)


def date_frames(logs: Path, origin_ms: float) -> None:
    """Name the kept pictures by the ms since `origin_ms`, the start of the navigation; drop those from before."""
    for path in sorted((logs / FILM).glob("*")):
        after_ms = round(float(path.name) - origin_ms)
        if after_ms < 0:
            path.unlink()
        else:
            path.rename(path.with_name(f"{after_ms:06}.jpg"))
