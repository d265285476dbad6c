"""Chromium, driven by the DevTools protocol over a pair of pipes.

Chromium chooses protocols by its command line, so there is a process for each.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import ssl
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from browsers.agent import serve_pages
from browsers.browser import DOWNLOAD, HOST, LEASH, START_S, WINDOW, Browser, Loading, Page, Place, keep_frame, launched
from browsers.devtools import CALL_S, BrowserGone, DevTools
from browsers.page import BEFORE

PROGRAM = "chromium-headless-shell"
PACKAGES = (PROGRAM, "libc6")
NAVIGATE, RELOAD = "Page.navigate", "Page.reload"
CRASH_S = 0.2  # longest time between the error of a load and the report that its renderer crashed
# What a page may want to open, by the event that reports it. Dialogs would wait for an answer, so each gets one.
DIALOG = "Page.javascriptDialogOpening"
REFUSED = {DIALOG: "dialogs", "Page.windowOpen": "windows", "Page.downloadWillBegin": "downloads"}
ANSWERS = {DIALOG: ("Page.handleJavaScriptDialog", {"accept": False})}
ABORTED = "net::ERR_ABORTED"  # by the browser, and not by server or network
NO_PORT = 1  # at which nothing listens, and which no page has in its address
KEYS, NETLOG = "keys.log", "netlog.json"
# A frame whenever the window shows something new, so small that encoding it costs the page little.
FRAMES_OF_FILM: dict[str, Any] = {"format": "jpeg", "quality": 60, "maxWidth": 320, "maxHeight": 180}
FIRST_FREE = 10  # file descriptors below may be the ones that the browser reads and writes: 3 and 4
NETWORK = b"network.mojom.NetworkService"  # in the command line of a process of Chromium
PROTOCOLS = {
    "h1": ("--disable-quic", "--disable-http2"),
    "h2": ("--disable-quic",),
    "h3": ("--enable-quic",),
}
# Nothing but the page uses CPU time or the network, and nothing of the page is put off because no window is shown.
# There is no sandbox: it needs user namespaces, or a program with rights of root, and the container has neither.
COMMON = (
    "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--mute-audio", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
    "--disable-domain-reliability", "--disable-client-side-phishing-detection", "--disable-extensions",
    "--disable-breakpad", "--disable-search-engine-choice-screen", "--metrics-recording-only", "--no-pings",
    "--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--password-store=basic",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--block-new-web-contents", "--no-proxy-server",
    "--disable-features=HttpsUpgrades,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,Translate",
)  # fmt: skip


def command(place: Place, key_hash: str, profile: str, logs: Path | None = None) -> list[str]:
    """The command line, but for the pipes. `key_hash` is that of the server's public key, `logs` a folder for logs.

    Raises ValueError for another protocol.
    """
    if place.protocol not in PROTOCOLS:
        raise ValueError(f"{place.protocol!r} is none of Chromium's protocols: {', '.join(PROTOCOLS)}")
    # Over QUIC a host may have its own root if any port of it is forced: a discovered one is not.
    forced = NO_PORT if place.discovers else place.port
    quic = (f"--origin-to-force-quic-on={HOST}:{forced}",) if place.protocol == "h3" else ()
    logged = (f"--ssl-key-log-file={logs / KEYS}", f"--log-net-log={logs / NETLOG}") if logs else ()
    return [
        PROGRAM, *COMMON, *PROTOCOLS[place.protocol], *quic, *logged, f"--user-data-dir={profile}",
        f"--window-size={WINDOW[0]},{WINDOW[1]}", f"--ignore-certificate-errors-spki-list={key_hash}",
        f"--host-resolver-rules=MAP {HOST} {place.host}, MAP * ~NOTFOUND", "about:blank",
    ]  # fmt: skip


def key_hash_of(place: Place, timeout_s: float = 10.0) -> str:
    """The SHA-256 of the server's public key in base64, from its certificate over TCP. Raises OSError."""
    certificate = ssl.get_server_certificate((place.host, place.port), timeout=timeout_s)
    key = _openssl(_openssl(certificate.encode(), "x509", "-pubkey", "-noout"), "pkey", "-pubin", "-outform", "der")
    return base64.b64encode(hashlib.sha256(key).digest()).decode()


