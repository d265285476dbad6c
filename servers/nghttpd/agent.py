"""The agent of an nghttpd: the endpoint's operations, and those of the server contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from impair.endpoint.buffers import smallest, tcp_limits
from impair.wire import serve
from servers.contract import PUSH, SITE, WORKERS, Info, packages, sha256
from servers.probes import Probes, old_hello
from servers.supervised import Supervised

PORT = 443
STREAMS = {"h2": 1024}
START = Path(__file__).with_name("start.sh")
COMMAND = str(START)
PAGE = re.compile(r"1-of-(\d+)\.html")
HELLO = b"\x16\x03"  # a TLS record (RFC 8446, section 5.1): it closes the connection on plain HTTP without a word
SERVER = Supervised(Probes(server="nghttpd", asked=old_hello(), expected=HELLO), speaks_quic=False)


def info() -> Info:
    """Versions, configuration and windows."""
    version = subprocess.run(["nghttpd", "--version"], capture_output=True, text=True, check=True).stdout
    found = packages(("nghttp2-server", "libnghttp2-14", "libssl3t64", "libc6"))
    return Info(
        name="nghttpd",
        version=version.strip().rpartition("/")[2],
        tls_library=f"OpenSSL {found['libssl3t64']}",
        packages=found,
        configuration_sha256=sha256([START, START.with_name("entrypoint.sh")]),
        workers=SERVER.workers(),
        quic_congestion=None,
        offers=(PUSH, WORKERS),
        streams=STREAMS,
        windows={str(PORT): windows(PORT)},
    )


def windows(port: int) -> dict[str, int | None]:
    """The buffers behind `port`: those of TCP."""
    if port != PORT:
        raise KeyError(port)
    return {**tcp_limits(), **smallest([]), "http3_stream_buffer_bytes": None}


def command(site: Path = SITE) -> str:
    """The command line that start.sh makes of the pages of one picture: a new page is pushed from `fresh` on."""
    pages = sorted(page.name for page in site.glob("bytes/1-of-*.html"))
    sizes = [found[1] for name in pages if (found := PAGE.fullmatch(name))]
    pushes = [f"-p/bytes/1-of-{size}.html=/bytes/{size}.png?1" for size in sizes]
    options = ["-a", "0.0.0.0", "-d", str(site), "-n", str(SERVER.workers()), "-m", str(STREAMS["h2"]), *pushes]  # noqa: S104
    return " ".join(["nghttpd", *options, str(PORT), "/run/headwind/key.pem", "/run/headwind/certificate.pem"])


OPERATIONS = SERVER.operations(command, info=info, windows=windows)


if __name__ == "__main__":
    serve(OPERATIONS, sys.stdin, sys.stdout)
