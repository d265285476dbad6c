"""CPU time of Playwright's driver for a page of 50 pictures, next to that of the agent that speaks DevTools itself.

It runs in the container of a browser, which has no Playwright, so that is mounted (Python as in the container):

    pip install --target reports/playwright --python-version 3.14 --only-binary :all: playwright
    docker run --rm --init --user nobody --cap-drop ALL --tmpfs /tmp -v $PWD:/opt/headwind:ro \
        -v $PWD/reports/playwright:/playwright:ro IMAGE python3 -m bench.page_driver /playwright

IMAGE is the one of `docker images headwind-chromium`. Server, browser and driver are in one container; the time of the
browser is what the server and the driver leave of the container's.
"""

from __future__ import annotations

import http.server
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from browsers import devtools
from browsers.agent import Browsers
from browsers.browser import HOST
from browsers.chromium.agent import COMMON, PROGRAM, PROTOCOLS, Chromium
from browsers.page import collecting
from impair import processors
from servers.objects import document, picture

PICTURES, SIZE_BYTES = 50, 10_000
PAGES, ROUNDS = 10, 5  # per round and driver, in turns
PORT = 8443
PATH = f"/bytes/{PICTURES}-of-{SIZE_BYTES}.html"
TICKS = os.sysconf("SC_CLK_TCK")


class Objects(http.server.BaseHTTPRequestHandler):
    """Serves the document and its pictures."""

    protocol_version = "HTTP/1.1"
    bodies: ClassVar[Mapping[str, bytes]] = {
        PATH: document(PICTURES, SIZE_BYTES), f"/bytes/{SIZE_BYTES}.png": picture(SIZE_BYTES),
    }  # fmt: skip

    def do_GET(self) -> None:
        """Answer a request."""
        body = self.bodies[self.path.partition("?")[0]]
        self.send_response(200)
        self.send_header("Content-Type", "image/png" if ".png" in self.path else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def serve() -> int:
    """Serve in a separate process; its pid."""
    folder = tempfile.mkdtemp()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         f"{folder}/key", "-out", f"{folder}/certificate", "-days", "9", "-subj", f"/CN={HOST}"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Objects)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    if pid := os.fork():
        return pid
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    server.serve_forever()
    return 0


def cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass(slots=True)
class Driver:
    """A way to load a page: its name, what loads one, and the processes that are neither browser nor server."""

    name: str
    load: Callable[[], float]
    processes: tuple[int, ...]

    def measure(self, server: int) -> tuple[float, float, float]:
        """Load PAGES pages: CPU time of driver and of browser, and the load event's time, all per page."""
        before, all_before, served = sum(map(cpu_s, self.processes)), processors.kept_waiting().cpu_s, cpu_s(server)
        load_s = statistics.median(self.load() for _ in range(PAGES))
        driver_s = sum(map(cpu_s, self.processes)) - before
        whole_s = (processors.kept_waiting().cpu_s or 0.0) - (all_before or 0.0)
        return driver_s / PAGES, (whole_s - driver_s - cpu_s(server) + served) / PAGES, load_s


def own() -> Driver:
    """The lab's agent, with all that it does in a trial."""
    devtools.LAB = os.pipe()[0]
    browsers = Browsers(Chromium)
    there: dict[str, Any] = {"protocol": "h1", "host": "127.0.0.1", "port": PORT, "path": PATH}

    def load() -> float:
        browsers.prepare(**there)
        return float(browsers.run(20.0, **there)["metrics"]["load_s"])

    return Driver("DevTools over a pipe", load, (os.getpid(),))


def playwright() -> Driver:
    """Playwright for Python, with the same browser and its arguments."""
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found, unused-ignore]

    started = sync_playwright().start()
    arguments = [*COMMON, *PROTOCOLS["h1"], f"--host-resolver-rules=MAP {HOST} 127.0.0.1, MAP * ~NOTFOUND"]
    browser = started.chromium.launch(
        executable_path=f"/usr/bin/{PROGRAM}", args=[each for each in arguments if "remote-debugging" not in each]
    )

    def load() -> float:
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.goto(f"https://{HOST}:{PORT}{PATH}", wait_until="load")
        found = page.evaluate(collecting())
        context.close()
        return float(found["load"]) / 1000

    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    nodes = [int(pid) for pid in children if b"playwright" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return Driver("Playwright", load, (os.getpid(), *nodes))


def main() -> None:
    """Measure both in turns, and print the medians of the rounds."""
    sys.path.append(sys.argv[1])
    server = serve()
    time.sleep(0.5)
    drivers = own(), playwright()
    for each in drivers:
        each.load()
    rounds = [[each.measure(server) for each in drivers] for _ in range(ROUNDS)]
    for number, each in enumerate(drivers):
        driver_s, browser_s, load_s = (
            ", ".join(f"{one[number][column] * 1000:.0f}" for one in rounds) for column in range(3)
        )
        print(f"{each.name} ({len(each.processes)} processes), ms per page and round: driver {driver_s}; "
              f"browser {browser_s}; load event {load_s}")  # fmt: skip
    os.kill(server, 9)


if __name__ == "__main__":
    main()
