"""A Chromium that speaks one protocol with one server, and its pages, each in a context of its own.

Chromium chooses protocols by its command line, so there is a process for each. A context has its own connections,
cache, TLS sessions and alternative services, and forgets them when it is closed.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from browsers.devtools import BrowserGone, DevTools, TooLate
from browsers.page import BEFORE

PROGRAM = "chromium-headless-shell"
HOST = "server"  # in the certificates of the lab's servers; the browser resolves it by a rule of its own
# setpriv: the browser dies with the agent, however that dies.
LEASH = ("setpriv", "--pdeathsig", "KILL")
USUAL_PORT = 443
FIRST_FREE = 10  # file descriptors below may be the ones that the browser reads and writes: 3 and 4
WINDOW = (1366, 768)
NETWORK = b"network.mojom.NetworkService"  # in the command line of a process of Chromium
GRACE_S = 2.0  # for the end of a closed browser
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
    "--disable-renderer-backgrounding",
    "--disable-features=HttpsUpgrades,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,Translate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """The server that a browser talks to, and the protocol."""

    protocol: str
    host: str  # its address
    port: int

    def url(self, path: str) -> str:
        """The address of an object, as a browser writes it: without the usual port."""
        port = "" if self.port == USUAL_PORT else f":{self.port}"
        return f"https://{HOST}{port}{path}"


def command(place: Place, key_hash: str, profile: str) -> list[str]:
    """The command line, but for the pipes. `key_hash` is that of the server's public key.

    Raises ValueError for another protocol.
    """
    if place.protocol not in PROTOCOLS:
        raise ValueError(f"{place.protocol!r} is none of Chromium's protocols: {', '.join(PROTOCOLS)}")
    quic = (f"--origin-to-force-quic-on={HOST}:{place.port}",) if place.protocol == "h3" else ()
    return [
        PROGRAM, *COMMON, *PROTOCOLS[place.protocol], *quic, f"--user-data-dir={profile}",
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


@dataclass(frozen=True, slots=True)
class Page:
    """An empty page in a context of its own; `session` is how its calls are addressed."""

    context: str
    target: str
    session: str


@dataclass(slots=True)
class Chromium:
    """A running browser."""

    place: Place
    command: list[str]
    process: subprocess.Popen[bytes]
    devtools: DevTools
    profile: Path

    @classmethod
    def start(cls, place: Place) -> Chromium:
        """Start a browser, and wait until it answers. Raises BrowserGone with its last words, TooLate or OSError."""
        profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        words = command(place, key_hash_of(place), str(profile))
        there, receiving, sending, back = _pipes()
        # bash: a shell that takes descriptors of two digits
        wrapped = ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *LEASH, *words]
        with (profile / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                wrapped, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, pass_fds=(there, back),
                start_new_session=True, env={**os.environ, "HOME": str(profile)},
            )  # fmt: skip
        os.close(there)
        os.close(back)
        browser = cls(place, words, process, DevTools(receiving, sending), profile)
        try:
            browser.devtools.call("Browser.getVersion", limit_s=20.0)
        except (BrowserGone, TooLate) as error:
            words_left = browser.last_words()
            browser.close()
            raise type(error)(f"{error}\n{words_left}") from error
        return browser

    def open(self) -> Page:
        """Open an empty page in a new context. Raises BrowserGone, CallFailed or TooLate."""
        call = self.devtools.call
        context = call("Target.createBrowserContext", disposeOnDetach=False)["browserContextId"]
        width, height = WINDOW
        target = call("Target.createTarget", url="about:blank", browserContextId=context, width=width,
                      height=height)["targetId"]  # fmt: skip
        session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for method in ("Page.enable", "Inspector.enable"):
            call(method, session)
        call("Page.addScriptToEvaluateOnNewDocument", session, source=BEFORE)
        self.devtools.forget_events()
        return Page(context, target, session)

    def close_page(self, page: Page) -> None:
        """Close a page with its context and connections. Raises BrowserGone, CallFailed or TooLate."""
        self.devtools.call("Target.disposeBrowserContext", browserContextId=page.context)
        self.devtools.forget_events()

    def last_words(self) -> str:
        """The last lines that it printed."""
        file = self.profile / "stderr"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return "\n".join(lines[-8:])

    def network_process(self) -> int:
        """The pid of the process that has all connections, which the browser starts again if it ends; 0 without one."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_ours = os.getpgid(int(entry.name)) == self.process.pid
                if is_ours and NETWORK in (entry / "cmdline").read_bytes():
                    return int(entry.name)
        return 0

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


def _pipes() -> tuple[int, int, int, int]:
    """Descriptors: what the browser reads, what we read, what we write, what the browser writes."""
    to_browser, from_browser = os.pipe(), os.pipe()
    found = []
    for descriptor in (to_browser[0], from_browser[0], to_browser[1], from_browser[1]):
        found.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE))
        os.close(descriptor)
    there, receiving, sending, back = found
    return there, receiving, sending, back
