"""Firefox, driven by WebDriver BiDi on its loopback.

Firefox chooses protocols by preferences of a profile, so there is a process for each.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from browsers.agent import serve_pages
from browsers.browser import DOWNLOAD, HOST, LEASH, START_S, WINDOW, Browser, Loading, Page, Place, launched
from browsers.devtools import CALL_S, CLOSED, BrowserGone, CallFailed, TooLate
from browsers.firefox.bidi import BiDi
from browsers.page import BEFORE

PROGRAM = "firefox-esr"
PACKAGES = (PROGRAM, "libnss3", "libc6")
LISTENING = re.compile(r"WebDriver BiDi listening on ws://127\.0\.0\.1:([0-9]+)")
PAUSE_S = 0.02  # between two looks at the words of a starting browser
NAVIGATE, EVALUATE = "browsingContext.navigate", "script.evaluate"
# What a page may want to open, by the event that reports it.
DOWNLOADS = "downloads"
DOWNLOAD_S = 0.5  # longest time without an event between the answer to `navigate` and the report of a download
REFUSED = {"browsingContext.userPromptOpened": "dialogs", "browsingContext.downloadWillBegin": DOWNLOADS}
EMPTY = "about:blank"
NETWORK_ERROR = re.compile(r"NS_ERROR_\S.*")  # in what Firefox reports of a document that did not come
SHA256 = "OID.2.16.840.1.101.3.4.2.1"  # as cert_override.txt calls it
# The preferences that Firefox recommends to who drives it let pages open windows.
NO_WINDOWS = "Services.prefs.setBoolPref('dom.disable_open_during_load', true)"
NO_CACHE = "Services.cache2.clear()"
NO_CONNECTIONS = "Services.obs.notifyObservers(null, 'net:cancel-all-connections')"
# Neqo, Firefox's QUIC, keeps a TLS session three PTO after its ticket came, if the server sends no NEW_TOKEN frame
# (neqo-transport, `create_resumption_token`), and never if the connection ends before. PTO is RTT + 4 * RTT / 2 + the
# peer's max_ack_delay of 25 ms (RFC 9002, 6.2.1), and the handshake takes at least an RTT: 9 RTT, one until the ticket
# came, and three for one that was lost.
SESSION_RTTS, SESSION_EXTRA_MS = 13, 3 * 25 + 50  # and 50 ms, the resolution of neqo's timers
LONGEST_REST_S = 6.0  # less than the lab waits for a visit beyond its timeout
REST_MS = f"""(([page]) => page.connectEnd - performance.now()
  + {SESSION_RTTS} * (page.connectEnd - page.connectStart) + {SESSION_EXTRA_MS}
)(performance.getEntriesByType("navigation"))"""
WINDOWS: dict[str, Any] = {"moz:scope": "chrome", "maxDepth": 0}  # those of the browser, not of pages
NEVER_MS = 1 << 30
Preferences = dict[str, bool | int | str]

# Firefox 153: HTTP/3 from the first request on, without the race of TCP against it that begins after 100 ms, and
# without TCP after an error.
FORCED: Preferences = {
    "network.http.http3.force-use-alt-svc-mapping-for-testing": True,
    "network.http.http3.fallback_to_h2_on_error": False,
    "network.http.http3.backup_timer_delay": NEVER_MS,
}
# It switches HTTP/3 off if a certificate's root is not one of Firefox's.
PROTOCOLS: dict[str, Preferences] = {
    "h1": {"network.http.http2.enabled": False, "network.http.http3.enable": False},
    "h2": {"network.http.http2.enabled": True, "network.http.http3.enable": False},
    "h3": {
        "network.http.http2.enabled": True, "network.http.http3.enable": True,
        "network.http.http3.disable_when_third_party_roots_found": False,
    },
}  # fmt: skip
# No name is looked up. Whatever is not for the testbed's server goes to a port of the loopback where nothing listens.
CONFINED: Preferences = {
    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9, "network.proxy.no_proxies_on": HOST,
    "network.proxy.failover_direct": False, "network.proxy.allow_bypass": False,
    "network.trr.mode": 5, "network.dns.disablePrefetch": True, "network.prefetch-next": False,
}  # fmt: skip
# Nothing but the page uses CPU time: no telemetry, updates, tests of the connection, lists, start page or first run.
QUIET: Preferences = {
    "app.normandy.enabled": False, "app.shield.optoutstudies.enabled": False, "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False, "browser.newtab.preload": False, "browser.newtabpage.enabled": False,
    "browser.ping-centre.telemetry": False, "browser.region.update.enabled": False,
    "browser.safebrowsing.blockedURIs.enabled": False, "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False, "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False, "browser.sessionstore.resume_from_crash": False,
    "browser.shell.checkDefaultBrowser": False, "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0, "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False, "dom.push.connection.enabled": False,
    "extensions.getAddons.cache.enabled": False, "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False, "media.gmp-manager.updateEnabled": False,
    "messaging-system.rsexperimentloader.enabled": False, "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False, "security.remote_settings.crlite_filters.enabled": False,
    "security.remote_settings.intermediates.enabled": False, "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False, "toolkit.telemetry.unified": False,
}  # fmt: skip
LOGGED: Preferences = {"network.http.http3.enable_qlog": True}  # into the folder of temporary files
PRECISE: Preferences = {"privacy.reduceTimerPrecision": False}  # else times are whole milliseconds


def preferences(place: Place) -> Preferences:
    """The preferences of a profile for one protocol and server. Raises ValueError for another protocol."""
    if place.protocol not in PROTOCOLS:
        raise ValueError(f"{place.protocol!r} is none of Firefox's protocols: {', '.join(PROTOCOLS)}")
    mapped: Preferences = {"network.http.http3.alt-svc-mapping-for-testing": f"{HOST};h3=:{place.port}", **FORCED}
    is_forced = place.protocol == "h3" and not place.discovers
    return {
        **CONFINED, **QUIET, **PRECISE, **PROTOCOLS[place.protocol], **(mapped if is_forced else {}),
        "network.dns.forceResolve": place.host,
    }  # fmt: skip


def trusting(place: Place, certificate: bytes) -> str:
    """The file cert_override.txt of a profile that accepts this certificate (DER) from the server, and no other."""
    fingerprint = hashlib.sha256(certificate).digest().hex(":").upper()
    return f"{HOST}:{place.port}:\t{SHA256}\t{fingerprint}\t\n"


def make_profile(place: Place, folder: Path, logs: Path | None = None, timeout_s: float = 10.0) -> None:
    """Write a profile; the server's certificate is read over TCP. Raises OSError, or ValueError for a protocol."""
    wanted = preferences(place) | (LOGGED if logs else {})
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wanted.items())
    (folder / "user.js").write_text("".join(lines))
    text = ssl.get_server_certificate((place.host, place.port), timeout=timeout_s)
    (folder / "cert_override.txt").write_text(trusting(place, ssl.PEM_cert_to_DER_cert(text)))