def _openssl(data: bytes, *arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


@dataclass(slots=True)
class Chromium(Browser):
    """A running Chromium."""

    name: ClassVar[str] = "Chromium"

    @classmethod
    def start(cls, place: Place, logs: Path | None = None) -> Chromium:
        """Start a browser, and wait until it answers; its logs are TLS keys and a netlog.

        Raises BrowserGone with its last words, TooLate or OSError.
        """
        profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        words = command(place, key_hash_of(place), str(profile), logs)
        there, receiving, sending, back = _pipes()
        # bash: a shell that takes descriptors of two digits
        wrapped = ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *LEASH, *words]
        process = launched(wrapped, profile, (there, back))
        os.close(there)
        os.close(back)
        browser = cls(place, words, process, DevTools(receiving, sending, ANSWERS), profile, logs)
        with browser.starting():
            browser.devtools.call("Browser.getVersion", limit_s=START_S)
        return browser

    def open(self) -> Page:
        """Open an empty page in a new context. Raises BrowserGone, CallFailed or TooLate."""
        call = self.devtools.call
        context = call("Target.createBrowserContext", disposeOnDetach=False)["browserContextId"]
        call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
        width, height = WINDOW
        target = call("Target.createTarget", url="about:blank", browserContextId=context, width=width,
                      height=height)["targetId"]  # fmt: skip
        session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for method in ("Page.enable", "Inspector.enable"):
            call(method, session)
        if self.logs:
            call("Page.startScreencast", session, **FRAMES_OF_FILM)
        self.devtools.forget_events()
        return Page(context, target, session)

    def close_page(self, page: Page, limit_s: float = CALL_S) -> None:
        """Close a page with its context and connections. Raises BrowserGone, CallFailed or TooLate."""
        self.devtools.call("Target.disposeBrowserContext", limit_s=limit_s, browserContextId=page.context)
        self.devtools.forget_events()

    def network_process(self) -> int:
        """The pid of the process that has all connections, which the browser starts again if it ends; 0 without one."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_ours = os.getpgid(int(entry.name)) == self.process.pid
                if is_ours and NETWORK in (entry / "cmdline").read_bytes():
                    return int(entry.name)
        return 0

    def again(self, page: Page) -> Page:
        """The same page, to be loaded again without the HTTP cache, whose removal would take Alt-Svc with it."""
        self.devtools.forget_events()
        return replace(page, is_repeat=True)

    def navigate(self, page: Page, url: str) -> int:
        """Start to load an address; the number of the call. Raises BrowserGone."""
        if page.is_repeat:
            return self.devtools.start(RELOAD, page.session, ignoreCache=True)
        return self.devtools.start(NAVIGATE, page.session, url=url)

    def arrived(self, seen: Loading, page: Page, number: int) -> None:
        """Take note of the answer to `navigate`, if it has come. Raises CallFailed."""
        answer = self.devtools.answered(number, RELOAD if page.is_repeat else NAVIGATE)
        if answer is not None:
            seen.is_begun = True
            seen.error = DOWNLOAD if answer.get("isDownload") else answer.get("errorText", "")

    def note(self, seen: Loading, page: Page, event: dict[str, Any] | None) -> None:
        """Take note of an event that ends a load, or of something that the browser did not open. Raises BrowserGone."""
        match event:
            case {"method": "Page.loadEventFired", "sessionId": page.session} if seen.is_begun:  # not of the empty page
                seen.is_loaded = True
            case {"method": "Inspector.targetCrashed" | "Inspector.detached", "sessionId": page.session}:
                seen.crash = "the page's renderer crashed"
            case {"method": "Target.detachedFromTarget", "params": {"sessionId": page.session}}:
                seen.crash = "the page was closed"
            case {"method": "Page.screencastFrame", "sessionId": page.session, "params": frame} if self.logs:
                keep_frame(self.logs, frame["metadata"]["timestamp"], base64.b64decode(frame["data"]))
                self.devtools.start("Page.screencastFrameAck", page.session, sessionId=frame["sessionId"])
            case {"method": method, "sessionId": page.session} if method in REFUSED:
                seen.refused.append(REFUSED[method])
            case {"method": "Page.frameNavigated", "params": {"frame": {"unreachableUrl": _} as frame}} if (
                page.is_repeat and "parentId" not in frame
            ):
                seen.error = "the document did not come"  # the answer to a reload has no cause
            # The document has come. What a script "on new document" sets does not last, in Chromium 156: too early.
            case {"method": "Page.frameNavigated", "sessionId": page.session}:
                self.devtools.start("Runtime.evaluate", page.session, expression=BEFORE)

    def ask(self, page: Page, script: str) -> int:
        """Start a script in a page, which is a promise; the number of the call. Raises BrowserGone."""
        return self.devtools.start(
            "Runtime.evaluate", page.session, expression=script, awaitPromise=True, returnByValue=True
        )

    def given(self, number: int) -> dict[str, Any] | None:
        """The object that a script gave, empty if it gave none; None while it runs. Raises CallFailed."""
        answer = self.devtools.answered(number, "Runtime.evaluate")
        return None if answer is None else answer.get("result", {}).get("value") or {}

    def explain(self, seen: Loading, page: Page) -> None:
        """Wait a moment for the cause of an error: a renderer that crashed before the document came aborts its load."""
        deadline = time.monotonic() + CRASH_S
        try:
            while not seen.crash and time.monotonic() < deadline:
                self.note(seen, page, self.devtools.event(deadline - time.monotonic()))
        except BrowserGone as error:
            seen.crash = str(error)
        if seen.error == ABORTED and not seen.crash:
            seen.crash = "the browser aborted the load of the page"


def _pipes() -> tuple[int, int, int, int]:
    """Descriptors: what the browser reads, what we read, what we write, what the browser writes."""
    to_browser, from_browser = os.pipe(), os.pipe()
    found = []
    for descriptor in (to_browser[0], from_browser[0], to_browser[1], from_browser[1]):
        found.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE))
        os.close(descriptor)
    there, receiving, sending, back = found
    return there, receiving, sending, back


if __name__ == "__main__":
    serve_pages(Chromium, PROGRAM, PACKAGES)
