"""libcurl: fetches one object, to check its content (`fetch`) or to time its first byte (`Fetch`); or many.

`python3 -m client.curl PROTOCOL SESSION ORIGIN PATH [discovers]` opens two connections, one after the other, for every
kind of session: the first fetches TICKET and leaves a session, the second fetches the object and is measured. So a
process, its libraries and both ends' kernels are as warm for a new session as for a resumed one. It prints a line of
JSON after each, and one when the first line of the measured answer has come: the rest may outlast the trial. With
`discovers` the first one is over TCP, and the second one follows the offer in its answer (Alt-Svc).

No time limit of libcurl applies: its limit for QUIC handshakes (10 s by default) is raised.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # not imported by the program, which starts in every trial
    from impair.messages import Fetched

HTTP_VERSION = {"h1": 2, "h2": 4, "h3": 31}  # CURL_HTTP_VERSION_1_1, _2TLS and _3ONLY of curl.h: what is offered
SPEAKS = {"h1": 2, "h2": 3, "h3": 30}  # as INFO_HTTP_VERSION has them
FULL_ANSWER = 200
SPOKEN = {2: "http/1.1", 3: "h2", 30: "h3"}  # CURL_HTTP_VERSION_1_1, _2_0 and _3: what CURLINFO_HTTP_VERSION answers
FROM_OFFER = 0  # CURL_HTTP_VERSION_NONE: HTTP/2 over TCP at first, and HTTP/3 once it was offered
ALT_SVC_CTRL, ALT_SVC_H3 = 286, 1 << 5  # CURLOPT_ALTSVC_CTRL, CURLALTSVC_H3: keeps offers of HTTP/3 in memory
EARLY_DATA = 1 << 6  # CURLSSLOPT_EARLYDATA: sent wherever the session allows it
EARLY_BYTES = 0x600000 + 68  # CURLINFO_EARLYDATA_SENT_T: bytes accepted; negative: bytes refused
SESSIONS = ("new", "resumed", "early")
UDP_BUFFER_BYTES = 16 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h; they need the capability NET_ADMIN
TICKET = "/ticket"  # of nginx/sessions.conf
LONGEST_S = 7 * 86_400  # a trial's own timeout comes before


class Libcurl:
    """The part of a Fetch that is the same for all programs with libcurl (client/agent.py)."""

    __slots__ = ()

    def logs(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """The variable that libcurl knows."""
        return [], {"QLOGDIR": str(folder)}

    def windows(self) -> dict[str, int]:
        """Empty: libcurl does not report its windows."""
        return {}


@dataclass(frozen=True, slots=True)
class Fetch(Libcurl):
    """An object over a connection whose session is `new`, `resumed`, or resumed with the request as `early` data.

    `discovers` (h3 only): it follows the offer of HTTP/3 to an earlier connection, which is over TCP.
    """

    protocol: str
    host: str
    port: int
    path: str
    session: str
    discovers: bool = False
    settings: str = "unlimited"  # libcurl has no settable windows: both are the same

    def __post_init__(self) -> None:
        if self.protocol not in HTTP_VERSION or self.session not in SESSIONS:
            raise ValueError(f"protocol {self.protocol!r} or session {self.session!r} is none of libcurl's")

    def command(self) -> list[str]:
        """The command line that runs this file as a program."""
        origin = f"https://{self.host}:{self.port}"
        words = ["python3", "-m", "client.curl", self.protocol, self.session, origin, self.path]
        return [*words, "discovers"] if self.discovers else words

    def answer(self, directory: Path, started_at: float) -> dict[str, Any]:
        """The program's output: "prepared" and "measured" as `perform` returns them, if it came that far.

        "began_s" is when the measured connection began, from the start of the program; "first_byte_s" is the time to
        the first line of its answer, also if the rest did not come. Refused early data are none in the metrics.
        """
        lines = [json.loads(line) for line in (directory / "stdout").read_text().splitlines()]
        report: dict[str, Any] = {name: value for line in lines for name, value in line.items()}
        measured, began_at = report.get("measured", {}), report.pop("began_at", None)
        whole = measured and not measured["error"]
        names = {"ttfb_s": "ttfb_s", "total_s": "total_s", "handshake_s": "handshake_s", "bytes_body": "bytes",
                 "early_bytes": "early_bytes"}  # fmt: skip
        return {
            **report,
            "negotiated": {"alpn": measured.get("alpn")},
            "metrics": {name: max(0, measured[key]) for name, key in names.items()} if whole else {},
            **({} if began_at is None else {"began_s": round(began_at - started_at, 6)}),
        }


def fetch(
    protocol: str, host: str, port: int, path: str, first_byte: int, bytes_wanted: int, timeout_s: float
) -> Fetched:
    """Fetch `bytes_wanted` of the object from `first_byte` on, over its own connection.

    A server that ignores the range sends all, which shows in bytes and hash.
    """
    import pycurl  # in the image; the tests of the host do without it

    from impair.messages import Fetched

    digest, handle = hashlib.sha256(), _handle(protocol)
    try:
        if bytes_wanted:  # a server has no range of an empty object
            handle.setopt(pycurl.RANGE, f"{first_byte}-{first_byte + bytes_wanted - 1}")
        handle.setopt(pycurl.TIMEOUT_MS, int(timeout_s * 1000))
        answer = perform(handle, f"https://{host}:{port}{path}", digest.update)
    finally:
        handle.close()
    return Fetched(answer["status"], answer["alpn"], answer["bytes"], digest.hexdigest(), answer["error"])


def _handle(protocol: str) -> Any:
    """A libcurl handle that ignores the environment."""
    import pycurl

    handle = pycurl.Curl()
    for option, value in {
        pycurl.HTTP_VERSION: HTTP_VERSION[protocol], pycurl.SSL_VERIFYPEER: 0, pycurl.SSL_VERIFYHOST: 0,
        pycurl.NOPROXY: "*", pycurl.NOSIGNAL: 1,
    }.items():  # fmt: skip
        handle.setopt(option, value)
    return handle


def perform(
    handle: Any, url: str, take: Any = lambda _: None, came: Callable[[float], None] = lambda _: None
) -> dict[str, Any]:
    """Fetch `url`, handing its bytes to `take`: status, alpn, bytes, early_bytes, error, and times in seconds.

    `came` gets the time of the first line as soon as it is there.

    Times count from the call: `ttfb_s` until the first line of the answer, `total_s` until its last byte,
    `handshake_s` until libcurl had a connection to send the request on. `error` is empty on success.
    """
    import pycurl

    first_s: list[float] = []
    count, error = 0, ""

    def begin(_: bytes) -> None:
        if not first_s:
            first_s.append(time.perf_counter() - start)
            came(first_s[0])

    def receive(data: bytes) -> None:
        nonlocal count
        take(data)
        count += len(data)

    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.HEADERFUNCTION, begin)
    handle.setopt(pycurl.WRITEFUNCTION, receive)
    start = time.perf_counter()
    try:
        handle.perform()
    except pycurl.error as failure:
        error = str(failure.args[-1])
    total_s = time.perf_counter() - start
    return {
        "status": handle.getinfo(pycurl.RESPONSE_CODE), "alpn": SPOKEN.get(handle.getinfo(pycurl.INFO_HTTP_VERSION)),
        "bytes": count, "early_bytes": handle.getinfo(EARLY_BYTES), "error": error,
        "ttfb_s": round(first_s[0], 6) if first_s else None, "total_s": round(total_s, 6),
        "handshake_s": handle.getinfo(pycurl.APPCONNECT_TIME),
    }  # fmt: skip


def fetch_all(
    protocol: str, urls: Sequence[str], connections: int, begin: Callable[[], None],
    take: Callable[[int, dict[str, Any]], None], receive: Sequence[Callable[[bytes], object]],
    first_bytes: Sequence[int] = (),
) -> None:  # fmt: skip
    """Fetch all URLs of one host over a limited number of connections, all requested as soon as these allow.

    `begin` is called before the first connection is opened, and `take` at the end of each transfer, with its number and
    what is known of it: times count from the beginning. Each URL has a function in `receive`, which gets the pieces of
    its body as they come. `first_bytes`: of each, how much of it is there already and not requested again.
    """
    import pycurl

    multi = pycurl.CurlMulti()
    for option, value in {
        pycurl.M_PIPELINING: pycurl.PIPE_MULTIPLEX, pycurl.M_MAX_HOST_CONNECTIONS: connections,
        pycurl.M_MAX_CONCURRENT_STREAMS: max(100, len(urls)),
    }.items():  # fmt: skip
        multi.setopt(option, value)
    handles = {}
    for number, url in enumerate(urls):
        handle = _handle(protocol)
        for option, value in {
            pycurl.URL: url, pycurl.WRITEFUNCTION: receive[number], pycurl.PIPEWAIT: 1, pycurl.PATH_AS_IS: 1,
            pycurl.CONNECTTIMEOUT: LONGEST_S, pycurl.SOCKOPTFUNCTION: _widen,
        }.items():  # fmt: skip
            handle.setopt(option, value)
        if first_bytes and first_bytes[number]:
            handle.setopt(pycurl.RESUME_FROM_LARGE, first_bytes[number])
        handles[handle] = number
        multi.add_handle(handle)
    begin()  # nothing is sent before the first `perform`
    running = len(handles)
    while running:
        _, running = multi.perform()
        _, done, failed = multi.info_read(len(handles))
        for handle, error in (*((each, "") for each in done), *((each, text) for each, _, text in failed)):
            take(handles[handle], _transfer(handle, error))
        if running and multi.select(_pause_s(multi.timeout())) < 0:
            time.sleep(0.001)  # there is no socket to wait for


def download_on(
    protocol: str, url: str, received: list[int], look: Callable[[], None], step_s: float
) -> str:  # fmt: skip
    """Download `url` again and again, over one connection for each entry of `received`, until a download fails.

    `received` counts the bytes of each; `look` is called after every step of at most `step_s`. Returns the failure.
    """
    import pycurl

    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
    places = {}
    for place in range(len(received)):
        handle = _handle(protocol)
        for option, value in {
            pycurl.URL: url, pycurl.WRITEFUNCTION: _counter(received, place), pycurl.CONNECTTIMEOUT: LONGEST_S,
            pycurl.SOCKOPTFUNCTION: _widen, pycurl.BUFFERSIZE: 1 << 19,
        }.items():  # fmt: skip
            handle.setopt(option, value)
        places[handle] = place
        multi.add_handle(handle)
    while True:
        multi.perform()
        _, done, failed = multi.info_read(len(received))
        for handle, _, message in failed:
            return f"download {places[handle]}: {message}"
        for handle in done:
            spoken, status = SPOKEN.get(handle.getinfo(pycurl.INFO_HTTP_VERSION)), handle.getinfo(pycurl.RESPONSE_CODE)
            if spoken != SPOKEN[SPEAKS[protocol]] or status != FULL_ANSWER:
                return f"download {places[handle]}: status {status} over {spoken}, not {protocol}"
            multi.remove_handle(handle)  # its connection is kept
            multi.add_handle(handle)
        look()
        if multi.select(step_s) < 0:
            time.sleep(0.001)  # there is no socket to wait for


def _counter(received: list[int], place: int) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        received[place] += len(data)

    return take


def _widen(descriptor: int, _: int) -> int:
    """Give a UDP socket a buffer that drops nothing, as client/h2load.patch does; the kernel sizes those of TCP.

    A rootless Docker may not exceed the host's limits: there it is as much as they allow.
    """
    kept = socket.socket(fileno=descriptor)
    try:
        if kept.type == socket.SOCK_DGRAM:
            for forced, plain in ((SO_RCVBUFFORCE, socket.SO_RCVBUF), (SO_SNDBUFFORCE, socket.SO_SNDBUF)):
                try:
                    kept.setsockopt(socket.SOL_SOCKET, forced, UDP_BUFFER_BYTES)
                except PermissionError:
                    kept.setsockopt(socket.SOL_SOCKET, plain, UDP_BUFFER_BYTES)
    finally:
        kept.detach()
    return 0


def _pause_s(wanted_ms: int) -> float:
    """The longest time to wait for a socket, given when libcurl has something to do; negative: no time is known."""
    return 1.0 if wanted_ms < 0 else min(1.0, wanted_ms / 1000)


def _transfer(handle: Any, error: str) -> dict[str, Any]:
    """The result of a transfer, with its times in seconds since it was handed to libcurl; `error` is empty on success.

    `start_s`: when its request was sent; `done_s`: when its last byte was read; `opened_s`: when it opened a
    connection, and `handshake_s`: how long that took to be ready; both None if it opened none.
    """
    import pycurl

    opens = handle.getinfo(pycurl.NUM_CONNECTS) > 0
    # Both include the wait for a free connection. The server is given by its address: looking it up takes no time.
    opened_s, ready_s = handle.getinfo(pycurl.NAMELOOKUP_TIME), handle.getinfo(pycurl.APPCONNECT_TIME)
    return {
        "status": handle.getinfo(pycurl.RESPONSE_CODE), "alpn": SPOKEN.get(handle.getinfo(pycurl.INFO_HTTP_VERSION)),
        "bytes": int(handle.getinfo(pycurl.SIZE_DOWNLOAD)), "header_bytes": handle.getinfo(pycurl.HEADER_SIZE),
        "error": error, "start_s": handle.getinfo(pycurl.PRETRANSFER_TIME),
        "first_byte_s": handle.getinfo(pycurl.STARTTRANSFER_TIME), "done_s": handle.getinfo(pycurl.TOTAL_TIME),
        "opened_s": opened_s if opens else None, "handshake_s": max(0.0, ready_s - opened_s) if opens else None,
    }  # fmt: skip


def main(protocol: str, session: str, origin: str, path: str, discovers: str = "") -> None:
    """Open a connection that leaves a session, then one that is measured."""
    import pycurl

    handle = _handle(protocol)
    if discovers:
        handle.setopt(pycurl.HTTP_VERSION, FROM_OFFER)
        handle.setopt(ALT_SVC_CTRL, ALT_SVC_H3)
    for option, value in {
        pycurl.FRESH_CONNECT: 1, pycurl.FORBID_REUSE: 1, pycurl.CONNECTTIMEOUT: LONGEST_S,
        pycurl.SSL_OPTIONS: EARLY_DATA if session == "early" else 0,
    }.items():  # fmt: skip
        handle.setopt(option, value)
    prepared = perform(handle, f"{origin}{TICKET}")
    _say({"prepared": prepared, "began_at": time.time()})
    if not prepared["error"]:
        handle.setopt(pycurl.SSL_SESSIONID_CACHE, int(session != "new"))
        _say({"measured": perform(handle, f"{origin}{path}", came=lambda s: _say({"first_byte_s": round(s, 6)}))})


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