@dataclass(slots=True)
class Firefox(Browser):
    """A running Firefox; its pages are in separate containers (user contexts)."""

    name: ClassVar[str] = "Firefox"

    window: str = ""  # its own, in which connections are closed

    @classmethod
    def start(cls, place: Place, logs: Path | None = None) -> Firefox:
        """Start a browser, and wait until it answers; its logs are qlogs.

        Raises BrowserGone with its last words, TooLate or OSError.
        """
        profile = Path(tempfile.mkdtemp(prefix="firefox-"))
        make_profile(place, profile, logs)
        words = [
            PROGRAM, "--headless", "--new-instance", "--profile", str(profile), "--remote-debugging-port", "0",
            "--remote-allow-system-access", EMPTY,
        ]  # fmt: skip
        width, height = WINDOW
        process = launched([*LEASH, *words], profile, MOZ_HEADLESS_WIDTH=str(width), MOZ_HEADLESS_HEIGHT=str(height),
                           MOZ_CRASHREPORTER_DISABLE="1", TMPDIR=str(logs or tempfile.gettempdir()))  # fmt: skip
        browser = cls(place, words, process, BiDi(CLOSED, CLOSED), profile, logs)
        with browser.starting():
            browser.devtools = BiDi.connect(browser.port())
            call = browser.devtools.call
            call("session.new", limit_s=START_S, capabilities={})
            call("session.subscribe", events=list(REFUSED))
            call("browser.setDownloadBehavior", downloadBehavior={"type": "denied"})
            call("script.addPreloadScript", functionDeclaration=f"() => {{ {BEFORE} }}")
            (window,) = call("browsingContext.getTree", **WINDOWS)["contexts"]
            browser.window = window["context"]
            browser.in_window(NO_WINDOWS)
        return browser

    def port(self) -> int:
        """The port that it listens on, once it does. Raises BrowserGone or TooLate."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if found := LISTENING.search(self.last_words()):
                return int(found[1])
            if not self.is_alive:
                raise BrowserGone("the browser has ended")
            time.sleep(PAUSE_S)
        raise TooLate(f"the browser did not listen within {START_S:g} s")

    def open(self) -> Page:
        """Open an empty page in a new context. Raises BrowserGone, CallFailed or TooLate."""
        context = self.devtools.call("browser.createUserContext")["userContext"]
        target = self.devtools.call("browsingContext.create", type="tab", userContext=context)["context"]
        self.devtools.forget_events()
        return Page(context, target)

    def close_page(self, page: Page, limit_s: float = CALL_S) -> None:
        """Close a page with its context and connections. Raises BrowserGone, CallFailed or TooLate."""
        call = self.devtools.call
        call("browsingContext.close", limit_s=limit_s, context=page.target)
        call("browser.removeUserContext", limit_s=limit_s, userContext=page.context)
        self.in_window(NO_CONNECTIONS, limit_s)
        self.devtools.forget_events()

    def again(self, page: Page) -> Page:
        """Another page in the same container, without connections and HTTP cache, once it has kept a session."""
        call = self.devtools.call
        if self.place.protocol == "h3":
            self.rest(page)
        target = call("browsingContext.create", type="tab", userContext=page.context)["context"]
        call("browsingContext.close", context=page.target)
        self.in_window(NO_CONNECTIONS)
        self.in_window(NO_CACHE)
        self.devtools.forget_events()
        return Page(page.context, target, is_repeat=True)

    def rest(self, page: Page) -> None:
        """Wait until the connection of a page has kept its session. Raises BrowserGone, CallFailed or TooLate."""
        answer = self.devtools.call(EVALUATE, expression=REST_MS, awaitPromise=False, target={"context": page.target})
        rest_s = float(answer.get("result", {}).get("value", 0.0)) / 1000
        time.sleep(min(max(0.0, rest_s), LONGEST_REST_S))

    def in_window(self, script: str, limit_s: float = CALL_S) -> None:
        """Run a script with the rights of the browser. Raises BrowserGone, CallFailed or TooLate."""
        self.devtools.call(
            EVALUATE, limit_s=limit_s, expression=script, awaitPromise=False, target={"context": self.window}
        )

    def navigate(self, page: Page, url: str) -> int:
        """Start to load an address; the number of the call. Raises BrowserGone."""
        return self.devtools.start(NAVIGATE, context=page.target, url=url, wait="complete")

    def arrived(self, seen: Loading, page: Page, number: int) -> None:
        """Take note of the answer to `navigate`, which comes after the load event. Raises CallFailed."""
        try:
            answer = self.devtools.answered(number, NAVIGATE)
        except CallFailed as error:
            if not (found := NETWORK_ERROR.search(str(error))):
                raise
            seen.error = found[0]
            return
        if answer and answer["url"] == EMPTY:
            while DOWNLOADS not in seen.refused and (event := self.devtools.event(DOWNLOAD_S)):
                self.note(seen, page, event)
            if DOWNLOADS in seen.refused:
                seen.error = DOWNLOAD
            else:
                seen.crash = "the page's renderer crashed"
            return
        seen.is_loaded = bool(answer)

    def note(self, seen: Loading, page: Page, event: dict[str, Any] | None) -> None:
        """Take note of something that the browser did not open."""
        match event:
            case {"method": method, "params": {"context": page.target}} if method in REFUSED:
                seen.refused.append(REFUSED[method])

    def ask(self, page: Page, script: str) -> int:
        """Start a script in a page, which is a promise; the number of the call. Raises BrowserGone."""
        return self.devtools.start(
            EVALUATE, expression=f"({script}).then(JSON.stringify)", awaitPromise=True, target={"context": page.target}
        )

    def given(self, number: int) -> dict[str, Any] | None:
        """The object that a script gave, empty if it gave none; None while it runs. Raises CallFailed."""
        answer = self.devtools.answered(number, EVALUATE)
        if answer is None:
            return None
        text = answer.get("result", {}).get("value")
        found: dict[str, Any] = json.loads(text) if isinstance(text, str) else {}
        return found


if __name__ == "__main__":
    serve_pages(Firefox, PROGRAM, PACKAGES)
